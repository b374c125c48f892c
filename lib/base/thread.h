/* SPDX-License-Identifier: Apache-2.0 */
/*
 * thread.h - run the same function on several threads and wait for all.
 */
#ifndef EP_BASE_THREAD_H
#define EP_BASE_THREAD_H

#include "base/err.h"

/*
 * Call fn(i, ctx) for i = 0 .. n-1, each on a thread of its own (0 on the
 * caller's), and return when all have returned. n in 1..EP_THREADS_MAX.
 * EP_ELIMIT if n is outside, EP_ESYS if a thread cannot be started: fn was
 * then called for none of them or has finished for those that did start.
 */
#define EP_THREADS_MAX 1024
int ep_threads_run(int n, void (*fn)(int i, void *ctx), void *ctx,
                   struct ep_error *err) EP_MUST_USE;

/* CPUs that this process may run on (its affinity mask); at least 1. */
int ep_threads_allowed(void);

#endif
