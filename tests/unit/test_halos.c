/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_halos.c - whole HALoS, the machines and the vectors together, on random
 * sequences of events, against halos_ref.h.
 *
 * A case is drawn from its seed: regions, workers, dimension, rules, and the
 * order in which updates, deltas and replies arrive. It is run three times: at
 * one level of the kernels with everything checked after every event, and at
 * the two others with operations saved up and run in chunks. The final bits
 * must be the same.
 */
#include "config.h"

#include "base/mem.h"
#include "base/simd.h"
#include "ckpt/q4.h"
#include "lsgd/gps.h"
#include "lsgd/lps.h"
#include "lsgd/worker.h"

#include "halos_ref.h"
#include "series.h"
#include "tap.h"

#include <float.h>
#include <inttypes.h>
#include <stdlib.h>

#define SEED 20260713
#define CASES 700
#define EVENTS 60
#define MOST_WORKERS 4
#define QUEUE 32
#define PACKED ((size_t)((MOST_D + 63) / 64) * 36)

enum wire { QUIET, UP, DOWN }; /* where the exchange of a region is */

/* Operations that were asked for and have not been run yet. */
struct queue {
    struct ep_vectors vectors;
    struct ep_vecop op[QUEUE];
    const void *in[QUEUE];
    float g[QUEUE][MOST_D];
    size_t n;
};

struct worker {
    struct ep_worker machine;
    float start[MOST_D]; /* the parameters that it took */
};

struct region {
    struct ep_lps lps;
    struct queue queue;
    float theta[MOST_D], m[MOST_D], d[MOST_D];
    float snapshot[MOST_D], sent[MOST_D], error[MOST_D], replica[MOST_D];
    double total[MOST_D], sum_sent[MOST_D]; /* displacements by steps */
    struct worker worker[MOST_WORKERS];
    size_t workers;
    enum wire wire;
    uint64_t exchange, base, reply_version;
    struct ep_work work;
    float up[MOST_D], down[MOST_D]; /* messages, decoded */
    unsigned char up_packed[PACKED], down_packed[PACKED];
};

struct world {
    size_t dim, regions;
    bool carry, q4, saving, checked;
    double alpha, pace; /* pace: share of events that are worker updates */
    struct rng rng;     /* what happens */
    struct rng cuts;    /* how it is cut up */
    struct ep_gps gps;
    struct queue queue;
    float theta[MOST_D], m[MOST_D], d[MOST_D];
    float replica[MOST_REGIONS][MOST_D];
    float *replicas[MOST_REGIONS];
    struct region region[MOST_REGIONS];
    struct ref ref;
    double most; /* largest magnitude seen, for the tolerance */
    uint64_t gps_steps;
    double worst;      /* largest error, as a share of the tolerance */
    const char *wrong; /* the first thing that was */
};

static void require(struct world *w, bool right, const char *what)
{
    if (!right && !w->wrong)
        w->wrong = what;
}

static size_t below(struct rng *rng, size_t n)
{
    return (size_t)(rng_uniform(rng) * (double)n);
}

static void random_vector(struct world *w, float *v)
{
    for (size_t i = 0; i < w->dim; i++)
        v[i] = (float)(2 * rng_uniform(&w->rng) - 1);
}

/* Run what was saved up: in chunks, in any order. */
static void flush(struct world *w, struct queue *q)
{
    size_t blocks = (w->dim + 63) / 64,
           cut = w->saving ? below(&w->cuts, 9) : 0;
    size_t begin = cut < blocks ? cut * 64 : 0;

    ep_vecops_run(&q->vectors, q->op, q->n, begin, w->dim - begin);
    if (begin)
        ep_vecops_run(&q->vectors, q->op, q->n, 0, begin);
    q->n = 0;
}

/* Ask for one. in, if there is one, stays as it is until it is run. */
static void ask(struct world *w, struct queue *q, struct ep_vecop op,
                const void *in, void *out)
{
    q->in[q->n] = in;
    op.in = &q->in[q->n];
    op.nin = 1;
    op.out = out;
    q->op[q->n++] = op;
    if (!w->saving || q->n == QUEUE || below(&w->cuts, 8) == 0)
        flush(w, q);
}

static void fetch(struct world *w, struct region *r, struct worker *worker)
{
    ask(w, &r->queue, (struct ep_vecop){.kind = EP_OP_FETCH}, NULL,
        worker->start);
    require(w, ep_worker_start(&worker->machine, r->lps.version, 0, NULL) == 0,
            "start");
}

/* Is a worker's fetch still to be run? */
static bool is_asked(const struct queue *q, const struct worker *worker)
{
    for (size_t i = 0; i < q->n; i++)
        if (q->op[i].out == worker->start)
            return true;
    return false;
}

static void see(struct world *w, double value)
{
    w->most = fmax(w->most, fabs(value));
}

/*
 * Tolerance: the dozen roundings of an event mostly cancel out, half an epsilon
 * of the largest magnitude is left; errors grow like the values do. The
 * largest error seen is a tenth of it, a rule broken anywhere many times it.
 */
static void close_to(struct world *w, double got, double want, const char *what)
{
    double tol = EVENTS * FLT_EPSILON / 2 * fmax(w->most, 1);

    w->worst = fmax(w->worst, fabs(got - want) / tol);
    require(w, fabs(got - want) <= tol, what);
}

/*
 * Of a send with 4 bits: s + e = u, but for the rounding of e = u - s; and e
 * is at most half a step of the block.
 */
static void check_send(struct world *w, const struct region *r, const float *u)
{
    for (size_t i = 0; i < w->dim; i++) {
        double e = (double)r->error[i], s = (double)r->up[i];
        float scale;

        memcpy(&scale, r->up_packed + i / 64 * 36, sizeof scale);
        require(w, fabs(s + e - (double)u[i]) <= FLT_EPSILON / 2 * fabs(e),
                "sent + error = u");
        require(w, fabs(e) <= 0.5 * (double)scale * (1 + 8 * FLT_EPSILON),
                "error within half a step");
    }
}

/* The operations of a worker's delta, one by one, with g in the queue. */
static void run_delta(struct world *w, size_t k, const float *g,
                      const struct ep_lps_effect *e)
{
    struct region *r = &w->region[k];
    float before[MOST_D], u[MOST_D];

    memcpy(before, r->theta, sizeof before);
    ask(w, &r->queue, e->ops[0], g, NULL);
    if (w->checked)
        for (size_t i = 0; i < w->dim; i++) {
            r->total[i] += (double)before[i] - (double)r->theta[i];
            u[i] = (r->snapshot[i] - r->theta[i]) + r->error[i];
        }
    if (!e->send)
        return;
    ask(w, &r->queue, e->ops[1], NULL, w->q4 ? (void *)r->up_packed : r->up);
    if (!w->checked)
        return;
    if (w->q4) {
        ep_q4_decode(r->up_packed, r->up, w->dim);
        check_send(w, r, u);
    }
    ref_sent(&w->ref, k, r->up);
    for (size_t i = 0; i < w->dim; i++)
        r->sum_sent[i] += (double)r->up[i];
}

/* A worker is done, its delta is applied, and it takes the parameters. */
static void worker_delta(struct world *w, size_t k, struct worker *worker)
{
    struct region *r = &w->region[k];
    struct ep_worker_effect done;
    struct ep_lps_effect e;
    float g[MOST_D];
    const float *kept;
    bool sends = false;

    if (is_asked(&r->queue, worker))
        flush(w, &r->queue);
    require(w, ep_worker_finish(&worker->machine, &done, NULL) == 0, "finish");
    random_vector(w, g);
    for (size_t i = 0; i < w->dim; i++)
        g[i] += 0.125F * worker->start[i];
    kept = memcpy(r->queue.g[r->queue.n], g, sizeof g);
    if (w->checked)
        sends = ref_worker_delta(&w->ref, k, g, done.work.steps);
    require(w, ep_lps_delta(&r->lps, &done.work, done.base, &e, NULL) == 0,
            "delta");
    require(w, e.staleness == r->lps.version - 1 - done.base, "staleness");
    require(w, !w->checked || e.send == sends, "time of a send");
    run_delta(w, k, kept, &e);
    if (e.send) {
        require(w, r->wire == QUIET, "one exchange in flight");
        r->wire = UP;
        r->exchange = e.exchange;
        r->base = e.base;
        r->work = e.work;
    }
    fetch(w, r, worker);
}

static void gps_delta(struct world *w, size_t k)
{
    struct region *r = &w->region[k];
    struct ep_gps_effect e;

    flush(w, &r->queue);
    if (w->q4)
        ep_q4_decode(r->up_packed, r->up, w->dim);
    require(w, ep_gps_delta(&w->gps, k, r->exchange, &r->work, &e, NULL) == 0,
            "delta at the GPS");
    require(w, e.staleness == e.version - 1 - r->base, "staleness at the GPS");
    w->gps_steps += r->work.steps;
    require(w, w->gps.work.steps == w->gps_steps, "credit");
    ask(w, &w->queue, e.ops[0], r->up, NULL);
    ask(w, &w->queue, e.ops[1], NULL, w->q4 ? (void *)r->down_packed : r->down);
    if (w->checked)
        ref_gps_delta(&w->ref, r->up);
    r->wire = DOWN;
    r->reply_version = e.version;
}

static bool replicas_equal(const struct world *w, size_t k)
{
    const void *a = w->region[k].replica, *b = w->replica[k];

    return memcmp(a, b, w->dim * sizeof(float)) == 0;
}

static void merge(struct world *w, size_t k)
{
    struct region *r = &w->region[k];
    struct ep_lps_effect e;

    flush(w, &w->queue);
    if (w->q4)
        ep_q4_decode(r->down_packed, r->down, w->dim);
    require(w,
            ep_lps_merge(&r->lps, r->exchange, r->reply_version, &e, NULL) == 0,
            "merge");
    ask(w, &r->queue, e.ops[0], w->q4 ? (void *)r->down_packed : r->down, NULL);
    if (w->checked)
        ref_merge(&w->ref, k, r->down, r->reply_version);
    if (w->q4) {
        flush(w, &r->queue);
        require(w, replicas_equal(w, k), "replicas equal");
    }
    r->wire = QUIET;
}

static void check_counters(struct world *w, size_t k)
{
    const struct ep_lps *l = &w->region[k].lps;
    const struct ref_region *f = &w->ref.region[k];
    uint64_t since = f->s.version - f->sent_version, lost = f->lost;

    if (f->outstanding && !w->carry)
        lost += since;
    require(w, l->version == f->s.version && l->t == f->s.version, "version");
    require(w,
            l->merged_version == f->merged && l->exchange == f->sends &&
                l->outstanding == f->outstanding &&
                l->global_version == f->global,
            "exchange");
    require(w, l->lost == lost && (!w->carry || l->lost == 0), "lost");
    require(w,
            l->pending.steps == f->steps_pending &&
                l->sent.steps == f->steps_sent,
            "work");
    require(w,
            ep_lps_pending_updates(l) == (w->carry ? since
                                          : f->outstanding
                                              ? 0
                                              : l->version - f->merged),
            "pending updates");
}

/* All that a region's steps did is sent, in the error, pending or lost. */
static void check_sum(struct world *w, const struct region *r,
                      const struct ref_region *f, size_t i)
{
    double x = (double)r->theta[i], pending;

    if (!f->outstanding)
        pending = (double)r->snapshot[i] - x;
    else
        pending = w->carry ? (double)r->sent[i] - x : 0;
    close_to(w, r->sum_sent[i] + (double)r->error[i] + pending,
             r->total[i] - (w->carry ? 0 : f->gone[i]), "sent + pending");
}

static void check_region(struct world *w, size_t k)
{
    const struct region *r = &w->region[k];
    const struct ref_region *f = &w->ref.region[k];

    check_counters(w, k);
    for (size_t i = 0; i < w->dim; i++) {
        see(w, f->s.theta[i]);
        see(w, f->s.m[i]);
        see(w, f->s.d[i]);
        see(w, f->u[i]);
        see(w, f->total[i]);
        see(w, f->gone[i]);
        see(w, w->ref.gps.theta[i]);
        see(w, w->ref.gps.m[i]);
        see(w, w->ref.gps.d[i]);
    }
    for (size_t i = 0; i < w->dim; i++) {
        close_to(w, (double)r->theta[i], f->s.theta[i], "theta");
        close_to(w, (double)r->snapshot[i], f->snapshot[i], "snapshot");
        close_to(w, (double)r->error[i], f->error[i], "error");
        close_to(w, (double)w->theta[i], w->ref.gps.theta[i], "global theta");
        if (w->q4)
            close_to(w, (double)r->replica[i], f->replica[i], "replica");
        check_sum(w, r, f, i);
    }
    require(w, w->gps.version == w->ref.gps.version, "version of the GPS");
}

/* One event: a worker's update or failure, or a message that arrives. */
static void event(struct world *w)
{
    size_t k = below(&w->rng, w->regions);
    struct region *r = &w->region[k];
    struct worker *worker = &r->worker[below(&w->rng, r->workers)];
    bool local = rng_uniform(&w->rng) < w->pace;

    if (local && rng_uniform(&w->rng) < 0.05) {
        ep_worker_fail(&worker->machine);
        fetch(w, r, worker);
    } else if (local || r->wire == QUIET) {
        worker_delta(w, k, worker);
    } else if (r->wire == UP) {
        gps_delta(w, k);
    } else {
        merge(w, k);
    }
    if (w->checked)
        check_region(w, k);
}

static struct ep_outer random_rule(struct rng *rng)
{
    struct ep_outer o = {.lr = 0.05 + rng_uniform(rng),
                         .beta = below(rng, 4) ? 0.9 * rng_uniform(rng) : 0,
                         .n = 1 + below(rng, 6)};

    if (below(rng, 2))
        o.c = rng_uniform(rng) / (double)o.n;
    return o;
}

static struct ref_rule ref_rule(const struct ep_outer *o)
{
    return (struct ref_rule){o->lr, o->beta, o->c, o->n};
}

static void start_region(struct world *w, size_t k,
                         const struct ep_lps_config *config)
{
    struct region *r = &w->region[k];
    size_t bytes = w->dim * sizeof(float);

    require(w, ep_lps_init(&r->lps, config, NULL) == 0, "init");
    memcpy(r->theta, w->theta, bytes);
    memcpy(r->snapshot, w->theta, bytes);
    memcpy(r->replica, w->theta, bytes);
    memcpy(w->replica[k], w->theta, bytes);
    w->replicas[k] = w->replica[k];
    r->queue.vectors = (struct ep_vectors){.theta = r->theta,
                                           .m = r->m,
                                           .d = r->d,
                                           .snapshot = r->snapshot,
                                           .sent = r->sent,
                                           .error = r->error,
                                           .replica = r->replica};
    r->workers = 1 + below(&w->rng, MOST_WORKERS);
    for (size_t i = 0; i < r->workers; i++) {
        require(w,
                ep_worker_init(&r->worker[i].machine, 1 + below(&w->rng, 8), 64,
                               NULL) == 0,
                "init");
        fetch(w, r, &r->worker[i]);
    }
}

static void start(struct world *w, uint64_t seed)
{
    struct ep_lps_config lps = {0};
    struct ep_gps_config gps = {0};

    w->rng = (struct rng){seed};
    w->dim = 200 + below(&w->rng, MOST_D - 199);
    w->regions = 1 + below(&w->rng, MOST_REGIONS);
    w->pace = 0.3 + 0.6 * rng_uniform(&w->rng);
    lps.carry = w->carry = below(&w->rng, 2);
    lps.q4 = gps.q4 = w->q4 = below(&w->rng, 2);
    lps.k = 1 + below(&w->rng, 5);
    lps.alpha = (double)below(&w->rng, 5) / 4;
    lps.outer = random_rule(&w->rng);
    gps.outer = random_rule(&w->rng);
    require(w, ep_gps_init(&w->gps, &gps, w->regions, NULL) == 0, "init");
    random_vector(w, w->theta);
    w->queue.vectors = (struct ep_vectors){
        .theta = w->theta, .m = w->m, .d = w->d, .client = w->replicas};
    for (size_t k = 0; k < w->regions; k++) {
        start_region(w, k, &lps);
        w->ref.region[k].s.rule = ref_rule(&lps.outer);
    }
    w->ref.dim = w->dim;
    w->ref.regions = w->regions;
    w->ref.k = lps.k;
    w->ref.alpha = lps.alpha;
    w->ref.carry = w->carry;
    w->ref.q4 = w->q4;
    w->ref.gps.rule = ref_rule(&gps.outer);
    ref_start(&w->ref, w->theta);
}

static uint64_t digest_of(uint64_t h, const float *v, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint32_t bits;

        memcpy(&bits, &v[i], sizeof bits);
        h = (h ^ bits) * 0x100000001b3U;
        h ^= h >> 32;
    }
    return h;
}

/* Of all vectors at the end. */
static uint64_t digest(const struct world *w)
{
    uint64_t h = digest_of(SEED, w->theta, w->dim);

    for (size_t k = 0; k < w->regions; k++) {
        const struct region *r = &w->region[k];

        h = digest_of(h, r->theta, w->dim);
        h = digest_of(h, r->m, w->dim);
        h = digest_of(h, r->d, w->dim);
        h = digest_of(h, r->snapshot, w->dim);
        h = digest_of(h, r->sent, w->dim);
        h = digest_of(h, r->error, w->dim);
        h = digest_of(h, r->replica, w->dim);
        h = digest_of(h, w->replica[k], w->dim);
    }
    return h;
}

static uint64_t run(struct world *w, uint64_t seed, enum ep_simd level,
                    bool checked)
{
    memset(w, 0, sizeof *w);
    w->checked = checked;
    w->saving = !checked;
    w->cuts = (struct rng){seed * 3 + (uint64_t)level};
    ep_simd_limit(level);
    start(w, seed);
    for (int i = 0; i < EVENTS; i++)
        event(w);
    for (size_t k = 0; k < w->regions; k++)
        flush(w, &w->region[k].queue);
    flush(w, &w->queue);
    ep_gps_free(&w->gps);
    return digest(w);
}

int main(void)
{
    struct world *w = ep_calloc(1, sizeof *w);
    uint64_t lost = 0, sends[2][2] = {{0}};
    double worst = 0;
    int bad = 0;

    printf("# seed %d\n", SEED);
    for (uint64_t c = 0; c < CASES && bad < 10; c++) {
        uint64_t seed = SEED + 1000 * c, bits[3];
        const char *wrong = NULL;

        for (unsigned i = 0; i < 3; i++) {
            bits[i] = run(w, seed, (enum ep_simd)((c + i) % 3), i == 0);
            wrong = wrong ? wrong : w->wrong;
            worst = fmax(worst, w->worst);
            for (size_t k = 0; k < w->regions && i == 0; k++) {
                lost += w->region[k].lps.lost;
                sends[w->carry][w->q4] += w->region[k].lps.exchange;
            }
        }
        if (!wrong && (bits[1] != bits[0] || bits[2] != bits[0]))
            wrong = "same bits";
        if (wrong) {
            printf("# case %" PRIu64 " of seed %" PRIu64 ": %s\n", c, seed,
                   wrong);
            bad++;
        }
    }
    ok(bad == 0);
    /* the cases contain what they are for */
    ok(lost > 1000);
    ok(sends[0][0] > 1000 && sends[0][1] > 1000 && sends[1][0] > 1000 &&
       sends[1][1] > 1000);
    printf("# %d cases, %" PRIu64
           " updates lost, largest error %.3f of the "
           "tolerance\n",
           CASES, lost, worst);
    free(w);
    return tap_done();
}
