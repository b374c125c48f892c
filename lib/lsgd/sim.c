/* SPDX-License-Identifier: Apache-2.0 */
/* sim.c - see sim.h: workers, failures, servers' queues, the loop. */
#include "config.h"

#include "lsgd/sim.h"

#include "base/mem.h"
#include "ckpt/q4.h"
#include "lsgd/sim_impl.h"

#include <math.h>
#include <stdlib.h>

/* 1e-6 ms x the worker's number, as the published clock has it */
#define TIE 1e-9

size_t ep_sim_region_of(const struct ep_sim *s, size_t server)
{
    return server < s->env->nregions ? server : s->env->gps_region;
}

static size_t server_of(const struct ep_sim *s, size_t worker)
{
    return s->ops->regional ? s->env->region_of[worker] : s->env->nregions;
}

void ep_sim_count(struct ep_sim *s, struct ep_sim_tier *tier,
                  const struct ep_sim_merge *m)
{
    tier->updates++;
    tier->sum += (double)m->staleness;
    if (m->staleness > tier->max)
        tier->max = m->staleness;
    if (s->on_merge)
        s->on_merge(s->ctx, m);
}

/* ==== Servers ==== */

static struct ep_sim_message take(struct ep_sim_server *v)
{
    struct ep_sim_message m = v->queue[v->first];

    v->first = (v->first + 1) % v->cap;
    v->n--;
    return m;
}

static void put(struct ep_sim_server *v, const struct ep_sim_message *m)
{
    if (v->n == v->cap) {
        size_t cap = v->cap ? 2 * v->cap : 8;
        struct ep_sim_message *queue = ep_calloc(cap, sizeof *queue);
        size_t n = 0;

        while (v->n)
            queue[n++] = take(v);
        free(v->queue);
        *v = (struct ep_sim_server){v->time, queue, 0, n, cap};
    }
    v->queue[(v->first + v->n++) % v->cap] = *m;
}

/* The server begins with the first in its queue. */
static void begin_service(struct ep_sim *s, size_t server)
{
    ep_vclock_at(&s->clock, s->clock.now + s->server[server].time, EP_EV_SERVED,
                 (uint32_t)server, 0);
}

int ep_sim_arrive(struct ep_sim *s, size_t server,
                  const struct ep_sim_message *m)
{
    struct ep_sim_server *v = &s->server[server];

    if (v->time <= 0)
        return s->ops->serve(s, server, m);
    put(v, m);
    if (v->n == 1)
        begin_service(s, server);
    return 0;
}

static int served(struct ep_sim *s, size_t server)
{
    struct ep_sim_message m = take(&s->server[server]);

    if (s->server[server].n)
        begin_service(s, server);
    return s->ops->serve(s, server, &m);
}

/* ==== Workers ==== */

void ep_sim_fetch(struct ep_sim *s, size_t worker)
{
    struct ep_sim_agent *a = &s->agent[worker];
    size_t at = ep_sim_region_of(s, server_of(s, worker));

    a->state = EP_AT_FETCH;
    a->fetched = s->ops->version(s, worker);
    ep_links_send(
        s->links, worker,
        ep_links_between(s->links, at, s->env->region_of[worker], true),
        s->bytes);
}

int ep_sim_train(struct ep_sim *s, size_t worker)
{
    struct ep_sim_agent *a = &s->agent[worker];

    a->state = EP_AT_TRAIN;
    a->began = s->clock.now;
    ep_vclock_at(&s->clock, s->clock.now + a->round, EP_EV_TRAINED,
                 (uint32_t)worker, a->life);
    return ep_worker_start(&a->machine, a->fetched,
                           ep_samples_take(&s->samples, a->machine.steps),
                           s->err);
}

static int trained(struct ep_sim *s, const struct ep_vevent *e)
{
    struct ep_sim_agent *a = &s->agent[e->id];
    size_t region = s->env->region_of[e->id];
    int rc;

    if (e->gen != a->life)
        return 0;
    rc = ep_worker_finish(&a->machine, &a->delta, s->err);
    if (rc < 0)
        return rc;
    s->out->worker[e->id].busy += s->clock.now - a->began;
    if (s->ops->finished) {
        a->state = EP_AT_WAIT;
        s->ops->finished(s, e->id);
        return 0;
    }
    a->state = EP_AT_SEND;
    ep_links_send(s->links, e->id,
                  ep_links_between(s->links, region,
                                   ep_sim_region_of(s, server_of(s, e->id)),
                                   false),
                  s->bytes);
    return 0;
}

/* What a worker sent or fetched has arrived. */
static int worker_arrived(struct ep_sim *s, size_t worker)
{
    struct ep_sim_agent *a = &s->agent[worker];
    const struct ep_sim_message m = {.from = worker,
                                     .life = a->life,
                                     .base = a->delta.base,
                                     .work = a->delta.work};

    if (a->state == EP_AT_FETCH)
        return ep_sim_train(s, worker);
    a->state = EP_AT_WAIT;
    s->out->worker_updates++;
    s->out->worker[worker].updates++;
    s->out->region[s->env->region_of[worker]].updates++;
    return ep_sim_arrive(s, server_of(s, worker), &m);
}

static int arrived(struct ep_sim *s, const struct ep_vevent *e)
{
    if (!ep_links_arrived(s->links, e))
        return 0;
    return e->id < s->env->nworkers
               ? worker_arrived(s, e->id)
               : s->ops->exchanged(s, e->id - s->env->nworkers);
}

/* ==== Failures ==== */

static void plan_failure(struct ep_sim *s, size_t worker)
{
    const struct ep_env *env = s->env;
    struct ep_sim_agent *a = &s->agent[worker];

    if (env->mttf > 0)
        ep_vclock_at(&s->clock,
                     s->clock.now + ep_rng_exponential(&a->rng, env->mttf),
                     EP_EV_DOWN, (uint32_t)worker, 0);
    else if (a->failure < env->nfailures &&
             env->failure[a->failure].worker == worker)
        ep_vclock_at(&s->clock, env->failure[a->failure].down, EP_EV_DOWN,
                     (uint32_t)worker, 0);
}

/* Local steps of its round that a worker has done by now. */
static uint64_t steps_done(const struct ep_sim *s, size_t worker)
{
    const struct ep_sim_agent *a = &s->agent[worker];
    double steps;

    switch (a->state) {
    case EP_AT_TRAIN:
        steps = floor((s->clock.now - a->began) / a->step);
        return steps < (double)a->machine.steps ? (uint64_t)steps
                                                : a->machine.steps;
    case EP_AT_SEND:
        return a->machine.steps;
    case EP_AT_WAIT: /* the server has its delta; the barrier has not */
        return s->ops->finished ? a->machine.steps : 0;
    case EP_AT_FETCH:
    case EP_AT_DOWN:
        break;
    }
    return 0;
}

static void down(struct ep_sim *s, size_t worker)
{
    const struct ep_env *env = s->env;
    struct ep_sim_agent *a = &s->agent[worker];
    struct ep_sim_worker *o = &s->out->worker[worker];
    double up;

    o->failures++;
    o->steps_lost += steps_done(s, worker);
    if (a->state == EP_AT_TRAIN)
        o->busy += s->clock.now - a->began;
    if (s->ops->lost)
        s->ops->lost(s, worker);
    ep_links_cancel(s->links, worker);
    ep_worker_fail(&a->machine);
    a->state = EP_AT_DOWN;
    a->life++;
    up = env->mttf > 0 ? s->clock.now + ep_rng_exponential(&a->rng, env->rejoin)
                       : env->failure[a->failure++].up;
    if (isfinite(up))
        ep_vclock_at(&s->clock, up, EP_EV_UP, (uint32_t)worker, 0);
}

static void up(struct ep_sim *s, size_t worker)
{
    ep_sim_fetch(s, worker);
    plan_failure(s, worker);
}

/* ==== The run ==== */

static int dispatch(struct ep_sim *s, const struct ep_vevent *e)
{
    switch (e->kind) {
    case EP_EV_ARRIVED:
        return arrived(s, e);
    case EP_EV_ENDED:
        ep_links_ended(s->links, e);
        return 0;
    case EP_EV_TRAINED:
        return trained(s, e);
    case EP_EV_SERVED:
        return served(s, e->id);
    case EP_EV_REDUCED:
        return e->gen == s->attempt ? s->ops->reduced(s) : 0;
    case EP_EV_DOWN:
        down(s, e->id);
        return 0;
    default:
        up(s, e->id);
        return 0;
    }
}

static int give_up(const struct ep_sim *s, const char *reason)
{
    size_t is_down = 0;
    struct ep_buf name;

    ep_buf_init(&name);
    ep_sim_name(s->method, s->settings, &name);
    for (size_t w = 0; w < s->env->nworkers; w++)
        is_down += s->agent[w].state == EP_AT_DOWN;
    (void)ep_error_set(
        s->err, EP_ELIMIT,
        "cannot finish %s: %s at %.6g s, with %llu of %llu "
        "steps done and %zu of %zu workers down",
        name.ptr, reason, s->clock.now, (unsigned long long)s->credited,
        (unsigned long long)s->env->total_steps, is_down, s->env->nworkers);
    ep_buf_free(&name);
    return EP_ELIMIT;
}

static int loop(struct ep_sim *s)
{
    struct ep_vevent e;
    int rc = 0;

    while (rc == 0 && !s->done) {
        if (!ep_vclock_next(&s->clock, &e))
            return give_up(s, "nothing can happen any more");
        if (s->clock.passed > s->env->max_events)
            return give_up(s, "too many events");
        if (s->clock.now > EP_SIM_SECONDS)
            return give_up(s, "too long");
        rc = dispatch(s, &e);
    }
    return rc;
}

/* H_i, and how long they take. */
static int init_agent(struct ep_sim *s, size_t w)
{
    const struct ep_env *env = s->env;
    struct ep_sim_agent *a = &s->agent[w];
    bool equal = s->method == EP_METHOD_DILOCO || s->method == EP_METHOD_SYNC;
    uint64_t steps = s->settings->h;
    int rc = 0;

    if (!equal)
        rc = ep_local_steps(s->settings->h, env->speed[w], env->fastest, &steps,
                            s->err);
    if (rc == 0)
        rc = ep_worker_init(&a->machine, steps, env->tokens_per_step, s->err);
    if (rc < 0)
        return rc;
    a->step = env->step * env->fastest / env->speed[w];
    a->round = a->step * (double)steps;
    if (!s->ops->finished)
        a->round += TIE * (double)w;
    ep_rng_seed(&a->rng, env->seed, w);
    while (a->failure < env->nfailures && env->failure[a->failure].worker < w)
        a->failure++;
    s->out->worker[w].h = steps;
    return 0;
}

static int init(struct ep_sim *s)
{
    const struct ep_env *env = s->env;
    const struct ep_links_config links = {
        .nregions = env->nregions,
        .gbit_s = env->gbit_s,
        .latency = env->latency,
        .contention = env->contention,
        .nsenders = env->nworkers + env->nregions,
        .arrived = EP_EV_ARRIVED,
        .ended = EP_EV_ENDED,
    };
    int rc = 0;

    s->links = ep_links_new(&links, &s->clock);
    s->bytes = (double)env->parameters * (double)env->bytes_per_parameter;
    s->q4_bytes = env->q4 ? EP_Q4_BLOCK_BYTES *
                                ceil((double)env->parameters / EP_Q4_BLOCK)
                          : s->bytes;
    s->samples.batch = 1;
    s->agent = ep_calloc(env->nworkers, sizeof *s->agent);
    s->server = ep_calloc(env->nregions + 1, sizeof *s->server);
    s->lps = ep_calloc(env->nregions, sizeof *s->lps);
    s->dropped = ep_calloc(env->nregions, sizeof *s->dropped);
    s->exchange = ep_calloc(env->nregions, sizeof *s->exchange);
    for (size_t r = 0; r <= env->nregions; r++)
        s->server[r].time = r < env->nregions ? env->lps_time : env->gps_time;
    for (size_t w = 0; rc == 0 && w < env->nworkers; w++)
        rc = init_agent(s, w);
    if (rc == 0)
        rc = s->ops->begin(s);
    for (size_t w = 0; rc == 0 && w < env->nworkers; w++)
        plan_failure(s, w);
    return rc;
}

static void sum_up(struct ep_sim *s)
{
    struct ep_sim_result *o = s->out;

    s->ops->end(s);
    o->seconds = s->clock.now;
    o->steps = s->credited;
    o->events = s->clock.passed;
    ep_links_bytes(s->links, &o->between, &o->inside);
    o->load = ep_links_busiest(s->links, &o->load_from, &o->load_to);
    if (o->seconds > 0)
        o->load /= o->seconds;
    for (size_t w = 0; w < s->env->nworkers; w++) {
        if (s->agent[w].state == EP_AT_TRAIN)
            o->worker[w].busy += s->clock.now - s->agent[w].began;
        o->failures += o->worker[w].failures;
        o->steps_lost += o->worker[w].steps_lost;
    }
    for (size_t r = 0; r < s->env->nregions; r++) {
        o->unsent += o->region[r].unsent;
        o->pending += o->region[r].pending;
    }
}

static void release(struct ep_sim *s)
{
    for (size_t r = 0; s->server && r <= s->env->nregions; r++)
        free(s->server[r].queue);
    free(s->agent);
    free(s->server);
    free(s->lps);
    free(s->dropped);
    free(s->exchange);
    ep_gps_free(&s->gps);
    ep_round_free(&s->round);
    ep_links_free(s->links);
    ep_vclock_free(&s->clock);
}

int ep_sim_run(const struct ep_env *env, enum ep_method method,
               const struct ep_env_method *settings, ep_sim_on_merge *on_merge,
               void *ctx, struct ep_sim_result *out, struct ep_error *err)
{
    static const struct ep_sim_ops *const ops[EP_METHODS] = {
        &ep_sim_halos, &ep_sim_async, &ep_sim_rounds, &ep_sim_rounds,
        &ep_sim_rounds};
    struct ep_sim s = {.env = env,
                       .method = method,
                       .settings = settings,
                       .ops = ops[method],
                       .out = out,
                       .on_merge = on_merge,
                       .ctx = ctx,
                       .err = err};
    int rc;

    *out = (struct ep_sim_result){
        .region = ep_calloc(env->nregions, sizeof *out->region),
        .worker = ep_calloc(env->nworkers, sizeof *out->worker)};
    ep_vclock_init(&s.clock);
    rc = init(&s);
    if (rc == 0)
        rc = loop(&s);
    if (rc == 0)
        sum_up(&s);
    else
        ep_sim_result_free(out);
    release(&s);
    return rc;
}

void ep_sim_name(enum ep_method method, const struct ep_env_method *settings,
                 struct ep_buf *out)
{
    ep_buf_addf(out, "%s H=%llu", ep_method_names[method],
                (unsigned long long)settings->h);
    if (method == EP_METHOD_HALOS)
        ep_buf_addf(out, " K=%llu", (unsigned long long)settings->k);
}

void ep_sim_result_free(struct ep_sim_result *r)
{
    free(r->region);
    free(r->worker);
    *r = (struct ep_sim_result){.region = NULL};
}
