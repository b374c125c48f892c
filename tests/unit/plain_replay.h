/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plain_replay.h - training steps simulated the plain way, for tests of
 * lib/replay, its bench and its example: no graph, no topological order.
 *
 * Each rank (one stage of one data-parallel rank) has streams, queues of
 * operations that run one after the other. A simulation goes round the
 * streams and starts what is at the head of a queue if the few things that it
 * needs are over; a message or collective is over when all of its members
 * have started. It ends when all queues are empty.
 */
#ifndef EP_PLAIN_REPLAY_H
#define EP_PLAIN_REPLAY_H

#include "base/mem.h"
#include "base/rng.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    P_FWD,
    P_BWD,
    P_FS,
    P_FR,
    P_BS,
    P_BR,
    P_AG,
    P_RS,
    P_LN,
    P_EMB,
    P_SEP,
    P_CLIP,
    P_OPT,
    P_GC,
    P_TYPES
};
static const char *const plain_names[P_TYPES] = {"forward-compute",
                                                 "backward-compute",
                                                 "forward-send",
                                                 "forward-recv",
                                                 "backward-send",
                                                 "backward-recv",
                                                 "params-all-gather",
                                                 "grads-reduce-scatter",
                                                 "layernorm-grads-all-reduce",
                                                 "embedding-grads-all-reduce",
                                                 "separate-grads-all-reduce",
                                                 "optimizer-clip-main-grad",
                                                 "optimizer",
                                                 "gc"};

enum { P_COMPUTE, P_SFS, P_SFR, P_SBS, P_SBR, P_DP, P_STREAMS };
enum { PLAIN_1F1B, PLAIN_GPIPE };
enum { PLAIN_NEEDS = 4, PLAIN_NONE = -1 };

struct plain_op {
    int type, d, p, mb, chunk, seq;
    int need[PLAIN_NEEDS], nneed;
    int group; /* PLAIN_NONE: alone */
    double cost, delay, start, end;
    bool started, over, noop;
};

struct plain_queue {
    int *op;
    int n, cap, head;
};

struct plain_job {
    int dp, pp, vpp, schedule;
    int mb[256]; /* micro-batches of each data-parallel rank; multiples of pp
                    with vpp > 1 */
    bool gather, gc, layernorm, embedding, overlap, clip;
    bool noops; /* messages of nobody are recorded, too */
    struct plain_op *op;
    int n, cap;
    struct plain_queue *queue; /* [dp][pp][P_STREAMS] */
    int *seq;                  /* [dp][pp][P_TYPES] */
    int *first;                /* [dp * pp + 1] where a rank's operations are */
    int groups;
    int *left; /* [groups] members that have not started */
    double *latest;
};

static inline int plain_rank(const struct plain_job *j, int d, int p)
{
    return d * j->pp + p;
}

static inline int plain_add(struct plain_job *j, int type, int d, int p,
                            int stream)
{
    struct plain_queue *q = &j->queue[plain_rank(j, d, p) * P_STREAMS + stream];
    struct plain_op *op;

    if (j->n == j->cap) {
        j->cap = j->cap ? 2 * j->cap : 256;
        j->op = ep_realloc(j->op, (size_t)j->cap, sizeof *j->op);
    }
    if (q->n == q->cap) {
        q->cap = q->cap ? 2 * q->cap : 64;
        q->op = ep_realloc(q->op, (size_t)q->cap, sizeof *q->op);
    }
    op = &j->op[j->n];
    *op = (struct plain_op){.type = type,
                            .d = d,
                            .p = p,
                            .mb = -1,
                            .chunk = -1,
                            .group = PLAIN_NONE};
    op->seq = j->seq[plain_rank(j, d, p) * P_TYPES + type]++;
    q->op[q->n++] = j->n;
    return j->n++;
}

static inline void plain_need(struct plain_job *j, int op, int before)
{
    if (before != PLAIN_NONE)
        j->op[op].need[j->op[op].nneed++] = before;
}

/* One computation of a schedule. */
struct plain_turn {
    bool back;
    int mb, chunk;
};

/* Forward computations of a stage in their order, and backward ones. */
static inline struct plain_turn plain_virtual(const struct plain_job *j, int m,
                                              int k, bool back)
{
    struct plain_turn t = {.back = back};
    int pp = j->pp, v = j->vpp;

    if (j->schedule == PLAIN_GPIPE || v == 1) {
        t.chunk = k / m;
        t.mb = k % m;
    } else {
        t.chunk = k / pp % v;
        t.mb = k / (pp * v) * pp + k % pp;
    }
    if (back)
        t.chunk = v - 1 - t.chunk;
    return t;
}

/* The turns of a stage; returns how many. turn has room for 2 m vpp. */
static inline int plain_turns(const struct plain_job *j, int m, int p,
                              struct plain_turn *turn)
{
    int total = m * j->vpp, warm, n = 0, f = 0, b = 0;

    if (j->schedule == PLAIN_GPIPE)
        warm = total;
    else if (j->vpp == 1)
        warm = j->pp - 1 - p;
    else
        warm = (j->pp - 1 - p) * 2 + (j->vpp - 1) * j->pp;
    warm = warm < total ? warm : total;
    while (f < warm)
        turn[n++] = plain_virtual(j, m, f++, false);
    while (b < total) {
        if (f < total)
            turn[n++] = plain_virtual(j, m, f++, false);
        turn[n++] = plain_virtual(j, m, b++, true);
    }
    return n;
}

/* Messages of a computation: with a neighbour, or none that is recorded. */
static inline int plain_message(struct plain_job *j, int type, int stream,
                                int d, int p, bool carries)
{
    int m;

    if (j->pp == 1 || (!carries && !j->noops))
        return PLAIN_NONE;
    m = plain_add(j, type, d, p, stream);
    j->op[m].noop = !carries;
    return m;
}

/* Receive, compute, send; returns the computation. prev: the last of the
   direction. */
static inline int plain_compute(struct plain_job *j, int d, int p,
                                struct plain_turn t, int prev)
{
    int place = t.chunk * j->pp + p, last = j->vpp * j->pp - 1;
    bool from = t.back ? place < last : place > 0;
    bool to = t.back ? place > 0 : place < last;
    int recv = plain_message(j, t.back ? P_BR : P_FR, t.back ? P_SBR : P_SFR, d,
                             p, from);
    int c = plain_add(j, t.back ? P_BWD : P_FWD, d, p, P_COMPUTE);
    int send = plain_message(j, t.back ? P_BS : P_FS, t.back ? P_SBS : P_SFS, d,
                             p, to);

    j->op[c].mb = t.mb;
    j->op[c].chunk = t.chunk;
    if (recv != PLAIN_NONE) {
        plain_need(j, c, j->op[recv].noop ? PLAIN_NONE : recv);
        plain_need(j, recv, prev);
    }
    if (send != PLAIN_NONE)
        plain_need(j, send, c);
    return c;
}

/* What comes behind the last computation. */
static inline void plain_tail(struct plain_job *j, int d, int p,
                              const int *last_back)
{
    int reduced = PLAIN_NONE, v = j->vpp, op, before = PLAIN_NONE;
    bool end = p == 0 || p == j->pp - 1, joined = false;

    if (j->overlap)
        for (int c = v - 1; c >= 0; c--) {
            reduced = plain_add(j, P_RS, d, p, P_DP);
            j->op[reduced].chunk = c;
            plain_need(j, reduced, last_back[c]);
        }
    if (j->gc)
        before = plain_add(j, P_GC, d, p, P_COMPUTE);
    for (int t = 0; t < 4; t++) {
        static const int types[] = {P_LN, P_EMB, P_RS, P_SEP};

        if ((t == 0 && !j->layernorm) || (t == 1 && !(j->embedding && end)) ||
            (t == 2 && j->overlap) || (t == 3 && !j->overlap))
            continue;
        for (int c = 0; c < (t == 2 ? v : 1); c++) {
            op = plain_add(j, types[t], d, p, t == 2 ? P_DP : P_COMPUTE);
            j->op[op].chunk = t == 2 ? c : -1;
            if (t == 2) /* another stream: what the chain has come to */
                plain_need(j, op, before != PLAIN_NONE ? before : last_back[0]);
            if (!joined)
                plain_need(j, op, reduced);
            joined = true;
            before = op;
        }
    }
    for (int t = 0; t < 2; t++) {
        if (t == 0 && !j->clip)
            continue;
        op = plain_add(j, t == 0 ? P_CLIP : P_OPT, d, p, P_COMPUTE);
        plain_need(j, op, before);
        if (!joined)
            plain_need(j, op, reduced);
        joined = true;
        before = op;
    }
}

static inline void plain_rank_ops(struct plain_job *j, int d, int p)
{
    int m = j->mb[d], v = j->vpp, ag[16], last_back[16], n;
    int prev[2] = {PLAIN_NONE, PLAIN_NONE}, fwd[2] = {PLAIN_NONE, PLAIN_NONE};
    struct plain_turn *turn =
        ep_calloc(2 * (size_t)m * (size_t)v, sizeof *turn);
    bool seen[16] = {false}, had[2] = {false, false}, back = false;

    for (int c = 0; c < v && j->gather; c++) {
        ag[c] = plain_add(j, P_AG, d, p, P_DP);
        j->op[ag[c]].chunk = c;
    }
    n = plain_turns(j, m, p, turn);
    for (int i = 0; i < n; i++) {
        int first = j->n,
            op = plain_compute(j, d, p, turn[i], prev[turn[i].back]);

        if (!turn[i].back && j->gather && !seen[turn[i].chunk])
            plain_need(j, op, ag[turn[i].chunk]);
        if (!turn[i].back) {
            seen[turn[i].chunk] = true;
            if (!back) {
                fwd[0] = fwd[1];
                fwd[1] = op;
            }
        } else {
            back = true;
            last_back[turn[i].chunk] = op;
        }
        /* of the first backward messages that carry something */
        for (int k = first; turn[i].back && k < j->n; k++) {
            int which = j->op[k].type == P_BS;

            if ((j->op[k].type != P_BS && j->op[k].type != P_BR) ||
                j->op[k].noop || had[which])
                continue;
            had[which] = true;
            plain_need(j, k, fwd[0]);
        }
        prev[turn[i].back] = op;
    }
    plain_tail(j, d, p, last_back);
    free(turn);
}

/* ---- groups ----------------------------------------------------------- */

static inline int plain_find(const struct plain_job *j, int type, int d, int p,
                             int chunk, int mb)
{
    /* the message of a computation stands beside it in the list */
    int compute = type == P_FS || type == P_FR ? P_FWD : P_BWD;
    int step = type == P_FS || type == P_BS ? 1 : -1;

    for (int i = j->first[plain_rank(j, d, p)];
         i < j->first[plain_rank(j, d, p) + 1]; i++) {
        const struct plain_op *c = &j->op[i];

        if (c->type == compute && c->chunk == chunk && c->mb == mb)
            return i + step;
    }
    abort();
}

static inline void plain_pair(struct plain_job *j)
{
    for (int i = 0; i < j->n; i++) {
        const struct plain_op *s = &j->op[i], *c = &j->op[i ? i - 1 : 0];
        int place, peer;

        if ((s->type != P_FS && s->type != P_BS) || s->noop)
            continue;
        place = c->chunk * j->pp + c->p + (s->type == P_FS ? 1 : -1);
        peer = plain_find(j, s->type == P_FS ? P_FR : P_BR, s->d, place % j->pp,
                          place / j->pp, c->mb);
        j->op[i].group = j->op[peer].group = j->groups++;
    }
}

static inline bool plain_is_collective(int type)
{
    return type == P_AG || type == P_RS || type == P_SEP || type == P_EMB ||
           type == P_CLIP;
}

static inline void plain_collect(struct plain_job *j)
{
    int *all = ep_calloc((size_t)j->n, sizeof *all), n = 0;

    for (int i = 0; i < j->n; i++)
        if (plain_is_collective(j->op[i].type))
            all[n++] = i;
    for (int i = 0; i < n; i++) {
        const struct plain_op *a = &j->op[all[i]];
        bool emb = a->type == P_EMB, clip = a->type == P_CLIP;

        if (a->group != PLAIN_NONE)
            continue;
        for (int k = i; k < n; k++) {
            const struct plain_op *b = &j->op[all[k]];

            if (b->type == a->type && b->seq == a->seq &&
                (clip || (emb ? b->d == a->d : b->p == a->p)))
                j->op[all[k]].group = j->groups;
        }
        j->groups++;
    }
    free(all);
}

/* All operations of a job; costs and delays are 0. */
static inline void plain_make(struct plain_job *j)
{
    size_t ranks = (size_t)j->dp * (size_t)j->pp;

    j->op = NULL;
    j->n = j->cap = j->groups = 0;
    j->queue = ep_calloc(ranks * P_STREAMS, sizeof *j->queue);
    j->seq = ep_calloc(ranks * P_TYPES, sizeof *j->seq);
    j->first = ep_calloc(ranks + 1, sizeof *j->first);
    for (int d = 0; d < j->dp; d++)
        for (int p = 0; p < j->pp; p++) {
            plain_rank_ops(j, d, p);
            j->first[plain_rank(j, d, p) + 1] = j->n;
        }
    plain_pair(j);
    plain_collect(j);
    j->left = ep_calloc((size_t)j->groups, sizeof *j->left);
    j->latest = ep_calloc((size_t)j->groups, sizeof *j->latest);
}

static inline void plain_free(struct plain_job *j)
{
    for (int i = 0; i < j->dp * j->pp * P_STREAMS; i++)
        free(j->queue[i].op);
    free(j->queue);
    free(j->seq);
    free(j->first);
    free(j->op);
    free(j->left);
    free(j->latest);
}

/* ---- simulation ------------------------------------------------------- */

/* Start the head of a queue if that is possible, and take it off if it is
   over. last: when the one before it ended. */
static inline bool plain_try(struct plain_job *j, struct plain_queue *q)
{
    struct plain_op *op;
    double ready = 0;

    if (q->head == q->n)
        return false;
    op = &j->op[q->op[q->head]];
    if (!op->started) {
        if (q->head)
            ready = j->op[q->op[q->head - 1]].end;
        for (int i = 0; i < op->nneed; i++) {
            if (!j->op[op->need[i]].over)
                return false;
            ready = fmax(ready, j->op[op->need[i]].end);
        }
        op->started = true;
        op->start = ready + op->delay;
        if (op->group == PLAIN_NONE) {
            op->end = op->start + op->cost;
        } else {
            j->latest[op->group] = fmax(j->latest[op->group], op->start);
            j->left[op->group]--;
        }
    }
    if (op->group != PLAIN_NONE) {
        if (j->left[op->group])
            return false;
        op->end = j->latest[op->group] + op->cost;
    }
    op->over = true;
    q->head++;
    return true;
}

/* Messages of nobody do not hold up their stream: they begin and end with
   the one before. */
static inline bool plain_skip(struct plain_job *j, struct plain_queue *q)
{
    struct plain_op *op;

    if (q->head == q->n || !j->op[q->op[q->head]].noop)
        return false;
    op = &j->op[q->op[q->head]];
    for (int i = 0; i < op->nneed; i++) {
        if (!j->op[op->need[i]].over)
            return false;
        op->start = fmax(op->start, j->op[op->need[i]].end);
    }
    if (q->head) /* the stream stays in order */
        op->start = fmax(op->start, j->op[q->op[q->head - 1]].end);
    op->over = true;
    op->end = q->head ? j->op[q->op[q->head - 1]].end : 0;
    q->head++;
    return true;
}

/* Run it; returns when the last optimizer ends. */
static inline double plain_run(struct plain_job *j)
{
    double time = 0;
    bool any = true;

    memset(j->left, 0, (size_t)j->groups * sizeof *j->left);
    for (int i = 0; i < j->groups; i++)
        j->latest[i] = 0;
    for (int i = 0; i < j->n; i++) {
        j->op[i].started = j->op[i].over = false;
        j->op[i].start = 0;
        if (j->op[i].group != PLAIN_NONE)
            j->left[j->op[i].group]++;
    }
    for (int i = 0; i < j->dp * j->pp * P_STREAMS; i++)
        j->queue[i].head = 0;
    while (any) {
        any = false;
        for (int i = 0; i < j->dp * j->pp * P_STREAMS; i++)
            while (plain_skip(j, &j->queue[i]) || plain_try(j, &j->queue[i]))
                any = true;
    }
    for (int i = 0; i < j->n; i++) {
        if (!j->op[i].over)
            abort(); /* a circle: the schedule is wrong */
        if (j->op[i].type == P_OPT)
            time = fmax(time, j->op[i].end);
    }
    return time;
}

static inline bool plain_is_comm(int type)
{
    return type != P_FWD && type != P_BWD && type != P_OPT && type != P_GC;
}

#endif
