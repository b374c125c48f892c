/* SPDX-License-Identifier: Apache-2.0 */
/*
 * import_inspector.c - NCCL Inspector, JSON lines: coll and p2p records.
 *
 * The writer is plugins/profiler/inspector of NCCL 2.28 and later (before
 * 2.29.7 ext-profiler/inspector). One object per line:
 *
 *     {"header":{"id":"0x7f8c496ae9f661","rank":2,"n_ranks":8,...},
 *      "metadata":{"hostname":"h1","pid":1639453,...},
 *      "coll_perf":{"coll":"AllReduce","coll_sn":1407,
 *                   "coll_msg_size_bytes":17179869184,
 *                   "coll_exec_time_us":61974,...}}
 *
 * or p2p_perf, or dump_stats (what the ring lost). The version in metadata
 * does not follow the format, so the keys decide; those that are not known are
 * passed over. What else there is to know:
 *
 *   - Only a verbose line says when the operation began. dump_timestamp_us
 *     is when the line was written, often at the end of the job: never a ts.
 *   - coll_exec_time_us is of the kernel if coll_timing_source begins with
 *     "kernel": it then began when the first channel's kernel did, not at
 *     coll_start_ts, when the host enqueued it.
 *   - An infinite bandwidth (of a time of 0) is written as inf, which is no
 *     JSON. Such a line is read again without it.
 *   - A name that the writer cannot escape ends the object in its middle, with
 *     no line end: the next object follows on the same line.
 *
 * Half of every line repeats the line before: header and metadata are the same
 * but for the time of the dump. Their bytes are kept, and an object that
 * begins with them is read from coll_perf on.
 */
#include "config.h"

#include "base/json.h"
#include "base/mem.h"
#include "record/importers.h"
#include "record/nccl_text.h"

#include <stdlib.h>
#include <string.h>

#define OBJECT "{\"header\""

/* Header and metadata are at most that long if they are to be kept. */
#define HEAD_MAX 1024

enum kind { NOTHING, COLL, P2P, STATS };

/* What one line says; a span is {NULL, 0} and a number -1 where it does not. */
struct entry {
    enum kind kind;
    bool kernel_timed;
    struct ep_span id, host, op;
    int64_t rank, nranks, pid;
    int64_t seq, bytes, peer;
    int64_t start_us, kernel_us; /* since the epoch; at most 0: not known */
    int64_t dump_us, dropped;    /* of dump_stats */
    double dur;                  /* s */
    /* where the object has dump_timestamp_us and the end of its metadata; NULL
       if these are not in the usual order */
    struct ep_span dump;
    const char *head_end;
};

/* Header and metadata of an earlier object, and what they say. */
struct head {
    char text[HEAD_MAX];
    size_t len; /* 0: there is none */
    size_t digits_at, digits;
    struct entry e; /* its spans are in text */
};

struct inspector {
    struct ep_span rest;  /* of the line: to be read yet */
    size_t pad;           /* bytes behind rest that may be loaded */
    bool mended;          /* rest is in the buffer below */
    struct ep_buf mended_line;
    struct ep_buf text; /* decoded strings of the object */
    struct head head;
    char op[EP_NCCL_OP_MAX];
};

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

static struct ep_span text_of(struct inspector *self,
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

static int read_header(struct inspector *self, struct ep_json *j,
                       struct entry *e)
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

static int read_metadata(struct inspector *self, struct ep_json *j,
                         struct entry *e)
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
    if (e->dump_us >= 0 && e->kind == NOTHING && e->id.len)
        e->head_end = self->rest.ptr + ep_json_offset(j);
    return rc;
}

/* kernel_events of a verbose line: when the first kernel began. */
static int read_kernels(struct ep_json *j, struct entry *e)
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

static int read_times(struct ep_json *j, struct entry *e)
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
static void take_member(struct inspector *self, struct ep_span name,
                        const struct ep_json_value *v, struct entry *e)
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

        e->kernel_timed = source.len > 6 && memcmp(source.ptr, "kernel", 6) == 0;
    }
}

static int read_perf(struct inspector *self, struct ep_json *j, struct entry *e)
{
    const char *what = e->kind == COLL ? "coll" : "p2p";
    size_t prefix = e->kind == COLL ? 4 : 3;
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

static int read_stats(struct ep_json *j, struct entry *e)
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

static int read_member(struct inspector *self, struct ep_json *j,
                       struct ep_span name, struct entry *e)
{
    if (EP_SPAN_IS(name, "header"))
        return read_header(self, j, e);
    if (EP_SPAN_IS(name, "metadata"))
        return read_metadata(self, j, e);
    if (EP_SPAN_IS(name, "coll_perf"))
        e->kind = COLL;
    else if (EP_SPAN_IS(name, "p2p_perf"))
        e->kind = P2P;
    else if (EP_SPAN_IS(name, "dump_stats"))
        e->kind = STATS;
    else
        return 0;
    return e->kind == STATS ? read_stats(j, e) : read_perf(self, j, e);
}

/* ==== Objects ==== */

static struct ep_span moved(struct ep_span s, const char *from, const char *to)
{
    return s.ptr ? (struct ep_span){to + (s.ptr - from), s.len} : s;
}

/* Keep the head of the object at rest, which was read into *e. */
static void keep_head(struct inspector *self, const struct entry *e)
{
    const char *from = self->rest.ptr;
    struct head *h = &self->head;
    size_t len = e->head_end ? (size_t)(e->head_end - from) : 0;

    if (!len || len > HEAD_MAX || self->text.len)
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
static const char *same_head(const struct inspector *self, struct entry *e)
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
    e->kind = NOTHING;
    if (ep_cursor_lit(&c, ",\"coll_perf\":"))
        e->kind = COLL;
    else if (ep_cursor_lit(&c, ",\"p2p_perf\":"))
        e->kind = P2P;
    if (e->kind == NOTHING || c.p == c.end || *c.p != '{')
        return NULL;
    e->id = h->e.id;
    e->host = h->e.host;
    e->rank = h->e.rank;
    e->nranks = h->e.nranks;
    e->pid = h->e.pid;
    return c.p;
}

/* The object at rest, whose head is known: false if it is not that simple. */
static bool read_short(struct inspector *self, struct entry *e, size_t *used)
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
static int read_whole(struct inspector *self, struct entry *e, size_t *used,
                      struct ep_error *err)
{
    struct ep_json_value key, v;
    struct ep_json j;
    int rc = ep_json_begin_padded(&j, self->rest.ptr, self->rest.len,
                                  self->pad, &v, err);

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

/*
 * The object at the beginning of rest into *e; *used becomes its length. What
 * follows it on the line is not looked at.
 */
static int read_object(struct inspector *self, struct entry *e, size_t *used,
                       struct ep_error *err)
{
    static const struct entry unknown = {.rank = -1,
                                         .nranks = -1,
                                         .pid = -1,
                                         .seq = -1,
                                         .bytes = -1,
                                         .peer = -1,
                                         .dump_us = -1,
                                         .dur = -1};

    *e = unknown;
    ep_buf_reset(&self->text);
    if (read_short(self, e, used))
        return 0;
    *e = unknown;
    ep_buf_reset(&self->text);
    return read_whole(self, e, used, err);
}

/* ==== Records ==== */

static void set_whole(struct ep_record *r, enum ep_key k, int64_t v)
{
    if (v >= 0)
        ep_record_set_int(r, k, v);
}

static void set_where(struct ep_record *r, const struct entry *e)
{
    if (e->host.len)
        ep_record_set_span(r, EP_K_HOST, e->host);
    set_whole(r, EP_K_PID, e->pid);
}

/* 1, or 0 if there is nothing to tell. */
static int stats_record(const struct entry *e, struct ep_record *r)
{
    if (e->dropped <= 0 || e->dump_us < 0)
        return 0;
    ep_record_begin(r, EP_GAUGE);
    ep_record_set_num(r, EP_K_TS, (double)e->dump_us / 1e6);
    set_where(r, e);
    if (e->id.len)
        ep_record_set_span(r, EP_K_COMM, e->id);
    set_whole(r, EP_K_COMM_RANK, e->rank);
    ep_record_set_str(r, EP_K_NAME, "nccl_inspector_dropped");
    ep_record_set_num(r, EP_K_VALUE, (double)e->dropped);
    ep_record_set_str(r, EP_K_UNIT, "1");
    return 1;
}

/* 1, 0, or an error. */
static int to_record(const struct entry *e, struct ep_record *r,
                     struct ep_error *err)
{
    const char *what = e->kind == COLL ? "coll_perf" : "p2p_perf";
    int64_t begun = e->kernel_timed && e->kernel_us > 0 ? e->kernel_us
                                                        : e->start_us;

    if (e->kind == NOTHING)
        return 0;
    if (e->kind == STATS)
        return stats_record(e, r);
    if (!e->id.len)
        return ep_error_set(err, EP_EFORMAT, "%s without id", what);
    if (!e->op.len)
        return ep_error_set(err, EP_EFORMAT, "%s without operation", what);
    if (e->dur < 0)
        return ep_error_set(err, EP_EFORMAT, "%s without exec_time_us", what);
    ep_record_begin(r, e->kind == COLL ? EP_COLL : EP_P2P);
    if (begun > 0)
        ep_record_set_num(r, EP_K_TS, (double)begun / 1e6);
    set_where(r, e);
    ep_record_set_span(r, EP_K_OP, e->op);
    ep_record_set_span(r, EP_K_COMM, e->id);
    set_whole(r, EP_K_COMM_RANK, e->rank);
    if (e->kind == COLL && e->nranks > 0)
        ep_record_set_int(r, EP_K_NRANKS, e->nranks);
    if (e->kind == P2P)
        set_whole(r, EP_K_PEER, e->peer);
    set_whole(r, EP_K_SEQ, e->seq);
    set_whole(r, EP_K_BYTES, e->bytes);
    ep_record_set_num(r, EP_K_DUR, e->dur);
    return 1;
}

/* ==== Lines ==== */

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

static void trim(struct inspector *self)
{
    while (self->rest.len && is_space(*self->rest.ptr)) {
        self->rest.ptr++;
        self->rest.len--;
    }
}

/*
 * A copy of rest in which numbers that are not finite, outside of strings,
 * have become 0 (their values are of no interest). Returns whether there were
 * any.
 */
static bool mend(struct inspector *self)
{
    static const char *const words[] = {":inf", ":-inf", ":nan", ":-nan"};
    struct ep_cursor c;
    bool inside = false, found = false;
    char *text;

    if (self->mended)
        return false;
    ep_buf_reset(&self->mended_line);
    (void)ep_buf_reserve(&self->mended_line, self->rest.len + EP_LINE_PAD);
    ep_buf_add(&self->mended_line, self->rest.ptr, self->rest.len);
    text = self->mended_line.ptr;
    memset(text + self->rest.len, 0, EP_LINE_PAD);
    c = (struct ep_cursor){text, text + self->rest.len};
    while (c.p < c.end) {
        const char *from = c.p;

        if (*c.p == '"')
            inside = !inside;
        c.p += inside && *c.p == '\\' && c.end - c.p > 1 ? 2 : 1;
        if (inside || *from != ':')
            continue;
        c.p = from;
        for (size_t i = 0; i < 4 && c.p == from; i++)
            (void)ep_cursor_lit(&c, words[i]);
        if (c.p == from) {
            c.p++;
            continue;
        }
        memset(text + (from - text) + 1, ' ', (size_t)(c.p - from) - 1);
        text[from - text + 1] = '0';
        found = true;
    }
    if (!found)
        return false;
    self->rest = (struct ep_span){text, self->rest.len};
    self->pad = EP_LINE_PAD;
    self->mended = true;
    return true;
}

/* rest begins with something that is no object: go to the next one, if any. */
static void resume(struct inspector *self)
{
    const char *p = self->rest.ptr;
    const char *next =
        self->rest.len
            ? memmem(p + 1, self->rest.len - 1, OBJECT, sizeof OBJECT - 1)
            : NULL;

    if (next) {
        self->rest.len -= (size_t)(next - p);
        self->rest.ptr = next;
    } else {
        self->rest.len = 0;
    }
}

/* The next object of the line: 1, 0 if it is none of interest, or an error. */
static int take_object(struct inspector *self, struct ep_record *r,
                       struct ep_error *err)
{
    struct entry e;
    size_t used = 0;
    int rc = read_object(self, &e, &used, err);

    if (rc < 0 && mend(self))
        rc = read_object(self, &e, &used, err);
    if (rc < 0) {
        resume(self);
        return rc;
    }
    self->rest.ptr += used;
    self->rest.len -= used;
    trim(self);
    return to_record(&e, r, err);
}

static int next(void *ctx, struct ep_source *s, struct ep_record *r,
                struct ep_error *err)
{
    struct inspector *self = ctx;
    int rc;

    do {
        if (!self->rest.len) {
            rc = ep_source_line(s, err);
            if (rc <= 0)
                return rc;
            self->rest = (struct ep_span){s->line.ptr, s->line.len};
            self->pad = EP_LINE_PAD;
            self->mended = false;
            trim(self);
        }
        rc = self->rest.len ? take_object(self, r, err) : 0;
    } while (rc == 0);
    return rc;
}

static void *begin(struct ep_source *s)
{
    struct inspector *self = ep_calloc(1, sizeof *self);

    (void)s;
    ep_buf_init(&self->mended_line);
    ep_buf_init(&self->text);
    return self;
}

static void end(void *ctx)
{
    struct inspector *self = ctx;

    ep_buf_free(&self->mended_line);
    ep_buf_free(&self->text);
    free(self);
}

/* {"header":{"id": at the start of a line, white space allowed. */
static bool begins_entry(const char *p, const char *end_of_head)
{
    static const char *const parts[] = {"{", "\"header\"", ":", "{", "\"id\"",
                                        ":"};
    struct ep_cursor c = {p, end_of_head};

    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        ep_cursor_blanks(&c);
        if (!ep_cursor_lit(&c, parts[i]))
            return false;
    }
    return true;
}

static int sniff(const char *head, size_t len, const char *name)
{
    const char *p = head, *end_of_head = head + len;

    (void)name;
    while (p < end_of_head) {
        const char *nl;

        if (begins_entry(p, end_of_head))
            return 95;
        nl = memchr(p, '\n', (size_t)(end_of_head - p));
        if (!nl)
            break;
        p = nl + 1;
    }
    return 0;
}

const struct ep_importer ep_import_inspector = {
    .name = "inspector",
    .what = "NCCL Inspector, JSON lines",
    .sniff = sniff,
    .begin = begin,
    .next = next,
    .end = end,
};
