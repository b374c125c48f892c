/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verdict.c - why a pace changed, from what the samples say.
 *
 * Of ranks that work longer verdict_cause.c weighs the causes; of a job:
 *
 *   straggler       one rank, or a few, hold up the job
 *   all-ranks       every rank works longer alike: longer input, power cap, a
 *                   shared file system, which the evidence says if it is known
 *   communication   steps take longer and no rank works longer: what grew is
 *                   the waiting
 *   unknown         only step times are told, or only one rank
 */
#include "config.h"

#include "detect/watch_impl.h"

#include "base/num.h"
#include "base/stats.h"

#include <math.h>

static void add_levels(struct ep_buf *b, const struct ep_change *c)
{
    ep_num_format_duration(b, c->before);
    ep_buf_adds(b, c->kind == EP_CHANGE_SPIKE ? ", once " : " -> ");
    ep_num_format_duration(b, c->after);
}

void ep_verdict_levels(struct ep_watch *w, const struct series *s,
                       const struct ep_change *c)
{
    static const char *const names[] = {
        [BASIS_NONE] = "",
        [BASIS_PER_MB] = "busy per micro-batch ",
        [BASIS_BUSY] = "busy ",
        [BASIS_DUR] = "step time ",
    };

    ep_buf_reset(&w->text);
    ep_buf_adds(&w->text, names[s->basis]);
    add_levels(&w->text, c);
}

const char *ep_verdict_rank(struct ep_watch *w, const struct series *s,
                            const struct ep_change *c)
{
    ep_verdict_levels(w, s, c);
    if (s->basis == BASIS_DUR)
        return "unknown";
    if (c->kind != EP_CHANGE_ONSET)
        return "compute";
    return ep_verdict_weigh(w, s->scope, &s, 1, c, false, NULL);
}

/* The level of a series over the median of its peers'. */
static double over_peers(struct ep_watch *w, const struct series *s)
{
    const struct members *m = ep_watch_members(s);
    size_t n = 0;

    for (size_t i = 0; i < m->n; i++)
        if (m->v[i] != s && m->v[i]->pace && m->v[i]->basis == s->basis) {
            w->work[n] = ep_changepoint_level(m->v[i]->pace);
            n += !isnan(w->work[n]);
        }
    return s->pace ? ep_changepoint_level(s->pace) / ep_median(w->work, n)
                   : (double)NAN;
}

const char *ep_verdict_peer(struct ep_watch *w, const struct series *s,
                            double since)
{
    struct ep_change c = {
        .kind = EP_CHANGE_ONSET,
        .since_ts = since,
        .since_step = -1,
        .factor = over_peers(w, s),
    };

    return ep_verdict_weigh(w, s->scope, &s, 1, &c, true, NULL);
}

/* What a rank did since a change of the job; NaN if it does not tell busy. */
static double busy_factor(const struct series *r, const struct ep_change *c)
{
    return r->basis == BASIS_DUR ? (double)NAN : ep_watch_factor_since(r, c);
}

struct series *ep_verdict_newcomer(struct ep_watch *w, const struct job *job,
                                   double *factor)
{
    struct series *worst = NULL;
    double top = 0;
    size_t n = 0;

    for (size_t i = 0; i < job->ranks.n; i++) {
        struct series *r = job->ranks.v[i];
        double level;

        if (r->basis != BASIS_PER_MB || !r->pace)
            continue;
        level = ep_changepoint_level(r->pace);
        if (isnan(level))
            continue;
        w->work[n++] = level;
        if (isnan(ep_changepoint_healthy(r->pace)) && level > top) {
            worst = r;
            top = level;
        }
    }
    *factor = top / ep_median(w->work, n);
    return worst;
}

const char *ep_verdict_job(struct ep_watch *w, const struct job *job,
                           const struct ep_change *c)
{
    double half = 1 + w->config.pace.min_change / 2, factor = 0, common;
    const struct series *worst = NULL; /* against its own past */
    size_t n = 0;

    ep_buf_reset(&w->text);
    ep_buf_adds(&w->text, "step time ");
    add_levels(&w->text, c);
    if (c->kind == EP_CHANGE_RELIEF && !c->partial)
        return ""; /* that of the episode stands */
    for (size_t i = 0; i < job->ranks.n; i++) {
        double f = busy_factor(job->ranks.v[i], c);

        if (isnan(f))
            continue;
        w->work[n++] = f;
        if (f > factor) {
            worst = job->ranks.v[i];
            factor = f;
        }
    }
    if (!worst)
        return "unknown";
    common = ep_median(w->work, n);
    if (n > 1 && common >= half && factor < half * common) {
        ep_buf_addf(&w->text, ", median busy time of %zu ranks %.2fx", n,
                    common);
        (void)ep_verdict_ranks(w, EP_SCOPE_JOB, job->ranks.v, job->ranks.n, c,
                               NULL);
        return "all-ranks";
    }
    if (factor >= half) {
        ep_buf_addf(&w->text, ", %s busy %.2fx its own past", worst->id,
                    factor);
        return "straggler";
    }
    worst = ep_verdict_newcomer(w, job, &factor);
    if (worst && factor >= 1 + w->config.pace.min_change) {
        ep_buf_addf(&w->text, ", %s is new, busy %.2fx its peers", worst->id,
                    factor);
        return "straggler";
    }
    /* one rank alone may as well be waiting for another that is not told */
    ep_buf_addf(&w->text,
                n == 1 ? ", busy time of the %zu rank known unchanged"
                       : ", busy time of %zu ranks unchanged",
                n);
    return n == 1 ? "unknown" : "communication";
}
