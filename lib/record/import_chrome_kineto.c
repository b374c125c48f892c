/* SPDX-License-Identifier: Apache-2.0 */
/*
 * import_chrome_kineto.c - traces of the PyTorch profiler (Kineto,
 * libkineto/src/output_json.cpp) to coll, p2p and step records.
 *
 *     {"ph":"X","cat":"kernel","name":"ncclDevKernel_AllReduce_Sum_f32_...",
 *      "ts":4458676416788.066,"dur":2636.669,"args":{"device":0,"stream":40,
 *      "Collective name":"allreduce","In msg nelems":6637568,"dtype":"Float",
 *      "Group size":2,"Process Group Name":"0",...}}
 *     {"ph":"X","cat":"user_annotation","name":"ProfilerStep#4",...}
 *
 * ts is relative to baseTimeNanoseconds if there is one. Writers put that, and
 * distributedInfo with the rank, before the events or behind them, by version
 * and by how the profiler was started. So records are held back while the rank
 * is unknown, or the base of a ts that cannot be absolute.
 */
#include "config.h"

#include "base/fp.h"
#include "base/mem.h"
#include "record/import_chrome.h"
#include "record/import_chrome_nccl.h"
#include "record/importers.h"

#include <stdlib.h>
#include <string.h>

/* From here on a ts (us) is of the epoch: 2001. No base is 31 years back. */
#define EPOCH_US 1e15

/* The keys of args, with their names in the file. */
enum arg {
    COLLECTIVE,
    IN_NELEMS,
    OUT_NELEMS,
    GROUP_SIZE,
    DTYPE,
    PG_NAME,
    PG_ID,
    PG_RANKS,
    SEQ,
    SRC,
    DST,
    DEVICE,
    ARGS
};

#define NAME(text)                                                             \
    {                                                                          \
        text, sizeof(text) - 1                                                 \
    }

static const struct ep_span arg_name[ARGS] = {
    [COLLECTIVE] = NAME("Collective name"),
    [IN_NELEMS] = NAME("In msg nelems"),
    [OUT_NELEMS] = NAME("Out msg nelems"),
    [GROUP_SIZE] = NAME("Group size"),
    [DTYPE] = NAME("dtype"),
    [PG_NAME] = NAME("Process Group Name"),
    [PG_ID] = NAME("Process Group ID"),
    [PG_RANKS] = NAME("Process Group Ranks"),
    [SEQ] = NAME("Seq"),
    [SRC] = NAME("Src Rank"),
    [DST] = NAME("Dst Rank"),
    [DEVICE] = NAME("device"),
};

/* A record as it waits: what is not known is -1. */
struct item {
    struct ep_fp_decimal ts; /* us, as in the file */
    double dur;
    int64_t step, pid, gpu_index, nranks, bytes, seq;
    int64_t peer;            /* global rank */
    int32_t op, comm, ranks; /* in names, names, lists */
    enum ep_type type;
};

struct kineto {
    struct ep_chrome chrome;
    struct ep_json_value arg[ARGS];
    struct ep_chrome_hold *hold;
    struct ep_intern *names, *lists;
    struct ep_buf room, host;
    int64_t rank, base_ns; /* -1: not known (yet) */
};

static void begin_event(void *self)
{
    struct kineto *k = self;

    memset(k->arg, 0, sizeof k->arg);
}

/* "ProfilerStep#12": the number, or -1. */
static int64_t step_number(struct ep_span name)
{
    static const char prefix[] = "ProfilerStep#";
    size_t i = sizeof prefix - 1;
    int64_t n = 0;

    if (name.len <= i || name.len > i + 15 || memcmp(name.ptr, prefix, i) != 0)
        return -1;
    for (; i < name.len; i++) {
        if (name.ptr[i] < '0' || name.ptr[i] > '9')
            return -1;
        n = n * 10 + (name.ptr[i] - '0');
    }
    return n;
}

static bool begins(struct ep_span s, const char *prefix)
{
    size_t n = strlen(prefix);

    return s.len >= n && memcmp(s.ptr, prefix, n) == 0;
}

/* "nccl:all_reduce" is what the process asked for, not a kernel. */
static bool is_kernel(const struct ep_chrome_event *e)
{
    return begins(e->name.raw, "nccl") && !begins(e->name.raw, "nccl:") &&
           (e->cat.kind == EP_JSON_NULL || EP_CHROME_IS(&e->cat, "kernel") ||
            EP_CHROME_IS(&e->cat, "Kernel"));
}

/* The same step is drawn on the GPU's streams too, as gpu_user_annotation. */
static bool is_step(const struct ep_chrome_event *e)
{
    return begins(e->name.raw, "ProfilerStep#") && !begins(e->cat.raw, "gpu_");
}

static bool wanted(const struct ep_chrome_event *e)
{
    if (e->name.kind == EP_JSON_NULL) /* the category alone */
        return EP_CHROME_IS(&e->cat, "kernel") ||
               EP_CHROME_IS(&e->cat, "Kernel") ||
               EP_CHROME_IS(&e->cat, "user_annotation") ||
               EP_CHROME_IS(&e->cat, "Operator");
    return is_kernel(e) || is_step(e);
}

static int take_arg(void *self, struct ep_json *j,
                    const struct ep_json_value *key,
                    const struct ep_json_value *v)
{
    struct kineto *k = self;

    (void)j;
    for (int i = 0; i < ARGS; i++) {
        if (ep_chrome_is(key, arg_name[i].ptr, arg_name[i].len)) {
            k->arg[i] = *v;
            break;
        }
    }
    return 0;
}

/* ---- the members round the events ---- */

static int take_info(struct kineto *k, struct ep_json *j)
{
    struct ep_json_value key, v;
    int rc;

    ep_json_enter(j);
    while ((rc = ep_json_next(j, &key, &v)) > 0)
        if (EP_CHROME_IS(&key, "rank") && v.kind == EP_JSON_NUMBER) {
            rc = ep_chrome_int(&v, "rank", 0, &k->rank, j->err);
            if (rc < 0)
                return rc;
        }
    return rc;
}

static int take_member(void *self, struct ep_json *j,
                       const struct ep_json_value *key,
                       const struct ep_json_value *v)
{
    struct kineto *k = self;

    if (v->kind == EP_JSON_OBJECT && EP_CHROME_IS(key, "distributedInfo"))
        return take_info(k, j);
    if (EP_CHROME_IS(key, "baseTimeNanoseconds")) {
        int64_t ns = -1;

        if (v->kind != EP_JSON_NULL && (ep_json_int(v, &ns) < 0 || ns < 0))
            return ep_error_set(j->err, EP_EFORMAT,
                                "baseTimeNanoseconds is not a time");
        k->base_ns = ns;
    }
    if (v->kind == EP_JSON_STRING && EP_CHROME_IS(key, "host_name")) {
        struct ep_span name = ep_chrome_text(v, &k->room);
        const char *dot;

        if (!name.ptr)
            return 0;
        dot = memchr(name.ptr, '.', name.len);
        ep_buf_reset(&k->host);
        ep_buf_add(&k->host, name.ptr,
                   dot ? (size_t)(dot - name.ptr) : name.len);
    }
    return 0;
}

/* ---- events ---- */

/* Number of elements times bytes of each; -1 if one is not known. */
static int64_t message_bytes(const struct kineto *k)
{
    int64_t size = ep_chrome_nccl_dtype_bytes(k->arg[DTYPE].raw);
    int64_t in = -1, out = -1, most;

    if (ep_chrome_int(&k->arg[IN_NELEMS], "", 0, &in, NULL) < 0)
        in = -1;
    if (ep_chrome_int(&k->arg[OUT_NELEMS], "", 0, &out, NULL) < 0)
        out = -1;
    most = in > out ? in : out;
    return size && most >= 0 && most <= (INT64_C(1) << 53) / size - 1
               ? most * size
               : -1;
}

/* The process group: its name, or its number in older traces, or neither. */
static int take_comm(struct kineto *k, struct item *item, struct ep_error *err)
{
    struct ep_span name = ep_chrome_text(&k->arg[PG_NAME], &k->room);

    if (!name.len)
        name = ep_chrome_text(&k->arg[PG_ID], &k->room);
    if (!name.len && k->arg[PG_NAME].kind == EP_JSON_NUMBER)
        name = k->arg[PG_NAME].raw;
    if (!name.len && k->arg[PG_ID].kind == EP_JSON_NUMBER)
        name = k->arg[PG_ID].raw;
    if (!name.len)
        name = (struct ep_span)NAME("unknown");
    return ep_chrome_intern(k->names, name, "process group", &item->comm, err);
}

/* An integer of args; -1 if it is absent or makes no sense. */
static int64_t arg_int(const struct kineto *k, enum arg i, int64_t lo)
{
    int64_t x = -1;

    return ep_chrome_int(&k->arg[i], "", lo, &x, NULL) < 0 ? -1 : x;
}

/* An NCCL kernel: 1, 0 if it cannot be told what it does, or an error. */
static int take_kernel(struct kineto *k, const struct ep_chrome_event *e,
                       struct item *item, struct ep_error *err)
{
    struct ep_span list;
    bool p2p;
    struct ep_span op = ep_chrome_nccl_op(
        ep_chrome_text(&k->arg[COLLECTIVE], &k->room), e->name.raw, &p2p);
    int rc;

    if (!op.len)
        return 0;
    rc = ep_chrome_intern(k->names, op, "operation", &item->op, err);
    if (rc == 0)
        rc = take_comm(k, item, err);
    if (rc < 0)
        return rc;
    item->type = p2p ? EP_P2P : EP_COLL;
    item->gpu_index = arg_int(k, DEVICE, 0);
    item->nranks = arg_int(k, GROUP_SIZE, 1);
    item->seq = arg_int(k, SEQ, 0);
    item->bytes = message_bytes(k);
    if (p2p) {
        item->peer = arg_int(k, DST, 0);
        if (item->peer < 0)
            item->peer = arg_int(k, SRC, 0);
    }
    list = ep_chrome_text(&k->arg[PG_RANKS], &k->room);
    /* A list that is too long for the table says nothing: no error. */
    if (list.len &&
        ep_chrome_intern(k->lists, list, "list", &item->ranks, NULL) < 0)
        item->ranks = -1;
    return 1;
}

static void take_step(const struct ep_chrome_event *e, struct item *item)
{
    item->type = EP_STEP;
    item->step = step_number(e->name.raw);
    if (ep_chrome_int(&e->pid, "pid", 0, &item->pid, NULL) < 0)
        item->pid = -1;
}

static int make_item(struct kineto *k, const struct ep_chrome_event *e,
                     struct item *item, struct ep_error *err)
{
    double ts;
    int rc = 1;

    *item = (struct item){.step = -1,
                          .pid = -1,
                          .gpu_index = -1,
                          .nranks = -1,
                          .bytes = -1,
                          .seq = -1,
                          .peer = -1,
                          .ranks = -1};
    if (is_step(e))
        take_step(e, item);
    else if (is_kernel(e))
        rc = take_kernel(k, e, item, err);
    if (rc <= 0)
        return rc;
    if ((rc = ep_chrome_seconds(&e->ts, "ts", &ts, err)) < 0 ||
        (rc = ep_chrome_seconds(&e->dur, "dur", &item->dur, err)) < 0)
        return rc;
    item->ts = e->ts.dec;
    return item->type != EP_STEP || item->step >= 0;
}

/* ---- records ---- */

/* The start in s: base + ts, in whole ns as the profiler's clock has them. */
static double start(const struct kineto *k, const struct item *item)
{
    struct ep_fp_decimal d = item->ts;
    int shift = d.exp10 + 3;
    double us;

    d.cut = false;
    us = ep_fp_from_decimal(&d, NULL, 0);
    if (k->base_ns >= 0 && us < EPOCH_US) {
        uint64_t ns = (uint64_t)(us * 1e3 + 0.5); /* below 2^60 */

        if (shift <= 0 && shift > -20) {
            uint64_t unit = ep_fp_pow10_u64[-shift];

            ns = d.mant / unit + (d.mant % unit >= unit - unit / 2);
        }
        d = (struct ep_fp_decimal){.mant = (uint64_t)k->base_ns + ns,
                                   .exp10 = -3};
    }
    d.exp10 -= 6;
    d.neg = false;
    return ep_fp_from_decimal(&d, NULL, 0);
}

static void set_known(struct ep_record *r, enum ep_key k, int64_t v)
{
    if (v >= 0)
        ep_record_set_int(r, k, v);
}

static void make_record(struct kineto *k, const struct item *item,
                        struct ep_record *r)
{
    ep_record_begin(r, item->type);
    ep_record_set_num(r, EP_K_TS, start(k, item));
    if (k->host.len)
        ep_record_set_span(r, EP_K_HOST,
                           (struct ep_span){k->host.ptr, k->host.len});
    set_known(r, EP_K_PID, item->pid);
    set_known(r, EP_K_RANK, k->rank);
    set_known(r, EP_K_GPU_INDEX, item->gpu_index);
    set_known(r, EP_K_STEP, item->step);
    ep_record_set_num(r, EP_K_DUR, item->dur);
    if (item->type == EP_STEP)
        return;
    ep_record_set_str(r, EP_K_OP, ep_intern_name(k->names, (size_t)item->op));
    ep_record_set_str(r, EP_K_COMM,
                      ep_intern_name(k->names, (size_t)item->comm));
    set_known(r, EP_K_SEQ, item->seq);
    set_known(r, EP_K_BYTES, item->bytes);
    if (item->type == EP_COLL)
        set_known(r, EP_K_NRANKS, item->nranks);
    if (item->ranks >= 0) {
        const char *list = ep_intern_name(k->lists, (size_t)item->ranks);

        set_known(r, EP_K_COMM_RANK, ep_chrome_nccl_place(list, k->rank));
        set_known(r, EP_K_PEER, ep_chrome_nccl_place(list, item->peer));
    }
}

/* Would the record be another one after what may come behind the events? */
static bool must_wait(const struct kineto *k, const struct ep_chrome_event *e)
{
    double us;

    if (ep_chrome_hold_any(k->hold))
        return true;
    if (ep_json_stream_bare(k->chrome.stream))
        return false;
    return k->rank < 0 || (k->base_ns < 0 && ep_json_double(&e->ts, &us) == 0 &&
                           us < EPOCH_US);
}

static int event(void *self, const struct ep_chrome_event *e,
                 struct ep_record *r, struct ep_error *err)
{
    struct kineto *k = self;
    struct item item;
    int rc;

    if (!EP_CHROME_IS(&e->ph, "X") || e->name.kind != EP_JSON_STRING)
        return 0;
    rc = make_item(k, e, &item, err);
    if (rc <= 0)
        return rc;
    if (must_wait(k, e))
        return ep_chrome_hold_add(k->hold, &item, err);
    make_record(k, &item, r);
    return 1;
}

static int held(void *self, struct ep_record *r, struct ep_error *err)
{
    struct kineto *k = self;
    struct item item;
    int rc = ep_chrome_hold_take(k->hold, &item, err);

    if (rc > 0)
        make_record(k, &item, r);
    return rc;
}

static const struct ep_chrome_format format = {
    .begin = begin_event,
    .wanted = wanted,
    .arg = take_arg,
    .member = take_member,
    .event = event,
    .held = held,
};

static int sniff(const char *head, size_t len, const char *name)
{
    bool bare;
    const char *text = ep_chrome_begins(head, len, &bare);
    bool events = ep_chrome_has(head, len, "\"ph\"") &&
                  ep_chrome_has(head, len, "\"ts\"");

    (void)name;
    if (!text)
        return 0;
    if (bare)
        return events ? 60 : 0;
    if (ep_chrome_has(head, len, "\"schemaVersion\"") &&
        (ep_chrome_has(head, len, "\"deviceProperties\"") ||
         ep_chrome_has(head, len, "\"traceEvents\"")))
        return 95;
    if (ep_chrome_has(head, len, "\"traceEvents\""))
        return 80;
    return ep_chrome_has(head, len, "\"distributedInfo\"") ? 60 : 0;
}

static void *begin(struct ep_source *s)
{
    struct kineto *k = ep_calloc(1, sizeof *k);

    (void)s;
    ep_chrome_init(&k->chrome, &format, k);
    k->hold = ep_chrome_hold_new(sizeof(struct item));
    k->names = ep_intern_new();
    k->lists = ep_intern_new();
    ep_buf_init(&k->room);
    ep_buf_init(&k->host);
    k->rank = k->base_ns = -1;
    return k;
}

static void end(void *self)
{
    struct kineto *k = self;

    if (!k)
        return;
    ep_chrome_free(&k->chrome);
    ep_chrome_hold_free(k->hold);
    ep_intern_free(k->names);
    ep_intern_free(k->lists);
    ep_buf_free(&k->room);
    ep_buf_free(&k->host);
    free(k);
}

static int next(void *self, struct ep_source *s, struct ep_record *r,
                struct ep_error *err)
{
    struct kineto *k = self;

    return ep_chrome_next(&k->chrome, s, r, err);
}

const struct ep_importer ep_import_kineto = {
    .name = "kineto",
    .what = "PyTorch profiler traces, Chrome-trace JSON",
    .sniff = sniff,
    .begin = begin,
    .next = next,
    .end = end,
};
