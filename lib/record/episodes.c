/* SPDX-License-Identifier: Apache-2.0 */
/* episodes.c - see episodes.h. */
#include "config.h"

#include "record/episodes.h"

#include "base/intern.h"
#include "base/mem.h"

#include <stdint.h>
#include <stdlib.h>

/* The last onset of an episode. */
struct episode {
    double factor;
    long what; /* scope, id and cause together, by number */
};

struct ep_episodes {
    struct ep_intern *names, *what;
    struct episode *v;
    size_t cap;
    struct ep_buf key;
};

struct ep_episodes *ep_episodes_new(void)
{
    struct ep_episodes *e = ep_calloc(1, sizeof *e);

    e->names = ep_intern_new();
    e->what = ep_intern_new();
    ep_buf_init(&e->key);
    return e;
}

void ep_episodes_free(struct ep_episodes *e)
{
    if (!e)
        return;
    ep_intern_free(e->names);
    ep_intern_free(e->what);
    ep_buf_free(&e->key);
    free(e->v);
    free(e);
}

/* The number of some keys of a record together, told apart by their lengths. */
static long number_of(struct ep_episodes *e, struct ep_intern *set,
                      const struct ep_record *r, const enum ep_key *keys,
                      size_t n)
{
    ep_buf_reset(&e->key);
    for (size_t i = 0; i < n; i++) {
        struct ep_span s = ep_record_str(r, keys[i]);

        ep_buf_addf(&e->key, "%zu:", s.len);
        ep_buf_add(&e->key, s.ptr ? s.ptr : "", s.len);
    }
    return ep_intern_add(set, (struct ep_span){e->key.ptr, e->key.len},
                         SIZE_MAX);
}

enum ep_event_news ep_episodes_take(struct ep_episodes *e,
                                    const struct ep_record *r)
{
    static const enum ep_key name[] = {EP_K_JOB, EP_K_EID};
    static const enum ep_key what[] = {EP_K_KIND, EP_K_SCOPE, EP_K_ID,
                                       EP_K_CAUSE};
    struct ep_span kind = ep_record_str(r, EP_K_KIND);
    double factor = ep_record_num(r, EP_K_FACTOR);
    enum ep_event_news news = EP_EVENT_FIRST;
    size_t known = ep_intern_count(e->names);
    long i, now;

    if (!ep_span_eq(kind, "onset") && !ep_span_eq(kind, "missing"))
        return EP_EVENT_FIRST;
    i = number_of(e, e->names, r, name, sizeof name / sizeof *name);
    now = number_of(e, e->what, r, what, sizeof what / sizeof *what);
    if ((size_t)i == known) {
        e->v = ep_grow(e->v, &e->cap, known + 1, sizeof *e->v);
    } else {
        news = e->v[i].what == now && factor > e->v[i].factor ? EP_EVENT_WORSE
                                                              : EP_EVENT_UPDATE;
    }
    e->v[i] = (struct episode){factor, now};
    return news;
}

size_t ep_episodes_count(const struct ep_episodes *e)
{
    return ep_intern_count(e->names);
}
