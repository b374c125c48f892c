/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_sim.c - the simulator against a second one, plain_sim.h, on random
 * environments with latency and failures; then cases by hand, and what must
 * not end well.
 *
 * The published figures are in tests/lsgd-sim.bats.
 */
#include "config.h"

#include "base/buf.h"
#include "base/rng.h"
#include "lsgd/sim.h"

#include "plain_sim.h"
#include "tap.h"

#include <string.h>

/* ==== Random environments ==== */

struct world {
    struct ep_env env;
    struct ep_env_region region[MAX_R];
    double speed[MAX_W], gbit_s[MAX_R * MAX_R];
    size_t region_of[MAX_W];
    struct ep_env_failure failure[2 * MAX_W];
};

static double between(struct ep_rng *r, double lo, double hi)
{
    return lo + (hi - lo) * ep_rng_uniform(r);
}

static size_t whole(struct ep_rng *r, size_t lo, size_t hi)
{
    return lo + (size_t)(ep_rng_next(r) % (hi - lo + 1));
}

static void random_world(struct world *w, struct ep_rng *r)
{
    struct ep_env *e = &w->env;

    *w = (struct world){.env = {.region = w->region,
                                .speed = w->speed,
                                .region_of = w->region_of,
                                .gbit_s = w->gbit_s,
                                .failure = w->failure,
                                .max_events = EP_ENV_EVENTS}};
    e->nregions = whole(r, 1, MAX_R);
    for (size_t i = 0; i < e->nregions; i++) {
        w->region[i] = (struct ep_env_region){.first = e->nworkers,
                                              .workers = whole(r, 1, 3)};
        for (size_t j = 0; j < w->region[i].workers; j++) {
            w->region_of[e->nworkers] = i;
            w->speed[e->nworkers] = between(r, 0.1, 1);
            e->fastest = fmax(e->fastest, w->speed[e->nworkers++]);
        }
    }
    for (size_t i = 0; i < e->nregions * e->nregions; i++)
        w->gbit_s[i] =
            i % (e->nregions + 1) ? between(r, 0.1, 2) : between(r, 1, 20);
    e->gps_region = whole(r, 0, e->nregions - 1);
    e->step = between(r, 0.05, 1);
    e->parameters = whole(r, 1000000, 50000000);
    e->bytes_per_parameter = 4;
    e->total_steps = whole(r, 200, 4000);
    e->tokens_per_step = 1;
    e->latency = whole(r, 0, 1) ? between(r, 0, 1) : 0;
    if (whole(r, 0, 1))
        return;
    for (size_t i = 0; i < e->nworkers; i++) {
        double t = 0;

        for (size_t n = whole(r, 0, 2); n; n--) {
            struct ep_env_failure *f = &w->failure[e->nfailures++];

            f->worker = i;
            f->down = t + between(r, 0, 60);
            t = f->up = f->down + between(r, 0, 60);
        }
    }
}

static bool close(double a, double b)
{
    return fabs(a - b) <= 1e-9 * fmax(fabs(a), fabs(b));
}

static bool agree(const struct plain *p, const struct ep_sim_result *o)
{
    return close(o->seconds, p->t) && o->gps.updates == p->updates[0] &&
           o->lps.updates == p->updates[1] && close(o->gps.sum, p->stale[0]) &&
           close(o->lps.sum, p->stale[1]) && o->unsent == p->dropped &&
           o->steps == p->credit && o->steps_lost == p->lost_steps;
}

/* Every update of a region is sent, dropped or pending. */
static bool balanced(const struct world *w, const struct ep_sim_result *o)
{
    for (size_t r = 0; r < w->env.nregions; r++)
        if (o->region[r].sent + o->region[r].unsent + o->region[r].pending !=
            o->region[r].updates)
            return false;
    return true;
}

static void test_random(uint64_t seed)
{
    struct ep_sim_result o;
    struct ep_error err = {.code = 0};
    struct world w;
    struct ep_rng r;

    ep_rng_seed(&r, seed, 0);
    random_world(&w, &r);
    for (int m = 0; m < EP_METHODS; m++) {
        enum ep_method method = (enum ep_method)m;
        const struct ep_env_method s = {
            .h = m == EP_METHOD_SYNC ? 1 : whole(&r, 1, 20),
            .k = whole(&r, 1, 12),
            .alpha = 0.25,
            .lps = {.lr = 1, .n = 1},
            .gps = {.lr = 1, .n = 1}};
        struct plain p = {.e = &w.env, .method = method, .k = s.k};
        int rc = ep_sim_run(&w.env, method, &s, NULL, NULL, &o, &err);

        if (!ok(rc == 0)) {
            printf("# seed %llu: %s\n", (unsigned long long)seed, err.msg);
            continue;
        }
        for (size_t i = 0; i < w.env.nworkers; i++)
            p.h[i] = o.worker[i].h;
        plain_run(&p);
        if (!ok(agree(&p, &o) &&
                (method != EP_METHOD_HALOS || balanced(&w, &o))))
            printf(
                "# seed %llu %s: %.12g s, %.12g s; updates %llu, %llu; "
                "lost %llu, %llu\n",
                (unsigned long long)seed, ep_method_names[m], o.seconds, p.t,
                (unsigned long long)o.gps.updates,
                (unsigned long long)p.updates[0],
                (unsigned long long)o.steps_lost,
                (unsigned long long)p.lost_steps);
        ep_sim_result_free(&o);
        /* shared links that are never shared, and idle servers: the same */
        if (w.env.nworkers == 1 && m == EP_METHOD_ASYNC) {
            w.env.contention = true;
            ok(ep_sim_run(&w.env, method, &s, NULL, NULL, &o, &err) == 0);
            ok(close(o.seconds, p.t));
            ep_sim_result_free(&o);
            w.env.contention = false;
        }
    }
}

/* ==== By hand ==== */

/* One region of n workers, a step is 1 s, a transfer 1 s. */
static void small_world(struct world *w, size_t n, uint64_t steps)
{
    *w = (struct world){.env = {.region = w->region,
                                .nregions = 1,
                                .speed = w->speed,
                                .region_of = w->region_of,
                                .nworkers = n,
                                .fastest = 1,
                                .gbit_s = w->gbit_s,
                                .step = 1,
                                .parameters = 125000000,
                                .bytes_per_parameter = 1,
                                .total_steps = steps,
                                .tokens_per_step = 2,
                                .max_events = EP_ENV_EVENTS,
                                .failure = w->failure}};
    w->region[0].workers = n;
    w->gbit_s[0] = 1;
    for (size_t i = 0; i < n; i++)
        w->speed[i] = 1;
}

static const struct ep_env_method ten = {
    .h = 10,
    .k = 2,
    .alpha = 0.5,
    .lps = {.lr = 1, .n = 1},
    .gps = {.lr = 1, .n = 1},
};

static void seconds(struct world *w, enum ep_method m, double want)
{
    struct ep_error err = {.code = 0};
    struct ep_sim_result o;

    if (!ok(ep_sim_run(&w->env, m, &ten, NULL, NULL, &o, &err) == 0)) {
        printf("# %s\n", err.msg);
        return;
    }
    near(o.seconds, want, 1e-7); /* ties are broken by 1e-9 s */
    ep_sim_result_free(&o);
}

static void test_options(void)
{
    struct world w;

    small_world(&w, 1, 30);
    seconds(&w, EP_METHOD_ASYNC, 36);
    w.env.latency = 0.5; /* twice in a round */
    seconds(&w, EP_METHOD_ASYNC, 39);
    w.env.latency = 0;
    w.env.gps_time = 1; /* once in a round */
    seconds(&w, EP_METHOD_ASYNC, 39);
    w.env.contention = true; /* nobody to share with */
    seconds(&w, EP_METHOD_ASYNC, 39);
    /* two workers: fetch 2 s, train 10 s, send 2 s; two rounds */
    small_world(&w, 2, 40);
    seconds(&w, EP_METHOD_ASYNC, 24);
    w.env.contention = true;
    seconds(&w, EP_METHOD_ASYNC, 28);
    /* the second waits: 12, 13, 14; then fetch 14, train 24, send 25, 26 and
       one later: 25, 26, 27 */
    small_world(&w, 2, 40);
    w.env.gps_time = 1;
    seconds(&w, EP_METHOD_ASYNC, 27);
    /* halos, K = 2: both at 12; up at 13, which credits 20 */
    small_world(&w, 2, 20);
    seconds(&w, EP_METHOD_HALOS, 13);
    w.env.lps_time = 1;
    w.env.gps_time = 2;
    seconds(&w, EP_METHOD_HALOS, 17);
    /* 36 / 256 of the bytes of 4-byte parameters */
    small_world(&w, 2, 20);
    w.env.parameters /= 4;
    w.env.bytes_per_parameter = 4;
    w.env.q4 = true;
    seconds(&w, EP_METHOD_HALOS, 12 + ceil(31250000 / 64.0) * 36 * 8 / 1e9);
    /* a barrier: train 10 s, then 2 (2 - 1) / 2 x 1 s; one has nobody */
    small_world(&w, 2, 60);
    seconds(&w, EP_METHOD_DILOCO, 33);
    w.env.latency = 0.25;
    seconds(&w, EP_METHOD_DILOCO, 34.5);
    small_world(&w, 1, 60);
    seconds(&w, EP_METHOD_DILOCO_DYNAMIC, 60);
}

/* What the busiest link has to do. */
static void test_load(void)
{
    struct ep_error err;
    struct ep_sim_result o;
    struct world w;

    /* three fetches, three deltas, 1 s each, on links of their own */
    small_world(&w, 1, 30);
    ok(ep_sim_run(&w.env, EP_METHOD_ASYNC, &ten, NULL, NULL, &o, &err) == 0);
    near(o.load, 3.0 / 36, 1e-9);
    ok(o.load_from == 0 && o.load_to == 0);
    ep_sim_result_free(&o);
    /* eight at once */
    for (size_t i = 0; i < 2; i++) {
        small_world(&w, 8, 160);
        w.env.contention = i > 0;
        w.gbit_s[0] = 0.25;
        ok(ep_sim_run(&w.env, EP_METHOD_ASYNC, &ten, NULL, NULL, &o, &err) ==
           0);
        /* 8 x 2 fetches of 4 s; a round is 4 + 10 + 4 s, or 32 + 10 + 32 */
        near(o.load, i == 0 ? 64.0 / 36 : 64.0 / 148, 1e-6);
        ep_sim_result_free(&o);
    }
    /* all-reduces are no transfers */
    ok(ep_sim_run(&w.env, EP_METHOD_SYNC, &ten, NULL, NULL, &o, &err) == 0);
    near(o.load, 0, 0);
    ep_sim_result_free(&o);
}

static void test_failures(void)
{
    struct world w;
    struct ep_sim_result o;
    struct ep_error err;

    /* fetch 12 - 13, train from 13, down at 15.5: 2 whole steps are lost;
       up at 20, fetched 21, trained 31, sent 32; and a round more */
    small_world(&w, 1, 30);
    w.env.nfailures = 1;
    w.failure[0] = (struct ep_env_failure){0, 15.5, 20};
    ok(ep_sim_run(&w.env, EP_METHOD_ASYNC, &ten, NULL, NULL, &o, &err) == 0);
    near(o.seconds, 44, 1e-9);
    ok(o.failures == 1 && o.steps_lost == 2 && o.worker[0].failures == 1);
    near(o.worker[0].busy, 32.5, 1e-9);
    ep_sim_result_free(&o);
    /* on its way to the server: all ten */
    w.failure[0] = (struct ep_env_failure){0, 11.5, 11.75};
    ok(ep_sim_run(&w.env, EP_METHOD_ASYNC, &ten, NULL, NULL, &o, &err) == 0);
    near(o.seconds, 47.75, 1e-9);
    ok(o.steps_lost == 10);
    ep_sim_result_free(&o);
    /* waiting for its server, which has its delta: nothing is lost */
    w.env.gps_time = 4;
    w.failure[0] = (struct ep_env_failure){0, 13, 14};
    ok(ep_sim_run(&w.env, EP_METHOD_ASYNC, &ten, NULL, NULL, &o, &err) == 0);
    near(o.seconds, 16 + 10 + 4 + 16, 1e-9); /* 14 + 12 = 26, 30, 46 */
    ok(o.steps_lost == 0 && o.failures == 1);
    ok(o.gps.max == 1); /* it fetched before its delta was applied */
    ep_sim_result_free(&o);
    /* in the all-reduce (10 - 11): from 14 fetch 1, train 10, reduce 1 */
    small_world(&w, 2, 40);
    w.env.nfailures = 1;
    w.failure[0] = (struct ep_env_failure){1, 10.5, 14};
    ok(ep_sim_run(&w.env, EP_METHOD_DILOCO, &ten, NULL, NULL, &o, &err) == 0);
    near(o.seconds, 26 + 11, 1e-9);
    ok(o.steps_lost == 10 && o.gps.updates == 2);
    ep_sim_result_free(&o);
    /* one of two for ever: the other does it alone; with a barrier nothing */
    w.failure[0].up = (double)INFINITY;
    seconds(&w, EP_METHOD_ASYNC, 48);
    ok(ep_sim_run(&w.env, EP_METHOD_DILOCO, &ten, NULL, NULL, &o, &err) ==
       EP_ELIMIT);
    ok(strcmp(err.msg,
              "cannot finish diloco H=10: nothing can happen any more at "
              "11 s, with 0 of 40 steps done and 1 of 2 workers "
              "down") == 0);
}

static void test_random_failures(void)
{
    struct world w;
    struct ep_sim_result a, b, c;
    struct ep_error err;

    small_world(&w, 4, 4000);
    w.env.mttf = 100;
    w.env.rejoin = 10;
    w.env.seed = 5;
    ok(ep_sim_run(&w.env, EP_METHOD_ASYNC, &ten, NULL, NULL, &a, &err) == 0);
    ok(ep_sim_run(&w.env, EP_METHOD_ASYNC, &ten, NULL, NULL, &b, &err) == 0);
    w.env.seed = 6;
    ok(ep_sim_run(&w.env, EP_METHOD_ASYNC, &ten, NULL, NULL, &c, &err) == 0);
    near(a.seconds, b.seconds, 0);
    ok(a.failures == b.failures && a.steps_lost == b.steps_lost);
    ok(fabs(a.seconds - c.seconds) > 1e-6);
    /* 4 workers, a failure in 110 s each; 5 standard deviations */
    near((double)a.failures, 4 * a.seconds / 110,
         5 * sqrt(4 * a.seconds / 110));
    ok(a.seconds > 1200);
    ep_sim_result_free(&a);
    ep_sim_result_free(&b);
    ep_sim_result_free(&c);
    /* a round cannot be finished: given up, soon enough */
    w.env.max_events = 100000;
    w.env.mttf = 0.01;
    w.env.rejoin = 0;
    ok(ep_sim_run(&w.env, EP_METHOD_ASYNC, &ten, NULL, NULL, &a, &err) ==
       EP_ELIMIT);
    ok(strstr(err.msg, "cannot finish async H=10: too many events at ") !=
       NULL);
}

/* What the callback is told adds up to the result. */
struct told {
    uint64_t local, global, steps, tokens, wrong;
    double stale, last;
};

static void on_merge(void *ctx, const struct ep_sim_merge *m)
{
    struct told *t = ctx;

    t->wrong += m->t < t->last || m->version != m->base + m->staleness + 1;
    t->last = m->t;
    t->stale += (double)m->staleness;
    if (m->global) {
        t->global++;
        t->steps += m->steps;
        t->tokens += m->tokens;
    } else {
        t->local++;
        t->wrong += m->worker == EP_SIM_NONE || m->region == EP_SIM_NONE;
    }
}

static void test_merges(void)
{
    struct ep_sim_result o;
    struct ep_error err;
    struct world w;
    struct ep_rng r;

    ep_rng_seed(&r, 99, 0);
    random_world(&w, &r);
    for (int m = 0; m < EP_METHODS; m++) {
        struct told t = {0};

        ok(ep_sim_run(&w.env, (enum ep_method)m, &ten, on_merge, &t, &o,
                      &err) == 0);
        ok(t.wrong == 0 && t.global == o.gps.updates &&
           t.local == o.lps.updates && t.steps == o.steps &&
           t.tokens == o.steps * w.env.tokens_per_step);
        near(t.stale, o.gps.sum + o.lps.sum, 0);
        near(t.last, o.seconds, 0);
        ep_sim_result_free(&o);
    }
}

/* With carry nothing is dropped, and the clock does not notice. */
static void test_carry(void)
{
    struct ep_sim_result a, b;
    struct ep_error err;
    struct world w;
    struct ep_rng r;

    for (uint64_t seed = 1; seed <= 20; seed++) {
        ep_rng_seed(&r, seed, 7);
        random_world(&w, &r);
        ok(ep_sim_run(&w.env, EP_METHOD_HALOS, &ten, NULL, NULL, &a, &err) ==
           0);
        w.env.carry = true;
        ok(ep_sim_run(&w.env, EP_METHOD_HALOS, &ten, NULL, NULL, &b, &err) ==
           0);
        near(a.seconds, b.seconds, 0);
        ok(b.unsent == 0 && balanced(&w, &b) && balanced(&w, &a));
        ep_sim_result_free(&a);
        ep_sim_result_free(&b);
    }
}

static void test_bad_settings(void)
{
    struct ep_env_method s = ten;
    struct ep_sim_result o;
    struct ep_error err;
    struct world w;

    small_world(&w, 1, 30);
    s.k = 0;
    ok(ep_sim_run(&w.env, EP_METHOD_HALOS, &s, NULL, NULL, &o, &err) ==
       EP_EDOM);
    s = ten;
    s.h = 0;
    ok(ep_sim_run(&w.env, EP_METHOD_ASYNC, &s, NULL, NULL, &o, &err) ==
       EP_EDOM);
    ok(ep_sim_run(&w.env, EP_METHOD_DILOCO, &s, NULL, NULL, &o, &err) ==
       EP_EDOM);
    s = ten;
    s.gps.lr = -1;
    ok(ep_sim_run(&w.env, EP_METHOD_DILOCO, &s, NULL, NULL, &o, &err) ==
       EP_EDOM);
}

int main(void)
{
    for (uint64_t seed = 1; seed <= 100; seed++)
        test_random(seed);
    test_options();
    test_load();
    test_failures();
    test_random_failures();
    test_merges();
    test_carry();
    test_bad_settings();
    return tap_done();
}
