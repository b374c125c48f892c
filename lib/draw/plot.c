/* SPDX-License-Identifier: Apache-2.0 */
/* plot.c - see plot.h: collecting, and what can be drawn. */
#include "config.h"

#include "draw/plot.h"

#include "base/mem.h"
#include "draw/axis.h"
#include "draw/plot_impl.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LAST_TIME 1e15

const char *const ep_plot_names[EP_PLOT_KINDS] = {
    "heat", "ranks", "pace", "timeline", "links", "loss",
};

static void keys_init(struct keys *k, size_t size)
{
    *k = (struct keys){.set = ep_intern_new(), .size = size};
}

static void keys_free(struct keys *k)
{
    ep_intern_free(k->set);
    free(k->v);
}

long ep_plot_key(struct keys *k, const void *key)
{
    long i =
        ep_intern_add(k->set, (struct ep_span){key, k->size}, EP_PLOT_NAMES);

    if (i >= 0 && (size_t)i == k->n) {
        k->v = ep_grow(k->v, &k->cap, k->n + 1, k->size);
        memcpy((char *)k->v + k->n++ * k->size, key, k->size);
    }
    return i;
}

struct ep_plots *ep_plots_new(unsigned wanted)
{
    struct ep_plots *p = ep_calloc(1, sizeof *p);

    p->wanted = wanted;
    p->whole = (double)NAN;
    p->names = ep_intern_new();
    p->ends = ep_intern_new();
    p->episodes = ep_intern_new();
    p->ops = ep_intern_new();
    keys_init(&p->steps.who, sizeof(struct who));
    keys_init(&p->losses.who, sizeof(struct who));
    keys_init(&p->lanes, sizeof(struct lane));
    return p;
}

void ep_plots_free(struct ep_plots *p)
{
    if (!p)
        return;
    for (size_t i = 0; i < p->events; i++) {
        free(p->event[i].label);
        free(p->event[i].title);
    }
    ep_intern_free(p->names);
    ep_intern_free(p->ends);
    ep_intern_free(p->episodes);
    ep_intern_free(p->ops);
    keys_free(&p->steps.who);
    keys_free(&p->losses.who);
    keys_free(&p->lanes);
    free(p->steps.v);
    free(p->losses.v);
    free(p->event);
    free(p->onset);
    for (int k = 0; k < COSTS; k++)
        free(p->cost[k].v);
    free(p->link);
    free(p->span);
    free(p);
}

static bool wants(const struct ep_plots *p, enum ep_plot_kind k)
{
    return p->wanted >> k & 1;
}

static double bounded(double v, double most)
{
    return v > most ? most : v < -most ? -most : v; /* NaN stays */
}

/* The number of a name; -1 if it is empty, or there are too many. */
static int64_t name_of(struct ep_plots *p, struct ep_span s)
{
    return s.len ? ep_intern_add(p->names, s, EP_PLOT_NAMES) : -1;
}

static bool add_point(struct ep_plots *p, struct points *to,
                      const struct who *who, const struct point *v)
{
    long i = ep_plot_key(&to->who, who);

    if (i < 0) {
        p->left_out++;
        return false;
    }
    to->many_jobs |= who->job != ((const struct who *)to->who.v)->job;
    to->v = ep_grow(to->v, &to->cap, to->n + 1, sizeof *to->v);
    to->v[to->n] = *v;
    to->v[to->n++].who = (uint32_t)i;
    return true;
}

void ep_plots_step(struct ep_plots *p, const struct ep_plot_step *s)
{
    struct who who = {.rank = s->rank, .split = -1};
    struct point v = {.ts = bounded(s->ts, LAST_TIME),
                      .dur = bounded(s->dur, EP_DRAW_LARGEST),
                      .busy = bounded(s->busy, EP_DRAW_LARGEST),
                      .step = s->step};

    if (!wants(p, EP_PLOT_PACE) && !wants(p, EP_PLOT_RANKS))
        return;
    who.job = name_of(p, s->job);
    who.worker = name_of(p, s->worker);
    if (!add_point(p, &p->steps, &who, &v))
        return;
    p->any_busy |= !isnan(s->busy);
    p->any_rank |= s->rank >= 0 || who.worker >= 0;
}

void ep_plots_loss(struct ep_plots *p, const struct ep_plot_loss *l)
{
    struct who who = {.rank = l->rank};
    struct point v = {.ts = bounded(l->ts, LAST_TIME),
                      .dur = bounded(l->value, EP_DRAW_LARGEST),
                      .busy = (double)NAN,
                      .step = l->step};

    if (!wants(p, EP_PLOT_LOSS))
        return;
    who.job = name_of(p, l->job);
    who.worker = name_of(p, l->worker);
    who.split = name_of(p, l->split);
    (void)add_point(p, &p->losses, &who, &v);
}

/* The whole number behind "key=" in key=value pairs, or -1. */
static int64_t id_number(struct ep_span id, const char *key)
{
    size_t len = strlen(key);

    for (size_t i = 0; i + len < id.len; i++) {
        int64_t v = 0;

        if ((i && id.ptr[i - 1] != ',') || memcmp(id.ptr + i, key, len) != 0)
            continue;
        for (i += len; i < id.len && id.ptr[i] >= '0' && id.ptr[i] <= '9'; i++)
            v = v < INT64_MAX / 16 ? v * 10 + (id.ptr[i] - '0') : v;
        return v;
    }
    return -1;
}

void ep_plot_add_name(struct ep_buf *b, const char *name)
{
    size_t len = strlen(name), head = EP_PLOT_NAME * 2 / 3, tail;

    if (len <= EP_PLOT_NAME) {
        ep_buf_add_escaped(b, name, len);
        return;
    }
    tail = len - EP_PLOT_NAME / 3;
    while (head && ((unsigned char)name[head] & 0xc0) == 0x80)
        head--; /* not within a character */
    while (((unsigned char)name[tail] & 0xc0) == 0x80)
        tail++;
    ep_buf_add_escaped(b, name, head);
    ep_buf_adds(b, "\xe2\x80\xa6");
    ep_buf_add_escaped(b, name + tail, len - tail);
}

/* As above. */
static void add_span(struct ep_buf *b, struct ep_span s)
{
    char *name = ep_strndup(s.ptr, s.len);

    ep_plot_add_name(b, name);
    free(name);
}

/* "rank=2 1.50x" and "onset of rank=2 ...". */
static void describe(struct event *e, const struct ep_plot_event *of)
{
    struct ep_span who = of->id.len ? of->id : of->scope;
    struct ep_buf b;

    ep_buf_init(&b);
    add_span(&b, who);
    if (!of->id.len && of->job.len) { /* "job lm" */
        ep_buf_addc(&b, ' ');
        add_span(&b, of->job);
    }
    if (!isnan(of->factor) && e->kind != EP_MARK_RELIEF)
        ep_buf_addf(&b, of->factor < 1000 ? " %.2fx" : " %.3gx", of->factor);
    e->label = ep_strndup(b.ptr, b.len);
    ep_buf_reset(&b);
    add_span(&b, of->kind);
    ep_buf_addf(&b, ": %s", e->label);
    if (of->job.len) {
        ep_buf_adds(&b, "\njob ");
        add_span(&b, of->job);
    }
    if (of->cause.len) {
        ep_buf_adds(&b, "\ncause: ");
        add_span(&b, of->cause);
    }
    ep_buf_adds(&b, "\nsince ");
    ep_axis_add_time(&b, e->since);
    if (of->step >= 0)
        ep_buf_addf(&b, ", step %lld", (long long)of->step);
    e->title = ep_strndup(b.ptr, b.len);
    ep_buf_free(&b);
}

/* Where an event goes: to the place of the onset that it replaces, or behind
   all others. */
static size_t place_of(struct ep_plots *p, const struct ep_plot_event *e,
                       bool onset)
{
    size_t known = ep_intern_count(p->episodes);
    struct ep_buf key;
    long i;

    if (!onset || !e->eid.len)
        return p->events;
    ep_buf_init(&key);
    ep_buf_addf(&key, "%zu:", e->job.len);
    ep_buf_add(&key, e->job.len ? e->job.ptr : "", e->job.len);
    ep_buf_add(&key, e->eid.ptr, e->eid.len);
    i = ep_intern_add(p->episodes, (struct ep_span){key.ptr, key.len},
                      EP_PLOT_EVENTS);
    ep_buf_free(&key);
    if (i < 0)
        return p->events;
    if ((size_t)i == known) {
        p->onset =
            ep_grow(p->onset, &p->onset_cap, known + 1, sizeof *p->onset);
        p->onset[i] = p->events;
    }
    return p->onset[i];
}

void ep_plots_event(struct ep_plots *p, const struct ep_plot_event *e)
{
    struct event v = {.since = bounded(e->since, LAST_TIME),
                      .factor = isnan(e->factor) ? 1 : e->factor,
                      .step = e->step};
    size_t at;

    if (!wants(p, EP_PLOT_PACE))
        return;
    if (p->events == EP_PLOT_EVENTS) {
        p->left_out++;
        return;
    }
    v.kind = ep_span_eq(e->kind, "relief") ? EP_MARK_RELIEF
             : ep_span_eq(e->kind, "onset") || ep_span_eq(e->kind, "missing")
                 ? EP_MARK_ONSET
                 : EP_MARK_SPIKE;
    v.rank = id_number(e->id, "rank=");
    describe(&v, e);
    at = place_of(p, e, v.kind == EP_MARK_ONSET);
    if (at < p->events) {
        free(p->event[at].label);
        free(p->event[at].title);
    } else {
        p->event = ep_grow(p->event, &p->event_cap, p->events + 1, sizeof v);
        p->events++;
    }
    p->event[at] = v;
}

void ep_plots_whatif(struct ep_plots *p, const struct ep_plot_whatif *w)
{
    static const char *const what[COSTS] = {"worker", "dp", "pp"};
    struct worker v = {-1, id_number(w->id, "dp="), id_number(w->id, "pp="),
                       bounded(w->slowdown, EP_DRAW_LARGEST)};
    struct costs *to;
    int k = 0;

    if (!wants(p, EP_PLOT_HEAT))
        return;
    if (ep_span_eq(w->what, "all"))
        p->whole = v.slowdown;
    while (k < COSTS && !ep_span_eq(w->what, what[k]))
        k++;
    if (k == COSTS || (v.dp < 0 && v.pp < 0))
        return;
    to = &p->cost[k];
    if (to->n == EP_PLOT_CELLS) {
        p->left_out++;
        return;
    }
    v.job = name_of(p, w->job);
    to->v = ep_grow(to->v, &to->cap, to->n + 1, sizeof v);
    to->v[to->n++] = v;
}

void ep_plots_span(struct ep_plots *p, const struct ep_plot_span *s)
{
    struct lane key = {.dp = s->dp, .pp = s->pp, .rank = -1};
    struct span v = {.ts = bounded(s->ts, LAST_TIME),
                     .dur = bounded(s->dur, LAST_TIME),
                     .step = s->step,
                     .mb = s->mb,
                     .ideal = s->ideal};
    long lane, op;

    if (!wants(p, EP_PLOT_TIMELINE))
        return;
    key.job = name_of(p, s->job);
    key.tp = s->tp > 0 ? s->tp : 0; /* who does not say is the first */
    if (s->dp < 0 && s->pp < 0)
        key.rank = s->rank;
    lane = ep_plot_key(&p->lanes, &key);
    op = ep_intern_add(p->ops, s->op, 4096);
    if (lane < 0 || op < 0) {
        p->left_out++;
        return;
    }
    v.lane = (uint32_t)lane;
    v.op = (uint32_t)op;
    p->span = ep_grow(p->span, &p->span_cap, p->spans + 1, sizeof v);
    p->span[p->spans++] = v;
}

void ep_plots_link(struct ep_plots *p, const struct ep_plot_link *l)
{
    long src, dst;

    if (!wants(p, EP_PLOT_LINKS))
        return;
    src = ep_intern_add(p->ends, l->src, EP_PLOT_NAMES);
    dst = ep_intern_add(p->ends, l->dst, EP_PLOT_NAMES);
    if (src < 0 || dst < 0) {
        p->left_out++;
        return;
    }
    p->link = ep_grow(p->link, &p->link_cap, p->links + 1, sizeof *p->link);
    p->link[p->links++] = (struct link){(uint32_t)src, (uint32_t)dst,
                                        bounded(l->value, EP_DRAW_LARGEST)};
}

unsigned ep_plots_can(const struct ep_plots *p)
{
    unsigned can = 0;

    if (p->cost[COST_WORKER].n)
        can |= 1u << EP_PLOT_HEAT;
    if (p->steps.n && p->any_rank)
        can |= 1u << EP_PLOT_RANKS;
    if (p->steps.n)
        can |= 1u << EP_PLOT_PACE;
    if (p->spans)
        can |= 1u << EP_PLOT_TIMELINE;
    if (p->links)
        can |= 1u << EP_PLOT_LINKS;
    if (p->losses.n)
        can |= 1u << EP_PLOT_LOSS;
    return can & p->wanted;
}

int ep_plots_choose(const struct ep_plots *p)
{
    unsigned can = ep_plots_can(p);

    if (p->steps.who.n <= EP_PLOT_MANY_RANKS && can >> EP_PLOT_PACE & 1)
        can &= ~(1u << EP_PLOT_RANKS);
    for (int k = 0; k < EP_PLOT_KINDS; k++)
        if (can >> k & 1)
            return k;
    return -1;
}

uint64_t ep_plots_left_out(const struct ep_plots *p)
{
    return p->left_out;
}

int ep_plots_draw(struct ep_plots *p, enum ep_plot_kind kind,
                  const struct ep_plot_choice *choice,
                  const struct ep_look *look, struct ep_buf *out,
                  struct ep_error *err)
{
    static ep_plot_draw_fn *const draw[EP_PLOT_KINDS] = {
        [EP_PLOT_HEAT] = ep_plot_draw_heat,
        [EP_PLOT_RANKS] = ep_plot_draw_ranks,
        [EP_PLOT_PACE] = ep_plot_draw_pace,
        [EP_PLOT_LINKS] = ep_plot_draw_links,
        [EP_PLOT_LOSS] = ep_plot_draw_loss,
    };

    if (!(ep_plots_can(p) >> kind & 1))
        return ep_error_set(err, EP_EMISSING, "nothing to draw as %s",
                            ep_plot_names[kind]);
    if (kind == EP_PLOT_TIMELINE)
        return ep_plot_draw_timeline(p, choice, look, out, err);
    draw[kind](p, choice, look, out);
    return 0;
}
