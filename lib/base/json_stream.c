/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json_stream.c - see json_stream.h: the window, the levels round the
 * elements, and what happens to elements that are cut or broken.
 */
#include "config.h"

#include "base/json_stream.h"

#include "base/json_impl.h"
#include "base/json_skip.h"
#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

#define WINDOW_BYTES ((size_t)256 << 10)
#define PAD EP_JSON_WINDOW

/* A cut element of so many bytes is tried again only when it has grown by
 * half, so that tries cost O(its length) together. */
#define PATIENT_BYTES 4096

enum where { AT_START, IN_OBJECT, IN_ARRAY, AT_END };

struct ep_json_stream {
    struct ep_json_stream_config config;
    char *buf;
    size_t cap, at, len; /* buf[at..len) is not taken yet */
    uint64_t base;       /* of buf[0] in the text */
    uint64_t offset;     /* see ep_json_stream_offset() */
    uint64_t doubt;      /* brackets before this offset led astray */
    enum where where;
    bool bare;  /* the text is an array */
    bool due;   /* a comma has to come before the next element */
    bool ended; /* read() said 0 */
    bool over;
};

struct ep_json_stream *
ep_json_stream_new(const struct ep_json_stream_config *config)
{
    struct ep_json_stream *s = ep_calloc(1, sizeof *s);

    s->config = *config;
    if (!s->config.max)
        s->config.max = EP_JSON_STREAM_MAX;
    s->cap = config->window ? config->window : WINDOW_BYTES;
    if (s->cap > s->config.max)
        s->cap = s->config.max;
    s->buf = ep_calloc(s->cap + PAD, 1);
    return s;
}

void ep_json_stream_free(struct ep_json_stream *s)
{
    if (!s)
        return;
    free(s->buf);
    free(s);
}

uint64_t ep_json_stream_offset(const struct ep_json_stream *s)
{
    return s->offset;
}

bool ep_json_stream_over(const struct ep_json_stream *s)
{
    return s->over;
}

bool ep_json_stream_bare(const struct ep_json_stream *s)
{
    return s->bare;
}

/* ---- the window ---- */

/* Make room behind buf[len]. */
static int make_room(struct ep_json_stream *s, struct ep_error *err)
{
    if (s->at == s->len || (s->len == s->cap && s->at)) {
        memmove(s->buf, s->buf + s->at, s->len - s->at);
        s->base += s->at;
        s->len -= s->at;
        s->at = 0;
    }
    if (s->len < s->cap)
        return 0;
    if (s->cap >= s->config.max)
        return ep_error_set(err, EP_ELIMIT, "element is longer than %zu bytes",
                            s->config.max);
    s->cap = s->cap * 2 < s->config.max ? s->cap * 2 : s->config.max;
    s->buf = ep_realloc(s->buf, s->cap + PAD, 1);
    return 0;
}

/* Read more: 1, 0 at the end, EP_ELIMIT, or a final error. */
static int more(struct ep_json_stream *s, struct ep_error *err)
{
    long n;
    int rc;

    if (s->ended)
        return 0;
    rc = make_room(s, err);
    if (rc < 0)
        return rc;
    n = s->config.read(s->config.ctx, s->buf + s->len, s->cap - s->len, err);
    if (n < 0) {
        s->over = true;
        return (int)n;
    }
    s->ended = n == 0;
    s->len += (size_t)n;
    return n > 0;
}

/* As more(), until it is worth while to try the element at buf[at] again. */
static int enough(struct ep_json_stream *s, struct ep_error *err)
{
    size_t had = s->len - s->at;
    size_t want = had < PATIENT_BYTES ? had + 1 : had + had / 2;
    int rc = 1;

    if (had < s->config.max && want > s->config.max)
        want = s->config.max;
    while (rc > 0 && s->len - s->at < want)
        rc = more(s, err);
    /* The end came while waiting for more than is there: try that. */
    return rc == 0 && s->len - s->at > had ? 1 : rc;
}

/* Go to the next byte that is no white space: 1, or 0 at the end. */
static int find_byte(struct ep_json_stream *s, struct ep_error *err)
{
    for (;;) {
        int rc;

        while (s->at < s->len &&
               (s->buf[s->at] == ' ' || s->buf[s->at] == '\n' ||
                s->buf[s->at] == '\r' || s->buf[s->at] == '\t'))
            s->at++;
        if (s->at < s->len)
            return 1;
        rc = more(s, err);
        if (rc <= 0)
            return rc;
    }
}

/* ---- what is wrong ---- */

static int truncated(struct ep_json_stream *s, struct ep_error *err)
{
    s->over = true;
    s->offset = s->base + s->len;
    return ep_error_set(err, EP_ETRUNC, "text ends too early");
}

/* Something else was expected at buf[at]. */
static int expected(struct ep_json_stream *s, const char *what,
                    struct ep_error *err)
{
    char shown[16];

    s->offset = s->base + s->at;
    return ep_error_set(err, EP_EFORMAT, "expected %s, found '%s'", what,
                        ep_escape(shown, sizeof shown, s->buf + s->at, 1));
}

/* The scanner's message without its "byte N: ", which counts from elsewhere. */
static void strip(struct ep_error *err)
{
    char *colon;

    if (!err || strncmp(err->msg, "byte ", 5) != 0)
        return;
    colon = strstr(err->msg, ": ");
    if (colon)
        memmove(err->msg, colon + 2, strlen(colon + 2) + 1);
}

/* Pass over the broken element at buf[at]: 0, or a final error. */
static int resync(struct ep_json_stream *s, struct ep_error *err)
{
    struct ep_json_skip k = {.in_array = s->where == IN_ARRAY};

    s->due = true;
    for (;;) {
        int rc;

        while (s->at < s->len) {
            if (ep_json_skip_byte(&k, s->buf[s->at]))
                return 0;
            s->at++;
        }
        rc = more(s, err);
        if (rc <= 0)
            return rc;
    }
}

/* The element at buf[at] is broken, and *err says why: pass over it. */
static int broken(struct ep_json_stream *s, uint64_t offset, int code,
                  struct ep_error *err)
{
    struct ep_error last;

    s->offset = offset;
    strip(err);
    if (resync(s, &last) < 0) {
        if (err)
            *err = last;
        return last.code;
    }
    return code;
}

/*
 * The element at buf[at] is longer than the text. If it can be told where it
 * ends all the same it is broken, else the text is cut.
 */
static int unfinished(struct ep_json_stream *s, struct ep_error *err)
{
    uint64_t offset = s->base + s->at;
    int rc = resync(s, err);

    if (rc < 0)
        return rc;
    if (s->at == s->len)
        return truncated(s, err);
    s->offset = offset;
    return ep_error_set(err, EP_EFORMAT, "quotes or brackets do not match");
}

/* ---- the levels round the elements ---- */

/*
 * Go to the next element or member of the level that ends with close: 1; 0 if
 * the level is over.
 */
static int separate(struct ep_json_stream *s, char close, struct ep_error *err)
{
    for (;;) {
        int rc = find_byte(s, err);

        if (rc < 0)
            return rc;
        if (rc == 0) {
            if (!s->bare || !s->config.open_end)
                return truncated(s, err);
            return 0;
        }
        if (s->buf[s->at] == close) {
            s->at++;
            return 0;
        }
        if (!s->due)
            return 1;
        s->due = false;
        if (s->buf[s->at] != ',')
            return expected(s, close == ']' ? "',' or ']'" : "',' or '}'", err);
        s->at++;
    }
}

/* Begin the value at buf[at + skip], of which buf[at] is the element. 0. */
static int begin_value(struct ep_json_stream *s, size_t skip, struct ep_json *j,
                       struct ep_json_value *v, struct ep_error *err)
{
    size_t from = s->at + skip;
    int rc = ep_json_begin_padded(j, s->buf + from, s->len - from, PAD, v, err);

    s->offset = s->base + from;
    /* A number at the end of the window may go on behind it. */
    if (rc == 0 && v->kind == EP_JSON_NUMBER && j->p == j->end)
        rc = EP_ETRUNC;
    if (rc < 0 && rc != EP_ETRUNC)
        return broken(s, s->base + from + ep_json_offset(j), rc, err);
    if (rc == 0)
        return 0;
    rc = enough(s, err);
    if (rc == EP_ELIMIT)
        return broken(s, s->offset, rc, err);
    if (rc < 0)
        return rc;
    return rc ? EP_JSON_STREAM_AGAIN : unfinished(s, err);
}

/* How far behind buf[from] the next byte is that is no white space. */
static size_t space(const struct ep_json_stream *s, size_t from)
{
    size_t n = 0;

    while (from + n < s->len &&
           (s->buf[from + n] == ' ' || s->buf[from + n] == '\n' ||
            s->buf[from + n] == '\r' || s->buf[from + n] == '\t'))
        n++;
    return n;
}

/*
 * The key at buf[at], and its colon. *skip becomes how far behind it the value
 * is. Returns 0, AGAIN or an error.
 */
static int begin_member(struct ep_json_stream *s, struct ep_json_value *key,
                        struct ep_json *j, size_t *skip, struct ep_error *err)
{
    int rc = begin_value(s, 0, j, key, err);
    size_t n;

    if (rc)
        return rc;
    if (key->kind != EP_JSON_STRING) {
        rc = expected(s, "a key", err);
        return broken(s, s->base + s->at, rc, err);
    }
    n = ep_json_offset(j);
    n += space(s, s->at + n);
    if (s->at + n < s->len && s->buf[s->at + n] != ':') {
        (void)ep_error_set(err, EP_EFORMAT, "expected ':'");
        return broken(s, s->base + s->at + n, EP_EFORMAT, err);
    }
    n += s->at + n < s->len;
    n += space(s, s->at + n);
    *skip = n;
    if (s->at + n < s->len)
        return 0;
    rc = enough(s, err);
    if (rc == EP_ELIMIT)
        return broken(s, s->offset, rc, err);
    return rc > 0 ? EP_JSON_STREAM_AGAIN : rc < 0 ? rc : unfinished(s, err);
}

/* The next member: MEMBER, 0 if another step has to be taken, or an error. */
static int next_member(struct ep_json_stream *s, struct ep_json_value *key,
                       struct ep_json *j, struct ep_json_value *v,
                       struct ep_error *err)
{
    size_t skip = 0;
    int rc = separate(s, '}', err);

    if (rc < 0)
        return rc;
    if (rc == 0) {
        s->where = AT_END;
        return 0;
    }
    rc = begin_member(s, key, j, &skip, err);
    if (rc)
        return rc < 0 ? rc : 0;
    if (s->buf[s->at + skip] == '[' && ep_span_eq(key->raw, s->config.array)) {
        s->at += skip + 1;
        s->where = IN_ARRAY;
        s->due = false;
        return 0;
    }
    rc = begin_value(s, skip, j, v, err);
    if (rc)
        return rc < 0 ? rc : 0;
    return EP_JSON_STREAM_MEMBER;
}

/* As above, of the array. */
static int next_element(struct ep_json_stream *s, struct ep_json *j,
                        struct ep_json_value *v, struct ep_error *err)
{
    int rc = separate(s, ']', err);

    if (rc < 0)
        return rc;
    if (rc == 0) {
        s->where = s->bare ? AT_END : IN_OBJECT;
        s->due = true;
        return 0;
    }
    rc = begin_value(s, 0, j, v, err);
    if (rc)
        return rc < 0 ? rc : 0;
    return EP_JSON_STREAM_ELEMENT;
}

static int begin_text(struct ep_json_stream *s, struct ep_error *err)
{
    int rc = find_byte(s, err);

    if (rc < 0)
        return rc;
    if (rc == 0)
        return truncated(s, err);
    s->bare = s->buf[s->at] == '[';
    if (!s->bare && s->buf[s->at] != '{') {
        s->over = true;
        return expected(s, "an array or an object", err);
    }
    s->at++;
    s->where = s->bare ? IN_ARRAY : IN_OBJECT;
    return 0;
}

static int end_text(struct ep_json_stream *s, struct ep_error *err)
{
    int rc = find_byte(s, err);

    s->over = true;
    return rc > 0 ? expected(s, "the end of the text", err) : rc;
}

int ep_json_stream_next(struct ep_json_stream *s, struct ep_json_value *key,
                        struct ep_json *j, struct ep_json_value *v,
                        struct ep_error *err)
{
    int rc = 0;

    while (rc == 0 && !s->over) {
        switch (s->where) {
        case AT_START:
            rc = begin_text(s, err);
            break;
        case IN_OBJECT:
            rc = next_member(s, key, j, v, err);
            break;
        case IN_ARRAY:
            rc = next_element(s, j, v, err);
            break;
        case AT_END:
            rc = end_text(s, err);
            break;
        }
    }
    return rc;
}

/* Pull all that is left of the element; checks it. */
static int pull_rest(struct ep_json *j)
{
    struct ep_json_value key, v;
    int rc = ep_json_skip(j, NULL);

    while (rc >= 0 && j->depth > 0)
        rc = ep_json_next(j, &key, &v);
    return rc;
}

/*
 * What follows the element, or NULL if that is not in the window. Brackets are
 * trusted until they lead out of the window or the text: where that was in vain
 * the elements are checked, lest each of them leads there again.
 */
static const char *find_end(struct ep_json_stream *s, struct ep_json *j)
{
    int depth = j->depth + j->pending;
    const char *end;

    if (depth && s->offset < s->doubt)
        return pull_rest(j) < 0 ? NULL : j->p;
    end = depth ? ep_json_skip_levels(j->p, j->end, depth) : j->p;
    if (!end && (s->ended || s->len - s->at == s->config.max))
        s->doubt = s->base + s->len;
    return end;
}

int ep_json_stream_done(struct ep_json_stream *s, struct ep_json *j, int rc,
                        struct ep_error *err)
{
    const char *end = j->failed ? NULL : find_end(s, j);

    if (end) {
        s->at = (size_t)(end - s->buf);
        s->due = true;
        return rc < 0 ? rc : 0;
    }
    if (j->failed && j->failed != EP_ETRUNC)
        return broken(s, s->offset + ep_json_offset(j), j->failed, err);
    rc = enough(s, err);
    if (rc == EP_ELIMIT)
        return broken(s, s->offset, rc, err);
    if (rc < 0)
        return rc;
    return rc ? EP_JSON_STREAM_AGAIN : unfinished(s, err);
}
