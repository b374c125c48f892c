/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cpu_pool.c - threads that all do the same work at the same moment. See
 * probe.h.
 *
 * Why not ep_threads_run: starting threads takes longer than a short run, and
 * they would be placed anew each time. Why not the threads of the BLAS: they
 * cannot be placed portably, spin when idle (which looks like work), and end
 * when the process forks. Placing matters: on a busy 2-core VM (Linux 6.18)
 * both threads of a probe were seen to share one CPU for seconds, at half the
 * rate, while the other CPU was idle half of the time.
 */
#include "config.h"

#include "probe/probe.h"

#include "base/mem.h"
#include "base/thread.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct worker {
    struct ep_probe_pool *pool;
    pthread_t thread;
    int k;
    int cpu; /* where it is bound to, or -1 */

    /* Of the last job. */
    double begin, end; /* monotonic */
    double held, cpu_time, wait;
};

struct ep_probe_pool {
    struct worker *w; /* [threads] */
    int threads;
    int started; /* 0 if the caller does the work itself */

    pthread_mutex_t lock;
    pthread_cond_t go, done;
    unsigned round; /* a new one begins a job */
    int working;    /* still at it */

    /* The job of this round; NULL: go home. */
    void (*job)(void *ctx, int k);
    void *ctx;
};

static double read_clock(clockid_t id)
{
    struct timespec t;

    if (clock_gettime(id, &t) != 0)
        return NAN;
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Run-queue wait of this thread, seconds; NAN if the kernel keeps none. */
static double read_wait(void)
{
    FILE *f = fopen("/proc/thread-self/schedstat", "re");
    char text[96], *second, *end;
    double wait = NAN;

    if (!f)
        return NAN;
    if (fgets(text, sizeof text, f)) {
        second = strchr(text, ' ');
        if (second) {
            unsigned long long ns = strtoull(second, &end, 10);

            if (end != second)
                wait = 1e-9 * (double)ns;
        }
    }
    (void)fclose(f);
    return wait;
}

/*
 * begin and end are next to the job, for they make the rate; the shares are of
 * the time with the other clocks read, so that none can pass 1.
 */
static void work(struct worker *w, void (*job)(void *ctx, int k), void *ctx)
{
    double held = read_clock(CLOCK_MONOTONIC);
    double cpu = read_clock(CLOCK_THREAD_CPUTIME_ID), wait = read_wait();

    w->begin = read_clock(CLOCK_MONOTONIC);
    job(ctx, w->k);
    w->end = read_clock(CLOCK_MONOTONIC);
    w->wait = read_wait() - wait;
    w->cpu_time = read_clock(CLOCK_THREAD_CPUTIME_ID) - cpu;
    w->held = read_clock(CLOCK_MONOTONIC) - held;
}

static void *worker_main(void *arg)
{
    struct worker *w = arg;
    struct ep_probe_pool *p = w->pool;
    void (*job)(void *ctx, int k);
    unsigned seen = 0;
    void *ctx;

    if (w->cpu >= 0 && ep_probe_pin(w->cpu, NULL) < 0)
        w->cpu = -1; /* a hot-unplugged CPU: go where the kernel likes */
    for (;;) {
        (void)pthread_mutex_lock(&p->lock);
        while (p->round == seen)
            (void)pthread_cond_wait(&p->go, &p->lock);
        seen = p->round;
        job = p->job;
        ctx = p->ctx;
        (void)pthread_mutex_unlock(&p->lock);
        if (!job)
            return NULL;
        work(w, job, ctx);
        (void)pthread_mutex_lock(&p->lock);
        if (--p->working == 0)
            (void)pthread_cond_signal(&p->done);
        (void)pthread_mutex_unlock(&p->lock);
    }
}

static void begin(struct ep_probe_pool *p, void (*job)(void *ctx, int k),
                  void *ctx)
{
    (void)pthread_mutex_lock(&p->lock);
    p->job = job;
    p->ctx = ctx;
    p->working = p->started;
    p->round++;
    (void)pthread_cond_broadcast(&p->go);
    (void)pthread_mutex_unlock(&p->lock);
}

static void wait_for_all(struct ep_probe_pool *p)
{
    (void)pthread_mutex_lock(&p->lock);
    while (p->working > 0)
        (void)pthread_cond_wait(&p->done, &p->lock);
    (void)pthread_mutex_unlock(&p->lock);
}

void ep_probe_pool_run(struct ep_probe_pool *p, void (*job)(void *ctx, int k),
                       void *ctx, struct ep_probe_run *out)
{
    double first = INFINITY, last = -INFINITY;

    if (p->threads == 1) {
        work(&p->w[0], job, ctx);
    } else {
        begin(p, job, ctx);
        wait_for_all(p);
    }
    if (!out)
        return;
    *out = (struct ep_probe_run){0};
    for (int k = 0; k < p->threads; k++) {
        const struct worker *w = &p->w[k];

        first = fmin(first, w->begin);
        last = fmax(last, w->end);
        out->held += w->held;
        out->cpu += w->cpu_time;
        out->wait += w->wait;
    }
    out->seconds = last - first;
}

int ep_probe_pool_threads(const struct ep_probe_pool *p)
{
    return p->threads;
}

int ep_probe_pool_cpu(const struct ep_probe_pool *p, int k)
{
    return p->w[k].cpu;
}

void ep_probe_pool_free(struct ep_probe_pool *p)
{
    if (!p)
        return;
    begin(p, NULL, NULL);
    for (int k = 0; k < p->started; k++)
        (void)pthread_join(p->w[k].thread, NULL);
    (void)pthread_cond_destroy(&p->done);
    (void)pthread_cond_destroy(&p->go);
    (void)pthread_mutex_destroy(&p->lock);
    free(p->w);
    free(p);
}

struct ep_probe_pool *ep_probe_pool_new(int threads, struct ep_error *err)
{
    struct ep_probe_pool *p = ep_calloc(1, sizeof *p);
    bool bound = threads == ep_threads_allowed();

    p->threads = threads;
    p->w = ep_calloc((size_t)threads, sizeof *p->w);
    (void)pthread_mutex_init(&p->lock, NULL);
    (void)pthread_cond_init(&p->go, NULL);
    (void)pthread_cond_init(&p->done, NULL);
    for (int k = 0; k < threads; k++)
        p->w[k] = (struct worker){
            .pool = p,
            .k = k,
            .cpu = bound ? ep_probe_nth_cpu(k) : -1,
        };
    for (int k = 0; threads > 1 && k < threads; k++) {
        int why = pthread_create(&p->w[k].thread, NULL, worker_main, &p->w[k]);

        if (why) {
            (void)ep_error_sys(err, why, "cannot start %d threads", threads);
            ep_probe_pool_free(p);
            return NULL;
        }
        p->started++;
    }
    return p;
}
