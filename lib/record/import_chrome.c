/* SPDX-License-Identifier: Apache-2.0 */
/*
 * import_chrome.c - see import_chrome.h: events, and values out of them.
 *
 * The members of an event that every format needs are collected here, in
 * whatever order they come; the format takes the members of args. An event is
 * left as soon as the format can tell that it is of no use, and the rest of it
 * is passed over by its brackets: most events of a profile are operators.
 */
#include "config.h"

#include "record/import_chrome.h"

#include "base/fp.h"

#include <inttypes.h>
#include <string.h>

static long read_source(void *ctx, void *dst, size_t cap, struct ep_error *err)
{
    struct ep_chrome *c = ctx;
    long n = ep_source_read(c->source, dst, cap, err);

    c->source->over = false; /* there are elements left in the window */
    return n;
}

void ep_chrome_init(struct ep_chrome *c, const struct ep_chrome_format *format,
                    void *self)
{
    struct ep_json_stream_config config = {
        .array = "traceEvents",
        .open_end = true, /* "the ] at the end is optional" */
        .read = read_source,
        .ctx = c,
    };

    *c = (struct ep_chrome){.format = format, .self = self};
    c->stream = ep_json_stream_new(&config);
}

void ep_chrome_free(struct ep_chrome *c)
{
    ep_json_stream_free(c->stream);
}

/* Keys of up to 8 bytes as ep_json_head gives them. */
#define HEAD2(a, b) ((uint64_t)(a) | (uint64_t)(b) << 8)
#define HEAD3(a, b, c) (HEAD2(a, b) | (uint64_t)(c) << 16)
#define HEAD4(a, b, c, d) (HEAD3(a, b, c) | (uint64_t)(d) << 24)

static struct ep_json_value *slot(struct ep_chrome_event *e,
                                  const struct ep_json *j, struct ep_span key)
{
    if (key.len > 4)
        return NULL;
    switch (ep_json_head(j, key)) {
    case HEAD2('p', 'h'):
        return &e->ph;
    case HEAD2('t', 's'):
        return &e->ts;
    case HEAD3('c', 'a', 't'):
        return &e->cat;
    case HEAD3('d', 'u', 'r'):
        return &e->dur;
    case HEAD3('p', 'i', 'd'):
        return &e->pid;
    case HEAD3('t', 'i', 'd'):
        return &e->tid;
    case HEAD4('n', 'a', 'm', 'e'):
        return &e->name;
    default:
        return NULL;
    }
}

static int take_args(struct ep_chrome *c, struct ep_json *j)
{
    struct ep_json_value key, v;
    int rc;

    ep_json_enter(j);
    while ((rc = ep_json_next(j, &key, &v)) > 0) {
        if (c->format->arg_slot) {
            struct ep_json_value *to = c->format->arg_slot(c->self, key.raw);

            if (to)
                *to = v;
            ep_json_shape_note(&c->shape, to, &v);
            continue;
        }
        rc = c->format->arg(c->self, j, &key, &v);
        if (rc < 0)
            return rc;
    }
    return rc;
}

/* 1: of use; 0: not; or an error. */
static int take_event(struct ep_chrome *c, struct ep_json *j,
                      const struct ep_json_value *root)
{
    struct ep_chrome_event *e = &c->event;
    struct ep_json_value key, v;
    int rc;

    c->fresh = c->fresh && ep_json_shape_match(&c->shape, j);
    if (c->fresh)
        return 1;
    ep_json_shape_begin(&c->shape);
    memset(e, 0, sizeof *e);
    c->format->begin(c->self);
    if (root->kind != EP_JSON_OBJECT)
        return ep_error_set(j->err, EP_EFORMAT, "event is not an object");
    ep_json_enter(j);
    while ((rc = ep_json_next(j, &key, &v)) > 0) {
        struct ep_json_value *to = slot(e, j, key.raw);

        if (to) {
            *to = v;
            if ((to == &e->name || to == &e->cat) && c->format->wanted &&
                !c->format->wanted(e))
                return 0;
        } else if (v.kind == EP_JSON_OBJECT && EP_CHROME_IS(&key, "args")) {
            rc = take_args(c, j);
            if (rc < 0)
                return rc;
            continue;
        }
        if (c->format->arg_slot)
            ep_json_shape_note(&c->shape, to, &v);
    }
    if (rc < 0)
        return rc;
    if (c->format->arg_slot)
        ep_json_shape_end(&c->shape, j);
    c->fresh = c->shape.n > 0;
    return 1;
}

/* A step through the text: 1 a record, 0 none yet, or an error. */
static int step(struct ep_chrome *c, int what, struct ep_json *j,
                const struct ep_json_value *key, const struct ep_json_value *v,
                struct ep_record *r, struct ep_error *err)
{
    int rc = 0, done;

    if (what == EP_JSON_STREAM_ELEMENT)
        rc = take_event(c, j, v);
    else if (c->format->member)
        rc = c->format->member(c->self, j, key, v);
    done = ep_json_stream_done(c->stream, j, rc, err);
    if (done)
        return done < 0 ? done : 0;
    if (what == EP_JSON_STREAM_ELEMENT && rc > 0)
        return c->format->event(c->self, &c->event, r, err);
    return 0;
}

/*
 * The text is over or has failed; *err says so if rc < 0. First what was held
 * is delivered.
 */
static int finish(struct ep_chrome *c, int rc, const struct ep_error *err)
{
    struct ep_source *s = c->source;

    c->drained = true;
    c->failed = rc;
    if (rc == EP_ETRUNC || rc == EP_EFORMAT)
        (void)ep_error_set(&c->late, rc, "cannot read %s: byte %" PRIu64 ": %s",
                           s->name, ep_json_stream_offset(c->stream), err->msg);
    else if (rc < 0)
        c->late = *err;
    return 0;
}

static int drain(struct ep_chrome *c, struct ep_record *r, struct ep_error *err)
{
    int rc = c->format->held(c->self, r, err);

    if (rc > 0)
        return rc;
    c->source->over = true;
    if (rc < 0)
        return rc;
    if (c->failed)
        *err = c->late;
    return c->failed;
}

int ep_chrome_next(struct ep_chrome *c, struct ep_source *s,
                   struct ep_record *r, struct ep_error *err)
{
    struct ep_json_value key, v;
    struct ep_error own;
    struct ep_json j;

    if (!err)
        err = &own;
    c->source = s;
    while (!c->drained) {
        int rc = ep_json_stream_next(c->stream, &key, &j, &v, err);

        if (rc > 0)
            rc = step(c, rc, &j, &key, &v, r, err);
        else if (rc == 0)
            (void)finish(c, 0, err);
        s->offset = ep_json_stream_offset(c->stream);
        /* EP_ESYS: the queue has no room; it would not have it later. */
        if (rc < 0 && (rc == EP_ESYS || ep_json_stream_over(c->stream)))
            rc = finish(c, rc, err);
        if (rc)
            return rc;
    }
    return drain(c, r, err);
}

/* ---- the beginning of an input ---- */

const char *ep_chrome_begins(const char *head, size_t len, bool *bare)
{
    size_t i = 0;

    while (i < len && (head[i] == ' ' || head[i] == '\n' || head[i] == '\r' ||
                       head[i] == '\t'))
        i++;
    if (i == len || (head[i] != '[' && head[i] != '{'))
        return NULL;
    *bare = head[i] == '[';
    return head + i;
}

bool ep_chrome_has(const char *head, size_t len, const char *text)
{
    return memmem(head, len, text, strlen(text)) != NULL;
}

/* ---- values ---- */

struct ep_span ep_chrome_text(const struct ep_json_value *v,
                              struct ep_buf *room)
{
    if (v->kind != EP_JSON_STRING)
        return (struct ep_span){NULL, 0};
    if (!v->escaped)
        return v->raw;
    ep_buf_reset(room);
    ep_json_unescape(v, room);
    if (memchr(room->ptr, '\0', room->len))
        return (struct ep_span){NULL, 0};
    return (struct ep_span){room->ptr, room->len};
}

int ep_chrome_int_slow(const struct ep_json_value *v, const char *what,
                       int64_t lo, int64_t *out, struct ep_error *err)
{
    int64_t x;
    int rc;

    if (v->kind == EP_JSON_NULL)
        return 0;
    rc = ep_json_int(v, &x);
    if (rc == EP_EFORMAT)
        return ep_error_set(err, rc, "%s is not a whole number", what);
    if (rc == 0 && x < lo)
        return ep_error_set(err, EP_ERANGE, "%s is %" PRId64, what, x);
    if (rc < 0 || x > (INT64_C(1) << 53) - 1)
        return ep_error_set(err, EP_ERANGE, "%s is beyond 2^53", what);
    *out = x;
    return 0;
}

int ep_chrome_seconds(const struct ep_json_value *us, const char *what,
                      double *s, struct ep_error *err)
{
    struct ep_fp_decimal d = us->dec;
    double x;

    if (us->kind == EP_JSON_NULL)
        return ep_error_set(err, EP_EFORMAT, "no %s", what);
    if (us->kind != EP_JSON_NUMBER)
        return ep_error_set(err, EP_EFORMAT, "%s is not a number", what);
    /* The rest of more than 19 digits is below a double's resolution. */
    d.cut = false;
    d.exp10 -= 6;
    x = ep_fp_from_decimal(&d, NULL, 0);
    if (x < 0)
        return ep_error_set(err, EP_ERANGE, "%s is below 0", what);
    if (x > DBL_MAX)
        return ep_error_set(err, EP_ERANGE, "%s is too large", what);
    *s = x + 0.0;
    return 0;
}

int ep_chrome_intern(struct ep_intern *table, struct ep_span s,
                     const char *what, int32_t *id, struct ep_error *err)
{
    long n;

    if (s.len > EP_CHROME_NAME_MAX)
        return ep_error_set(err, EP_ELIMIT, "%s is longer than %d bytes", what,
                            EP_CHROME_NAME_MAX);
    n = ep_intern_add(table, s, EP_CHROME_NAMES);
    if (n < 0)
        return ep_error_set(err, EP_ELIMIT, "more than %d different %ss",
                            EP_CHROME_NAMES, what);
    *id = (int32_t)n;
    return 0;
}
