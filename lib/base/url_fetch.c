/* SPDX-License-Identifier: Apache-2.0 */
/* url_fetch.c - the thread that fetches URLs: its queue, time and retries. See
 * url_impl.h and url.h. */
#include "config.h"

#include "base/url_impl.h"

#include "base/clock.h"
#include "base/intern.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/rng.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RETRY_FIRST_S 0.5
#define RETRY_AFTER_MAX_S 60.0

struct list {
    struct ep_url *first, *last;
};

/* What one life of the thread has; its own. */
struct ep_url_fetch {
    struct list queue, live; /* QUEUED; RUNNING and LATER */
    struct ep_intern *hosts;
    unsigned *host_running; /* by number of the host */
    size_t hosts_cap;
    unsigned running; /* neither paused nor idle */
    unsigned open;    /* requests */
    bool look;        /* one in the queue may have come to its turn */
    double now;
    struct ep_rng rng;
};

/* ---- lists ---------------------------------------------------------------- */

static void insert(struct list *l, struct ep_url *u, bool in_front)
{
    u->prev = in_front ? NULL : l->last;
    u->next = in_front ? l->first : NULL;
    *(u->prev ? &u->prev->next : &l->first) = u;
    *(u->next ? &u->next->prev : &l->last) = u;
}

static void take_out(struct list *l, struct ep_url *u)
{
    *(u->prev ? &u->prev->next : &l->first) = u->next;
    *(u->next ? &u->next->prev : &l->last) = u->prev;
    u->prev = u->next = NULL;
}

static void move(struct ep_url *u, enum ep_url_place to)
{
    struct ep_url_fetch *f = u->f;
    enum ep_url_place from = u->place;

    if (from == EP_URL_QUEUED)
        take_out(&f->queue, u);
    else if (from == EP_URL_RUNNING || from == EP_URL_LATER)
        take_out(&f->live, u);
    u->place = to;
    if (to == EP_URL_QUEUED) /* one that has been tried comes first */
        insert(&f->queue, u, from == EP_URL_LATER);
    else if (to == EP_URL_RUNNING || to == EP_URL_LATER)
        insert(&f->live, u, false);
    f->look = f->look || to == EP_URL_QUEUED;
}

/* ---- the thread: one URL -------------------------------------------------- */

static void count(struct ep_url *u, bool runs)
{
    struct ep_url_fetch *f = u->f;

    if (!u->idle)
        f->running += runs ? 1U : -1U;
    f->host_running[u->host] += runs ? 1U : -1U;
    f->look = f->look || !runs;
}

/* Something comes, or nothing does. */
static void set_idle(struct ep_url *u, bool idle)
{
    if (u->idle == idle)
        return;
    u->idle = idle;
    u->f->running += idle ? -1U : 1U;
    u->f->look = u->f->look || idle;
}

static void drop_request(struct ep_url *u)
{
    if (!u->http)
        return;
    ep_http_free(u->http);
    u->http = NULL;
    if (!u->paused)
        count(u, false);
    u->paused = u->idle = false;
    u->f->open--;
    u->f->look = true;
}

static void finish(struct ep_url *u, int code, int errnum, const char *reason)
{
    char tries[32] = "";

    drop_request(u);
    move(u, EP_URL_DONE);
    if (code != 0) {
        if (u->tries > 1)
            (void)snprintf(tries, sizeof tries, " (%d tries)", u->tries);
        (void)ep_error_set(&u->err, code, "cannot read %s: %s%s", u->shown,
                           reason, tries);
        u->err.sys_errno = errnum;
    }
    ep_url_pipe_end(&u->pipe);
}

static void finish_failed(struct ep_url *u, const struct ep_http_end *end)
{
    char reason[sizeof end->reason + 64];
    int code = end->code;

    if (u->got == 0 || code == EP_ELIMIT) {
        finish(u, code, end->sys_errno, end->reason);
        return;
    }
    (void)snprintf(reason, sizeof reason,
                   "connection lost after %llu bytes: %s",
                   (unsigned long long)u->got, end->reason);
    finish(u, code == EP_ETIMEOUT ? EP_ETIMEOUT : EP_ETRUNC, 0, reason);
}

/* Can the next try go on? Makes it begin anew if nobody saw a byte yet. */
static bool can_go_on(struct ep_url *u)
{
    size_t dropped = 0;

    if (u->got > 0 && ep_url_pipe_rewind(&u->pipe, &dropped)) {
        (void)atomic_fetch_sub(&ep_url_fetcher.unread, dropped);
        u->got = 0;
    }
    return u->got == 0 || u->validator;
}

/* A try has failed: another one later, or none. */
static void fail(struct ep_url *u, const struct ep_http_end *end)
{
    double delay =
        ldexp(RETRY_FIRST_S, u->tries - 1) * (0.5 + ep_rng_uniform(&u->f->rng));

    if (end->after_s > 0)
        delay = end->after_s;
    delay = fmin(delay, RETRY_AFTER_MAX_S);
    drop_request(u);
    if (!end->transient || u->tries > u->lim.retries ||
        u->f->now + delay >= u->deadline || !can_go_on(u)) {
        finish_failed(u, end);
        return;
    }
    u->again = u->f->now + delay;
    move(u, EP_URL_LATER);
}

/* The pieces of a body (ep_http_job.body). */
static enum ep_http_took take(void *ctx, const void *data, size_t n)
{
    struct ep_url *u = ctx;
    const char *validator;

    u->quiet = ep_clock_now(&ep_clock_mono);
    set_idle(u, false);
    if (n == 0)
        return EP_HTTP_TOOK;
    if (u->lim.max_bytes && n > u->lim.max_bytes - u->got) {
        u->too_long = true;
        return EP_HTTP_STOP;
    }
    if (!ep_url_pipe_put(&u->pipe, data, n)) {
        u->paused = true;
        count(u, false);
        return EP_HTTP_PAUSE;
    }
    if (u->got == 0) {
        free(u->validator);
        validator = ep_url_head_validator(ep_http_head(u->http));
        u->validator = validator ? ep_strdup(validator) : NULL;
    }
    u->got += n;
    (void)atomic_fetch_add(&ep_url_fetcher.unread, n);
    return EP_HTTP_TOOK;
}

static void start_try(struct ep_url *u)
{
    struct ep_http_job job = {.url = u->url,
                              .connect_s = u->lim.connect_s,
                              .offset = u->got,
                              .validator = u->validator,
                              .body = take,
                              .ctx = u};
    struct ep_error err;

    u->quiet = u->f->now;
    if (u->tries++ == 0)
        u->deadline =
            u->lim.total_s > 0 ? u->f->now + u->lim.total_s : (double)INFINITY;
    u->http = ep_http_start(ep_url_fetcher.pool, &job, &err);
    if (!u->http) {
        finish(u, err.code, err.sys_errno, err.msg);
        return;
    }
    u->f->open++;
    count(u, true);
    move(u, EP_URL_RUNNING);
}

static void resume(struct ep_url *u)
{
    if (u->place != EP_URL_RUNNING || !u->paused)
        return;
    u->paused = false;
    u->quiet = u->f->now;
    count(u, true);
    ep_http_resume(u->http); /* may call take() */
}

static void request_ended(struct ep_url *u, struct ep_http_end *end)
{
    struct ep_buf size;

    if (u->too_long) {
        ep_buf_init(&size);
        ep_num_format_size(&size, (double)u->lim.max_bytes);
        (void)snprintf(end->reason, sizeof end->reason,
                       "the body is longer than %s", size.ptr);
        ep_buf_free(&size);
        end->code = EP_ELIMIT;
        end->sys_errno = 0;
        end->transient = false;
    }
    if (end->code == 0)
        finish(u, 0, 0, "");
    else
        fail(u, end);
}

static void free_url(struct ep_url *u)
{
    (void)atomic_fetch_sub(&ep_url_fetcher.unread, u->pipe.len);
    ep_url_pipe_free(&u->pipe);
    free(u->validator);
    free(u->url);
    free(u);
}

/* ---- the thread: all ------------------------------------------------------ */

static void enqueue(struct ep_url_fetch *f, struct ep_url *u)
{
    u->f = f;
    u->host = ep_intern_add(f->hosts, ep_url_origin(u->url), SIZE_MAX);
    if ((size_t)u->host >= f->hosts_cap) {
        size_t before = f->hosts_cap;

        f->host_running = ep_grow(f->host_running, &f->hosts_cap,
                                  (size_t)u->host + 1, sizeof *f->host_running);
        memset(f->host_running + before, 0,
               (f->hosts_cap - before) * sizeof *f->host_running);
    }
    move(u, EP_URL_QUEUED);
}

/* The next URL that wishes something, and what; NULL if there is none. */
static struct ep_url *next_wish(struct ep_url_wish *wish, bool *stop)
{
    struct ep_url *u;

    (void)pthread_mutex_lock(&ep_url_fetcher.lock);
    *stop = ep_url_fetcher.stop;
    u = ep_url_fetcher.first_wish;
    if (u) {
        ep_url_fetcher.first_wish = u->next_wish;
        u->next_wish = NULL;
        u->wishes = false;
        *wish = u->wish;
        u->wish = (struct ep_url_wish){0};
    }
    (void)pthread_mutex_unlock(&ep_url_fetcher.lock);
    return u;
}

/* False if the thread is to end. */
static bool settle(struct ep_url_fetch *f)
{
    struct ep_url_wish wish;
    struct ep_url *u;
    bool stop;

    while ((u = next_wish(&wish, &stop))) {
        if (u->place == EP_URL_NEW && !wish.close)
            enqueue(f, u);
        if (wish.close) {
            if (u->place != EP_URL_NEW) {
                drop_request(u);
                move(u, EP_URL_DONE);
            }
            free_url(u);
            continue;
        }
        u->first = u->first || wish.hurry;
        if (u->first && u->place == EP_URL_QUEUED)
            start_try(u);
        if (wish.resume)
            resume(u);
    }
    return !stop;
}

static void time_out(struct ep_url *u, bool all)
{
    struct ep_http_end end = {.code = EP_ETIMEOUT, .transient = !all};

    (void)snprintf(end.reason, sizeof end.reason,
                   all ? "not complete after %g s" : "nothing came for %g s",
                   all ? u->lim.total_s : u->lim.stall_s);
    fail(u, &end);
}

/* When nothing has come for too long; INFINITY where that does not count. */
static double stalls_at(const struct ep_url *u)
{
    if (u->paused || u->lim.stall_s <= 0)
        return INFINITY;
    return u->quiet + u->lim.stall_s;
}

/* When it no longer holds up the queue; INFINITY where it does not. */
static double idle_at(const struct ep_url *u)
{
    if (u->paused || u->idle || !u->f->queue.first)
        return INFINITY;
    return u->quiet + EP_URL_QUIET_S;
}

/* Whatever is due now. */
static void keep_time(struct ep_url_fetch *f)
{
    struct ep_url *u, *after;

    for (u = f->live.first; u; u = after) {
        after = u->next;
        if (u->place == EP_URL_RUNNING) {
            if (f->now >= u->deadline)
                time_out(u, true);
            else if (f->now >= stalls_at(u))
                time_out(u, false);
            else if (f->now >= idle_at(u))
                set_idle(u, true);
        } else if (f->now >= u->again) {
            move(u, EP_URL_QUEUED);
            if (u->first)
                start_try(u);
        }
    }
}

/* Those in the queue that have come to their turn. */
static void start_queued(struct ep_url_fetch *f)
{
    struct ep_url *u, *after;

    /* a reader that makes room wakes us */
    if (!f->look || atomic_load(&ep_url_fetcher.unread) >= EP_URL_UNREAD_BYTES)
        return;
    f->look = false;
    for (u = f->queue.first;
         u && f->running < EP_URL_AT_ONCE && f->open < ep_url_fetcher.most;
         u = after) {
        after = u->next;
        if (f->host_running[u->host] < EP_URL_PER_HOST)
            start_try(u);
    }
}

/* How long until something is due. */
static double next_due(const struct ep_url_fetch *f)
{
    double next = f->now + 3600;

    for (const struct ep_url *u = f->live.first; u; u = u->next) {
        if (u->place == EP_URL_LATER)
            next = fmin(next, u->again);
        else
            next =
                fmin(fmin(next, idle_at(u)), fmin(u->deadline, stalls_at(u)));
    }
    return fmax(next - f->now, 0);
}

void *ep_url_fetch(void *arg)
{
    struct ep_http_pool *pool = arg;
    struct ep_url_fetch f = {.hosts = ep_intern_new()};
    struct ep_http_end end;
    struct ep_url *u;

    f.now = ep_clock_now(&ep_clock_mono);
    ep_rng_seed(&f.rng, (uint64_t)getpid(), (uint64_t)(f.now * 1e9));
    while (settle(&f)) {
        keep_time(&f);
        start_queued(&f);
        ep_http_step(pool, next_due(&f));
        f.now = ep_clock_now(&ep_clock_mono);
        while ((u = ep_http_ended(pool, &end)))
            request_ended(u, &end);
    }
    ep_intern_free(f.hosts);
    free(f.host_running);
    return NULL;
}
