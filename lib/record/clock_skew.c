/* SPDX-License-Identifier: Apache-2.0 */
/* clock_skew.c - see clock_skew.h. */
#include "config.h"

#include "record/clock_skew.h"

#include "base/intern.h"
#include "base/mem.h"
#include "base/stats.h"
#include "record/clock_sample.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct ep_clock_skew {
    struct ep_clock_sample *sample;
};

struct ep_clock_skew *ep_clock_skew_new(size_t max)
{
    struct ep_clock_skew *s = ep_calloc(1, sizeof *s);

    s->sample = ep_clock_sample_new(max ? max : EP_CLOCK_MAX);
    return s;
}

void ep_clock_skew_free(struct ep_clock_skew *s)
{
    if (!s)
        return;
    ep_clock_sample_free(s->sample);
    free(s);
}

/* Does it end on all ranks at once? */
static bool ends_together(struct ep_span op)
{
    return ep_span_eq(op, "all_reduce") || ep_span_eq(op, "all_gather") ||
           ep_span_eq(op, "reduce_scatter");
}

void ep_clock_skew_take(struct ep_clock_skew *s, const struct ep_record *r)
{
    struct ep_clock_taken t;
    int64_t rank;

    if (r->type != EP_COLL || !ep_record_has(r, EP_K_TS) ||
        !ep_record_has(r, EP_K_HOST) || !ep_record_has(r, EP_K_SEQ))
        return;
    t.op = ep_record_str(r, EP_K_OP);
    t.comm = ep_record_str(r, EP_K_COMM);
    if (!ends_together(t.op) || ep_span_eq(t.comm, "unknown"))
        return;
    t.job = ep_record_has(r, EP_K_JOB) ? ep_record_str(r, EP_K_JOB)
                                       : (struct ep_span){"", 0};
    t.host = ep_record_str(r, EP_K_HOST);
    t.seq = (uint64_t)ep_record_int(r, EP_K_SEQ, 0);
    t.nranks = ep_record_int(r, EP_K_NRANKS, 0);
    rank = ep_record_int(r, EP_K_COMM_RANK, -1);
    t.comm_rank = rank <= INT32_MAX ? (int32_t)rank : -1;
    t.end = ep_record_num(r, EP_K_TS) + ep_record_num(r, EP_K_DUR);
    ep_clock_sample_take(s->sample, &t);
}

/* ==== From ends to readings ==== */

/* Ends of one host that are of one collective. */
struct part {
    double y, sorted; /* their median; by what parts are put together */
    uint32_t host;
    size_t from, to; /* in ends */
};

struct rank {
    int32_t rank;
    uint32_t host;
};

/* Readings being made of the instances of a sample. */
struct maker {
    const struct ep_clock_end *all;
    struct ep_clock_end *ends; /* of one instance, sorted */
    struct part *parts;        /* of it */
    struct rank *ranks;        /* of some of these */
    double *v;
    size_t nends, cap_ends, nparts, cap_parts, cap_ranks, cap_v;
    double base; /* taken off all times, for the sake of their resolution */
    const struct ep_clock_line *lines; /* what was found; NULL: nothing yet */
    struct ep_clock_reading *r;        /* [n] made */
    size_t n, cap, nevents;
    uint64_t ambiguous;
    bool by_time; /* some instances had to be put together by time */
};

static int by_host(const void *pa, const void *pb)
{
    const struct ep_clock_end *a = pa, *b = pb;

    if (a->host != b->host)
        return a->host < b->host ? -1 : 1;
    if (a->end != b->end)
        return a->end < b->end ? -1 : 1;
    return (a->comm_rank > b->comm_rank) - (a->comm_rank < b->comm_rank);
}

static int by_time(const void *pa, const void *pb)
{
    const struct part *a = pa, *b = pb;

    if (a->sorted != b->sorted)
        return a->sorted < b->sorted ? -1 : 1;
    return (a->host > b->host) - (a->host < b->host);
}

static int by_rank(const void *pa, const void *pb)
{
    const struct rank *a = pa, *b = pb;

    if (a->rank != b->rank)
        return a->rank < b->rank ? -1 : 1;
    return (a->host > b->host) - (a->host < b->host);
}

/* The ends of an instance in order, those that were read twice once. */
static void collect(struct maker *m, const struct ep_clock_instance *in)
{
    size_t n = 0, kept = 0;

    m->ends = ep_grow(m->ends, &m->cap_ends, in->n, sizeof *m->ends);
    for (uint32_t e = in->first; e != EP_CLOCK_NONE; e = m->all[e].next) {
        m->ends[n] = m->all[e];
        m->ends[n++].end -= m->base;
    }
    qsort(m->ends, n, sizeof *m->ends, by_host);
    for (size_t i = 0; i < n; i++)
        if (i == 0 || by_host(&m->ends[i], &m->ends[i - 1]) != 0)
            m->ends[kept++] = m->ends[i];
    m->nends = kept;
}

/* Ends of one host that are close are a part. */
static void divide(struct maker *m)
{
    m->nparts = 0;
    m->parts = ep_grow(m->parts, &m->cap_parts, m->nends, sizeof *m->parts);
    m->v = ep_grow(m->v, &m->cap_v, m->nends, sizeof *m->v);
    for (size_t i = 0, j; i < m->nends; i = j) {
        struct part *p = &m->parts[m->nparts++];

        for (j = i + 1; j < m->nends && m->ends[j].host == m->ends[i].host &&
                        m->ends[j].end - m->ends[j - 1].end < EP_CLOCK_GAP;
             j++)
            ;
        for (size_t k = i; k < j; k++)
            m->v[k - i] = m->ends[k].end;
        *p = (struct part){.host = m->ends[i].host, .from = i, .to = j};
        p->y = ep_median(m->v, j - i);
    }
}

/* Does every host have the same number of parts? Then that; else 0. */
static size_t regular(const struct maker *m)
{
    size_t each = 0;

    for (size_t i = 0, j; i < m->nparts; i = j) {
        for (j = i + 1; j < m->nparts && m->parts[j].host == m->parts[i].host;
             j++)
            ;
        if (each && j - i != each)
            return 0;
        each = j - i;
    }
    return each;
}

/* Parts from..to are of one collective, it seems. Is the same rank on two
   hosts, or a host there twice? */
static bool is_one(struct maker *m, size_t from, size_t to)
{
    size_t n = 0;

    m->ranks = ep_grow(m->ranks, &m->cap_ranks, m->nends, sizeof *m->ranks);
    for (size_t i = from; i < to; i++)
        for (size_t k = m->parts[i].from; k < m->parts[i].to; k++)
            if (m->ends[k].comm_rank >= 0)
                m->ranks[n++] =
                    (struct rank){m->ends[k].comm_rank, m->ends[k].host};
    qsort(m->ranks, n, sizeof *m->ranks, by_rank);
    for (size_t i = 1; i < n; i++)
        if (m->ranks[i].rank == m->ranks[i - 1].rank &&
            m->ranks[i].host != m->ranks[i - 1].host)
            return false;
    for (size_t i = from; i < to; i++) {
        m->ranks[i - from].rank = 0;
        m->ranks[i - from].host = m->parts[i].host;
    }
    qsort(m->ranks, to - from, sizeof *m->ranks, by_rank);
    for (size_t i = 1; i < to - from; i++)
        if (m->ranks[i].host == m->ranks[i - 1].host)
            return false;
    return true;
}

static void add_event(struct maker *m, size_t from, size_t to)
{
    if (to - from < 2)
        return;
    if (!is_one(m, from, to)) {
        m->ambiguous++;
        return;
    }
    m->r = ep_grow(m->r, &m->cap, m->n + (to - from), sizeof *m->r);
    for (size_t i = from; i < to; i++)
        m->r[m->n++] = (struct ep_clock_reading){
            m->parts[i].y, (uint32_t)m->nevents, m->parts[i].host};
    m->nevents++;
}

/* Give parts the order in which they are put together: of each host the first,
   the second, ...; or by time. True: by time. */
static bool order(struct maker *m)
{
    bool timely = m->lines || !regular(m);

    for (size_t i = 0, nth = 0; i < m->nparts; i++) {
        struct part *p = &m->parts[i];

        nth = i && p[-1].host == p->host ? nth + 1 : 0;
        if (!timely)
            p->sorted = (double)nth * 2 * EP_CLOCK_GAP;
        else
            p->sorted = m->lines
                            ? ep_clock_line_correct(&m->lines[p->host], p->y)
                            : p->y;
    }
    qsort(m->parts, m->nparts, sizeof *m->parts, by_time);
    return timely;
}

static void make(struct maker *m, const struct ep_clock_instance *in)
{
    collect(m, in);
    divide(m);
    if (m->nparts < 2)
        return;
    m->by_time |= order(m);
    for (size_t i = 0, j; i < m->nparts; i = j) {
        for (j = i + 1;
             j < m->nparts &&
             m->parts[j].sorted - m->parts[j - 1].sorted < EP_CLOCK_GAP;
             j++)
            ;
        add_event(m, i, j);
    }
}

static void make_all(struct maker *m, const struct ep_clock_sample *s)
{
    size_t n;
    const struct ep_clock_instance *in = ep_clock_sample_instances(s, &n);

    m->all = ep_clock_sample_ends(s);
    m->n = m->nevents = 0;
    m->ambiguous = 0;
    m->by_time = false;
    for (size_t i = 0; i < n; i++)
        if (in[i].comm != EP_CLOCK_NONE) {
            if (m->base == 0)
                m->base = floor(m->all[in[i].first].end);
            make(m, &in[i]);
        }
}

static void maker_free(struct maker *m)
{
    free(m->ends);
    free(m->parts);
    free(m->ranks);
    free(m->v);
    free(m->r);
}

/* ==== The table ==== */

struct ep_clock_table {
    struct ep_intern *names;
    size_t *place; /* [n] of name i: where in hosts it is */
    struct ep_clock_host *hosts;
    size_t n, groups;
    uint64_t used, ambiguous;
};

static int worst_first(const void *pa, const void *pb)
{
    const struct ep_clock_host *a = pa, *b = pb;
    double x = fabs(ep_clock_line_ahead(&a->line));
    double y = fabs(ep_clock_line_ahead(&b->line));

    if (a->line.known != b->line.known)
        return a->line.known ? -1 : 1;
    if (a->line.known && a->line.group != b->line.group)
        return a->line.group < b->line.group ? -1 : 1;
    if (a->line.known && x != y)
        return x > y ? -1 : 1;
    return strcmp(a->name, b->name);
}

struct ep_clock_table *ep_clock_skew_solve(const struct ep_clock_skew *s)
{
    struct ep_clock_table *t = ep_calloc(1, sizeof *t);
    size_t n = ep_clock_sample_hosts(s->sample);
    struct ep_clock_line *lines = ep_calloc(n + 1, sizeof *lines);
    struct maker m = {.n = 0};

    make_all(&m, s->sample);
    t->groups = ep_clock_fit(m.r, m.n, m.nevents, n, lines);
    if (m.by_time) {
        m.lines = lines;
        make_all(&m, s->sample);
        t->groups = ep_clock_fit(m.r, m.n, m.nevents, n, lines);
    }
    t->names = ep_intern_new();
    t->hosts = ep_calloc(n + 1, sizeof *t->hosts);
    t->place = ep_calloc(n + 1, sizeof *t->place);
    t->n = n;
    t->used = m.nevents;
    t->ambiguous = m.ambiguous;
    for (size_t i = 0; i < n; i++) {
        const char *name = ep_clock_sample_host(s->sample, i);
        struct ep_span span = {name, strlen(name)};
        long at = ep_intern_add(t->names, span, n);

        lines[i].t0 += m.base;
        t->hosts[i].name = ep_intern_name(t->names, (size_t)at);
        t->hosts[i].line = lines[i];
    }
    qsort(t->hosts, n, sizeof *t->hosts, worst_first);
    for (size_t i = 0; i < n; i++) {
        struct ep_span span = {t->hosts[i].name, strlen(t->hosts[i].name)};

        t->place[ep_intern_add(t->names, span, n)] = i;
    }
    maker_free(&m);
    free(lines);
    return t;
}

void ep_clock_table_free(struct ep_clock_table *t)
{
    if (!t)
        return;
    ep_intern_free(t->names);
    free(t->place);
    free(t->hosts);
    free(t);
}

const struct ep_clock_host *ep_clock_table_hosts(const struct ep_clock_table *t,
                                                 size_t *n)
{
    *n = t->n;
    return t->hosts;
}

size_t ep_clock_table_groups(const struct ep_clock_table *t)
{
    return t->groups;
}

uint64_t ep_clock_table_used(const struct ep_clock_table *t)
{
    return t->used;
}

uint64_t ep_clock_table_ambiguous(const struct ep_clock_table *t)
{
    return t->ambiguous;
}

const struct ep_clock_host *ep_clock_table_find(struct ep_clock_table *t,
                                                struct ep_span host)
{
    long i = ep_intern_add(t->names, host, t->n);
    const struct ep_clock_host *h = i < 0 ? NULL : &t->hosts[t->place[i]];

    return h && h->line.known ? h : NULL;
}

double ep_clock_skew_correct(struct ep_clock_table *t, struct ep_span host,
                             double ts)
{
    const struct ep_clock_host *h = ep_clock_table_find(t, host);

    return h ? fmax(0, ep_clock_line_correct(&h->line, ts)) : ts;
}
