/* SPDX-License-Identifier: Apache-2.0 */
/*
 * comms_archive.c - communicators, their members and transfers in bytes; see
 * base/archive.h.
 *
 * Of each job hosts and communicators come first, then series of transfers,
 * which are of one of them, then ranks, whose memberships refer to both. Room is
 * counted as in comms.c, so that what is loaded keeps to EP_COMMS_BYTES, and
 * fills it as the saved one did. Hashes, and what only makes things faster, are
 * not saved.
 */
#include "config.h"

#include "detect/comms_impl.h"

#include "base/mem.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NAME_BYTES 65536
#define RANK_MAX ((uint64_t)EP_CALLS_RANKS - 1)
#define COUNT_MAX (UINT64_C(1) << 62)

/* Room for so many bytes. */
static bool room(struct ep_archive *a, struct ep_comms *c, size_t bytes)
{
    if (a->saving)
        return true;
    ep_archive_require(a, !comms_full(c, bytes),
                       "there is more than there may be");
    return ep_archive_ok(a);
}

static float single(struct ep_archive *a, float v)
{
    uint32_t u;

    memcpy(&u, &v, sizeof u);
    u = (uint32_t)ep_archive_u64(a, u, UINT32_MAX);
    memcpy(&v, &u, sizeof v);
    return v;
}

/* A time of a call, or never. */
static double when(struct ep_archive *a, double ts)
{
    ts = ep_archive_f64(a, ts);
    ep_archive_require(a, isfinite(ts) || ts == -(double)INFINITY,
                       "a time is none");
    return ts;
}

static int64_t number(struct ep_archive *a, int64_t seq)
{
    return ep_archive_i64(a, seq, -1, INT64_MAX - 1);
}

/* The i-th name of a set. */
static struct ep_span name(struct ep_archive *a, const struct ep_intern *t,
                           size_t i)
{
    struct ep_span none = {"", 0};

    return ep_archive_span(a, a->saving ? ep_intern_span(t, i) : none,
                           NAME_BYTES);
}

/* ==== Series of transfers ==== */

/* Of one that is over its number and time count alone. */
static void slot(struct ep_archive *a, struct comms_track *t, uint32_t at)
{
    struct comms_slot s = {.n = 0};
    struct comms_slot *to;

    if (a->saving)
        s = t->slot[at];
    s.seq = ep_archive_i64(a, s.seq, 0, INT64_MAX - 1);
    s.ts = ep_archive_finite(a, s.ts);
    s.done = ep_archive_bool(a, s.done);
    if (s.done) {
        s.n = 1;
    } else {
        s.kind = ep_archive_bits(a, s.kind);
        s.bytes = ep_archive_i64(a, s.bytes, INT64_MIN, INT64_MAX);
        s.least = single(a, s.least);
        s.second = single(a, s.second);
        s.who = (int32_t)ep_archive_u64(a, (uint64_t)s.who, RANK_MAX);
        s.n = (uint32_t)ep_archive_u64(a, s.n, UINT32_MAX);
        ep_archive_require(a, s.n > 0 && s.least > 0, "a call has no ends");
    }
    if (a->saving || !ep_archive_ok(a))
        return;
    to = &t->slot[(uint64_t)s.seq & (t->slots - 1)];
    ep_archive_require(a, !to->n, "two calls have one place");
    if (ep_archive_ok(a))
        *to = s;
}

static void slots(struct ep_archive *a, struct ep_comms *c,
                  struct comms_track *t)
{
    uint32_t had = t->slots, n = 0, at = 0;
    uint32_t many = (uint32_t)ep_archive_u64(a, t->slots, COMMS_SLOTS_MAX);

    ep_archive_require(a, many >= COMMS_SLOTS && !(many & (many - 1)),
                       "places of calls are no power of 2");
    if (!room(a, c, (many - had) * sizeof *t->slot) || !ep_archive_ok(a))
        return;
    if (!a->saving) {
        free(t->slot);
        t->slot = ep_calloc(many, sizeof *t->slot);
        t->slots = many;
    }
    for (uint32_t i = 0; i < t->slots; i++)
        n += t->slot[i].n > 0;
    n = (uint32_t)ep_archive_size(a, n, many, 10);
    for (uint32_t i = 0; i < n && ep_archive_ok(a); i++, at++) {
        while (a->saving && !t->slot[at].n)
            at++;
        slot(a, t, at);
    }
}

/* Bins, the oldest of each size first: that is where they are then. */
static void past(struct ep_archive *a, struct ep_comms *c, struct comms_past *p)
{
    uint8_t n = (uint8_t)ep_archive_size(a, p->levels, COMMS_LEVELS, 1);

    p->best = single(a, p->best);
    if (!a->saving) {
        if (!n || !room(a, c, n * sizeof *p->level))
            return;
        p->level = ep_calloc(n, sizeof *p->level);
        p->levels = n;
    }
    for (unsigned k = 0; k < p->levels && ep_archive_ok(a); k++) {
        p->n[k] = (uint8_t)ep_archive_u64(a, p->n[k], COMMS_BIN);
        for (unsigned i = 0; i < p->n[k] && ep_archive_ok(a); i++) {
            unsigned at = (p->head[k] + i) % COMMS_BIN;

            p->level[k].t[at] = ep_archive_finite(a, p->level[k].t[at]);
            p->level[k].v[at] = single(a, p->level[k].v[at]);
        }
    }
}

static void kinds(struct ep_archive *a, struct ep_comms *c,
                  struct comms_track *t)
{
    uint32_t n = (uint32_t)ep_archive_size(a, t->kinds, COMMS_KINDS, 17);

    if (!a->saving) {
        if (!n || !room(a, c, n * sizeof *t->kind))
            return;
        t->kind = ep_calloc(n, sizeof *t->kind);
        t->kinds = n;
    }
    for (uint32_t i = 0; i < n && ep_archive_ok(a); i++) {
        t->kind[i].key = ep_archive_bits(a, t->kind[i].key);
        t->kind[i].ref = ep_archive_finite(a, t->kind[i].ref);
        t->kind[i].n = ep_archive_u64(a, t->kind[i].n, COUNT_MAX);
    }
}

/* Who was late. The ring is as it was. */
static void lates(struct ep_archive *a, struct ep_comms *c,
                  struct comms_track *t)
{
    uint32_t n;

    if (!ep_archive_bool(a, t->late != NULL))
        return;
    t->lates = (uint32_t)ep_archive_u64(a, t->lates, UINT32_MAX);
    n = t->lates < COMMS_LATES ? t->lates : COMMS_LATES;
    if (!a->saving) {
        if (!room(a, c, COMMS_LATES * sizeof *t->late))
            return;
        t->late = ep_calloc(COMMS_LATES, sizeof *t->late);
    }
    for (uint32_t i = 0; t->late && i < n && ep_archive_ok(a); i++) {
        struct comms_late *l = &t->late[i];

        l->ts = ep_archive_finite(a, l->ts);
        l->until = single(a, l->until);
        l->gap = single(a, l->gap);
        l->who = (int32_t)ep_archive_u64(a, (uint64_t)l->who, RANK_MAX);
        l->n = (uint32_t)ep_archive_u64(a, l->n, COMMS_RUN);
        ep_archive_require(a, l->n > 0, "nobody was late in no call");
    }
}

static void track(struct ep_archive *a, struct ep_comms *c,
                  struct comms_track *t)
{
    t->want = (uint32_t)ep_archive_u64(a, t->want, UINT32_MAX);
    t->lost = (uint32_t)ep_archive_u64(a, t->lost, UINT32_MAX / 2);
    t->begun = ep_archive_u64(a, t->begun, COUNT_MAX);
    t->counted = ep_archive_bool(a, t->counted);
    t->calls = ep_archive_u64(a, t->calls, COUNT_MAX);
    t->mixed = when(a, t->mixed);
    slots(a, c, t);
    past(a, c, &t->past);
    kinds(a, c, t);
    lates(a, c, t);
}

static void tracks(struct ep_archive *a, struct comms_job *j)
{
    size_t n = ep_archive_size(a, j->tracks, EP_COMMS_BYTES, 20);

    for (size_t i = 0; i < n && ep_archive_ok(a); i++) {
        struct comms_track *t = a->saving ? j->track[i] : NULL;
        size_t g = (size_t)ep_archive_u64(a, t ? t->group->at : 0,
                                          j->groups ? j->groups - 1 : 0);
        int32_t src =
            (int32_t)ep_archive_i64(a, t ? t->src : -1, -1, (int64_t)RANK_MAX);
        int32_t dst = src < 0 ? -1
                              : (int32_t)ep_archive_u64(
                                    a, t ? (uint64_t)t->dst : 0, RANK_MAX);

        ep_archive_require(
            a, t || (j->groups && (src < 0 ? !j->group[g]->track : src != dst)),
            "a series of transfers has no ends");
        if (!t && ep_archive_ok(a)) {
            t = comms_add_track(j->group[g], src, dst);
            ep_archive_require(a, t != NULL, "there is more than there may be");
            if (t && src < 0)
                j->group[g]->track = t;
        }
        if (t && ep_archive_ok(a))
            track(a, j->all, t);
        if (t)
            t->at = i;
    }
}

/* ==== Communicators ==== */

static void groups(struct ep_archive *a, struct comms_job *j)
{
    size_t n = ep_archive_size(a, j->groups, EP_COMMS_BYTES, 6);

    for (size_t i = 0; i < n && ep_archive_ok(a); i++) {
        struct comms_group *g = a->saving ? j->group[i] : NULL;
        struct ep_span s = {"", 0};

        if (g)
            s = (struct ep_span){g->name, g->len};
        s = ep_archive_span(a, s, NAME_BYTES);
        if (!g && ep_archive_ok(a)) {
            g = comms_find_group(j, s);
            ep_archive_require(a, g && j->groups == i + 1,
                               "a communicator is there twice");
        }
        if (!g || !ep_archive_ok(a))
            return;
        g->at = i;
        g->nranks = ep_archive_i64(a, g->nranks, INT64_MIN, INT64_MAX);
        g->joined = ep_archive_u64(a, g->joined, COUNT_MAX);
        g->mixed = ep_archive_bool(a, g->mixed);
        g->full = ep_archive_bool(a, g->full);
    }
}

/* ==== Ranks ==== */

/* The series that an end of a pair is of. */
static bool is_its(const struct comms_track *t, const struct comms_member *m,
                   const struct comms_end *e)
{
    return t->group == m->group &&
           t->src == (e->send ? m->comm_rank : e->peer) &&
           t->dst == (e->send ? e->peer : m->comm_rank);
}

static void ends(struct ep_archive *a, struct comms_job *j,
                 struct comms_member *m)
{
    uint32_t n = (uint32_t)ep_archive_size(a, m->ends, COMMS_ENDS, 13);

    if (!a->saving && n) {
        size_t cap = 1;

        while (cap < n)
            cap *= 2;
        if (!room(a, j->all, n * sizeof *m->end))
            return;
        m->end = ep_calloc(cap, sizeof *m->end);
    }
    for (uint32_t i = 0; i < n && ep_archive_ok(a); i++) {
        struct comms_end *e = &m->end[i];
        size_t t = a->saving ? e->track->at : 0;

        e->peer = (int32_t)ep_archive_u64(a, (uint64_t)e->peer, RANK_MAX);
        e->send = ep_archive_bool(a, e->send);
        e->seq = number(a, e->seq);
        e->count = ep_archive_i64(a, e->count, 0, INT64_MAX / 2);
        e->ts = when(a, e->ts);
        t = (size_t)ep_archive_u64(a, t, j->tracks ? j->tracks - 1 : 0);
        ep_archive_require(a, t < j->tracks && is_its(j->track[t], m, e),
                           "an end is of other transfers");
        if (!ep_archive_ok(a))
            return;
        e->track = j->track[t];
        m->ends = a->saving ? n : i + 1;
    }
}

static void member(struct ep_archive *a, struct comms_job *j,
                   struct comms_member *m)
{
    bool has = ep_archive_bool(a, m->track != NULL);

    ep_archive_require(a, !has || m->group->track,
                       "a rank has a part in no transfers");
    if (!a->saving)
        m->track = has ? m->group->track : NULL;
    m->seq = number(a, m->seq);
    m->count = ep_archive_i64(a, m->count, 0, INT64_MAX / 2);
    m->ts = when(a, m->ts);
    ends(a, j, m);
}

/* Its memberships, of each whether it is the last one that came to its place. */
static void members(struct ep_archive *a, struct comms_job *j, size_t rank)
{
    struct comms_rank *r = j->rank[rank];
    uint32_t n = (uint32_t)ep_archive_size(a, r->n, COMMS_OF_RANK, 13);

    for (uint32_t i = 0; i < n && ep_archive_ok(a); i++) {
        struct comms_member *m = a->saving ? r->in[i].member : NULL;
        size_t g = (size_t)ep_archive_u64(a, m ? m->group->at : 0,
                                          j->groups ? j->groups - 1 : 0);
        int32_t place = (int32_t)ep_archive_u64(
            a, m ? (uint64_t)m->comm_rank : 0, RANK_MAX);
        bool last =
            ep_archive_bool(a, m && m->group->member[m->comm_rank] == m);

        ep_archive_require(a, g < j->groups, "a rank is in no communicator");
        if (!m && ep_archive_ok(a)) {
            m = comms_add_member(j->group[g], r, (int32_t)rank, place, last);
            ep_archive_require(a, m != NULL,
                               "two ranks have a place, or one has two");
        }
        if (m && ep_archive_ok(a))
            member(a, j, m);
    }
}

static void ranks(struct ep_archive *a, struct comms_job *j)
{
    size_t n = 0, at = 0, from = 0;

    for (size_t i = 0; i < j->ranks; i++)
        n += j->rank[i] != NULL;
    n = ep_archive_size(a, n, EP_CALLS_RANKS, 4);
    for (size_t k = 0; k < n && ep_archive_ok(a); k++) {
        struct comms_rank *r;

        for (at = from; a->saving && !j->rank[at];)
            at++;
        at = from +
             (size_t)ep_archive_u64(a, a->saving ? at - from : 0, RANK_MAX);
        ep_archive_require(a, at <= RANK_MAX, "a rank is too high");
        if (!ep_archive_ok(a))
            return;
        r = a->saving ? j->rank[at] : comms_find_rank(j, (int64_t)at);
        ep_archive_require(a, r != NULL, "there is more than there may be");
        if (!r)
            return;
        r->pid = ep_archive_i64(a, r->pid, -1, INT64_MAX);
        r->host = (int32_t)ep_archive_i64(
            a, r->host, -1, (int64_t)ep_intern_count(j->hosts) - 1);
        members(a, j, at);
        from = at + 1;
    }
}

static void hosts(struct ep_archive *a, struct comms_job *j)
{
    size_t n = ep_archive_size(a, ep_intern_count(j->hosts), EP_CALLS_RANKS, 1);

    for (size_t i = 0; i < n && ep_archive_ok(a); i++) {
        struct ep_span host = name(a, j->hosts, i);

        if (!a->saving && ep_archive_ok(a))
            ep_archive_require(
                a, ep_intern_add(j->hosts, host, EP_CALLS_RANKS) == (long)i,
                "a host is there twice");
    }
}

/* ==== All of it ==== */

void ep_comms_archive(struct ep_archive *a, struct ep_comms *c)
{
    size_t n = ep_archive_size(a, ep_intern_count(c->names), EP_COMMS_JOBS, 6);

    for (size_t i = 0; i < n && ep_archive_ok(a); i++) {
        struct ep_span s = name(a, c->names, i);
        struct comms_job *j = a->saving ? c->job[i] : NULL;

        if (!j && ep_archive_ok(a)) {
            j = comms_add_job(c, s, NULL);
            ep_archive_require(a, ep_intern_count(c->names) == i + 1,
                               "two jobs have one name");
        }
        if (!j || !ep_archive_ok(a))
            return;
        j->first = ep_archive_f64(a, j->first);
        hosts(a, j);
        groups(a, j);
        tracks(a, j);
        ranks(a, j);
    }
}
