/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prom_out.c - see prom_out.h.
 *
 * The program holds the lock except while it waits, so that feeding a record
 * costs no locking. The thread is made at the first wait that needs it.
 */
#include "config.h"

#include "record/prom_out.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/outfile.h"
#include "record/prom.h"

#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>

#define LEAST 1.0   /* s between two writes */
#define STEADY 15.0 /* s, if the input never waits */
#define SHARE 10.0  /* times as long as a write took, to the next */

enum { LOOK = 1024 /* records between looks at the clock */ };

struct ep_prom_out {
    struct ep_prom *table;
    const char *path;
    struct ep_outfile *first; /* opened early, to know that it can be */
    bool replace;             /* a regular file: may be written over and over */
    bool fresh;               /* there is something that is not written yet */
    bool failing;             /* and that was said */
    bool full;                /* likewise */
    uint32_t unseen;          /* records since the clock was looked at */
    double written, next;     /* when it was, when it may be again */
    void (*complain)(void *ctx, const struct ep_error *err);
    void *ctx;
    /* the thread */
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool started, away, stop;
};

static double now(void)
{
    return ep_clock_now(&ep_clock_mono);
}

/* Is it a file that a rename replaces? It is made readable for all then. */
static bool is_file(struct ep_outfile *file)
{
    int fd = fileno(ep_outfile_stream(file));
    struct stat st;

    if (ep_outfile_stream(file) == stdout || fstat(fd, &st) != 0 ||
        !S_ISREG(st.st_mode))
        return false;
    (void)fchmod(fd, (st.st_mode & 07777) | 0444);
    return true;
}

struct ep_prom_out *
ep_prom_out_open(const char *path,
                 void (*complain)(void *ctx, const struct ep_error *err),
                 void *ctx, struct ep_error *err)
{
    struct ep_outfile *first = ep_outfile_open(path, err);
    struct ep_prom_out *o;
    pthread_condattr_t how;

    if (!first)
        return NULL;
    o = ep_calloc(1, sizeof *o);
    o->first = first;
    o->path = path;
    o->complain = complain;
    o->ctx = ctx;
    o->replace = is_file(first);
    o->table = ep_prom_new(EP_PROM_SERIES);
    o->written = now();
    o->next = 0;
    (void)pthread_mutex_init(&o->lock, NULL);
    (void)pthread_condattr_init(&how);
    (void)pthread_condattr_setclock(&how, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&o->wake, &how);
    (void)pthread_condattr_destroy(&how);
    return o;
}

static int write_once(struct ep_prom_out *o, struct ep_error *err)
{
    struct ep_outfile *file = o->first;

    if (!file) {
        file = ep_outfile_open(o->path, err);
        if (!file)
            return err->code;
        (void)is_file(file);
    }
    o->first = NULL;
    ep_prom_print(o->table, ep_outfile_stream(file));
    (void)ep_outfile_ok(file, true);
    return ep_outfile_commit(file, err);
}

/* Write, and set the time for the next. */
static int write_out(struct ep_prom_out *o, struct ep_error *err)
{
    double begun = now();
    int rc = write_once(o, err);

    o->written = now();
    o->next = o->written + fmax(LEAST, SHARE * (o->written - begun));
    if (rc < 0) {
        if (!o->failing)
            o->complain(o->ctx, err);
        o->failing = true;
    } else {
        o->fresh = o->failing = false;
    }
    return rc;
}

/* ==== While the program waits ==== */

static void sleep_until(struct ep_prom_out *o, double t)
{
    struct timespec ts = {.tv_sec = (time_t)t};

    ts.tv_nsec = (long)((t - floor(t)) * 1e9);
    (void)pthread_cond_timedwait(&o->wake, &o->lock, &ts);
}

static void *write_late(void *arg)
{
    struct ep_prom_out *o = arg;
    struct ep_error err;

    (void)pthread_mutex_lock(&o->lock);
    while (!o->stop) {
        if (!o->away || !o->fresh)
            (void)pthread_cond_wait(&o->wake, &o->lock);
        else if (now() < o->next)
            sleep_until(o, o->next);
        else if (write_out(o, &err) < 0) {
            /* it was said, and o->next is when to try again */
        }
    }
    (void)pthread_mutex_unlock(&o->lock);
    return NULL;
}

/* Signals are the program's. */
static bool start(struct ep_prom_out *o)
{
    sigset_t all, before;

    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    (void)pthread_mutex_lock(&o->lock);
    o->started = pthread_create(&o->thread, NULL, write_late, o) == 0;
    if (!o->started)
        (void)pthread_mutex_unlock(&o->lock);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return o->started;
}

void ep_prom_out_wait(struct ep_prom_out *o)
{
    struct ep_error err;

    if (!o->replace || o->away)
        return;
    if (o->fresh && now() >= o->next && write_out(o, &err) < 0) {
        /* it was said */
    }
    /* without a thread it is written when the next records come */
    if (!o->fresh || (!o->started && !start(o)))
        return;
    o->away = true;
    (void)pthread_cond_signal(&o->wake);
    (void)pthread_mutex_unlock(&o->lock);
}

void ep_prom_out_back(struct ep_prom_out *o)
{
    if (!o->away)
        return;
    (void)pthread_mutex_lock(&o->lock);
    o->away = false;
}

static void join(struct ep_prom_out *o)
{
    if (!o->started)
        return;
    o->stop = true;
    (void)pthread_cond_signal(&o->wake);
    (void)pthread_mutex_unlock(&o->lock);
    (void)pthread_join(o->thread, NULL);
}

/* ==== Records ==== */

static void say_full(struct ep_prom_out *o)
{
    struct ep_error err;

    (void)ep_error_set(&err, EP_ELIMIT,
                       "cannot keep more than %d series: records with other "
                       "labels are left out",
                       EP_PROM_SERIES);
    o->complain(o->ctx, &err);
    o->full = true;
}

void ep_prom_out_add(struct ep_prom_out *o, const struct ep_record *r)
{
    struct ep_error err;

    ep_prom_out_back(o);
    ep_prom_add(o->table, r);
    if (!o->full && ep_prom_refused(o->table))
        say_full(o);
    o->fresh = true;
    if (!o->replace || ++o->unseen < LOOK)
        return;
    o->unseen = 0;
    if (now() >= fmax(o->written + STEADY, o->next) && write_out(o, &err) < 0) {
        /* it was said */
    }
}

uint64_t ep_prom_out_refused(struct ep_prom_out *o)
{
    ep_prom_out_back(o);
    return ep_prom_refused(o->table);
}

bool ep_prom_out_is_stdout(const struct ep_prom_out *o)
{
    return o->first && ep_outfile_stream(o->first) == stdout;
}

int ep_prom_out_close(struct ep_prom_out *o, bool keep, struct ep_error *err)
{
    int rc = 0;

    ep_prom_out_back(o);
    join(o);
    if (keep && (o->fresh || o->first))
        rc = write_once(o, err);
    ep_outfile_abort(o->first);
    ep_prom_free(o->table);
    (void)pthread_mutex_destroy(&o->lock);
    (void)pthread_cond_destroy(&o->wake);
    free(o);
    return rc;
}
