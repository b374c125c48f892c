/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_replay.c - what lib/replay says of random small jobs against the plain
 * simulator of plain_replay.h, and what it refuses.
 */
#include "config.h"

#include "base/stats.h"
#include "plain_replay.h"
#include "replay/iteration.h"
#include "replay/whatif.h"
#include "tap.h"

/* A job of some steps, simulated, and as the library sees it. */
struct world {
    struct plain_job *step; /* [steps]: the same operations, other times */
    int steps;
    bool drawn; /* messages are drawn as [end - transfer, end] */
    struct ep_ops *ops;
    struct ep_rng rng;
};

static int below(struct ep_rng *r, int n)
{
    return (int)(ep_rng_uniform(r) * n);
}

static bool coin(struct ep_rng *r)
{
    return ep_rng_uniform(r) < 0.5;
}

/* One of all shapes that the model knows. */
static struct plain_job random_shape(struct ep_rng *r)
{
    struct plain_job j = {
        .dp = 1 + below(r, 4),
        .pp = 1 + below(r, 4),
        .vpp = 1,
        .schedule = coin(r) ? PLAIN_1F1B : PLAIN_GPIPE,
        .gather = coin(r),
        .gc = coin(r),
        .layernorm = coin(r),
        .embedding = coin(r),
        .overlap = coin(r),
        .clip = coin(r),
        .noops = coin(r),
    };
    int m = 1 + below(r, 6);

    if (j.pp > 1 && coin(r))
        j.vpp = 1 + below(r, 3);
    if (j.vpp > 1)
        m = j.pp * (1 + below(r, 2));
    for (int d = 0; d < j.dp; d++)
        j.mb[d] = m;
    return j;
}

/* Costs about those of the type, some workers slow, some launches late. */
static void random_times(struct world *w, struct plain_job *j)
{
    for (int i = 0; i < j->n; i++) {
        struct plain_op *op = &j->op[i];
        double slow = (op->d * 5 + op->p * 3) % 7 == 0 ? 1.7 : 1;

        op->cost =
            (0.001 + 0.002 * op->type) * slow * (0.5 + ep_rng_uniform(&w->rng));
        if (op->type == P_FWD || op->type == P_BWD)
            op->cost += 0.02;
        op->delay = coin(&w->rng) ? 0.003 * ep_rng_uniform(&w->rng) : 0;
    }
    (void)plain_run(j);
}

static void make_world(struct world *w, uint64_t seed)
{
    struct plain_job shape;

    ep_rng_seed(&w->rng, seed, 0);
    shape = random_shape(&w->rng);
    w->steps = 1 + below(&w->rng, 3);
    w->drawn = coin(&w->rng);
    w->ops = ep_ops_new();
    w->step = ep_calloc((size_t)w->steps, sizeof *w->step);
    for (int s = 0; s < w->steps; s++) {
        w->step[s] = shape;
        plain_make(&w->step[s]);
        random_times(w, &w->step[s]);
    }
}

static void free_world(struct world *w)
{
    for (int s = 0; s < w->steps; s++)
        plain_free(&w->step[s]);
    free(w->step);
    ep_ops_free(w->ops);
}

/* As a trace would have it. Step 7 + 3 s begins at 1000 s. */
static struct ep_replay_span span_of(const struct world *w, int s, int i)
{
    const struct plain_op *op = &w->step[s].op[i];
    const char *name = plain_names[op->type];
    struct ep_replay_span x = {
        .step = 7 + 3 * s,
        .dp = op->d,
        .pp = op->p,
        .mb = op->mb,
        .chunk = op->chunk,
        .seq = op->seq,
        .type = ep_ops_find(w->ops, (struct ep_span){name, strlen(name)}),
        .start = op->start,
        .dur = op->end - op->start,
    };

    if (w->drawn && op->group != PLAIN_NONE && !op->noop) {
        x.start = op->end - op->cost;
        x.dur = op->cost;
    }
    if (op->noop)
        x.dur = 0;
    x.start += 1000.0 * s;
    return x;
}

/* All spans but one (-1: all), in any order. */
static struct ep_spans *spans_of(struct world *w, int omit)
{
    int n = w->step[0].n, total = n * w->steps;
    struct ep_spans *spans = ep_spans_new();
    int *order = ep_calloc((size_t)total, sizeof *order);

    for (int i = 0; i < total; i++) {
        int k = below(&w->rng, i + 1);

        order[i] = order[k];
        order[k] = i;
    }
    for (int i = 0; i < total; i++) {
        struct ep_replay_span x = span_of(w, order[i] / n, order[i] % n);

        if (order[i] != omit && ep_spans_add(spans, &x, NULL) < 0)
            abort();
    }
    free(order);
    return spans;
}

/* ==== What the plain simulator says ==== */

struct expected {
    double ideal[P_TYPES], time[4], t_ideal;
};

/* Mean or median of a type over all steps and ranks. */
static double plain_value(const struct world *w, int type)
{
    double *v = ep_calloc((size_t)w->step[0].n * (size_t)w->steps, sizeof *v);
    double sum = 0;
    size_t n = 0;

    for (int s = 0; s < w->steps; s++)
        for (int i = 0; i < w->step[s].n; i++)
            if (w->step[s].op[i].type == type && !w->step[s].op[i].noop)
                v[n++] = w->step[s].op[i].cost;
    if (plain_is_comm(type) && n)
        sum = ep_median(v, n) * (double)n;
    for (size_t i = 0; !plain_is_comm(type) && i < n; i++)
        sum += v[i];
    free(v);
    return n ? sum / (double)n : 0;
}

/* Which operations keep their own costs. */
typedef bool keep_fn(const struct plain_op *op, int a, int b);

static bool keep_all(const struct plain_op *op, int a, int b)
{
    (void)op, (void)a, (void)b;
    return true;
}

static bool keep_none(const struct plain_op *op, int a, int b)
{
    return !keep_all(op, a, b);
}

static bool keep_types(const struct plain_op *op, int a, int b)
{
    return op->type == a || op->type == b;
}

static bool keep_dp(const struct plain_op *op, int a, int b)
{
    return op->d == a && b == 0;
}

static bool keep_pp(const struct plain_op *op, int a, int b)
{
    return op->p == a && b == 0;
}

static bool keep_other_workers(const struct plain_op *op, int a, int b)
{
    return op->d != a || op->p != b;
}

static bool keep_other_stages(const struct plain_op *op, int a, int b)
{
    return op->p != a && b == 0;
}

/* Mean over steps of the time without delays. */
static double plain_time(struct world *w, const struct expected *e,
                         keep_fn *keep, int a, int b, double *step)
{
    double sum = 0;

    for (int s = 0; s < w->steps; s++) {
        struct plain_job *j = &w->step[s];
        double *cost = ep_calloc((size_t)j->n, sizeof *cost), time;
        double *delay = ep_calloc((size_t)j->n, sizeof *delay);

        for (int i = 0; i < j->n; i++) {
            cost[i] = j->op[i].cost;
            delay[i] = j->op[i].delay;
            j->op[i].delay = 0;
            if (!keep(&j->op[i], a, b))
                j->op[i].cost = e->ideal[j->op[i].type];
        }
        time = plain_run(j);
        for (int i = 0; i < j->n; i++) {
            j->op[i].cost = cost[i];
            j->op[i].delay = delay[i];
        }
        if (step)
            step[s] = time;
        sum += time;
        free(cost);
        free(delay);
    }
    return sum / w->steps;
}

/* ==== Against the library ==== */

/* What is compared is below 1e-9 off, or the first that is not is shown. */
static bool close_to(const char *what, double got, double want, uint64_t seed)
{
    if (fabs(got - want) <= 1e-9 * fmax(1, fabs(want)))
        return true;
    printf("# seed %llu: %s is %.12g, not %.12g\n", (unsigned long long)seed,
           what, got, want);
    return false;
}

static double class_of(const struct ep_whatif *r, const struct ep_ops *ops,
                       const char *name)
{
    for (size_t c = 0; c < r->classes; c++)
        if (strcmp(ep_ops_class_name(ops, c), name) == 0)
            return r->cls[c].all;
    abort();
}

static bool check_classes(struct world *w, const struct expected *e,
                          const struct ep_whatif *r, uint64_t seed)
{
    bool good = true;

    for (int t = 0; t < P_TYPES; t++) {
        int a = t, b = t;
        const char *name = plain_names[t];
        bool any = false;

        if (t >= P_FS && t <= P_BR) {
            a = t <= P_FR ? P_FS : P_BS;
            b = a + 1;
            name = t <= P_FR ? "forward-pp-comm" : "backward-pp-comm";
        }
        for (int i = 0; i < w->step[0].n; i++)
            any = any || (keep_types(&w->step[0].op[i], a, b) &&
                          !w->step[0].op[i].noop);
        if (!any)
            good = isnan(class_of(r, w->ops, name)) && good;
        else
            good =
                close_to(name, class_of(r, w->ops, name),
                         plain_time(w, e, keep_types, a, b, NULL) / e->t_ideal,
                         seed) &&
                good;
    }
    return good;
}

static bool check_shares(struct world *w, const struct expected *e,
                         const struct ep_whatif *r, double time, uint64_t seed)
{
    double lost = time - e->t_ideal;
    int d = (int)(r->worker[0] / r->pp), p = (int)(r->worker[0] % r->pp);

    if (lost <= 1e-12 * e->t_ideal)
        return isnan(r->slowest.all) && isnan(r->last_stage.all);
    return close_to("worst", r->worst.all, r->slowest.all, seed) &&
           close_to("M_W", r->slowest.all * lost,
                    time - plain_time(w, e, keep_other_workers, d, p, NULL),
                    seed) &&
           close_to("M_S", r->last_stage.all * lost,
                    time - plain_time(w, e, keep_other_stages, (int)r->pp - 1,
                                      0, NULL),
                    seed);
}

static bool check_results(struct world *w, const struct ep_whatif *r,
                          const double *ideal, double traced, uint64_t seed)
{
    struct expected e;
    double step[4], time;
    bool good = r->nworkers == 1; /* of 16 or fewer */

    for (int t = 0; t < P_TYPES; t++) {
        int type = ep_ops_find(
            w->ops, (struct ep_span){plain_names[t], strlen(plain_names[t])});

        e.ideal[t] = plain_value(w, t);
        good = close_to(plain_names[t], ideal[type], e.ideal[t], seed) && good;
    }
    e.t_ideal = plain_time(w, &e, keep_none, 0, 0, NULL);
    time = plain_time(w, &e, keep_all, 0, 0, step);
    good = close_to("traced", r->traced.all, traced, seed) && good;
    good = close_to("delayed", r->delayed.all, traced, seed) && good;
    good = close_to("T", r->time.all, time, seed) && good;
    good = close_to("T_ideal", r->ideal, e.t_ideal, seed) && good;
    for (int s = 0; s < w->steps; s++)
        good = close_to("T of a step", r->time.step[s], step[s], seed) && good;
    for (int d = 0; d < (int)r->dp; d++)
        good = close_to("S_dp", r->of_dp[d].all,
                        plain_time(w, &e, keep_dp, d, 0, NULL) / e.t_ideal,
                        seed) &&
               good;
    for (int p = 0; p < (int)r->pp; p++)
        good = close_to("S_pp", r->of_pp[p].all,
                        plain_time(w, &e, keep_pp, p, 0, NULL) / e.t_ideal,
                        seed) &&
               good;
    return check_classes(w, &e, r, seed) &&
           check_shares(w, &e, r, time, seed) && good;
}

/* The library's way from spans to results; err says why not. */
static int analyse(struct world *w, int omit, struct ep_whatif *r,
                   double *ideal, struct ep_error *err)
{
    struct ep_spans *spans = spans_of(w, omit);
    struct ep_graph g = {.n = 0};
    struct ep_trace t;
    int rc = ep_trace_make(&t, spans, w->ops, err);

    if (rc == 0)
        rc = ep_graph_build(&g, t.op, t.n, w->ops, t.step[0], err);
    if (rc == 0) {
        double *cost = ep_calloc(t.n * t.lanes, sizeof *cost);

        ep_replay_costs(&g, &t, cost);
        ep_replay_ideal(&g, w->ops, cost, t.lanes, ideal);
        ep_whatif_run(r, &g, w->ops, &t, cost, ideal);
        free(cost);
    }
    ep_graph_free(&g);
    ep_trace_free(&t);
    ep_spans_free(spans);
    return rc;
}

/* Mean over steps of last end - first start, as the trace has them. */
static double traced_mean(const struct world *w)
{
    double sum = 0;

    for (int s = 0; s < w->steps; s++) {
        double first = INFINITY, last = -INFINITY;

        for (int i = 0; i < w->step[s].n; i++) {
            struct ep_replay_span x = span_of(w, s, i);

            first = fmin(first, x.start);
            last = fmax(last, x.start + x.dur);
        }
        sum += last - first;
    }
    return sum / w->steps;
}

static bool check_one(uint64_t seed)
{
    struct world w;
    struct ep_whatif r = {.steps = 0};
    struct ep_error err = {.msg = ""};
    double ideal[EP_OPS_MAX];
    bool good;

    make_world(&w, seed);
    good = analyse(&w, -1, &r, ideal, &err) == 0;
    if (!good)
        printf("# seed %llu: %s\n", (unsigned long long)seed, err.msg);
    good = good && check_results(&w, &r, ideal, traced_mean(&w), seed);
    if (!good)
        printf(
            "# dp %d pp %d vpp %d mb %d schedule %d, %d steps, overlap %d, "
            "no-ops %d, drawn %d\n",
            w.step->dp, w.step->pp, w.step->vpp, w.step->mb[0],
            w.step->schedule, w.steps, w.step->overlap, w.step->noops, w.drawn);
    ep_whatif_free(&r);
    free_world(&w);
    return good;
}

static void test_random(uint64_t seed, int n)
{
    bool good = true;

    for (int i = 0; i < n && good; i++)
        good = check_one(seed + (uint64_t)i);
    printf("# %d random jobs from seed %llu\n", n, (unsigned long long)seed);
    ok(good);
}

/* Without one of its operations a step in the middle is refused, with the
   operation named; one at an end of the trace is left out. */
static bool check_omission(uint64_t seed)
{
    struct world w;
    struct ep_whatif r = {.steps = 0};
    struct ep_error err = {.msg = ""};
    double ideal[EP_OPS_MAX];
    const struct plain_op *op;
    bool needed, good = true;
    int i;

    make_world(&w, seed);
    i = below(&w.rng, w.step[0].n * w.steps);
    op = &w.step[0].op[i % w.step[0].n];
    /* in one lane what is optional may be absent; one stage waits for none */
    needed = w.step->dp * w.steps > 1 || op->type == P_OPT ||
             (op->type <= P_BR && w.step->pp > 1);
    if (w.steps > 1 && i / w.step[0].n % (w.steps - 1) == 0)
        good = analyse(&w, i, &r, ideal, &err) == 0 &&
               r.steps == (size_t)w.steps - 1;
    else if (needed && !op->noop && w.step->mb[0] > 1)
        good = analyse(&w, i, &r, ideal, &err) == EP_EFORMAT &&
               strstr(err.msg, "pp=") != NULL;
    if (!good)
        printf("# seed %llu: without %s dp=%d,pp=%d mb %d: \"%s\"\n",
               (unsigned long long)seed, plain_names[op->type], op->d, op->p,
               op->mb, err.msg);
    ep_whatif_free(&r);
    free_world(&w);
    return good;
}

static void test_omissions(uint64_t seed, int n)
{
    bool good = true;

    for (int i = 0; i < n && good; i++)
        good = check_omission(seed + (uint64_t)i);
    printf("# %d omissions from seed %llu\n", n, (unsigned long long)seed);
    ok(good);
}

/* ==== Layouts ==== */

/* Durations of a layout, and the same in the plain simulator. */
static bool check_layout(uint64_t seed)
{
    struct ep_rng rng;
    struct plain_job j = {.gather = true};
    size_t mb[16];
    double fwd[64], bwd[64], send[16], gather[4], reduce[4], opt[16], got = 0;
    struct ep_iteration it = {.microbatches = mb,
                              .forward = fwd,
                              .backward = bwd,
                              .send = send,
                              .gather = gather,
                              .reduce = reduce,
                              .optimizer = opt};
    double want;

    ep_rng_seed(&rng, seed, 1);
    j.dp = 1 + below(&rng, 4);
    j.pp = 1 + below(&rng, 4);
    j.vpp = j.pp > 1 ? 1 + below(&rng, 3) : 1;
    j.schedule = coin(&rng) ? PLAIN_1F1B : PLAIN_GPIPE;
    it.dp = (size_t)j.dp;
    it.pp = (size_t)j.pp;
    it.vpp = (size_t)j.vpp;
    it.schedule =
        j.schedule == PLAIN_1F1B ? EP_SCHEDULE_1F1B : EP_SCHEDULE_GPIPE;
    for (int d = 0; d < j.dp; d++) { /* unequal shares */
        j.mb[d] = j.vpp > 1 ? j.pp * (1 + below(&rng, 2)) : 1 + below(&rng, 6);
        mb[d] = (size_t)j.mb[d];
    }
    for (int i = 0; i < 64; i++) {
        fwd[i] = ep_rng_uniform(&rng);
        bwd[i] = 2 * ep_rng_uniform(&rng);
        send[i % 16] = 0.3 * ep_rng_uniform(&rng);
        opt[i % 16] = ep_rng_uniform(&rng);
        gather[i % 4] = ep_rng_uniform(&rng);
        reduce[i % 4] = ep_rng_uniform(&rng);
    }
    plain_make(&j);
    for (int i = 0; i < j.n; i++) {
        struct plain_op *op = &j.op[i];
        int rank = op->d * j.pp + op->p;
        int before = op->d * j.pp + (op->p + j.pp - 1) % j.pp;
        int v = op->chunk < 0 ? 0 : rank * j.vpp + op->chunk;

        op->cost = op->type == P_FWD                      ? fwd[v]
                   : op->type == P_BWD                    ? bwd[v]
                   : op->type == P_FS || op->type == P_BR ? send[rank]
                   : op->type == P_FR || op->type == P_BS ? send[before]
                   : op->type == P_AG && op->chunk == 0   ? gather[op->p]
                   : op->type == P_RS && op->chunk == 0   ? reduce[op->p]
                   : op->type == P_OPT                    ? opt[rank]
                                                          : 0;
    }
    want = plain_run(&j);
    plain_free(&j);
    return ep_replay_iteration(&it, &got, NULL) == 0 &&
           close_to("iteration", got, want, seed);
}

static void test_layouts(uint64_t seed, int n)
{
    bool good = true;

    for (int i = 0; i < n && good; i++)
        good = check_layout(seed + (uint64_t)i);
    printf("# %d layouts from seed %llu\n", n, (unsigned long long)seed);
    ok(good);
}

/* By hand: 4 stages, 8 micro-batches, forward 1 s, backward 2 s, no
   transfers: (m + p - 1)(f + b). One rank with 4 micro-batches fewer does not
   change it, one with a slow stage does. */
static void test_layout_by_hand(void)
{
    size_t mb[2] = {8, 4};
    double fwd[8], bwd[8], t = 0;
    struct ep_iteration it = {.dp = 2,
                              .pp = 4,
                              .vpp = 1,
                              .microbatches = mb,
                              .forward = fwd,
                              .backward = bwd};
    struct ep_error err;

    for (int i = 0; i < 8; i++) {
        fwd[i] = 1;
        bwd[i] = 2;
    }
    ok(ep_replay_iteration(&it, &t, &err) == 0);
    near(t, 33, 1e-12);
    it.schedule = EP_SCHEDULE_GPIPE;
    ok(ep_replay_iteration(&it, &t, &err) == 0);
    near(t, 33, 1e-12);
    it.schedule = EP_SCHEDULE_1F1B;
    bwd[3] = 3; /* the last stage: m of its turns, and the way there and back */
    ok(ep_replay_iteration(&it, &t, &err) == 0);
    near(t, 3 + 8 * 4 + 3 * 2, 1e-12);
    /* interleaved: the bubble is halved, (p - 1)(f + b) / v, with two chunks
       of half the work */
    it.vpp = 2;
    it.dp = 1;
    for (int i = 0; i < 8; i++) {
        fwd[i] = 0.5;
        bwd[i] = 1;
    }
    ok(ep_replay_iteration(&it, &t, &err) == 0);
    near(t, 8 * 3 + 3 * 3 / 2.0, 1e-12);
    mb[0] = 6;
    ok(ep_replay_iteration(&it, &t, &err) == EP_EDOM);
    mb[0] = (size_t)1 << 60;
    ok(ep_replay_iteration(&it, &t, &err) == EP_ELIMIT);
    it.pp = 0;
    ok(ep_replay_iteration(&it, &t, &err) == EP_EDOM);
}

int main(int argc, char **argv)
{
    uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 0) : 1;

    test_random(seed, argc > 2 ? (int)strtoull(argv[2], NULL, 0) : 400);
    test_omissions(seed + 1000000, 300);
    test_layouts(seed + 2000000, 300);
    test_layout_by_hand();
    return tap_done();
}
