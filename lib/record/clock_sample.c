/* SPDX-License-Identifier: Apache-2.0 */
/* clock_sample.c - see clock_sample.h. */
#include "config.h"

#include "record/clock_sample.h"

#include "base/intern.h"
#include "base/mem.h"
#include "base/rng.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* More hosts or communicators than that are not looked at. */
#define MAX_NAMES ((size_t)1 << 20)

/* Communicators within a host have at most that many ranks. */
#define LOCAL_RANKS 64

/* Of a larger communicator about that many ranks are kept of each instance. */
#define MANY_RANKS 8192

#define BUCKETS ((size_t)1 << 16)

struct comm {
    size_t held; /* ends and instances */
    int level;
    bool local; /* within one host */
};

struct ep_clock_sample {
    struct ep_intern *hosts, *names; /* names: job, comm and op */
    struct comm *comms;              /* of each name */
    size_t ncomms, cap_comms;
    struct ep_clock_end *ends;
    size_t nends, cap_ends;
    uint32_t free_end, free_instance; /* lists by next */
    struct ep_clock_instance *instances;
    size_t ninstances, cap_instances;
    uint32_t *buckets;
    size_t held, max;
    struct ep_buf name; /* being made */
};

struct ep_clock_sample *ep_clock_sample_new(size_t max)
{
    struct ep_clock_sample *s = ep_calloc(1, sizeof *s);

    s->hosts = ep_intern_new();
    s->names = ep_intern_new();
    s->buckets = ep_calloc(BUCKETS, sizeof *s->buckets);
    memset(s->buckets, 0xff, BUCKETS * sizeof *s->buckets);
    s->free_end = s->free_instance = EP_CLOCK_NONE;
    s->max = max < 16 ? 16 : max;
    ep_buf_init(&s->name);
    return s;
}

void ep_clock_sample_free(struct ep_clock_sample *s)
{
    if (!s)
        return;
    ep_intern_free(s->hosts);
    ep_intern_free(s->names);
    free(s->comms);
    free(s->ends);
    free(s->instances);
    free(s->buckets);
    ep_buf_free(&s->name);
    free(s);
}

static bool is_chosen(uint64_t hash, int level)
{
    return level == 0 || hash >> (64 - level) == 0;
}

/* Is it one of the ranks that are kept of an instance? */
static bool is_kept(uint64_t hash, const struct ep_clock_taken *t)
{
    uint64_t x = hash + (uint64_t)t->comm_rank;

    return t->nranks <= MANY_RANKS || t->comm_rank < 0 ||
           (double)(ep_splitmix64(&x) >> 11) * 0x1p-53 * (double)t->nranks <
               MANY_RANKS;
}

/* The communicator's number; -1 if there are too many. */
static long find_comm(struct ep_clock_sample *s, const struct ep_clock_taken *t)
{
    long i;

    ep_buf_reset(&s->name);
    ep_buf_add(&s->name, t->comm.ptr, t->comm.len);
    ep_buf_addc(&s->name, '\0'); /* no string of a record has one */
    ep_buf_add(&s->name, t->op.ptr, t->op.len);
    ep_buf_addc(&s->name, '\0');
    ep_buf_add(&s->name, t->job.ptr, t->job.len);
    i = ep_intern_add(s->names, (struct ep_span){s->name.ptr, s->name.len},
                      MAX_NAMES);
    if (i >= 0 && (size_t)i == s->ncomms) {
        s->comms =
            ep_grow(s->comms, &s->cap_comms, s->ncomms + 1, sizeof *s->comms);
        s->comms[s->ncomms++] = (struct comm){0};
    }
    return i;
}

/* A free place for an end; of a list that was filled by drop(), or new. */
static uint32_t new_end(struct ep_clock_sample *s)
{
    uint32_t i = s->free_end;

    if (i != EP_CLOCK_NONE) {
        s->free_end = s->ends[i].next;
        return i;
    }
    s->ends = ep_grow(s->ends, &s->cap_ends, s->nends + 1, sizeof *s->ends);
    return (uint32_t)s->nends++;
}

static uint32_t new_instance(struct ep_clock_sample *s)
{
    uint32_t i = s->free_instance;

    if (i != EP_CLOCK_NONE) {
        s->free_instance = s->instances[i].next;
        return i;
    }
    s->instances = ep_grow(s->instances, &s->cap_instances, s->ninstances + 1,
                           sizeof *s->instances);
    return (uint32_t)s->ninstances++;
}

/* The instance, made if it is new. */
static uint32_t find_instance(struct ep_clock_sample *s, uint32_t comm,
                              uint64_t seq, uint64_t hash)
{
    uint32_t *bucket = &s->buckets[hash & (BUCKETS - 1)];
    uint32_t i = *bucket;

    while (i != EP_CLOCK_NONE &&
           !(s->instances[i].comm == comm && s->instances[i].seq == seq))
        i = s->instances[i].next;
    if (i != EP_CLOCK_NONE)
        return i;
    i = new_instance(s);
    s->instances[i] =
        (struct ep_clock_instance){hash, seq, comm, EP_CLOCK_NONE, 0, *bucket};
    *bucket = i;
    s->comms[comm].held++;
    s->held++;
    return i;
}

/* Forget instance i, which is in no bucket any more. */
static void drop(struct ep_clock_sample *s, uint32_t i)
{
    struct ep_clock_instance *in = &s->instances[i];
    uint32_t e = in->first;

    while (e != EP_CLOCK_NONE) {
        uint32_t next = s->ends[e].next;

        s->ends[e].next = s->free_end;
        s->free_end = e;
        e = next;
    }
    s->held -= in->n + 1;
    s->comms[in->comm].held -= in->n + 1;
    in->comm = EP_CLOCK_NONE;
    in->next = s->free_instance;
    s->free_instance = i;
}

/* Drop what its communicator's level does not choose. */
static void sweep(struct ep_clock_sample *s)
{
    for (size_t b = 0; b < BUCKETS; b++) {
        uint32_t *at = &s->buckets[b];

        while (*at != EP_CLOCK_NONE) {
            uint32_t i = *at;
            struct ep_clock_instance *in = &s->instances[i];
            const struct comm *c = &s->comms[in->comm];

            if (!c->local && is_chosen(in->hash, c->level)) {
                at = &in->next;
                continue;
            }
            *at = in->next;
            drop(s, i);
        }
    }
}

/* Make room: those with the most give half of it, until 3/4 is left. The
   communicators above half of an even share hold half of all or more. */
static void make_room(struct ep_clock_sample *s)
{
    sweep(s);
    while (s->held > s->max / 4 * 3) {
        size_t share = s->max / 2 / s->ncomms;

        for (size_t i = 0; i < s->ncomms; i++)
            if (s->comms[i].held > share && s->comms[i].level < 63)
                s->comms[i].level++;
        sweep(s);
    }
}

/* All ranks of a communicator on one host? The instance has nranks ends. */
static bool is_local(const struct ep_clock_sample *s,
                     const struct ep_clock_instance *in, int64_t nranks)
{
    uint32_t host = s->ends[in->first].host;
    uint64_t seen = 0;

    for (uint32_t e = in->first; e != EP_CLOCK_NONE; e = s->ends[e].next) {
        int32_t rank = s->ends[e].comm_rank;

        if (s->ends[e].host != host || rank < 0 || rank >= nranks)
            return false;
        seen |= UINT64_C(1) << rank;
    }
    return seen == UINT64_MAX >> (64 - nranks);
}

void ep_clock_sample_take(struct ep_clock_sample *s,
                          const struct ep_clock_taken *t)
{
    struct ep_clock_instance *in;
    uint64_t x, hash;
    long comm, host;
    uint32_t e, i;

    comm = t->nranks == 1 ? -1 : find_comm(s, t);
    if (comm < 0 || s->comms[comm].local)
        return;
    x = t->seq ^ (uint64_t)comm << 40;
    hash = ep_splitmix64(&x);
    if (!is_chosen(hash, s->comms[comm].level) || !is_kept(hash, t))
        return;
    host = ep_intern_add(s->hosts, t->host, MAX_NAMES);
    if (host < 0)
        return;
    i = find_instance(s, (uint32_t)comm, t->seq, hash);
    e = new_end(s);
    in = &s->instances[i];
    s->ends[e] =
        (struct ep_clock_end){t->end, (uint32_t)host, t->comm_rank, in->first};
    in->first = e;
    in->n++;
    s->comms[comm].held++;
    s->held++;
    if (in->n == t->nranks && t->nranks <= LOCAL_RANKS)
        s->comms[comm].local = is_local(s, in, t->nranks);
    if (s->held > s->max)
        make_room(s);
}

const struct ep_clock_instance *
ep_clock_sample_instances(const struct ep_clock_sample *s, size_t *n)
{
    *n = s->ninstances;
    return s->instances;
}

const struct ep_clock_end *ep_clock_sample_ends(const struct ep_clock_sample *s)
{
    return s->ends;
}

size_t ep_clock_sample_hosts(const struct ep_clock_sample *s)
{
    return ep_intern_count(s->hosts);
}

const char *ep_clock_sample_host(const struct ep_clock_sample *s, size_t i)
{
    return ep_intern_name(s->hosts, i);
}
