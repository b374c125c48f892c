/* SPDX-License-Identifier: Apache-2.0 */
/* incident_where.c - what ranks that changed have in common; see incident.h. */
#include "config.h"

#include "detect/incident.h"

#include <math.h>
#include <string.h>

bool ep_incident_akin(enum kin kin, const struct series *a,
                      const struct series *b)
{
    const struct ep_place *p = &a->place, *q = &b->place;
    bool both = p->known && q->known;

    switch (kin) {
    case KIN_HOST:
        return a->host && b->host && strcmp(a->host, b->host) == 0;
    case KIN_STAGE:
        return both && p->pp >= 0 && p->pp == q->pp;
    case KIN_REPLICA:
        return both && p->dp >= 0 && p->dp == q->dp;
    case KIN_TENSOR:
        return both && p->pp >= 0 && p->dp >= 0 && p->pp == q->pp &&
               p->dp == q->dp;
    case KIN_RANK:
        return a == b;
    default:
        return kin == KIN_ALL;
    }
}

/* A set that s is in: its known ranks, and those of them that changed. */
struct set {
    size_t n, hits;
};

static void count(const struct job *job, const struct series *s,
                  const double *y, double least, struct set *sets,
                  struct set *all)
{
    for (size_t i = 0; i < job->ranks.n; i++) {
        if (isnan(y[i]))
            continue;
        all->n++;
        all->hits += y[i] >= least;
        for (enum kin k = KIN_HOST; k < KIN_RANK; k++)
            if (ep_incident_akin(k, job->ranks.v[i], s)) {
                sets[k].n++;
                sets[k].hits += y[i] >= least;
            }
    }
}

void ep_incident_where(const struct job *job, const struct series *s,
                       const double *y, bool from_first, struct where *out)
{
    static const enum kin by_chance[] = {KIN_HOST, KIN_STAGE, KIN_REPLICA,
                                         KIN_TENSOR};
    static const enum kin by_design[] = {KIN_STAGE, KIN_HOST, KIN_REPLICA,
                                         KIN_TENSOR};
    const enum kin *order = from_first ? by_design : by_chance;
    struct set sets[KIN_RANK] = {{0, 0}}, all = {0, 0};
    double best;

    count(job, s, y, SHARE * y[s->index], sets, &all);
    *out = (struct where){KIN_RANK, KIN_RANK, s};
    best = 2.0 / (1 + (double)all.hits);
    for (int i = 0; i < KIN_RANK; i++) {
        const struct set *set = &sets[order[i]];
        double f1;

        if (set->n < 2 || set->n * 2 > all.n ||
            (double)set->hits < COVER * (double)set->n)
            continue;
        f1 = 2 * (double)set->hits / (double)(set->n + all.hits);
        if (f1 > best * (1 + 1e-9)) {
            *out = (struct where){order[i], KIN_RANK, s};
            best = f1;
        } else if (f1 > best * (1 - 1e-9) && out->also == KIN_RANK &&
                   out->kin != KIN_RANK && sets[out->kin].n == set->n) {
            out->also = order[i];
        }
    }
}

enum ep_scope ep_incident_name(enum kin kin, const struct series *like,
                               struct ep_buf *id)
{
    const struct ep_place *p;

    if (!like)
        return EP_SCOPE_JOB;
    p = &like->place;
    switch (kin) {
    case KIN_HOST:
        ep_buf_addf(id, "host=%s", like->host);
        return EP_SCOPE_HOST;
    case KIN_STAGE:
        ep_buf_addf(id, "pp=%lld", (long long)p->pp);
        return EP_SCOPE_STAGE;
    case KIN_REPLICA:
        ep_buf_addf(id, "dp=%lld", (long long)p->dp);
        return EP_SCOPE_GROUP;
    case KIN_TENSOR:
        ep_buf_addf(id, "dp=%lld,pp=%lld", (long long)p->dp, (long long)p->pp);
        return EP_SCOPE_GROUP;
    case KIN_RANK:
        ep_buf_adds(id, like->id);
        return like->scope;
    default:
        return EP_SCOPE_JOB;
    }
}
