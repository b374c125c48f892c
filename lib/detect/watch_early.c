/* SPDX-License-Identifier: Apache-2.0 */
/*
 * watch_early.c - the ranks of a job against each other in its first steps,
 * and those that were slow from the start, whether they still are.
 *
 * A rank that is slow from its first step has no healthy past; its peers tell,
 * but windows of "window" steps need two of them. Here the last K = 4, 8, 16
 * steps are looked at while the job is young. With x_is the value of rank i in
 * step s,
 *
 *     d_is = log(x_is) - median_j log(x_js)
 *
 * a warm-up that all share cancels within the step. The medians over s of d_is
 * are compared as in peers.h; what is slow there is reported at once if
 *
 *     log(factor) - 3 e >= log(1 + min_change),
 *     e = 1.2533 sigma / sqrt(K),  sigma = 1.4826 MAD_s(d_is) (1 + 5/K)
 *
 * and d does not fall: the later half of the steps is lower by no more than a
 * quarter of min_change, or of d itself, so that a rank that warms up longer
 * than the others is not taken for a slow one. The first step of all counts
 * never. What is too close to the threshold for that is left to the windows.
 * A rank that is no more slow has log(factor) + 3 e < log(1 + min_change).
 */
#include "config.h"

#include "detect/watch_impl.h"

#include "base/mem.h"
#include "base/stats.h"

#include <math.h>
#include <stdlib.h>

#define SE_MEDIAN 1.2533141373155003
#define SURE 3.0     /* standard errors */
#define FLOOR 0.0025 /* least sigma */
#define LEAST 4      /* steps */
#define AGAIN 4      /* steps between two looks at those that are slow */

/* The ranks that told all of the last k steps. */
struct table {
    struct series **who;
    double *d; /* [n][k], oldest first */
    size_t n;
    int k;
};

/* The values of the last k closed steps; false if one is missing. */
static bool row_of(const struct ep_watch *w, const struct members *m,
                   const struct series *s, int k, double *out)
{
    int window = (int)w->config.window, i = 0;

    for (int back = 0; back < k; back++) {
        int64_t step = m->closed[(m->steps - 1 - back) % EARLY_STEPS];

        for (;; i++) {
            const struct sample *x;

            if (i >= s->kept)
                return false;
            x = &s->ring[(s->at + window - 1 - i) % window];
            if (x->step < step || x->ts < s->job->restart_ts)
                return false;
            if (x->step == step) {
                out[k - 1 - back] = log(x->value);
                break;
            }
        }
    }
    return true;
}

/* From values to differences to the median of each step. */
static void centre(struct ep_watch *w, struct table *t)
{
    for (int c = 0; c < t->k; c++) {
        double mid;

        for (size_t i = 0; i < t->n; i++)
            w->work[i] = t->d[i * (size_t)t->k + (size_t)c];
        mid = ep_median(w->work, t->n);
        for (size_t i = 0; i < t->n; i++)
            t->d[i * (size_t)t->k + (size_t)c] -= mid;
    }
}

static double median_of(const double *d, int n)
{
    double v[EARLY_STEPS];

    for (int i = 0; i < n; i++)
        v[i] = d[i];
    return ep_median(v, (size_t)n);
}

static double error_of(const double *d, int k)
{
    double v[EARLY_STEPS], mid = median_of(d, k), sigma;

    for (int i = 0; i < k; i++)
        v[i] = d[i];
    sigma = fmax(EP_MAD_TO_SIGMA * ep_mad(v, (size_t)k, mid), FLOOR);
    return SE_MEDIAN * sigma * (1 + 5.0 / k) / sqrt(k);
}

/*
 * Does the difference last? The later half of the steps is not lower than the
 * first by more than a quarter of it, and the last ones are slow too. f: the
 * log factor, d of the peers is the median less that.
 */
static bool lasts(const double *d, int k, double f, double least)
{
    double peers = median_of(d, k) - f;
    double fall = median_of(d, k / 2) - median_of(d + (k - k / 2), k / 2);

    return fall <= fmax(least, f) / 4 &&
           median_of(d + (k - LEAST), LEAST) - peers >= least &&
           d[k - 1] - peers >= least / 2;
}

/* The i-th latest sample. */
static const struct sample *latest(const struct ep_watch *w,
                                   const struct series *s, int i)
{
    int window = (int)w->config.window;

    return &s->ring[(s->at + window - 1 - i) % window];
}

/* Since which step the difference is there: the first of those at the end. */
static int64_t since_of(const struct members *m, const double *d, int k,
                        double f)
{
    double middle = median_of(d, k) - f / 2;
    int back = 0;

    while (back < k - 1 && d[k - 2 - back] > middle)
        back++;
    /* the first step of all is not compared, but was slow as well */
    if (back + 2 == m->steps)
        back++;
    return m->closed[(m->steps - 1 - back) % EARLY_STEPS];
}

/* Since which step a rank is as fast as its peers. */
static int64_t relief_of(const struct ep_watch *w, const struct series *s)
{
    double v[LEAST], middle;
    int i = 0;

    for (; i < LEAST && i < s->kept; i++)
        v[i] = latest(w, s, i)->value;
    middle = ep_median(v, (size_t)i) * sqrt(s->peer.factor);
    for (i = 0; i + 1 < s->kept && latest(w, s, i + 1)->value < middle;)
        i++;
    return latest(w, s, i)->step;
}

static void report(struct ep_watch *w, struct series *s, int64_t since,
                   const struct ep_peer *peer, enum ep_change_kind kind,
                   const char *doubt, double now)
{
    double v[EP_WATCH_WINDOW_MAX];
    int n = 0;

    for (; n < s->kept && latest(w, s, n)->step >= since; n++) {
        v[n] = latest(w, s, n)->value;
        s->turn_ts = latest(w, s, n)->ts;
        s->turn_step = latest(w, s, n)->step;
    }
    ep_watch_suspect_peer(w, s, kind, peer, ep_median(v, (size_t)n), doubt,
                          now);
    s->hits = kind == EP_CHANGE_ONSET ? w->config.persist : 0;
    s->clean = 0;
}

/* One comparison of all. */
struct look {
    int k; /* steps */
    bool young;
    const char *doubt;
    double now;
};

static void judge(struct ep_watch *w, struct series *s, const double *d,
                  const struct ep_peer *peer, const struct look *look)
{
    double least = log1p(w->config.pace.min_change);
    double f = log(peer->factor), e = SURE * error_of(d, look->k);

    if (s->peer.open) {
        if (f + e < least)
            report(w, s, relief_of(w, s), peer, EP_CHANGE_RELIEF, look->doubt,
                   look->now);
        return;
    }
    if (look->young && peer->slow && !s->ep.open && f - e >= least &&
        lasts(d, look->k, f, least))
        report(w, s, since_of(ep_watch_members(s), d, look->k, f), peer,
               EP_CHANGE_ONSET, look->doubt, look->now);
}

static bool any_of(const struct members *m, enum basis basis)
{
    for (size_t i = 0; i < m->n; i++)
        if (m->v[i]->basis == basis)
            return true;
    return false;
}

static void compare(struct ep_watch *w, const struct members *m,
                    enum basis basis, int k, bool young, double now)
{
    struct table t = {ep_calloc(m->n, sizeof(void *)),
                      ep_calloc(m->n * (size_t)k, sizeof(double)), 0, k};
    struct ep_peer *peers = ep_calloc(m->n, sizeof *peers);
    struct ep_peers_summary all;
    struct ep_peers_input in;

    for (size_t i = 0; i < m->n; i++)
        if (m->v[i]->basis == basis &&
            row_of(w, m, m->v[i], k, t.d + t.n * (size_t)k))
            t.who[t.n++] = m->v[i];
    /* most have to be there, or the median is not theirs */
    if (t.n >= 2 && t.n * 2 > m->n) {
        centre(w, &t);
        for (size_t i = 0; i < t.n; i++)
            w->work[i] = exp(median_of(t.d + i * (size_t)k, k));
        in = (struct ep_peers_input){w->work, NULL, t.n, EP_PEERS_LOW};
        if (ep_peers_compare(&in, &w->config.peers, peers, &all, NULL) == 0) {
            struct look look = {k, young, ep_peers_doubt_text(all.doubt), now};

            /* what is judged of one is held against what all are like */
            for (size_t i = 0; i < t.n; i++)
                if (!t.who[i]->peer.open)
                    t.who[i]->peer.factor = peers[i].factor;
            for (size_t i = 0; i < t.n; i++)
                judge(w, t.who[i], t.d + i * (size_t)k, &peers[i], &look);
        }
    }
    free(t.who);
    free(t.d);
    free(peers);
}

static bool any_open(const struct members *m)
{
    for (size_t i = 0; i < m->n; i++)
        if (m->v[i]->peer.open)
            return true;
    return false;
}

void ep_watch_early(struct ep_watch *w, struct members *m, int64_t step,
                    double now)
{
    static const enum basis kinds[] = {BASIS_PER_MB, BASIS_BUSY};
    bool young;

    m->closed[m->steps++ % EARLY_STEPS] = step;
    young = m->steps <= w->config.window * w->config.persist;
    if (m->n < 2 || m->steps <= LEAST ||
        (!young && (m->steps % AGAIN || !any_open(m))))
        return;
    /* many steps less often: they change less */
    for (int k = LEAST; k <= EARLY_STEPS && k < m->steps; k *= 2) {
        if (k > w->config.window || (k > LEAST && !young))
            break;
        if (m->steps % (k / LEAST) || (k == LEAST && young && m->steps > 16))
            continue;
        for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
            if (any_of(m, kinds[i]))
                compare(w, m, kinds[i], k, young, now);
    }
}
