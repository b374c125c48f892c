/* SPDX-License-Identifier: Apache-2.0 */
/* record.c - see record.h. */
#include "config.h"

#include "record/record.h"

#include "base/json.h"
#include "base/mem.h"
#include "record/record_impl.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* As ep_json_head: the first 8 bytes, the first byte lowest. */
static uint64_t head_of(const char *s, size_t n)
{
    uint64_t w = 0;

    for (size_t i = 0; i < n && i < 8; i++)
        w |= (uint64_t)(unsigned char)s[i] << 8 * i;
    return w;
}

struct ep_record_parser *ep_record_parser_new(void)
{
    struct ep_record_parser *p = ep_calloc(1, sizeof *p);

    ep_buf_init(&p->text);
    for (size_t i = 0; i < EP_RECORD_INDEX; i++)
        p->index[i].key = EP_RECORD_NONE;
    for (int k = 0; k < EP_KEYS; k++) {
        const char *name = ep_key_table[k].name;
        size_t len = strlen(name);
        uint64_t head = head_of(name, len);
        size_t at = ep_record_hash(head, len);

        while (p->index[at].key != EP_RECORD_NONE)
            at = (at + 1) % EP_RECORD_INDEX;
        p->index[at] = (struct ep_record_entry){head, (unsigned char)len,
                                                (unsigned char)k};
    }
    ep_record_fast_init(p);
    return p;
}

void ep_record_parser_free(struct ep_record_parser *p)
{
    if (!p)
        return;
    ep_buf_free(&p->text);
    free(p);
}

/* The key of that name, or EP_RECORD_NONE. */
static int find_key(const struct ep_record_parser *p, const struct ep_json *j,
                    struct ep_span name)
{
    uint64_t head = ep_json_head(j, name);

    for (size_t at = ep_record_hash(head, name.len);
         p->index[at].key != EP_RECORD_NONE; at = (at + 1) % EP_RECORD_INDEX) {
        const struct ep_record_entry *e = &p->index[at];

        if (e->head == head && e->len == name.len &&
            (name.len <= 8 || memcmp(ep_key_table[e->key].name + 8,
                                     name.ptr + 8, name.len - 8) == 0))
            return e->key;
    }
    return EP_RECORD_NONE;
}

/* Decode an escaped string into p->text, which never moves within a line. */
static struct ep_span decode(struct ep_record_parser *p,
                             const struct ep_json_value *v, size_t line_len)
{
    size_t at;

    if (!p->text.len)
        (void)ep_buf_reserve(&p->text, line_len + 1);
    at = p->text.len;
    ep_json_unescape(v, &p->text);
    return (struct ep_span){p->text.ptr + at, p->text.len - at};
}

/* The key of a name that is written with escapes. */
static int find_escaped(struct ep_record_parser *p,
                        const struct ep_json_value *key, size_t line_len)
{
    struct ep_span name = decode(p, key, line_len);

    for (int k = 0; k < EP_KEYS; k++)
        if (ep_span_eq(name, ep_key_table[k].name))
            return k;
    return EP_RECORD_NONE;
}

/* Put one value in its slot; whether it fits the type is checked later. */
static int fill(struct ep_record_parser *p, struct ep_record *r, int k,
                struct ep_json *j, const struct ep_json_value *v)
{
    ep_record_mark(r, (enum ep_key)k);
    switch (v->kind) {
    case EP_JSON_STRING:
        p->slot[k] = IS_STRING;
        r->v[k].str =
            v->escaped ? decode(p, v, (size_t)(j->end - j->start)) : v->raw;
        if (v->escaped && memchr(r->v[k].str.ptr, '\0', r->v[k].str.len))
            return ep_error_set(j->err, EP_EFORMAT, "NUL in %s",
                                ep_key_table[k].name);
        return 0;
    case EP_JSON_NUMBER:
        p->slot[k] = IS_NUMBER;
        if (ep_json_double(v, &r->v[k].num) < 0)
            return ep_error_set(j->err, EP_ERANGE, "%s is not a finite number",
                                ep_key_table[k].name);
        return 0;
    case EP_JSON_NULL:
        ep_record_unmark(r, (enum ep_key)k);
        return 0;
    case EP_JSON_ARRAY:
        p->slot[k] = IS_ARRAY;
        return ep_json_skip(j, &r->v[k].str);
    default:
        p->slot[k] = IS_OTHER;
        return 0;
    }
}

static enum ep_type find_type(struct ep_span name)
{
    for (int t = 0; t < EP_TYPES; t++)
        if (ep_span_eq(name, ep_type_table[t].name))
            return (enum ep_type)t;
    return EP_OTHER;
}

static int wrong_kind(int k, enum ep_value want, struct ep_error *err)
{
    static const char *const names[] = {
        [EP_V_STRING] = "a string",
        [EP_V_NUMBER] = "a number",
        [EP_V_INTEGER] = "a whole number",
        [EP_V_STRINGS] = "an array of strings",
    };

    return ep_error_set(err, EP_EFORMAT, "%s is not %s", ep_key_table[k].name,
                        names[want]);
}

static int check_strings(struct ep_span text, struct ep_error *err)
{
    struct ep_json j;
    struct ep_json_value v;
    int rc = ep_json_begin(&j, text.ptr, text.len, &v, err);

    if (rc < 0)
        return rc;
    ep_json_enter(&j);
    while ((rc = ep_json_next(&j, NULL, &v)) > 0)
        if (v.kind != EP_JSON_STRING)
            return ep_error_set(err, EP_EFORMAT, "not a string");
    return rc;
}

static int check_key(const struct ep_record_parser *p,
                     const struct ep_record *r, int k, struct ep_error *err)
{
    const struct ep_key_info *info = &ep_key_table[k];
    enum ep_value want = ep_key_value(r->type, (enum ep_key)k);
    double v = r->v[k].num, min, max;

    if (want == EP_V_STRING)
        return p->slot[k] == IS_STRING ? 0 : wrong_kind(k, want, err);
    if (want == EP_V_STRINGS)
        return p->slot[k] == IS_ARRAY && check_strings(r->v[k].str, err) == 0
                   ? 0
                   : wrong_kind(k, want, err);
    if (p->slot[k] != IS_NUMBER)
        return wrong_kind(k, want, err);
    if (want == EP_V_INTEGER) {
        if (fabs(v) > EP_RECORD_INT_MAX)
            return ep_error_set(err, EP_ERANGE, "%s is beyond 2^53",
                                info->name);
        if (v != floor(v))
            return wrong_kind(k, want, err);
    }
    ep_key_range(r->type, (enum ep_key)k, &min, &max);
    if (v < min || v > max)
        return ep_error_set(err, EP_ERANGE, "%s is %.6g, not in %.6g..%.6g",
                            info->name, v, min, max);
    return 0;
}

/* Check ranges and kinds of all keys, and that none is missing. */
static int check(const struct ep_record_parser *p, const struct ep_record *r,
                 struct ep_error *err)
{
    const struct ep_type_info *t = &ep_type_table[r->type];

    for (int half = 0; half < 2; half++) {
        uint64_t bits = r->have[half];

        for (; bits; bits &= bits - 1) {
            int k = half * 64 + __builtin_ctzll(bits);
            int rc = check_key(p, r, k, err);

            if (rc < 0)
                return rc;
        }
    }
    for (int i = 0; t->need[i] != EP_K_TYPE; i++)
        if (!ep_record_has(r, t->need[i]))
            return ep_error_set(err, EP_EFORMAT, "%s record without %s",
                                t->name, ep_key_table[t->need[i]].name);
    return 0;
}

int ep_record_parse(struct ep_record_parser *p, const char *line, size_t len,
                    struct ep_record *r, struct ep_error *err)
{
    return ep_record_parse_padded(p, line, len, 0, r, err);
}

int ep_record_parse_padded(struct ep_record_parser *p, const char *line,
                           size_t len, size_t pad, struct ep_record *r,
                           struct ep_error *err)
{
    struct ep_json_value key, v;
    struct ep_json j;
    int rc;

    if (pad >= EP_RECORD_FAST_PAD && ep_record_fast(p, line, len, r))
        return 0;
    rc = ep_json_begin_padded(&j, line, len, pad, &v, err);
    r->have[0] = r->have[1] = 0;
    ep_buf_reset(&p->text);
    if (rc < 0)
        return rc;
    if (v.kind != EP_JSON_OBJECT)
        return ep_error_set(err, EP_EFORMAT, "not a JSON object");
    ep_json_enter(&j);
    while ((rc = ep_json_next(&j, &key, &v)) > 0) {
        int k =
            key.escaped ? find_escaped(p, &key, len) : find_key(p, &j, key.raw);

        if (k == EP_RECORD_NONE)
            continue;
        rc = fill(p, r, k, &j, &v);
        if (rc < 0)
            return rc;
    }
    if (rc == 0)
        rc = ep_json_end(&j);
    if (rc < 0)
        return rc;
    if (!ep_record_has(r, EP_K_TYPE) || p->slot[EP_K_TYPE] != IS_STRING)
        return ep_error_set(err, EP_EFORMAT, "no type");
    r->type = find_type(r->v[EP_K_TYPE].str);
    return r->type == EP_OTHER ? 0 : check(p, r, err);
}

void ep_record_begin(struct ep_record *r, enum ep_type type)
{
    r->type = type;
    r->have[0] = r->have[1] = 0;
    ep_record_set_str(r, EP_K_TYPE, ep_type_table[type].name);
}
