/* SPDX-License-Identifier: Apache-2.0 */
/*
 * st_layout.c - see st_layout.h.
 *
 * The order of tensors, the padding and the compact JSON are those of the
 * reference writer (https://github.com/huggingface/safetensors,
 * safetensors/src/tensor.rs, prepare), so that a file that is read and written
 * again is the same, byte for byte.
 */
#include "config.h"

#include "ckpt/st_layout.h"

#include "base/json_write.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "ckpt/arena.h"
#include "ckpt/st_impl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What is sorted: a name, and what may count more than it. */
struct key {
    struct ep_span name;
    size_t i;
    size_t shard;
    int dtype;
};

static int by_name(const void *a, const void *b)
{
    const struct key *x = a, *y = b;
    int c = ep_span_order(x->name, y->name);

    return c ? c : (x->i > y->i) - (x->i < y->i);
}

static int by_place(const void *a, const void *b)
{
    const struct key *x = a, *y = b;

    if (x->shard != y->shard)
        return x->shard < y->shard ? -1 : 1;
    if (x->dtype != y->dtype)
        return x->dtype > y->dtype ? -1 : 1;
    return ep_span_order(x->name, y->name);
}

static bool is_utf8(struct ep_span s)
{
    for (size_t i = 0; i < s.len;) {
        int n = ep_utf8_len(s.ptr + i, s.len - i);

        if (n <= 0)
            return false;
        i += (size_t)n;
    }
    return true;
}

/* Bytes of a tensor, from its shape; checks all that can be wrong with it. */
static int measure(const struct ep_tensor *t, uint64_t *bytes,
                   struct ep_error *err)
{
    uint64_t count = 1, bits;

    if (!is_utf8(t->name))
        return ep_error_set(err, EP_EFORMAT, "its name is not UTF-8");
    if (ep_span_eq(t->name, "__metadata__"))
        return ep_error_set(err, EP_EFORMAT, "a tensor cannot have that name");
    if (t->rank > EP_ST_RANK_MAX)
        return ep_error_set(err, EP_ELIMIT, "more than %d dimensions",
                            EP_ST_RANK_MAX);
    for (unsigned d = 0; d < t->rank; d++)
        if (__builtin_mul_overflow(count, t->shape[d], &count))
            return ep_error_set(err, EP_ERANGE, "too large");
    if (count != t->count)
        return ep_error_set(
            err, EP_EDOM, "%llu elements, but its shape has %llu",
            (unsigned long long)t->count, (unsigned long long)count);
    if (__builtin_mul_overflow(count, ep_dtype_bits(t->dtype), &bits))
        return ep_error_set(err, EP_ERANGE, "too large");
    if (bits % 8)
        return ep_error_set(err, EP_EFORMAT,
                            "%llu elements of %u bits do not fill whole bytes",
                            (unsigned long long)count, ep_dtype_bits(t->dtype));
    *bytes = bits / 8;
    return 0;
}

/* Names in l->by_name, sorted; EP_EFORMAT if one is there twice. */
static int sort_names(struct ep_st_layout *l, const struct ep_st_plan *plan,
                      struct key *key, struct ep_error *err)
{
    for (size_t i = 0; i < l->n; i++)
        key[i] = (struct key){.name = plan->tensor[i].name, .i = i};
    if (l->n)
        qsort(key, l->n, sizeof *key, by_name);
    for (size_t i = 0; i < l->n; i++) {
        char shown[160];

        l->by_name[i] = key[i].i;
        if (i && ep_span_order(key[i - 1].name, key[i].name) == 0)
            return ep_error_set(err, EP_EFORMAT, "two tensors of name \"%s\"",
                                ep_escape(shown, sizeof shown, key[i].name.ptr,
                                          key[i].name.len));
    }
    return 0;
}

/* Fill shards in the order of the plan, then order each. */
static void settle(struct ep_st_layout *l, const struct ep_st_plan *plan,
                   struct key *key)
{
    uint64_t cap = plan->shard_bytes ? plan->shard_bytes : UINT64_MAX;
    uint64_t used = 0;
    size_t in_shard = 0;

    l->shards = 1;
    for (size_t i = 0; i < l->n; i++) {
        struct ep_st_place *p = &l->place[i];

        if (in_shard && (used > cap || p->bytes > cap - used)) {
            l->shards++;
            used = 0;
            in_shard = 0;
        }
        p->shard = l->shards - 1;
        used += p->bytes;
        in_shard++;
        key[i] = (struct key){.name = plan->tensor[i].name,
                              .i = i,
                              .shard = p->shard,
                              .dtype = (int)plan->tensor[i].dtype};
    }
    if (l->n)
        qsort(key, l->n, sizeof *key, by_place);
    l->data_bytes = ep_calloc(l->shards, sizeof *l->data_bytes);
    l->first = ep_calloc(l->shards + 1, sizeof *l->first);
    for (size_t i = 0; i < l->n; i++) {
        struct ep_st_place *p = &l->place[key[i].i];

        l->order[i] = key[i].i;
        l->first[p->shard + 1] = i + 1;
        p->begin = l->data_bytes[p->shard];
        l->data_bytes[p->shard] += p->bytes;
    }
}

/* The metadata entries to write. */
static int choose_meta(struct ep_st_layout *l, const struct ep_st_plan *plan,
                       struct ep_error *err)
{
    for (size_t i = 0; i < plan->nmeta; i++) {
        if (!is_utf8(plan->meta[i].key) || !is_utf8(plan->meta[i].value))
            return ep_error_set(err, EP_EFORMAT,
                                "metadata entry %zu is not UTF-8", i + 1);
        l->meta[i] = plan->meta[i];
    }
    l->nmeta = ep_st_meta_unique(l->meta, plan->nmeta, false);
    return 0;
}

int ep_st_layout_make(struct ep_st_layout *l, const struct ep_st_plan *plan,
                      struct ep_error *err)
{
    struct key *key = ep_calloc(plan->n + 1, sizeof *key);
    int rc = 0;

    *l = (struct ep_st_layout){.n = plan->n};
    l->place = ep_calloc(plan->n + 1, sizeof *l->place);
    l->order = ep_calloc(plan->n + 1, sizeof *l->order);
    l->by_name = ep_calloc(plan->n + 1, sizeof *l->by_name);
    l->meta = ep_calloc(plan->nmeta + 1, sizeof *l->meta);
    for (size_t i = 0; i < plan->n && rc == 0; i++) {
        const struct ep_span *name = &plan->tensor[i].name;
        char shown[120];

        rc = measure(&plan->tensor[i], &l->place[i].bytes, err);
        if (rc == 0 && __builtin_add_overflow(l->total_bytes, l->place[i].bytes,
                                              &l->total_bytes))
            rc = ep_error_set(err, EP_ERANGE, "too large");
        if (rc < 0)
            (void)ep_error_prefix(
                err, "tensor \"%s\"",
                ep_escape(shown, sizeof shown, name->ptr, name->len));
    }
    /* a file's size is signed, and has a header too */
    if (rc == 0 && l->total_bytes > INT64_MAX - 2 * EP_ST_HEADER_MAX)
        rc = ep_error_set(err, EP_ERANGE, "too large: %llu bytes",
                          (unsigned long long)l->total_bytes);
    if (rc == 0)
        rc = sort_names(l, plan, key, err);
    if (rc == 0)
        rc = choose_meta(l, plan, err);
    if (rc == 0)
        settle(l, plan, key);
    free(key);
    if (rc < 0)
        ep_st_layout_free(l);
    return rc;
}

void ep_st_layout_free(struct ep_st_layout *l)
{
    free(l->place);
    free(l->data_bytes);
    free(l->order);
    free(l->first);
    free(l->by_name);
    free(l->meta);
    *l = (struct ep_st_layout){0};
}

int ep_st_layout_header(const struct ep_st_layout *l,
                        const struct ep_st_plan *plan, size_t shard,
                        struct ep_buf *out, struct ep_error *err)
{
    size_t start = out->len;
    struct ep_jw w;

    ep_jw_init(&w, out);
    ep_jw_begin_object(&w);
    if (l->nmeta) {
        ep_jw_key(&w, "__metadata__");
        ep_jw_begin_object(&w);
        for (size_t i = 0; i < l->nmeta; i++) {
            ep_jw_key_bytes(&w, l->meta[i].key);
            ep_jw_bytes(&w, l->meta[i].value);
        }
        ep_jw_end_object(&w);
    }
    for (size_t k = l->first[shard]; k < l->first[shard + 1]; k++) {
        const struct ep_tensor *t = &plan->tensor[l->order[k]];
        const struct ep_st_place *p = &l->place[l->order[k]];

        ep_jw_key_bytes(&w, t->name);
        ep_jw_begin_object(&w);
        ep_jw_key_string(&w, "dtype", ep_dtype_name(t->dtype));
        ep_jw_key(&w, "shape");
        ep_jw_begin_array(&w);
        for (unsigned d = 0; d < t->rank; d++)
            ep_jw_uint(&w, t->shape[d]);
        ep_jw_end_array(&w);
        ep_jw_key(&w, "data_offsets");
        ep_jw_begin_array(&w);
        ep_jw_uint(&w, p->begin);
        ep_jw_uint(&w, p->begin + p->bytes);
        ep_jw_end_array(&w);
        ep_jw_end_object(&w);
    }
    ep_jw_end_object(&w);
    while ((out->len - start) % 8)
        ep_buf_addc(out, ' ');
    if (out->len - start > EP_ST_HEADER_MAX)
        return ep_error_set(
            err, EP_ELIMIT,
            "a header of %zu bytes, more than the %llu that the "
            "format allows",
            out->len - start, (unsigned long long)EP_ST_HEADER_MAX);
    return 0;
}

void ep_st_layout_index(const struct ep_st_layout *l,
                        const struct ep_st_plan *plan, struct ep_buf *out)
{
    char name[EP_ST_SHARD_NAME];
    struct ep_jw w;

    ep_jw_init(&w, out);
    ep_jw_begin_object(&w);
    ep_jw_key(&w, "metadata");
    ep_jw_begin_object(&w);
    ep_jw_key(&w, "total_size");
    ep_jw_uint(&w, l->total_bytes);
    ep_jw_end_object(&w);
    ep_jw_key(&w, "weight_map");
    ep_jw_begin_object(&w);
    for (size_t i = 0; i < l->n; i++) {
        size_t k = l->by_name[i];

        ep_jw_key_bytes(&w, plan->tensor[k].name);
        ep_jw_string(&w, ep_st_layout_name(l->place[k].shard, l->shards, name));
    }
    ep_jw_end_object(&w);
    ep_jw_end_object(&w);
    ep_jw_newline(&w);
}

const char *ep_st_layout_name(size_t shard, size_t shards,
                              char name[EP_ST_SHARD_NAME])
{
    (void)snprintf(name, EP_ST_SHARD_NAME, "model-%05zu-of-%05zu.safetensors",
                   shard + 1, shards);
    return name;
}
