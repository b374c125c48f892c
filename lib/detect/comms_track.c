/* SPDX-License-Identifier: Apache-2.0 */
/*
 * comms_track.c - a series of transfers: ends that arrive become calls, calls
 * become bins; see comms.h.
 */
#include "config.h"

#include "detect/comms_impl.h"

#include "base/mem.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    SLOTS_HUGE = 16, /* of which there are many */
    TRACKS_HUGE = 4096,
    SETTLED = 16, /* calls without a new member: these are all that tell */
    LOST = 16,    /* that make room for more, and of numbers that never match */
    MISFITS = 32, /* calls of a series none of which was complete */
    YOUNG = 64,   /* calls of a series in which its classes come to be known */
    RARE = 8,     /* calls of a class before it counts in an older series */
};

/* Less than this part of a transfer nobody is late. */
static const float nobody = 0.05F;

struct comms_track *comms_track_new(struct comms_group *g, int32_t src,
                                    int32_t dst)
{
    size_t bytes = sizeof(struct comms_track) + sizeof(void *) +
                   COMMS_SLOTS * sizeof(struct comms_slot);
    struct comms_track *t;

    if (comms_full(g->job->all, bytes))
        return NULL;
    t = ep_calloc(1, sizeof *t);
    t->group = g;
    t->src = src;
    t->dst = dst;
    t->slot = ep_calloc(COMMS_SLOTS, sizeof *t->slot);
    t->slots = COMMS_SLOTS;
    t->want = src < 0 ? 0 : 2;
    t->mixed = -(double)INFINITY;
    t->past.best = (float)INFINITY;
    return t;
}

void comms_track_free(struct comms_track *t)
{
    free(t->slot);
    free(t->past.level);
    free(t->kind);
    free(t->late);
    free(t);
}

/* ==== Bins ==== */

static bool add_level(struct ep_comms *c, struct comms_past *p)
{
    if (p->levels == COMMS_LEVELS || comms_full(c, sizeof *p->level))
        return false;
    p->level = ep_realloc(p->level, (size_t)p->levels + 1, sizeof *p->level);
    p->levels++;
    return true;
}

/* The oldest bin of level k, taken out. */
static unsigned pop(struct comms_past *p, unsigned k)
{
    unsigned at = p->head[k];

    p->head[k] = (uint8_t)((at + 1) % COMMS_BIN);
    p->n[k]--;
    return at;
}

static void push(struct ep_comms *c, struct comms_past *p, double t, double v)
{
    for (unsigned k = 0; k < COMMS_LEVELS; k++) {
        struct comms_level *l;
        double up_t = 0, up_v = 0;
        bool up = false;

        if (k == p->levels && !add_level(c, p))
            return;
        l = &p->level[k];
        if (p->n[k] == COMMS_BIN) {
            unsigned a = pop(p, k), b = pop(p, k);

            up_t = l->t[b];
            up_v = ((double)l->v[a] + (double)l->v[b]) / 2;
            up = true;
        }
        l->t[(p->head[k] + p->n[k]) % COMMS_BIN] = t;
        l->v[(p->head[k] + p->n[k]) % COMMS_BIN] = (float)v;
        p->n[k]++;
        if (k == COMMS_BEST)
            p->best = fminf(p->best, (float)v);
        if (!up)
            return;
        t = up_t;
        v = up_v;
    }
}

size_t comms_bins(const struct comms_past *p, struct comms_bin *out)
{
    double from = -(double)INFINITY;
    size_t n = 0;

    for (unsigned k = p->levels; k-- > 0;)
        for (unsigned i = 0; i < p->n[k]; i++) {
            unsigned at = (p->head[k] + i) % COMMS_BIN;
            double t = p->level[k].t[at];

            /* of one call: it is where it is */
            out[n++] = (struct comms_bin){
                k ? from : t, t, (double)p->level[k].v[at], (double)(1U << k)};
            from = t;
        }
    return n;
}

/* ==== Classes ==== */

#define OTHER UINT64_C(0) /* sizes that vary: by the byte, in one class */

/* Of a call that takes e^*v s; NULL if there is no room. */
static struct comms_kind *find_kind(struct comms_track *t,
                                    const struct comms_slot *s, double *v)
{
    bool full = t->kinds >= COMMS_KINDS - 1;
    uint64_t key = s->kind;
    struct comms_kind *k;

    for (uint32_t i = 0; i < t->kinds; i++)
        if (t->kind[i].key == key)
            return &t->kind[i];
    if (full) {
        key = OTHER;
        *v -= log(s->bytes > 0 ? (double)s->bytes : 1.0);
        if (t->kinds == COMMS_KINDS)
            return &t->kind[COMMS_KINDS - 1];
    }
    if (comms_full(t->group->job->all, sizeof *k))
        return NULL;
    t->kind = ep_realloc(t->kind, (size_t)t->kinds + 1, sizeof *k);
    k = &t->kind[t->kinds++];
    *k = (struct comms_kind){key, *v, 0};
    return k;
}

const struct comms_kind *comms_main(const struct comms_track *t)
{
    const struct comms_kind *best = NULL;

    for (uint32_t i = 0; i < t->kinds; i++)
        if (!best || t->kind[i].n > best->n)
            best = &t->kind[i];
    return best;
}

/*
 * A class that comes later is a phase of its own, or an odd call: the first few
 * are left out, then the series is another than it was.
 */
static bool counts(struct comms_track *t, struct comms_kind *k, double ts)
{
    k->n++;
    if (t->calls <= YOUNG || k->n > RARE || t->kinds == 1)
        return true;
    if (k->n == RARE)
        t->mixed = ts;
    return false;
}

/* ==== Calls ==== */

static void note_late(struct comms_track *t, const struct comms_slot *s)
{
    struct comms_late *l;

    if (!(s->second - s->least > nobody * s->least))
        return;
    if (!t->late) {
        if (comms_full(t->group->job->all, COMMS_LATES * sizeof *l))
            return;
        t->late = ep_calloc(COMMS_LATES, sizeof *l);
    }
    l = &t->late[(t->lates - 1) % COMMS_LATES];
    if (t->lates && l->who == s->who && l->n < COMMS_RUN && s->ts >= l->ts) {
        l->until = (float)(s->ts - l->ts);
        l->gap += s->second - s->least;
        l->n++;
        return;
    }
    l = &t->late[t->lates++ % COMMS_LATES];
    *l = (struct comms_late){s->ts, 0, s->second - s->least, s->who, 1};
}

static void finish(struct comms_track *t, struct comms_slot *s)
{
    struct ep_comms *c = t->group->job->all;
    double v = log((double)s->least);
    struct comms_kind *k;

    s->done = true;
    c->sum.transfers++;
    t->lost -= t->lost > 0;
    t->calls++;
    k = find_kind(t, s, &v);
    if (k && counts(t, k, s->ts))
        push(c, &t->past, s->ts, v - k->ref);
    if (t->src < 0)
        note_late(t, s);
}

/* Ends are missing: most of them are enough for a collective. */
static void give_up(struct comms_track *t, struct comms_slot *s)
{
    if (t->src < 0 && s->n >= 2 && 4 * (uint64_t)s->n >= 3 * t->group->n) {
        finish(t, s);
        return;
    }
    t->group->job->all->sum.partial++;
    t->lost += 2;
}

static void grow_slots(struct comms_track *t)
{
    struct comms_job *j = t->group->job;
    uint32_t was = t->slots,
             most = j->tracks > TRACKS_HUGE ? SLOTS_HUGE : COMMS_SLOTS_MAX;
    struct comms_slot *slot;

    t->lost = 0;
    if (was >= most || comms_full(j->all, was * sizeof *slot))
        return;
    slot = ep_calloc(2 * (size_t)was, sizeof *slot);
    for (uint32_t i = 0; i < was; i++)
        if (t->slot[i].n)
            slot[(uint64_t)t->slot[i].seq & (2 * was - 1)] = t->slot[i];
    free(t->slot);
    t->slot = slot;
    t->slots = 2 * was;
}

/* Ends are far from each other, or each numbers its calls its own way. */
static void misfit(struct comms_track *t)
{
    if (t->calls || t->counted) {
        grow_slots(t);
    } else if (t->begun >= MISFITS) {
        t->counted = true;
        memset(t->slot, 0, t->slots * sizeof *t->slot);
    }
    t->lost = 0;
}

/* The slot of this number; NULL if it is over. */
static struct comms_slot *slot_of(struct comms_track *t, int64_t seq)
{
    struct comms_slot *s = &t->slot[(uint64_t)seq & (t->slots - 1)];

    if (s->n && s->seq == seq)
        return s->done ? NULL : s;
    if (s->n && s->seq > seq) {
        t->lost += 2; /* it comes too late */
        s = NULL;
    } else if (s->n && !s->done) {
        give_up(t, s);
    }
    if (t->lost >= LOST) {
        misfit(t);
        return NULL;
    }
    if (s) {
        memset(s, 0, sizeof *s);
        s->seq = seq;
        t->begun++;
        if (!t->want && t->begun - t->group->joined >= SETTLED)
            t->want = (uint32_t)t->group->n;
    }
    return s;
}

void comms_arrive(struct comms_track *t, const struct comms_arrival *a)
{
    struct comms_slot *s = slot_of(t, a->seq);
    float dur = (float)a->dur;

    if (!s || !(dur > 0) || !isfinite(dur))
        return;
    if (!s->n || dur < s->least) {
        s->second = s->n ? s->least : dur;
        s->least = dur;
        s->ts = a->ts;
        s->who = a->who;
        s->kind = a->kind;
        s->bytes = a->bytes;
    } else if (s->n == 1 || dur < s->second) {
        s->second = dur;
    }
    s->n++;
    if (s->n == t->want && s->n > 1)
        finish(t, s);
}

void comms_forget(struct comms_track *t, double ts)
{
    for (uint32_t i = 0; i < t->slots; i++)
        if (t->slot[i].n && t->slot[i].ts <= ts)
            memset(&t->slot[i], 0, sizeof t->slot[i]);
}
