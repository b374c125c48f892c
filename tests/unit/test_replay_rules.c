/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_replay_rules.c - rules of lib/replay one by one, with results worked
 * out by hand: names of operations, limits of spans, messages of nobody,
 * overlapped reduction, several slow workers, the causes, traces that are cut,
 * the width of the screen.
 */
#include "config.h"

#include "base/mem.h"
#include "replay/whatif.h"
#include "replay/whatif_text.h"
#include "tap.h"

#include <stdlib.h>
#include <string.h>

static struct ep_span span_of(const char *s)
{
    return (struct ep_span){s, strlen(s)};
}

/* ==== Names ==== */

static void test_names(void)
{
    static const struct {
        const char *text, *message;
        int code;
    } bad[] = {
        {"x", "line 1: no role", EP_EFORMAT},
        {"\n# c\nx y", "line 3: no such role: y", EP_EFORMAT},
        {"x gc a b", "line 1: more than name, role and class", EP_EFORMAT},
        {"a gc\nx forward", "line 2: no such role: forward", EP_EFORMAT},
    };
    static const char good[] =
        "  f\tforward-compute \r\n\n#\nr forward-recv\ng gc z";
    struct ep_ops *o = ep_ops_new();
    struct ep_error err;
    struct ep_buf many;
    int t;

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        ok(ep_ops_read(o, bad[i].text, strlen(bad[i].text), &err) ==
           bad[i].code);
        ok(strcmp(err.msg, bad[i].message) == 0);
    }
    ok(ep_ops_read(o, good, strlen(good), &err) == 0);
    t = ep_ops_find(o, span_of("f"));
    ok(t >= 0 && ep_ops_role(o, (size_t)t) == EP_OP_FORWARD);
    t = ep_ops_find(o, span_of("r"));
    ok(t >= 0 && strcmp(ep_ops_class_name(o, ep_ops_class(o, (size_t)t)),
                        "forward-pp-comm") == 0);
    t = ep_ops_find(o, span_of("g"));
    ok(t >= 0 &&
       strcmp(ep_ops_class_name(o, ep_ops_class(o, (size_t)t)), "z") == 0);
    ok(ep_ops_find(o, span_of("nobody")) == -1);
    ep_buf_init(&many);
    for (int i = 0; i < EP_OPS_MAX + 1; i++)
        ep_buf_addf(&many, "n%d gc c%d\n", i, i);
    ok(ep_ops_read(o, many.ptr, many.len, &err) == EP_ELIMIT);
    ep_buf_free(&many);
    ep_ops_free(o);
}

/* ==== Traces by hand ==== */

struct hand {
    int step; /* of what is added */
    struct ep_ops *ops;
    struct ep_spans *spans;
    struct ep_error err;
    struct ep_trace t;
    struct ep_graph g;
    struct ep_whatif w;
};

static void begin(struct hand *h)
{
    *h = (struct hand){.step = 1, .ops = ep_ops_new(), .spans = ep_spans_new()};
}

static void add(struct hand *h, const char *op, int d, int p, int mb,
                double start, double dur)
{
    struct ep_replay_span s = {.step = h->step,
                               .dp = d,
                               .pp = p,
                               .mb = mb,
                               .chunk = -1,
                               .seq = -1,
                               .type = ep_ops_find(h->ops, span_of(op)),
                               .start = start,
                               .dur = dur};

    if (ep_spans_add(h->spans, &s, &h->err) < 0)
        abort();
}

static int analyse(struct hand *h)
{
    double ideal[EP_OPS_MAX], *cost;
    int rc = ep_trace_make(&h->t, h->spans, h->ops, &h->err);

    if (rc == 0)
        rc = ep_graph_build(&h->g, h->t.op, h->t.n, h->ops, 1, &h->err);
    if (rc < 0)
        return rc;
    cost = ep_calloc(h->t.n * h->t.lanes, sizeof *cost);
    ep_replay_costs(&h->g, &h->t, cost);
    ep_replay_ideal(&h->g, h->ops, cost, h->t.lanes, ideal);
    ep_whatif_run(&h->w, &h->g, h->ops, &h->t, cost, ideal);
    free(cost);
    return 0;
}

static void end(struct hand *h)
{
    ep_whatif_free(&h->w);
    ep_graph_free(&h->g);
    ep_trace_free(&h->t);
    ep_spans_free(h->spans);
    ep_ops_free(h->ops);
}

/* 40 data-parallel ranks, forward 1 s and backward 2 s, but rank 3 has 2 and
   4, rank 7 has 1.5 and 3. Mean of forward (38 + 2 + 1.5) / 40, of backward
   twice that. M_W idealises ceil(3 % of 40) = 2 workers. */
static void test_two_workers(void)
{
    double f = (38 + 2 + 1.5) / 40, ideal = 3 * f + 0.1;
    struct ep_whatif_rules rules = EP_WHATIF_RULES;
    struct hand h;

    begin(&h);
    for (int d = 0; d < 40; d++) {
        double x = d == 3 ? 2 : d == 7 ? 1.5 : 1;

        add(&h, "forward-compute", d, 0, 0, 0, x);
        add(&h, "backward-compute", d, 0, 0, x, 2 * x);
        add(&h, "grads-reduce-scatter", d, 0, -1, 3 * x, 6.1 - 3 * x);
    }
    for (int d = 0; d < 40; d++)
        add(&h, "optimizer", d, 0, -1, 6.1, 0);
    ok(analyse(&h) == 0);
    near(h.w.time.all, 6.1, 1e-12);
    near(h.w.ideal, ideal, 1e-12);
    ok(h.w.nworkers == 2 && h.w.worker[0] == 3 && h.w.worker[1] == 7);
    near(h.w.of_dp[3].all, 6.1 / ideal, 1e-12);
    near(h.w.of_dp[7].all, 4.6 / ideal, 1e-12);
    /* with both ideal the longest is theirs, f > 1; with one it is 4.5 s */
    near(h.w.slowest.all, 1, 1e-12);
    near(h.w.worst.all, (6.1 - 4.6) / (6.1 - ideal), 1e-12);
    ok(ep_whatif_judge(&h.w, h.ops, &rules) == EP_CAUSE_WORKER);
    /* each worker has one micro-batch: nothing to correlate */
    ok(isnan(h.w.correlation));
    end(&h);
}

/* Two stages, one micro-batch. */
static void add_stages(struct hand *h)
{
    add(h, "forward-compute", 0, 0, 0, 0, 1);
    add(h, "forward-send", 0, 0, -1, 1, 0.5);
    add(h, "forward-recv", 0, 1, -1, 0, 1.5);
    add(h, "forward-compute", 0, 1, 0, 1.5, 1);
    add(h, "backward-compute", 0, 1, 0, 2.5, 2);
    add(h, "backward-send", 0, 1, -1, 4.5, 0.5);
    add(h, "backward-recv", 0, 0, -1, 1, 4);
    add(h, "backward-compute", 0, 0, 0, 5, 2);
    add(h, "optimizer", 0, 0, -1, 7, 1);
    add(h, "optimizer", 0, 1, -1, 4.5, 1);
}

/* A receive behind the last computation, a send before the first: left out,
   but only if they are 50 us away. */
static void test_outer_messages(void)
{
    struct hand h;

    begin(&h);
    add_stages(&h);
    ok(analyse(&h) == 0);
    near(h.w.time.all, 8, 1e-12);
    end(&h);

    begin(&h);
    add_stages(&h);
    add(&h, "backward-recv", 0, 0, -1, 5 + 1e-4, 9);
    add(&h, "forward-send", 0, 0, -1, 0.1, 0.2);
    add(&h, "forward-recv", 0, 1, -1, 1.5 + 1e-4, 9);
    ok(analyse(&h) == 0);
    near(h.w.time.all, 8, 1e-12);
    end(&h);

    begin(&h);
    add_stages(&h);
    add(&h, "backward-recv", 0, 0, -1, 5 + 2e-5, 9);
    ok(analyse(&h) == EP_EFORMAT);
    ok(strcmp(h.err.msg,
              "cannot replay step 1: dp=0,pp=0 backward-recv belongs to no "
              "computation (2 for 1)") == 0);
    end(&h);
}

/* Reduction that began before the layer-norm: the layer-norm waits for it,
   although no separate gradients say so. */
static void test_overlap(void)
{
    struct hand h;

    begin(&h);
    add(&h, "forward-compute", 0, 0, 0, 0, 1);
    add(&h, "backward-compute", 0, 0, 0, 1, 2);
    add(&h, "gc", 0, 0, -1, 3, 5);
    add(&h, "grads-reduce-scatter", 0, 0, -1, 3, 4);
    add(&h, "layernorm-grads-all-reduce", 0, 0, -1, 8, 1);
    add(&h, "optimizer", 0, 0, -1, 9, 1);
    ok(analyse(&h) == 0);
    near(h.w.time.all, 10, 1e-12); /* in the tail it would be 14 */
    end(&h);

    begin(&h);
    add(&h, "forward-compute", 0, 0, 0, 0, 1);
    add(&h, "backward-compute", 0, 0, 0, 1, 2);
    add(&h, "gc", 0, 0, -1, 3, 5);
    add(&h, "layernorm-grads-all-reduce", 0, 0, -1, 8, 1);
    add(&h, "grads-reduce-scatter", 0, 0, -1, 9, 4);
    add(&h, "optimizer", 0, 0, -1, 13, 1);
    ok(analyse(&h) == 0);
    near(h.w.time.all, 14, 1e-12);
    end(&h);

    /* nothing but gc tells: 13 s in the tail */
    begin(&h);
    add(&h, "forward-compute", 0, 0, 0, 0, 1);
    add(&h, "backward-compute", 0, 0, 0, 1, 2);
    add(&h, "gc", 0, 0, -1, 3, 5);
    add(&h, "grads-reduce-scatter", 0, 0, -1, 3, 4);
    add(&h, "optimizer", 0, 0, -1, 8, 1);
    ok(analyse(&h) == 0);
    near(h.w.time.all, 9, 1e-12);
    end(&h);
}

/* gc between computations takes its turn there. */
static void test_gc_in_between(void)
{
    struct hand h;

    begin(&h);
    add(&h, "forward-compute", 0, 0, 0, 0, 1);
    add(&h, "gc", 0, 0, -1, 1, 3);
    add(&h, "backward-compute", 0, 0, 0, 4, 2);
    add(&h, "optimizer", 0, 0, -1, 6, 1);
    ok(analyse(&h) == 0);
    near(h.w.time.all, 7, 1e-12);
    near(h.w.launch, 1, 1e-12);
    end(&h);
}

/* A clock that is off: transfers of -1 ms are kept, of -20 ms are 0. */
static void test_skew(void)
{
    static const double off[] = {0.001, 0.020}, want[] = {2.999, 3.000};
    struct hand h;

    for (int i = 0; i < 2; i++) {
        begin(&h);
        for (int d = 0; d < 2; d++) {
            add(&h, "forward-compute", d, 0, 0, 0, 1);
            add(&h, "backward-compute", d, 0, 0, 1, 1);
            /* both end before the later one has begun */
            add(&h, "grads-reduce-scatter", d, 0, -1, 2 + d * off[i], 0);
            add(&h, "optimizer", d, 0, -1, 3, 1);
        }
        ok(analyse(&h) == 0);
        /* rank 0: -off from the later start; both start at 2 in the replay */
        near(h.w.time.all, 3, 1e-12);
        near(h.w.ideal, i == 0 ? (want[i] + 3) / 2 : want[i], 1e-9);
        end(&h);
    }
}

/* ==== Ends of a trace ==== */

/* A step of two ranks of one stage, 3 + step seconds; without the operations
   that end before, or start behind, what is traced. */
static void add_step(struct hand *h, int step, double from, double to)
{
    static const char *const ops[] = {"forward-compute", "backward-compute",
                                      "grads-reduce-scatter", "optimizer"};

    h->step = step;
    for (int i = 0; i < 4; i++)
        for (int d = 0; d < 2; d++) {
            double start = 100 * step + i, dur = i == 1 ? step : 1;

            if (start + dur >= from && start < to)
                add(h, ops[i], d, 0, -1, start, dur);
        }
}

/* Which steps are left of steps [first, last] traced in [from, to). */
static void test_ends(void)
{
    static const struct {
        int first, last;
        double from, to;
        int left, of;        /* the first step that is left, how many */
        size_t have1, want1; /* of the first that is left out */
        size_t have2, want2; /* of the last one */
        const char *message; /* NULL: replayed */
    } cases[] = {
        {1, 3, 0, 1e9, 1, 3, 0, 0, 0, 0, NULL},
        {1, 3, 102.5, 1e9, 2, 2, 4, 8, 0, 0, NULL},
        {1, 3, 0, 300.5, 1, 2, 0, 0, 2, 8, NULL},
        {1, 3, 102.5, 302.5, 2, 1, 4, 8, 6, 8, NULL},
        {1, 2, 102.5, 1e9, 2, 1, 4, 8, 0, 0, NULL},
        {1, 2, 0, 202.5, 1, 1, 0, 0, 6, 8, NULL},
        /* none of the two is whole */
        {1, 2, 102.5, 202.5, 0, 0, 0, 0, 0, 0,
         "cannot replay step 2: dp=0,pp=0 backward-compute is not at dp=0 of "
         "the first step (1 of them, 0 at dp=0 of step 1)"},
        {1, 1, 0, 102.5, 0, 0, 0, 0, 0, 0,
         "cannot replay step 1: dp=0,pp=0 has no optimizer"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct hand h;
        int rc;

        begin(&h);
        for (int s = cases[i].last; s >= cases[i].first; s--)
            add_step(&h, s, cases[i].from, cases[i].to);
        rc = analyse(&h);
        ok(rc == (cases[i].message ? EP_EFORMAT : 0));
        if (cases[i].message) {
            ok(strcmp(h.err.msg, cases[i].message) == 0);
        } else {
            ok(h.t.steps == (size_t)cases[i].of);
            ok(h.t.step[0] == cases[i].left);
            near(h.t.base[0], 100 * cases[i].left, 1e-12);
            ok(h.t.first.have == cases[i].have1);
            ok(h.t.first.want == cases[i].want1);
            ok(h.t.last.have == cases[i].have2);
            ok(h.t.last.want == cases[i].want2);
            ok(!h.t.first.steps || h.t.first.from == cases[i].first);
            ok(!h.t.last.steps || h.t.last.to == cases[i].last);
            /* the times are those of the steps that are left */
            near(h.w.time.step[0], 3 + cases[i].left, 1e-12);
        }
        end(&h);
    }
}

/* Ranks that begin and end in other steps: the first in 1 to 4, the second in
   the midst of 3 to 6. Steps 1 and 2, and 5 and 6, are of one rank alone, and 3
   is not whole. */
static void test_ragged(void)
{
    struct hand h;

    begin(&h);
    for (int s = 1; s <= 6; s++)
        for (int d = 0; d < 2; d++)
            for (int i = 0; i < 3; i++) {
                static const char *const ops[] = {
                    "forward-compute", "backward-compute", "optimizer"};
                bool traced = d == 0 ? s <= 4 : s > 3 || (s == 3 && i == 2);

                h.step = s;
                if (traced)
                    add(&h, ops[i], d, 0, -1, 10 * s + i, 1);
            }
    ok(analyse(&h) == 0);
    ok(h.t.steps == 1 && h.t.step[0] == 4);
    near(h.t.base[0], 40, 1e-12);
    ok(h.t.first.steps == 3 && h.t.first.from == 1 && h.t.first.to == 3);
    ok(h.t.first.have == 10 && h.t.first.want == 18);
    ok(h.t.last.steps == 2 && h.t.last.from == 5 && h.t.last.to == 6);
    ok(h.t.last.have == 6 && h.t.last.want == 12);
    end(&h);
}

/* A step in the middle is not left out, nor one that has what its neighbour
   has not, nor a rank that has nothing. */
static void test_not_ends(void)
{
    struct hand h;

    begin(&h);
    for (int s = 1; s <= 4; s++)
        add_step(&h, s, 0, s == 2 ? 202.5 : 1e9);
    ok(analyse(&h) == EP_EFORMAT);
    ok(strcmp(h.err.msg,
              "cannot replay step 2: dp=0,pp=0 optimizer is missing "
              "(0 of them, 1 at dp=0 of step 1)") == 0);
    end(&h);

    begin(&h);
    for (int s = 1; s <= 3; s++)
        add_step(&h, s, 0, s == 3 ? 302.5 : 1e9);
    add(&h, "gc", 0, 0, -1, 303, 1);
    ok(analyse(&h) == EP_EFORMAT);
    end(&h);
}

/* A file that is read twice, a step that is run again. */
static void test_twice(void)
{
    struct hand h;

    begin(&h);
    add_step(&h, 1, 0, 1e9);
    add_step(&h, 1, 0, 1e9);
    ok(analyse(&h) == EP_EFORMAT);
    ok(strcmp(
           h.err.msg,
           "cannot replay step 1: dp=0,pp=0 backward-compute is there twice") ==
       0);
    end(&h);

    /* without a number another start is another operation */
    begin(&h);
    add(&h, "forward-compute", 0, 0, -1, 0, 1);
    add(&h, "forward-compute", 0, 0, -1, 1, 1);
    add(&h, "optimizer", 0, 0, -1, 2, 1);
    ok(analyse(&h) == 0);
    end(&h);

    begin(&h);
    h.step = 7;
    for (int i = 0; i < 2; i++) {
        struct ep_replay_span s = {
            .step = 7, .dp = 1, .pp = 2, .mb = 5, .chunk = 0, .start = 9 * i};

        s.type = ep_ops_find(h.ops, span_of("backward-compute"));
        ok(ep_spans_add(h.spans, &s, &h.err) == 0);
    }
    for (int d = 0; d < 2; d++)
        for (int p = 0; p < 3; p++)
            add(&h, "optimizer", d, p, -1, 20, 1);
    ok(analyse(&h) == EP_EFORMAT);
    ok(strcmp(h.err.msg,
              "cannot replay step 7: dp=1,pp=2 backward-compute mb 5 is "
              "there twice") == 0);
    end(&h);
}

/* ==== The screen ==== */

static void set_value(struct ep_whatif_value *v, double x, size_t steps)
{
    v->all = x;
    v->step = ep_calloc(steps, sizeof *v->step);
    for (size_t s = 0; s < steps; s++)
        v->step[s] = x + 0.001 * (double)s;
}

static struct ep_whatif_value *values(size_t n, double x, size_t steps)
{
    struct ep_whatif_value *v = ep_calloc(n, sizeof *v);

    for (size_t i = 0; i < n; i++)
        set_value(&v[i], x, steps);
    return v;
}

/* A job as large as they come. */
static void make_large(struct ep_whatif *w, const struct ep_ops *ops, size_t dp)
{
    *w = (struct ep_whatif){.steps = 9,
                            .dp = dp,
                            .pp = 16,
                            .classes = ep_ops_classes(ops),
                            .ideal = 12.34,
                            .launch = 12.345,
                            .nworkers = dp > 1 ? 492 : 1,
                            .correlation = -0.987};
    set_value(&w->time, 123.4, 9);
    set_value(&w->traced, 1234, 9);
    set_value(&w->delayed, 1234, 9);
    set_value(&w->slowdown, 12.345, 9);
    set_value(&w->comm, 12.345, 9);
    set_value(&w->slowest, 1.234, 9);
    set_value(&w->last_stage, -1.234, 9);
    set_value(&w->worst, 0.5, 9);
    w->cls = values(w->classes, 12.345, 9);
    w->of_dp = values(dp, 12.345, 9);
    w->of_pp = values(16, 12.345, 9);
    w->worker = ep_calloc(dp * 16, sizeof *w->worker);
    for (size_t i = 0; i < dp * 16; i++)
        w->worker[i] = (uint32_t)(dp * 16 - 1 - i);
}

static size_t longest_line(const struct ep_buf *b)
{
    size_t longest = 0, begin = 0;

    for (size_t i = 0; i < b->len; i++)
        if (b->ptr[i] == '\n') {
            longest = i - begin > longest ? i - begin : longest;
            begin = i + 1;
        }
    return longest;
}

/* Whatever the cause, the screen has 80 columns. */
static void test_screen(void)
{
    static const int64_t step[9] = {1700000000, 1700000001, 1700000002,
                                    1700000003, 1700000004, 1700000005,
                                    1700000006, 1700000007, 1700000008};
    struct ep_ops *ops = ep_ops_new();
    char name[120];
    struct ep_error err;
    struct ep_buf b;

    memset(name, 'x', sizeof name);
    memcpy(name, "gc gc ", 6);
    ok(ep_ops_read(ops, name, sizeof name, &err) == 0);
    ep_buf_init(&b);
    for (size_t dp = 1; dp <= 1024; dp += 1023)
        for (int c = 0; c < EP_CAUSES * 2; c++) {
            struct ep_whatif w;

            make_large(&w, ops, dp);
            if (c % 2)
                w.worst.all = w.slowest.all; /* one worker accounts for it */
            ep_buf_reset(&b);
            ep_whatif_text(&w, ops, step, (enum ep_whatif_cause)(c / 2), &b);
            ok(longest_line(&b) <= 80);
            if (longest_line(&b) > 80)
                printf("# %.*s", (int)b.len, b.ptr);
            ep_whatif_free(&w);
        }
    ep_buf_free(&b);
    ep_ops_free(ops);
}

static void test_bad_spans(void)
{
    static const struct {
        struct ep_replay_span s;
        const char *message;
    } bad[] = {
        {{.dp = EP_SPANS_DP_MAX}, "dp is not below 65536"},
        {{.dp = -1}, "dp is not below 65536"},
        {{.pp = EP_SPANS_PP_MAX}, "pp is not below 4096"},
        {{.mb = INT64_C(1) << 31}, "mb is too large"},
        {{.chunk = 32768}, "chunk is too large"},
        {{.seq = INT64_C(1) << 31}, "seq is too large"},
        {{.start = INFINITY}, "ts is not a time"},
        {{.dur = NAN}, "dur is not a time"},
    };
    struct hand h;

    begin(&h);
    ok(analyse(&h) == EP_EFORMAT);
    ok(strcmp(h.err.msg, "cannot replay: no spans") == 0);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        ok(ep_spans_add(h.spans, &bad[i].s, &h.err) == EP_ERANGE);
        ok(strcmp(h.err.msg, bad[i].message) == 0);
    }
    ok(ep_spans_count(h.spans) == 0);
    end(&h);
}

int main(void)
{
    test_names();
    test_two_workers();
    test_outer_messages();
    test_overlap();
    test_gc_in_between();
    test_skew();
    test_ends();
    test_ragged();
    test_not_ends();
    test_twice();
    test_screen();
    test_bad_spans();
    return tap_done();
}
