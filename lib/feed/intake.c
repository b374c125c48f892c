/* SPDX-License-Identifier: Apache-2.0 */
/* intake.c - records into the detectors; see intake.h. */
#include "config.h"

#include "feed/intake.h"

#include "feed/feed.h"

/* It was taken before the state was saved. */
#define KNOWN 1

/* A step that a rank, or the job, tells itself: better than what we find. */
static int take_step(struct ep_intake *in, const struct ep_record *r,
                     struct ep_error *err)
{
    struct ep_watch_step s;
    int rc;

    ep_feed_step(r, &s);
    if (!s.worker.len && ep_calls_mute(in->calls, s.job, err) < 0)
        return EP_ELIMIT;
    if (ep_record_has(r, EP_K_GPU) || ep_record_has(r, EP_K_GPU_INDEX)) {
        struct ep_watch_gauge device;

        ep_feed_gauge(r, &device);
        if (ep_watch_device(in->watch, &device, err) < 0)
            return EP_ELIMIT;
    }
    rc = ep_watch_step(in->watch, &s, err);
    in->steps += rc == 0;
    return rc;
}

static int take_gauge(struct ep_intake *in, const struct ep_record *r,
                      struct ep_error *err)
{
    struct ep_watch_gauge x;

    ep_feed_gauge(r, &x);
    return ep_watch_gauge(in->watch, &x, err);
}

static int take_probe(struct ep_intake *in, const struct ep_record *r,
                      struct ep_error *err)
{
    struct ep_watch_probe s;
    int rc = ep_feed_probe(r, &s, err);

    if (rc == 0)
        rc = ep_watch_probe(in->watch, &s, err);
    in->probes += rc == 0;
    return rc;
}

static int take_link(struct ep_intake *in, const struct ep_record *r,
                     struct ep_error *err)
{
    struct ep_watch_link s;
    int rc;

    ep_feed_link(r, &s);
    rc = ep_watch_link(in->watch, &s, err);
    in->links += rc == 0;
    return rc;
}

static int take_call(struct ep_intake *in, const struct ep_record *r,
                     struct ep_error *err)
{
    struct ep_call c;

    int rc;

    ep_feed_call(r, &c);
    rc = ep_calls_admit(in->calls, &c, err);
    if (rc <= 0)
        return rc < 0 ? rc : KNOWN;
    if (in->comms && ep_comms_take(in->comms, &c, err) < 0)
        return EP_ELIMIT;
    return ep_calls_push(in->calls, &c, err);
}

static int take(struct ep_intake *in, const struct ep_record *r,
                struct ep_error *err)
{
    if (r->type == EP_COLL || r->type == EP_P2P)
        return take_call(in, r, err);
    if (in->calls_only)
        return 0;
    switch (r->type) {
    case EP_STEP:
        return take_step(in, r, err);
    case EP_PROBE:
        return take_probe(in, r, err);
    case EP_LINK:
        return take_link(in, r, err);
    case EP_GAUGE:
        return take_gauge(in, r, err);
    default:
        return 0;
    }
}

int ep_intake_take(struct ep_intake *in, const struct ep_record *r,
                   struct ep_error *err)
{
    uint64_t known = ep_watch_known(in->watch);
    int rc = take(in, r, err);

    if (rc < 0)
        return rc;
    /* what was taken before is no news to anybody */
    if (rc == KNOWN || ep_watch_known(in->watch) != known)
        return 0;
    return ep_signs_take(&in->signs, r, err);
}

void ep_intake_iteration(void *ctx, const struct ep_calls_step *x)
{
    struct ep_intake *in = ctx;
    struct ep_watch_step s = {
        .job = x->job,
        .host = x->host,
        .rank = x->rank,
        .ts = x->ts,
        .step = x->step,
        .dur = x->dur,
        .busy = x->busy,
        .mb = -1,
        .phase = x->phase,
    };

    /* what it refuses is no line of the input that could be named */
    in->iterations += ep_watch_step(in->watch, &s, NULL) == 0;
}

const char *ep_intake_idle(const struct ep_intake *in)
{
    struct ep_calls_summary s;

    if (in->steps || in->probes || in->links || in->iterations)
        return NULL;
    ep_calls_sum(in->calls, &s);
    if (in->resumable && s.calls > s.unranked && s.learned)
        return NULL; /* none was over of late, that is all */
    if (!s.calls)
        return in->calls_only ? "cannot find iterations: no coll or p2p record "
                                "in the input"
                              : "cannot detect stragglers: no step, probe or "
                                "link record in the input";
    return s.unranked == s.calls
               ? "cannot find iterations: no coll or p2p record tells its rank"
               : "cannot find iterations: the calls of no rank repeat, or they "
                 "have no times";
}

void ep_intake_print(const struct ep_intake *in, struct ep_buf *b)
{
    ep_buf_addf(b, "%llu step and %llu probe records",
                (unsigned long long)in->steps, (unsigned long long)in->probes);
    if (in->links)
        ep_buf_addf(b, " and %llu link records", (unsigned long long)in->links);
    if (in->iterations)
        ep_buf_addf(b, " and %llu iterations",
                    (unsigned long long)in->iterations);
}
