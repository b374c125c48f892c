/* SPDX-License-Identifier: Apache-2.0 */
/* env_field.c - see env_field.h. */
#include "config.h"

#include "lsgd/env_field.h"

/* A character of UTF-8 begins at each byte that is not 10xxxxxx. */
static bool begins_character(char c)
{
    return ((unsigned char)c & 0xc0) != 0x80;
}

int ep_fields_place(const struct ep_fields *p, const char *at, int code)
{
    size_t line = 1, column = 1;

    for (const char *c = p->text; c < at; c++) {
        column += begins_character(*c);
        if (*c == '\n') {
            line++;
            column = 1;
        }
    }
    (void)ep_error_prefix(p->err, "line %zu, column %zu (byte %zu)", line,
                          column, (size_t)(at - p->text));
    return code;
}

int ep_fields_fail(const struct ep_fields *p, const char *at, int code,
                   const char *name, const char *reason)
{
    (void)ep_error_set(p->err, code, "%s: %s", name, reason);
    return ep_fields_place(p, at, code);
}

int ep_part_whole(struct ep_json *j, struct ep_part *part)
{
    if (part->v.kind == EP_JSON_ARRAY || part->v.kind == EP_JSON_OBJECT)
        return ep_json_skip(j, &part->whole);
    part->whole = part->v.raw;
    return 0;
}

static int begin(const struct ep_fields *p, const struct ep_part *part,
                 const char *name, enum ep_json_kind kind, struct ep_json *j)
{
    struct ep_json_value root;
    int rc;

    if (part->v.kind != kind)
        return ep_fields_fail(p, part->v.raw.ptr, EP_EFORMAT, name,
                              kind == EP_JSON_OBJECT ? "not an object"
                                                     : "not an array");
    rc = ep_json_begin(j, part->whole.ptr, part->whole.len, &root, p->err);
    if (rc == 0)
        ep_json_enter(j);
    return rc;
}

static int refuse_key(const struct ep_fields *p,
                      const struct ep_json_value *key, const char *what,
                      const char *name)
{
    char shown[64];

    (void)ep_error_set(
        p->err, EP_EFORMAT, "%s: %s '%s'", name, what,
        ep_escape(shown, sizeof shown, key->raw.ptr, key->raw.len));
    return ep_fields_place(p, key->raw.ptr, EP_EFORMAT);
}

static int check_missing(const struct ep_fields *p, const char *at,
                         const char *name, const struct ep_field *f, size_t n)
{
    struct ep_buf list;
    int rc = 0;

    ep_buf_init(&list);
    for (size_t i = 0; i < n; i++)
        if (!f[i].have && !f[i].optional)
            ep_buf_addf(&list, "%s%s", list.len ? ", " : "", f[i].name);
    if (list.len) {
        (void)ep_error_set(p->err, EP_EFORMAT, "%s: missing: %s", name,
                           list.ptr);
        rc = ep_fields_place(p, at, EP_EFORMAT);
    }
    ep_buf_free(&list);
    return rc;
}

int ep_fields_take(const struct ep_fields *p, const struct ep_part *part,
                   const char *name, struct ep_field *f, size_t n)
{
    struct ep_json_value key;
    struct ep_part v;
    struct ep_json j;
    int rc = begin(p, part, name, EP_JSON_OBJECT, &j);

    while (rc == 0 && (rc = ep_json_next(&j, &key, &v.v)) > 0) {
        size_t i = 0;

        while (i < n && (key.escaped || !ep_span_eq(key.raw, f[i].name)))
            i++;
        if (i == n)
            return refuse_key(p, &key, "unknown key", name);
        if (f[i].have)
            return refuse_key(p, &key, "duplicate key", name);
        rc = ep_part_whole(&j, &v);
        f[i].have = true;
        f[i].part = v;
    }
    return rc < 0 ? rc : check_missing(p, part->v.raw.ptr, name, f, n);
}

int ep_array_begin(const struct ep_fields *p, const struct ep_part *part,
                   const char *name, struct ep_json *j)
{
    return begin(p, part, name, EP_JSON_ARRAY, j);
}

int ep_array_next(struct ep_json *j, struct ep_part *part)
{
    int rc = ep_json_next(j, NULL, &part->v);

    if (rc > 0 && ep_part_whole(j, part) < 0)
        return EP_EFORMAT;
    return rc;
}

int ep_part_number(const struct ep_fields *p, const struct ep_part *part,
                   const char *name, enum ep_least least, double hi,
                   double *out)
{
    const char *at = part->v.raw.ptr;
    double x;

    if (part->v.kind != EP_JSON_NUMBER)
        return ep_fields_fail(p, at, EP_EFORMAT, name, "not a number");
    if (ep_json_double(&part->v, &x) < 0 || x > hi || x < 0 ||
        (least == EP_ABOVE_ZERO && x <= 0)) {
        (void)ep_error_set(p->err, EP_ERANGE, "%s: not %s and at most %g", name,
                           least == EP_ABOVE_ZERO ? "above 0" : "at least 0",
                           hi);
        return ep_fields_place(p, at, EP_ERANGE);
    }
    *out = x;
    return 0;
}

int ep_field_number(const struct ep_fields *p, const struct ep_field *f,
                    enum ep_least least, double hi, double *out)
{
    return f->have ? ep_part_number(p, &f->part, f->name, least, hi, out) : 0;
}

int ep_field_integer(const struct ep_fields *p, const struct ep_field *f,
                     int64_t lo, int64_t hi, uint64_t *out)
{
    const char *at = f->part.v.raw.ptr;
    int64_t x;
    int rc;

    if (!f->have)
        return 0;
    rc = ep_json_int(&f->part.v, &x);
    if (rc == EP_EFORMAT)
        return ep_fields_fail(p, at, EP_EFORMAT, f->name, "not a whole number");
    if (rc < 0 || x < lo || x > hi) {
        (void)ep_error_set(p->err, EP_ERANGE, "%s: not in %lld..%lld", f->name,
                           (long long)lo, (long long)hi);
        return ep_fields_place(p, at, EP_ERANGE);
    }
    *out = (uint64_t)x;
    return 0;
}

int ep_field_boolean(const struct ep_fields *p, const struct ep_field *f,
                     bool *out)
{
    enum ep_json_kind kind = f->part.v.kind;

    if (!f->have)
        return 0;
    if (kind != EP_JSON_TRUE && kind != EP_JSON_FALSE)
        return ep_fields_fail(p, f->part.v.raw.ptr, EP_EFORMAT, f->name,
                              "not true or false");
    *out = kind == EP_JSON_TRUE;
    return 0;
}
