/* SPDX-License-Identifier: Apache-2.0 */
/*
 * import_ras_text.c - the report of RAS for people, and the monitor's lines.
 *
 * A report is read for its lists, which stand under headings:
 *
 *     #0-0 (27a079b828ff1a75) MISMATCH
 *       Communicator ranks have different AllReduce operation counts
 *       26 ranks have launched up to operation 6650
 *       6 ranks have launched up to operation 6649
 *       Rank 0 -- GPU 0 managed by process 483072 on node 172.16.64.210
 *
 * Only the smaller groups are listed rank by rank. The others are told as one
 * gauge of the communicator, without a rank: it is what the listed ranks are to
 * be compared with.
 */
#include "config.h"

#include "record/import_ras_impl.h"

#include <string.h>

/* ncclResult_t by the text that RAS has for it. */
static int64_t error_code(struct ep_span text)
{
    static const char *const names[] = {
        "",
        "Unhandled CUDA error",
        "System error",
        "Internal error",
        "Invalid argument",
        "Invalid usage",
        "Remote process error",
        "NCCL operation in progress",
    };

    for (int i = 1; i < 8; i++)
        if (ep_span_eq(text, names[i]))
            return i;
    return 0;
}

/* What is before the next " -- " or the end. */
static struct ep_span before_dashes(const struct ep_cursor *c)
{
    struct ep_cursor at = *c;

    if (ep_cursor_find(&at, " -- "))
        return (struct ep_span){c->p, (size_t)(at.p - 4 - c->p)};
    return (struct ep_span){c->p, (size_t)(c->end - c->p)};
}

/* "GPU 3 (NVML 5)" or "GPUs 0,1 (NVML 2,3)": the index on the host if it is
 * one. */
static void take_gpu(struct ep_cursor *c, struct ep_ras_subject *s)
{
    int64_t index = -1, other;

    if (!ep_cursor_lit(c, "GPU ") && !ep_cursor_lit(c, "GPUs "))
        return;
    (void)ep_cursor_uint(c, &index);
    if (ep_cursor_lit(c, ","))
        (void)ep_cursor_word(c);
    else
        s->gpu_index = index;
    if (ep_cursor_lit(c, " (NVML ")) {
        if (s->gpu_index >= 0 && ep_cursor_uint(c, &other))
            s->gpu_index = other;
        (void)ep_cursor_find(c, ")");
    }
}

/* "Rank 0 -- GPU 0 managed by process 77 on node 10.0.0.1": from the dashes. */
static void take_place(struct ep_cursor *c, struct ep_ras_subject *s)
{
    if (!ep_cursor_find(c, " -- "))
        return;
    take_gpu(c, s);
    if (!ep_cursor_find(c, "managed by process ") ||
        !ep_cursor_uint(c, &s->pid))
        return;
    if (ep_cursor_lit(c, " on node "))
        ep_ras_set(&s->host, ep_nccl_host(ep_cursor_word(c)));
}

/* ==== Headings ==== */

/* "#0-1 (27a079b828ff1a75) MISMATCH" */
static void take_heading(struct ep_ras *self, struct ep_cursor *c)
{
    struct ep_ras_report *rep = &self->report;
    char buf[EP_NCCL_COMM_MAX];
    uint64_t hash;

    rep->section = EP_RAS_OTHER;
    self->comm.len = 0;
    self->size = -1;
    if (!ep_cursor_find(c, " (") || !ep_cursor_hex(c, &hash) ||
        !ep_cursor_lit(c, ") "))
        return;
    ep_ras_set(&self->comm, ep_nccl_comm(hash, buf));
    if (ep_cursor_lit(c, "INCOMPLETE"))
        rep->section = EP_RAS_RANKS_SILENT;
}

/* A line in column 0, which is a heading if anything. */
static void take_title(struct ep_ras *self, struct ep_cursor *c)
{
    struct ep_ras_report *rep = &self->report;

    if (ep_cursor_lit(c, "#")) {
        take_heading(self, c);
        return;
    }
    rep->section = EP_RAS_OTHER;
    self->comm.len = 0;
    if (ep_cursor_lit(c, "INCOMPLETE"))
        rep->section = EP_RAS_PROCESSES_SILENT;
    else if (ep_cursor_lit(c, "DEAD"))
        rep->section = EP_RAS_PROCESSES_DEAD;
}

/* "Communicator ranks have different AllReduce operation counts", ... */
static void take_subtitle(struct ep_ras *self, struct ep_cursor *c)
{
    struct ep_ras_report *rep = &self->report;
    char buf[EP_NCCL_OP_MAX];

    if (ep_cursor_lit(c, "Communicator ranks have different ")) {
        struct ep_span what = ep_cursor_word(c);

        rep->section = EP_RAS_RANKS_STATUS;
        rep->status.len = 0;
        if (!EP_SPAN_IS(what, "status")) {
            rep->section = EP_RAS_RANKS_COUNT;
            /* 2.24: "different collective operation counts" */
            ep_ras_set(&rep->op, EP_SPAN_IS(what, "collective")
                                     ? (struct ep_span){NULL, 0}
                                     : ep_nccl_op(what, buf));
        }
    } else if (ep_cursor_lit(c, "Initialization error"))
        rep->section = EP_RAS_RANKS_INIT_ERROR;
    else if (ep_cursor_lit(c, "Asynchronous error"))
        rep->section = EP_RAS_RANKS_ASYNC_ERROR;
    else
        return;
    rep->value = 0;
}

/* ==== Groups and ranks ==== */

/*
 * What a group of ranks, or one, has in common, into value and status: "has
 * launched up to operation 6649", "have status ABORT", "reported Internal
 * error". False if it is nothing of the kind.
 */
static bool take_state(struct ep_ras *self, struct ep_cursor *c)
{
    struct ep_ras_report *rep = &self->report;

    rep->status.len = 0;
    if (ep_cursor_lit(c, "ha") &&
        (ep_cursor_lit(c, "s ") || ep_cursor_lit(c, "ve "))) {
        if (ep_cursor_lit(c, "launched up to operation "))
            return ep_cursor_uint(c, &rep->value);
        rep->value = 0;
        if (ep_cursor_lit(c, "status "))
            ep_ras_set(&rep->status, ep_cursor_word(c));
        return rep->status.len || ep_cursor_lit(c, "not launched any");
    }
    if (!ep_cursor_lit(c, "reported "))
        return false;
    rep->value = error_code(before_dashes(c));
    return true;
}

/* "26 ranks have launched up to operation 6650" */
static bool take_group(struct ep_ras *self, struct ep_cursor *c)
{
    int64_t n;

    if (!ep_cursor_uint(c, &n) || !ep_cursor_lit(c, " ranks "))
        return false;
    if (take_state(self, c))
        self->report.group = self->report.section == EP_RAS_RANKS_COUNT;
    return true;
}

/* The state that was read, of the section, as the subject's. */
static bool apply_state(struct ep_ras *self)
{
    struct ep_ras_subject *s = &self->subject;
    const struct ep_ras_report *rep = &self->report;
    struct ep_span status = {rep->status.s, rep->status.len};

    switch (rep->section) {
    case EP_RAS_RANKS_SILENT:
        s->lost = EP_RAS_SILENT;
        return true;
    case EP_RAS_RANKS_COUNT:
        s->counts = 1;
        s->count[0].op = rep->op;
        s->count[0].value = rep->value;
        return true;
    case EP_RAS_RANKS_STATUS:
        s->aborted = EP_SPAN_IS(status, "ABORT");
        s->gone = EP_SPAN_IS(status, "NOCOMM");
        return s->aborted || s->gone;
    case EP_RAS_RANKS_INIT_ERROR:
        s->init_state = rep->value;
        return rep->value != 0;
    case EP_RAS_RANKS_ASYNC_ERROR:
        s->async_error = rep->value;
        return rep->value != 0;
    default:
        return false;
    }
}

/* "Rank 3 has launched up to operation 12 -- GPU ..." behind "Rank ". */
static int take_rank(struct ep_ras *self, struct ep_cursor *c)
{
    struct ep_ras_subject *s = &self->subject;

    ep_ras_clear(s);
    if (!self->comm.len || !ep_cursor_uint(c, &s->comm_rank))
        return 0;
    self->report.group = false;
    if (ep_cursor_lit(c, " ")) {
        struct ep_cursor dashes = *c;

        if (!ep_cursor_lit(&dashes, "-- ") && !take_state(self, c))
            return 0;
        c->p -= c->p > self->at; /* the blank before the dashes */
    }
    take_place(c, s);
    if (!apply_state(self))
        return 0;
    self->told = 0;
    return 1;
}

/* ==== Processes ==== */

/* "Process 77 on node 10.0.0.1 managing GPU 5" behind "Process ". */
static bool take_process(struct ep_ras *self, struct ep_cursor *c)
{
    struct ep_ras_subject *s = &self->subject;

    if (!ep_cursor_uint(c, &s->pid) || !ep_cursor_lit(c, " on node "))
        return false;
    ep_ras_set(&s->host, ep_nccl_host(ep_cursor_word(c)));
    if (ep_cursor_lit(c, " managing "))
        take_gpu(c, s);
    return true;
}

/* "[2025-12-19 13:07:07] PEER_DEAD: Process ..." behind the bracket. */
static int take_event(struct ep_ras *self, struct ep_cursor *c)
{
    struct ep_ras_subject *s = &self->subject;
    struct ep_span event;
    double ts;
    size_t n = ep_strip_time(&self->zone, c->p, (size_t)(c->end - c->p), &ts);

    c->p += n;
    if (!n || !ep_cursor_lit(c, "] "))
        return 0;
    event = ep_cursor_word(c);
    ep_ras_clear(s);
    if (EP_SPAN_IS(event, "PEER_DEAD:"))
        s->lost = EP_RAS_DEAD;
    else if (EP_SPAN_IS(event, "PEER_UNRESPONSIVE:"))
        s->lost = EP_RAS_SILENT;
    else if (EP_SPAN_IS(event, "PEER_RECOVERED:"))
        s->lost = EP_RAS_AGAIN;
    else
        return 0;
    self->comm.len = 0;
    if (!ep_cursor_lit(c, " Process ") || !take_process(self, c))
        return 0;
    ep_cursor_blanks(c);
    ep_ras_set(&s->details, (struct ep_span){c->p, (size_t)(c->end - c->p)});
    self->ts = ts;
    self->told = 0;
    return 1;
}

/* ==== Lines ==== */

/* The group that was read last is not listed rank by rank: tell it as one. */
static int tell_group(struct ep_ras *self)
{
    self->report.group = false;
    ep_ras_clear(&self->subject);
    if (!self->comm.len || !apply_state(self))
        return 0;
    self->told = 0;
    return 1;
}

/* "The missing ranks: 21,22": one at a time; at stays at the line until all
 * are told. Returns as ep_ras_report. */
static int take_missing(struct ep_ras *self, struct ep_cursor *c)
{
    struct ep_ras_subject *s = &self->subject;

    ep_ras_clear(s);
    ep_cursor_blanks(c);
    (void)ep_cursor_lit(c, ",");
    ep_cursor_blanks(c);
    if (!self->comm.len || !ep_cursor_uint(c, &s->comm_rank)) {
        self->report.missing = 0;
        self->at = NULL;
        return 0;
    }
    self->at = c->p;
    self->report.missing = 1;
    s->lost = EP_RAS_SILENT;
    self->told = 0;
    return 1;
}

/* An indented line. */
static int take_item(struct ep_ras *self, struct ep_cursor *c)
{
    struct ep_ras_subject *s = &self->subject;

    if (ep_cursor_lit(c, "Rank "))
        return take_rank(self, c);
    if (ep_cursor_lit(c, "Process ")) {
        ep_ras_clear(s);
        s->lost = self->report.section == EP_RAS_PROCESSES_DEAD ? EP_RAS_DEAD
                  : self->report.section == EP_RAS_PROCESSES_SILENT
                      ? EP_RAS_SILENT
                      : EP_RAS_PRESENT;
        if (s->lost == EP_RAS_PRESENT || !take_process(self, c))
            return 0;
        self->told = 0;
        return 1;
    }
    if (!take_group(self, c))
        take_subtitle(self, c);
    return 0;
}

/* "Rank 0 -- ": one of the group that was announced. */
static bool is_listed(struct ep_cursor c)
{
    int64_t rank;

    return ep_cursor_lit(&c, "Rank ") && ep_cursor_uint(&c, &rank) &&
           ep_cursor_lit(&c, " -- ");
}

int ep_ras_report(struct ep_ras *self)
{
    struct ep_cursor c = {self->at, self->end};
    int rc = 0;

    if (self->report.missing)
        return take_missing(self, &c);
    ep_cursor_blanks(&c);
    if (self->report.group && !is_listed(c))
        return tell_group(self); /* then this line again */
    if (ep_cursor_lit(&c, "The missing rank") && ep_cursor_find(&c, ":"))
        return take_missing(self, &c);
    if (ep_cursor_lit(&c, "["))
        rc = take_event(self, &c);
    else if (c.p > self->at)
        rc = take_item(self, &c);
    else if (c.p < c.end)
        take_title(self, &c);
    self->at = NULL;
    return rc;
}
