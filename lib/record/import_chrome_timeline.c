/* SPDX-License-Identifier: Apache-2.0 */
/*
 * import_chrome_timeline.c - step timelines in Chrome-trace form, as
 * ByteDance-Seed/StragglerAnalysis publishes them, to span records.
 *
 *     {"name":"backward-compute","cat":"backward-compute","pid":0,"tid":160,
 *      "ts":2688330.4,"dur":854347.6,"ph":"X",
 *      "args":{"step":16,"model_chunk":0,"mb_id":0,"seq_id":0}}
 *     {"name":"thread_name","pid":0,"tid":160,"ph":"M",
 *      "args":{"name":"PP rank 2, TP rank 0, compute"}}
 *
 * pid is the data-parallel rank, the stage is in the name of the thread, which
 * comes behind all operations: spans wait for it, packed in the queue. Where
 * names come first nothing waits. ts counts from the beginning of the trace.
 */
#include "config.h"

#include "base/mem.h"
#include "record/import_chrome.h"
#include "record/importers.h"
#include "record/nccl_text.h"

#include <stdlib.h>
#include <string.h>

/* The keys of args. */
enum arg { STEP, CHUNK, MB, SEQ, NAME, ARGS };

/* A span as it waits. -1: not known. */
struct item {
    double ts, dur;
    int64_t step, mb, chunk, seq;
    uint32_t lane;
    int32_t op;
};

struct timeline {
    struct ep_chrome chrome;
    struct ep_json_value arg[ARGS];
    struct ep_chrome_lanes *lanes;
    struct ep_chrome_hold *hold;
    struct ep_intern *ops;
    struct ep_buf room;
    struct ep_span last_name; /* of the operation before: they come in runs */
    int32_t last_op;
    bool ranked; /* ranks were derived: no record came before */
};

static void begin_event(void *self)
{
    struct timeline *t = self;

    memset(t->arg, 0, sizeof t->arg);
}

static struct ep_json_value *arg_slot(void *self, struct ep_span key)
{
    struct timeline *t = self;

    if (EP_SPAN_IS(key, "step"))
        return &t->arg[STEP];
    if (EP_SPAN_IS(key, "model_chunk"))
        return &t->arg[CHUNK];
    if (EP_SPAN_IS(key, "mb_id"))
        return &t->arg[MB];
    if (EP_SPAN_IS(key, "seq_id"))
        return &t->arg[SEQ];
    return EP_SPAN_IS(key, "name") ? &t->arg[NAME] : NULL;
}

static void set_known(struct ep_record *r, enum ep_key k, int64_t v)
{
    if (v >= 0)
        ep_record_set_int(r, k, v);
}

static void make_record(struct timeline *t, const struct item *item,
                        struct ep_record *r)
{
    const struct ep_chrome_lane *lane = ep_chrome_lane(t->lanes, item->lane);

    ep_record_begin(r, EP_SPAN);
    ep_record_set_num(r, EP_K_TS, item->ts);
    set_known(r, EP_K_RANK, lane->rank);
    set_known(r, EP_K_DP, lane->pid);
    set_known(r, EP_K_PP, lane->pp);
    set_known(r, EP_K_TP, lane->tp);
    ep_record_set_str(r, EP_K_OP, ep_intern_name(t->ops, (size_t)item->op));
    ep_record_set_int(r, EP_K_STEP, item->step);
    ep_record_set_num(r, EP_K_DUR, item->dur);
    set_known(r, EP_K_MB, item->mb);
    set_known(r, EP_K_CHUNK, item->chunk);
    set_known(r, EP_K_SEQ, item->seq);
}

/* The operation's number. */
static int find_op(struct timeline *t, struct ep_span name, int32_t *op,
                   struct ep_error *err)
{
    int rc = 0;

    if (!t->last_name.ptr || t->last_name.len != name.len ||
        memcmp(t->last_name.ptr, name.ptr, name.len) != 0) {
        rc = ep_chrome_intern(t->ops, name, "operation", &t->last_op, err);
        t->last_name.ptr = NULL;
        if (rc == 0)
            t->last_name = (struct ep_span){
                ep_intern_name(t->ops, (size_t)t->last_op), name.len};
    }
    *op = t->last_op;
    return rc;
}

/* pid and tid; -1 for one that is none or absent. */
static int find_lane(struct timeline *t, const struct ep_chrome_event *e,
                     uint32_t *lane, struct ep_error *err)
{
    int64_t pid = -1, tid = -1;

    if (ep_chrome_int(&e->pid, "pid", 0, &pid, NULL) < 0)
        pid = -1;
    if (ep_chrome_int(&e->tid, "tid", 0, &tid, NULL) < 0)
        tid = -1;
    return ep_chrome_lane_find(t->lanes, pid, tid, lane, err);
}

static int thread_name(struct timeline *t, const struct ep_chrome_event *e,
                       struct ep_error *err)
{
    struct ep_span name = ep_chrome_text(&t->arg[NAME], &t->room);
    uint32_t lane;
    int rc;

    if (!name.ptr)
        return 0;
    rc = find_lane(t, e, &lane, err);
    if (rc == 0)
        ep_chrome_lane_name(t->lanes, lane, name);
    return rc;
}

static int make_item(struct timeline *t, const struct ep_chrome_event *e,
                     struct item *item, struct ep_error *err)
{
    struct ep_span op = ep_chrome_text(&e->name, &t->room);
    int rc;

    *item = (struct item){.mb = -1, .chunk = -1, .seq = -1};
    if (!op.ptr)
        return ep_error_set(err, EP_EFORMAT, "no name");
    if ((rc = ep_chrome_int(&t->arg[STEP], "step", 0, &item->step, err)) < 0 ||
        (rc = ep_chrome_int(&t->arg[MB], "mb_id", -1, &item->mb, err)) < 0 ||
        (rc = ep_chrome_int(&t->arg[CHUNK], "model_chunk", -1, &item->chunk,
                            err)) < 0 ||
        (rc = ep_chrome_int(&t->arg[SEQ], "seq_id", -1, &item->seq, err)) < 0 ||
        (rc = ep_chrome_seconds(&e->ts, "ts", &item->ts, err)) < 0 ||
        (rc = ep_chrome_seconds(&e->dur, "dur", &item->dur, err)) < 0 ||
        (rc = find_op(t, op, &item->op, err)) < 0)
        return rc;
    return find_lane(t, e, &item->lane, err);
}

static int event(void *self, const struct ep_chrome_event *e,
                 struct ep_record *r, struct ep_error *err)
{
    struct timeline *t = self;
    struct item item;
    int rc;

    if (EP_CHROME_IS(&e->ph, "M"))
        return EP_CHROME_IS(&e->name, "thread_name") ? thread_name(t, e, err)
                                                     : 0;
    if (!EP_CHROME_IS(&e->ph, "X") || t->arg[STEP].kind == EP_JSON_NULL)
        return 0;
    rc = make_item(t, e, &item, err);
    if (rc < 0)
        return rc;
    if (ep_chrome_hold_any(t->hold) ||
        ep_chrome_lane(t->lanes, item.lane)->pp < 0)
        return ep_chrome_hold_add(t->hold, &item, err);
    if (!t->ranked)
        ep_chrome_lanes_rank(t->lanes);
    t->ranked = true;
    make_record(t, &item, r);
    return 1;
}

static int held(void *self, struct ep_record *r, struct ep_error *err)
{
    struct timeline *t = self;
    struct item item;
    int rc = ep_chrome_hold_take(t->hold, &item, err);

    if (rc <= 0)
        return rc;
    if (!t->ranked)
        ep_chrome_lanes_rank(t->lanes);
    t->ranked = true;
    make_record(t, &item, r);
    return 1;
}

static const struct ep_chrome_format format = {
    .begin = begin_event,
    .arg_slot = arg_slot,
    .event = event,
    .held = held,
};

static int sniff(const char *head, size_t len, const char *name)
{
    bool bare;

    (void)name;
    if (!ep_chrome_begins(head, len, &bare) ||
        !ep_chrome_has(head, len, "\"ph\"") ||
        ep_chrome_has(head, len, "\"schemaVersion\""))
        return 0;
    if (ep_chrome_has(head, len, "\"mb_id\"") ||
        ep_chrome_has(head, len, "\"model_chunk\"") ||
        ep_chrome_has(head, len, "\"PP rank "))
        return 95;
    return 0;
}

static void *begin(struct ep_source *s)
{
    struct timeline *t = ep_calloc(1, sizeof *t);

    (void)s;
    ep_chrome_init(&t->chrome, &format, t);
    t->lanes = ep_chrome_lanes_new();
    t->hold = ep_chrome_hold_new(sizeof(struct item));
    t->ops = ep_intern_new();
    ep_buf_init(&t->room);
    return t;
}

static void end(void *self)
{
    struct timeline *t = self;

    if (!t)
        return;
    ep_chrome_free(&t->chrome);
    ep_chrome_lanes_free(t->lanes);
    ep_chrome_hold_free(t->hold);
    ep_intern_free(t->ops);
    ep_buf_free(&t->room);
    free(t);
}

static int next(void *self, struct ep_source *s, struct ep_record *r,
                struct ep_error *err)
{
    struct timeline *t = self;

    return ep_chrome_next(&t->chrome, s, r, err);
}

const struct ep_importer ep_import_timeline = {
    .name = "timeline",
    .what = "step timelines, Chrome-trace JSON",
    .sniff = sniff,
    .begin = begin,
    .next = next,
    .end = end,
};
