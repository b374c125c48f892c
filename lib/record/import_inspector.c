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
 */
#include "config.h"

#include "base/mem.h"
#include "record/importers.h"
#include "record/inspector_entry.h"

#include <stdlib.h>
#include <string.h>

#define OBJECT "{\"header\""

struct inspector {
    struct ep_span rest; /* of the line: to be read yet */
    size_t pad;          /* bytes behind rest that may be loaded */
    bool mend_tried;     /* on this line */
    struct ep_buf mended_line;
    struct ep_inspector_reader *reader;
};

/* ==== Records ==== */

static void set_whole(struct ep_record *r, enum ep_key k, int64_t v)
{
    if (v >= 0)
        ep_record_set_int(r, k, v);
}

static void set_where(struct ep_record *r, const struct ep_inspector_entry *e)
{
    if (e->host.len)
        ep_record_set_span(r, EP_K_HOST, e->host);
    set_whole(r, EP_K_PID, e->pid);
}

/* 1, or 0 if there is nothing to tell. */
static int stats_record(const struct ep_inspector_entry *e, struct ep_record *r)
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
static int to_record(const struct ep_inspector_entry *e, struct ep_record *r,
                     struct ep_error *err)
{
    const char *what = e->kind == EP_INSPECTOR_COLL ? "coll_perf" : "p2p_perf";
    int64_t begun =
        e->kernel_timed && e->kernel_us > 0 ? e->kernel_us : e->start_us;

    if (e->kind == EP_INSPECTOR_NOTHING)
        return 0;
    if (e->kind == EP_INSPECTOR_STATS)
        return stats_record(e, r);
    if (!e->id.len)
        return ep_error_set(err, EP_EFORMAT, "%s without id", what);
    if (!e->op.len)
        return ep_error_set(err, EP_EFORMAT, "%s without operation", what);
    if (e->dur < 0)
        return ep_error_set(err, EP_EFORMAT, "%s without exec_time_us", what);
    ep_record_begin(r, e->kind == EP_INSPECTOR_COLL ? EP_COLL : EP_P2P);
    if (begun > 0)
        ep_record_set_num(r, EP_K_TS, (double)begun / 1e6);
    set_where(r, e);
    ep_record_set_span(r, EP_K_OP, e->op);
    ep_record_set_span(r, EP_K_COMM, e->id);
    set_whole(r, EP_K_COMM_RANK, e->rank);
    if (e->kind == EP_INSPECTOR_COLL && e->nranks > 0)
        ep_record_set_int(r, EP_K_NRANKS, e->nranks);
    if (e->kind == EP_INSPECTOR_P2P)
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

    if (self->mend_tried)
        return false;
    self->mend_tried = true;
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
    return true;
}

/* rest begins with something that is no object: go to the next one, if any. */
static void resume(struct inspector *self)
{
    const char *p = self->rest.ptr;
    const char *next = self->rest.len ? memmem(p + 1, self->rest.len - 1,
                                               OBJECT, sizeof OBJECT - 1)
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
    struct ep_inspector_entry e;
    long used = ep_inspector_read(self->reader, self->rest, self->pad, &e, err);

    if (used < 0 && mend(self))
        used = ep_inspector_read(self->reader, self->rest, self->pad, &e, err);
    if (used < 0) {
        resume(self);
        return (int)used;
    }
    self->rest.ptr += used;
    self->rest.len -= (size_t)used;
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
            self->mend_tried = false;
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
    self->reader = ep_inspector_reader_new();
    return self;
}

static void end(void *ctx)
{
    struct inspector *self = ctx;

    ep_buf_free(&self->mended_line);
    ep_inspector_reader_free(self->reader);
    free(self);
}

/* {"header":{"id": at the start of a line, white space allowed. */
static bool begins_entry(const char *p, const char *end_of_head)
{
    static const char *const parts[] = {"{", "\"header\"", ":",
                                        "{", "\"id\"",     ":"};
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
