/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_comms.c - communicators of small made-up clusters in which every link
 * and every host is slow in turn: what is named is held against enumeration.
 * The generator and the sets of the enumeration are of this file alone.
 */
#include "config.h"

#include "base/mem.h"
#include "base/rng.h"
#include "detect/comms.h"
#include "tap.h"

#include <stdlib.h>
#include <string.h>

enum { RANKS = 64, SERIES = 256, QUEUE = 64 };

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
    double drop, now;
    int64_t count, pid;
    int late;         /* rank; -1 */
    double late_by;   /* of an iteration */
    struct slow slow; /* factor 1: nothing */
    /* calls of an iteration, by rank */
    struct ep_call queue[RANKS][QUEUE];
    int n[RANKS], sent[RANKS];
    char name[SERIES][24];
    int names;
};

static int rank_of(const struct cluster *k, int d, int s, int t)
{
    return (s * k->dp + d) * k->tp + t;
}

static bool many_hosts(const struct cluster *k)
{
    return k->dp * k->pp * k->tp > k->per_host;
}

static int node_of(const struct cluster *k, int rank)
{
    return many_hosts(k) ? rank / k->per_host : rank;
}

static double normal(struct ep_rng *r)
{
    double sum = -6;

    for (int i = 0; i < 12; i++)
        sum += ep_rng_uniform(r);
    return sum;
}

static bool crosses(const struct cluster *k, struct slow s, int p, int q)
{
    int a = node_of(k, p), b = node_of(k, q);

    if (a == b)
        return false;
    if (s.b < 0)
        return a == s.a || b == s.a;
    return (a == s.a && b == s.b) || (a == s.b && b == s.a);
}

/* Is the ring of these ranks slow? n 2: a pair, or both ways. */
static bool ring_crosses(const struct cluster *k, struct slow s, const int *r,
                         int n)
{
    for (int i = 0; i < n; i++)
        if (crosses(k, s, r[i], r[(i + 1) % n]))
            return true;
    return false;
}

static bool ring_is_remote(const struct cluster *k, const int *r, int n)
{
    for (int i = 0; i < n; i++)
        if (r[i] / k->per_host != r[0] / k->per_host)
            return true;
    return false;
}

static const char *name(struct cluster *k, const char *fmt, int a, int b)
{
    char s[24];

    (void)snprintf(s, sizeof s, fmt, a, b);
    for (int i = 0; i < k->names; i++)
        if (strcmp(k->name[i], s) == 0)
            return k->name[i];
    memcpy(k->name[k->names], s, sizeof s);
    return k->name[k->names++];
}

static void put(struct cluster *k, const struct ep_call *c)
{
    if (ep_rng_uniform(&k->rng) >= k->drop)
        k->queue[c->rank][k->n[c->rank]++] = *c;
}

/* One call of a ring of ranks, pair -1; or stage pair to the next. */
static void emit(struct cluster *k, const char *comm, const int *r, int n,
                 int pair, int64_t seq, double base)
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
                   .host = {name(k, "h%d", host, 0), host > 9 ? 3 : 2},
                   .op = {pair >= 0 ? i ? "recv" : "send" : "all_reduce",
                          pair >= 0 ? 4 : 10},
                   .comm = {comm, strlen(comm)},
                   .rank = r[i],
                   .pid = k->pid,
                   .nranks = pair >= 0 ? -1 : n,
                   .comm_rank = pair >= 0 ? pair + i : i,
                   .peer = pair >= 0 ? pair + 1 - i : -1,
                   .bytes = 1 << 20,
                   .seq = k->seq ? seq : -1,
                   .p2p = pair >= 0,
                   .ts = k->now + k->late_by + 0.01 - wait,
                   .dur = wait + t,
               });
    }
}

/* All calls made so far, ranks in any order. */
static void flush(struct cluster *k)
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

static void iterate(struct cluster *k, int times)
{
    int r[RANKS] = {0};

    for (; times > 0; times--, k->now += 1, k->count++) {
        for (int s = 0; s < k->pp; s++)
            for (int t = 0; t < k->tp; t++) {
                for (int d = 0; d < k->dp; d++)
                    r[d] = rank_of(k, d, s, t);
                for (int b = 0; b < 4 && k->dp > 1; b++)
                    emit(k, name(k, "dp-%d-%d", s, t), r, k->dp, -1,
                         4 * k->count + b, 0.02);
            }
        for (int d = 0; d < k->dp; d++)
            for (int s = 0; s < k->pp; s++) {
                for (int t = 0; t < k->tp && s + 1 < k->pp; t++) {
                    int pair[2] = {rank_of(k, d, s, t),
                                   rank_of(k, d, s + 1, t)};

                    for (int m = 0; m < 2; m++)
                        emit(k, name(k, "pp-%d", d * k->tp + t, 0), pair, 2, s,
                             2 * k->count + m, 0.004);
                }
                for (int t = 0; t < k->tp; t++)
                    r[t] = rank_of(k, d, s, t);
                if (k->tp > 1)
                    emit(k, name(k, "tp-%d-%d", d, s), r, k->tp, -1, k->count,
                         0.003);
            }
        flush(k);
    }
}

static struct cluster *new_cluster(int dp, int pp, int tp, int per_host,
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

static void free_cluster(struct cluster *k)
{
    ep_comms_free(k->c);
    free(k);
}

/* ==== Enumeration ==== */

/* The series that are slower, by their number; how many. */
static int set_of(const struct cluster *k, struct slow s, bool *in)
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

static bool same(const struct cluster *k, struct slow a, struct slow b)
{
    bool x[SERIES] = {0}, y[SERIES] = {0};

    (void)set_of(k, a, x);
    (void)set_of(k, b, y);
    return memcmp(x, y, sizeof x) == 0;
}

static int nodes(const struct cluster *k)
{
    int n = k->dp * k->pp * k->tp;

    return many_hosts(k) ? (n + k->per_host - 1) / k->per_host : n;
}

/* Does the text name a hypothesis? */
static bool is_named(const struct cluster *k, struct slow s, const char *id)
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
static bool is_right(const struct cluster *k, struct slow s,
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

static bool locate(struct cluster *k, double since, struct ep_comms_place *p)
{
    return ep_comms_locate(k->c, (struct ep_span){k->job, strlen(k->job)},
                           since, p);
}

/* s becomes slow after 30 iterations: asked 12 later. */
static bool one_slow(struct cluster *k, struct slow s)
{
    struct ep_comms_place p;
    double since;
    bool found;

    iterate(k, 30);
    since = k->now - 0.5;
    k->slow = s;
    iterate(k, 12);
    found = locate(k, since, &p);
    if (found && !p.late && is_right(k, s, &p) && p.p >= 0.98 &&
        fabs(log(p.factor / s.factor)) < 0.35)
        return true;
    printf("# dp %d pp %d tp %d, slow %d-%d: %s x%.2f, %zu candidates: %s\n",
           k->dp, k->pp, k->tp, s.a, s.b, found ? p.id : "nothing",
           found ? p.factor : 0, found ? p.candidates : 0,
           found ? p.evidence : "");
    return false;
}

static const int layouts[][4] = {
    {4, 1, 1, 4}, /* ranks of one host: a ring, which cannot tell */
    {2, 4, 1, 8}, /* pairs of ranks can */
    {4, 1, 2, 8}, {4, 1, 4, 4}, {2, 1, 8, 8}, /* hosts */
    {4, 2, 4, 8}, {8, 2, 1, 4}, {2, 8, 1, 4}, {2, 4, 4, 8}, {3, 3, 2, 4},
};

static void test_every_one(void)
{
    int bad = 0, all = 0;

    for (size_t i = 0; i < sizeof layouts / sizeof layouts[0]; i++) {
        const int *l = layouts[i];
        struct cluster *probe = new_cluster(l[0], l[1], l[2], l[3], 1);
        int n = nodes(probe);

        for (int a = 0; a < n; a++)
            for (int b = -1; b < n; b++) {
                struct slow s = {a, b, 1.5 + 0.5 * (all % 4)};
                struct cluster *k;
                bool in[SERIES];

                if ((b >= 0 && b <= a) || !set_of(probe, s, in))
                    continue;
                k = new_cluster(l[0], l[1], l[2], l[3], (uint64_t)++all);
                bad += !one_slow(k, s);
                free_cluster(k);
            }
        free_cluster(probe);
    }
    printf("# %d links and hosts, %d wrong\n", all, bad);
    ok(all > 90);
    ok(bad == 0);
}

/* Nothing changes: nothing is named but by chance. */
static void test_nothing(void)
{
    struct ep_comms_place p;
    int named = 0;

    for (uint64_t seed = 1; seed <= 100; seed++) {
        const int *l = layouts[seed % 10];
        struct cluster *k = new_cluster(l[0], l[1], l[2], l[3], 1000 + seed);

        iterate(k, 30);
        named += locate(k, k->now - 8.5, &p);
        free_cluster(k);
    }
    printf("# %d of 100 named\n", named);
    ok(named <= 3);
}

/* Records are missing; numbers are; a second link after a first. */
static void test_odd_streams(void)
{
    struct ep_comms_place p;
    struct slow s = {0, 1, 2.5}, second = {2, 3, 2.5};
    struct cluster *k = new_cluster(2, 4, 4, 8, 5);
    double since;

    k->drop = 0.02;
    ok(one_slow(k, s));
    since = k->now - 0.5;
    k->slow = (struct slow){-1, -1, 1};
    iterate(k, 30); /* over: nothing is slower */
    ok(!locate(k, since, &p));
    k->slow = second;
    since = k->now - 0.5;
    iterate(k, 5);
    ok(locate(k, since, &p) && is_right(k, second, &p));
    free_cluster(k);

    k = new_cluster(2, 4, 4, 8, 6);
    k->seq = false;
    ok(one_slow(k, s));
    free_cluster(k);
}

/* Another process: numbers begin anew, what is known stays. */
static void test_restart(void)
{
    struct slow s = {0, 1, 2.0};

    for (int how = 0; how < 3; how++) {
        struct cluster *k = new_cluster(4, 2, 4, 8, 7);
        struct ep_comms_place p;
        double since;

        k->pid = how == 0 ? 100 : -1;
        iterate(k, 20);
        k->now += 100;
        k->pid += how == 0;
        k->count = how == 2 ? INT64_C(1) << 60 : 0; /* a gap, or again */
        iterate(k, 20);
        since = k->now - 0.5;
        k->slow = s;
        iterate(k, 8);
        ok(locate(k, since, &p) && is_right(k, s, &p));
        free_cluster(k);
    }
}

/* Names of one job say nothing of another's; each record twice. */
static void test_two_jobs(void)
{
    struct cluster *k = new_cluster(4, 1, 4, 4, 8);
    struct ep_comms_summary sum;
    struct ep_comms_place p;
    struct slow s = {0, 1, 2.0};
    uint64_t transfers;
    double since;

    iterate(k, 30);
    k->job = "other";
    k->now -= 30;
    iterate(k, 30);
    since = k->now - 0.5;
    k->slow = s;
    iterate(k, 10);
    ok(locate(k, since, &p) && p.scope == EP_SCOPE_GROUP);
    k->job = "j";
    ok(!locate(k, since, &p));
    k->job = "none";
    ok(!locate(k, since, &p));
    ep_comms_sum(k->c, &sum);
    ok(sum.groups == 16 && sum.pairs == 0 && sum.unused == 0);
    ok(sum.partial == 0);
    transfers = sum.transfers;
    ok(transfers == UINT64_C(70) * (4 * 4 + 4));
    free_cluster(k);
}

static struct ep_call plain(const char *comm, int rank, int64_t seq, double ts,
                            double dur)
{
    return (struct ep_call){.host = {rank ? "b" : "a", 1},
                            .op = {"all_reduce", 10},
                            .comm = {comm, strlen(comm)},
                            .rank = rank,
                            .pid = -1,
                            .nranks = 2,
                            .comm_rank = rank,
                            .peer = -1,
                            .bytes = 8,
                            .seq = seq,
                            .ts = ts,
                            .dur = dur};
}

static void test_edges(void)
{
    struct ep_comms *c = ep_comms_new(0.10);
    struct ep_comms_summary sum;
    struct ep_comms_place p;
    struct ep_call x;
    uint64_t unused = 0;

    ok(isnan(ep_comms_level(c, (struct ep_span){"", 0}, 5)));
    for (int i = 0; i < 9; i++) {
        x = plain("c", 0, i, 10 + i, 1);
        x.rank = i == 0 ? -1 : i == 1 ? EP_CALLS_RANKS : 0;
        x.comm.len = i != 2;
        x.comm_rank = i == 3 ? -1 : i == 4 ? EP_CALLS_RANKS : 0;
        x.ts = i == 5 ? (double)NAN : x.ts;
        x.dur = i == 6 ? (double)NAN : i == 7 ? 0 : i == 8 ? INFINITY : 1;
        ok(ep_comms_take(c, &x, NULL) == 0);
        ep_comms_sum(c, &sum);
        ok(sum.unused == ++unused && sum.groups == 0);
    }
    x = plain("one", 0, 0, 10, 1);
    x.nranks = 1;
    for (int i = 0; i < 100; i++) {
        x.seq = i;
        x.ts = 10 + i;
        if (ep_comms_take(c, &x, NULL) != 0)
            ok(!"take");
    }
    ep_comms_sum(c, &sum);
    ok(sum.transfers == 0 && sum.partial == 0);
    for (int i = 0; i < 100; i++) /* twice each */
        for (int k = 0; k < 4; k++) {
            x = plain("two", k / 2, i, 200 + i, i < 80 ? 0.1 : 0.2);
            if (ep_comms_take(c, &x, NULL) != 0)
                ok(!"take");
        }
    ep_comms_sum(c, &sum);
    ok(sum.transfers == 100 && sum.partial == 0);
    ok(ep_comms_locate(c, (struct ep_span){"", 0}, 279.5, &p));
    ok(p.scope == EP_SCOPE_LINK && strcmp(p.id, "src=a,dst=b") == 0);
    near(p.factor, 2, 0.01);
    near(ep_comms_level(c, (struct ep_span){"", 0}, 279.5), 2, 0.01);
    ok(strstr(p.evidence, "100 ms -> 200 ms") != NULL);
    ok(p.rank == -1 && !p.late && p.candidates == 3);
    x = plain("two", 0, 100, 400, 0.1);
    x.rank = 5; /* two communicators of one name: nothing can be said */
    ok(ep_comms_take(c, &x, NULL) == 0);
    ok(!ep_comms_locate(c, (struct ep_span){"", 0}, 279.5, &p));
    ep_comms_free(c);
    ep_comms_free(NULL);
}

/* Always last: by 0.6 % of the time, and by 20 %. */
static void test_late(void)
{
    static const struct {
        double by;
        bool found;
    } cases[] = {{0.006, false}, {0.05, false}, {0.2, true}, {0.5, true}};

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct cluster *k = new_cluster(4, 1, 1, 4, 9 + i);
        struct ep_comms_place p;
        double since;
        bool found;

        iterate(k, 30);
        since = k->now - 0.5;
        k->late = 2;
        k->late_by = cases[i].by / 4; /* four calls */
        iterate(k, 10);
        found = locate(k, since, &p);
        ok(found == cases[i].found);
        if (found) {
            ok(p.late && p.rank == 2 && strcmp(p.id, "rank=2") == 0);
            near(p.factor, 1 / (1 - cases[i].by), 0.3);
            /* it was late before already: nothing new */
            since = k->now - 0.5;
            iterate(k, 4);
            ok(!locate(k, since, &p));
        }
        free_cluster(k);
    }
}

/* Slow from the first call: against groups of the class. */
static void test_from_the_start(void)
{
    struct slow s = {0, 2, 3.0};
    struct cluster *k = new_cluster(8, 4, 1, 8, 11);
    struct ep_comms_place p;

    s = (struct slow){1, 2, 3.0};
    k->slow = s;
    iterate(k, 12);
    ok(locate(k, (double)NAN, &p) && is_right(k, s, &p));
    ok(p.evidence && strstr(p.evidence, "no past") != NULL);
    free_cluster(k);
    k = new_cluster(8, 4, 1, 8, 12);
    iterate(k, 12);
    ok(!locate(k, 0, &p));
    free_cluster(k);
}

/* A pipeline of many ranks: bytes for each, none more after a while. */
static void test_memory(void)
{
    enum { MANY = 4096, ROUNDS = 3000 };
    struct ep_comms *c = ep_comms_new(0.10);
    struct ep_comms_summary first = {0}, last;
    char comm[16];

    for (int i = 0; i < ROUNDS; i++)
        for (int r = 0; r < (i < 64 ? MANY : 16); r++) {
            struct ep_call x;

            (void)snprintf(comm, sizeof comm, "g%d", r / 2);
            x = plain(comm, r, i, 10 + i, 0.1);
            x.comm_rank = r % 2;
            if (ep_comms_take(c, &x, NULL) != 0)
                ok(!"take");
            if (i == 63 && r == MANY - 1)
                ep_comms_sum(c, &first);
        }
    ep_comms_sum(c, &last);
    printf("# %zu bytes a rank\n", first.bytes / MANY);
    ok(first.bytes < (size_t)3000 * MANY);
    ok(last.bytes - first.bytes < (size_t)8 * 2000);
    ep_comms_free(c);
}

int main(void)
{
    test_edges();
    test_every_one();
    test_nothing();
    test_odd_streams();
    test_restart();
    test_two_jobs();
    test_late();
    test_from_the_start();
    test_memory();
    return tap_done();
}
