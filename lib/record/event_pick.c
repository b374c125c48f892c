/* SPDX-License-Identifier: Apache-2.0 */
/* event_pick.c - see event_pick.h. */
#include "config.h"

#include "record/event_pick.h"

#include "base/intern.h"
#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

/* How well an eid fits, best first. */
enum fit { FIT_WHOLE, FIT_NAME, FIT_BEGIN, FIT_BEHIND_JOB, FIT_NONE };

/* So many are listed in a message. */
enum { LISTED = 8 };

struct picked {
    enum fit fit;
    size_t close; /* bytes that agree with what is wanted, from the start */
    struct ep_buf said;
};

struct ep_pick {
    const char *wanted;
    struct ep_intern *eids;
    struct picked *v;
    size_t cap;
};

struct ep_pick *ep_pick_new(const char *wanted)
{
    struct ep_pick *p = ep_calloc(1, sizeof *p);

    p->wanted = wanted;
    p->eids = ep_intern_new();
    return p;
}

void ep_pick_free(struct ep_pick *p)
{
    if (!p)
        return;
    for (size_t i = 0; i < ep_intern_count(p->eids); i++)
        ep_buf_free(&p->v[i].said);
    ep_intern_free(p->eids);
    free(p->v);
    free(p);
}

static enum fit fit_of(const char *wanted, struct ep_span eid,
                       struct ep_span job)
{
    size_t n = strlen(wanted);

    if (!eid.ptr)
        return FIT_NONE;
    if (eid.len >= n && memcmp(eid.ptr, wanted, n) == 0)
        return eid.len == n                     ? FIT_WHOLE
               : n && strchr("@/#", eid.ptr[n]) ? FIT_NAME
                                                : FIT_BEGIN;
    if (job.len && eid.len > job.len && eid.ptr[job.len] == '/' &&
        eid.len - job.len - 1 >= n && memcmp(eid.ptr, job.ptr, job.len) == 0 &&
        memcmp(eid.ptr + job.len + 1, wanted, n) == 0)
        return FIT_BEHIND_JOB;
    return FIT_NONE;
}

struct ep_buf *ep_pick_take(struct ep_pick *p, const struct ep_record *r)
{
    struct ep_span eid = ep_record_str(r, EP_K_EID);
    size_t known = ep_intern_count(p->eids), close = 0;
    long i = ep_intern_add(p->eids, eid, SIZE_MAX);

    if ((size_t)i == known) {
        while (close < eid.len && p->wanted[close] == eid.ptr[close])
            close++;
        p->v = ep_grow(p->v, &p->cap, known + 1, sizeof *p->v);
        p->v[i] = (struct picked){
            .fit = fit_of(p->wanted, eid, ep_record_str(r, EP_K_JOB)),
            .close = close};
        ep_buf_init(&p->v[i].said);
    }
    return p->v[i].fit == FIT_NONE ? NULL : &p->v[i].said;
}

/* "; there are A, B, ...", of a fit or better, those that agree most first. */
static void list(const struct ep_pick *p, enum fit worst, struct ep_buf *b)
{
    size_t n = ep_intern_count(p->eids), shown = 0, fitting = 0;
    size_t most = strlen(p->wanted);

    for (size_t i = 0; i < n; i++)
        fitting += p->v[i].fit <= worst;
    for (size_t close = most + 1; close-- > 0 && shown < LISTED;)
        for (size_t i = 0; i < n && shown < LISTED; i++) {
            const char *eid = ep_intern_name(p->eids, i);

            if (p->v[i].close != close || p->v[i].fit > worst)
                continue;
            ep_buf_adds(b, shown++ ? ", " : "; there ");
            if (shown == 1)
                ep_buf_adds(b, fitting == 1 ? "is " : "are ");
            ep_buf_add_escaped(b, eid, strlen(eid));
        }
    if (fitting > shown)
        ep_buf_addf(b, " and %zu more", fitting - shown);
}

const struct ep_buf *ep_pick_choose(const struct ep_pick *p, struct ep_buf *why)
{
    size_t n = ep_intern_count(p->eids), fitting[FIT_NONE + 1] = {0};
    int best = FIT_WHOLE;

    for (size_t i = 0; i < n; i++)
        fitting[p->v[i].fit]++;
    while (best < FIT_NONE && fitting[best] == 0)
        best++;
    if (best < FIT_NONE && fitting[best] == 1) {
        for (size_t i = 0; i < n; i++)
            if ((int)p->v[i].fit == best)
                return &p->v[i].said;
    }
    ep_buf_adds(why, "cannot explain ");
    ep_buf_add_escaped(why, p->wanted, strlen(p->wanted));
    ep_buf_adds(why, best < FIT_NONE ? ": more than one episode begins so"
                     : n             ? ": no such episode"
                                     : ": there was no event at all");
    list(p, best < FIT_NONE ? (enum fit)best : FIT_NONE, why);
    return NULL;
}
