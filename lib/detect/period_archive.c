/* SPDX-License-Identifier: Apache-2.0 */
/* period_archive.c - patterns and machines in bytes; see base/archive.h. */
#include "config.h"

#include "base/mem.h"
#include "detect/period_impl.h"

#include <math.h>
#include <stdlib.h>

/* Patterns that there may be: far above one for each rank. */
#define PATTERNS_MAX 4194304

/* The i-th pattern, saved or made anew. */
static void pattern(struct ep_archive *a, struct ep_period_table *t, size_t i)
{
    struct pattern *x = a->saving ? t->list[i] : NULL;
    uint32_t n = (uint32_t)ep_archive_size(a, x ? x->n : 0, EP_PERIOD_MAX, 8);
    bool gaps = ep_archive_bool(a, x && x->gaps);
    uint32_t number =
        (uint32_t)ep_archive_u64(a, x ? x->number : 0, UINT32_MAX);
    uint64_t *w = x ? x->w : ep_calloc(n, sizeof *w);

    for (uint32_t k = 0; k < n; k++)
        w[k] = ep_archive_bits(a, w[k]);
    if (x)
        return;
    ep_archive_require(a, n && number, "a pattern has no calls");
    if (ep_archive_ok(a))
        ep_archive_require(a, ep_pattern_restore(t, w, n, gaps, number),
                           "a pattern is rotated");
    free(w);
}

void ep_period_table_archive(struct ep_archive *a, struct ep_period_table *t)
{
    size_t n = ep_archive_size(a, t->n, PATTERNS_MAX, 8);
    uint32_t numbers = (uint32_t)ep_archive_u64(a, t->numbers, UINT32_MAX);
    uint32_t changes = (uint32_t)ep_archive_u64(a, t->changes, UINT32_MAX);

    for (size_t i = 0; i < n && ep_archive_ok(a); i++)
        pattern(a, t, i);
    t->numbers = numbers;
    t->changes = changes;
}

/* The pattern, as one more than its place in the table, and where we are. */
static void lane(struct ep_archive *a, struct ep_period *p, struct lane *l)
{
    size_t at = l->x ? (size_t)l->x->at + 1 : 0;

    at = (size_t)ep_archive_u64(a, at, p->table->n);
    if (!at)
        return;
    if (!a->saving)
        l->x = ep_pattern_ref(p->table->list[at - 1]);
    if (!l->x)
        return;
    l->q = (uint32_t)ep_archive_u64(a, l->q, l->x->n);
    l->split = ep_archive_f64(a, l->split);
}

void ep_iteration_archive(struct ep_archive *a, struct ep_iteration *it)
{
    it->ts = ep_archive_f64(a, it->ts);
    it->dur = ep_archive_f64(a, it->dur);
    it->busy = ep_archive_f64(a, it->busy);
    it->first_seq = ep_archive_i64(a, it->first_seq, -1, INT64_MAX);
    it->last_seq = ep_archive_i64(a, it->last_seq, -1, INT64_MAX);
    it->calls = (uint32_t)ep_archive_u64(a, it->calls, UINT32_MAX);
    it->pattern = (uint32_t)ep_archive_u64(a, it->pattern, UINT32_MAX);
    it->next = ep_archive_bool(a, it->next);
}

static void occurrence(struct ep_archive *a, struct ep_period *p)
{
    p->last_ts = ep_archive_f64(a, p->last_ts);
    p->start = ep_archive_f64(a, p->start);
    p->comm = ep_archive_f64(a, p->comm);
    p->covered = ep_archive_f64(a, p->covered);
    p->first_seq = ep_archive_i64(a, p->first_seq, -1, INT64_MAX);
    p->last_seq = ep_archive_i64(a, p->last_seq, -1, INT64_MAX);
    p->clean = ep_archive_bool(a, p->clean);
    p->timed = ep_archive_bool(a, p->timed);
    p->linked = ep_archive_bool(a, p->linked);
    p->pending = ep_archive_bool(a, p->pending);
    if (p->pending)
        ep_iteration_archive(a, &p->held);
    p->seq_step = ep_archive_i64(a, p->seq_step, INT64_MIN, INT64_MAX);
    p->odd_step = ep_archive_i64(a, p->odd_step, INT64_MIN, INT64_MAX);
    p->home_calls = ep_archive_u64(a, p->home_calls, UINT64_MAX);
    p->strays = (uint32_t)ep_archive_u64(a, p->strays, UINT32_MAX);
}

static void other(struct ep_archive *a, struct ep_period *p)
{
    p->kind = (enum other)ep_archive_u64(a, p->kind, OTHER_TRUSTED);
    p->other_clean = ep_archive_bool(a, p->other_clean);
    p->age = (uint32_t)ep_archive_u64(a, p->age, UINT32_MAX);
    p->row = ep_archive_u64(a, p->row, UINT64_MAX);
    p->best = ep_archive_u64(a, p->best, UINT64_MAX);
    p->row_since = ep_archive_f64(a, p->row_since);
    p->interlude = ep_archive_u64(a, p->interlude, UINT64_MAX);
    p->cursor = (uint32_t)ep_archive_u64(a, p->cursor, UINT32_MAX);
    p->changes = (uint32_t)ep_archive_u64(a, p->changes, UINT32_MAX);
    p->rest = (uint32_t)ep_archive_u64(a, p->rest, UINT32_MAX);
}

/* Room for n calls, and what is lent of it, as it would have grown. */
static void make_room(struct ep_archive *a, struct ep_period *p, uint32_t n)
{
    size_t lent;

    p->cap = FIRST_CAP;
    while (p->cap < n)
        p->cap *= 2;
    lent = p->cap < LEND_CAP ? LEND_CAP : p->cap;
    if (p->cap > FIRST_CAP)
        p->reserved = lent * sizeof *p->buf;
    p->table->lent += p->reserved;
    ep_archive_require(a, p->table->lent <= EP_PERIOD_LEND,
                       "more is lent than there is to lend");
    p->buf = ep_calloc(p->cap, sizeof *p->buf);
}

static void heard(struct ep_archive *a, struct ep_period *p)
{
    uint32_t n = (uint32_t)ep_archive_size(a, p->n, MAX_CAP, 25);

    p->next_try = (uint32_t)ep_archive_u64(a, p->next_try, UINT32_MAX);
    if (!a->saving && n)
        make_room(a, p, n);
    p->n = n;
    for (uint32_t i = 0; i < n; i++) {
        struct ep_period_call *c = &p->buf[i];

        c->symbol = ep_archive_bits(a, c->symbol);
        c->ts = ep_archive_f64(a, c->ts);
        c->dur = ep_archive_f64(a, c->dur);
        c->seq = ep_archive_i64(a, c->seq, -1, INT64_MAX);
    }
}

void ep_period_archive(struct ep_archive *a, struct ep_period *p)
{
    lane(a, p, &p->home);
    lane(a, p, &p->other);
    occurrence(a, p);
    other(a, p);
    heard(a, p);
}
