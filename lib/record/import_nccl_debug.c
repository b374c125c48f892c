/* SPDX-License-Identifier: Apache-2.0 */
/*
 * import_nccl_debug.c - logs written with NCCL_DEBUG=INFO or WARN: gauges of
 * communicators, of calls and of warnings.
 *
 *     n1:4711:4780 [3] NCCL INFO ncclCommInitRank comm 0x55d7 rank 3 nranks 8
 *         cudaDev 3 nvmlDev 3 busId 9d000 commId 0x5c1f - Init COMPLETE
 *     n1:4711:4780 [3] NCCL INFO AllReduce: opCount 1f sendbuff 0x7f recvbuff
 *         0x7f count 25 datatype 7 op 0 root 0 comm 0x55d7 [nranks=8] stream 0x
 *     [2026-04-14 21:28:19] n1:4711:4780 [3] proxy.cc:363 NCCL WARN text
 *
 * A call is written when it is enqueued and never when it has ended, so it has
 * no duration and cannot be a coll record: it becomes a gauge (nccl_op_count)
 * with the keys of one. A gauge needs a time. Only warnings have one by
 * default; the others have if NCCL_DEBUG_TIMESTAMP_LEVELS, the container
 * runtime or syslog adds it. A call or warning without is left out. That a communicator
 * exists is a fact that holds for the whole log: without a time of its own it
 * gets the one at which the log was written last.
 *
 * "comm 0x55d7" is an address in one process. The commId, which is the same in
 * all, is in the line that made the communicator, so addresses are remembered.
 *
 * [1] NVIDIA/nccl: src/init.cc, src/enqueue.cc.
 */
#include "config.h"

#include "base/fp.h"
#include "base/intern.h"
#include "base/mem.h"
#include "record/importers.h"
#include "record/nccl_message.h"
#include "record/nccl_text.h"
#include "record/strip.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Processes and communicators that are remembered, at most. */
#define PROCESSES_MAX 1048576
#define COMMS_MAX 262144

#define ID_MAX 64 /* of a communicator */

/* A communicator in one process, by its address there. */
struct comm {
    char id[ID_MAX], gpu[20]; /* "" where not known */
    int64_t rank, nranks, gpu_index;
};

struct debug {
    struct ep_nccl_messages messages;
    bool in_line; /* there may be more messages in the line */
    struct ep_buf scratch;
    struct ep_strip prefix;
    struct ep_intern *processes; /* "host:pid" */
    size_t warnings_cap;
    uint64_t *warnings;          /* by process */
    struct ep_intern *addresses; /* "host:pid:address" */
    size_t comms_cap;
    struct comm *comms; /* by address */
    struct ep_buf key;
    double mtime;
    char op[EP_NCCL_OP_MAX], gpu[20], id[ID_MAX];
};

/* ==== What was said before ==== */

/* "host:pid", and ":address" if there is one, in self->key. */
static struct ep_span key_of(struct debug *self,
                             const struct ep_nccl_message *m, uint64_t address)
{
    ep_buf_reset(&self->key);
    ep_buf_add(&self->key, m->host.ptr, m->host.len);
    ep_buf_add(&self->key, &m->pid, sizeof m->pid);
    if (address)
        ep_buf_add(&self->key, &address, sizeof address);
    return (struct ep_span){self->key.ptr, self->key.len};
}

/* The communicator at an address of a process; NULL if there is none. */
static struct comm *find_comm(struct debug *self,
                              const struct ep_nccl_message *m, uint64_t address)
{
    long i = ep_intern_add(self->addresses, key_of(self, m, address), 0);

    return i >= 0 ? &self->comms[i] : NULL;
}

static void keep_comm(struct debug *self, const struct ep_nccl_message *m,
                      uint64_t address, const struct comm *comm)
{
    long i =
        ep_intern_add(self->addresses, key_of(self, m, address), COMMS_MAX);

    if (i < 0)
        return;
    self->comms = ep_grow(self->comms, &self->comms_cap, (size_t)i + 1,
                          sizeof *self->comms);
    self->comms[i] = *comm;
}

/* One more warning of a process: how many, or 0 if there are too many
 * processes. */
static uint64_t count_warning(struct debug *self,
                              const struct ep_nccl_message *m)
{
    long i = ep_intern_add(self->processes, key_of(self, m, 0), PROCESSES_MAX);
    size_t had = self->warnings_cap;

    if (i < 0)
        return 0;
    self->warnings = ep_grow(self->warnings, &self->warnings_cap, (size_t)i + 1,
                             sizeof *self->warnings);
    if (self->warnings_cap > had)
        memset(self->warnings + had, 0,
               (self->warnings_cap - had) * sizeof *self->warnings);
    return ++self->warnings[i];
}

/* ==== Records ==== */

static void begin_gauge(struct debug *self, const struct ep_nccl_message *m,
                        double ts, struct ep_record *r)
{
    struct ep_span host = ep_nccl_host(m->host);

    ep_record_begin(r, EP_GAUGE);
    ep_record_set_num(r, EP_K_TS, ts);
    if (host.len)
        ep_record_set_span(r, EP_K_HOST, host);
    ep_record_set_int(r, EP_K_PID, m->pid);
    /* a prefix belongs to the process that began the line */
    if (self->prefix.rank >= 0 && m->begin == self->prefix.text.ptr)
        ep_record_set_int(r, EP_K_RANK, self->prefix.rank);
    ep_record_set_str(r, EP_K_UNIT, "1");
}

/* What is known of a communicator; the strings must outlive the record. */
static void set_comm(struct debug *self, const struct comm *comm,
                     struct ep_record *r)
{
    memcpy(self->gpu, comm->gpu, sizeof self->gpu);
    memcpy(self->id, comm->id, sizeof self->id);
    if (self->gpu[0])
        ep_record_set_str(r, EP_K_GPU, self->gpu);
    if (self->id[0])
        ep_record_set_str(r, EP_K_COMM, self->id);
    if (comm->gpu_index >= 0)
        ep_record_set_int(r, EP_K_GPU_INDEX, comm->gpu_index);
    ep_record_set_int(r, EP_K_COMM_RANK, comm->rank);
    ep_record_set_int(r, EP_K_NRANKS, comm->nranks);
}

/* When a message was written: as it says itself, or the line's prefix. */
static double time_of(struct debug *self, const struct ep_nccl_message *m)
{
    return isnan(m->ts) ? ep_strip_when(&self->messages.zone, &self->prefix)
                        : m->ts;
}

static double time_of_fact(struct debug *self, const struct ep_nccl_message *m)
{
    double ts = time_of(self, m);

    return isnan(ts) ? self->mtime : ts;
}

/* ---- communicators ---- */

struct made {
    uint64_t address, parent, bus, id;
    int64_t children, color;
    bool has_bus, has_id, has_parent;
};

/* "comm 0x55d7 rank 3 nranks 8 ..." : the words that are names of numbers. */
static void read_made(struct ep_cursor *c, struct comm *comm, struct made *made)
{
    while (c->p < c->end) {
        struct ep_span word = ep_cursor_word(c);

        ep_cursor_blanks(c);
        if (EP_SPAN_IS(word, "comm"))
            (void)ep_cursor_hex(c, &made->address);
        else if (EP_SPAN_IS(word, "rank"))
            (void)ep_cursor_uint(c, &comm->rank);
        else if (EP_SPAN_IS(word, "nranks") || EP_SPAN_IS(word, "nRanks"))
            (void)ep_cursor_uint(c, &comm->nranks);
        else if (EP_SPAN_IS(word, "nvmlDev"))
            (void)ep_cursor_uint(c, &comm->gpu_index);
        else if (EP_SPAN_IS(word, "busId"))
            made->has_bus = ep_cursor_hex(c, &made->bus);
        else if (EP_SPAN_IS(word, "commId"))
            made->has_id = ep_cursor_hex(c, &made->id);
        else if (EP_SPAN_IS(word, "parent"))
            made->has_parent = ep_cursor_hex(c, &made->parent);
        else if (EP_SPAN_IS(word, "childCount") ||
                 EP_SPAN_IS(word, "splitCount"))
            (void)ep_cursor_uint(c, &made->children);
        else if (EP_SPAN_IS(word, "color"))
            (void)ep_cursor_uint(c, &made->color);
    }
}

/*
 * What names the communicator in all of its processes: its commId; or, if it
 * was split off, its parent's name, the how manieth child it is and the color.
 */
static void name_comm(struct debug *self, const struct ep_nccl_message *m,
                      const struct made *made, struct comm *comm)
{
    const struct comm *parent =
        made->has_parent ? find_comm(self, m, made->parent) : NULL;
    int n;

    if (made->has_id) {
        char buf[EP_NCCL_COMM_MAX];
        struct ep_span id = ep_nccl_comm(made->id, buf);

        (void)snprintf(comm->id, sizeof comm->id, "%.*s", (int)id.len, id.ptr);
    } else if (parent && parent->id[0] && made->children >= 0 &&
               made->color >= 0) {
        n = snprintf(comm->id, sizeof comm->id, "%.30s/%lld/%lld", parent->id,
                     (long long)made->children, (long long)made->color);
        if (n < 0 || n >= (int)sizeof comm->id || strlen(parent->id) > 30)
            comm->id[0] = '\0';
    }
}

/* 9d000 is domain 0, bus 9d, device 0, function 0. */
static void name_gpu(const struct made *made, struct comm *comm)
{
    if (made->has_bus && made->bus >> 36 == 0)
        (void)snprintf(
            comm->gpu, sizeof comm->gpu, "%04x:%02x:%02x.%x",
            (unsigned)(made->bus >> 20), (unsigned)(made->bus >> 12 & 0xff),
            (unsigned)(made->bus >> 4 & 0xff), (unsigned)(made->bus & 0xf));
}

static bool take_comm(struct debug *self, const struct ep_nccl_message *m,
                      struct ep_cursor c, struct ep_record *r)
{
    struct comm comm = {.rank = -1, .nranks = -1, .gpu_index = -1};
    struct made made = {.children = -1, .color = -1};

    read_made(&c, &comm, &made);
    if (comm.rank < 0 || comm.nranks <= comm.rank)
        return false;
    name_comm(self, m, &made, &comm);
    name_gpu(&made, &comm);
    if (made.address)
        keep_comm(self, m, made.address, &comm);
    begin_gauge(self, m, time_of_fact(self, m), r);
    set_comm(self, &comm, r);
    ep_record_set_str(r, EP_K_NAME, "nccl_comm_size");
    ep_record_set_int(r, EP_K_VALUE, comm.nranks);
    return true;
}

/* "- ncclCommInitRank: rank 0 nranks 8 total 1.45 (kernels 0.21, ..." */
static bool take_timings(struct debug *self, const struct ep_nccl_message *m,
                         struct ep_cursor c, struct ep_record *r)
{
    struct ep_fp_decimal total;
    int64_t rank, nranks;

    if (!ep_cursor_find(&c, "rank ") || !ep_cursor_uint(&c, &rank) ||
        !ep_cursor_lit(&c, " nranks ") || !ep_cursor_uint(&c, &nranks) ||
        !ep_cursor_lit(&c, " total ") || nranks <= rank)
        return false;
    /* a number that the line ends in may have been cut */
    c.p += ep_fp_scan(c.p, (size_t)(c.end - c.p), &total);
    if (c.p[-1] == ' ' || c.p == c.end || total.neg || total.cut)
        return false;
    begin_gauge(self, m, time_of_fact(self, m), r);
    ep_record_set_int(r, EP_K_COMM_RANK, rank);
    ep_record_set_int(r, EP_K_NRANKS, nranks);
    ep_record_set_str(r, EP_K_NAME, "nccl_init_time");
    ep_record_set_num(r, EP_K_VALUE, ep_fp_from_decimal(&total, c.p, 0));
    ep_record_set_str(r, EP_K_UNIT, "s");
    return ep_record_has(r, EP_K_VALUE);
}

/* ---- calls ---- */

struct call {
    int64_t count, datatype, root, nranks;
    uint64_t address;
};

/* "sendbuff 0x7f recvbuff 0x7f count 25 datatype 7 op 0 root 0 comm 0x55d7
 * [nranks=8] stream 0x0" */
static void read_call(struct ep_cursor *c, struct call *call)
{
    while (c->p < c->end) {
        struct ep_span word = ep_cursor_word(c);

        ep_cursor_blanks(c);
        if (EP_SPAN_IS(word, "count"))
            (void)ep_cursor_uint(c, &call->count);
        else if (EP_SPAN_IS(word, "datatype"))
            (void)ep_cursor_uint(c, &call->datatype);
        else if (EP_SPAN_IS(word, "root"))
            (void)ep_cursor_uint(c, &call->root);
        else if (EP_SPAN_IS(word, "comm"))
            (void)ep_cursor_hex(c, &call->address);
        if (ep_cursor_lit(c, "[nranks="))
            (void)ep_cursor_uint(c, &call->nranks);
    }
}

/* Bytes of ncclDataType_t, or 0. */
static int64_t size_of(int64_t datatype)
{
    static const unsigned char sizes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};

    return datatype >= 0 && datatype < (int64_t)sizeof sizes ? sizes[datatype]
                                                             : 0;
}

static void set_call(const struct call *call, struct ep_span op,
                     struct ep_record *r)
{
    int64_t size = size_of(call->datatype);

    if (call->nranks > 0)
        ep_record_set_int(r, EP_K_NRANKS, call->nranks);
    if (call->root >= 0 && (EP_SPAN_IS(op, "send") || EP_SPAN_IS(op, "recv")))
        ep_record_set_int(r, EP_K_PEER, call->root);
    if (size && call->count >= 0 && call->count < (INT64_C(1) << 53) / size)
        ep_record_set_int(r, EP_K_BYTES, call->count * size);
}

/* What is behind "opCount ". */
static bool take_call(struct debug *self, const struct ep_nccl_message *m,
                      struct ep_span name, struct ep_cursor c,
                      struct ep_record *r)
{
    struct call call = {-1, -1, -1, -1, 0};
    double ts = time_of(self, m);
    const struct comm *comm;
    struct ep_span op;
    uint64_t number;

    if (isnan(ts) || !ep_cursor_hex(&c, &number) || !ep_cursor_lit(&c, " ") ||
        number >= UINT64_C(1) << 53)
        return false;
    op = ep_nccl_op(name, self->op);
    while (m->cut && c.end > c.p && c.end[-1] != ' ')
        c.end--;
    read_call(&c, &call);
    if (!op.len || !call.address || call.count < 0)
        return false; /* cut */
    begin_gauge(self, m, ts, r);
    comm = find_comm(self, m, call.address);
    if (comm)
        set_comm(self, comm, r);
    set_call(&call, op, r);
    ep_record_set_span(r, EP_K_OP, op);
    ep_record_set_int(r, EP_K_SEQ, (int64_t)number);
    ep_record_set_str(r, EP_K_NAME, "nccl_op_count");
    ep_record_set_int(r, EP_K_VALUE, (int64_t)number);
    return true;
}

/* ---- warnings ---- */

static bool take_warning(struct debug *self, const struct ep_nccl_message *m,
                         struct ep_record *r)
{
    uint64_t n = count_warning(self, m);
    double ts = time_of(self, m);

    if (!n || isnan(ts))
        return false;
    begin_gauge(self, m, ts, r);
    ep_record_set_str(r, EP_K_NAME, "nccl_warnings");
    ep_record_set_int(r, EP_K_VALUE, (int64_t)n);
    if (m->text.len && !memchr(m->text.ptr, '\0', m->text.len))
        ep_record_set_span(r, EP_K_EVIDENCE, m->text);
    return true;
}

/* ==== Lines ==== */

static bool ends_with(struct ep_span s, const char *what)
{
    size_t n = strlen(what);

    while (s.len && (s.ptr[s.len - 1] == ' ' || s.ptr[s.len - 1] == '\r'))
        s.len--;
    return s.len >= n && memcmp(s.ptr + s.len - n, what, n) == 0;
}

/* The name of the operation if a message is a call, which *c is then behind;
 * else empty. */
static struct ep_span call_at(struct ep_cursor *c)
{
    const char *from = c->p, *p = from;

    while (p < c->end && p - from < EP_NCCL_OP_MAX && *p != ':' && *p != ' ')
        p++;
    c->p = p;
    if (p > from && ep_cursor_lit(c, ": opCount "))
        return (struct ep_span){from, (size_t)(p - from)};
    c->p = from;
    return (struct ep_span){from, 0};
}

static bool to_record(struct debug *self, const struct ep_nccl_message *m,
                      struct ep_record *r)
{
    struct ep_cursor c = {m->text.ptr, m->text.ptr + m->text.len};
    struct ep_span name;

    if (!m->host.len)
        return false;
    if (m->warn)
        return take_warning(self, m, r);
    name = call_at(&c);
    if (name.len)
        return take_call(self, m, name, c, r);
    if (ep_cursor_lit(&c, "Init timings"))
        return take_timings(self, m, c, r);
    if (ends_with(m->text, "Init COMPLETE"))
        return take_comm(self, m, c, r);
    return false;
}

/*
 * May there be something in a line? Most have one message, of no interest:
 * what is behind its mark tells.
 */
static bool is_candidate(const struct ep_line *line)
{
    const char *limit = line->ptr + line->len;
    struct ep_cursor c = {ep_nccl_mark(line->ptr, limit), limit};

    if (!c.p)
        return false;
    if (!ep_cursor_lit(&c, "INFO "))
        return true;
    return call_at(&c).len || ep_cursor_lit(&c, "Init timings") ||
           ends_with((struct ep_span){line->ptr, line->len}, "COMPLETE") ||
           ep_nccl_mark(c.p, limit) != NULL;
}

static int next(void *ctx, struct ep_source *s, struct ep_record *r,
                struct ep_error *err)
{
    struct debug *self = ctx;
    struct ep_nccl_message m;

    for (;;) {
        if (!self->in_line) {
            int rc = ep_source_line(s, err);

            if (rc <= 0)
                return rc;
            if (!is_candidate(&s->line))
                continue;
            ep_strip(s->line.ptr, s->line.len, &self->scratch, &self->prefix);
            ep_nccl_messages_line(&self->messages, self->prefix.text);
            self->in_line = true;
        }
        while (ep_nccl_messages_next(&self->messages, &m))
            if (to_record(self, &m, r))
                return 1;
        self->in_line = false;
    }
}

static void *begin(struct ep_source *s)
{
    struct debug *self = ep_calloc(1, sizeof *self);

    ep_buf_init(&self->scratch);
    ep_buf_init(&self->key);
    ep_nccl_messages_init(&self->messages);
    self->processes = ep_intern_new();
    self->addresses = ep_intern_new();
    self->mtime = s->mtime >= 0 ? s->mtime : 0;
    self->messages.zone.latest = self->mtime;
    return self;
}

static void end(void *ctx)
{
    struct debug *self = ctx;

    ep_buf_free(&self->scratch);
    ep_buf_free(&self->key);
    ep_nccl_messages_free(&self->messages);
    ep_intern_free(self->processes);
    ep_intern_free(self->addresses);
    free(self->warnings);
    free(self->comms);
    free(self);
}

/* How many lines of the head have a message in them? */
static int sniff(const char *head, size_t len, const char *name)
{
    const char *p = head, *limit = head + len;
    int lines = 0, ours = 0;

    (void)name;
    while (p < limit) {
        const char *nl = memchr(p, '\n', (size_t)(limit - p));
        struct ep_cursor c = {p, nl ? nl : limit};

        lines++;
        c.p = ep_nccl_mark(p, c.end);
        ours +=
            c.p && (ep_cursor_lit(&c, "INFO ") || ep_cursor_lit(&c, "WARN "));
        p = nl ? nl + 1 : limit;
    }
    if (!ours)
        return 0;
    return 2 * ours >= lines ? 70 : 30;
}

const struct ep_importer ep_import_nccl_debug = {
    .name = "nccl-debug",
    .what = "logs of NCCL_DEBUG=INFO and WARN",
    .sniff = sniff,
    .begin = begin,
    .next = next,
    .end = end,
};
