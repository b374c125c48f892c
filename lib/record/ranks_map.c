/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ranks_map.c - see ranks_map.h.
 *
 * Processes are numbered in order of arrival and found by open addressing.
 * Of each the largest communicators are remembered. Rule 3 is kept up to
 * date with every piece of evidence, so that a question costs one look-up:
 * owner[r] is the process that has rank r in communicators of the largest
 * size, claimed how many r have one, and clash says that two want the same.
 */
#include "config.h"

#include "record/ranks_map.h"

#include "base/intern.h"
#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

#define NONE (-1)
#define MANY (-2) /* more than one value was seen */

enum { TOLD = 2048, TOLD_HOST = 48 };

struct process {
    uint32_t host; /* number of its name */
    int64_t pid;
    int64_t stated;    /* global rank, NONE or MANY */
    int64_t nranks;    /* of its largest communicators; 0: of none */
    int64_t comm_rank; /* in these, or MANY */
};

/*
 * What a record said of a process. To be told the same again changes nothing,
 * and most records do: those that were told lately are known at a glance.
 */
struct told {
    int64_t pid, rank, comm_rank, nranks;
    size_t len; /* of the host's name; 0: nothing was told */
    char host[TOLD_HOST];
};

struct ep_ranks_map {
    struct ep_intern *hosts;
    struct process *v;
    size_t n, cap;
    uint32_t *slot; /* number + 1; 0 is free */
    size_t slots;   /* a power of two, at least twice n */
    int64_t world;  /* as ep_ranks_map_world, or 0 */
    int64_t largest;
    uint32_t *owner; /* [owners] process + 1 by rank; 0: nobody */
    size_t owners;
    int64_t claimed;
    bool clash;
    bool heard;  /* as ep_ranks_map_heard */
    size_t last; /* the process that was met last */
    struct told told[TOLD];
};

struct ep_ranks_map *ep_ranks_map_new(void)
{
    struct ep_ranks_map *m = ep_calloc(1, sizeof *m);

    m->hosts = ep_intern_new();
    m->slots = 64;
    m->slot = ep_calloc(m->slots, sizeof *m->slot);
    return m;
}

void ep_ranks_map_free(struct ep_ranks_map *m)
{
    if (!m)
        return;
    ep_intern_free(m->hosts);
    free(m->v);
    free(m->slot);
    free(m->owner);
    free(m);
}

size_t ep_ranks_map_count(const struct ep_ranks_map *m)
{
    return m->n;
}

static size_t hash(const struct ep_ranks_map *m, uint32_t host, int64_t pid)
{
    uint64_t h =
        ((uint64_t)host << 32 ^ (uint64_t)pid) * UINT64_C(0x9e3779b97f4a7c15);

    return (size_t)(h >> 32) & (m->slots - 1);
}

static void put(struct ep_ranks_map *m, size_t i)
{
    size_t at = hash(m, m->v[i].host, m->v[i].pid);

    while (m->slot[at])
        at = (at + 1) & (m->slots - 1);
    m->slot[at] = (uint32_t)i + 1;
}

/* The number of a process, or -1. */
static long find(const struct ep_ranks_map *m, struct ep_span host, int64_t pid)
{
    long name;
    size_t at;

    if (m->n && m->v[m->last].pid == pid) {
        const char *last = ep_intern_name(m->hosts, m->v[m->last].host);

        if (ep_span_eq(host, last))
            return (long)m->last;
    }
    name = ep_intern_add(m->hosts, host, 0); /* adds nothing */
    if (name < 0)
        return -1;
    at = hash(m, (uint32_t)name, pid);
    for (; m->slot[at]; at = (at + 1) & (m->slots - 1)) {
        const struct process *p = &m->v[m->slot[at] - 1];

        if (p->host == (uint32_t)name && p->pid == pid)
            return (long)m->slot[at] - 1;
    }
    return -1;
}

/* The process, new if need be; NULL if there is no more room. */
static struct process *get(struct ep_ranks_map *m, struct ep_span host,
                           int64_t pid)
{
    long i = host.len ? find(m, host, pid) : -1, name;

    if (i >= 0) {
        m->last = (size_t)i;
        return &m->v[i];
    }
    if (!host.len || pid < 0 || m->n >= EP_RANKS_MAP_MAX)
        return NULL;
    name = ep_intern_add(m->hosts, host, EP_RANKS_MAP_MAX);
    if (name < 0)
        return NULL;
    m->v = ep_grow(m->v, &m->cap, m->n + 1, sizeof *m->v);
    m->v[m->n] = (struct process){
        .host = (uint32_t)name, .pid = pid, .stated = NONE, .comm_rank = NONE};
    m->last = m->n++;
    if (m->n * 2 > m->slots) {
        free(m->slot);
        m->slots *= 2;
        m->slot = ep_calloc(m->slots, sizeof *m->slot);
        for (size_t k = 0; k < m->n; k++)
            put(m, k);
    } else {
        put(m, m->last);
    }
    return &m->v[m->last];
}

void ep_ranks_map_world(struct ep_ranks_map *m, int64_t nranks)
{
    m->world = nranks;
}

void ep_ranks_map_heard(struct ep_ranks_map *m)
{
    m->heard = true;
}

void ep_ranks_map_stated(struct ep_ranks_map *m, struct ep_span host,
                         int64_t pid, int64_t rank)
{
    struct process *p = get(m, host, pid);

    if (!p || rank < 0)
        return;
    if (p->stated == NONE)
        p->stated = rank;
    else if (p->stated != rank)
        p->stated = MANY;
}

/* There is a larger communicator: what is known of smaller ones is void. */
static void new_largest(struct ep_ranks_map *m, int64_t nranks)
{
    size_t n = (size_t)nranks;

    if (n > m->owners) {
        m->owner = ep_realloc(m->owner, n, sizeof *m->owner);
        m->owners = n;
    }
    memset(m->owner, 0, n * sizeof *m->owner);
    m->largest = nranks;
    m->claimed = 0;
    m->clash = false;
}

void ep_ranks_map_member(struct ep_ranks_map *m, struct ep_span host,
                         int64_t pid, int64_t comm_rank, int64_t nranks)
{
    struct process *p;
    uint32_t *owner;

    if (comm_rank < 0 || comm_rank >= nranks || nranks > EP_RANKS_MAP_MAX)
        return;
    p = get(m, host, pid);
    if (!p || nranks < p->nranks ||
        (nranks == p->nranks && comm_rank == p->comm_rank))
        return;
    p->comm_rank = nranks > p->nranks ? comm_rank : MANY;
    p->nranks = nranks;
    if (nranks < m->largest)
        return;
    if (nranks > m->largest)
        new_largest(m, nranks);
    owner = &m->owner[comm_rank];
    if (p->comm_rank == MANY || *owner) {
        m->clash = true;
    } else {
        *owner = (uint32_t)(p - m->v) + 1;
        m->claimed++;
    }
}

int64_t ep_ranks_map_find(const struct ep_ranks_map *m, struct ep_span host,
                          int64_t pid)
{
    long i = host.len ? find(m, host, pid) : -1;
    const struct process *p;

    if (i < 0)
        return -1;
    p = &m->v[i];
    if (p->stated != NONE)
        return p->stated >= 0 ? p->stated : -1;
    if (p->comm_rank < 0)
        return -1;
    if (m->world)
        return p->nranks == m->world ? p->comm_rank : -1;
    if (!m->heard || m->clash || m->claimed != m->largest ||
        m->n != (size_t)m->largest)
        return -1;
    return p->comm_rank;
}

/* Was that told lately? It is now. */
static bool is_told(struct ep_ranks_map *m, struct ep_span host,
                    const struct told *t)
{
    /* ranks that take turns are not to push each other out */
    uint64_t h = (uint64_t)t->pid * 31 + (uint64_t)t->comm_rank +
                 (uint64_t)t->rank * 5 + (unsigned char)host.ptr[host.len - 1];
    struct told *known = &m->told[h % TOLD];

    if (known->len == host.len && known->pid == t->pid &&
        known->rank == t->rank && known->comm_rank == t->comm_rank &&
        known->nranks == t->nranks &&
        memcmp(known->host, host.ptr, host.len) == 0)
        return true;
    if (host.len <= TOLD_HOST) {
        *known = *t;
        known->len = host.len;
        memcpy(known->host, host.ptr, host.len);
    }
    return false;
}

void ep_ranks_map_take(struct ep_ranks_map *m, const struct ep_record *r)
{
    struct ep_span host = ep_record_str(r, EP_K_HOST);
    struct told t = {.pid = ep_record_int(r, EP_K_PID, -1),
                     .rank = ep_record_int(r, EP_K_RANK, -1),
                     .comm_rank = ep_record_int(r, EP_K_COMM_RANK, -1),
                     .nranks = ep_record_int(r, EP_K_NRANKS, -1)};

    if (!host.len || t.pid < 0 || is_told(m, host, &t))
        return;
    if (ep_record_has(r, EP_K_RANK))
        ep_ranks_map_stated(m, host, t.pid, t.rank);
    if (ep_record_has(r, EP_K_COMM_RANK) && ep_record_has(r, EP_K_NRANKS))
        ep_ranks_map_member(m, host, t.pid, t.comm_rank, t.nranks);
}

bool ep_ranks_map_resolve(const struct ep_ranks_map *m, struct ep_record *r)
{
    struct ep_span host;
    int64_t rank;

    if (ep_record_has(r, EP_K_RANK) || !ep_record_has(r, EP_K_PID))
        return false;
    host = ep_record_str(r, EP_K_HOST);
    if (!host.len)
        return false;
    rank = ep_ranks_map_find(m, host, ep_record_int(r, EP_K_PID, -1));
    if (rank >= 0)
        ep_record_set_int(r, EP_K_RANK, rank);
    return rank >= 0;
}
