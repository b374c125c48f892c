/* SPDX-License-Identifier: Apache-2.0 */
/* test_draw_plot.c - scales, lanes and slots against brute force; the pictures
   of large jobs stay small, and show the one that is slow. */
#include "config.h"

#include "base/mem.h"
#include "base/rng.h"
#include "draw/grid.h"
#include "draw/plot.h"
#include "draw/timeline.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "svg_check.h"
#include "tap.h"

#define MOST 2000000 /* bytes of a picture */
#define ALL ((1u << EP_PLOT_KINDS) - 1)

static struct ep_span span(const char *s)
{
    return (struct ep_span){s, strlen(s)};
}

static void add_step(struct ep_plots *p, int64_t rank, int64_t step, double dur,
                     double busy)
{
    struct ep_plot_step s = {.rank = rank,
                             .step = step,
                             .ts = 1.7e9 + (double)step,
                             .dur = dur,
                             .busy = busy};

    ep_plots_step(p, &s);
}

static void add_span(struct ep_plots *p, int64_t dp, double ts, double dur,
                     const char *op, bool ideal)
{
    struct ep_plot_span s = {.op = span(op),
                             .ideal = ideal,
                             .rank = -1,
                             .dp = dp,
                             .pp = 0,
                             .tp = -1,
                             .step = 7,
                             .mb = 1,
                             .ts = ts,
                             .dur = dur};

    ep_plots_span(p, &s);
}

/* Draw as SVG and as text; returns whether the SVG is sound. */
static bool draw(struct ep_plots *p, enum ep_plot_kind kind, struct ep_buf *svg,
                 struct ep_buf *text)
{
    struct ep_look look = {.term = {80, 24, false, EP_DEPTH_NONE}};
    struct ep_plot_choice choice = {.svg = true, .step = -1};
    struct ep_error err;

    ep_buf_reset(svg);
    ep_buf_reset(text);
    if (ep_plots_draw(p, kind, &choice, &look, svg, &err) < 0)
        return false;
    choice.svg = false;
    return ep_plots_draw(p, kind, &choice, &look, text, &err) == 0 &&
           svg_is_sound(svg);
}

static void test_scale(void)
{
    double v[200];
    struct ep_grid g = {.rows = 10, .cols = 20, .v = v};
    struct ep_grid_scale s;

    for (int i = 0; i < 200; i++)
        v[i] = 1 + 0.001 * (i % 10);
    ep_grid_scale_init(&s, &g);
    near(s.lo, 0.9 * 1.0045, 1e-3); /* a healthy job looks even */
    near(s.hi, 1.25 * 1.0045, 1e-3);
    ok(!s.above && !s.below && !s.log);
    v[17] = 30; /* one spike does not wash out the rest */
    ep_grid_scale_init(&s, &g);
    near(s.hi, 2 * 1.0045, 2e-3);
    ok(s.above);
    near(ep_grid_scale_at(&s, 30), 1, 0);
    g.low_is_bad = true;
    v[17] = 0.1;
    ep_grid_scale_init(&s, &g);
    near(s.lo, 0.5 * 1.0045, 2e-3);
    ok(s.below);
    near(ep_grid_scale_at(&s, 0.1), 1, 0);
    g.low_is_bad = false;
    g.slowdown = true;
    v[17] = 1.5;
    ep_grid_scale_init(&s, &g);
    near(ep_grid_scale_at(&s, 1), 0, 0);
    near(ep_grid_scale_at(&s, 1.5), 1, 1e-12);
    near(ep_grid_scale_at(&s, 0.75), -0.5, 1e-12);
    for (int i = 0; i < 200; i++)
        v[i] = (double)NAN;
    ep_grid_scale_init(&s, &g);
    ok(s.lo < s.hi);
}

/* Random values with holes; the mean of each row, or its worst cell, holes left
   out. */
static void fill(struct ep_rng *r, struct ep_grid *g, double *v, double *mean)
{
    for (size_t i = 0; i < g->rows; i++) {
        double sum = 0, n = 0, end = (double)NAN;

        for (size_t c = 0; c < g->cols; c++) {
            double x = ep_rng_uniform(r);

            v[i * g->cols + c] = x < 0.2 ? (double)NAN : x;
            sum += x < 0.2 ? 0 : x;
            n += x >= 0.2;
            if (x >= 0.2)
                end = g->low_is_bad ? fmin(end, x) : fmax(end, x);
        }
        mean[i] = n == 0       ? (g->low_is_bad ? 9 : -9)
                  : g->by_mean ? sum / n
                               : end;
    }
}

static void test_worst_rows(void)
{
    enum { R = 300, C = 7, N = 8 };
    double v[R * C], mean[R];
    struct ep_grid g = {.rows = R, .cols = C, .v = v};
    struct ep_rng r;
    size_t row[N];
    int bad = 0;

    ep_rng_seed(&r, 21, 0);
    for (int round = 0; round < 40; round++) {
        g.low_is_bad = round & 1;
        g.by_mean = round & 2;
        fill(&r, &g, v, mean);
        ep_grid_worst_rows(&g, row, N);
        for (size_t k = 0; k < N; k++) {
            size_t worse = 0;

            for (size_t i = 0; i < R; i++)
                worse += g.low_is_bad ? mean[i] < mean[row[k]] - 1e-12
                                      : mean[i] > mean[row[k]] + 1e-12;
            bad += worse != k;
        }
    }
    printf("# seed 21\n");
    ok(bad == 0);
}

static void test_slots(void)
{
    enum { N = 500, SLOTS = 33 };
    static const unsigned char kinds[3] = {EP_OP_FORWARD, EP_OP_P2P,
                                           EP_OP_BACKWARD};
    struct ep_bar bar[N];
    struct ep_timeline t = {
        .bar = {bar, NULL}, .n = {N, 0}, .lanes = 1, .op_kind = kinds};
    double slot[SLOTS * EP_OP_KINDS], first[2], extent, worst = 0;
    uint32_t count[SLOTS], lane, all = 0;
    struct ep_rng r;

    ep_rng_seed(&r, 22, 0);
    for (int i = 0; i < N; i++)
        bar[i] =
            (struct ep_bar){5 + ep_rng_uniform(&r), ep_rng_uniform(&r) * 0.3, 0,
                            (uint32_t)(ep_rng_next(&r) % 3), -1};
    ep_timeline_extent(&t, first, &extent);
    ok(ep_timeline_lanes(&t, 4, &lane) == 1 && lane == 0);
    ep_timeline_slots(&t, 0, 0,
                      (const double[3]){first[0], extent, (double)INFINITY},
                      SLOTS, slot, count);
    for (int k = 0; k < SLOTS; k++) {
        double lo = first[0] + extent * k / SLOTS;
        double hi = first[0] + extent * (k + 1) / SLOTS, want[3] = {0};

        for (int i = 0; i < N; i++)
            want[bar[i].op] += fmax(0, fmin(hi, bar[i].start + bar[i].dur) -
                                           fmax(lo, bar[i].start));
        for (int op = 0; op < 3; op++)
            worst =
                fmax(worst, fabs(want[op] - slot[k * EP_OP_KINDS + kinds[op]]));
        all += count[k];
    }
    printf("# seed 22\n");
    near(worst, 0, 1e-9);
    ok(all == N);
}

static void test_kinds(void)
{
    static const struct {
        const char *name;
        enum ep_op_kind kind;
    } rows[] = {
        {"forward-compute", EP_OP_FORWARD},
        {"backward-compute", EP_OP_BACKWARD},
        {"forward-send", EP_OP_P2P},
        {"backward-recv", EP_OP_P2P},
        {"grads-reduce-scatter", EP_OP_COLL},
        {"params-all-gather", EP_OP_COLL},
        {"layernorm-grads-all-reduce", EP_OP_COLL},
        {"optimizer-clip-main-grad", EP_OP_OPTIMIZER},
        {"gc", EP_OP_GC},
        {"all_reduce", EP_OP_COLL},
        {"data", EP_OP_OTHER},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        ok(ep_op_kind_of(rows[i].name) == rows[i].kind);
}

/* 4,096 ranks x 2,000 steps, no two neighbouring cells of the picture alike;
   one rank is slow, another for one step. */
static void test_many_ranks(void)
{
    struct ep_plots *p = ep_plots_new(ALL);
    struct ep_buf svg, text;
    struct ep_rng r;

    ep_buf_init(&svg);
    ep_buf_init(&text);
    ep_rng_seed(&r, 23, 0);
    for (int step = 0; step < 2000; step++)
        for (int rank = 0; rank < 4096; rank++) {
            double busy = 1 + 0.05 * ep_rng_uniform(&r) +
                          0.6 * ((rank / 64 * 37 + step / 8 * 11) % 17) / 17;

            if (rank == 1234)
                busy *= 1.5;
            if (rank == 77 && step == 1500)
                busy = 9.87;
            add_step(p, rank, step, 3, busy);
        }
    ok(ep_plots_choose(p) == EP_PLOT_RANKS);
    ok(draw(p, EP_PLOT_RANKS, &svg, &text));
    printf("# seed 23: ranks %zu bytes\n", svg.len);
    ok(svg.len < MOST && svg.len > 700000);
    ok(strstr(svg.ptr, "slowest: rank 1234") != NULL);
    ok(strstr(svg.ptr, "rank 77, step 1500: 9.87 s") != NULL);
    ok(strstr(text.ptr, "\nrank 1234 ") != NULL);
    ok(draw(p, EP_PLOT_PACE, &svg, &text));
    printf("# pace %zu bytes\n", svg.len);
    ok(svg.len < MOST);
    ok(strstr(svg.ptr, "rank 1234: ") != NULL);
    ep_plots_free(p);
    ep_buf_free(&svg);
    ep_buf_free(&text);
}

/* A million spans: in lanes of their own, and then all over each other. */
static void test_many_spans(void)
{
    for (int over = 0; over < 2; over++) {
        int n = over ? 200000 : 1000000;
        struct ep_plots *p = ep_plots_new(ALL);
        struct ep_buf svg, text;
        struct ep_rng r;

        ep_buf_init(&svg);
        ep_buf_init(&text);
        ep_rng_seed(&r, 24, 0);
        for (int i = 0; i < n; i++) {
            double u = ep_rng_uniform(&r);

            add_span(p, over ? i % 40 : i / 250, over ? 10 * u : i % 250 * 0.04,
                     over ? 3 * ep_rng_uniform(&r)
                          : (i / 250 == 3141 ? 0.039 : 0.03 * u),
                     i % 3 ? "forward-compute" : "backward-send", i % 2);
        }
        ok(draw(p, EP_PLOT_TIMELINE, &svg, &text));
        printf("# seed 24: timeline %zu bytes\n", svg.len);
        ok(svg.len < MOST);
        ok(over || strstr(svg.ptr, ">dp 3141 pp 0</text>") != NULL);
        ok(over || strstr(text.ptr, "\ndp 3141 pp 0 F") != NULL);
        ep_plots_free(p);
        ep_buf_free(&svg);
        ep_buf_free(&text);
    }
}

/* All cells of a large matrix of links with colours of their own. */
static void test_many_links(void)
{
    struct ep_plots *p = ep_plots_new(ALL);
    struct ep_buf svg, text;
    struct ep_rng r;
    char a[32], b[32];

    ep_buf_init(&svg);
    ep_buf_init(&text);
    ep_rng_seed(&r, 25, 0);
    for (int i = 0; i < 500; i++)
        for (int k = 0; k < 500; k++) {
            struct ep_plot_link l = {.value = 1e9 * (1 + ep_rng_uniform(&r))};

            if (i == 321 && k == 42)
                l.value = 1.25e8;
            (void)snprintf(a, sizeof a, "a-rather-long-name-n%d", i);
            (void)snprintf(b, sizeof b, "a-rather-long-name-n%d", k);
            l.src = span(a);
            l.dst = span(b);
            ep_plots_link(p, &l);
        }
    ok(ep_plots_choose(p) == EP_PLOT_LINKS);
    ok(draw(p, EP_PLOT_LINKS, &svg, &text));
    printf("# seed 25: links %zu bytes\n", svg.len);
    ok(svg.len < MOST);
    ok(strstr(svg.ptr, "n321, a-rather-long-name-n42: 125 MB/s") != NULL);
    ep_plots_free(p);
    ep_buf_free(&svg);
    ep_buf_free(&text);
}

static void test_choice(void)
{
    struct ep_plots *p = ep_plots_new(ALL);
    struct ep_plot_whatif w = {
        .what = span("worker"), .id = span("dp=0,pp=2"), .slowdown = 1.5};
    struct ep_plot_loss l = {.rank = -1, .step = 1, .ts = 1, .value = 2};
    struct ep_look look = {.term = {80, 24, false, EP_DEPTH_NONE}};
    struct ep_plot_choice choice = {.step = 99};
    struct ep_error err;
    struct ep_buf b;

    ep_buf_init(&b);
    ok(ep_plots_choose(p) == -1 && ep_plots_can(p) == 0);
    ok(ep_plots_draw(p, EP_PLOT_LOSS, &choice, &look, &b, &err) == EP_EMISSING);
    ep_plots_loss(p, &l);
    ok(ep_plots_choose(p) == EP_PLOT_LOSS);
    add_span(p, 0, 1, 1, "x", false);
    ok(ep_plots_choose(p) == EP_PLOT_TIMELINE);
    ok(ep_plots_draw(p, EP_PLOT_TIMELINE, &choice, &look, &b, &err) ==
           EP_EMISSING &&
       strcmp(err.msg, "no span of step 99") == 0);
    for (int rank = 0; rank < EP_PLOT_MANY_RANKS; rank++)
        add_step(p, rank, 1, 1, (double)NAN);
    ok(ep_plots_choose(p) == EP_PLOT_PACE);
    add_step(p, EP_PLOT_MANY_RANKS, 1, 1, (double)NAN);
    ok(ep_plots_choose(p) == EP_PLOT_RANKS);
    w.what = span("dp"); /* of no worker: no heat map */
    ep_plots_whatif(p, &w);
    ok(ep_plots_choose(p) == EP_PLOT_RANKS);
    w.what = span("worker");
    ep_plots_whatif(p, &w);
    ok(ep_plots_choose(p) == EP_PLOT_HEAT);
    ok(ep_plots_can(p) == (ALL & ~(1u << EP_PLOT_LINKS)));
    ok(ep_plots_left_out(p) == 0);
    ep_plots_free(p);
    ep_buf_free(&b);
}

/* The whole step is there however many ranks there are. */
static void test_whole_step(void)
{
    for (int ranks = 1; ranks <= 20; ranks++) {
        struct ep_plots *p = ep_plots_new(ALL);
        struct ep_buf svg, text;

        ep_buf_init(&svg);
        ep_buf_init(&text);
        for (int step = 0; step < 5; step++)
            for (int r = 0; r < ranks; r++)
                add_step(p, r, step, 3, r == 0 ? 2.5 : 2);
        ok(draw(p, EP_PLOT_PACE, &svg, &text));
        ok(strstr(svg.ptr, "<title>whole step: 3 s to 3 s") != NULL);
        ok(strstr(text.ptr, "whole step") != NULL);
        ok(!strstr(svg.ptr, "span of all") == (ranks <= 8));
        ok(strstr(svg.ptr, "<title>rank 0: 2.5 s to 2.5 s") != NULL);
        ep_plots_free(p);
        ep_buf_free(&svg);
        ep_buf_free(&text);
    }
}

static void add_cost(struct ep_plots *p, const char *job, const char *what,
                     const char *id, double slowdown)
{
    struct ep_plot_whatif w = {span(job), span(what), span(id), slowdown};

    ep_plots_whatif(p, &w);
}

/* What whole ranks and stages cost stands beside and below the map; two jobs
   have rows of their own. */
static void test_heat(void)
{
    struct ep_plots *p = ep_plots_new(ALL);
    struct ep_buf svg, text;

    ep_buf_init(&svg);
    ep_buf_init(&text);
    add_cost(p, "a", "all", "", 1.9);
    add_cost(p, "a", "worker", "dp=0,pp=0", 1.6);
    add_cost(p, "a", "worker", "dp=1,pp=1", 1.1);
    ok(draw(p, EP_PLOT_HEAT, &svg, &text));
    ok(strstr(svg.ptr, "all pp") == NULL && strstr(text.ptr, "all") == NULL);
    add_cost(p, "a", "dp", "dp=0", 1.62);
    add_cost(p, "a", "pp", "pp=1", 1.83);
    add_cost(p, "a", "op", "op=dp=1", 7); /* no rank */
    ok(draw(p, EP_PLOT_HEAT, &svg, &text));
    ok(strstr(svg.ptr, "<title>dp 0, all pp: 1.62</title>") != NULL);
    ok(strstr(svg.ptr, "<title>all dp, pp 1: 1.83</title>") != NULL);
    ok(strstr(svg.ptr, ">7") == NULL);
    ok(strstr(text.ptr, "\ndp 0      1.60             1.62\n") != NULL);
    ok(strstr(text.ptr, "\nall dp            1.83\n") != NULL);
    ok(strstr(text.ptr, "whole job 1.9x") != NULL);
    add_cost(p, "b", "worker", "dp=0,pp=0", 1.7);
    ok(draw(p, EP_PLOT_HEAT, &svg, &text));
    ok(strstr(svg.ptr, "<title>a, dp 0, pp 0: 1.6</title>") != NULL);
    ok(strstr(svg.ptr, "<title>b, dp 0, pp 0: 1.7</title>") != NULL);
    ok(strstr(svg.ptr, "worst worker: b dp 0 pp 0, 1.7x") != NULL);
    ok(strstr(svg.ptr, "all dp") == NULL && strstr(svg.ptr, "whole") == NULL);
    ep_plots_free(p);
    ep_buf_free(&svg);
    ep_buf_free(&text);
}

/* Names of 20 KB, in every place where a name may stand. */
static void test_long_names(void)
{
    enum { LONG = 20000 };
    struct ep_plots *p = ep_plots_new(ALL);
    char *name = ep_calloc(LONG + 1, 1);
    struct ep_buf svg, text;

    ep_buf_init(&svg);
    ep_buf_init(&text);
    memset(name, 'x', LONG);
    for (int w = 0; w < 8; w++) {
        struct ep_span s = {name, LONG};

        name[LONG - 1] = (char)('0' + w);
        for (int i = 0; i < 100; i++) {
            ep_plots_step(p, &(struct ep_plot_step){.worker = s,
                                                    .rank = -1,
                                                    .step = i,
                                                    .ts = i,
                                                    .dur = 1,
                                                    .busy = (double)NAN});
            ep_plots_loss(p, &(struct ep_plot_loss){
                                 .worker = s, .rank = -1, .step = i, .ts = i});
            add_span(p, w, i, 0.5, name, false);
            ep_plots_link(p, &(struct ep_plot_link){s, s, i});
        }
        ep_plots_event(p, &(struct ep_plot_event){.kind = span("onset"),
                                                  .scope = s,
                                                  .id = s,
                                                  .cause = s,
                                                  .factor = 2});
    }
    for (int k = EP_PLOT_RANKS; k < EP_PLOT_KINDS; k++) {
        ok(draw(p, (enum ep_plot_kind)k, &svg, &text));
        ok(svg.len < MOST / 4);
        ok(strstr(svg.ptr, "xxx6") != NULL); /* its end tells it apart */
    }
    ep_plots_free(p);
    free(name);
    ep_buf_free(&svg);
    ep_buf_free(&text);
}

/* All cells of colours of their own, with names that are long in XML. */
static void test_long_links(void)
{
    enum { N = 120, LONG = EP_PLOT_NAME };
    struct ep_plots *p = ep_plots_new(ALL);
    char name[2][LONG + 1] = {{0}};
    struct ep_buf svg, text;
    struct ep_rng r;

    ep_buf_init(&svg);
    ep_buf_init(&text);
    ep_rng_seed(&r, 26, 0);
    for (int i = 0; i < N * N; i++) {
        struct ep_plot_link l = {.value = 1e9 * (1 + ep_rng_uniform(&r))};

        for (int k = 0; k < 2; k++) {
            memset(name[k], '"', LONG);
            (void)snprintf(name[k], LONG, "n%d", k ? i / N : i % N);
            name[k][strlen(name[k])] = '"';
        }
        l.src = span(name[0]);
        l.dst = span(name[1]);
        ep_plots_link(p, &l);
    }
    ok(draw(p, EP_PLOT_LINKS, &svg, &text));
    printf("# seed 26: links %zu bytes\n", svg.len);
    ok(svg.len < MOST && svg.len > MOST / 8);
    ep_plots_free(p);
    ep_buf_free(&svg);
    ep_buf_free(&text);
}

int main(void)
{
    test_scale();
    test_worst_rows();
    test_slots();
    test_kinds();
    test_choice();
    test_whole_step();
    test_heat();
    test_long_names();
    test_many_ranks();
    test_many_spans();
    test_many_links();
    test_long_links();
    return tap_done();
}
