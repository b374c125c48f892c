/* SPDX-License-Identifier: Apache-2.0 */
/*
 * import_fr.c - dumps of PyTorch's Flight Recorder, the last few thousand
 * collectives of one rank, to coll, p2p and gauge records.
 *
 *     {"comm_lib_version":"2.21.5","entries":[{"collective_seq_id":7,
 *      "duration_ms":1.25,"input_dtypes":["Float"],"input_sizes":[[1024]],
 *      "is_p2p":false,"p2p_seq_id":0,"pg_id":0,"process_group":["0",
 *      "default_pg"],"profiling_name":"nccl:all_reduce","state":"completed",
 *      "time_created_ns":1724773134000000000,...}],
 *      "pg_config":{"0":{"desc":"default_pg","name":"0","ranks":"[0, 1]"}},
 *      "pg_status":{"0":{"last_completed_collective":"7",...}},...}
 *
 * That is the order of the JSON dump; a pickle that was converted has pg_config
 * first, numbers where this has strings, and null where this has 0. So entries
 * wait, packed, until the groups are known or all is read.
 *
 * Only an entry with a duration has been timed (TORCH_NCCL_ENABLE_TIMING); the
 * times "discovered" are those of a watchdog that looks now and then. An entry
 * without is no coll record: it becomes a gauge, fr_state, with the keys of
 * one, as the unfinished ones do, which are what the dump was made for.
 *
 * [1] pytorch: torch/csrc/distributed/c10d/FlightRecorderDetail.hpp.
 */
#include "config.h"

#include "base/fp.h"
#include "base/mem.h"
#include "base/num.h"
#include "record/import_chrome.h"
#include "record/import_chrome_nccl.h"
#include "record/import_fr.h"
#include "record/importers.h"
#include "record/nccl_text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* An entry as it waits; -1 where not known. */
struct item {
    int64_t created_ns;
    double dur; /* s */
    int64_t seq, bytes, peer, comm_rank;
    int32_t op, comm;
    int state; /* 0 scheduled, 1 started, 2 completed */
    bool p2p;
};

/* A process group. */
struct group {
    int64_t nranks, comm_rank; /* -1: not known */
};

/* What pg_status says of one. */
#define COUNTERS 3
static const char *const counter_name[COUNTERS] = {"last_enqueued_collective",
                                                   "last_started_collective",
                                                   "last_completed_collective"};
static const char *const gauge_name[COUNTERS] = {
    "fr_last_enqueued", "fr_last_started", "fr_last_completed"};

struct status {
    int32_t comm; /* -1: no entry of it was met */
    bool have[COUNTERS];
    int64_t counter[COUNTERS];
};

struct fr {
    struct ep_source *source;
    struct ep_json_stream *stream;
    struct ep_fr_entry entry;
    struct ep_chrome_hold *hold;
    struct ep_intern *names; /* of operations and groups */
    struct group *groups;    /* by name */
    size_t groups_cap, ngroups;
    struct ep_intern *ids;   /* pg_id, in decimal */
    struct status *statuses; /* by id */
    size_t statuses_cap, nstatuses;
    struct ep_buf room, text;
    int64_t rank, latest_ns;
    double mtime;
    bool configured, drained;
    size_t at; /* the next counter to deliver */
    int failed;
    struct ep_error late;
};

static long read_source(void *ctx, void *dst, size_t cap, struct ep_error *err)
{
    struct fr *f = ctx;
    long n = ep_source_read(f->source, dst, cap, err);

    f->source->over = false; /* there are entries left in the window */
    return n;
}

/* ==== Tables ==== */

/* The number of a name, and room for what is known of it as a group. */
static int find_name(struct fr *f, struct ep_span name, const char *what,
                     int32_t *id, struct ep_error *err)
{
    int rc = ep_chrome_intern(f->names, name, what, id, err);

    if (rc < 0)
        return rc;
    f->groups =
        ep_grow(f->groups, &f->groups_cap, (size_t)*id + 1, sizeof *f->groups);
    while (f->ngroups <= (size_t)*id)
        f->groups[f->ngroups++] = (struct group){-1, -1};
    return 0;
}

static int find_status(struct fr *f, struct ep_span id, struct status **status,
                       struct ep_error *err)
{
    int32_t i;
    int rc = ep_chrome_intern(f->ids, id, "pg_id", &i, err);

    if (rc < 0)
        return rc;
    f->statuses = ep_grow(f->statuses, &f->statuses_cap, (size_t)i + 1,
                          sizeof *f->statuses);
    while (f->nstatuses <= (size_t)i)
        f->statuses[f->nstatuses++] = (struct status){.comm = -1};
    *status = &f->statuses[i];
    return 0;
}

/* ==== The members round the entries ==== */

/* "[0, 1]", a string or an array. */
static void take_ranks(struct fr *f, struct ep_span list, struct group *g)
{
    ep_buf_reset(&f->text);
    ep_buf_add(&f->text, list.ptr, list.len);
    g->nranks = 0;
    for (size_t i = 0; i < f->text.len; i++)
        g->nranks += f->text.ptr[i] == ',';
    /* an empty list is of no group */
    g->nranks += f->text.len > 2 ? 1 : -1;
    g->comm_rank = ep_chrome_nccl_place(f->text.ptr, f->rank);
    if (g->nranks < 1)
        g->nranks = -1;
}

static int take_group(struct fr *f, struct ep_json *j, struct ep_span key)
{
    struct ep_json_value member, v;
    struct ep_span name = key, ranks = {NULL, 0};
    int32_t id;
    int rc;

    ep_json_enter(j);
    while ((rc = ep_json_next(j, &member, &v)) > 0) {
        if (EP_CHROME_IS(&member, "name") && v.kind == EP_JSON_STRING)
            name = ep_chrome_text(&v, &f->room);
        else if (EP_CHROME_IS(&member, "ranks") && v.kind == EP_JSON_STRING)
            ranks = v.raw;
        else if (EP_CHROME_IS(&member, "ranks") && v.kind == EP_JSON_ARRAY &&
                 (rc = ep_json_skip(j, &ranks)) < 0)
            return rc;
    }
    if (rc < 0 || !name.len)
        return rc;
    rc = find_name(f, name, "process group", &id, j->err);
    if (rc == 0 && ranks.ptr)
        take_ranks(f, ranks, &f->groups[id]);
    return rc;
}

static void take_counter(struct fr *f, const struct ep_json_value *v,
                         bool *have, int64_t *out)
{
    *have = false;
    if (v->kind == EP_JSON_STRING && v->raw.len < 24) {
        ep_buf_reset(&f->text);
        ep_buf_add(&f->text, v->raw.ptr, v->raw.len);
        *have = ep_num_int(f->text.ptr, -1, INT64_C(1) << 53, out, NULL) == 0;
    } else if (v->kind == EP_JSON_NUMBER) {
        *have =
            ep_json_int(v, out) == 0 && *out >= -1 && *out <= INT64_C(1) << 53;
    }
}

static int take_status(struct fr *f, struct ep_json *j, struct ep_span id)
{
    struct ep_json_value member, v;
    struct status *status;
    int rc = find_status(f, id, &status, j->err);

    if (rc < 0)
        return rc;
    ep_json_enter(j);
    while ((rc = ep_json_next(j, &member, &v)) > 0)
        for (int i = 0; i < COUNTERS; i++)
            if (ep_span_eq(member.raw, counter_name[i]))
                take_counter(f, &v, &status->have[i], &status->counter[i]);
    return rc;
}

static int take_member(struct fr *f, struct ep_json *j,
                       const struct ep_json_value *key,
                       const struct ep_json_value *v)
{
    bool config = EP_CHROME_IS(key, "pg_config");
    struct ep_json_value member, value;
    int rc;

    if (v->kind != EP_JSON_OBJECT ||
        (!config && !EP_CHROME_IS(key, "pg_status")))
        return 0;
    ep_json_enter(j);
    while ((rc = ep_json_next(j, &member, &value)) > 0) {
        if (value.kind != EP_JSON_OBJECT || member.escaped)
            continue;
        rc = config ? take_group(f, j, member.raw)
                    : take_status(f, j, member.raw);
        if (rc < 0)
            return rc;
    }
    f->configured = f->configured || (rc == 0 && config);
    return rc;
}

/* ==== Entries ==== */

/* "send 0->1", "recv 1<-0": ranks in the group, which nothing else tells. */
static void take_ends(struct ep_span name, struct item *item)
{
    struct ep_cursor c = {name.ptr, name.ptr + name.len};
    int64_t self, peer;

    if (!ep_cursor_find(&c, " ") || !ep_cursor_uint(&c, &self) ||
        !(ep_cursor_lit(&c, "->") || ep_cursor_lit(&c, "<-")) ||
        !ep_cursor_uint(&c, &peer))
        return;
    item->comm_rank = self;
    item->peer = peer;
}

/* "nccl:all_reduce": what it does. */
static int take_op(struct fr *f, struct item *item, struct ep_error *err)
{
    struct ep_span name = ep_chrome_text(&f->entry.field[EP_FR_NAME], &f->room),
                   op;
    const char *colon =
        name.len ? memchr(name.ptr, ':', name.len) : NULL; /* of the back end */
    bool p2p;

    if (colon)
        name = (struct ep_span){colon + 1,
                                name.len - (size_t)(colon + 1 - name.ptr)};
    if (!name.len)
        return ep_error_set(err, EP_EFORMAT, "no profiling_name");
    op = ep_chrome_nccl_op(name, (struct ep_span){"", 0}, &p2p);
    item->p2p = f->entry.field[EP_FR_IS_P2P].kind == EP_JSON_NULL
                    ? p2p
                    : f->entry.field[EP_FR_IS_P2P].kind == EP_JSON_TRUE;
    if (item->p2p)
        take_ends(name, item);
    return find_name(f, op, "operation", &item->op, err);
}

static int take_state(struct fr *f, struct item *item, struct ep_error *err)
{
    static const char *const states[] = {"scheduled", "started", "completed"};
    int rc;

    item->state = -1;
    for (int i = 0; i < 3; i++)
        if (ep_span_eq(f->entry.field[EP_FR_STATE].raw, states[i]))
            item->state = i;
    item->dur = -1;
    if (f->entry.field[EP_FR_DURATION].kind != EP_JSON_NULL) {
        struct ep_json_value us = f->entry.field[EP_FR_DURATION];

        us.dec.exp10 += 3;
        rc = ep_chrome_seconds(&us, "duration_ms", &item->dur, err);
        if (rc < 0)
            return rc;
    }
    if (item->state < 0 && item->dur < 0)
        return ep_error_set(err, EP_EFORMAT, "no state and no duration_ms");
    return 0;
}

/* A time in ns; at most 0 where there is none. */
static int64_t time_ns(struct fr *f, enum ep_fr_field i)
{
    int64_t ns;

    if (ep_json_int(&f->entry.field[i], &ns) < 0)
        return 0;
    if (ns > f->latest_ns)
        f->latest_ns = ns;
    return ns;
}

static int make_item(struct fr *f, struct item *item, struct ep_error *err)
{
    struct ep_span comm;
    struct status *status;
    int rc;

    *item = (struct item){.seq = -1, .peer = -1, .comm_rank = -1};
    if ((rc = take_op(f, item, err)) < 0 ||
        (rc = take_state(f, item, err)) < 0 ||
        (rc = ep_chrome_int(
             &f->entry.field[item->p2p ? EP_FR_P2P_SEQ : EP_FR_COLL_SEQ],
             "seq_id", 0, &item->seq, err)) < 0)
        return rc;
    comm = ep_chrome_text(&f->entry.field[EP_FR_GROUP], &f->room);
    if (!comm.len)
        comm = (struct ep_span){"unknown", 7};
    rc = find_name(f, comm, "process group", &item->comm, err);
    if (rc == 0 && f->entry.field[EP_FR_PG_ID].kind == EP_JSON_NUMBER) {
        rc = find_status(f, f->entry.field[EP_FR_PG_ID].raw, &status, err);
        if (rc == 0)
            status->comm = item->comm;
    }
    if (rc < 0)
        return rc;
    item->bytes = ep_fr_entry_bytes(&f->entry);
    item->created_ns = time_ns(f, EP_FR_CREATED);
    (void)time_ns(f, EP_FR_STARTED);
    (void)time_ns(f, EP_FR_COMPLETED);
    return 0;
}

/* ==== Records ==== */

static void set_known(struct ep_record *r, enum ep_key k, int64_t v)
{
    if (v >= 0)
        ep_record_set_int(r, k, v);
}

static double seconds(int64_t ns)
{
    struct ep_fp_decimal d = {.mant = (uint64_t)ns, .exp10 = -9};

    return ep_fp_from_decimal(&d, NULL, 0);
}

static void make_record(struct fr *f, const struct item *item,
                        struct ep_record *r)
{
    const struct group *g = &f->groups[item->comm];
    bool timed = item->dur >= 0 && (item->state < 0 || item->state == 2);

    ep_record_begin(r, !timed ? EP_GAUGE : item->p2p ? EP_P2P : EP_COLL);
    if (item->created_ns > 0)
        ep_record_set_num(r, EP_K_TS, seconds(item->created_ns));
    else if (!timed)
        ep_record_set_num(r, EP_K_TS, f->mtime);
    set_known(r, EP_K_RANK, f->rank);
    ep_record_set_str(r, EP_K_OP, ep_intern_name(f->names, (size_t)item->op));
    ep_record_set_str(r, EP_K_COMM,
                      ep_intern_name(f->names, (size_t)item->comm));
    if (!item->p2p)
        set_known(r, EP_K_NRANKS, g->nranks);
    set_known(r, EP_K_COMM_RANK,
              item->comm_rank >= 0 ? item->comm_rank : g->comm_rank);
    set_known(r, EP_K_PEER, item->peer);
    set_known(r, EP_K_SEQ, item->seq);
    set_known(r, EP_K_BYTES, item->bytes);
    if (timed) {
        ep_record_set_num(r, EP_K_DUR, item->dur);
        return;
    }
    ep_record_set_str(r, EP_K_NAME, "fr_state");
    ep_record_set_num(r, EP_K_VALUE, item->state);
    ep_record_set_str(r, EP_K_UNIT, "1");
}

/* The next counter of a process group: 1, or 0 after the last. */
static int next_status(struct fr *f, struct ep_record *r)
{
    for (; f->at < COUNTERS * f->nstatuses; f->at++) {
        const struct status *status = &f->statuses[f->at / COUNTERS];
        size_t i = f->at % COUNTERS;

        if (!status->have[i])
            continue;
        ep_record_begin(r, EP_GAUGE);
        ep_record_set_num(r, EP_K_TS,
                          f->latest_ns > 0 ? seconds(f->latest_ns) : f->mtime);
        set_known(r, EP_K_RANK, f->rank);
        ep_buf_reset(&f->text);
        ep_buf_addf(&f->text, "pg_id=%s",
                    ep_intern_name(f->ids, f->at / COUNTERS));
        ep_record_set_str(r, EP_K_COMM,
                          status->comm >= 0
                              ? ep_intern_name(f->names, (size_t)status->comm)
                              : f->text.ptr);
        ep_record_set_str(r, EP_K_NAME, gauge_name[i]);
        ep_record_set_num(r, EP_K_VALUE, (double)status->counter[i]);
        ep_record_set_str(r, EP_K_UNIT, "1");
        f->at++;
        return 1;
    }
    return 0;
}

/* ==== The importer ==== */

static int step(struct fr *f, int what, struct ep_json *j,
                const struct ep_json_value *key, const struct ep_json_value *v,
                struct ep_record *r, struct ep_error *err)
{
    struct item item;
    int rc = what == EP_JSON_STREAM_ELEMENT ? ep_fr_entry_take(&f->entry, j, v)
                                            : take_member(f, j, key, v);
    int done = ep_json_stream_done(f->stream, j, rc, err);

    if (done)
        return done < 0 ? done : 0;
    if (what != EP_JSON_STREAM_ELEMENT)
        return 0;
    rc = make_item(f, &item, err);
    if (rc < 0)
        return rc;
    if (ep_chrome_hold_any(f->hold) || !f->configured)
        return ep_chrome_hold_add(f->hold, &item, err);
    make_record(f, &item, r);
    return 1;
}

static void finish(struct fr *f, int rc, const struct ep_error *err)
{
    f->drained = true;
    f->failed = rc;
    if (rc == EP_ETRUNC || rc == EP_EFORMAT)
        (void)ep_error_set(&f->late, rc, "cannot read %s: byte %" PRIu64 ": %s",
                           f->source->name, ep_json_stream_offset(f->stream),
                           err->msg);
    else if (rc < 0)
        f->late = *err;
}

static int drain(struct fr *f, struct ep_record *r, struct ep_error *err)
{
    struct item item;
    int rc = ep_chrome_hold_take(f->hold, &item, err);

    if (rc > 0)
        make_record(f, &item, r);
    else if (rc == 0)
        rc = next_status(f, r);
    if (rc > 0)
        return rc;
    f->source->over = true;
    if (rc == 0 && f->failed)
        *err = f->late;
    return rc < 0 ? rc : f->failed;
}

static int next(void *self, struct ep_source *s, struct ep_record *r,
                struct ep_error *err)
{
    struct ep_json_value key, v;
    struct fr *f = self;
    struct ep_error own;
    struct ep_json j;

    if (!err)
        err = &own;
    f->source = s;
    while (!f->drained) {
        int rc = ep_json_stream_next(f->stream, &key, &j, &v, err);

        if (rc > 0)
            rc = step(f, rc, &j, &key, &v, r, err);
        else if (rc == 0)
            finish(f, 0, err);
        s->offset = ep_json_stream_offset(f->stream);
        /* EP_ESYS: the queue has no room; it would not have it later. */
        if (rc < 0 && (rc == EP_ESYS || ep_json_stream_over(f->stream))) {
            finish(f, rc, err);
            rc = 0;
        }
        if (rc)
            return rc;
    }
    return drain(f, r, err);
}

/* "nccl_trace_rank_5", "comm_lib_trace_rank_5.json": 5; else -1. */
static int64_t rank_of(const char *path)
{
    const char *slash = strrchr(path, '/'), *p = slash ? slash + 1 : path;
    int64_t rank = -1;

    while ((p = strstr(p, "rank")) != NULL) {
        struct ep_cursor c;

        p += 4;
        p += *p == '_' || *p == '-';
        c = (struct ep_cursor){p, p + strlen(p)};
        (void)ep_cursor_uint(&c, &rank);
    }
    return rank;
}

static void *begin(struct ep_source *s)
{
    struct fr *f = ep_calloc(1, sizeof *f);
    struct ep_json_stream_config config = {
        .array = "entries", .read = read_source, .ctx = f};

    f->stream = ep_json_stream_new(&config);
    f->hold = ep_chrome_hold_new(sizeof(struct item));
    f->names = ep_intern_new();
    f->ids = ep_intern_new();
    ep_buf_init(&f->room);
    ep_buf_init(&f->text);
    f->rank = rank_of(s->name);
    f->mtime = s->mtime >= 0 ? s->mtime : 0;
    return f;
}

static void end(void *self)
{
    struct fr *f = self;

    if (!f)
        return;
    ep_json_stream_free(f->stream);
    ep_chrome_hold_free(f->hold);
    ep_intern_free(f->names);
    ep_intern_free(f->ids);
    free(f->groups);
    free(f->statuses);
    ep_buf_free(&f->room);
    ep_buf_free(&f->text);
    free(f);
}

static int sniff(const char *head, size_t len, const char *name)
{
    bool bare;

    (void)name;
    if (!ep_chrome_begins(head, len, &bare) || bare)
        return 0;
    if (ep_chrome_has(head, len, "\"collective_seq_id\"") ||
        ep_chrome_has(head, len, "\"time_discovered_started_ns\"") ||
        ep_chrome_has(head, len, "\"last_completed_collective\""))
        return 95;
    return ep_chrome_has(head, len, "\"comm_lib_version\"") ||
                   ep_chrome_has(head, len, "\"pg_config\"")
               ? 60
               : 0;
}

const struct ep_importer ep_import_fr = {
    .name = "flight-recorder",
    .what = "PyTorch's Flight Recorder, JSON",
    .sniff = sniff,
    .begin = begin,
    .next = next,
    .end = end,
};
