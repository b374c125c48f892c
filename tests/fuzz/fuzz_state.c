/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_state.c - any bytes as the state of skewdetect. They are given the head
 * and the sum of a whole archive, so that what is inside is reached. What loads
 * has to save to what loads and saves to the same, and goes on with samples.
 */
#include "config.h"

#include "base/archive.h"
#include "detect/state.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct ep_state_options options = {0.1,  3, 16,   0,
                                                0.01, 5, 1.25, 300};

static void require(int condition)
{
    if (!condition)
        abort();
}

static void on_finding(void *ctx, const struct ep_finding *f)
{
    (void)ctx;
    require(f->eid && f->cause && f->kind <= EP_FINDING_MISSING);
}

static void on_iteration(void *ctx, const struct ep_calls_step *x)
{
    struct ep_state *s = ctx;
    struct ep_watch_step step = {.job = x->job,
                                 .host = x->host,
                                 .rank = x->rank,
                                 .ts = x->ts,
                                 .step = x->step,
                                 .dur = x->dur,
                                 .busy = x->busy,
                                 .mb = -1};

    (void)!ep_watch_step(s->watch, &step, NULL);
}

static void begin(struct ep_state *s)
{
    s->options = &options;
    s->calls = ep_calls_new(on_iteration, s);
    s->watch = ep_watch_new(NULL, on_finding, NULL, NULL);
    s->comms = ep_comms_new(0.1);
    ep_watch_use_comms(s->watch, s->comms);
}

static void end(struct ep_state *s)
{
    ep_calls_free(s->calls);
    ep_watch_free(s->watch);
    ep_comms_free(s->comms);
}

static struct ep_span name(const char *s)
{
    return (struct ep_span){s, strlen(s)};
}

/* Samples of jobs as the corpus has them. */
static void go_on(struct ep_state *s)
{
    static const char *const jobs[] = {"a", "", "calls"};

    for (int i = 0; i < 300; i++) {
        double ts = 1000 + i;
        struct ep_watch_step step = {.job = name(jobs[i % 2]),
                                     .host = name("h"),
                                     .worker = name(""),
                                     .rank = i % 4,
                                     .ts = ts,
                                     .step = 1000 + i / 4,
                                     .dur = i > 150 ? 2 : 1,
                                     .busy = i % 8 < 4 ? 1 : (double)NAN,
                                     .mb = -1};
        struct ep_call call = {.job = name(jobs[2]),
                               .host = name(""),
                               .op = name("x"),
                               .comm = name("c"),
                               .rank = i % 3,
                               .pid = 1,
                               .nranks = 4,
                               .comm_rank = -1,
                               .peer = -1,
                               .bytes = i % 6,
                               .seq = -1,
                               .ts = ts,
                               .dur = 0.1};
        struct ep_watch_probe probe = {.job = name(jobs[i % 2]),
                                       .host = name("n"),
                                       .gpu = name(i % 3 ? "g0" : "g1"),
                                       .test = name("gemm"),
                                       .dtype = name("f32"),
                                       .unit = name("s"),
                                       .rank = -1,
                                       .size = 1024,
                                       .ts = ts,
                                       .value = 1 + i % 5,
                                       .spread = 0,
                                       .ref_own = 1};

        (void)!ep_watch_step(s->watch, &step, NULL);
        (void)!ep_calls_take(s->calls, &call, NULL);
        (void)!ep_watch_probe(s->watch, &probe, NULL);
    }
    ep_calls_finish(s->calls);
    ep_watch_finish(s->watch);
}

/* Load; what it saves to is in a, if that worked. */
static bool load(struct ep_state *s, struct ep_span bytes, struct ep_archive *a)
{
    begin(s);
    if (ep_state_load(s, bytes, NULL) == 0 &&
        ep_state_save(s, a, "v", NULL) == 0)
        return true;
    end(s);
    return false;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ep_archive given, first, second;
    struct ep_state s;

    ep_archive_save(&given, "skewdetect", EP_STATE_FORMAT, "v");
    ep_buf_add(&given.out, data, size);
    require(ep_archive_saved(&given, NULL) == 0);
    if (load(&s, (struct ep_span){given.out.ptr, given.out.len}, &first)) {
        end(&s);
        require(
            load(&s, (struct ep_span){first.out.ptr, first.out.len}, &second));
        require(first.out.len == second.out.len &&
                memcmp(first.out.ptr, second.out.ptr, first.out.len) == 0);
        go_on(&s);
        end(&s);
        ep_archive_free(&first);
        ep_archive_free(&second);
    }
    ep_archive_free(&given);
    return 0;
}
