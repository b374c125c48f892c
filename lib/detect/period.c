/* SPDX-License-Identifier: Apache-2.0 */
/* period.c - the machine that follows the calls of a rank; see period.h. */
#include "config.h"

#include "base/mem.h"
#include "detect/period_impl.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LOST_CALLS 16 /* beside two periods */
#define LONG_WORD 16  /* calls of a pattern that is hardly met by chance */
#define SURE_PERIODS 256
#define TRIES 4         /* patterns of others looked at per call */
#define REST_CALLS 1024 /* before those that did not fit are tried again */

struct ep_period *ep_period_new(struct ep_period_table *t)
{
    struct ep_period *p = ep_calloc(1, sizeof *p);

    p->table = t;
    p->last_ts = p->start = (double)NAN;
    p->covered = (double)-INFINITY;
    return p;
}

static void free_buffer(struct ep_period *p)
{
    free(p->buf);
    p->buf = NULL;
    p->n = p->cap = p->next_try = 0;
    p->table->lent -= p->reserved;
    p->reserved = 0;
}

static void drop_other(struct ep_period *p)
{
    ep_pattern_unref(p->table, p->other.x);
    p->other = (struct lane){NULL, 0, (double)NAN};
    p->row = p->best = p->interlude = 0;
    p->age = 0;
}

void ep_period_free(struct ep_period *p)
{
    if (!p)
        return;
    free_buffer(p);
    drop_other(p);
    ep_pattern_unref(p->table, p->home.x);
    free(p);
}

/* ==== Following ==== */

static uint64_t symbol_in(const struct lane *l, const struct ep_period_call *c,
                          double gap)
{
    return l->x->gaps ? ep_gap_symbol(c->symbol, gap > l->split) : c->symbol;
}

/* Time in calls: the union of their intervals. */
static void add_time(struct ep_period *p, const struct ep_period_call *c)
{
    double from = fmax(c->ts, p->covered), end = c->ts + c->dur;

    p->last_seq = c->seq;
    if (isnan(end)) {
        p->timed = false;
    } else if (end > from) {
        p->comm += end - from;
        p->covered = end;
    }
}

/* The call is the first of an occurrence. */
static void begin(struct ep_period *p, const struct ep_period_call *c)
{
    p->start = c->ts;
    p->first_seq = c->seq;
    p->clean = p->timed = true;
    p->comm = p->covered > c->ts ? p->covered - c->ts : 0;
    add_time(p, c);
}

/*
 * Do the numbers say that no whole iterations are missing? A communicator
 * counts the calls of all its iterations alike; another step that comes twice
 * in a row is the usual one from then on.
 */
static bool whole_by_seq(struct ep_period *p, int64_t next_seq)
{
    int64_t step = next_seq - p->first_seq;
    bool usual;

    if (p->first_seq < 0 || next_seq < 0)
        return true;
    usual = step == p->seq_step || !p->seq_step;
    if (!p->seq_step || step == p->odd_step)
        p->seq_step = step;
    p->odd_step = usual ? 0 : step;
    return usual;
}

/* The occurrence under way is over where the call c begins the next one. */
static void close_iteration(struct ep_period *p, const struct ep_period_call *c)
{
    struct ep_iteration *it = &p->held;
    double after = p->covered > c->ts ? p->covered - c->ts : 0;

    bool whole = whole_by_seq(p, c->seq);

    p->pending = false;
    /* what began within a row of like calls may be part of another pattern */
    if (p->clean) {
        p->strays = 0;
        p->home_calls += p->home.x->n;
    }
    if (!whole || !p->clean) {
        p->linked = false;
        return;
    }
    *it = (struct ep_iteration){
        .ts = p->start,
        .dur = c->ts - p->start,
        .busy = (double)NAN,
        .first_seq = p->first_seq,
        .last_seq = p->last_seq,
        .calls = p->home.x->n,
        .pattern = p->home.x->number,
        .next = p->linked,
    };
    if (!(it->dur > 0) || isinf(it->dur))
        it->dur = (double)NAN;
    if (p->timed && !isnan(it->dur))
        it->busy = fmin(fmax(it->dur - fmax(p->comm - after, 0), 0), it->dur);
    p->pending = p->linked = true;
}

static void emit(struct ep_period *p, ep_period_fn *fn, void *ctx)
{
    struct ep_iteration it = p->held;

    p->pending = false;
    fn(ctx, &it);
}

/* Not the call that was due: the longest beginning that the last calls are. */
static void resync(struct ep_period *p, const struct ep_period_call *c,
                   uint64_t symbol)
{
    struct lane *l = &p->home;

    if (l->q <= l->x->unique)
        p->pending = false;
    l->q = ep_pattern_step(l->x, l->q, symbol);
    p->linked = false;
    if (l->q == 1) {
        begin(p, c);
    } else {
        p->clean = false;
        p->first_seq = -1;
        add_time(p, c);
    }
}

static void follow(struct ep_period *p, const struct ep_period_call *c,
                   double gap, ep_period_fn *fn, void *ctx)
{
    struct lane *l = &p->home;
    const struct pattern *x = l->x;
    uint64_t symbol = symbol_in(l, c, gap);

    p->strays++;
    if (l->q == x->n) {
        l->q = 0;
        if (symbol == x->w[0]) {
            close_iteration(p, c);
            begin(p, c);
            l->q = 1;
        } else {
            resync(p, c, symbol);
        }
    } else if (symbol == x->w[l->q]) {
        if (l->q++ == 0)
            begin(p, c);
        else
            add_time(p, c);
    } else {
        resync(p, c, symbol);
    }
    /* one call more: the first may have come twice */
    if (p->pending && (l->q > x->unique || l->q == x->n))
        emit(p, fn, ctx);
}

/* ==== Learning ==== */

static double gap_before(struct ep_period *p, const struct ep_period_call *c)
{
    double gap = c->ts - p->last_ts;

    p->last_ts = c->ts;
    return gap;
}

/* Forget what was under way: the pattern is another, or calls are missing. */
static void start_over(struct ep_period *p)
{
    p->home.q = 0;
    p->clean = p->linked = p->pending = false;
    p->seq_step = p->odd_step = 0;
    p->covered = (double)-INFINITY;
}

/* Follow what was heard since no pattern was followed. */
static void replay(struct ep_period *p, ep_period_fn *fn, void *ctx)
{
    start_over(p);
    p->last_ts = (double)NAN;
    p->strays = 0;
    for (uint32_t i = 0; i < p->n; i++)
        follow(p, &p->buf[i], gap_before(p, &p->buf[i]), fn, ctx);
    free_buffer(p);
}

/* The other pattern takes the place of home. */
static void promote(struct ep_period *p, ep_period_fn *fn, void *ctx)
{
    struct lane old = p->home;

    p->home = p->other;
    p->other = old;
    p->kind = OTHER_TRUSTED;
    p->row = p->best = p->interlude = 0;
    p->home_calls = 0;
    replay(p, fn, ctx);
}

/* One call more in the other lane. */
static void step_other(struct ep_period *p, const struct ep_period_call *c,
                       double gap)
{
    struct lane *l = &p->other;
    uint32_t was = l->q == l->x->n ? 0 : l->q;
    bool whole = l->q == l->x->n;

    l->q = ep_pattern_step(l->x, was, symbol_in(l, c, gap));
    p->age++;
    if (whole && l->q == 1 && p->other_clean) {
        p->row++;
        p->best = p->row > p->best ? p->row : p->best;
        p->age = 0;
    } else if (whole || l->q != was + 1) {
        p->row = 0;
    }
    if (l->q <= 1)
        p->other_clean = true;
    else if (l->q != was + 1)
        p->other_clean = false;
    if (p->row == 0 && l->q <= 1)
        p->row_since = c->ts;
}

/* Has the other pattern lasted long enough to be followed? */
static bool other_is_sure(const struct ep_period *p,
                          const struct ep_period_call *c)
{
    uint64_t calls = p->row * p->other.x->n;

    if (p->kind == OTHER_TRUSTED)
        return p->row >= 1;
    if (p->home.x)
        return calls >= 4 * p->interlude &&
               (p->row >= SURE_PERIODS ||
                (p->row >= REPEATS && calls >= p->home_calls));
    if (p->other.x->n >= LONG_WORD)
        return p->row >= 2;
    return p->row >= REPEATS && (c->ts - p->row_since >= EP_PERIOD_HOLD_S ||
                                 calls >= EP_PERIOD_HOLD_CALLS);
}

/* Put a pattern, of which a reference is taken over, into the other lane. */
static void set_other(struct ep_period *p, struct pattern *x, double split,
                      enum other kind, uint32_t heard)
{
    double last = (double)NAN;

    drop_other(p);
    p->other = (struct lane){x, 0, split};
    p->kind = kind;
    for (uint32_t i = p->n - heard; i < p->n; i++) {
        double gap = p->buf[i].ts - last;

        last = p->buf[i].ts;
        step_other(p, &p->buf[i], gap);
    }
}

/* Try a pattern of another rank in which there is such a call. */
static void try_one(struct ep_period *p, uint64_t symbol)
{
    const struct ep_period_table *t = p->table;

    if (p->rest && p->changes == t->changes) {
        p->rest--;
        return;
    }
    p->rest = 0;
    for (int i = 0; i < TRIES; i++) {
        struct pattern *x;

        if (p->cursor >= t->n) {
            p->cursor = 0;
            p->changes = t->changes;
            p->rest = REST_CALLS;
            return;
        }
        x = t->list[p->cursor++];
        if (x == p->home.x || x->gaps || !(x->bloom & ep_bloom_bit(symbol)))
            continue;
        set_other(p, ep_pattern_ref(x), (double)NAN, OTHER_TRIED,
                  p->n < 2 * x->n ? p->n : 2 * x->n);
        return;
    }
}

/* What was learned, as a pattern; a reference goes to the caller. */
static struct pattern *to_pattern(struct ep_period *p, const struct learned *l)
{
    uint64_t *w = ep_calloc(l->calls, sizeof *w);
    struct pattern *x;

    for (uint32_t i = 0; i < l->calls; i++) {
        const struct ep_period_call *c = &p->buf[p->n - l->calls + i];

        w[i] = l->gaps ? ep_gap_symbol(c->symbol, c->ts - c[-1].ts > l->split)
                       : c->symbol;
    }
    x = ep_pattern_get(p->table, w, l->calls, l->gaps);
    free(w);
    return x;
}

/* Look for a period in what was heard. True if home is another now. */
static bool learn(struct ep_period *p, bool sure, ep_period_fn *fn, void *ctx)
{
    struct learned l = ep_period_learn(p->buf, p->n, sure);
    struct pattern *x;

    if (!l.calls)
        return false;
    x = to_pattern(p, &l);
    if (!p->home.x || (x == p->home.x && l.gaps)) {
        drop_other(p);
        ep_pattern_unref(p->table, p->home.x);
        p->home = (struct lane){x, 0, l.split};
        replay(p, fn, ctx);
        return true;
    }
    if (x == p->home.x || x == p->other.x) {
        if (x == p->other.x && p->kind == OTHER_TRIED)
            p->kind = OTHER_NEW;
        ep_pattern_unref(p->table, x);
        return false;
    }
    set_other(p, x, l.split, OTHER_NEW, p->n);
    return false;
}

/* Room for calls more; false if there is none to be had now. */
static bool reserve(struct ep_period *p, uint32_t calls)
{
    size_t bytes = calls * sizeof *p->buf;

    if (p->table->lent + bytes > EP_PERIOD_LEND)
        return false;
    p->table->lent += bytes;
    p->reserved += bytes;
    return true;
}

/*
 * Make room for a call. A rank that has had its share without finding anything
 * gives it back and is one of those that wait.
 */
static void make_room(struct ep_period *p)
{
    uint32_t half = FIRST_CAP / 2;
    bool more = p->cap < MAX_CAP;

    if (p->n < p->cap)
        return;
    if (p->cap == FIRST_CAP)
        more = p->reserved || reserve(p, LEND_CAP);
    else if (p->cap >= LEND_CAP)
        more = more && reserve(p, p->cap);
    if (more) {
        p->cap = p->cap ? 2 * p->cap : FIRST_CAP;
        p->buf = ep_realloc(p->buf, p->cap, sizeof *p->buf);
        return;
    }
    memmove(p->buf, p->buf + p->n - half, half * sizeof *p->buf);
    p->n = half;
    p->next_try = FIRST_CAP;
    if (p->cap > FIRST_CAP) {
        p->table->lent -= p->reserved;
        p->reserved = 0;
        p->cap = FIRST_CAP;
        p->buf = ep_realloc(p->buf, p->cap, sizeof *p->buf);
    }
}

/* A call while no pattern is followed. */
static void hear(struct ep_period *p, const struct ep_period_call *c,
                 double gap, ep_period_fn *fn, void *ctx)
{
    make_room(p);
    p->buf[p->n++] = *c;
    if (p->other.x)
        step_other(p, c, gap);
    if (p->other.x && p->kind == OTHER_TRIED && p->age > 2 * p->other.x->n)
        drop_other(p);
    if (!p->other.x)
        try_one(p, c->symbol);
    if (p->other.x && other_is_sure(p, c)) {
        promote(p, fn, ctx);
        return;
    }
    if (p->n < p->next_try)
        return;
    p->next_try = p->n + (p->n < 32 ? 8 : p->n / 4);
    if (learn(p, false, fn, ctx))
        return;
    if (p->other.x && other_is_sure(p, c))
        promote(p, fn, ctx);
}

/* Home was found back: what was heard meanwhile was an interlude. */
static void come_back(struct ep_period *p)
{
    uint64_t lasted = p->other.x ? p->best * p->other.x->n : 0;

    if (p->other.x && p->kind == OTHER_TRIED)
        drop_other(p);
    else if (p->other.x && lasted > p->interlude)
        p->interlude = lasted;
    p->row = p->best = 0;
    p->other.q = 0;
    free_buffer(p);
}

void ep_period_push(struct ep_period *p, const struct ep_period_call *call,
                    ep_period_fn *fn, void *ctx)
{
    struct ep_period_call c = *call;
    double gap;

    if (!isfinite(c.ts))
        c.ts = (double)NAN;
    if (!isfinite(c.dur))
        c.dur = (double)NAN;
    gap = gap_before(p, &c);
    if (p->home.x) {
        follow(p, &c, gap, fn, ctx);
        if (p->strays == 0 && p->buf)
            come_back(p);
        if (p->strays <= 2 * p->home.x->n + LOST_CALLS)
            return;
    }
    hear(p, &c, gap, fn, ctx);
}

void ep_period_finish(struct ep_period *p, ep_period_fn *fn, void *ctx)
{
    if (!p->home.x && p->n)
        (void)learn(p, true, fn, ctx);
    if (p->pending)
        emit(p, fn, ctx);
}

void ep_period_break(struct ep_period *p)
{
    start_over(p);
    p->last_ts = (double)NAN;
    p->other.q = 0;
    p->row = 0;
    /* what was heard before does not repeat behind it */
    free_buffer(p);
}

void ep_period_state(const struct ep_period *p, struct ep_period_state *out)
{
    const struct pattern *x = p->home.x;

    out->basis = !x          ? EP_PERIOD_NONE
                 : x->gaps   ? EP_PERIOD_GAPS
                 : x->n == 1 ? EP_PERIOD_EACH
                             : EP_PERIOD_CALLS;
    out->calls = x ? x->n : 0;
    out->pattern = x ? x->number : 0;
    out->learning = !x || p->strays > 2 * x->n + LOST_CALLS;
    out->bytes = sizeof *p + p->cap * sizeof *p->buf;
}
