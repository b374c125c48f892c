/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sim.h - training methods on a virtual clock, without parameters: what
 * arrives when, and what that costs.
 *
 * The rules are those of the state machines (lps.h, gps.h, round.h, worker.h),
 * which are driven here by events; this module knows only how long things
 * take.
 *
 *     halos           a worker fetches parameters from its region's server,
 *                     trains H_i steps, sends its delta, and again
 *     async           the same with the global server alone
 *     diloco          all train H steps, then a ring all-reduce over all
 *     diloco-dynamic  the same with H_i steps
 *     sync            the same with one step
 *
 *     training        step x H_i x fastest / speed (+ 1 ns x the worker's
 *                     number in halos and async, which breaks ties)
 *     transfers       links.h; deltas and parameters have the model's bytes,
 *                     with q4 (halos, between servers) 36 per 64 values
 *     servers         lps_time or gps_time for each delta and merge, in the
 *                     order of arrival; 0: at once
 *     failures        a worker that goes down loses its round (what is in
 *                     training, on its way to the server or, with a barrier,
 *                     finished but not reduced). Others go on; a barrier
 *                     waits. When it is up again it fetches the parameters as
 *                     they are then, from its server (with a barrier: from
 *                     the region of the global server)
 *
 * The run ends when the global server has been credited with the total number
 * of steps. In halos the steps of updates that were dropped by a merge are
 * credited too. With the published environment of HALoS (arXiv 2506.04531) and
 * no options this is its authors' clock.
 */
#ifndef EP_LSGD_SIM_H
#define EP_LSGD_SIM_H

#include "base/buf.h"
#include "lsgd/env.h"

#define EP_SIM_SECONDS 1e12 /* a run that needs more is given up */

#define EP_SIM_NONE SIZE_MAX

/* An update that a server applied. */
struct ep_sim_merge {
    double t;         /* s from the start */
    bool global;      /* GPS or barrier; else LPS */
    size_t region;    /* LPS: whose; GPS of halos: from which. Else NONE */
    size_t worker;    /* whose delta; NONE: a region's, or all workers' */
    uint64_t version; /* of the server, after it */
    uint64_t base;    /* version from which it started */
    uint64_t staleness;
    uint64_t steps, tokens;
};

/* Staleness of a tier's updates. */
struct ep_sim_tier {
    uint64_t updates;
    double sum;
    uint64_t max;
};

struct ep_sim_region {
    uint64_t updates; /* worker updates that its workers delivered */
    uint64_t sent;    /* halos: of these, in deltas that were sent */
    uint64_t unsent;  /* dropped by a merge: in no delta, ever */
    uint64_t pending; /* the rest: not sent, not dropped, at the end */
};

struct ep_sim_worker {
    uint64_t h;       /* H_i */
    uint64_t updates; /* delivered */
    double busy;      /* s of training */
    uint64_t failures;
    uint64_t steps_lost; /* trained, in a delta that came nowhere */
};

struct ep_sim_result {
    double seconds;
    struct ep_sim_tier gps, lps; /* with a barrier: rounds, and nothing */
    uint64_t worker_updates;
    uint64_t steps;           /* credited */
    double between, inside;   /* bytes between regions and in them */
    uint64_t unsent, pending; /* worker updates, as by region */
    uint64_t failures, steps_lost;
    uint64_t events;
    /* Of the link with most to do, the seconds that its transfers need alone
       over all seconds; above 1 they were given more than it has (no
       contention). 0 without transfers: all-reduces are none. */
    double load;
    size_t load_from, load_to;    /* regions; the same: inside it */
    struct ep_sim_region *region; /* [nregions], owned */
    struct ep_sim_worker *worker; /* [nworkers], owned */
};

/* Called for each update; may be NULL. */
typedef void ep_sim_on_merge(void *ctx, const struct ep_sim_merge *m);

/*
 * Run a method with settings (usually env->method[method], H and K changed).
 * Errors: EP_EDOM (settings; the machines' messages), EP_ELIMIT "cannot
 * finish NAME: reason" (nothing can happen any more, or more than
 * env->max_events or EP_SIM_SECONDS), NAME as ep_sim_name has it;
 * nothing to free then.
 * Cost: about 0.15 us per event; a worker's round is 3 events.
 */
int ep_sim_run(const struct ep_env *env, enum ep_method method,
               const struct ep_env_method *settings, ep_sim_on_merge *on_merge,
               void *ctx, struct ep_sim_result *out,
               struct ep_error *err) EP_MUST_USE;
/* Append "METHOD H=8", or of halos "halos H=8 K=32". */
void ep_sim_name(enum ep_method method, const struct ep_env_method *settings,
                 struct ep_buf *out);

void ep_sim_result_free(struct ep_sim_result *r); /* all-zero allowed */

#endif
