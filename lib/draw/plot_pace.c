/* SPDX-License-Identifier: Apache-2.0 */
/* plot_pace.c - the time of steps, over time, with events marked. */
#include "config.h"

#include "base/mem.h"
#include "base/stats.h"
#include "draw/plot_impl.h"

#include <math.h>
#include <stdlib.h>

static int by_weight(const void *a, const void *b)
{
    const struct event *x = a, *y = b;

    if (x->kind != y->kind)
        return x->kind < y->kind ? -1 : 1;
    if (x->factor != y->factor)
        return x->factor > y->factor ? -1 : 1;
    return (x->since > y->since) - (x->since < y->since);
}

/* Marks of the events that have a place on the axis; caller frees. */
static struct ep_mark *marks(struct ep_plots *p, bool by_step, size_t *n)
{
    struct ep_mark *m = ep_calloc(p->events + 1, sizeof *m);

    if (p->events)
        qsort(p->event, p->events, sizeof *p->event, by_weight);
    for (size_t i = 0; i < p->events; i++) {
        const struct event *e = &p->event[i];

        if (by_step && e->step < 0)
            continue;
        m[(*n)++] = (struct ep_mark){by_step ? (double)e->step : e->since,
                                     e->kind, e->label, e->title};
    }
    return m;
}

/* Worst first: those with an event, then by the mean over all medians. */
static void score(const struct ep_plots *p, const struct points *of,
                  struct series *s, size_t n)
{
    uint32_t *order = ep_plot_sorted_who(p, of);

    for (size_t i = 0; i < n; i++) {
        const struct who *w = (const struct who *)of->who.v + order[i];
        double *v = ep_calloc(s[i].n, sizeof *v);

        for (size_t k = 0; k < s[i].n; k++)
            v[k] = s[i].y[k];
        /* half the steps and the slowest tenth: lasting and passing ones */
        s[i].score = ep_quantile(v, s[i].n, 0.5) + ep_quantile(v, s[i].n, 0.9);
        free(v);
        for (size_t k = 0; k < p->events; k++)
            if (p->event[k].kind == EP_MARK_ONSET && w->rank >= 0 &&
                p->event[k].rank == w->rank)
                s[i].score += EP_DRAW_LARGEST * 4;
    }
    free(order);
}

struct step {
    double x, dur, step;
};

static int by_step_number(const void *a, const void *b)
{
    const struct step *x = a, *y = b;

    if (x->step != y->step)
        return x->step < y->step ? -1 : 1;
    return (x->x > y->x) - (x->x < y->x);
}

static int by_place(const void *a, const void *b)
{
    const struct step *x = a, *y = b;

    return (x->x > y->x) - (x->x < y->x);
}

/*
 * Where ranks of one job have a busy time, the step itself as one series more:
 * from its first start, as long as its longest rank had it.
 */
static void add_job(const struct ep_plots *p, bool by_step, struct series *s)
{
    struct step *v = ep_calloc(p->steps.n, sizeof *v);
    size_t n = 0;

    for (size_t i = 0; i < p->steps.n; i++) {
        const struct point *q = &p->steps.v[i];

        v[i] = (struct step){by_step ? (double)q->step : q->ts, q->dur,
                             (double)q->step};
    }
    qsort(v, p->steps.n, sizeof *v, by_step_number);
    for (size_t i = 0; i < p->steps.n; i++)
        if (n && v[n - 1].step == v[i].step)
            v[n - 1].dur = fmax(v[n - 1].dur, v[i].dur);
        else
            v[n++] = v[i];
    qsort(v, n, sizeof *v, by_place);
    *s = (struct series){.n = n, .neutral = true};
    s->x = ep_calloc(n, sizeof *s->x);
    s->y = ep_calloc(n, sizeof *s->y);
    s->step = ep_calloc(n, sizeof *s->step);
    for (size_t i = 0; i < n; i++) {
        s->x[i] = v[i].x;
        s->y[i] = v[i].dur;
        s->step[i] = v[i].step;
    }
    s->name = ep_strdup("whole step");
    free(v);
}

/* Is time all one, so that only steps can tell points apart? */
static bool no_time(const struct points *of)
{
    for (size_t i = 1; i < of->n; i++)
        if (of->v[i].ts != of->v[0].ts)
            return false;
    return true;
}

static void summary(const struct ep_plots *p, const struct points *of,
                    struct ep_buf *b, const char *what)
{
    int64_t lo = INT64_MAX, hi = -1;

    for (size_t i = 0; i < of->n; i++) {
        lo = of->v[i].step < lo ? of->v[i].step : lo;
        hi = of->v[i].step > hi ? of->v[i].step : hi;
    }
    ep_buf_addf(b, "%zu %s%s, steps %lld to %lld", of->who.n, what,
                of->who.n == 1 ? "" : "s", (long long)lo, (long long)hi);
    if (p->events && of == &p->steps)
        ep_buf_addf(b, ", %zu event%s", p->events, p->events == 1 ? "" : "s");
}

void ep_plot_draw_pace(struct ep_plots *p, const struct ep_plot_choice *choice,
                       const struct ep_look *look, struct ep_buf *out)
{
    bool by_step = choice->by_step || no_time(&p->steps);
    struct ep_curves c = {
        .title = "Pace of the training steps",
        .x_is = by_step ? "step" : "time",
        .y_is = p->any_busy ? "busy time of ranks" : "step time",
        .unit = "s",
        .x_kind = by_step ? EP_AXIS_INTEGER : EP_AXIS_TIME,
        .from_zero = true,
    };
    bool whole = false;
    size_t n, nmarks = 0;
    struct series *s = ep_plot_series(p, &p->steps, by_step, &n);
    struct ep_mark *m = marks(p, by_step, &nmarks);
    struct ep_buf text;

    ep_buf_init(&text);
    score(p, &p->steps, s, n);
    summary(p, &p->steps, &text, p->any_rank ? "rank" : "job");
    if (p->any_busy && !p->steps.many_jobs) {
        struct series *more = ep_calloc(n + 1, sizeof *more);

        for (size_t i = 0; i < n; i++)
            more[i + 1] = s[i];
        free(s);
        s = more;
        add_job(p, by_step, &s[0]);
        n++;
        whole = true;
        c.y_is = "time of steps, busy time of ranks";
    }
    c.summary = text.ptr;
    c.mark = m;
    c.marks = nmarks;
    ep_plot_draw_series(&c, s, n, whole, choice, look, out);
    ep_plot_series_free(s, n);
    ep_buf_free(&text);
    free(m);
}

void ep_plot_draw_loss(struct ep_plots *p, const struct ep_plot_choice *choice,
                       const struct ep_look *look, struct ep_buf *out)
{
    bool by_step = choice->by_step || no_time(&p->losses);
    struct ep_curves c = {
        .title = "Loss",
        .x_is = by_step ? "step" : "time",
        .y_is = "loss",
        .unit = "",
        .x_kind = by_step ? EP_AXIS_INTEGER : EP_AXIS_TIME,
    };
    size_t n;
    struct series *s = ep_plot_series(p, &p->losses, by_step, &n);
    struct ep_buf text;

    ep_buf_init(&text);
    summary(p, &p->losses, &text, "curve");
    c.summary = text.ptr;
    ep_plot_draw_series(&c, s, n, false, choice, look, out);
    ep_plot_series_free(s, n);
    ep_buf_free(&text);
}
