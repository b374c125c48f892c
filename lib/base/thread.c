/* SPDX-License-Identifier: Apache-2.0 */
/* thread.c - see thread.h. */
#include "config.h"

#include "base/thread.h"

#include "base/mem.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

struct job {
    pthread_t thread;
    int i;
    void (*fn)(int i, void *ctx);
    void *ctx;
};

static void *run(void *arg)
{
    struct job *job = arg;

    job->fn(job->i, job->ctx);
    return NULL;
}

int ep_threads_run(int n, void (*fn)(int i, void *ctx), void *ctx,
                   struct ep_error *err)
{
    struct job *jobs;
    int started, errnum = 0;

    if (n < 1 || n > EP_THREADS_MAX)
        return ep_error_set(err, EP_ELIMIT, "%d threads: not in 1..%d", n,
                            EP_THREADS_MAX);
    jobs = ep_calloc((size_t)n, sizeof *jobs);
    for (started = 1; started < n; started++) {
        struct job *job = &jobs[started];

        *job = (struct job){.i = started, .fn = fn, .ctx = ctx};
        errnum = pthread_create(&job->thread, NULL, run, job);
        if (errnum)
            break;
    }
    if (!errnum)
        fn(0, ctx);
    for (int i = 1; i < started; i++)
        (void)pthread_join(jobs[i].thread, NULL);
    free(jobs);
    if (errnum)
        return ep_error_sys(err, errnum, "cannot start thread %d of %d",
                            started + 1, n);
    return 0;
}

int ep_threads_allowed(void)
{
    cpu_set_t set;

    if (sched_getaffinity(0, sizeof set, &set) != 0)
        return 1;
    return CPU_COUNT(&set) > 0 ? CPU_COUNT(&set) : 1;
}
