/* SPDX-License-Identifier: Apache-2.0 */
/* pairs.c - ends and links that are slow, from pairs; see pairs.h. */
#include "config.h"

#include "detect/pairs.h"

#include "base/mem.h"
#include "base/stats.h"
#include "detect/pairs_impl.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define HALF_TO_SIGMA 0.7413 /* length of the shortest half of a normal one */
#define USUAL_WEIGHT 2.0     /* of the usual noise; three measurements have 1 */
#define CENTRES 5            /* constants of a class that are tried */
#define ALIKE 1.5            /* gains that near are no reason to prefer one */
#define REFS_LEAST 3         /* pasts that tell what is healthy in a class */

struct centres {
    double v[CENTRES], sigma;
    int n; /* 0: nothing to compare with */
};

struct finder {
    struct pair_model s;
    const struct ep_pairs_input *in;
    struct ep_pairs_config config;
    struct centres *cls;  /* [classes] of links without a past */
    double *own;          /* [classes] noise of links with a past */
    uint32_t *index;      /* [s.n] of in->v */
    struct ep_pair *kept; /* [s.n] */
};

static int check(const struct ep_pairs_input *in,
                 const struct ep_pairs_config *c, struct ep_error *err)
{
    if (!(c->min_change > 0 && c->min_change <= 10) || !(c->k > 0) ||
        !isfinite(c->k) || !(c->noise_floor > 0 && c->noise_floor <= 1))
        return ep_error_set(err, EP_EDOM, "min_change, k or noise_floor");
    if (in->n > INT32_MAX / 2)
        return ep_error_set(err, EP_EDOM, "more than 2^30 measurements");
    for (size_t i = 0; i < in->n; i++) {
        const struct ep_pair *x = &in->v[i];

        if (x->src >= in->ends || x->dst >= in->ends || x->src == x->dst ||
            x->cls >= in->classes)
            return ep_error_set(err, EP_EDOM, "measurement %zu: its ends", i);
        if (!isfinite(x->y) || isinf(x->ref) || !(x->noise >= 0) ||
            !isfinite(x->noise) || !(x->unlike >= 1) || !isfinite(x->unlike) ||
            !(x->scatter > 0) || !isfinite(x->scatter))
            return ep_error_set(err, EP_EDOM, "measurement %zu: a value", i);
    }
    return 0;
}

/* ==== Noise and constants ==== */

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* The lowest of the shortest intervals that hold half of n sorted values. */
static double shortest_half(const double *v, size_t n, double slack,
                            double *length)
{
    size_t h = (n + 1) / 2, at = 0;

    *length = v[h - 1] - v[0];
    for (size_t i = 1; i + h <= n; i++)
        *length = fmin(*length, v[i + h - 1] - v[i]);
    while (v[at + h - 1] - v[at] > *length + slack)
        at++;
    return (v[at] + v[at + h - 1]) / 2;
}

/* From the length of the shortest half of n values, and what is usual. */
static double noise_of(double length, size_t n, double usual, double floor)
{
    double s = HALF_TO_SIGMA * length * (1 + 8 / (double)n);
    double k = (double)n / 3;

    return fmax(
        sqrt((USUAL_WEIGHT * usual * usual + k * s * s) / (USUAL_WEIGHT + k)),
        floor);
}

/* Mean of the sorted values within reach of x. */
static double mean_near(const double *v, size_t n, double x, double reach)
{
    double sum = 0;
    size_t k = 0;

    for (size_t i = 0; i < n; i++)
        if (fabs(v[i] - x) <= reach) {
            sum += v[i];
            k++;
        }
    return k ? sum / (double)k : x;
}

/* What a class' constant may be: that of most, or of a group that is faster. */
static struct centres find_centres(double *v, size_t n, bool pasts,
                                   double usual,
                                   const struct ep_pairs_config *c)
{
    double length, step = log1p(c->min_change) / 2, x;
    struct centres out = {.n = 1};

    qsort(v, n, sizeof *v, by_value);
    x = shortest_half(v, n, c->noise_floor / 2, &length);
    out.sigma = noise_of(length, n, usual, c->noise_floor);
    out.v[0] = mean_near(v, n, x, fmax(length, out.sigma));
    if (pasts)
        return out;
    for (size_t from = 0, i = 1; i < n && out.n < CENTRES; i++) {
        if (v[i] - v[i - 1] < fmax(step, out.sigma))
            continue;
        x = (v[from] + v[i - 1]) / 2;
        if (x < out.v[0] - step)
            out.v[out.n++] = x;
        from = i;
    }
    return out;
}

/* Of links without a past: by pasts of others of the class, or all of it. */
static void find_class(struct finder *f, const uint32_t *list, uint32_t n,
                       uint32_t cls, double *room)
{
    const struct ep_pair *v = f->in->v;
    size_t refs = 0, k = 0;
    double length, usual = v[list[0]].scatter;
    bool two = false;

    for (uint32_t i = 0; i < n; i++)
        refs += isnan(v[list[i]].ref) ? 0 : 1;
    for (uint32_t i = 0; i < n; i++)
        if (!isnan(v[list[i]].ref))
            room[k++] = v[list[i]].y - v[list[i]].ref;
    if (k) {
        qsort(room, k, sizeof *room, by_value);
        (void)shortest_half(room, k, 0, &length);
        f->own[cls] = noise_of(length, k, usual, f->config.noise_floor);
    }
    if (refs == n)
        return;
    k = 0;
    for (uint32_t i = 0; i < n; i++) {
        const struct ep_pair *x = &v[list[i]], *first = &v[list[0]];

        two = two || (x->src != first->src && x->src != first->dst) ||
              (x->dst != first->src && x->dst != first->dst);
        if (refs < REFS_LEAST || !isnan(x->ref))
            room[k++] = isnan(x->ref) ? x->y : x->ref;
    }
    if (two || refs >= REFS_LEAST)
        f->cls[cls] =
            find_centres(room, k, refs >= REFS_LEAST, usual, &f->config);
}

static void find_classes(struct finder *f)
{
    const struct ep_pairs_input *in = f->in;
    uint32_t *at = ep_calloc((size_t)in->classes + 2, sizeof *at);
    uint32_t *list = ep_calloc(in->n ? in->n : 1, sizeof *list);
    double *room = ep_calloc(in->n ? in->n : 1, sizeof *room);

    for (size_t i = 0; i < in->n; i++)
        at[in->v[i].cls + 2]++;
    for (uint32_t c = 1; c <= in->classes; c++)
        at[c + 1] += at[c];
    for (size_t i = 0; i < in->n; i++)
        list[at[in->v[i].cls + 1]++] = (uint32_t)i;
    for (uint32_t c = 0; c < in->classes; c++)
        if (at[c + 1] > at[c])
            find_class(f, list + at[c], at[c + 1] - at[c], c, room);
    free(at);
    free(list);
    free(room);
}

/* ==== The model ==== */

static void make_model(struct finder *f)
{
    const struct ep_pairs_input *in = f->in;
    const struct ep_pairs_config *c = &f->config;
    struct pair_model *s = &f->s;
    size_t room = in->n ? in->n : 1;

    f->index = ep_calloc(room, sizeof *f->index);
    f->kept = ep_calloc(room, sizeof *f->kept);
    s->r = ep_calloc(room, sizeof *s->r);
    s->sigma = ep_calloc(room, sizeof *s->sigma);
    s->least = ep_calloc(room, sizeof *s->least);
    s->some = ep_calloc(room, sizeof *s->some);
    s->room = ep_calloc(room, sizeof *s->room);
    s->m = ep_calloc((size_t)in->classes + 1, sizeof *s->m);
    for (size_t i = 0; i < in->n; i++) {
        const struct ep_pair *x = &in->v[i];
        const struct centres *m = &f->cls[x->cls];
        uint32_t e = s->n;

        if (isnan(x->ref) && !m->n)
            continue;
        f->index[e] = (uint32_t)i;
        f->kept[e] = *x;
        s->least[e] = log1p(c->min_change);
        if (isnan(x->ref)) {
            s->sigma[e] = hypot(m->sigma, x->noise);
            s->least[e] += log(x->unlike);
        } else {
            /* a noise that is known needs no guess */
            s->sigma[e] =
                x->noise > 0 ? fmax(x->noise, c->noise_floor) : f->own[x->cls];
        }
        s->n++;
    }
    s->v = f->kept;
    s->ends = in->ends;
    s->classes = in->classes;
    s->floor = c->noise_floor;
    s->T = fmax(c->k, sqrt(2 * log(fmax(s->n, 2))) + 1.2);
    s->T *= s->T / 1.1;
    ep_pair_lists_make(s);
}

static void free_finder(struct finder *f)
{
    struct pair_model *s = &f->s;

    ep_pair_lists_free(s);
    free(s->r);
    free(s->sigma);
    free(s->least);
    free(s->some);
    free(s->room);
    free(s->m);
    free(s->fault);
    free(f->index);
    free(f->kept);
    free(f->cls);
    free(f->own);
}

static double solve(struct pair_model *s)
{
    s->nfault = 0;
    for (uint32_t e = 0; e < s->n; e++)
        s->r[e] =
            s->v[e].y - (isnan(s->v[e].ref) ? s->m[s->v[e].cls] : s->v[e].ref);
    return ep_pair_search(s);
}

/* Which constant of each class, one class after the other. */
static void choose_centres(struct finder *f)
{
    struct pair_model *s = &f->s;
    double best;

    for (uint32_t c = 0; c < s->classes; c++)
        s->m[c] = f->cls[c].v[0];
    best = solve(s);
    for (uint32_t c = 0; c < s->classes; c++) {
        double keep = s->m[c];

        for (int i = 1; i < f->cls[c].n; i++) {
            double j;

            s->m[c] = f->cls[c].v[i];
            j = solve(s);
            if (j < best - 1e-9) {
                best = j;
                keep = s->m[c];
            }
        }
        if (f->cls[c].n > 1) {
            s->m[c] = keep;
            (void)solve(s);
        }
    }
}

/* ==== What was found ==== */

/* A node of the network, a link or all of them: what an operator looks at. */
static bool is_same_object(const struct ep_pairs_thing *x,
                           const struct ep_pairs_thing *y)
{
    bool ex = x->kind <= EP_PAIRS_RECEIVES, ey = y->kind <= EP_PAIRS_RECEIVES;

    if (ex || ey)
        return ex && ey && x->a == y->a;
    if (x->kind == EP_PAIRS_ALL || y->kind == EP_PAIRS_ALL)
        return x->kind == y->kind && x->a == y->a;
    return (x->a == y->a && x->b == y->b) || (x->a == y->b && x->b == y->a);
}

struct rivals {
    struct ep_pairs_fault *out;
    double gain;
};

static void rival(void *ctx, const struct pair_fault *g)
{
    struct rivals *a = ctx;
    struct ep_pairs_fault *out = a->out;
    size_t known = out->candidates - 1 < EP_PAIRS_OTHERS ? out->candidates - 1
                                                         : EP_PAIRS_OTHERS;

    if (g->gain < a->gain - ALIKE || is_same_object(&g->what, &out->what))
        return;
    for (size_t i = 0; i < known; i++)
        if (is_same_object(&g->what, &out->other[i]))
            return;
    if (known < EP_PAIRS_OTHERS)
        out->other[known] = g->what;
    out->candidates++;
}

/* Measurements of classes without a past that agree with the constant. */
static size_t count_peers(struct pair_model *s, const struct ep_pairs_thing *t)
{
    const uint32_t *list;
    uint32_t n = ep_pair_cover(s, t, &list), cls = s->v[list[0]].cls;
    size_t peers = 0;

    for (uint32_t i = 0; i < n; i++)
        if (!isnan(s->v[list[i]].ref))
            return 0;
    for (uint32_t e = 0; e < s->n; e++)
        peers += s->v[e].cls == cls &&
                 fabs(s->v[e].y - s->m[cls]) < sqrt(2 * s->T) * s->sigma[e] &&
                 fabs(s->v[e].y - s->m[cls]) < s->least[e];
    return peers;
}

static void tell(struct finder *f, size_t i, struct ep_pairs_result *out)
{
    struct pair_model *s = &f->s;
    struct pair_fault *x = &s->fault[i];
    struct ep_pairs_fault *to = &out->fault[i];
    struct rivals a = {to, 0};
    const uint32_t *list;

    ep_pair_apply(s, x, -1);
    x->gain = ep_pair_fit(s, &x->what, &x->x);
    *to =
        (struct ep_pairs_fault){.what = x->what,
                                .factor = fmin(exp(x->x), EP_PAIRS_FACTOR_MOST),
                                .candidates = 1};
    a.gain = x->gain;
    ep_pair_scan(s, rival, &a);
    ep_pair_apply(s, x, 1);
    to->peers = count_peers(s, &x->what);
    to->measured = ep_pair_cover(s, &x->what, &list);
    to->p = erf(sqrt(x->gain)) / (double)to->candidates;
    if (isnan(s->v[list[0]].ref))
        to->p *= (double)(to->peers + 1) / (double)(to->peers + 2);
    for (uint32_t k = 0; k < to->measured; k++) {
        uint32_t e = list[k];
        int32_t *blame = &out->blame[f->index[e]];

        if (s->v[e].y - out->base[f->index[e]] >= x->x / 2 &&
            (*blame < 0 || s->fault[*blame].x < x->x))
            *blame = (int32_t)i;
    }
}

int ep_pairs_find(const struct ep_pairs_input *in,
                  const struct ep_pairs_config *config,
                  struct ep_pairs_result *out, struct ep_error *err)
{
    static const struct ep_pairs_config defaults = EP_PAIRS_DEFAULTS;
    struct finder f = {.in = in, .config = config ? *config : defaults};
    struct pair_model *s = &f.s;

    if (check(in, &f.config, err) < 0)
        return EP_EDOM;
    f.cls = ep_calloc((size_t)in->classes + 1, sizeof *f.cls);
    f.own = ep_calloc((size_t)in->classes + 1, sizeof *f.own);
    find_classes(&f);
    make_model(&f);
    choose_centres(&f);
    *out = (struct ep_pairs_result){
        .fault = ep_calloc(s->nfault + 1, sizeof *out->fault),
        .n = s->nfault,
        .base = ep_calloc(in->n + 1, sizeof *out->base),
        .blame = ep_calloc(in->n + 1, sizeof *out->blame),
    };
    for (size_t i = 0; i < in->n; i++) {
        const struct ep_pair *x = &in->v[i];

        out->blame[i] = -1;
        out->base[i] = !isnan(x->ref)    ? x->ref
                       : f.cls[x->cls].n ? s->m[x->cls]
                                         : (double)NAN;
    }
    for (size_t i = 0; i < s->nfault; i++)
        tell(&f, i, out);
    free_finder(&f);
    return 0;
}

void ep_pairs_result_free(struct ep_pairs_result *r)
{
    free(r->fault);
    free(r->base);
    free(r->blame);
    *r = (struct ep_pairs_result){.fault = NULL};
}
