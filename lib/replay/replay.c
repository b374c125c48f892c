/* SPDX-License-Identifier: Apache-2.0 */
/* replay.c - see replay.h. */
#include "config.h"

#include "replay/replay.h"

#include "base/mem.h"
#include "base/stats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Clock skew up to which a negative time is taken as it is. */
#define SKEW (-1e-2) /* s */

/* Lanes that are run together: ends of a thousand operations are 0.5 MB. */
#define BLOCK ((size_t)64)

/* fmax is a call: it has to think of NaN. */
static double larger(double a, double b)
{
    return a > b ? a : b;
}

/* ==== From a trace ==== */

/* max[s] of a unit's starts: per lane, or per step where it is over dp. */
static void latest_start(const struct ep_graph *g, const struct ep_trace *t,
                         size_t u, double *latest)
{
    size_t lanes = t->lanes;

    for (size_t l = 0; l < lanes; l++)
        latest[l] = -INFINITY;
    for (uint32_t i = g->unit_at[u]; i < g->unit_at[u + 1]; i++) {
        const double *start = t->start + g->member[i] * lanes;

        for (size_t l = 0; l < lanes; l++)
            latest[l] = start[l] > latest[l] ? start[l] : latest[l];
    }
    for (size_t l = 0; g->syncs[u] && l < lanes; l += t->dp) {
        double most = latest[l];

        for (size_t d = 1; d < t->dp; d++)
            most = latest[l + d] > most ? latest[l + d] : most;
        for (size_t d = 0; d < t->dp; d++)
            latest[l + d] = most;
    }
}

void ep_replay_costs(const struct ep_graph *g, const struct ep_trace *t,
                     double *cost)
{
    double *latest = ep_calloc(t->lanes, sizeof *latest);

    if (cost != t->dur)
        memcpy(cost, t->dur, t->n * t->lanes * sizeof *cost);
    for (size_t u = 0; u < g->units; u++) {
        if (!g->waits[u])
            continue;
        latest_start(g, t, u, latest);
        for (uint32_t i = g->unit_at[u]; i < g->unit_at[u + 1]; i++) {
            size_t at = g->member[i] * t->lanes;

            for (size_t l = 0; l < t->lanes; l++) {
                double x = t->start[at + l] - latest[l] + t->dur[at + l];

                cost[at + l] = x > SKEW ? x : 0;
            }
        }
    }
    free(latest);
}

void ep_replay_ideal(const struct ep_graph *g, const struct ep_ops *ops,
                     const double *cost, size_t lanes, double *ideal)
{
    size_t types = ep_ops_types(ops), cap = 0;
    double *all = NULL;

    for (size_t type = 0; type < types; type++) {
        bool comm = ep_op_is_comm(ep_ops_role(ops, type));
        double sum = 0;
        size_t n = 0;

        for (size_t v = 0; v < g->n; v++) {
            if (g->op[v].type != (int)type || g->skip[v])
                continue;
            if (comm) {
                all = ep_grow(all, &cap, n + lanes, sizeof *all);
                memcpy(all + n, cost + v * lanes, lanes * sizeof *all);
            }
            for (size_t l = 0; !comm && l < lanes; l++)
                sum += cost[v * lanes + l];
            n += lanes;
        }
        ideal[type] = !n ? 0 : comm ? ep_median(all, n) : sum / (double)n;
    }
    free(all);
}

/* ==== One block of lanes ==== */

/* The lanes [first, first + n) of a replay while they run. Their ends are
   rows of n; in a sweep behind those of the lanes come those of the others. */
struct block {
    const struct ep_replay *r;
    size_t first, n, dp; /* dp lanes are a step; 1 in a sweep */
    bool pairs;          /* a sweep: lane i waits for lane i + n */
    size_t width;        /* of a row: n, or 2 n in a sweep */
    double *end;         /* [N][width] */
    double *row;         /* [width] costs that had to be put together */
    double *latest;      /* [width] of a group */
};

/*
 * The inner loops. Eight lanes at a time, in a loop of known length: that is
 * what compilers make vector instructions of at -O2. a > b ? a : b is one of
 * these too; fmax is not.
 */
enum { STRIDE = 8 };

/* to = max(a, b) */
static void row_max(double *restrict to, const double *restrict a,
                    const double *restrict b, size_t n)
{
    size_t l = 0;

    for (; l + STRIDE <= n; l += STRIDE)
        for (size_t k = 0; k < STRIDE; k++)
            to[l + k] = a[l + k] > b[l + k] ? a[l + k] : b[l + k];
    for (; l < n; l++)
        to[l] = a[l] > b[l] ? a[l] : b[l];
}

/* to = max(to, from) */
static void row_raise(double *restrict to, const double *restrict from,
                      size_t n)
{
    size_t l = 0;

    for (; l + STRIDE <= n; l += STRIDE)
        for (size_t k = 0; k < STRIDE; k++)
            to[l + k] = from[l + k] > to[l + k] ? from[l + k] : to[l + k];
    for (; l < n; l++)
        to[l] = from[l] > to[l] ? from[l] : to[l];
}

static void row_add(double *restrict to, const double *restrict a,
                    const double *restrict b, size_t n)
{
    size_t l = 0;

    for (; l + STRIDE <= n; l += STRIDE)
        for (size_t k = 0; k < STRIDE; k++)
            to[l + k] = a[l + k] + b[l + k];
    for (; l < n; l++)
        to[l] = a[l] + b[l];
}

static void row_add_one(double *restrict to, const double *restrict a, double b,
                        size_t n)
{
    size_t l = 0;

    for (; l + STRIDE <= n; l += STRIDE)
        for (size_t k = 0; k < STRIDE; k++)
            to[l + k] = a[l + k] + b;
    for (; l < n; l++)
        to[l] = a[l] + b;
}

/* Launch delays of operation v in the trace, added to its starts. */
static void add_delays(const struct block *b, uint32_t v, double *start)
{
    const struct ep_graph *g = b->r->g;
    const struct ep_trace *t = b->r->delays;
    const double *began = t->start + v * t->lanes + b->first;
    bool waits = g->dep_at[v] < g->dep_at[v + 1];
    double *ready = b->row;

    for (size_t l = 0; l < b->n; l++)
        ready[l] = waits ? -INFINITY : 0;
    for (uint32_t i = g->dep_at[v]; i < g->dep_at[v + 1]; i++) {
        const double *s = t->start + g->dep[i] * t->lanes + b->first;
        const double *d = t->dur + g->dep[i] * t->lanes + b->first;

        for (size_t l = 0; l < b->n; l++)
            ready[l] = larger(ready[l], s[l] + d[l]);
    }
    for (size_t l = 0; l < b->n; l++)
        start[l] += began[l] - ready[l] > SKEW ? began[l] - ready[l] : 0;
}

/* When operation v can start, into row start. */
static void set_start(const struct block *b, uint32_t v, double *start)
{
    const struct ep_graph *g = b->r->g;
    uint32_t i = g->dep_at[v], n = g->dep_at[v + 1];

    size_t w = b->width;

    if (i == n) {
        memset(start, 0, w * sizeof *start);
    } else if (n - i == 1) {
        memcpy(start, b->end + g->dep[i] * w, w * sizeof *start);
    } else {
        row_max(start, b->end + g->dep[i] * w, b->end + g->dep[i + 1] * w, w);
        for (i += 2; i < n; i++)
            row_raise(start, b->end + g->dep[i] * w, w);
    }
    if (b->r->delays)
        add_delays(b, v, start);
}

/* Costs of an operation of which some data-parallel ranks are idealised. */
static const double *mixed_costs(const struct block *b, uint32_t v,
                                 const double *own, double ideal)
{
    const bool *chosen = b->r->chosen + (size_t)b->r->g->op[v].pp * b->r->dp;

    for (size_t l = 0; l < b->n; l++)
        b->row[l] = chosen[(b->first + l) % b->r->dp] ? ideal : own[l];
    return b->row;
}

/* The ends of v, which starts (or whose group starts) at start. */
static void set_end(const struct block *b, uint32_t v, const double *start)
{
    const struct ep_replay *r = b->r;
    double ideal = r->ideal[r->g->op[v].type];
    double *end = b->end + v * b->width;
    const double *own;

    if (!r->cost || (!b->pairs && r->take[v] == EP_REPLAY_IDEAL)) {
        row_add_one(end, start, ideal, b->n);
        return;
    }
    own = r->cost + v * r->steps * r->dp + b->first;
    if (!b->pairs && r->take[v] == EP_REPLAY_MIXED && r->chosen)
        own = mixed_costs(b, v, own, ideal);
    row_add(end, start, own, b->n);
    if (b->pairs)
        row_add_one(end + b->n, start + b->n, ideal, b->n);
}

/* The lanes of a step wait for each other. */
static void sync_lanes(const struct block *b, double *latest)
{
    if (b->pairs) {
        if (b->r->dp > 1) {
            row_raise(latest, latest + b->n, b->n);
            memcpy(latest + b->n, latest, b->n * sizeof *latest);
        }
        return;
    }
    for (size_t l = 0; b->dp > 1 && l < b->n; l += b->dp) {
        double most = latest[l];

        for (size_t d = 1; d < b->dp; d++)
            most = latest[l + d] > most ? latest[l + d] : most;
        for (size_t d = 0; d < b->dp; d++)
            latest[l + d] = most;
    }
}

/* A unit's members; their starts go where their ends will be. */
static void run_unit(const struct block *b, size_t u)
{
    const struct ep_graph *g = b->r->g;
    uint32_t first = g->unit_at[u], end = g->unit_at[u + 1];

    set_start(b, g->member[first], b->latest);
    for (uint32_t i = first + 1; i < end; i++) {
        double *start = b->end + g->member[i] * b->width;

        set_start(b, g->member[i], start);
        row_raise(b->latest, start, b->width);
    }
    if (g->syncs[u])
        sync_lanes(b, b->latest);
    for (uint32_t i = first; i < end; i++)
        set_end(b, g->member[i], b->latest);
}

/* The last optimizer's end in each lane, into latest. */
static void run_block(const struct block *b)
{
    const struct ep_graph *g = b->r->g;

    for (size_t u = 0; u < g->units; u++)
        run_unit(b, u);
    for (size_t l = 0; l < b->width; l++)
        b->latest[l] = -INFINITY;
    for (size_t v = 0; v < g->n; v++)
        if (g->op[v].role == EP_OP_OPTIMIZER)
            row_raise(b->latest, b->end + v * b->width, b->width);
}

/* ==== All of them ==== */

/* Lanes of a block: whole steps. */
static size_t block_lanes(const struct ep_replay *r)
{
    return BLOCK / r->dp ? BLOCK / r->dp * r->dp : r->dp;
}

size_t ep_replay_room(const struct ep_replay *r)
{
    size_t width = block_lanes(r);

    return (r->g->n + 2) * (width > 2 * BLOCK ? width : 2 * BLOCK);
}

/* Rows for blocks of up to width, which ep_replay_room has room for. */
static void begin_block(struct block *b, size_t width)
{
    b->end = b->r->room;
    if (!b->end)
        b->end = ep_realloc(NULL, ep_replay_room(b->r), sizeof *b->end);
    b->row = b->end + b->r->g->n * width;
    b->latest = b->row + width;
}

static void end_block(struct block *b)
{
    if (!b->r->room)
        free(b->end);
}

void ep_replay_run(const struct ep_replay *r, double *step_time)
{
    size_t most_lanes = block_lanes(r), lanes = r->steps * r->dp;
    struct block b = {.r = r, .dp = r->dp};

    begin_block(&b, most_lanes);
    for (b.first = 0; b.first < lanes; b.first += most_lanes) {
        b.n = lanes - b.first < most_lanes ? lanes - b.first : most_lanes;
        b.width = b.n;
        run_block(&b);
        for (size_t l = 0; l < b.n; l += r->dp) {
            double most = b.latest[l];

            for (size_t d = 1; d < r->dp; d++)
                most = larger(most, b.latest[l + d]);
            step_time[(b.first + l) / r->dp] = most;
        }
    }
    end_block(&b);
}

void ep_replay_each_dp(const struct ep_replay *r, double *step_time)
{
    size_t lanes = r->steps * r->dp;
    struct block b = {.r = r, .dp = 1, .pairs = true};

    begin_block(&b, 2 * BLOCK);
    for (b.first = 0; b.first < lanes; b.first += BLOCK) {
        b.n = lanes - b.first < BLOCK ? lanes - b.first : BLOCK;
        b.width = 2 * b.n;
        run_block(&b);
        for (size_t l = 0; l < b.n; l++) /* alone there are no others */
            step_time[b.first + l] =
                r->dp > 1 ? larger(b.latest[l], b.latest[b.n + l])
                          : b.latest[l];
    }
    end_block(&b);
}

double ep_replay_ideal_step(const struct ep_graph *g, const double *ideal,
                            double *start, double *end)
{
    struct ep_replay r = {.g = g, .steps = 1, .dp = 1, .ideal = ideal};
    struct block b = {.r = &r, .n = 1, .dp = 1, .width = 1};
    double time;

    begin_block(&b, 1);
    run_block(&b);
    time = b.latest[0];
    for (size_t v = 0; v < g->n; v++) {
        end[v] = g->skip[v] ? 0 : b.end[v];
        start[v] = g->skip[v] ? 0 : end[v] - ideal[g->op[v].type];
    }
    end_block(&b);
    return time;
}
