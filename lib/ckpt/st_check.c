/* SPDX-License-Identifier: Apache-2.0 */
/*
 * st_check.c - what can only be checked when all tensors of a header are
 * known (see st_impl.h).
 *
 * Equal names are found by sorting, not by hashing: no choice of names makes
 * it slow. Both orders are usually there already (writers lay tensors out by
 * type and name, and list them so), which costs one pass to see.
 */
#include "config.h"

#include "ckpt/st_impl.h"

#include "base/mem.h"
#include "ckpt/arena.h"

#include <inttypes.h>
#include <stdlib.h>

/* ==== Names ==== */

struct named {
    const struct ep_tensor *t;
};

static int by_name(const void *a, const void *b)
{
    const struct named *s = a, *t = b;

    return ep_span_order(s->t->name, t->t->name);
}

static bool names_ascend(const struct ep_st *st)
{
    for (size_t i = 1; i < st->n; i++)
        if (ep_span_order(st->tensor[i - 1].name, st->tensor[i].name) >= 0)
            return false;
    return true;
}

static int check_names(const struct ep_st *st, struct ep_error *err)
{
    struct named *sorted;
    char shown[EP_ST_SHOWN];
    int rc = 0;

    if (names_ascend(st))
        return 0;
    sorted = ep_realloc(NULL, st->n, sizeof *sorted);
    for (size_t i = 0; i < st->n; i++)
        sorted[i].t = &st->tensor[i];
    qsort(sorted, st->n, sizeof *sorted, by_name);
    for (size_t i = 1; i < st->n && rc == 0; i++)
        if (by_name(&sorted[i - 1], &sorted[i]) == 0)
            rc = ep_error_set(
                err, EP_EFORMAT, "tensor \"%s\": the name stands twice",
                ep_escape(shown, sizeof shown, sorted[i].t->name.ptr,
                          sorted[i].t->name.len));
    free(sorted);
    return rc;
}

/* ==== Layout ==== */

/* Where tensors without elements are is decided by their names. */
static int by_data(const void *a, const void *b)
{
    const struct ep_tensor *s = a, *t = b;

    if (s->begin != t->begin)
        return s->begin < t->begin ? -1 : 1;
    if (s->bytes != t->bytes)
        return s->bytes < t->bytes ? -1 : 1;
    return ep_span_order(s->name, t->name);
}

static void sort_by_data(struct ep_st *st)
{
    for (size_t i = 1; i < st->n; i++)
        if (by_data(&st->tensor[i - 1], &st->tensor[i]) > 0) {
            qsort(st->tensor, st->n, sizeof *st->tensor, by_data);
            break;
        }
}

static int check_layout(const struct ep_st *st, struct ep_error *err)
{
    char shown[EP_ST_SHOWN];
    uint64_t end = 0;

    for (size_t i = 0; i < st->n; i++) {
        const struct ep_tensor *t = &st->tensor[i];

        if (t->begin == end && t->bytes <= st->data_bytes - end) {
            end += t->bytes;
            continue;
        }
        (void)ep_escape(shown, sizeof shown, t->name.ptr, t->name.len);
        if (t->begin == end)
            return ep_error_set(err, EP_ETRUNC,
                                "tensor \"%s\": ends at byte %" PRIu64
                                " of the data, the file at byte %" PRIu64,
                                shown, t->begin + t->bytes, st->data_bytes);
        return ep_error_set(err, EP_EFORMAT,
                            "tensor \"%s\": begins at byte %" PRIu64
                            " of the data, what is before it ends at byte "
                            "%" PRIu64 " (%s)",
                            shown, t->begin, end,
                            t->begin > end ? "a hole" : "they overlap");
    }
    if (end != st->data_bytes)
        return ep_error_set(err, EP_EFORMAT,
                            "the tensors end at byte %" PRIu64
                            " of the data, the file at byte %" PRIu64,
                            end, st->data_bytes);
    return 0;
}

int ep_st_check(struct ep_st *st, struct ep_error *err)
{
    int rc = check_names(st, err);

    if (rc == 0) {
        sort_by_data(st);
        rc = check_layout(st, err);
    }
    return rc;
}

/* ==== Metadata ==== */

struct keyed {
    struct ep_st_meta *m;
};

static int by_key(const void *a, const void *b)
{
    const struct keyed *s = a, *t = b;
    int order = ep_span_order(s->m->key, t->m->key);

    return order ? order : (s->m > t->m) - (s->m < t->m);
}

size_t ep_st_meta_unique(struct ep_st_meta *meta, size_t n, bool keep_last)
{
    struct keyed *sorted = ep_calloc(n, sizeof *sorted);
    bool *drop = ep_calloc(n, sizeof *drop);
    size_t left = 0;

    for (size_t i = 0; i < n; i++)
        sorted[i].m = &meta[i];
    qsort(sorted, n, sizeof *sorted, by_key);
    for (size_t i = 1; i < n; i++)
        if (ep_span_order(sorted[i - 1].m->key, sorted[i].m->key) == 0)
            drop[sorted[keep_last ? i - 1 : i].m - meta] = true;
    for (size_t i = 0; i < n; i++)
        if (!drop[i])
            meta[left++] = meta[i];
    free(drop);
    free(sorted);
    return left;
}
