/* SPDX-License-Identifier: Apache-2.0 */
/* whatif_text.c - see whatif_text.h. */
#include "config.h"

#include "replay/whatif_text.h"

#include "base/mem.h"
#include "base/num.h"
#include "base/table.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Rows and columns of the tables, so that all is one screen. */
enum { OPS = 6, RANKS = 5, STAGES = 8, STEPS = 4 };

/* Columns of the screen. */
enum { WIDTH = 80 };

/* What of nothing is lost is no share. */
static void add_percent(struct ep_buf *b, double share)
{
    if (!(fabs(share) < 10))
        ep_buf_addc(b, '-');
    else
        ep_buf_addf(b, "%.0f %%", round(100 * share) + 0.0); /* not -0 */
}

static void add_worker(struct ep_buf *b, const struct ep_whatif *w, size_t i)
{
    ep_buf_addf(b, "dp %zu, stage %zu", w->worker[i] / w->pp,
                w->worker[i] % w->pp);
}

/* One, if it alone accounts for nearly all that the slowest cost. */
static void add_workers(struct ep_buf *b, const struct ep_whatif *w)
{
    bool one = w->nworkers == 1 || w->worst.all >= 0.8 * w->slowest.all;

    ep_buf_adds(b, one ? "worker " : "");
    add_worker(b, w, 0);
    if (!one)
        ep_buf_addf(b, " and %zu more", w->nworkers - 1);
    ep_buf_adds(b, one ? " costs " : " cost ");
    add_percent(b, one ? w->worst.all : w->slowest.all);
}

static void add_cause(struct ep_buf *b, const struct ep_whatif *w,
                      enum ep_whatif_cause cause)
{
    switch (cause) {
    case EP_CAUSE_NONE:
        ep_buf_adds(b, "no straggler worth a remedy");
        break;
    case EP_CAUSE_WORKER:
        add_workers(b, w);
        break;
    case EP_CAUSE_STAGE:
        ep_buf_adds(b, w->dp > 1 ? "last stage overloaded, no worker to blame"
                                 : "last stage overloaded, or its worker slow");
        break;
    case EP_CAUSE_SEQUENCE:
        ep_buf_adds(b, "micro-batches are of unequal length");
        break;
    case EP_CAUSE_GC:
        ep_buf_adds(b, "garbage collection at different times");
        break;
    case EP_CAUSE_COMM:
        ep_buf_adds(b, "communication costs ");
        add_percent(b, ep_whatif_share(w, w->comm.all));
        break;
    case EP_CAUSE_LAUNCH:
        ep_buf_addf(b, "but %.2fx by gaps between operations", w->launch);
        break;
    default:
        ep_buf_adds(b, "of no single cause");
        break;
    }
}

void ep_whatif_answer(const struct ep_whatif *w, enum ep_whatif_cause cause,
                      struct ep_buf *out)
{
    static const char of_it[] = " of it";
    size_t begin = out->len;

    ep_buf_addf(out, "%.2fx slower than without stragglers: ", w->slowdown.all);
    add_cause(out, w, cause);
    if ((cause == EP_CAUSE_WORKER || cause == EP_CAUSE_COMM) &&
        out->len - begin + strlen(of_it) <= WIDTH)
        ep_buf_adds(out, of_it);
}

/* Indices of classes, ranks or steps, the largest value first. */
struct ranked {
    double value;
    size_t i;
};

static int compare_ranked(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;

    if (x->value != y->value)
        return x->value > y->value ? -1 : 1;
    return (x->i > y->i) - (x->i < y->i);
}

/* NaN are left out; returns how many. */
static size_t rank_values(const struct ep_whatif_value *v, size_t n,
                          struct ranked *out)
{
    size_t k = 0;

    for (size_t i = 0; i < n; i++)
        if (!isnan(v[i].all))
            out[k++] = (struct ranked){v[i].all, i};
    qsort(out, k, sizeof *out, compare_ranked);
    return k;
}

void ep_whatif_evidence(const struct ep_whatif *w, const struct ep_ops *ops,
                        struct ep_buf *out)
{
    struct ranked *r = ep_calloc(w->classes, sizeof *r);

    ep_buf_addf(out, "step ");
    ep_num_format_duration(out, w->time.all);
    ep_buf_adds(out, ", ideal ");
    ep_num_format_duration(out, w->ideal);
    if (!isnan(w->slowest.all))
        ep_buf_addf(out, "; slowest %zu of %zu workers %.2f of what is lost",
                    w->nworkers, w->dp * w->pp, w->slowest.all);
    if (!isnan(w->last_stage.all) && w->pp > 1)
        ep_buf_addf(out, ", last stage %.2f", w->last_stage.all);
    if (rank_values(w->cls, w->classes, r))
        ep_buf_addf(out, "; %s %.2fx", ep_ops_class_name(ops, r[0].i),
                    r[0].value);
    if (!isnan(w->correlation))
        ep_buf_addf(out, "; forward-backward correlation %.2f", w->correlation);
    ep_buf_addf(out, "; gaps %.3fx", w->launch);
    if (fabs(ep_whatif_off(w)) > EP_WHATIF_OFF)
        ep_buf_addf(out, "; not to be trusted: the replay is off by %+.0f %%",
                    100 * ep_whatif_off(w));
    free(r);
}

void ep_whatif_place(const struct ep_whatif *w, enum ep_whatif_cause cause,
                     struct ep_buf *out)
{
    if (cause == EP_CAUSE_WORKER)
        ep_buf_addf(out, "dp=%zu,pp=%zu", w->worker[0] / w->pp,
                    w->worker[0] % w->pp);
    else if (cause == EP_CAUSE_STAGE)
        ep_buf_addf(out, "pp=%zu", w->pp - 1);
}

/* ==== Tables ==== */

static void add_rest(struct ep_buf *b, size_t n, size_t shown, const char *what)
{
    if (n > shown)
        ep_buf_addf(b, "  ... and %zu %s more\n", n - shown, what);
}

static void add_ops(struct ep_buf *b, const struct ep_whatif *w,
                    const struct ep_ops *ops)
{
    struct ranked *r = ep_calloc(w->classes, sizeof *r);
    size_t n = rank_values(w->cls, w->classes, r);
    struct ep_table t;

    ep_table_init(&t, 3, 1 << 1 | 1 << 2);
    ep_buf_adds(ep_table_cell(&t), "operation");
    ep_buf_adds(ep_table_cell(&t), "slowdown");
    ep_buf_adds(ep_table_cell(&t), "share");
    for (size_t i = 0; i < n && i < OPS; i++) {
        const char *name = ep_ops_class_name(ops, r[i].i);
        char shown[48];

        ep_buf_adds(ep_table_cell(&t),
                    ep_escape(shown, sizeof shown, name, strlen(name)));
        ep_buf_addf(ep_table_cell(&t), "%.3f", r[i].value);
        add_percent(ep_table_cell(&t), ep_whatif_share(w, r[i].value));
    }
    ep_table_print(&t, "", b);
    add_rest(b, n, OPS, "operations");
    ep_table_free(&t);
    free(r);
}

/* The stages that are shown: all, or the worst, in the order of the model. */
static size_t pick_stages(const struct ep_whatif *w, size_t *stage)
{
    struct ranked *r = ep_calloc(w->pp, sizeof *r);
    size_t n = rank_values(w->of_pp, w->pp, r), k = 0;
    bool *in = ep_calloc(w->pp, sizeof *in);

    for (size_t i = 0; i < n && i < STAGES; i++)
        in[r[i].i] = true;
    for (size_t p = 0; p < w->pp; p++)
        if (in[p])
            stage[k++] = p;
    free(in);
    free(r);
    return k;
}

static void add_grid(struct ep_buf *b, const struct ep_whatif *w)
{
    size_t stage[STAGES], np = pick_stages(w, stage);
    struct ranked *r = ep_calloc(w->dp, sizeof *r);
    size_t nd = rank_values(w->of_dp, w->dp, r);
    struct ep_table t;

    ep_table_init(&t, (unsigned)np + 2, ~1U);
    ep_buf_adds(ep_table_cell(&t), "worker");
    ep_buf_adds(ep_table_cell(&t), "rank");
    for (size_t p = 0; p < np; p++)
        ep_buf_addf(ep_table_cell(&t), "pp %zu", stage[p]);
    for (size_t i = 0; i < nd && i < RANKS; i++) {
        ep_buf_addf(ep_table_cell(&t), "dp %zu", r[i].i);
        ep_buf_addf(ep_table_cell(&t), "%.3f", r[i].value);
        for (size_t p = 0; p < np; p++)
            ep_buf_addf(ep_table_cell(&t), "%.3f",
                        ep_whatif_worker(w, r[i].i, stage[p]));
    }
    ep_buf_adds(ep_table_cell(&t), "stage");
    (void)ep_table_cell(&t);
    for (size_t p = 0; p < np; p++)
        ep_buf_addf(ep_table_cell(&t), "%.3f", w->of_pp[stage[p]].all);
    ep_table_print(&t, "", b);
    add_rest(b, nd, RANKS, "ranks");
    add_rest(b, w->pp, np, "stages");
    ep_table_free(&t);
    free(r);
}

/* The worst steps, as many as fit, and the best one. */
static void add_steps(struct ep_buf *b, const struct ep_whatif *w,
                      const int64_t *step)
{
    struct ranked *r = ep_calloc(w->steps, sizeof *r);
    size_t begin = b->len, shown = 0;
    struct ep_buf best, next;

    for (size_t s = 0; s < w->steps; s++)
        r[s] = (struct ranked){w->slowdown.step[s], s};
    qsort(r, w->steps, sizeof *r, compare_ranked);
    ep_buf_init(&best);
    ep_buf_init(&next);
    ep_buf_addf(&best, " ... %lld %.3f", (long long)step[r[w->steps - 1].i],
                r[w->steps - 1].value);
    ep_buf_adds(b, "steps   ");
    for (; shown < w->steps && shown < STEPS; shown++) {
        ep_buf_reset(&next);
        ep_buf_addf(&next, "%s%lld %.3f", shown ? ", " : "",
                    (long long)step[r[shown].i], r[shown].value);
        if (shown && b->len - begin + next.len + best.len > WIDTH)
            break;
        ep_buf_add(b, next.ptr, next.len);
    }
    if (shown < w->steps)
        ep_buf_add(b, best.ptr, best.len);
    ep_buf_addc(b, '\n');
    ep_buf_free(&best);
    ep_buf_free(&next);
    free(r);
}

/* What idealising the slowest workers, or the last stage, wins back. How many
   workers there are is left out if it does not fit: the line above has it. */
static void add_lost(struct ep_buf *b, const struct ep_whatif *w)
{
    struct ep_buf of, rest;

    ep_buf_init(&of);
    ep_buf_init(&rest);
    ep_buf_addf(b, "lost    slowest %zu", w->nworkers);
    ep_buf_addf(&of, " of %zu", w->dp * w->pp);
    ep_buf_adds(&rest, " workers ");
    add_percent(&rest, w->slowest.all);
    if (w->pp > 1) {
        ep_buf_adds(&rest, ", last stage ");
        add_percent(&rest, w->last_stage.all);
    }
    ep_buf_adds(&rest, ", communication ");
    add_percent(&rest, ep_whatif_share(w, w->comm.all));
    if (strlen("lost    slowest 999") + of.len + rest.len <= WIDTH)
        ep_buf_add(b, of.ptr, of.len);
    ep_buf_add(b, rest.ptr, rest.len);
    ep_buf_addc(b, '\n');
    ep_buf_free(&of);
    ep_buf_free(&rest);
}

void ep_whatif_text(const struct ep_whatif *w, const struct ep_ops *ops,
                    const int64_t *step, enum ep_whatif_cause cause,
                    struct ep_buf *out)
{
    ep_whatif_answer(w, cause, out);
    ep_buf_addf(out, "\nstep    ");
    ep_num_format_duration(out, w->time.all);
    ep_buf_adds(out, ", ideal ");
    ep_num_format_duration(out, w->ideal);
    ep_buf_addf(out, "; %zu step%s of %zu x %zu (dp x pp)\n", w->steps,
                w->steps == 1 ? "" : "s", w->dp, w->pp);
    add_lost(out, w);
    ep_buf_addf(out, "also    gaps between operations %.3fx", w->launch);
    if (!isnan(w->correlation))
        ep_buf_addf(out, ", forward-backward correlation %.2f",
                    w->correlation + 0.0);
    ep_buf_addc(out, '\n');
    add_steps(out, w, step);
    ep_buf_addc(out, '\n');
    add_ops(out, w, ops);
    ep_buf_addc(out, '\n');
    add_grid(out, w);
}
