/* SPDX-License-Identifier: Apache-2.0 */
/* plot_series.c - who there is, and the series of each; see plot_impl.h. */
#include "config.h"

#include "base/mem.h"
#include "base/stats.h"
#include "draw/bin.h"
#include "draw/plot_impl.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BAND_COLUMNS ((size_t)240)
#define MOST_OUTSTANDING 6

static const struct who *who_at(const struct points *of, size_t i)
{
    return (const struct who *)of->who.v + i;
}

static void add_part(struct ep_buf *b, size_t from, const char *what,
                     const char *name)
{
    ep_buf_adds(b, b->len > from ? ", " : "");
    ep_buf_adds(b, what);
    if (name)
        ep_plot_add_name(b, name);
}

void ep_plot_add_who(struct ep_buf *b, const struct ep_plots *p,
                     const struct points *of, size_t who)
{
    const struct who *w = who_at(of, who);
    size_t from = b->len;

    if (w->job >= 0 && of->many_jobs)
        add_part(b, from, "", ep_intern_name(p->names, (size_t)w->job));
    if (w->worker >= 0)
        add_part(b, from, "worker ",
                 ep_intern_name(p->names, (size_t)w->worker));
    if (w->rank >= 0) {
        add_part(b, from, "rank ", NULL);
        ep_buf_addf(b, "%lld", (long long)w->rank);
    }
    if (w->split >= 0)
        add_part(b, from, "", ep_intern_name(p->names, (size_t)w->split));
    if (b->len == from)
        ep_buf_adds(b, of == &p->losses ? "loss" : "job");
}

struct sort_key {
    const char *job, *worker, *split;
    int64_t rank;
    uint32_t who;
};

/* Names in the order of the numbers in them: n9 before n10. */
static int by_name(const char *a, const char *b)
{
    return strverscmp(a, b);
}

static int by_key(const void *a, const void *b)
{
    const struct sort_key *x = a, *y = b;
    int d = by_name(x->job, y->job);

    if (d == 0)
        d = by_name(x->worker, y->worker);
    if (d == 0)
        d = (x->rank > y->rank) - (x->rank < y->rank);
    return d ? d : by_name(x->split, y->split);
}

static const char *text_of(const struct ep_plots *p, int64_t name)
{
    return name < 0 ? "" : ep_intern_name(p->names, (size_t)name);
}

uint32_t *ep_plot_sorted_who(const struct ep_plots *p, const struct points *of)
{
    struct sort_key *key = ep_calloc(of->who.n, sizeof *key);
    uint32_t *order = ep_calloc(of->who.n, sizeof *order);

    for (size_t i = 0; i < of->who.n; i++) {
        const struct who *w = who_at(of, i);

        key[i] = (struct sort_key){text_of(p, w->job), text_of(p, w->worker),
                                   text_of(p, w->split), w->rank, (uint32_t)i};
    }
    qsort(key, of->who.n, sizeof *key, by_key);
    for (size_t i = 0; i < of->who.n; i++)
        order[i] = key[i].who;
    free(key);
    return order;
}

double ep_plot_value(const struct ep_plots *p, const struct point *s)
{
    return p->any_busy && !isnan(s->busy) ? s->busy : s->dur;
}

/* One point while it is sorted. */
struct xy {
    double x, y, step;
};

static int by_x(const void *a, const void *b)
{
    const struct xy *p = a, *q = b;

    if (p->x != q->x)
        return p->x < q->x ? -1 : 1;
    if (p->step != q->step)
        return p->step < q->step ? -1 : 1;
    return (p->y > q->y) - (p->y < q->y);
}

static void fill(struct series *s, struct xy *v, size_t n)
{
    bool rising = true;

    for (size_t i = 1; i < n; i++)
        rising &= v[i - 1].x <= v[i].x;
    if (!rising)
        qsort(v, n, sizeof *v, by_x);
    s->n = n;
    s->x = ep_calloc(n, sizeof *s->x);
    s->y = ep_calloc(n, sizeof *s->y);
    s->step = ep_calloc(n, sizeof *s->step);
    for (size_t i = 0; i < n; i++) {
        s->x[i] = v[i].x;
        s->y[i] = v[i].y;
        s->step[i] = v[i].step;
    }
}

struct series *ep_plot_series(const struct ep_plots *p, const struct points *of,
                              bool by_step, size_t *n)
{
    size_t *end = ep_calloc(of->who.n + 1, sizeof *end), from = 0;
    struct series *s = ep_calloc(of->who.n, sizeof *s);
    uint32_t *order = ep_plot_sorted_who(p, of);
    struct xy *v = ep_calloc(of->n, sizeof *v);
    struct ep_buf name;

    ep_buf_init(&name);
    for (size_t i = 0; i < of->n; i++)
        end[of->v[i].who + 1]++;
    for (size_t i = 0; i < of->who.n; i++)
        end[i + 1] += end[i];
    for (size_t i = 0; i < of->n; i++) { /* end[who] is where its next goes */
        const struct point *q = &of->v[i];

        v[end[q->who]++] = (struct xy){
            by_step ? (double)q->step : q->ts,
            of == &p->steps ? ep_plot_value(p, q) : q->dur, (double)q->step};
    }
    for (size_t i = 0; i < of->who.n; i++) {
        const struct who *w = who_at(of, order[i]);
        const struct who *last = i ? who_at(of, order[i - 1]) : NULL;

        from = order[i] ? end[order[i] - 1] : 0;
        fill(&s[i], v + from, end[order[i]] - from);
        ep_buf_reset(&name);
        ep_plot_add_who(&name, p, of, order[i]);
        s[i].name = ep_strndup(name.ptr, name.len);
        s[i].neutral = of == &p->steps && w->rank < 0 && w->worker < 0;
        /* splits of one worker, which are neighbours, share its colour */
        s[i].colour = i && !s[i - 1].neutral ? s[i - 1].colour + 1 : 0;
        if (last && last->job == w->job && last->worker == w->worker &&
            last->rank == w->rank)
            s[i].colour = s[i - 1].colour;
        s[i].dashed =
            w->split >= 0 && strcmp(text_of(p, w->split), "train") != 0;
        s[i].score = s[i].n ? s[i].y[s[i].n - 1] : 0;
    }
    *n = of->who.n;
    ep_buf_free(&name);
    free(v);
    free(order);
    free(end);
    return s;
}

void ep_plot_series_free(struct series *s, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        free(s[i].x);
        free(s[i].y);
        free(s[i].step);
        free(s[i].name);
    }
    free(s);
}

/* Arrays of a band. */
struct band {
    double *x, *lo, *mid, *hi;
    size_t n;
};

/* Least, median and greatest of all series in each of some columns. */
static void make_band(struct band *b, const struct series *s, size_t n)
{
    double lo = (double)INFINITY, hi = -(double)INFINITY, *v;
    size_t all = 0, end[BAND_COLUMNS + 1] = {0};

    for (size_t i = 0; i < n; i++) {
        all += s[i].n;
        if (s[i].n) {
            lo = fmin(lo, s[i].x[0]);
            hi = fmax(hi, s[i].x[s[i].n - 1]);
        }
    }
    v = ep_calloc(all, sizeof *v);
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < s[i].n; k++)
            end[ep_bin_of(s[i].x[k], lo, hi, BAND_COLUMNS) + 1]++;
    for (size_t c = 0; c < BAND_COLUMNS; c++)
        end[c + 1] += end[c];
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < s[i].n; k++)
            v[end[ep_bin_of(s[i].x[k], lo, hi, BAND_COLUMNS)]++] = s[i].y[k];
    for (size_t c = 0, from = 0; c < BAND_COLUMNS; from = end[c++]) {
        size_t m = end[c] - from;

        if (!m)
            continue;
        b->x[b->n] = lo + (hi - lo) * ((double)c + 0.5) / BAND_COLUMNS;
        b->lo[b->n] = ep_quantile(v + from, m, 0);
        b->hi[b->n] = ep_quantile(v + from, m, 1);
        b->mid[b->n++] = ep_median(v + from, m);
    }
    free(v);
}

/* The most series with the greatest score, in their order. */
static size_t choose(const struct series *s, size_t n, size_t most,
                     size_t *which)
{
    size_t have = 0;

    for (size_t i = 0; i < n; i++) {
        size_t at;

        if (have == most && !(s[i].score > s[which[most - 1]].score))
            continue;
        at = have < most ? have++ : most - 1;
        for (; at && s[i].score > s[which[at - 1]].score; at--)
            which[at] = which[at - 1];
        which[at] = i;
    }
    return have;
}

/* How many of those stand out. */
static size_t outstanding(const struct series *s, size_t n, const size_t *which,
                          size_t m)
{
    double *score = ep_calloc(n, sizeof *score), median;

    for (size_t i = 0; i < n; i++)
        score[i] = s[i].score;
    median = ep_median(score, n);
    free(score);
    while (m > 1 && !(s[which[m - 1]].score > 1.05 * median))
        m--;
    return m;
}

static struct ep_curve curve_of(const struct series *s)
{
    return (struct ep_curve){.name = s->name,
                             .x = s->x,
                             .y = s->y,
                             .step = s->step,
                             .n = s->n,
                             .neutral = s->neutral,
                             .dashed = s->dashed,
                             .colour = s->colour};
}

void ep_plot_draw_series(struct ep_curves *c, struct series *s, size_t n,
                         bool whole, const struct ep_plot_choice *choice,
                         const struct ep_look *look, struct ep_buf *out)
{
    size_t first = whole ? 1 : 0, others = n - first, m = others;
    size_t which[EP_CURVES_MAX] = {0};
    struct ep_curve curve[EP_CURVES_MAX];
    double *room = ep_calloc(4 * BAND_COLUMNS, sizeof *room);
    struct band b = {room, room + BAND_COLUMNS, room + 2 * BAND_COLUMNS,
                     room + 3 * BAND_COLUMNS, 0};
    bool all = others < EP_CURVES_MAX;
    char name[64];

    for (size_t i = 0; i < m && all; i++)
        which[i] = i;
    if (!all) {
        make_band(&b, s + first, others);
        m = choose(s + first, others, MOST_OUTSTANDING, which);
        m = outstanding(s + first, others, which, m);
        (void)snprintf(name, sizeof name, "span of all %zu", others);
        c->band = (struct ep_curve_band){
            name, "median of all", b.x, b.lo, b.mid, b.hi, b.n};
    }
    if (whole)
        curve[0] = curve_of(&s[0]);
    for (size_t i = 0; i < m; i++) {
        curve[first + i] = curve_of(&s[first + which[i]]);
        if (!all)
            curve[first + i].colour = (unsigned)i;
    }
    c->curve = curve;
    c->n = first + m;
    (choice->svg ? ep_curves_svg : ep_curves_text)(c, look, out);
    free(room);
}
