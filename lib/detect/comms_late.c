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

static const double mostly = 0.8; /* of the waiting is for one rank */
enum { LEAST_LATES = 3, LATE_MAX = 64 };

struct late {
    const struct comms_group *group;
    int32_t rank;
    double share; /* of the time, that its peers wait */
    uint32_t times, calls;
};

/* Whom a group waits for since then. */
static bool late_in(const struct comms_track *t, double since, struct late *out)
{
    uint32_t n = t->lates < COMMS_LATES ? t->lates : COMMS_LATES, k = 0;
    struct comms_late l[COMMS_LATES];
    double first = (double)INFINITY, last = -first, sum = 0, most = 0;
    int32_t who = -1;

    for (uint32_t i = 0; i < n; i++) {
        l[k] = t->late[(t->lates - n + i) % COMMS_LATES];
        if (!(l[k].ts >= since))
            continue;
        first = fmin(first, l[k].ts);
        last = fmax(last, l[k].ts);
        sum += (double)l[k++].gap;
    }
    *out = (struct late){.group = t->group, .rank = -1, .calls = k};
    if (k < LEAST_LATES || !(last > first))
        return false;
    for (uint32_t i = 0; i < k; i++) {
        double mine = 0;

        for (uint32_t m = 0; m < k; m++)
            mine += l[m].who == l[i].who ? (double)l[m].gap : 0;
        if (mine > most) {
            most = mine;
            who = l[i].who;
        }
    }
    if (!(most >= mostly * sum) || (size_t)who >= t->group->cap ||
        !t->group->member[who])
        return false;
    for (uint32_t i = 0; i < k; i++)
        out->times += l[i].who == who && (double)l[i].gap >= most / (2 * k);
    out->rank = t->group->member[who]->rank;
    out->share = most / (last - first) * (k - 1) / k;
    return out->times >= LEAST_LATES;
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

    for (size_t i = 0; i < j->groups; i++) {
        const struct comms_group *g = j->group[i];

        if (!g->track || g->mixed || !late_in(g->track, since, &x) ||
            x.share < least)
            continue;
        if (n == LATE_MAX)
            return false;
        several = several || (n && late[0].rank != x.rank);
        worst = x.share > worst.share ? x : worst;
        late[n++] = x;
    }
    if (!n || (several && !first_of(j, since, late, n, &worst.rank)))
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
        /* as sure as that chance does not put it last so often */
        .p = 1 - pow((double)(worst.group->n > 1 ? worst.group->n : 2),
                     1 - (double)worst.times),
        .evidence = c->text.ptr,
        .candidates = 1,
        .rank = worst.rank,
        .late = true,
    };
    return true;
}
