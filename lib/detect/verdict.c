/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verdict.c - why a pace changed, from what the samples say.
 *
 *   cpu-contention  a rank works longer and gets less CPU time than before:
 *                   another process runs on its cores
 *   compute         a rank works longer per micro-batch: device, clock, data
 *   straggler       (job) one rank, or a few, hold up the job
 *   all-ranks       (job) every rank works longer alike: longer input, power
 *                   cap, a shared file system
 *   communication   (job) steps take longer and no rank works longer: what
 *                   grew is the waiting
 *   unknown         only step times are told
 */
#include "config.h"

#include "detect/watch_impl.h"

#include "base/num.h"
#include "base/stats.h"

#include <math.h>

/* A CPU share below this, and this much below its past, is contention. */
#define SHARE_LOW 0.9
#define SHARE_FALL 0.95

/* Median of the cpu_share readings since a time, or before it. */
static double share_at(const struct series *s, double since, bool before)
{
    double v[SHARES];
    int64_t have = s->nshares < SHARES ? s->nshares : SHARES;
    size_t n = 0;

    for (int64_t i = 0; i < have; i++)
        if ((s->shares[i].ts < since) == before)
            v[n++] = s->shares[i].value;
    return ep_median(v, n);
}

static void add_levels(struct ep_buf *b, const struct ep_change *c)
{
    ep_num_format_duration(b, c->before);
    ep_buf_adds(b, c->kind == EP_CHANGE_SPIKE ? ", once " : " -> ");
    ep_num_format_duration(b, c->after);
}

const char *ep_verdict_rank(struct ep_watch *w, const struct series *s,
                            const struct ep_change *c)
{
    static const char *const names[] = {
        [BASIS_NONE] = "",
        [BASIS_PER_MB] = "busy per micro-batch ",
        [BASIS_BUSY] = "busy ",
        [BASIS_DUR] = "step time ",
    };
    double before = share_at(s, c->since_ts, true);
    double since = share_at(s, c->since_ts, false);

    ep_buf_reset(&w->text);
    ep_buf_adds(&w->text, names[s->basis]);
    add_levels(&w->text, c);
    if (s->basis == BASIS_DUR)
        return "unknown";
    if (c->kind != EP_CHANGE_ONSET || !(since < SHARE_LOW) ||
        since > SHARE_FALL * before)
        return "compute";
    ep_buf_adds(&w->text, ", share of CPU time ");
    if (!isnan(before))
        ep_buf_addf(&w->text, "%.2f -> ", before);
    ep_buf_addf(&w->text, "%.2f", since);
    return "cpu-contention";
}

/* The rank that is slowest against its own past; NULL if none tells busy. */
static const struct series *slowest(const struct ep_watch *w,
                                    const struct job *job,
                                    const struct ep_change *c, double *factor)
{
    const struct series *worst = NULL;

    *factor = 0;
    for (size_t i = 0; i < job->nranks; i++) {
        const struct series *r = job->ranks[i];
        double f = ep_watch_factor_since(w, r, c);

        if (r->basis != BASIS_DUR && f > *factor) {
            worst = r;
            *factor = f;
        }
    }
    return worst;
}

const char *ep_verdict_job(struct ep_watch *w, const struct job *job,
                           const struct ep_change *c)
{
    double half = 1 + w->config.pace.min_change / 2, factor, common;
    size_t n;
    const struct series *worst = slowest(w, job, c, &factor);

    ep_buf_reset(&w->text);
    ep_buf_adds(&w->text, "step time ");
    add_levels(&w->text, c);
    if (!worst)
        return "unknown";
    common = ep_watch_common_factor(w, job, NULL, c, &n);
    if (n > 1 && common >= half && factor < half * common) {
        ep_buf_addf(&w->text, ", busy time of %zu ranks %.2fx", n, common);
        return "all-ranks";
    }
    if (factor >= half) {
        ep_buf_addf(&w->text, ", %s busy %.2fx its own past", worst->id,
                    factor);
        return "straggler";
    }
    ep_buf_addf(&w->text, ", busy time of %zu rank%s unchanged", n,
                n == 1 ? "" : "s");
    return "communication";
}
