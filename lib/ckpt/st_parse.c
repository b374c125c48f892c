/* SPDX-License-Identifier: Apache-2.0 */
/*
 * st_parse.c - from the JSON of a safetensors header to tensors; what concerns
 * a single entry is checked here, the rest in st_check.c.
 *
 * The rules are those of the reference implementation, safetensors 0.8.0
 * (safetensors/src/tensor.rs), found by trial where its README is silent;
 * tests/safetensors.bats holds the two against each other. Keys are compared
 * decoded ("\u0061" is "a"). It differs in what follows, on purpose:
 *   - A name that stands twice is refused; there, the last one wins.
 *   - An entry that is an array, ["F32", [1], [0, 4]], and a dtype that is an
 *     object, {"F32": null}, are refused; there, the deserializer takes them.
 *   - More than EP_ST_RANK_MAX dimensions, and values of unknown keys that
 *     are nested deeper than base/json.h goes, are refused.
 *   - A number beyond a double (1e999) under an unknown key is passed over.
 */
#include "config.h"

#include "ckpt/safetensors.h"

#include "base/json.h"
#include "base/mem.h"
#include "ckpt/arena.h"
#include "ckpt/st_impl.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct parser {
    struct ep_json j;
    struct ep_error json_err;
    struct ep_st *st;
    struct ep_arena names;
    size_t cap, meta_cap;
    bool metadata_seen;
    struct ep_error *err;
};

/* The fields of an entry that were there. */
enum { DTYPE = 1, SHAPE = 2, OFFSETS = 4 };

static const char *const field_name[] = {
    [DTYPE] = "dtype", [SHAPE] = "shape", [OFFSETS] = "data_offsets"};

/* ==== Messages ==== */

/* What the scanner found. The text is all there: it is wrong, not cut. */
static int json_failed(struct parser *p, int code)
{
    if (code == EP_ETRUNC)
        code = EP_EFORMAT;
    return ep_error_set(p->err, code, "header, %s", p->json_err.msg);
}

/* Where in the header the scanner is, which is at the end of a value. */
static size_t offset(const struct parser *p)
{
    return ep_json_offset(&p->j);
}

static int header_failed(struct parser *p, const char *what)
{
    return ep_error_set(p->err, EP_EFORMAT, "header, byte %zu: %s", offset(p),
                        what);
}

static int EP_PRINTF(4, 5)
    tensor_failed(struct parser *p, const struct ep_tensor *t, int code,
                  const char *fmt, ...)
{
    char shown[EP_ST_SHOWN], what[128];
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(what, sizeof what, fmt, ap);
    va_end(ap);
    return ep_error_set(
        p->err, code, "tensor \"%s\": header byte %zu: %s",
        ep_escape(shown, sizeof shown, t->name.ptr, t->name.len), offset(p),
        what);
}

/* ==== Entries ==== */

/* A natural number in plain digits. EP_EFORMAT, or EP_ERANGE from 2^64 on. */
static int natural(const struct ep_json_value *v, uint64_t *out)
{
    uint64_t n = 0;

    if (v->kind != EP_JSON_NUMBER || !v->integer || v->dec.neg)
        return EP_EFORMAT;
    for (size_t i = 0; i < v->raw.len; i++)
        if (__builtin_mul_overflow(n, 10, &n) ||
            __builtin_add_overflow(n, (uint64_t)(v->raw.ptr[i] - '0'), &n))
            return EP_ERANGE;
    *out = n;
    return 0;
}

static int take_dtype(struct parser *p, struct ep_tensor *t,
                      const struct ep_json_value *v)
{
    char shown[40];
    struct ep_buf text;
    int found, rc = 0;

    if (v->kind != EP_JSON_STRING)
        return tensor_failed(p, t, EP_EFORMAT, "dtype is not a string");
    ep_buf_init(&text);
    ep_json_unescape(v, &text);
    found = ep_dtype_find((struct ep_span){text.ptr, text.len});
    if (found >= 0)
        t->dtype = (enum ep_dtype)found;
    else
        rc = tensor_failed(p, t, EP_EFORMAT, "unknown dtype \"%s\"",
                           ep_escape(shown, sizeof shown, text.ptr, text.len));
    ep_buf_free(&text);
    return rc;
}

/*
 * The numbers of an array, at most cap of them.
 *
 * out     [cap] written; *n becomes their number
 */
static int take_naturals(struct parser *p, struct ep_tensor *t,
                         const struct ep_json_value *array, int field,
                         uint64_t *out, size_t cap, size_t *n)
{
    struct ep_json_value v;
    int r;

    *n = 0;
    if (array->kind != EP_JSON_ARRAY)
        return tensor_failed(p, t, EP_EFORMAT, "%s is not an array",
                             field_name[field]);
    ep_json_enter(&p->j);
    while ((r = ep_json_next(&p->j, NULL, &v)) > 0) {
        if (*n == cap)
            return tensor_failed(p, t, field == SHAPE ? EP_ELIMIT : EP_EFORMAT,
                                 "%s has more than %zu elements",
                                 field_name[field], cap);
        r = natural(&v, &out[*n]);
        if (r < 0)
            return tensor_failed(p, t, r, "%s: %s", field_name[field],
                                 r == EP_ERANGE ? "a number beyond 64 bits"
                                                : "not a natural number");
        ++*n;
    }
    return r < 0 ? json_failed(p, r) : 0;
}

static int take_shape(struct parser *p, struct ep_tensor *t,
                      const struct ep_json_value *v)
{
    uint64_t dim[EP_ST_RANK_MAX], *shape;
    size_t rank;
    int rc = take_naturals(p, t, v, SHAPE, dim, EP_ST_RANK_MAX, &rank);

    if (rc < 0)
        return rc;
    t->rank = (unsigned)rank;
    shape = ep_arena_alloc(&p->names, rank * sizeof *dim, sizeof *dim);
    if (rank)
        memcpy(shape, dim, rank * sizeof *dim);
    t->shape = shape;
    return 0;
}

static int take_offsets(struct parser *p, struct ep_tensor *t,
                        const struct ep_json_value *v)
{
    uint64_t at[2];
    size_t n;
    int rc = take_naturals(p, t, v, OFFSETS, at, 2, &n);

    if (rc < 0)
        return rc;
    if (n != 2)
        return tensor_failed(p, t, EP_EFORMAT,
                             "data_offsets has fewer than 2 elements");
    if (at[1] < at[0])
        return tensor_failed(p, t, EP_EFORMAT,
                             "data_offsets: the end is before the beginning");
    t->begin = at[0];
    t->bytes = at[1] - at[0];
    return 0;
}

static int take_field(struct parser *p, struct ep_tensor *t, int field,
                      const struct ep_json_value *v)
{
    switch (field) {
    case DTYPE:
        return take_dtype(p, t, v);
    case SHAPE:
        return take_shape(p, t, v);
    case OFFSETS:
        return take_offsets(p, t, v);
    default:
        return 0;
    }
}

/* The product goes from left to right, as there: [2^63, 2, 0] overflows. */
static int check_size(struct parser *p, struct ep_tensor *t)
{
    unsigned width = ep_dtype_bits(t->dtype);
    uint64_t bits;

    t->count = 1;
    for (unsigned i = 0; i < t->rank; i++)
        if (__builtin_mul_overflow(t->count, t->shape[i], &t->count))
            return tensor_failed(p, t, EP_ERANGE,
                                 "the elements of its shape are beyond 64 "
                                 "bits");
    if (__builtin_mul_overflow(t->count, width, &bits))
        return tensor_failed(p, t, EP_ERANGE,
                             "the size of its shape is beyond 64 bits");
    if (bits % 8 != 0)
        return tensor_failed(p, t, EP_EFORMAT,
                             "its elements do not fill whole bytes");
    if (bits / 8 != t->bytes)
        return tensor_failed(p, t, EP_EFORMAT,
                             "shape and dtype make %" PRIu64
                             " bytes, data_offsets %" PRIu64,
                             bits / 8, t->bytes);
    return 0;
}

static int take_tensor(struct parser *p, const struct ep_json_value *name,
                       const struct ep_json_value *entry)
{
    struct ep_tensor t = {.name = ep_arena_text(&p->names, name)};
    struct ep_json_value key, v;
    int seen = 0, rc;

    if (entry->kind != EP_JSON_OBJECT)
        return tensor_failed(p, &t, EP_EFORMAT, "its entry is not an object");
    ep_json_enter(&p->j);
    while ((rc = ep_json_next(&p->j, &key, &v)) > 0) {
        int field = OFFSETS;

        while (field && !ep_arena_text_is(&key, field_name[field]))
            field >>= 1;
        if (seen & field)
            return tensor_failed(p, &t, EP_EFORMAT, "%s stands twice",
                                 field_name[field]);
        seen |= field;
        rc = take_field(p, &t, field, &v);
        if (rc < 0)
            return rc;
    }
    if (rc < 0)
        return json_failed(p, rc);
    for (int field = DTYPE; field <= OFFSETS; field <<= 1)
        if (!(seen & field))
            return tensor_failed(p, &t, EP_EFORMAT, "%s is missing",
                                 field_name[field]);
    rc = check_size(p, &t);
    if (rc < 0)
        return rc;
    p->st->tensor =
        ep_grow(p->st->tensor, &p->cap, p->st->n + 1, sizeof *p->st->tensor);
    p->st->tensor[p->st->n++] = t;
    return 0;
}

static int take_metadata(struct parser *p, const struct ep_json_value *object)
{
    struct ep_st *st = p->st;
    struct ep_json_value key, v;
    char shown[EP_ST_SHOWN], what[128];
    int rc;

    if (p->metadata_seen)
        return header_failed(p, "__metadata__ stands twice");
    p->metadata_seen = true;
    if (object->kind == EP_JSON_NULL)
        return 0;
    if (object->kind != EP_JSON_OBJECT)
        return header_failed(p, "__metadata__ is not an object");
    ep_json_enter(&p->j);
    while ((rc = ep_json_next(&p->j, &key, &v)) > 0) {
        struct ep_span name = ep_arena_text(&p->names, &key);

        if (v.kind != EP_JSON_STRING) {
            (void)snprintf(what, sizeof what, "metadata \"%s\" is not a string",
                           ep_escape(shown, sizeof shown, name.ptr, name.len));
            return header_failed(p, what);
        }
        st->meta =
            ep_grow(st->meta, &p->meta_cap, st->nmeta + 1, sizeof *st->meta);
        st->meta[st->nmeta++] =
            (struct ep_st_meta){name, ep_arena_text(&p->names, &v)};
    }
    if (rc < 0)
        return json_failed(p, rc);
    st->nmeta = ep_st_meta_unique(st->meta, st->nmeta, true);
    return 0;
}

/* ==== The whole ==== */

static int take_header(struct parser *p, const char *text, size_t len)
{
    struct ep_json_value key, v;
    int rc = ep_json_begin(&p->j, text, len, &v, &p->json_err);

    if (rc < 0)
        return json_failed(p, rc);
    if (v.kind != EP_JSON_OBJECT)
        return header_failed(p, "not an object");
    ep_json_enter(&p->j);
    while ((rc = ep_json_next(&p->j, &key, &v)) > 0) {
        rc = ep_arena_text_is(&key, "__metadata__") ? take_metadata(p, &v)
                                                    : take_tensor(p, &key, &v);
        if (rc < 0)
            return rc;
    }
    if (rc == 0)
        rc = ep_json_end(&p->j);
    return rc < 0 ? json_failed(p, rc) : 0;
}

/* N; at least 8 bytes are there. */
static uint64_t header_length(const unsigned char *file)
{
    uint64_t n = 0;

    for (int i = 8; i-- > 0;)
        n = n << 8 | file[i];
    return n;
}

bool ep_st_plausible(const void *file, size_t len, uint64_t file_bytes)
{
    const unsigned char *b = file;
    uint64_t n;

    if (len < 9)
        return false;
    n = header_length(b);
    return n > 0 && n <= EP_ST_HEADER_MAX && n <= file_bytes - 8 && b[8] &&
           strchr("{ \t\n\r", b[8]);
}

static int check_length(const unsigned char *file, size_t len,
                        uint64_t file_bytes, struct ep_error *err)
{
    uint64_t n;

    if (len > file_bytes)
        len = (size_t)file_bytes;
    if (len < 8)
        return ep_error_set(err, EP_ETRUNC,
                            "too short for safetensors (%zu of 8 bytes)", len);
    n = header_length(file);
    if (n > EP_ST_HEADER_MAX)
        return ep_error_set(err, EP_ELIMIT,
                            "header length %" PRIu64 ", more than the %" PRIu64
                            " of safetensors: another format?",
                            n, EP_ST_HEADER_MAX);
    if (n == 0)
        return ep_error_set(err, EP_EFORMAT, "header length 0");
    if (n > len - 8)
        return ep_error_set(err, EP_ETRUNC,
                            "header length %" PRIu64
                            ", of which %zu bytes are there",
                            n, len - 8);
    return 0;
}

int ep_st_parse(struct ep_st *st, const void *file, size_t len,
                uint64_t file_bytes, struct ep_error *err)
{
    struct parser p = {.st = st, .err = err};
    const char *bytes = file;
    struct ep_arena *names;
    uint64_t n;
    int rc;

    memset(st, 0, sizeof *st);
    rc = check_length(file, len, file_bytes, err);
    if (rc < 0)
        return rc;
    n = header_length(file);
    st->header_bytes = 8 + n;
    st->data_bytes = file_bytes - st->header_bytes;
    rc = take_header(&p, bytes + 8, (size_t)n);
    if (rc == 0)
        rc = ep_st_check(st, err);
    names = ep_calloc(1, sizeof *names);
    *names = p.names;
    st->memory = names;
    if (rc < 0) {
        ep_st_free(st);
        return rc;
    }
    if (len == file_bytes)
        for (size_t i = 0; i < st->n; i++)
            st->tensor[i].data = bytes + st->header_bytes + st->tensor[i].begin;
    return 0;
}

void ep_st_free(struct ep_st *st)
{
    if (st->memory)
        ep_arena_free(st->memory);
    free(st->memory);
    free(st->tensor);
    free(st->meta);
    memset(st, 0, sizeof *st);
}

struct ep_span ep_st_meta_find(const struct ep_st *st, const char *key)
{
    for (size_t i = 0; i < st->nmeta; i++)
        if (ep_span_eq(st->meta[i].key, key))
            return st->meta[i].value;
    return (struct ep_span){NULL, 0};
}
