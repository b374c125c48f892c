/* SPDX-License-Identifier: Apache-2.0 */
/*
 * comms.c - intake: which rank is which member of which communicator; see
 * comms.h. A name is hashed once a call and compared by its hash of 64 bits.
 */
#include "config.h"

#include "detect/comms_impl.h"

#include "base/mem.h"
#include "detect/hash.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct ep_comms *ep_comms_new(double min_change)
{
    struct ep_comms *c = ep_calloc(1, sizeof *c);

    c->least = log1p(min_change);
    c->names = ep_intern_new();
    ep_buf_init(&c->id);
    ep_buf_init(&c->text);
    return c;
}

static void free_member(struct comms_member *m)
{
    free(m->end);
    free(m);
}

static void free_job(struct comms_job *j)
{
    for (size_t i = 0; i < j->ranks; i++)
        if (j->rank[i]) {
            for (uint32_t k = 0; k < j->rank[i]->n; k++)
                free_member(j->rank[i]->in[k].member);
            free(j->rank[i]->in);
            free(j->rank[i]);
        }
    for (size_t i = 0; i < j->groups; i++) {
        free(j->group[i]->member);
        free(j->group[i]->name);
        free(j->group[i]);
    }
    for (size_t i = 0; i < j->tracks; i++)
        comms_track_free(j->track[i]);
    free(j->rank);
    free(j->group);
    free(j->table);
    free(j->track);
    free(j->name);
    ep_intern_free(j->hosts);
    free(j);
}

void ep_comms_free(struct ep_comms *c)
{
    if (!c)
        return;
    for (size_t i = 0; i < ep_intern_count(c->names); i++)
        free_job(c->job[i]);
    free(c->job);
    ep_intern_free(c->names);
    ep_buf_free(&c->id);
    ep_buf_free(&c->text);
    free(c);
}

bool comms_full(struct ep_comms *c, size_t more)
{
    if (more > EP_COMMS_BYTES - c->sum.bytes)
        return true;
    c->sum.bytes += more;
    return false;
}

int32_t comms_host(const struct comms_member *m)
{
    return m->group->job->rank[m->rank]->host;
}

/* ==== Names ==== */

static uint64_t hash_of(struct ep_span s)
{
    uint64_t h = ep_hash_span(s);

    return ep_hash_mix(h, h >> 32);
}

static bool is_job(const struct comms_job *j, struct ep_span name)
{
    return j->len == name.len &&
           (!name.len || memcmp(j->name, name.ptr, name.len) == 0);
}

struct comms_job *comms_job(const struct ep_comms *c, struct ep_span name)
{
    if (c->last && is_job(c->last, name))
        return c->last;
    for (size_t i = 0; i < ep_intern_count(c->names); i++)
        if (is_job(c->job[i], name))
            return c->job[i];
    return NULL;
}

struct comms_job *comms_add_job(struct ep_comms *c, struct ep_span name,
                                struct ep_error *err)
{
    size_t known = ep_intern_count(c->names);
    struct comms_job *j;
    long i;

    if (c->last && is_job(c->last, name))
        return c->last;
    i = ep_intern_add(c->names, name, EP_COMMS_JOBS);
    if (i < 0) {
        (void)ep_error_set(err, EP_ELIMIT, "communication of more than %d jobs",
                           EP_COMMS_JOBS);
        return NULL;
    }
    if ((size_t)i == known) {
        c->job = ep_grow(c->job, &c->cap, known + 1, sizeof(void *));
        j = c->job[i] = ep_calloc(1, sizeof *j);
        j->all = c;
        j->name = ep_strndup(name.len ? name.ptr : "", name.len);
        j->len = name.len;
        j->hosts = ep_intern_new();
        j->first = (double)NAN;
    }
    c->last = c->job[i];
    return c->last;
}

/* ==== Ranks, communicators, members ==== */

struct comms_rank *comms_find_rank(struct comms_job *j, int64_t rank)
{
    size_t i = (size_t)rank, cap = j->ranks;

    if (i >= cap) {
        cap = cap ? cap : 64;
        while (cap <= i)
            cap *= 2;
        if (comms_full(j->all, (cap - j->ranks) * sizeof(void *)))
            return NULL;
        j->rank = ep_realloc(j->rank, cap, sizeof(void *));
        memset(j->rank + j->ranks, 0, (cap - j->ranks) * sizeof(void *));
        j->ranks = cap;
    }
    if (j->rank[i])
        return j->rank[i];
    if (comms_full(j->all, sizeof *j->rank[i]))
        return NULL;
    j->rank[i] = ep_calloc(1, sizeof *j->rank[i]);
    j->rank[i]->pid = j->rank[i]->host = -1;
    return j->rank[i];
}

static bool grow_table(struct comms_job *j)
{
    size_t slots = j->slots ? 2 * j->slots : 64;
    uint32_t *table;

    if (2 * (j->groups + 1) <= j->slots)
        return true;
    if (comms_full(j->all, (slots - j->slots) * sizeof *table))
        return false;
    table = ep_calloc(slots, sizeof *table);
    for (size_t i = 0; i < j->groups; i++) {
        size_t at = j->group[i]->hash & (slots - 1);

        while (table[at])
            at = (at + 1) & (slots - 1);
        table[at] = (uint32_t)i + 1;
    }
    free(j->table);
    j->table = table;
    j->slots = slots;
    return true;
}

static struct comms_group *find_group(struct comms_job *j, struct ep_span name,
                                      uint64_t hash)
{
    struct comms_group *g;
    size_t at;

    if (!grow_table(j))
        return NULL;
    for (at = hash & (j->slots - 1); j->table[at];
         at = (at + 1) & (j->slots - 1))
        if (j->group[j->table[at] - 1]->hash == hash)
            return j->group[j->table[at] - 1];
    if (comms_full(j->all, sizeof *g + name.len + 2 * sizeof(void *)))
        return NULL;
    g = ep_calloc(1, sizeof *g);
    g->job = j;
    g->name = ep_strndup(name.ptr, name.len);
    g->len = name.len;
    g->hash = hash;
    g->nranks = -1;
    j->group = ep_grow(j->group, &j->groups_cap, j->groups + 1, sizeof(void *));
    j->group[j->groups++] = g;
    j->table[at] = (uint32_t)j->groups;
    j->all->sum.groups++;
    return g;
}

struct comms_group *comms_find_group(struct comms_job *j, struct ep_span name)
{
    return find_group(j, name, hash_of(name));
}

/* All are heard, or there is a new one: for now it is not known who is all. */
static void settle(struct comms_group *g)
{
    if (!g->track)
        return;
    g->joined = g->track->begun;
    g->track->want =
        g->nranks > 0 && g->n >= (size_t)g->nranks ? (uint32_t)g->n : 0;
}

/* A place for m->comm_rank in its group. */
static bool make_place(struct comms_group *g, const struct comms_member *m)
{
    size_t i = (size_t)m->comm_rank, cap = g->cap ? g->cap : 2;

    while (cap <= i)
        cap *= 2;
    if (cap > g->cap) {
        if (comms_full(g->job->all, (cap - g->cap) * sizeof(void *)))
            return false;
        g->member = ep_realloc(g->member, cap, sizeof(void *));
        memset(g->member + g->cap, 0, (cap - g->cap) * sizeof(void *));
        g->cap = cap;
    }
    return true;
}

/* Rank m->rank is member m->comm_rank of its group: was it another? */
static void join(struct comms_group *g, struct comms_member *m)
{
    struct comms_member **at = &g->member[m->comm_rank];

    if (!*at)
        g->n++;
    else if ((*at)->rank != m->rank)
        g->mixed = true;
    *at = m;
    settle(g);
}

/* A member of a group that has a place for it; NULL if there is no room. */
static struct comms_member *make_member(struct comms_group *g, int32_t rank,
                                        int32_t comm_rank)
{
    struct comms_member *m;

    if (comms_full(g->job->all, sizeof *m + sizeof *g->job->rank[rank]->in))
        return NULL;
    m = ep_calloc(1, sizeof *m);
    m->group = g;
    m->comm_rank = comm_rank;
    m->rank = rank;
    m->seq = -1;
    m->ts = -(double)INFINITY;
    if (!make_place(g, m)) {
        free_member(m);
        return NULL;
    }
    return m;
}

static void put(struct comms_rank *r, struct comms_member *m)
{
    if (r->n == r->cap) {
        r->cap = r->cap ? 2 * r->cap : 4;
        r->in = ep_realloc(r->in, r->cap, sizeof *r->in);
    }
    r->last = r->n;
    r->in[r->n++] = (struct comms_place){m->group->hash, m};
}

static struct comms_member *new_member(struct comms_job *j,
                                       struct comms_rank *r,
                                       const struct ep_call *call,
                                       uint64_t hash)
{
    struct comms_group *g = find_group(j, call->comm, hash);
    struct comms_member *m = NULL;

    if (g && r->n < COMMS_OF_RANK)
        m = make_member(g, (int32_t)call->rank, (int32_t)call->comm_rank);
    if (!m)
        return NULL;
    join(g, m);
    put(r, m);
    return m;
}

struct comms_member *comms_add_member(struct comms_group *g,
                                      struct comms_rank *r, int32_t rank,
                                      int32_t comm_rank, bool last)
{
    struct comms_member *m;

    for (uint32_t i = 0; i < r->n; i++)
        if (r->in[i].member->group == g)
            return NULL;
    m = make_member(g, rank, comm_rank);
    if (!m)
        return NULL;
    put(r, m); /* owns it from here on */
    if (last && g->member[comm_rank])
        return NULL;
    if (last) {
        g->member[comm_rank] = m;
        g->n++;
    }
    return m;
}

static struct comms_member *find_member(struct comms_job *j,
                                        struct comms_rank *r,
                                        const struct ep_call *call)
{
    uint64_t hash = hash_of(call->comm);

    /* the one of the last call, or the next: calls repeat */
    for (uint32_t i = 0; i < r->n; i++) {
        uint32_t at = r->last + i < r->n ? r->last + i : r->last + i - r->n;

        if (r->in[at].hash == hash) {
            r->last = at;
            return r->in[at].member;
        }
    }
    return new_member(j, r, call, hash);
}

struct comms_track *comms_add_track(struct comms_group *g, int32_t src,
                                    int32_t dst)
{
    struct comms_job *j = g->job;
    struct comms_track *t = comms_track_new(g, src, dst);

    if (!t)
        return NULL;
    j->track = ep_grow(j->track, &j->tracks_cap, j->tracks + 1, sizeof(void *));
    j->track[j->tracks++] = t;
    j->all->sum.pairs += src >= 0;
    return t;
}

static struct comms_end *lookup_end(struct comms_member *m, int32_t peer,
                                    bool send)
{
    for (uint32_t i = 0; i < m->ends; i++) {
        uint32_t at =
            m->last + i < m->ends ? m->last + i : m->last + i - m->ends;

        if (m->end[at].peer == peer && m->end[at].send == send) {
            m->last = at;
            return &m->end[at];
        }
    }
    return NULL;
}

/* The other end, if it was heard, knows the series. */
static struct comms_end *find_end(struct comms_member *m, int32_t peer,
                                  bool send)
{
    struct comms_end *e = lookup_end(m, peer, send), *other = NULL;
    struct comms_group *g = m->group;
    struct comms_track *t;

    if (e)
        return e;
    if (m->ends == COMMS_ENDS || comms_full(g->job->all, sizeof *e))
        return NULL;
    if ((size_t)peer < g->cap && g->member[peer])
        other = lookup_end(g->member[peer], m->comm_rank, !send);
    t = other ? other->track
              : comms_add_track(g, send ? m->comm_rank : peer,
                                send ? peer : m->comm_rank);
    if (!t)
        return NULL;
    if (!(m->ends & (m->ends - 1))) /* a power of 2: full */
        m->end =
            ep_realloc(m->end, m->ends ? 2 * (size_t)m->ends : 1, sizeof *e);
    m->last = m->ends;
    e = &m->end[m->ends++];
    *e = (struct comms_end){peer, send, -1, 0, -(double)INFINITY, t};
    return e;
}

/* ==== Calls ==== */

static void restart(struct comms_rank *r, int64_t pid)
{
    if (r->pid >= 0) {
        r->host = -1; /* perhaps it is elsewhere now */
        for (uint32_t i = 0; i < r->n; i++) {
            struct comms_member *m = r->in[i].member;

            if (m->group->track)
                comms_forget(m->group->track, m->ts);
            for (uint32_t k = 0; k < m->ends; k++) {
                comms_forget(m->end[k].track, m->end[k].ts);
                m->end[k].seq = -1;
                m->end[k].count = 0;
            }
            m->seq = -1;
            m->count = 0;
        }
    }
    r->pid = pid;
}

/*
 * The number of the call, by its own or by count; -1 if it was there already.
 * One that falls while time goes on: numbers begin anew.
 */
static int64_t number(struct comms_track *t, int64_t told, int64_t *seq,
                      int64_t *count, double *last, double ts)
{
    int64_t n = *count;

    *count += 1;
    if (told >= 0 && !t->counted) {
        n = told;
        if (n == *seq)
            return -1;
        if (n < *seq && ts > *last)
            comms_forget(t, *last);
    }
    *seq = n;
    *last = ts;
    return n;
}

static uint64_t kind_of(const struct ep_call *call)
{
    uint64_t h = ep_hash_mix(call->p2p, call->p2p ? 0 : hash_of(call->op));

    h = ep_hash_mix(h, (uint64_t)call->bytes);
    h = ep_hash_mix(h, (uint64_t)call->nranks);
    return ep_hash_mix(h, h >> 32);
}

static bool has_word(struct ep_span s, const char *word)
{
    size_t n = strlen(word);

    for (size_t i = 0; i + n <= s.len; i++)
        if (memcmp(s.ptr + i, word, n) == 0)
            return true;
    return false;
}

static bool take_message(struct comms_member *m, const struct ep_call *call,
                         struct comms_arrival *a)
{
    bool plain = call->op.len == 4; /* "send", or "recv" */
    bool send = plain ? call->op.ptr[0] == 's' : has_word(call->op, "send");
    bool recv = plain ? call->op.ptr[0] == 'r' : has_word(call->op, "recv");
    struct comms_end *e;

    if (send == recv || call->peer < 0 || call->peer >= EP_CALLS_RANKS ||
        call->peer == m->comm_rank)
        return false;
    e = find_end(m, (int32_t)call->peer, send);
    if (!e)
        return false;
    a->seq = number(e->track, call->seq, &e->seq, &e->count, &e->ts, a->ts);
    if (a->seq >= 0)
        comms_arrive(e->track, a);
    return true;
}

static struct comms_track *first_collective(struct comms_group *g,
                                            const struct ep_call *call)
{
    if (g->track)
        return g->track;
    g->track = comms_add_track(g, -1, -1);
    if (!g->track)
        return NULL;
    g->nranks = call->nranks;
    g->full = has_word(call->op, "all_to_all");
    settle(g);
    return g->track;
}

static bool take_collective(struct comms_member *m, const struct ep_call *call,
                            struct comms_arrival *a)
{
    if (call->nranks == 1)
        return true; /* alone: nothing is transferred */
    if (!m->track)
        m->track = first_collective(m->group, call);
    if (!m->track)
        return false;
    a->seq = number(m->track, call->seq, &m->seq, &m->count, &m->ts, a->ts);
    if (a->seq >= 0)
        comms_arrive(m->track, a);
    return true;
}

static bool take(struct comms_job *j, const struct ep_call *call)
{
    struct comms_arrival a = {-1, call->bytes, (int32_t)call->comm_rank,
                              0,  call->ts,    call->dur};
    struct comms_rank *r = comms_find_rank(j, call->rank);
    struct comms_member *m;

    if (!r)
        return false;
    if (call->pid >= 0 && call->pid != r->pid)
        restart(r, call->pid);
    if (r->host < 0 && call->host.len)
        r->host = (int32_t)ep_intern_add(j->hosts, call->host, EP_CALLS_RANKS);
    m = find_member(j, r, call);
    if (!m)
        return false;
    if (m->comm_rank != call->comm_rank) {
        m->group->mixed = true; /* a rank is one member only */
        return false;
    }
    a.kind = kind_of(call);
    return call->p2p ? take_message(m, call, &a) : take_collective(m, call, &a);
}

int ep_comms_take(struct ep_comms *c, const struct ep_call *call,
                  struct ep_error *err)
{
    struct comms_job *j;

    c->sum.calls++;
    if (call->rank < 0 || call->rank >= EP_CALLS_RANKS || !call->comm.len ||
        call->comm_rank < 0 || call->comm_rank >= EP_CALLS_RANKS ||
        !(call->dur > 0) || !isfinite(call->dur) || !isfinite(call->ts)) {
        c->sum.unused++;
        return 0;
    }
    j = comms_add_job(c, call->job, err);
    if (!j)
        return EP_ELIMIT;
    if (isnan(j->first) || call->ts < j->first)
        j->first = call->ts;
    if (!take(j, call))
        c->sum.unused++;
    return 0;
}

void ep_comms_sum(const struct ep_comms *c, struct ep_comms_summary *out)
{
    *out = c->sum;
}
