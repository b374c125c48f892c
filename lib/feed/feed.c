/* SPDX-License-Identifier: Apache-2.0 */
/* feed.c - see feed.h. */
#include "config.h"

#include "feed/feed.h"

/* Where in the job a rank is, if the record says it. */
static struct ep_place place_of(const struct ep_record *r)
{
    struct ep_place p = {
        .dp = ep_record_int(r, EP_K_DP, -1),
        .pp = ep_record_int(r, EP_K_PP, -1),
        .tp = ep_record_int(r, EP_K_TP, -1),
    };

    p.known = p.dp >= 0 || p.pp >= 0 || p.tp >= 0;
    return p;
}

/* A number that is > 0 where it is told. */
static double amount_of(const struct ep_record *r, enum ep_key key)
{
    return ep_record_has(r, key) ? ep_record_num(r, key) : 0;
}

void ep_feed_call(const struct ep_record *r, struct ep_call *out)
{
    *out = (struct ep_call){
        .job = ep_record_str(r, EP_K_JOB),
        .host = ep_record_str(r, EP_K_HOST),
        .op = ep_record_str(r, EP_K_OP),
        .comm = ep_record_str(r, EP_K_COMM),
        .rank = ep_record_int(r, EP_K_RANK, -1),
        .pid = ep_record_int(r, EP_K_PID, -1),
        .nranks = ep_record_int(r, EP_K_NRANKS, -1),
        .comm_rank = ep_record_int(r, EP_K_COMM_RANK, -1),
        .peer = ep_record_int(r, EP_K_PEER, -1),
        .bytes = ep_record_int(r, EP_K_BYTES, -1),
        .seq = ep_record_int(r, EP_K_SEQ, -1),
        .place = place_of(r),
        .p2p = r->type == EP_P2P,
        .ts = ep_record_num(r, EP_K_TS),
        .dur = ep_record_num(r, EP_K_DUR),
    };
}

void ep_feed_gauge(const struct ep_record *r, struct ep_watch_gauge *out)
{
    *out = (struct ep_watch_gauge){
        .job = ep_record_str(r, EP_K_JOB),
        .host = ep_record_str(r, EP_K_HOST),
        .gpu = ep_record_str(r, EP_K_GPU),
        .name = ep_record_str(r, EP_K_NAME),
        .rank = ep_record_int(r, EP_K_RANK, -1),
        .gpu_index = ep_record_int(r, EP_K_GPU_INDEX, -1),
        .ts = ep_record_num(r, EP_K_TS),
        .value = ep_record_num(r, EP_K_VALUE),
    };
}

void ep_feed_link(const struct ep_record *r, struct ep_watch_link *out)
{
    *out = (struct ep_watch_link){
        .job = ep_record_str(r, EP_K_JOB),
        .src = ep_record_str(r, EP_K_SRC),
        .dst = ep_record_str(r, EP_K_DST),
        .transport = ep_record_str(r, EP_K_TRANSPORT),
        .bytes = ep_record_int(r, EP_K_BYTES, -1),
        .ts = ep_record_num(r, EP_K_TS),
        .value = ep_record_num(r, EP_K_VALUE),
    };
}

void ep_feed_step(const struct ep_record *r, struct ep_watch_step *out)
{
    *out = (struct ep_watch_step){
        .job = ep_record_str(r, EP_K_JOB),
        .host = ep_record_str(r, EP_K_HOST),
        .worker = ep_record_str(r, EP_K_WORKER),
        .rank = ep_record_int(r, EP_K_RANK, -1),
        .place = place_of(r),
        .ts = ep_record_num(r, EP_K_TS),
        .step = ep_record_int(r, EP_K_STEP, -1),
        .dur = ep_record_num(r, EP_K_DUR),
        .busy = ep_record_num(r, EP_K_BUSY),
        .mb = ep_record_int(r, EP_K_MB, -1),
        .tokens = amount_of(r, EP_K_TOKENS),
        .flops = amount_of(r, EP_K_FLOPS),
    };
}

int ep_feed_probe(const struct ep_record *r, struct ep_watch_probe *out,
                  struct ep_error *err)
{
    struct ep_span better = ep_record_str(r, EP_K_BETTER);

    *out = (struct ep_watch_probe){
        .job = ep_record_str(r, EP_K_JOB),
        .host = ep_record_str(r, EP_K_HOST),
        .gpu = ep_record_str(r, EP_K_GPU),
        .test = ep_record_str(r, EP_K_TEST),
        .dtype = ep_record_str(r, EP_K_DTYPE),
        .unit = ep_record_str(r, EP_K_UNIT),
        .rank = ep_record_int(r, EP_K_RANK, -1),
        .size = ep_record_int(r, EP_K_SIZE, -1),
        .ts = ep_record_num(r, EP_K_TS),
        .value = ep_record_num(r, EP_K_VALUE),
        .high_is_better = ep_span_eq(better, "high"),
        .spread = ep_record_num(r, EP_K_SPREAD),
        .ref_own = ep_record_num(r, EP_K_REF_OWN),
    };
    if (!out->high_is_better && !ep_span_eq(better, "low"))
        return ep_error_set(err, EP_EFORMAT, "better is not high or low");
    return 0;
}

void ep_feed_event(const struct ep_finding *f, struct ep_record *out)
{
    ep_record_begin(out, EP_EVENT);
    ep_record_set_num(out, EP_K_TS, f->ts); /* NaN of what is open: left out */
    ep_record_set_str(out, EP_K_JOB, f->job);
    ep_record_set_str(out, EP_K_HOST, f->host);
    if (f->rank >= 0)
        ep_record_set_int(out, EP_K_RANK, f->rank);
    ep_record_set_str(out, EP_K_EID, f->eid);
    ep_record_set_str(out, EP_K_KIND, ep_finding_names[f->kind]);
    ep_record_set_str(out, EP_K_SCOPE, ep_scope_names[f->scope]);
    ep_record_set_str(out, EP_K_ID, f->id);
    ep_record_set_num(out, EP_K_SINCE, f->since);
    if (f->step >= 0)
        ep_record_set_int(out, EP_K_STEP, f->step);
    /* what is missing has no pace */
    if (f->kind != EP_FINDING_MISSING)
        ep_record_set_num(out, EP_K_FACTOR, f->factor);
    ep_record_set_num(out, EP_K_P, f->p);
    ep_record_set_str(out, EP_K_CAUSE, f->cause);
    ep_record_set_str(out, EP_K_EVIDENCE, f->evidence);
    ep_record_set_num(out, EP_K_GPU_HOURS, f->gpu_hours);
}

void ep_feed_iteration(const struct ep_calls_step *x, struct ep_record *out)
{
    ep_record_begin(out, EP_STEP);
    ep_record_set_num(out, EP_K_TS, x->ts);
    if (x->job.len)
        ep_record_set_span(out, EP_K_JOB, x->job);
    if (x->host.len)
        ep_record_set_span(out, EP_K_HOST, x->host);
    ep_record_set_int(out, EP_K_RANK, x->rank);
    ep_record_set_int(out, EP_K_STEP, x->step);
    ep_record_set_num(out, EP_K_DUR, x->dur);
    ep_record_set_num(out, EP_K_BUSY, x->busy);
}
