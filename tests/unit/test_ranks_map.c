/* SPDX-License-Identifier: Apache-2.0 */
/* test_ranks_map.c - when is a rank in a communicator the global rank? */
#include "config.h"

#include "record/ranks_map.h"
#include "tap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct ep_span span(const char *s)
{
    return (struct ep_span){s, strlen(s)};
}

static void member(struct ep_ranks_map *m, const char *host, int pid, int rank,
                   int nranks)
{
    ep_ranks_map_member(m, span(host), pid, rank, nranks);
}

static int find(const struct ep_ranks_map *m, const char *host, int pid)
{
    return (int)ep_ranks_map_find(m, span(host), pid);
}

/* Two nodes of four: tensor parallel on a node, data parallel across, world. */
static void check_world(void)
{
    struct ep_ranks_map *m = ep_ranks_map_new();
    int wrong = 0, early = 0;

    for (int rank = 0; rank < 8; rank++) {
        const char *host = rank < 4 ? "n1" : "n2";

        member(m, host, 100 + rank, rank % 4, 4); /* tensor parallel */
        member(m, host, 100 + rank, rank / 4, 2); /* data parallel */
        early += find(m, host, 100 + rank) != -1;
    }
    ok(early == 0);
    ep_ranks_map_heard(m);
    for (int rank = 0; rank < 8; rank++) {
        const char *host = rank < 4 ? "n1" : "n2";

        ok(find(m, "n1", 100) == -1); /* not yet all */
        member(m, host, 100 + rank, rank, 8);
        member(m, host, 100 + rank, rank, 8); /* said again */
        member(m, host, 100 + rank, rank % 4, 4);
    }
    for (int rank = 0; rank < 8; rank++)
        wrong += find(m, rank < 4 ? "n1" : "n2", 100 + rank) != rank;
    ok(wrong == 0);
    ok(ep_ranks_map_count(m) == 8);
    ok(find(m, "n1", 104) == -1);
    ok(find(m, "n3", 100) == -1);
    ok(find(m, "", 100) == -1);
    /* a ninth process: the world is larger than was seen */
    member(m, "n3", 100, 0, 1);
    ok(find(m, "n1", 100) == -1);
    ep_ranks_map_world(m, 8); /* no, it is not */
    ok(find(m, "n1", 101) == 1 && find(m, "n3", 100) == -1);
    ep_ranks_map_world(m, 16);
    ok(find(m, "n1", 101) == -1);
    ep_ranks_map_free(m);
}

/* Groups of equal size side by side, or in two dimensions: no world. */
static void check_groups(void)
{
    struct ep_ranks_map *m = ep_ranks_map_new();

    ep_ranks_map_heard(m);
    for (int i = 0; i < 8; i++)
        member(m, "n1", i, i % 4, 4);
    ok(find(m, "n1", 0) == -1 && find(m, "n1", 5) == -1);
    ep_ranks_map_free(m);

    m = ep_ranks_map_new();
    ep_ranks_map_heard(m);
    for (int i = 0; i < 4; i++) {
        member(m, "n1", i, i % 2, 2);
        member(m, "n1", i, i / 2, 2);
    }
    for (int i = 0; i < 4; i++)
        ok(find(m, "n1", i) == -1);
    ep_ranks_map_world(m, 2); /* a process with two ranks has none */
    ok(find(m, "n1", 1) == -1 && find(m, "n1", 3) == 1);
    ep_ranks_map_free(m);

    m = ep_ranks_map_new(); /* one process, two GPUs */
    ep_ranks_map_heard(m);
    member(m, "n1", 7, 0, 2);
    member(m, "n1", 7, 1, 2);
    ok(find(m, "n1", 7) == -1);
    ep_ranks_map_free(m);
}

static void check_stated(void)
{
    struct ep_ranks_map *m = ep_ranks_map_new();

    member(m, "n1", 7, 0, 1);
    ok(find(m, "n1", 7) == -1);
    ep_ranks_map_heard(m);
    ok(find(m, "n1", 7) == 0);
    ep_ranks_map_stated(m, span("n1"), 7, 5);
    ok(find(m, "n1", 7) == 5); /* before what follows from communicators */
    ep_ranks_map_stated(m, span("n1"), 7, 5);
    ok(find(m, "n1", 7) == 5);
    ep_ranks_map_stated(m, span("n1"), 7, 6);
    ok(find(m, "n1", 7) == -1);
    ep_ranks_map_stated(m, span("n1"), 8, -1);
    ok(find(m, "n1", 8) == -1);
    ep_ranks_map_free(m);
}

static void check_nonsense(void)
{
    struct ep_ranks_map *m = ep_ranks_map_new();

    ep_ranks_map_member(m, span("n1"), 1, -1, 4);
    ep_ranks_map_member(m, span("n1"), 1, 4, 4);
    ep_ranks_map_member(m, span("n1"), 1, 0, 0);
    ep_ranks_map_member(m, span("n1"), 1, 5, INT64_MAX);
    ep_ranks_map_member(m, span("n1"), -1, 0, 1);
    ep_ranks_map_member(m, span(""), 1, 0, 1);
    ok(ep_ranks_map_count(m) == 0);
    ep_ranks_map_free(m);
    ep_ranks_map_free(NULL);
}

static void check_records(void)
{
    struct ep_ranks_map *m = ep_ranks_map_new();
    struct ep_record r;

    for (int i = 0; i < 2; i++) {
        ep_record_begin(&r, EP_COLL);
        ep_record_set_str(&r, EP_K_HOST, "n1");
        ep_record_set_int(&r, EP_K_PID, 70 + i);
        ep_record_set_int(&r, EP_K_COMM_RANK, i);
        ep_ranks_map_take(m, &r); /* no nranks: no evidence */
        ok(!ep_ranks_map_resolve(m, &r));
        ep_record_set_int(&r, EP_K_NRANKS, 2);
        ep_ranks_map_take(m, &r);
    }
    ok(!ep_ranks_map_resolve(m, &r));
    ep_ranks_map_heard(m);
    ok(ep_ranks_map_resolve(m, &r));
    ok(ep_record_int(&r, EP_K_RANK, -1) == 1);
    ok(!ep_ranks_map_resolve(m, &r)); /* has it already */
    ep_record_begin(&r, EP_GAUGE);
    ok(!ep_ranks_map_resolve(m, &r));
    ep_ranks_map_take(m, &r);
    ep_record_set_str(&r, EP_K_HOST, "n1");
    ok(!ep_ranks_map_resolve(m, &r));
    ep_record_set_int(&r, EP_K_PID, 70);
    ep_record_set_int(&r, EP_K_RANK, 9);
    ep_ranks_map_take(m, &r);
    ok(find(m, "n1", 70) == 9);
    ep_ranks_map_free(m);
}

/* Many processes in random order against a plain array. */
static void check_many(unsigned long long seed)
{
    enum { HOSTS = 300, PER_HOST = 8, N = HOSTS * PER_HOST };
    static int order[N];
    struct ep_ranks_map *m = ep_ranks_map_new();
    int wrong = 0;

    printf("# seed %llu\n", seed);
    ep_ranks_map_heard(m);
    for (int i = 0; i < N; i++)
        order[i] = i;
    for (int i = N - 1; i > 0; i--) {
        int j, t = order[i];

        seed = seed * 6364136223846793005u + 1442695040888963407u;
        j = (int)((seed >> 33) % (unsigned)(i + 1));
        order[i] = order[j];
        order[j] = t;
    }
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < N; i++) {
            char host[16];

            (void)snprintf(host, sizeof host, "n%d", order[i] / PER_HOST);
            if (round == 0)
                member(m, host, 1000 + order[i] % PER_HOST, order[i], N);
            else
                wrong += find(m, host, 1000 + order[i] % PER_HOST) != order[i];
        }
    }
    ok(wrong == 0);
    ok(ep_ranks_map_count(m) == N);
    ep_ranks_map_free(m);
}

int main(int argc, char **argv)
{
    check_world();
    check_groups();
    check_stated();
    check_nonsense();
    check_records();
    check_many(argc > 1 ? strtoull(argv[1], NULL, 10) : 20261130);
    return tap_done();
}
