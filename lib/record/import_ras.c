/* SPDX-License-Identifier: Apache-2.0 */
/*
 * import_ras.c - the reports of NCCL RAS (2.24 and later): gauges of what each
 * rank has launched, and events for ranks and processes that are missing.
 *
 * Three forms come from ncclras(1) or its socket, and all may be in one input:
 * the JSON document of -f json, which is spread over lines; the text report;
 * and the lines or documents of the monitor, -m. A '{' at the beginning of a
 * line begins a document.
 *
 * Neither form says a global rank: a rank here is one in the communicator. A
 * host is an address. Times are local and without a zone (JSON, monitor), or
 * not there at all (text): then the record has that of the line's prefix, or
 * the time at which the file was written last. That a rank is missing is known since the time of the report
 * only; the eid is made of the rank, so that repeated reports tell the same.
 *
 * A rank that answers but has left the communicator (as at its end) is no
 * missing rank but a gauge, nccl_comm_left.
 */
#include "config.h"

#include "record/import_ras_impl.h"

#include "base/mem.h"
#include "record/importers.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void ep_ras_set(struct ep_ras_text *t, struct ep_span s)
{
    t->len = s.len < EP_RAS_TEXT ? s.len : EP_RAS_TEXT;
    if (t->len)
        memcpy(t->s, s.ptr, t->len);
    if (memchr(t->s, '\0', t->len))
        t->len = 0;
}

void ep_ras_clear(struct ep_ras_subject *s)
{
    s->host.len = s->details.len = 0;
    s->pid = s->comm_rank = s->gpu_index = -1;
    s->counts = 0;
    s->init_state = s->async_error = 0;
    s->aborted = s->gone = false;
    s->lost = EP_RAS_PRESENT;
}

/* ==== Records out ==== */

static struct ep_span span_of(const struct ep_ras_text *t)
{
    return (struct ep_span){t->s, t->len};
}

static void set_where(const struct ep_ras *self, struct ep_record *r)
{
    const struct ep_ras_subject *s = &self->subject;

    ep_record_set_num(r, EP_K_TS, self->ts);
    if (s->host.len)
        ep_record_set_span(r, EP_K_HOST, span_of(&s->host));
    if (s->pid >= 0)
        ep_record_set_int(r, EP_K_PID, s->pid);
    if (s->gpu_index >= 0)
        ep_record_set_int(r, EP_K_GPU_INDEX, s->gpu_index);
    if (self->comm.len) {
        ep_record_set_span(r, EP_K_COMM, span_of(&self->comm));
        if (self->size > 0)
            ep_record_set_int(r, EP_K_NRANKS, self->size);
        if (s->comm_rank >= 0)
            ep_record_set_int(r, EP_K_COMM_RANK, s->comm_rank);
    }
}

static void gauge(struct ep_ras *self, const char *name, int64_t value,
                  struct ep_record *r)
{
    ep_record_begin(r, EP_GAUGE);
    set_where(self, r);
    ep_record_set_str(r, EP_K_NAME, name);
    ep_record_set_int(r, EP_K_VALUE, value);
    ep_record_set_str(r, EP_K_UNIT, "1");
}

static void count_gauge(struct ep_ras *self, int i, struct ep_record *r)
{
    const struct ep_ras_subject *s = &self->subject;
    struct ep_span op = span_of(&s->count[i].op);

    (void)snprintf(self->name, sizeof self->name, "nccl_collectives%s%.*s",
                   op.len ? "_" : "", (int)op.len, op.ptr);
    gauge(self, self->name, s->count[i].value, r);
}

static const char *evidence(struct ep_ras *self)
{
    const struct ep_ras_subject *s = &self->subject;
    const char *what = s->lost == EP_RAS_DEAD    ? "considered dead by NCCL RAS"
                       : s->lost == EP_RAS_AGAIN ? "answers NCCL RAS again"
                                                 : "does not answer NCCL RAS";

    (void)snprintf(self->evidence, sizeof self->evidence, "%s%s%.*s", what,
                   s->details.len ? ": " : "", (int)s->details.len,
                   s->details.s);
    return self->evidence;
}

/* A rank by its communicator if that is known, else by its process. */
static void event(struct ep_ras *self, struct ep_record *r)
{
    const struct ep_ras_subject *s = &self->subject;
    bool ranked = self->comm.len && s->comm_rank >= 0;
    bool named = ranked || (s->host.len && s->pid >= 0);

    if (ranked)
        (void)snprintf(self->id, sizeof self->id, "comm=%.*s,comm_rank=%lld",
                       (int)self->comm.len, self->comm.s,
                       (long long)s->comm_rank);
    else
        (void)snprintf(self->id, sizeof self->id, "host=%.*s,pid=%lld",
                       (int)s->host.len, s->host.s, (long long)s->pid);
    (void)snprintf(self->eid, sizeof self->eid, "ras/%s",
                   named ? self->id : "job");
    ep_record_begin(r, EP_EVENT);
    set_where(self, r);
    ep_record_set_str(r, EP_K_EID, self->eid);
    ep_record_set_str(r, EP_K_KIND,
                      s->lost == EP_RAS_AGAIN ? "relief" : "missing");
    ep_record_set_str(r, EP_K_SCOPE, named ? "rank" : "job");
    if (named)
        ep_record_set_str(r, EP_K_ID, self->id);
    ep_record_set_num(r, EP_K_SINCE, self->ts);
    ep_record_set_str(r, EP_K_EVIDENCE, evidence(self));
}

/* What there is about the subject beside counts, by number. */
static bool tell_other(struct ep_ras *self, int i, struct ep_record *r)
{
    const struct ep_ras_subject *s = &self->subject;
    const struct {
        const char *name;
        int64_t value;
    } gauges[] = {
        {"nccl_init_state", s->init_state},
        {"nccl_async_error", s->async_error},
        {"nccl_comm_aborted", s->aborted},
        {"nccl_comm_left", s->gone},
    };

    if (i < 4) {
        if (gauges[i].value)
            gauge(self, gauges[i].name, gauges[i].value, r);
        return gauges[i].value != 0;
    }
    if (s->lost != EP_RAS_PRESENT)
        event(self, r);
    return s->lost != EP_RAS_PRESENT;
}

/* The next record about the subject; false if all are out. */
static bool tell(struct ep_ras *self, struct ep_record *r)
{
    int counts = self->subject.counts;

    while (self->told >= 0 && self->told < counts + 5) {
        int what = self->told++;

        if (what < counts) {
            count_gauge(self, what, r);
            return true;
        }
        if (tell_other(self, what - counts, r))
            return true;
    }
    self->told = -1;
    return false;
}

/* ==== Lines in ==== */

/* The input is over: 1 if there is something to tell yet, 0, or an error. */
static int finish(struct ep_ras *self, struct ep_source *s,
                  struct ep_error *err)
{
    if (self->json.depth) {
        self->json.depth = 0;
        s->over = false; /* the input is fine, its last document is not */
        return ep_error_set(err, EP_ETRUNC, "the report ends early");
    }
    if (self->report.group) {
        self->at = self->end = "";
        return ep_ras_report(self);
    }
    return 0;
}

static int read_line(struct ep_ras *self, struct ep_source *s,
                     struct ep_error *err)
{
    struct ep_strip text;
    int rc = ep_source_line(s, err);
    double ts;

    if (rc < 0)
        self->json.depth = 0;
    if (rc <= 0)
        return rc;
    ep_strip(s->line.ptr, s->line.len, &self->scratch, &text);
    ts = ep_strip_when(&self->zone, &text);
    if (!isnan(ts))
        self->ts = ts;
    self->at = text.text.ptr;
    self->end = self->at + text.text.len;
    return 1;
}

static int next(void *ctx, struct ep_source *s, struct ep_record *r,
                struct ep_error *err)
{
    struct ep_ras *self = ctx;
    int rc;

    while (!tell(self, r)) {
        if (!self->at) {
            rc = read_line(self, s, err);
            if (rc < 0)
                return rc;
            if (rc == 0) {
                rc = finish(self, s, err);
                if (rc <= 0)
                    return rc;
                continue;
            }
        }
        if (self->json.depth ||
            (!self->report.missing && self->at < self->end && *self->at == '{'))
            rc = ep_ras_json(self, err);
        else
            rc = ep_ras_report(self);
        if (rc < 0)
            return rc;
    }
    return 1;
}

static void *begin(struct ep_source *s)
{
    struct ep_ras *self = ep_calloc(1, sizeof *self);

    ep_buf_init(&self->scratch);
    ep_buf_init(&self->json.text);
    ep_ras_clear(&self->subject);
    self->ts = self->zone.latest = s->mtime >= 0 ? s->mtime : 0;
    self->size = -1;
    self->told = -1;
    return self;
}

static void end(void *ctx)
{
    struct ep_ras *self = ctx;

    ep_buf_free(&self->scratch);
    ep_buf_free(&self->json.text);
    free(self);
}

static bool contains(const char *head, size_t len, const char *what)
{
    return memmem(head, len, what, strlen(what)) != NULL;
}

static int sniff(const char *head, size_t len, const char *name)
{
    (void)name;
    if (contains(head, len, "\"nccl_version\"") &&
        contains(head, len, "\"communicators"))
        return 96;
    if (contains(head, len, "\"group\"") && contains(head, len, "\"event\"") &&
        (contains(head, len, "\"LIFECYCLE\"") ||
         contains(head, len, "\"TRACE\"")))
        return 92;
    if (contains(head, len, "RAS Monitor Mode") ||
        contains(head, len, "\nCommunicators...") ||
        (contains(head, len, "Job summary\n=====") &&
         contains(head, len, "NCCL version")))
        return 92;
    if (contains(head, len, "] PEER_DEAD: Process ") ||
        contains(head, len, " ranks have launched up to operation ") ||
        contains(head, len, " operation counts\n"))
        return 80;
    return 0;
}

const struct ep_importer ep_import_ras = {
    .name = "ras",
    .what = "NCCL RAS: reports and monitor, JSON and text",
    .sniff = sniff,
    .begin = begin,
    .next = next,
    .end = end,
};
