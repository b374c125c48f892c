/* SPDX-License-Identifier: Apache-2.0 */
/*
 * comms_cluster.h - the calls of a small made-up cluster, a link or host of which
 * is slow, and by enumeration what can be said of it. Knows nothing of how
 * anything is found.
 */
#ifndef EP_COMMS_CLUSTER_H
#define EP_COMMS_CLUSTER_H

#include "base/mem.h"
#include "base/rng.h"
#include "detect/comms.h"
#include "tap.h"

#include <stdlib.h>
#include <string.h>

enum { RANKS = 64, SERIES = 256, QUEUE = 64 };

static const char *const host_names[] = {"h0", "h1", "h2", "h3",
                                         "h4", "h5", "h6", "h7"};

struct slow {
    int a, b; /* nodes; b -1: a host with all its links */
    double factor;
};

struct cluster {
    int dp, pp, tp, per_host;
    struct ep_rng rng;
    struct ep_comms *c;
    const char *job;
    bool seq, shuffled;
    int64_t other; /* what receivers add to seq */
    double drop, now;
    int64_t count, pid;
    int late;         /* rank; -1 */
    double late_by;   /* of an iteration */
    struct slow slow; /* factor 1: nothing */
    /* calls of an iteration, by rank */
    struct ep_call queue[RANKS][QUEUE];
    int n[RANKS], sent[RANKS];
    char name[SERIES][40];
    int names;
};

static inline int rank_of(const struct cluster *k, int d, int s, int t)
{
    return (s * k->dp + d) * k->tp + t;
}

static inline bool many_hosts(const struct cluster *k)
{
    return k->dp * k->pp * k->tp > k->per_host;
}

static inline int node_of(const struct cluster *k, int rank)
{
    return many_hosts(k) ? rank / k->per_host : rank;
}

static inline double normal(struct ep_rng *r)
{
    double sum = -6;

    for (int i = 0; i < 12; i++)
        sum += ep_rng_uniform(r);
    return sum;
}

static inline bool crosses(const struct cluster *k, struct slow s, int p, int q)
{
    int a = node_of(k, p), b = node_of(k, q);

    if (a == b)
        return false;
    if (s.b < 0)
        return a == s.a || b == s.a;
    return (a == s.a && b == s.b) || (a == s.b && b == s.a);
}

/* Is the ring of these ranks slow? n 2: a pair, or both ways. */
static inline bool ring_crosses(const struct cluster *k, struct slow s,
                                const int *r, int n)
{
    for (int i = 0; i < n; i++)
        if (crosses(k, s, r[i], r[(i + 1) % n]))
            return true;
    return false;
}

static inline bool ring_is_remote(const struct cluster *k, const int *r, int n)
{
    for (int i = 0; i < n; i++)
        if (r[i] / k->per_host != r[0] / k->per_host)
            return true;
    return false;
}

static inline const char *name(struct cluster *k, const char *kind, int a,
                               int b)
{
    char s[40];

    (void)snprintf(s, sizeof s, "%s-%d-%d", kind, a, b);
    for (int i = 0; i < k->names; i++)
        if (strcmp(k->name[i], s) == 0)
            return k->name[i];
    memcpy(k->name[k->names], s, sizeof s);
    return k->name[k->names++];
}

static inline void put(struct cluster *k, const struct ep_call *c)
{
    if (ep_rng_uniform(&k->rng) >= k->drop)
        k->queue[c->rank][k->n[c->rank]++] = *c;
}

/* One call of a ring of ranks, pair -1; or stage pair to the next. */
static inline void emit(struct cluster *k, const char *comm, const int *r,
                        int n, int pair, int64_t seq, double base)
{
    bool remote = ring_is_remote(k, r, n);
    double t = base * exp((remote ? 0.29 : 0.05) * normal(&k->rng));
    int last = (int)(ep_rng_next(&k->rng) % (uint64_t)n);

    if (ring_crosses(k, k->slow, r, n))
        t *= k->slow.factor;
    for (int i = 0; i < n; i++)
        if (r[i] == k->late)
            last = i;
    for (int i = 0; i < n; i++) {
        double wait = i == last ? 0 : 0.002 * (1 + ep_rng_uniform(&k->rng));
        int host = r[i] / k->per_host;

        if (i != last && r[last] == k->late)
            wait += k->late_by;
        put(k, &(struct ep_call){
                   .job = {k->job, strlen(k->job)},
                   .host = {host_names[host], 2},
                   .op = {pair >= 0 ? i ? "recv" : "send" : "all_reduce",
                          pair >= 0 ? 4 : 10},
                   .comm = {comm, strlen(comm)},
                   .rank = r[i],
                   .pid = k->pid,
                   .nranks = pair >= 0 ? -1 : n,
                   .comm_rank = pair >= 0 ? pair + i : i,
                   .peer = pair >= 0 ? pair + 1 - i : -1,
                   .bytes = 1 << 20,
                   .seq = k->seq ? seq + (pair >= 0 && i ? k->other : 0) : -1,
                   .p2p = pair >= 0,
                   .ts = k->now + k->late_by + 0.01 - wait,
                   .dur = wait + t,
               });
    }
}

/* All calls made so far, ranks in any order. */
static inline void flush(struct cluster *k)
{
    int n = k->dp * k->pp * k->tp, left = 0;

    for (int r = 0; r < n; r++)
        left += k->n[r];
    for (int r = 0; left > 0; r = (r + 1) % n) {
        if (k->shuffled)
            r = (int)(ep_rng_next(&k->rng) % (uint64_t)n);
        if (k->sent[r] == k->n[r])
            continue;
        if (ep_comms_take(k->c, &k->queue[r][k->sent[r]++], NULL) != 0)
            ok(!"ep_comms_take");
        left--;
    }
    memset(k->n, 0, sizeof k->n);
    memset(k->sent, 0, sizeof k->sent);
}

static inline void iterate(struct cluster *k, int times)
{
    int r[RANKS] = {0};

    for (; times > 0; times--, k->now += 1, k->count++) {
        for (int s = 0; s < k->pp; s++)
            for (int t = 0; t < k->tp; t++) {
                for (int d = 0; d < k->dp; d++)
                    r[d] = rank_of(k, d, s, t);
                for (int b = 0; b < 4 && k->dp > 1; b++)
                    emit(k, name(k, "dp", s, t), r, k->dp, -1, 4 * k->count + b,
                         0.02);
            }
        for (int d = 0; d < k->dp; d++)
            for (int s = 0; s < k->pp; s++) {
                for (int t = 0; t < k->tp && s + 1 < k->pp; t++) {
                    int pair[2] = {rank_of(k, d, s, t),
                                   rank_of(k, d, s + 1, t)};

                    for (int m = 0; m < 2; m++)
                        emit(k, name(k, "pp", d, t), pair, 2, s,
                             2 * k->count + m, 0.004);
                }
                for (int t = 0; t < k->tp; t++)
                    r[t] = rank_of(k, d, s, t);
                if (k->tp > 1)
                    emit(k, name(k, "tp", d, s), r, k->tp, -1, k->count, 0.003);
            }
        flush(k);
    }
}

static inline struct cluster *new_cluster(int dp, int pp, int tp, int per_host,
                                          uint64_t seed)
{
    struct cluster *k = ep_calloc(1, sizeof *k);

    *k = (struct cluster){.dp = dp,
                          .pp = pp,
                          .tp = tp,
                          .per_host = per_host,
                          .job = "j",
                          .seq = true,
                          .shuffled = true,
                          .now = 1.7e9,
                          .pid = -1,
                          .late = -1,
                          .slow = {-1, -1, 1}};
    ep_rng_seed(&k->rng, seed, 0);
    k->c = ep_comms_new(0.10);
    return k;
}

static inline void free_cluster(struct cluster *k)
{
    ep_comms_free(k->c);
    free(k);
}

/* ==== Enumeration ==== */

/* The series that are slower, by their number; how many. */
static inline int set_of(const struct cluster *k, struct slow s, bool *in)
{
    int r[RANKS] = {0}, n = 0, hits = 0;

    for (int st = 0; st < k->pp; st++)
        for (int t = 0; t < k->tp; t++) {
            for (int d = 0; d < k->dp; d++)
                r[d] = rank_of(k, d, st, t);
            in[n++] = k->dp > 1 && ring_crosses(k, s, r, k->dp);
        }
    for (int d = 0; d < k->dp; d++)
        for (int st = 0; st < k->pp; st++) {
            for (int t = 0; t < k->tp && st + 1 < k->pp; t++)
                in[n++] = crosses(k, s, rank_of(k, d, st, t),
                                  rank_of(k, d, st + 1, t));
            for (int t = 0; t < k->tp; t++)
                r[t] = rank_of(k, d, st, t);
            in[n++] = k->tp > 1 && ring_crosses(k, s, r, k->tp);
        }
    for (int i = 0; i < n; i++)
        hits += in[i];
    return hits;
}

static inline bool same(const struct cluster *k, struct slow a, struct slow b)
{
    bool x[SERIES] = {0}, y[SERIES] = {0};

    (void)set_of(k, a, x);
    (void)set_of(k, b, y);
    return memcmp(x, y, sizeof x) == 0;
}

static inline int nodes(const struct cluster *k)
{
    int n = k->dp * k->pp * k->tp;

    return many_hosts(k) ? (n + k->per_host - 1) / k->per_host : n;
}

/* Does the text name a hypothesis? */
static inline bool is_named(const struct cluster *k, struct slow s,
                            const char *id)
{
    const char *unit = many_hosts(k) ? "h" : "rank";
    char x[64], y[64];

    if (s.b < 0) {
        (void)snprintf(x, sizeof x, many_hosts(k) ? "host=h%d" : "rank=%d",
                       s.a);
        return strcmp(id, x) == 0;
    }
    (void)snprintf(x, sizeof x, "src=%s%d,dst=%s%d", unit, s.a, unit, s.b);
    (void)snprintf(y, sizeof y, "src=%s%d,dst=%s%d", unit, s.b, unit, s.a);
    return strcmp(id, x) == 0 || strcmp(id, y) == 0;
}

/* The answer for a slow s, against all hypotheses with the same series. */
static inline bool is_right(const struct cluster *k, struct slow s,
                            const struct ep_comms_place *p)
{
    struct slow one = s;
    int links = 0, hosts = 0, common = 0, n = nodes(k);
    int touch[RANKS] = {0};
    bool in[SERIES];

    for (int a = 0; a < n; a++)
        for (int b = -1; b < n; b++) {
            struct slow h = {a, b, 2};

            if ((b >= 0 && b <= a) || !set_of(k, h, in) || !same(k, h, s))
                continue;
            links += b >= 0;
            hosts += b < 0;
            touch[a]++;
            if (b >= 0) {
                touch[b]++;
                one = h;
            } else if (!links && hosts == 1) {
                one = h;
            }
        }
    for (int a = 0; a < n; a++)
        common += touch[a] == links + hosts;
    if ((int)p->candidates != links + hosts)
        return false;
    if (links == 1 || (!links && hosts == 1)) {
        if (links)
            for (int a = 0; a < n; a++)
                for (int b = a + 1; b < n; b++)
                    if (same(k, (struct slow){a, b, 2}, s))
                        one = (struct slow){a, b, 2};
        return is_named(k, one, p->id);
    }
    if (links && common == 1) {
        for (int a = 0; a < n; a++)
            if (touch[a] == links + hosts)
                return is_named(k, (struct slow){a, -1, 2}, p->id);
    }
    return p->scope == EP_SCOPE_GROUP && strncmp(p->id, "comm=dp-", 8) == 0;
}

#endif
