/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ckpt_index.c - see ckpt_index.h. Files are numbered, and equal names found,
 * by sorting: no choice of names makes it slow.
 */
#include "config.h"

#include "ckpt/ckpt_index.h"

#include "base/mem.h"
#include "ckpt/safetensors.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* A member of weight_map. */
struct pair {
    struct ep_span name, file;
};

struct pairs {
    struct pair *v;
    size_t n, cap;
};

static bool is_file_name(struct ep_span s)
{
    return s.len > 0 && !memchr(s.ptr, '/', s.len) &&
           !memchr(s.ptr, '\0', s.len) && !ep_span_eq(s, ".") &&
           !ep_span_eq(s, "..");
}

/* The text of v, which is that of the entry before as a rule. */
static struct ep_span file_text(struct ep_arena *a, const struct pairs *pairs,
                                const struct ep_json_value *v)
{
    if (pairs->n && !v->escaped) {
        struct ep_span last = pairs->v[pairs->n - 1].file;

        if (ep_span_order(last, v->raw) == 0)
            return last;
    }
    return ep_arena_text(a, v);
}

static int pair_failed(const struct ep_json *j, const struct pair *p,
                       struct ep_error *err)
{
    char name[80], file[80];

    (void)ep_escape(name, sizeof name, p->name.ptr, p->name.len);
    if (!p->file.ptr)
        return ep_error_set(
            err, EP_EFORMAT,
            "byte %zu: the file of tensor \"%s\" is not a string",
            ep_json_offset(j), name);
    return ep_error_set(err, EP_EFORMAT,
                        "byte %zu: tensor \"%s\": \"%s\" is no file name",
                        ep_json_offset(j), name,
                        ep_escape(file, sizeof file, p->file.ptr, p->file.len));
}

static int take_map(struct ep_json *j, struct ep_arena *a, struct pairs *pairs,
                    struct ep_error *err)
{
    struct ep_json_value key, v;
    int rc;

    ep_json_enter(j);
    while ((rc = ep_json_next(j, &key, &v)) > 0) {
        struct pair p = {ep_arena_text(a, &key), {NULL, 0}};

        if (v.kind == EP_JSON_STRING)
            p.file = file_text(a, pairs, &v);
        if (!p.file.ptr || !is_file_name(p.file))
            return pair_failed(j, &p, err);
        pairs->v =
            ep_grow(pairs->v, &pairs->cap, pairs->n + 1, sizeof *pairs->v);
        pairs->v[pairs->n++] = p;
    }
    return rc;
}

static int take_text(const char *text, size_t len, struct ep_arena *a,
                     struct pairs *pairs, struct ep_error *err)
{
    struct ep_json_value key, v;
    struct ep_json j;
    bool seen = false;
    int rc = ep_json_begin(&j, text, len, &v, err);

    if (rc < 0)
        return rc;
    if (v.kind != EP_JSON_OBJECT)
        return ep_error_set(err, EP_EFORMAT, "byte %zu: not an object",
                            ep_json_offset(&j));
    ep_json_enter(&j);
    while ((rc = ep_json_next(&j, &key, &v)) > 0) {
        if (!ep_arena_text_is(&key, "weight_map"))
            continue;
        if (seen || v.kind != EP_JSON_OBJECT)
            return ep_error_set(err, EP_EFORMAT, "byte %zu: weight_map %s",
                                ep_json_offset(&j),
                                seen ? "stands twice" : "is not an object");
        seen = true;
        rc = take_map(&j, a, pairs, err);
        if (rc < 0)
            return rc;
    }
    if (rc == 0)
        rc = ep_json_end(&j);
    if (rc == 0 && !seen)
        rc = ep_error_set(err, EP_EFORMAT, "no weight_map: not an index");
    return rc;
}

static int by_file(const void *a, const void *b)
{
    const struct pair *s = a, *t = b;

    return ep_span_order(s->file, t->file);
}

static int by_name(const void *a, const void *b)
{
    const struct ep_ckpt_place *s = a, *t = b;

    return ep_span_order(s->name, t->name);
}

/* From pairs to the numbered files and the sorted names. */
static int number(struct ep_ckpt_index *ix, struct pairs *pairs,
                  struct ep_error *err)
{
    char shown[80];
    size_t cap = 0;

    if (pairs->n)
        qsort(pairs->v, pairs->n, sizeof *pairs->v, by_file);
    ix->place = ep_calloc(pairs->n, sizeof *ix->place);
    ix->n = pairs->n;
    for (size_t i = 0; i < ix->n; i++) {
        const struct pair *p = &pairs->v[i];

        if (i == 0 || by_file(p - 1, p) != 0) {
            ix->file =
                ep_grow(ix->file, &cap, ix->nfiles + 1, sizeof *ix->file);
            ix->file[ix->nfiles++] = p->file;
        }
        ix->place[i] = (struct ep_ckpt_place){p->name, ix->nfiles - 1};
    }
    qsort(ix->place, ix->n, sizeof *ix->place, by_name);
    for (size_t i = 1; i < ix->n; i++)
        if (by_name(&ix->place[i - 1], &ix->place[i]) == 0)
            return ep_error_set(
                err, EP_EFORMAT, "tensor \"%s\" stands twice in weight_map",
                ep_escape(shown, sizeof shown, ix->place[i].name.ptr,
                          ix->place[i].name.len));
    return 0;
}

int ep_ckpt_index_parse(struct ep_ckpt_index *ix, const char *text, size_t len,
                        struct ep_error *err)
{
    struct pairs pairs = {NULL, 0, 0};
    int rc;

    memset(ix, 0, sizeof *ix);
    if (len > EP_ST_HEADER_MAX)
        return ep_error_set(err, EP_ELIMIT,
                            "an index of %zu bytes, more than %" PRIu64, len,
                            EP_ST_HEADER_MAX);
    rc = take_text(text, len, &ix->memory, &pairs, err);
    if (rc == 0)
        rc = number(ix, &pairs, err);
    free(pairs.v);
    if (rc < 0)
        ep_ckpt_index_free(ix);
    return rc;
}

void ep_ckpt_index_free(struct ep_ckpt_index *ix)
{
    free(ix->place);
    free(ix->file);
    ep_arena_free(&ix->memory);
    memset(ix, 0, sizeof *ix);
}

const struct ep_ckpt_place *ep_ckpt_index_find(const struct ep_ckpt_index *ix,
                                               struct ep_span name)
{
    struct ep_ckpt_place want = {.name = name};

    return ix->n ? bsearch(&want, ix->place, ix->n, sizeof *ix->place, by_name)
                 : NULL;
}
