/* SPDX-License-Identifier: Apache-2.0 */
/*
 * watch_links_judge.c - a round of links: against the past and each other, and
 * what is told of it; see watch_links.c.
 */
#include "config.h"

#include "base/mem.h"
#include "base/num.h"
#include "base/stats.h"
#include "detect/watch_links_impl.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NAMED 2 /* candidates that are named beside the first */

/* ==== A round ==== */

static double past_of(const struct link *l)
{
    double v[EP_LINK_PAST];

    memcpy(v, l->past, sizeof v);
    return ep_median(v, (size_t)l->npast);
}

/*
 * Of a link against its past: the scatter of all pasts of its class, mixed
 * with what is usual; 0 as long as nothing of it is known.
 */
static double past_noise(const struct link_class *c, const struct link *l)
{
    double var;

    if (!c->free)
        return 0;
    var = (c->scatter * c->scatter + c->sum) / (1 + c->free);
    /* that of a median of normal values beside it */
    return sqrt(var * (1 + M_PI / 2 / l->npast));
}

static void sum_pasts(struct link_job *lj)
{
    for (size_t c = 0; c < ep_intern_count(lj->class_names); c++) {
        lj->classes[c].sum = 0;
        lj->classes[c].free = 0;
    }
    for (size_t i = 0; i < lj->n; i++) {
        const struct link *l = &lj->links[lj->fresh[i]];
        struct link_class *c = &lj->classes[l->cls];
        double mean = 0;

        for (int k = 0; k < l->npast; k++)
            mean += l->past[k] / l->npast;
        for (int k = 0; k < l->npast && l->npast > 1; k++)
            c->sum += (l->past[k] - mean) * (l->past[k] - mean);
        c->free += l->npast > 1 ? l->npast - 1 : 0;
    }
}

/* The measurements of the round, as pairs.h has them. */
static struct ep_pair *to_pairs(struct link_job *lj)
{
    struct ep_pair *v = ep_calloc(lj->n + 1, sizeof *v);

    sum_pasts(lj);
    for (size_t i = 0; i < lj->n; i++) {
        const struct link *l = &lj->links[lj->fresh[i]];
        const struct link_class *c = &lj->classes[l->cls];

        v[i] = (struct ep_pair){
            .src = l->src,
            .dst = l->dst,
            .cls = l->cls,
            .y = l->y,
            .ref = l->npast ? past_of(l) : (double)NAN,
            .noise = l->npast ? past_noise(c, l) : 0,
            .unlike = c->unlike,
            .scatter = c->scatter,
        };
    }
    return v;
}

/* Does a measurement go through the thing? */
static bool covers(const struct ep_pairs_thing *t, const struct ep_pair *x)
{
    switch (t->kind) {
    case EP_PAIRS_END:
        return x->src == t->a || x->dst == t->a;
    case EP_PAIRS_SENDS:
        return x->src == t->a;
    case EP_PAIRS_RECEIVES:
        return x->dst == t->a;
    case EP_PAIRS_LINK:
        return (x->src == t->a && x->dst == t->b) ||
               (x->src == t->b && x->dst == t->a);
    case EP_PAIRS_WAY:
        return x->src == t->a && x->dst == t->b;
    case EP_PAIRS_ALL:
        return x->cls == t->a;
    }
    return false;
}

/* A round, and what came out of it. */
struct round {
    const struct ep_pair *v;
    size_t n;
    struct ep_pairs_result found;
    double *room; /* [n] */
    double now;
};

static void end_round(struct link_job *lj, struct round *r, double min_change)
{
    for (size_t i = 0; i < r->n; i++) {
        struct link *l = &lj->links[lj->fresh[i]];
        double over = r->v[i].y - r->found.base[i];

        l->reps = 0;
        /* what is slow, or seems to be, is no past to compare with */
        if (r->found.blame[i] >= 0 || over >= log1p(min_change))
            continue;
        l->past[l->at] = l->y;
        l->at = (l->at + 1) % EP_LINK_PAST;
        l->npast += l->npast < EP_LINK_PAST;
    }
    lj->n = 0;
    lj->last = -1;
}

/* ==== What is told of it ==== */

static void add_thing(struct ep_buf *b, const struct link_job *lj,
                      const struct ep_pairs_thing *t)
{
    switch (t->kind) {
    case EP_PAIRS_LINK:
    case EP_PAIRS_WAY:
        ep_buf_addf(b, "the link %s-%s", lj->ends[t->a].name,
                    lj->ends[t->b].name);
        break;
    case EP_PAIRS_ALL:
        ep_buf_adds(b, "all links");
        break;
    default:
        ep_buf_addf(b, "%s%s", lj->ends[t->a].name,
                    t->kind == EP_PAIRS_SENDS      ? " when it sends"
                    : t->kind == EP_PAIRS_RECEIVES ? " when it receives"
                                                   : "");
    }
}

/* "21 GB/s, before 32 GB/s", of the measurements that it explains. */
static void add_figures(struct ep_watch *w, const struct round *r, size_t i)
{
    const struct ep_pairs_fault *f = &r->found.fault[i];
    size_t n = 0, own = 0;
    double value;

    for (size_t k = 0; k < r->n; k++)
        if (r->found.blame[k] == (int32_t)i) {
            r->room[n++] = r->v[k].y;
            own += isnan(r->v[k].ref) ? 0 : 1;
        }
    for (size_t k = 0; k < r->n && !n; k++) /* another hides them all */
        if (covers(&f->what, &r->v[k]))
            r->room[n++] = r->v[k].y;
    value = exp(-ep_median(r->room, n));
    ep_buf_addf(&w->text, "%zu of %zu measurement%s ", n, f->measured,
                f->measured == 1 ? "" : "s");
    if (f->what.kind <= EP_PAIRS_RECEIVES)
        ep_buf_adds(&w->text, f->what.kind == EP_PAIRS_SENDS ? "from it "
                              : f->what.kind == EP_PAIRS_RECEIVES
                                  ? "to it "
                                  : "from and to it ");
    ep_num_format_si(&w->text, value, "B/s");
    ep_buf_adds(&w->text, own ? ", their own past " : ", links of the kind ");
    ep_num_format_si(&w->text, value * f->factor, "B/s");
}

static void add_candidates(struct ep_watch *w, const struct link_job *lj,
                           const struct ep_pairs_fault *f)
{
    size_t named = f->candidates - 1;

    if (!named)
        return;
    if (named > NAMED)
        named = NAMED;
    ep_buf_adds(&w->text, "; ");
    add_thing(&w->text, lj, &f->what);
    for (size_t i = 0; i < named; i++) {
        ep_buf_adds(&w->text, i + 1 < named || f->candidates - 1 > named
                                  ? ", "
                                  : ", or ");
        add_thing(&w->text, lj, &f->other[i]);
    }
    if (f->candidates - 1 > named)
        ep_buf_addf(&w->text, ", or %zu more", f->candidates - 1 - named);
    ep_buf_adds(&w->text, ": the pairs cannot tell");
}

/* Who it is, as a series without steps. */
static void set_who(struct link_job *lj, struct link_case *c,
                    const struct round *r)
{
    const struct ep_pairs_thing *t = &c->fault.what;
    struct ep_buf id;

    free(c->as.id);
    free(c->as.host);
    c->as = (struct series){.job = lj->job, .rank = -1, .scope = EP_SCOPE_JOB};
    ep_buf_init(&id);
    if (t->kind == EP_PAIRS_LINK || t->kind == EP_PAIRS_WAY) {
        const struct ep_pairs_thing back = {EP_PAIRS_WAY, t->b, t->a};
        bool there = false, other = false;

        /* measured one way only: named that way */
        for (size_t i = 0; i < r->n; i++) {
            bool is = covers(&back, &r->v[i]);

            other |= is;
            there |= !is && covers(t, &r->v[i]);
        }
        ep_buf_addf(&id, "src=%s,dst=%s",
                    lj->ends[there || !other ? t->a : t->b].name,
                    lj->ends[there || !other ? t->b : t->a].name);
        c->as.scope = EP_SCOPE_LINK;
    } else if (t->kind != EP_PAIRS_ALL) {
        const struct end *e = &lj->ends[t->a];

        ep_buf_adds(&id, e->id);
        c->as.scope = e->scope;
        c->as.host = e->host ? ep_strdup(e->host) : NULL;
    }
    c->as.id = ep_strndup(id.len ? id.ptr : "", id.len);
    ep_buf_free(&id);
}

static const char *cause_of(const struct link_case *c)
{
    return c->as.scope == EP_SCOPE_LINK || c->as.scope == EP_SCOPE_GPU
               ? "link"
               : "network";
}

static void report(struct ep_watch *w, struct link_case *c,
                   const struct round *r, bool onset, double factor, double p)
{
    struct ep_finding f = {
        .kind = onset ? EP_FINDING_ONSET : EP_FINDING_RELIEF,
        .ts = r->now,
        .since = onset && !c->ep.open ? r->now : c->ep.since,
        .step = -1,
        .factor = factor,
        .p = p,
        .cause = onset ? cause_of(c) : c->ep.cause,
        .evidence = w->text.ptr,
        .gpu_hours = (double)NAN,
    };

    ep_watch_report(w, &c->as, &c->ep,
                    c->as.scope == EP_SCOPE_LINK ? NULL : "links", &f);
    c->ep.open = onset;
}

/* ==== Cases ==== */

static bool is_same(const struct ep_pairs_thing *x,
                    const struct ep_pairs_thing *y)
{
    bool ex = x->kind <= EP_PAIRS_RECEIVES, ey = y->kind <= EP_PAIRS_RECEIVES;

    if (ex || ey || x->kind == EP_PAIRS_ALL || y->kind == EP_PAIRS_ALL)
        return (ex ? ey : x->kind == y->kind) && x->a == y->a;
    return (x->a == y->a && x->b == y->b) || (x->a == y->b && x->b == y->a);
}

/* Is the thing among those that the fault may be? */
static bool may_be(const struct ep_pairs_fault *f,
                   const struct ep_pairs_thing *t)
{
    if (is_same(&f->what, t))
        return true;
    for (size_t i = 0; i + 1 < f->candidates && i < EP_PAIRS_OTHERS; i++)
        if (is_same(&f->other[i], t))
            return true;
    return false;
}

/* The case that the fault goes on with: the same, or what it may have been. */
static struct link_case *find_case(struct link_job *lj,
                                   const struct ep_pairs_fault *f)
{
    struct link_case *c = NULL;

    for (size_t i = 0; i < lj->ncases && !c; i++)
        if (!lj->cases[i]->seen && is_same(&lj->cases[i]->fault.what, &f->what))
            c = lj->cases[i];
    for (size_t i = 0; i < lj->ncases && !c; i++)
        if (!lj->cases[i]->seen && lj->cases[i]->ep.open &&
            (may_be(&lj->cases[i]->fault, &f->what) ||
             may_be(f, &lj->cases[i]->fault.what)))
            c = lj->cases[i];
    if (!c) {
        c = ep_calloc(1, sizeof *c);
        lj->cases =
            ep_grow(lj->cases, &lj->cases_cap, lj->ncases + 1, sizeof(void *));
        lj->cases[lj->ncases++] = c;
    }
    return c;
}

static void take_fault(struct ep_watch *w, struct link_job *lj,
                       const struct round *r, size_t i)
{
    const struct ep_pairs_fault *f = &r->found.fault[i];
    struct link_case *c = find_case(lj, f);
    bool worse = f->factor >= c->ep.factor * (1 + w->config.peers.min_change);
    bool better = f->candidates < c->fault.candidates;

    c->seen = true;
    /* a round that says less does not take back what one has said */
    if (c->ep.open && !worse && !better)
        return;
    if (!c->ep.open || better) {
        c->fault = *f;
        set_who(lj, c, r);
    }
    ep_buf_reset(&w->text);
    add_figures(w, r, i);
    add_candidates(w, lj, f);
    report(w, c, r, true, f->factor, f->p);
}

/* Is what was slow healthy again? Only if it was measured. */
static void relieve(struct ep_watch *w, struct link_case *c,
                    const struct round *r)
{
    size_t n = 0;
    double over, value;

    for (size_t i = 0; i < r->n; i++)
        if (covers(&c->fault.what, &r->v[i]) && !isnan(r->found.base[i]))
            r->room[n++] = r->v[i].y - r->found.base[i];
    if (!n)
        return;
    over = ep_median(r->room, n);
    if (over >= log1p(w->config.peers.min_change))
        return;
    n = 0;
    for (size_t i = 0; i < r->n; i++)
        if (covers(&c->fault.what, &r->v[i]))
            r->room[n++] = r->v[i].y;
    value = exp(-ep_median(r->room, n));
    ep_buf_reset(&w->text);
    ep_num_format_si(&w->text, value, "B/s");
    ep_buf_addf(&w->text, ", as before (%zu measurement%s)", n,
                n == 1 ? "" : "s");
    report(w, c, r, false, exp(over), (double)(n + 1) / (double)(n + 2));
}

void ep_watch_judge_links(struct ep_watch *w, struct link_job *lj)
{
    struct ep_pairs_config config = EP_PAIRS_DEFAULTS;
    struct round r = {.n = lj->n, .now = (double)-INFINITY};
    struct ep_pairs_input in = {
        .n = lj->n,
        .ends = (uint32_t)ep_intern_count(lj->end_names),
        .classes = (uint32_t)ep_intern_count(lj->class_names),
    };

    if (!lj->n)
        return;
    config.min_change = w->config.peers.min_change;
    config.k = w->config.peers.k;
    config.noise_floor = w->config.peers.noise_floor;
    in.v = r.v = to_pairs(lj);
    for (size_t i = 0; i < lj->n; i++)
        r.now = fmax(r.now, lj->links[lj->fresh[i]].ts);
    /* the values were checked when they came in */
    if (ep_pairs_find(&in, &config, &r.found, NULL) == 0) {
        r.room = ep_calloc(r.n, sizeof *r.room);
        for (size_t i = 0; i < lj->ncases; i++)
            lj->cases[i]->seen = false;
        for (size_t i = 0; i < r.found.n; i++)
            take_fault(w, lj, &r, i);
        for (size_t i = 0; i < lj->ncases; i++)
            if (lj->cases[i]->ep.open && !lj->cases[i]->seen)
                relieve(w, lj->cases[i], &r);
        end_round(lj, &r, config.min_change);
        free(r.room);
        ep_pairs_result_free(&r.found);
    }
    free((void *)r.v);
}
