/* SPDX-License-Identifier: Apache-2.0 */
/* plot_timeline.c - the spans of one step; see plot.h. */
#include "config.h"

#include "base/mem.h"
#include "draw/axis.h"
#include "draw/plot_impl.h"
#include "draw/timeline.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct lanes {
    const struct ep_plots *p;
    uint32_t *order; /* place to lane */
    bool many_jobs, tp;
};

static const struct lane *lane_at(const struct ep_plots *p, size_t i)
{
    return (const struct lane *)p->lanes.v + i;
}

static void lane_name(const void *ctx, size_t i, struct ep_buf *b)
{
    const struct lanes *l = ctx;
    const struct lane *lane = lane_at(l->p, l->order[i]);
    size_t from = b->len;

    if (l->many_jobs && lane->job >= 0) {
        ep_plot_add_name(b, ep_intern_name(l->p->names, (size_t)lane->job));
        ep_buf_addc(b, ' ');
    }
    if (lane->rank >= 0)
        ep_buf_addf(b, "rank %lld ", (long long)lane->rank);
    if (lane->dp >= 0)
        ep_buf_addf(b, "dp %lld ", (long long)lane->dp);
    if (lane->pp >= 0)
        ep_buf_addf(b, "pp %lld ", (long long)lane->pp);
    if (l->tp)
        ep_buf_addf(b, "tp %lld ", (long long)lane->tp);
    if (b->len == from)
        ep_buf_adds(b, "all ");
    b->ptr[--b->len] = '\0'; /* the blank at the end */
}

static void op_name(const void *ctx, uint32_t op, struct ep_buf *b)
{
    ep_plot_add_name(b,
                     ep_intern_name(((const struct lanes *)ctx)->p->ops, op));
}

/* One step's extent, to find the longest. */
struct extent {
    int64_t step;
    double from, to;
};

static int by_step(const void *a, const void *b)
{
    const struct extent *x = a, *y = b;

    return (x->step > y->step) - (x->step < y->step);
}

/* The step that took longest as it was; of equals the first. */
static int64_t longest(const struct ep_plots *p)
{
    struct extent *e = NULL;
    size_t n = 0, cap = 0, m = 0, best = 0;
    bool original = false;
    int64_t step;

    for (size_t i = 0; i < p->spans; i++)
        original |= !p->span[i].ideal;
    for (size_t i = 0; i < p->spans; i++) {
        const struct span *s = &p->span[i];

        if (original && s->ideal)
            continue;
        if (n && e[n - 1].step == s->step) { /* as a rule they come together */
            e[n - 1].from = fmin(e[n - 1].from, s->ts);
            e[n - 1].to = fmax(e[n - 1].to, s->ts + s->dur);
            continue;
        }
        e = ep_grow(e, &cap, n + 1, sizeof *e);
        e[n++] = (struct extent){s->step, s->ts, s->ts + s->dur};
    }
    if (!n)
        return -1;
    qsort(e, n, sizeof *e, by_step);
    for (size_t i = 0; i < n; i++)
        if (m && e[m - 1].step == e[i].step) {
            e[m - 1].from = fmin(e[m - 1].from, e[i].from);
            e[m - 1].to = fmax(e[m - 1].to, e[i].to);
        } else {
            e[m++] = e[i];
        }
    for (size_t i = 1; i < m; i++)
        if (e[i].to - e[i].from > e[best].to - e[best].from)
            best = i;
    step = e[best].step;
    free(e);
    return step;
}

struct sort_key {
    const char *job;
    struct lane lane;
    uint32_t number;
};

static int by_lane(const void *a, const void *b)
{
    const struct sort_key *x = a, *y = b;
    const int64_t u[] = {x->lane.rank, x->lane.dp, x->lane.pp, x->lane.tp};
    const int64_t v[] = {y->lane.rank, y->lane.dp, y->lane.pp, y->lane.tp};
    int d = strverscmp(x->job, y->job);

    for (int i = 0; i < 4 && d == 0; i++)
        d = (u[i] > v[i]) - (u[i] < v[i]);
    return d;
}

/* Order the lanes that have a place (place[i] != 0), and give places. */
static size_t sort_lanes(struct lanes *l, uint32_t *place)
{
    const struct ep_plots *p = l->p;
    struct sort_key *key = ep_calloc(p->lanes.n, sizeof *key);
    size_t n = 0;

    for (size_t i = 0; i < p->lanes.n; i++) {
        const struct lane *lane = lane_at(p, i);

        if (!place[i])
            continue;
        key[n++] = (struct sort_key){
            lane->job < 0 ? "" : ep_intern_name(p->names, (size_t)lane->job),
            *lane, (uint32_t)i};
        l->many_jobs |= lane->job != key[0].lane.job;
        l->tp |= lane->tp > 0;
    }
    qsort(key, n, sizeof *key, by_lane);
    l->order = ep_calloc(n, sizeof *l->order);
    for (size_t i = 0; i < n; i++) {
        l->order[i] = key[i].number;
        place[key[i].number] = (uint32_t)i;
    }
    free(key);
    return n;
}

static int by_start(const void *a, const void *b)
{
    const struct ep_bar *x = a, *y = b;

    if (x->lane != y->lane)
        return x->lane < y->lane ? -1 : 1;
    if (x->start != y->start)
        return x->start < y->start ? -1 : 1;
    return x->op != y->op ? (x->op < y->op ? -1 : 1)
                          : (x->dur > y->dur) - (x->dur < y->dur);
}

/* The bars of a step, as it was or ideal; caller frees. */
static struct ep_bar *bars(const struct ep_plots *p, int64_t step, bool ideal,
                           const uint32_t *place, size_t *n)
{
    struct ep_bar *v = NULL;
    size_t cap = 0;

    for (size_t i = 0; i < p->spans; i++) {
        const struct span *s = &p->span[i];

        if (s->step != step || s->ideal != ideal)
            continue;
        v = ep_grow(v, &cap, *n + 1, sizeof *v);
        v[(*n)++] =
            (struct ep_bar){s->ts, s->dur, place[s->lane], s->op, s->mb};
    }
    if (*n)
        qsort(v, *n, sizeof *v, by_start);
    return v;
}

static unsigned char *op_kinds(const struct ep_plots *p)
{
    size_t n = ep_intern_count(p->ops);
    unsigned char *kind = ep_calloc(n + 1, 1);

    for (size_t i = 0; i < n; i++)
        kind[i] = (unsigned char)ep_op_kind_of(ep_intern_name(p->ops, i));
    return kind;
}

static double extent_of(const struct ep_bar *v, size_t n)
{
    double from = (double)INFINITY, to = -(double)INFINITY;

    for (size_t i = 0; i < n; i++) {
        from = fmin(from, v[i].start);
        to = fmax(to, v[i].start + v[i].dur);
    }
    return n ? to - from : (double)NAN;
}

static void summary(const struct ep_timeline *t, struct ep_buf *b)
{
    double was = extent_of(t->bar[0], t->n[0]);
    double ideal = extent_of(t->bar[1], t->n[1]);

    size_t n = t->n[0] ? t->n[0] : t->n[1];

    ep_buf_addf(b, "%zu operation%s on %zu lane%s, ", n, n == 1 ? "" : "s",
                t->lanes, t->lanes == 1 ? "" : "s");
    ep_axis_add_value(b, t->n[0] ? was : ideal, "s");
    if (t->n[0] && t->n[1]) {
        ep_buf_adds(b, "; without stragglers ");
        ep_axis_add_value(b, ideal, "s");
        if (ideal > 0)
            ep_buf_addf(b, ": %.3gx", was / ideal);
    }
}

int ep_plot_draw_timeline(struct ep_plots *p,
                          const struct ep_plot_choice *choice,
                          const struct ep_look *look, struct ep_buf *out,
                          struct ep_error *err)
{
    int64_t step = choice->step >= 0 ? choice->step : longest(p);
    struct lanes l = {.p = p};
    uint32_t *place = ep_calloc(p->lanes.n + 1, sizeof *place);
    unsigned char *kinds = op_kinds(p);
    struct ep_timeline t = {.lane_name = lane_name,
                            .op_name = op_name,
                            .op_kind = kinds,
                            .ctx = &l};
    struct ep_bar *v[2];
    struct ep_buf title, text;

    for (size_t i = 0; i < p->spans; i++)
        if (p->span[i].step == step)
            place[p->span[i].lane] = 1;
    t.lanes = sort_lanes(&l, place);
    for (int i = 0; i < 2; i++)
        t.bar[i] = v[i] = bars(p, step, i == 1, place, &t.n[i]);
    ep_buf_init(&title);
    ep_buf_init(&text);
    ep_buf_addf(&title, "Operations of step %lld", (long long)step);
    if (choice->step < 0)
        ep_buf_adds(&title, ", the longest");
    if (t.lanes) {
        summary(&t, &text);
        t.title = title.ptr;
        t.summary = text.ptr;
        (choice->svg ? ep_timeline_svg : ep_timeline_text)(&t, look, out);
    }
    free(v[0]);
    free(v[1]);
    free(l.order);
    free(kinds);
    free(place);
    ep_buf_free(&title);
    ep_buf_free(&text);
    if (!t.lanes)
        return ep_error_set(err, EP_EMISSING, "no span of step %lld",
                            (long long)step);
    return 0;
}
