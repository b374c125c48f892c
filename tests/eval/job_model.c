/* SPDX-License-Identifier: Apache-2.0 */
/*
 * job_model.c - one iteration of a job, and what events did to it. The
 * equations are in job.h.
 */
#include "config.h"

#include "job.h"

#include <math.h>
#include <stdlib.h>

bool is_network(enum cause c)
{
    return c == C_LINK || c == C_HOST;
}

bool is_fail_slow(enum cause c)
{
    return c < C_WARMUP;
}

/* Does a transfer between two ranks go over the link or host of e? */
static bool crosses(const struct job *j, const struct event *e, int p, int q)
{
    int a = j->hosts > 1 ? job_host(p) : p, b = j->hosts > 1 ? job_host(q) : q;

    if (e->cause == C_HOST)
        return a != b && (a == e->host || b == e->host);
    return (a == e->a && b == e->b) || (a == e->b && b == e->a);
}

bool event_hits(const struct job *j, const struct event *e, int rank)
{
    int stage = rank / (j->dp * j->tp), replica = rank / j->tp % j->dp;

    switch (e->cause) {
    case C_LINK:
        return j->hosts > 1 ? job_host(rank) == e->a || job_host(rank) == e->b
                            : rank == e->a || rank == e->b;
    case C_STAGE:
        return stage == e->stage;
    case C_SEQUENCE:
        return replica == e->replica;
    default:
        if (e->rank >= 0)
            return rank == e->rank;
        return e->host < 0 || job_host(rank) == e->host;
    }
}

double event_strength(const struct event *e, int i)
{
    double f = e->factor;

    if (i < e->onset || i >= e->relief)
        return 1;
    if (e->cause == C_WARMUP) /* the first iteration, then ever less */
        return 1 + (f - 1) * pow(0.25, i - e->onset);
    if (e->cause == C_CHECKPOINT)
        return (i - e->onset) % e->every ? 1 : f;
    if (e->ramp > 0 && i - e->onset < e->ramp)
        f = 1 + (f - 1) * (i - e->onset + 1) / e->ramp;
    return f;
}

/* Relative variation of the sum of n calls over links of a kind. */
static double cv_of(const struct job *j, bool remote, int n)
{
    return (remote ? j->cv_remote : j->cv_local) / sqrt(n);
}

/* Log-normal: mean 1, coefficient of variation cv. */
static double draw_relative(struct job *j, double cv)
{
    double s = sqrt(log1p(cv * cv));

    return exp(s * draw_normal(&j->rng) - s * s / 2);
}

static bool group_is_remote(const struct job *j, int s, int t)
{
    return job_host(job_rank(j, 0, s, t)) !=
           job_host(job_rank(j, j->dp - 1, s, t));
}

static bool message_is_remote(const struct job *j, int d, int s, int t)
{
    return job_host(job_rank(j, d, s, t)) != job_host(job_rank(j, d, s + 1, t));
}

void noise_draw(struct job *j, struct noise *z)
{
    int calls = 4 * j->mb;

    for (int r = 0; r < j->ranks; r++) {
        z->busy[r] = 1 + 0.005 * draw_normal(&j->rng);
        z->extra[r] = fmax(0, 1 + 0.2 * draw_normal(&j->rng));
    }
    for (int d = 0; d < j->dp; d++)
        for (int s = 0; s < j->pp; s++) {
            z->tp[d * j->pp + s] = draw_relative(j, cv_of(j, false, calls));
            for (int t = 0; s < j->pp - 1 && t < j->tp; t++) {
                bool far = message_is_remote(j, d, s, t);

                z->pp[(d * j->pp + s) * j->tp + t] =
                    draw_relative(j, cv_of(j, far, 2 * j->mb));
            }
        }
    for (int s = 0; s < j->pp; s++)
        for (int t = 0; t < j->tp; t++) {
            bool far = group_is_remote(j, s, t);

            for (int b = 0; b < j->buckets; b++)
                z->dp[s * j->tp + t][b] = draw_relative(j, cv_of(j, far, 1));
        }
}

/* Work and time lost: what each rank does itself. */
static void do_work(const struct job *j, const struct noise *z, int i,
                    unsigned without, struct iteration *out)
{
    double tokens = (double)j->tokens, mb = j->mb;

    for (int r = 0; r < j->ranks; r++)
        out->busy[r] = j->compute * z->busy[r] * j->rank_weight[r] *
                       j->stage_weight[r / (j->dp * j->tp)];
    for (int k = 0; k < j->nevents; k++)
        if (j->event[k].cause == C_PHASE && event_strength(&j->event[k], i) > 1)
            mb *= j->event[k].mb, tokens *= j->event[k].tokens;
    out->mb = (int)mb;
    for (int r = 0; r < j->ranks; r++) {
        out->tokens[r] = (int64_t)(tokens * out->mb);
    }
    for (int k = 0; k < j->nevents; k++) {
        const struct event *e = &j->event[k];
        double f = event_strength(e, i);

        if (without >> k & 1 || is_network(e->cause) || !(f > 1))
            continue;
        for (int r = 0; r < j->ranks; r++) {
            if (!event_hits(j, e, r))
                continue;
            out->busy[r] *= e->cause == C_GC || e->cause == C_STORAGE
                                ? 1 + (f - 1) * z->extra[r]
                                : f;
            if (e->cause == C_SEQUENCE)
                out->tokens[r] = (int64_t)((double)out->tokens[r] * f);
        }
    }
}

/* How much slower the network makes a transfer between p and q. */
static double slowed(const struct job *j, const double *f, int p, int q)
{
    double x = 1;

    for (int k = 0; k < j->nevents; k++)
        if (f[k] > 1 && crosses(j, &j->event[k], p, q))
            x = fmax(x, f[k]);
    return x;
}

/* When pipeline d is through; stages into arrival. */
static double run_pipeline(const struct job *j, const struct noise *z,
                           const double *f, int d, struct iteration *out)
{
    double sum = 0, most = 0, messages = 0, end, before = 0;
    double one = j->share_pp * j->compute / (2 * j->mb);

    for (int s = 0; s < j->pp; s++) {
        int at = d * j->pp + s;
        double busy = 0, message = 0, exposed = 0;

        for (int t = 0; t < j->tp; t++) {
            busy = fmax(busy, out->busy[job_rank(j, d, s, t)]);
            if (s == j->pp - 1)
                continue;
            double x =
                slowed(j, f, job_rank(j, d, s, t), job_rank(j, d, s + 1, t));

            out->message[at * j->tp + t] = one * x * z->pp[at * j->tp + t];
            message = fmax(message, out->message[at * j->tp + t]);
            exposed = fmax(exposed, 2 * one * (x - 1));
        }
        out->tp_time[at] = j->share_tp * j->compute / j->mb * z->tp[at];
        out->t[at] = busy / out->mb + out->tp_time[at];
        sum += out->t[at];
        most = fmax(most, out->t[at] + exposed);
        messages += 2 * message;
    }
    end = sum + (out->mb - 1) * most + messages;
    for (int s = 0; s < j->pp; s++) {
        out->arrival[d * j->pp + s] = end - before * 2 / 3;
        before += out->t[d * j->pp + s];
    }
    return end;
}

void job_iterate(const struct job *j, const struct noise *z, int i,
                 unsigned without, struct iteration *out)
{
    double f[MAX_EVENTS], end = 0;

    for (int k = 0; k < j->nevents; k++)
        f[k] = without >> k & 1 || !is_network(j->event[k].cause)
                   ? 1
                   : event_strength(&j->event[k], i);
    do_work(j, z, i, without, out);
    for (int d = 0; d < j->dp; d++)
        (void)run_pipeline(j, z, f, d, out);
    for (int s = 0; s < j->pp; s++)
        for (int t = 0; t < j->tp; t++) {
            double start = 0, x = 1, sum = 0;

            for (int d = 0; d < j->dp; d++) {
                start = fmax(start, out->arrival[d * j->pp + s]);
                if (j->dp > 1)
                    x = fmax(x, slowed(j, f, job_rank(j, d, s, t),
                                       job_rank(j, (d + 1) % j->dp, s, t)));
            }
            for (int b = 0; b < j->buckets; b++) {
                double *one = &out->reduce[s * j->tp + t][b];

                *one = j->share_dp * j->compute / j->buckets * x *
                       z->dp[s * j->tp + t][b];
                sum += *one;
            }
            end = fmax(end, start + sum);
        }
    out->dur = end + 0.01 * j->compute;
}

/* Bits of the fail-slows that are active in iteration i. */
static unsigned slow_now(const struct job *j, int i)
{
    unsigned bits = 0;

    for (int k = 0; k < j->nevents; k++)
        if (is_fail_slow(j->event[k].cause) &&
            event_strength(&j->event[k], i) > 1)
            bits |= 1U << k;
    return bits;
}

void job_measure(struct job *j, const struct noise *z, int i,
                 const struct iteration *with)
{
    static struct iteration other, alone, none;
    unsigned slow = slow_now(j, i);

    if (slow & (slow - 1))
        job_iterate(j, z, i, slow, &none);
    for (int k = 0; k < j->nevents; k++) {
        struct event *e = &j->event[k];
        bool only = slow == 1U << k;

        if (!(slow >> k & 1))
            continue;
        job_iterate(j, z, i, 1U << k, &other);
        e->ratio[i] = with->dur / other.dur;
        if (i - e->onset < e->ramp)
            continue;
        if (!only)
            job_iterate(j, z, i, slow & ~(1U << k), &alone);
        e->job_with += only ? with->dur : alone.dur;
        e->job_without += only ? other.dur : none.dur;
        for (int r = 0; r < j->ranks; r++)
            if (event_hits(j, e, r)) {
                e->own_with += with->busy[r];
                e->own_without += other.busy[r];
            }
    }
}

double event_own_factor(const struct event *e)
{
    if (is_network(e->cause))
        return e->factor;
    return e->own_without > 0 ? e->own_with / e->own_without : 1;
}

double event_job_factor(const struct event *e)
{
    return e->job_without > 0 ? e->job_with / e->job_without : 1;
}

/* Mean of the job's ratio over the next iterations: it is noisy. */
static double ahead(const struct event *e, int i)
{
    double sum = 0;
    int n = 0;

    for (; n < 5 && i + n < e->relief; n++)
        sum += e->ratio[i + n];
    return n ? sum / n : 1;
}

/* Is it felt in iteration i? */
static bool felt(const struct event *e, int i)
{
    if (i < e->onset || i >= e->relief)
        return false;
    return (is_network(e->cause) ? ahead(e, i) : event_strength(e, i)) >=
           THRESHOLD;
}

void job_measured(struct job *j)
{
    for (int k = 0; k < j->nevents; k++) {
        struct event *e = &j->event[k];
        double full = is_network(e->cause) ? event_job_factor(e) : e->factor;

        e->cross = -1;
        for (int i = e->onset; i < e->relief && e->cross < 0; i++)
            if (is_fail_slow(e->cause) && full >= THRESHOLD && felt(e, i))
                e->cross = i;
    }
}

int event_lasted(const struct event *e)
{
    int n = 0;

    for (int i = e->cross; e->cross >= 0 && i < e->relief; i++)
        n += felt(e, i);
    return n;
}
