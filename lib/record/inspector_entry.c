/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inspector_entry.c - see inspector_entry.h.
 *
 * Half of every line repeats the line before: header and metadata are the same
 * but for the time of the dump. Their bytes are kept, and an object that
 * begins with them is read from coll_perf on.
 */
#include "config.h"

#include "record/inspector_entry.h"

#include "base/json.h"
#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

/* Header and metadata are at most that long if they are to be kept. */
#define HEAD_MAX 1024

/* Header and metadata of an earlier object, and what they say. */
struct head {
    char text[HEAD_MAX];
    size_t len; /* 0: there is none */
    size_t digits_at, digits;
    struct ep_inspector_entry e; /* its spans are in text */
};

struct ep_inspector_reader {
    struct ep_span rest; /* the text, and bytes behind it */
    size_t pad;
    struct ep_buf text; /* decoded strings of the object */
    char op[EP_NCCL_OP_MAX];
    struct head head;
};

struct ep_inspector_reader *ep_inspector_reader_new(void)
{
    struct ep_inspector_reader *r = ep_calloc(1, sizeof *r);

    ep_buf_init(&r->text);
    return r;
}

void ep_inspector_reader_free(struct ep_inspector_reader *r)
{
    if (!r)
        return;
    ep_buf_free(&r->text);
    free(r);
}

/* ==== Values ==== */

/* A whole number from 0 to 2^53, or -1. */
static int64_t whole(const struct ep_json_value *v)
{
    if (v->kind != EP_JSON_NUMBER || !v->integer || v->dec.neg || v->dec.cut ||
        v->dec.exp10 != 0 || v->dec.mant >= UINT64_C(1) << 53)
        return -1;
    return (int64_t)v->dec.mant;
}

/* A number of microseconds in seconds, or -1. */
static double seconds(const struct ep_json_value *v)
{
    struct ep_fp_decimal dec = v->dec;

    if (v->kind != EP_JSON_NUMBER || dec.neg || dec.cut || dec.exp10 > 0)
        return -1;
    dec.exp10 -= 6;
    return ep_fp_from_decimal(&dec, v->raw.ptr, v->raw.len);
}

static struct ep_span text_of(struct ep_inspector_reader *self,
                              const struct ep_json_value *v)
{
    size_t at = self->text.len;

    if (v->kind != EP_JSON_STRING)
        return (struct ep_span){NULL, 0};
    if (!v->escaped)
        return v->raw;
    if (!at) /* all strings of the object fit: the buffer does not move */
        (void)ep_buf_reserve(&self->text, self->rest.len + 1);
    ep_json_unescape(v, &self->text);
    if (memchr(self->text.ptr + at, '\0', self->text.len - at))
        return (struct ep_span){NULL, 0};
    return (struct ep_span){self->text.ptr + at, self->text.len - at};
}

/* ==== The parts of an object ==== */

static int read_header(struct ep_inspector_reader *self, struct ep_json *j,
                       struct ep_inspector_entry *e)
{
    struct ep_json_value key, v;
    int rc;

    ep_json_enter(j);
    while ((rc = ep_json_next(j, &key, &v)) > 0) {
        if (EP_SPAN_IS(key.raw, "id"))
            e->id = text_of(self, &v);
        else if (EP_SPAN_IS(key.raw, "rank"))
            e->rank = whole(&v);
        else if (EP_SPAN_IS(key.raw, "n_ranks"))
            e->nranks = whole(&v);
    }
    return rc;
}

static int read_metadata(struct ep_inspector_reader *self, struct ep_json *j,
                         struct ep_inspector_entry *e)
{
    struct ep_json_value key, v;
    int rc;

    ep_json_enter(j);
    while ((rc = ep_json_next(j, &key, &v)) > 0) {
        if (EP_SPAN_IS(key.raw, "hostname"))
            e->host = ep_nccl_host(text_of(self, &v));
        else if (EP_SPAN_IS(key.raw, "pid"))
            e->pid = whole(&v);
        else if (EP_SPAN_IS(key.raw, "dump_timestamp_us")) {
            e->dump_us = whole(&v);
            e->dump = v.raw;
        }
    }
    if (e->dump_us >= 0 && e->kind == EP_INSPECTOR_NOTHING && e->id.len)
        e->head_end = self->rest.ptr + ep_json_offset(j);
    return rc;
}

/* kernel_events of a verbose line: when the first kernel began. */
static int read_kernels(struct ep_json *j, struct ep_inspector_entry *e)
{
    struct ep_json_value key, v;
    int rc;

    ep_json_enter(j);
    while ((rc = ep_json_next(j, NULL, &v)) > 0) {
        if (v.kind != EP_JSON_OBJECT)
            continue;
        ep_json_enter(j);
        while ((rc = ep_json_next(j, &key, &v)) > 0) {
            int64_t us;

            if (!EP_SPAN_IS(key.raw, "kernel_start_ts"))
                continue;
            us = whole(&v);
            if (us > 0 && (e->kernel_us <= 0 || us < e->kernel_us))
                e->kernel_us = us;
        }
        if (rc < 0)
            return rc;
    }
    return rc;
}

static int read_times(struct ep_json *j, struct ep_inspector_entry *e)
{
    struct ep_json_value key, v;
    int rc;

    ep_json_enter(j);
    while ((rc = ep_json_next(j, &key, &v)) > 0) {
        if (EP_SPAN_IS(key.raw, "coll_start_ts") ||
            EP_SPAN_IS(key.raw, "p2p_start_ts")) {
            e->start_us = whole(&v);
        } else if (v.kind == EP_JSON_ARRAY &&
                   EP_SPAN_IS(key.raw, "kernel_events")) {
            rc = read_kernels(j, e);
            if (rc < 0)
                return rc;
        }
    }
    return rc;
}

/* One member of coll_perf or p2p_perf, whose prefix is not in the name. */
static void take_member(struct ep_inspector_reader *self, struct ep_span name,
                        const struct ep_json_value *v,
                        struct ep_inspector_entry *e)
{
    if (EP_SPAN_IS(name, "sn"))
        e->seq = whole(v);
    else if (EP_SPAN_IS(name, "msg_size_bytes"))
        e->bytes = whole(v);
    else if (EP_SPAN_IS(name, "exec_time_us"))
        e->dur = seconds(v);
    else if (EP_SPAN_IS(name, "peer"))
        e->peer = whole(v);
    else if (EP_SPAN_IS(name, "timing_source")) {
        struct ep_span source = text_of(self, v);

        e->kernel_timed =
            source.len > 6 && memcmp(source.ptr, "kernel", 6) == 0;
    }
}

static int read_perf(struct ep_inspector_reader *self, struct ep_json *j,
                     struct ep_inspector_entry *e)
{
    const char *what = e->kind == EP_INSPECTOR_COLL ? "coll" : "p2p";
    size_t prefix = e->kind == EP_INSPECTOR_COLL ? 4 : 3;
    struct ep_json_value key, v;
    int rc;

    ep_json_enter(j);
    while ((rc = ep_json_next(j, &key, &v)) > 0) {
        struct ep_span name = key.raw;

        if (name.len > prefix && name.ptr[prefix] == '_') {
            name.ptr += prefix + 1;
            name.len -= prefix + 1;
            take_member(self, name, &v, e);
        } else if (ep_span_eq(name, what)) {
            e->op = ep_nccl_op(text_of(self, &v), self->op);
        } else if (v.kind == EP_JSON_OBJECT &&
                   EP_SPAN_IS(name, "event_trace_ts")) {
            rc = read_times(j, e);
            if (rc < 0)
                return rc;
        }
    }
    return rc;
}

static int read_stats(struct ep_json *j, struct ep_inspector_entry *e)
{
    struct ep_json_value key, v;
    int rc;

    ep_json_enter(j);
    while ((rc = ep_json_next(j, &key, &v)) > 0)
        if ((EP_SPAN_IS(key.raw, "coll_dropped_total") ||
             EP_SPAN_IS(key.raw, "p2p_dropped_total")) &&
            whole(&v) > 0)
            e->dropped += whole(&v);
    return rc;
}

static int read_member(struct ep_inspector_reader *self, struct ep_json *j,
                       struct ep_span name, struct ep_inspector_entry *e)
{
    if (EP_SPAN_IS(name, "header")) {
        e->parts++;
        return read_header(self, j, e);
    }
    if (EP_SPAN_IS(name, "metadata")) {
        e->parts++;
        return read_metadata(self, j, e);
    }
    if (EP_SPAN_IS(name, "coll_perf"))
        e->kind = EP_INSPECTOR_COLL;
    else if (EP_SPAN_IS(name, "p2p_perf"))
        e->kind = EP_INSPECTOR_P2P;
    else if (EP_SPAN_IS(name, "dump_stats"))
        e->kind = EP_INSPECTOR_STATS;
    else
        return 0;
    return e->kind == EP_INSPECTOR_STATS ? read_stats(j, e)
                                         : read_perf(self, j, e);
}

/* ==== Objects ==== */

static struct ep_span moved(struct ep_span s, const char *from, const char *to)
{
    return s.ptr ? (struct ep_span){to + (s.ptr - from), s.len} : s;
}

/* Keep the head of the object at rest, which was read into *e. */
static void keep_head(struct ep_inspector_reader *self,
                      const struct ep_inspector_entry *e)
{
    const char *from = self->rest.ptr;
    struct head *h = &self->head;
    size_t len = e->head_end ? (size_t)(e->head_end - from) : 0;

    if (!len || e->parts != 2 || len > HEAD_MAX || self->text.len)
        return;
    memcpy(h->text, from, len);
    h->len = len;
    h->digits_at = (size_t)(e->dump.ptr - from);
    h->digits = e->dump.len;
    h->e = *e;
    h->e.id = moved(e->id, from, h->text);
    h->e.host = moved(e->host, from, h->text);
}

static bool all_digits(const char *s, size_t n)
{
    unsigned bad = 0;

    for (size_t i = 0; i < n; i++)
        bad |= (unsigned)(unsigned char)(s[i] - '0') > 9;
    return !bad;
}

/*
 * Does rest begin with the head that was kept, followed by coll_perf or
 * p2p_perf? Returns the place of its value, with *e filled up to there.
 */
static const char *same_head(const struct ep_inspector_reader *self,
                             struct ep_inspector_entry *e)
{
    const struct head *h = &self->head;
    const char *p = self->rest.ptr;
    size_t tail = h->digits_at + h->digits;
    struct ep_cursor c;

    if (!h->len || self->rest.len <= h->len ||
        memcmp(p, h->text, h->digits_at) != 0 ||
        memcmp(p + tail, h->text + tail, h->len - tail) != 0 ||
        !all_digits(p + h->digits_at, h->digits))
        return NULL;
    c = (struct ep_cursor){p + h->len, p + self->rest.len};
    e->kind = EP_INSPECTOR_NOTHING;
    if (ep_cursor_lit(&c, ",\"coll_perf\":"))
        e->kind = EP_INSPECTOR_COLL;
    else if (ep_cursor_lit(&c, ",\"p2p_perf\":"))
        e->kind = EP_INSPECTOR_P2P;
    if (e->kind == EP_INSPECTOR_NOTHING || c.p == c.end || *c.p != '{')
        return NULL;
    e->id = h->e.id;
    e->host = h->e.host;
    e->rank = h->e.rank;
    e->nranks = h->e.nranks;
    e->pid = h->e.pid;
    return c.p;
}

/* The object at rest, whose head is known: false if it is not that simple. */
static bool read_short(struct ep_inspector_reader *self,
                       struct ep_inspector_entry *e, size_t *used)
{
    const char *p = same_head(self, e), *limit;
    struct ep_json_value v;
    struct ep_json j;

    if (!p)
        return false;
    limit = self->rest.ptr + self->rest.len;
    if (ep_json_begin_padded(&j, p, (size_t)(limit - p), self->pad, &v, NULL) <
            0 ||
        read_perf(self, &j, e) < 0)
        return false;
    p += ep_json_offset(&j);
    if (p == limit || *p != '}')
        return false;
    *used = (size_t)(p + 1 - self->rest.ptr);
    return true;
}

/* The object at rest in full. */
static int read_whole(struct ep_inspector_reader *self,
                      struct ep_inspector_entry *e, size_t *used,
                      struct ep_error *err)
{
    struct ep_json_value key, v;
    struct ep_json j;
    int rc = ep_json_begin_padded(&j, self->rest.ptr, self->rest.len, self->pad,
                                  &v, err);

    if (rc < 0)
        return rc;
    if (v.kind != EP_JSON_OBJECT)
        return ep_error_set(err, EP_EFORMAT, "not a JSON object");
    ep_json_enter(&j);
    while ((rc = ep_json_next(&j, &key, &v)) > 0) {
        if (v.kind == EP_JSON_OBJECT)
            rc = read_member(self, &j, key.raw, e);
        if (rc < 0)
            return rc;
    }
    *used = ep_json_offset(&j);
    if (rc == 0)
        keep_head(self, e);
    return rc;
}

long ep_inspector_read(struct ep_inspector_reader *self, struct ep_span text,
                       size_t pad, struct ep_inspector_entry *e,
                       struct ep_error *err)
{
    static const struct ep_inspector_entry unknown = {.rank = -1,
                                                      .nranks = -1,
                                                      .pid = -1,
                                                      .seq = -1,
                                                      .bytes = -1,
                                                      .peer = -1,
                                                      .dump_us = -1,
                                                      .dur = -1};
    size_t used = 0;
    int rc = 0;

    self->rest = text;
    self->pad = pad;
    *e = unknown;
    ep_buf_reset(&self->text);
    if (!read_short(self, e, &used)) {
        *e = unknown;
        ep_buf_reset(&self->text);
        rc = read_whole(self, e, &used, err);
    }
    return rc < 0 ? rc : (long)used;
}
