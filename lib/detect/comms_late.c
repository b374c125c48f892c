/* SPDX-License-Identifier: Apache-2.0 */
/*
 * comms_late.c - a rank for which its peers wait; see comms.h.
 *
 * Of a group's last calls: how much of the time the next to last to arrive
 * waited, by who was last. Behind a late rank all are late that wait for it in
 * another group first (the tensor-parallel peers of a slow GPU arrive late at
 * the gradients with it): if the late ones are members of one such group, it is
 * the one that is last there.
 */
#include "config.h"

#include "detect/comms_impl.h"

#include "base/mem.h"

#include <math.h>
#include <stdlib.h>

static const double sure = 0.95;
static const double mostly = 0.8; /* of the waiting is for one rank */
/* Calls come in bursts: shares of few of them are rough. */
static const double grown = 2.0 / 3;
enum { LEAST_LATES = 3, LATE_MAX = 64 };

struct late {
    const struct comms_group *group;
    int32_t rank;
    double share; /* of the time, that its peers wait, more than before */
    uint32_t times, calls;
};

/* For whom the peers wait most in n calls: the sum, s. */
static double longest(const struct comms_late *l, uint32_t n, int32_t *who)
{
    double most = 0;

    *who = -1;
    for (uint32_t i = 0; i < n; i++) {
        double mine = 0;

        for (uint32_t m = 0; m < n; m++)
            mine += l[m].who == l[i].who ? (double)l[m].gap : 0;
        if (mine > most) {
            most = mine;
            *who = l[i].who;
        }
    }
    return most;
}

/* Of the time of n runs, in order, that they wait for who. */
static double share_of(const struct comms_late *l, uint32_t n, int32_t who)
{
    double sum = 0, calls = 0, span;

    for (uint32_t i = 0; i < n; i++) {
        sum += l[i].who == who ? (double)l[i].gap : 0;
        calls += l[i].n;
    }
    span = n ? l[n - 1].ts + (double)l[n - 1].until - l[0].ts : 0;
    return span > 0 ? sum / span * (calls - 1) / calls : 0;
}

/* Whom a group waits for since then, and did not before. */
static bool late_in(const struct comms_track *t, double since, struct late *out)
{
    uint32_t n = t->lates < COMMS_LATES ? t->lates : COMMS_LATES, k = 0;
    struct comms_late l[COMMS_LATES];
    uint32_t first, before = 0;
    double sum = 0, most, was, is;
    int32_t who;

    for (uint32_t i = 0; i < n; i++) {
        l[i] = t->late[(t->lates - n + i) % COMMS_LATES];
        if (!(l[i].ts >= since))
            k = i + 1; /* before */
    }
    *out = (struct late){.group = t->group, .rank = -1};
    if (!k && n < t->lates && since > t->group->job->first)
        return false; /* what was before is forgotten */
    most = longest(l + k, n - k, &who);
    for (uint32_t i = k; i < n; i++) {
        sum += (double)l[i].gap;
        out->calls += l[i].n;
        out->times += l[i].who == who ? l[i].n : 0;
    }
    if (!(most >= mostly * sum) || out->times < LEAST_LATES ||
        (size_t)who >= t->group->cap || !t->group->member[who])
        return false;
    out->rank = t->group->member[who]->rank;
    /* before: as many calls, or nearly */
    for (first = k; first > 0 && before < out->calls; first--)
        before += l[first - 1].n;
    was = share_of(l + first, k - first, who);
    is = share_of(l + k, n - k, who);
    out->share = is - was;
    return was < grown * is;
}

static bool has(const struct comms_group *g, int32_t rank)
{
    for (size_t i = 0; i < g->cap; i++)
        if (g->member[i] && g->member[i]->rank == rank)
            return true;
    return false;
}

/* Of several late ranks the one that the others wait for in a group of theirs;
   NULL if nothing tells. */
static bool first_of(const struct comms_job *j, double since,
                     const struct late *late, size_t n, int32_t *rank)
{
    for (size_t i = 0; i < j->groups; i++) {
        const struct comms_group *g = j->group[i];
        struct late inner;
        size_t k = 0;

        if (!g->track || g->mixed || g->n > LATE_MAX)
            continue;
        while (k < n && has(g, late[k].rank))
            k++;
        if (k == n && late_in(g->track, since, &inner)) {
            *rank = inner.rank;
            return true;
        }
    }
    return false;
}

bool comms_locate_late(struct ep_comms *c, const struct comms_job *j,
                       double since_ts, struct ep_comms_place *out)
{
    double since = isnan(since_ts) ? -(double)INFINITY : since_ts;
    double least = 1 - exp(-c->least);
    struct late late[LATE_MAX], x, worst = {.share = 0};
    bool several = false;
    size_t n = 0;
    double p;

    for (size_t i = 0; i < j->groups; i++) {
        const struct comms_group *g = j->group[i];

        if (!g->track || g->mixed || !late_in(g->track, since, &x) ||
            x.share < least)
            continue;
        if (n == LATE_MAX)
            return false;
        several = several || (n && late[0].rank != x.rank);
        if (!n || x.share > worst.share)
            worst = x;
        late[n++] = x;
    }
    if (!n || (several && !first_of(j, since, late, n, &worst.rank)))
        return false;
    /* as sure as that chance does not put it last so often */
    p = 1 - pow(worst.group->n > 1 ? (double)worst.group->n : 2.0,
                1 - (double)worst.times);
    if (p < sure)
        return false;
    ep_buf_reset(&c->id);
    ep_buf_addf(&c->id, "rank=%d", (int)worst.rank);
    ep_buf_reset(&c->text);
    ep_buf_addf(&c->text,
                "last to arrive in %u of %u calls of %.64s: its peers wait for "
                "it %.3g %% of the time",
                worst.times, worst.calls, worst.group->name, 100 * worst.share);
    *out = (struct ep_comms_place){
        .scope = EP_SCOPE_RANK,
        .id = c->id.ptr,
        .factor = 1 / (1 - fmin(worst.share, 0.99)),
        .p = p,
        .evidence = c->text.ptr,
        .candidates = 1,
        .rank = worst.rank,
        .late = true,
    };
    return true;
}
