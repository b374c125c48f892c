/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stream_scrape.c - inputs that are read again and again, and URLs that do not
 * answer.
 *
 * A round reads every input from its beginning, as a stream of its own; rounds
 * begin at ticks of the monotonic clock, begun + n * interval, so that they do
 * not drift. A round that lasts longer than the interval misses ticks; there
 * are never two at a time, and what was missed is not made up for.
 *
 * An exporter that does not answer is news, not trouble: it becomes an event
 * of kind missing when it falls silent, and one of kind relief, with the same
 * eid, when it is back. The eid has URL and time, since a host may have
 * several exporters:
 *
 *     missing/http://n3:9400/metrics@1700000000.125
 */
#include "config.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/url.h"
#include "record/stream_impl.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* How often a stop is looked for between rounds. */
#define NAP_MOST 0.05 /* s */

/* ==== Endpoints ==== */

static struct endpoint *endpoint_of(struct ep_stream *s, const char *path)
{
    struct scrape *sc = &s->scrape;
    size_t before;
    long i;

    if (!sc->names)
        sc->names = ep_intern_new();
    before = ep_intern_count(sc->names);
    i = ep_intern_add(sc->names, (struct ep_span){path, strlen(path)},
                      SIZE_MAX);
    if ((size_t)i == before) {
        sc->endpoints = ep_grow(sc->endpoints, &sc->cap_endpoints, before + 1,
                                sizeof *sc->endpoints);
        sc->endpoints[i] = (struct endpoint){.down = false};
    }
    return &sc->endpoints[i];
}

static void push(struct ep_stream *s, const struct change *c)
{
    struct scrape *sc = &s->scrape;

    sc->changes = ep_grow(sc->changes, &sc->cap_changes, sc->nchanges + 1,
                          sizeof *sc->changes);
    sc->changes[sc->nchanges++] = *c;
}

/* Say of a URL that it is gone, or back. */
static void tell(struct ep_stream *s, struct endpoint *e,
                 const struct source *src, bool back, const char *evidence)
{
    double now = ep_clock_now(&ep_clock_wall);
    char eid[300];

    if (!e->eid) {
        (void)snprintf(eid, sizeof eid, "missing/%s@%.3f", src->in.name,
                       e->since);
        e->eid = ep_strdup(eid);
    }
    push(s, &(struct change){
                .ts = now > e->since ? now : e->since,
                .since = e->since,
                .back = back,

                .eid = ep_strdup(e->eid),
                .host = ep_strdup(src->in.host ? src->in.host : src->in.name),
                .evidence = ep_strdup(evidence)});
}

/* The reason alone: the eid has the URL. */
static const char *bare_reason(const char *message, const char *name)
{
    const char *at = strstr(message, name);

    if (!at || strncmp(at + strlen(name), ": ", 2) != 0)
        return message;
    return at + strlen(name) + 2;
}

bool ep_stream_is_down(struct ep_stream *s, const char *path)
{
    return endpoint_of(s, path)->down;
}

bool ep_stream_lost(struct ep_stream *s, const char *path,
                    const struct source *src, const struct ep_error *err)
{
    struct endpoint *e;

    if (!path || (!(s->config.interval > 0) && !ep_url_is(path)))
        return true;
    e = endpoint_of(s, path);
    if (e->down)
        return false;
    e->down = true;
    e->since = src ? src->in.mtime : ep_clock_now(&ep_clock_wall);
    if (src && ep_url_is(path)) {
        free(e->eid);
        e->eid = NULL;
        tell(s, e, src, false, bare_reason(err->msg, src->in.name));
    }
    return true;
}

void ep_stream_answered(struct ep_stream *s, const struct source *src)
{
    struct endpoint *e;
    struct ep_error back;
    char evidence[64];

    s->scrape.answered = true;
    if (!(s->config.interval > 0) || !src->path)
        return;
    e = endpoint_of(s, src->path);
    if (!e->down)
        return;
    e->down = false;
    (void)snprintf(evidence, sizeof evidence, "was away for %.1f s",
                   ep_clock_now(&ep_clock_wall) - e->since);
    (void)ep_error_set(&back, EP_OK, "%s is back: it %s", src->in.name,
                       evidence);
    ep_stream_complain(s, &back);
    if (e->eid)
        tell(s, e, src, true, evidence);
}

const struct ep_record *ep_stream_event(struct ep_stream *s)
{
    struct scrape *sc = &s->scrape;
    struct ep_record *r = &sc->record;
    const struct change *c;

    if (sc->at == sc->nchanges)
        return NULL;
    c = &sc->changes[sc->at];
    if (s->nheap && !s->config.no_merge && c->ts > s->heap[0]->ts)
        return NULL;
    sc->at++;
    ep_record_begin(r, EP_EVENT);
    ep_record_set_num(r, EP_K_TS, c->ts);
    ep_record_set_str(r, EP_K_HOST, c->host);
    ep_record_set_str(r, EP_K_EID, c->eid);
    ep_record_set_str(r, EP_K_KIND, c->back ? "relief" : "missing");
    ep_record_set_str(r, EP_K_SCOPE, "host");
    (void)snprintf(sc->id, sizeof sc->id, "host=%s", c->host);
    ep_record_set_str(r, EP_K_ID, sc->id);
    ep_record_set_num(r, EP_K_SINCE, c->since);
    ep_record_set_num(r, EP_K_P, 1);
    ep_record_set_str(r, EP_K_EVIDENCE, c->evidence);
    return r;
}

static void drop_changes(struct scrape *sc)
{
    for (size_t i = 0; i < sc->nchanges; i++) {
        free(sc->changes[i].eid);
        free(sc->changes[i].host);
        free(sc->changes[i].evidence);
    }
    sc->nchanges = sc->at = 0;
}

void ep_stream_scrape_free(struct ep_stream *s)
{
    struct scrape *sc = &s->scrape;

    drop_changes(sc);
    for (size_t i = 0; sc->names && i < ep_intern_count(sc->names); i++)
        free(sc->endpoints[i].eid);
    free(sc->endpoints);
    free(sc->changes);
    ep_intern_free(sc->names);
}

/* ==== Rounds ==== */

/* The tick after the round; those that passed meanwhile are missed. */
static void next_tick(struct ep_stream *s)
{
    struct scrape *sc = &s->scrape;
    double since = ep_clock_now(&ep_clock_mono) - sc->begun;
    double tick = fmax(ceil(since / s->config.interval), sc->tick + 1);
    struct ep_error err;

    if (tick > sc->tick + 1 && !sc->missed) {
        (void)ep_error_set(&err, EP_ETIMEOUT,
                           "cannot keep the interval: a round took %.1f s",
                           since - sc->tick * s->config.interval);
        ep_stream_complain(s, &err);
    }
    sc->missed += (uint64_t)(tick - sc->tick - 1);
    sc->tick = tick;
}

/* Sleep until the tick. False if the stream is to stop. */
static bool sleep_until_tick(const struct ep_stream *s)
{
    const struct scrape *sc = &s->scrape;
    double due = sc->begun + sc->tick * s->config.interval, left;

    while ((left = due - ep_clock_now(&ep_clock_mono)) > 0) {
        struct timespec t = {.tv_nsec = (long)(fmin(left, NAP_MOST) * 1e9)};

        if (ep_stream_stopped(s))
            return false;
        (void)nanosleep(&t, NULL);
    }
    return !ep_stream_stopped(s);
}

bool ep_stream_next_round(struct ep_stream *s)
{
    struct scrape *sc = &s->scrape;

    sc->rounds++;
    if (!(s->config.interval > 0) ||
        (s->config.rounds && sc->rounds >= s->config.rounds))
        return false;
    if (s->config.on_wait)
        s->config.on_wait(s->config.ctx);
    next_tick(s);
    if (!sleep_until_tick(s))
        return false;
    ep_stream_close_all(s);
    drop_changes(sc);
    s->passed_over = 0;
    ep_stream_open_all(s);
    return true;
}

uint64_t ep_stream_missed(const struct ep_stream *s)
{
    return s->scrape.missed;
}
