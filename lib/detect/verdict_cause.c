/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verdict_cause.c - which of the causes of slow work it is, and how sure.
 *
 * Bayes' rule over a list of causes. The prior is what was found in production
 * [1]: of six fail-slows on one node four were contention for the CPU and two
 * degraded GPUs, of 43 on four nodes 42 congestion; one is added to each cause
 * (Laplace), so that one that was not seen can still be. That is times how
 * often such a cause hits just such a set of ranks: a GPU is one rank, what a
 * host's CPUs and storage do hits all of its ranks, a stage or a replica alone
 * is slow because of its share of the work.
 *
 * Each piece of evidence multiplies the odds of its cause:
 *
 *   DIRECT   50   a sensor moved, and as much as the slowdown needs: the SM
 *                 clock fell by 1 / factor
 *   SIGN     10   a sensor says that something is wrong there, not how much it
 *                 costs: a throttle reason, errors that are counted
 *   HINT      3   the same, of what is often so on healthy nodes
 *   NORMAL  1/10  the sensor that would have moved was read, and did not
 *
 * They are round numbers: readings are taken as independent though they are
 * not, so that p says which answers are safe, not more. Utilisation is no
 * evidence (it falls on all ranks), nor is temperature (70 C is not slow); PCIe
 * generations count under load alone, as they fall when a GPU is idle.
 *
 * [1] FALCON, arXiv 2410.12588.
 */
#include "config.h"

#include "detect/incident.h"
#include "detect/verdict_impl.h"

#include "base/stats.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Samples: of fewer, one checkpoint is in half of the differences. */
#define SCATTER_MIN 6

/* Tokens since a change over those before, of a ramp. */
#define GROWS 1.015

/* Noise of a rank over that of the others, at most. */
#define NOISE_MOST 1.4

/* Standard deviations by which pauses scatter more than steady work. */
#define SCATTER_Z 3.0

static const char *const words[CAUSES] = {
    "compute",         "cpu-contention",     "memory", "storage", "gc",
    "stage-imbalance", "sequence-imbalance", "link",   "network", "unknown",
};

/* Priors, by scope, in the order of the causes. */
static const double priors[][CAUSES] = {
    [EP_SCOPE_JOB] = {1, 1, 0.3, 1, 0.1, 0.1, 1, 0, 0, 1},
    [EP_SCOPE_RANK] = {3, 1, 1, 0.2, 1, 0.1, 0.5, 0.2, 0, 0.3},
    [EP_SCOPE_WORKER] = {3, 2, 1, 0.5, 1, 0, 0.5, 0.2, 0, 0.3},
    [EP_SCOPE_GPU] = {3, 0.2, 1, 0, 0, 0, 0, 0.2, 0, 0.3},
    [EP_SCOPE_HOST] = {1, 5, 0.2, 1, 0.02, 0.1, 0.1, 0.2, 0, 0.3},
    [EP_SCOPE_LINK] = {0, 0, 0, 0, 0, 0, 0, 1, 0, 0},
    [EP_SCOPE_GROUP] = {0.5, 0.5, 0.2, 0.3, 0.1, 0.1, 10, 0.1, 0, 0.3},
    [EP_SCOPE_STAGE] = {0.5, 0.5, 0.2, 0.3, 0.1, 10, 0.3, 0.1, 0, 0.3},
};

static const char *const looked_texts[LOOKED] = {
    "clocks", "memory", "CPU share", "I/O", "links", "tokens"};

/* ==== The shape of the samples ==== */

/* The samples of a series from a time on, in order; returns how many. */
static int samples_since(const struct ep_watch *w, const struct series *s,
                         double from, double *v)
{
    int window = (int)w->config.window, n = 0;

    for (int i = 0; i < s->kept; i++) {
        const struct sample *x =
            &s->ring[(s->at + window - s->kept + i) % window];

        if (x->ts >= from)
            v[n++] = x->value;
    }
    return n;
}

static double middle_of(const double *v, int n)
{
    double w[EP_WATCH_WINDOW_MAX];

    memcpy(w, v, (size_t)n * sizeof *v);
    return ep_median(w, (size_t)n);
}

/*
 * By how many standard deviations the scatter of samples is above that of noise
 * of this sigma: from the median of their successive differences, as they are
 * or less what the medians of the two halves differ by, so that neither a ramp
 * nor a spike in a few of them disturbs it. Of normal noise |difference| has the
 * median 0.954 sigma; the log of the median of m has a deviation of about
 * 1.3 / sqrt(m). NaN: too few.
 */
static double scatter_z(const double *v, int n, double sigma)
{
    double d[EP_WATCH_WINDOW_MAX], slope, flat;
    int m = n - 1, half = n / 2;

    if (n < SCATTER_MIN || !(sigma > 0))
        return (double)NAN;
    slope =
        log(middle_of(v + n - half, half) / middle_of(v, half)) / (n - half);
    for (int i = 0; i < m; i++)
        d[i] = fabs(log(v[i + 1] / v[i]));
    flat = ep_median(d, (size_t)m);
    for (int i = 0; i < m; i++)
        d[i] = fabs(log(v[i + 1] / v[i]) - slope);
    return log(fmin(flat, ep_median(d, (size_t)m)) / (0.954 * sigma)) *
           sqrt(m) / 1.3;
}

/* Lowest and highest tenth of the excess over the usual level, in per cent. */
static void note_pauses(struct trial *t, enum cause c, double *v, int n)
{
    double usual = ep_median(v, (size_t)n) / t->factor;
    double low = ep_quantile(v, (size_t)n, 0.1) / usual - 1;
    double high = ep_quantile(v, (size_t)n, 0.9) / usual - 1;

    (void)snprintf(t->notes[t->n].text, sizeof t->notes[0].text,
                   "pauses: excess %.0f to %.0f %%", 100 * fmax(0, low),
                   100 * high);
    t->notes[t->n++].cause = c;
}

/* Are there pauses of an incident that began before? Its noise is theirs. */
static bool pauses_already(const struct series *s, double since)
{
    for (const struct link *l = s->links; l; l = l->next)
        if (l->in->ep.open && l->in->ep.since < since &&
            (strcmp(l->in->ep.cause, words[GC]) == 0 ||
             strcmp(l->in->ep.cause, words[STORAGE]) == 0))
            return true;
    return false;
}

/*
 * The noise that a rank should have: its own, or where it was slow for long or
 * always, so that its own is that of the pauses, not much more than what the
 * others have.
 */
static double usual_noise(const struct series *s, double since)
{
    const struct members *m = ep_watch_members(s);
    double v[SENSED], own = ep_changepoint_noise(s->pace);
    size_t k = 0;

    /* where most do not know their own yet, not all are asked */
    for (size_t i = 0; i < m->n && i < SENSED * 8UL && k < SENSED; i++) {
        const struct series *r = m->v[i];

        if (r == s || !r->pace || r->ep.open || r->peer.open)
            continue;
        v[k] = ep_changepoint_noise(r->pace);
        k += !isnan(v[k]);
    }
    if (pauses_already(s, since))
        return own;
    return fmin(own, NOISE_MOST * ep_median(v, k)); /* NaN: no value to it */
}

/* Pauses: steps that are longer by something else each time. */
static void judge_scatter(struct ep_watch *w, struct trial *t,
                          const struct series *const *ranks, size_t n,
                          double from)
{
    double v[EP_WATCH_WINDOW_MAX], sum = 0;
    size_t k = 0;
    int have, least = EP_WATCH_WINDOW_MAX;

    for (size_t i = 0; i < n && i < SENSED; i++) {
        const struct series *s = ranks[i];
        double z;

        if (!s->pace)
            continue;
        have = samples_since(w, s, from, v);
        z = scatter_z(v, have, usual_noise(s, from));
        if (isnan(z))
            continue;
        sum += z;
        k++;
        least = have < least ? have : least;
    }
    if (!k)
        return;
    if (sum / sqrt((double)k) < SCATTER_Z) {
        weigh(t, GC, least >= 8 ? NORMAL : 0.3);
        weigh(t, STORAGE, 0.5);
        return;
    }
    weigh(t, GC, DIRECT);
    weigh(t, STORAGE, SIGN);
    have = ranks[0]->pace ? samples_since(w, ranks[0], from, v) : 0;
    if (have > 0)
        note_pauses(t, k > 1 ? STORAGE : GC, v, have);
}

static void judge_tokens(struct ep_watch *w, struct trial *t,
                         const struct series *const *ranks, size_t n,
                         const struct ep_change *c)
{
    double v[SENSED], f;
    bool over = false;
    size_t k = 0;
    char text[64];

    for (size_t i = 0; i < n && i < SENSED; i++) {
        f = t->among ? (double)NAN : ep_watch_work_factor_since(ranks[i], c);
        /* too long ago, or grows, and what was before had grown */
        if (isnan(f) || (f >= GROWS && explained(t, f) < EXPLAINS)) {
            f = ep_watch_work_over_peers(w, ranks[i], c->since_ts);
            over = true;
        }
        if (!isnan(f))
            v[k++] = f;
    }
    f = ep_median(v, k);
    if (f >= 1.03 && explained(t, f) >= EXPLAINS) {
        weigh(t, SEQUENCE, 2 * DIRECT);
        (void)snprintf(text, sizeof text, "tokens per micro-batch %.2fx%s", f,
                       over ? " its peers'" : "");
        ep_verdict_note(t, SEQUENCE, 0, text);
    } else if (!isnan(f)) {
        weigh(t, SEQUENCE, NORMAL / 5);
        t->normal[TOKENS] = true;
    }
}

/* ==== The answer ==== */

static void add_notes(struct ep_buf *b, const struct trial *t, enum cause best)
{
    size_t shown = 0, normal = 0;

    for (int others = 0; others < 2; others++)
        for (size_t i = 0; i < t->n && shown < 5; i++)
            if ((t->notes[i].cause != best) == others) {
                ep_buf_addf(b, ", %s", t->notes[i].text);
                shown++;
            }
    for (int i = 0; i < LOOKED; i++)
        if (t->normal[i])
            ep_buf_addf(b, "%s%s", normal++ ? ", " : "; ", looked_texts[i]);
    if (normal)
        ep_buf_adds(b, " normal");
}

static enum cause most_likely(const struct trial *t, enum ep_scope scope,
                              double *p)
{
    double sum = 0, most = -1;
    enum cause best = OTHER;

    for (int c = 0; c < CAUSES; c++) {
        double x = priors[scope][c] * exp(t->weight[c]);

        sum += x;
        if (x > most) {
            most = x;
            best = (enum cause)c;
        }
    }
    *p = most / sum;
    return best;
}

/* Did anything of this set of ranks communicate slower, and work as before? */
static bool works_as_before(const struct ep_watch *w,
                            const struct series *const *ranks, size_t n,
                            const struct ep_change *c)
{
    double v[SENSED];
    size_t k = 0;

    for (size_t i = 0; i < n && i < SENSED; i++)
        if (ranks[i]->basis != BASIS_DUR) {
            double f = ep_watch_factor_since(ranks[i], c);

            if (!isnan(f))
                v[k++] = f;
        }
    return k && ep_median(v, k) < 1 + w->config.pace.min_change / 2;
}

static enum cause judge_communication(struct trial *t, enum ep_scope scope,
                                      double *p)
{
    double link, network;

    ep_verdict_transport(t);
    /* congestion is many links', a bad one is a link's own */
    link = (scope == EP_SCOPE_LINK ? 9 : 1) * exp(t->weight[LINK]);
    network = (scope == EP_SCOPE_LINK ? 1 : 9) * exp(t->weight[NETWORK]);
    *p = fmax(link, network) / (link + network);
    return link > network ? LINK : NETWORK;
}

/* Who became slow, and when. */
struct question {
    enum ep_scope scope;
    const struct series *const *ranks;
    size_t n;
    const struct ep_change *c;
};

static enum cause judge_work_of(struct ep_watch *w, struct trial *t,
                                const struct question *q, double *p)
{
    enum basis basis = q->ranks[0]->basis;
    bool busy = basis == BASIS_BUSY || basis == BASIS_PER_MB;

    ep_verdict_sensors(t, busy && !t->among ? q->c->after - q->c->before : 0);
    if (q->scope != EP_SCOPE_JOB)
        judge_scatter(w, t, q->ranks, q->n, q->c->since_ts);
    judge_tokens(w, t, q->ranks, q->n, q->c);
    return most_likely(t, q->scope, p);
}

/* Is it a set whose communication may be what is slow? */
static bool is_between(const struct ep_watch *w, const struct question *q,
                       bool among)
{
    if (q->scope == EP_SCOPE_LINK)
        return true;
    return !among &&
           (q->scope == EP_SCOPE_JOB || q->scope == EP_SCOPE_HOST ||
            q->scope == EP_SCOPE_GROUP) &&
           works_as_before(w, q->ranks, q->n, q->c);
}

/* healthy: until when all was well; -INFINITY: never, ask the peers. */
static const char *decide(struct ep_watch *w, const struct question *q,
                          double healthy, double *p_cause)
{
    struct trial t = {.factor = q->c->factor, .among = isinf(healthy) != 0};
    bool known = false;
    enum cause best;
    double p;

    ep_watch_sense(w, q->ranks, q->n, healthy, q->c->since_ts, &t.s);
    for (int k = 0; k < EP_SENSORS; k++) {
        known = known || t.s.read[k];
        t.fresh = t.fresh || !isnan(t.s.at[k].since);
    }
    best = is_between(w, q, t.among) ? judge_communication(&t, q->scope, &p)
                                     : judge_work_of(w, &t, q, &p);
    add_notes(&w->text, &t, best);
    if (known && !t.fresh)
        ep_buf_adds(&w->text, "; no sensor read since");
    if (p_cause)
        *p_cause = p;
    return words[best];
}

const char *ep_verdict_weigh(struct ep_watch *w, enum ep_scope scope,
                             const struct series *const *ranks, size_t n,
                             const struct ep_change *c, bool among,
                             double *p_cause)
{
    double healthy = c->since_ts;

    /* what got worse is held against the time before it began */
    for (size_t i = 0; i < n; i++)
        if (ranks[i]->ep.open)
            healthy = fmin(healthy, ranks[i]->ep.since);
    return decide(w, &(struct question){scope, ranks, n, c},
                  among ? (double)-INFINITY : healthy, p_cause);
}

const char *ep_verdict_ranks(struct ep_watch *w, enum ep_scope scope,
                             struct series *const *ranks, size_t n,
                             const struct ep_change *c, double *p_cause)
{
    return ep_verdict_weigh(w, scope, (const struct series *const *)ranks, n, c,
                            false, p_cause);
}

const char *ep_verdict_among(struct ep_watch *w, enum ep_scope scope,
                             struct series *const *ranks, size_t n,
                             double since, double factor, double *p_cause)
{
    struct ep_change c = {
        .kind = EP_CHANGE_ONSET,
        .since_ts = since,
        .since_step = -1,
        .factor = factor,
    };

    return ep_verdict_weigh(w, scope, (const struct series *const *)ranks, n,
                            &c, true, p_cause);
}
