/* SPDX-License-Identifier: Apache-2.0 */
/*
 * halos_ref.h - HALoS once more for test_halos.c: plainly, in double, on
 * vectors, from the paper's rules and not from lib/lsgd.
 *
 * With 4-bit exchanges the decoded messages come from the code under test
 * (what a quantiser makes of a value near a boundary is not for double to
 * say); all that leads to them and follows from them is computed here.
 */
#ifndef EP_TEST_HALOS_REF_H
#define EP_TEST_HALOS_REF_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define MOST_D 500
#define MOST_REGIONS 4

struct ref_rule {
    double lr, beta, c;
    uint64_t n;
};

struct ref_server {
    struct ref_rule rule;
    double theta[MOST_D], m[MOST_D], d[MOST_D];
    uint64_t version; /* steps done */
};

struct ref_region {
    struct ref_server s;
    double snapshot[MOST_D], sent[MOST_D], error[MOST_D], replica[MOST_D];
    double u[MOST_D];     /* to be sent, before it is coded */
    double total[MOST_D]; /* sum of all displacements by steps */
    double gone[MOST_D];  /* of those that came while one was outstanding */
    uint64_t merged, sent_version, sends, lost;
    uint64_t global; /* version that was merged last */
    uint64_t steps_pending, steps_sent;
    bool outstanding;
};

struct ref {
    size_t dim, regions;
    uint64_t k;
    double alpha;
    bool carry, q4;
    struct ref_server gps;
    struct ref_region region[MOST_REGIONS];
};

static inline void ref_step(struct ref_server *s, const float *g, size_t dim)
{
    const struct ref_rule *r = &s->rule;
    double n = (double)r->n;
    bool last = ++s->version % r->n == 0;

    for (size_t i = 0; i < dim; i++) {
        double gi = (double)g[i], d = s->d[i] + gi;

        if (last) {
            s->m[i] = r->beta * s->m[i] + d / n;
            s->theta[i] -=
                r->lr * ((1 - r->c * n + r->c) * r->beta * s->m[i] + gi / n);
            d = 0;
        } else {
            s->theta[i] -= r->lr * (r->c * r->beta * s->m[i] + gi / n);
        }
        s->d[i] = d;
    }
}

/* A worker's delta. Returns whether the region sends r->u. */
static inline bool ref_worker_delta(struct ref *h, size_t region,
                                    const float *g, uint64_t steps)
{
    struct ref_region *r = &h->region[region];
    double before[MOST_D];

    memcpy(before, r->s.theta, sizeof before);
    ref_step(&r->s, g, h->dim);
    r->steps_pending += steps;
    for (size_t i = 0; i < h->dim; i++) {
        r->total[i] += before[i] - r->s.theta[i];
        if (r->outstanding)
            r->gone[i] += before[i] - r->s.theta[i];
    }
    if (r->outstanding || r->s.version != r->merged + h->k)
        return false;
    for (size_t i = 0; i < h->dim; i++)
        r->u[i] = r->snapshot[i] - r->s.theta[i] + r->error[i];
    memcpy(r->sent, r->s.theta, sizeof r->sent);
    r->sent_version = r->s.version;
    r->outstanding = true;
    r->sends++;
    return true;
}

/* What the region sent, decoded: s. */
static inline void ref_sent(struct ref *h, size_t region, const float *s)
{
    struct ref_region *r = &h->region[region];

    r->steps_sent += r->steps_pending;
    r->steps_pending = 0;
    if (h->q4)
        for (size_t i = 0; i < h->dim; i++)
            r->error[i] = r->u[i] - (double)s[i];
}

static inline void ref_gps_delta(struct ref *h, const float *s)
{
    ref_step(&h->gps, s, h->dim);
}

/* The reply, decoded: parameters, or with 4 bits the change of them. */
static inline void ref_merge(struct ref *h, size_t region, const float *reply,
                             uint64_t version)
{
    struct ref_region *r = &h->region[region];

    for (size_t i = 0; i < h->dim; i++) {
        double x = r->s.theta[i], kept = r->sent[i] - x, global;

        r->replica[i] = (h->q4 ? r->replica[i] : 0) + (double)reply[i];
        global = r->replica[i];
        r->s.theta[i] = (1 - h->alpha) * x + h->alpha * global;
        r->snapshot[i] = r->s.theta[i] + (h->carry ? kept : 0);
    }
    if (!h->carry)
        r->lost += r->s.version - r->sent_version;
    r->merged = r->s.version;
    r->global = version;
    r->outstanding = false;
}

/* Everything starts from theta. */
static inline void ref_start(struct ref *h, const float *theta)
{
    for (size_t i = 0; i < h->dim; i++)
        h->gps.theta[i] = (double)theta[i];
    for (size_t k = 0; k < h->regions; k++) {
        struct ref_region *r = &h->region[k];

        memcpy(r->s.theta, h->gps.theta, sizeof r->s.theta);
        memcpy(r->snapshot, h->gps.theta, sizeof r->snapshot);
        memcpy(r->replica, h->gps.theta, sizeof r->replica);
    }
}

#endif
