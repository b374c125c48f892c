/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_links.c - any bytes as measurements of the links of two jobs. What is
 * found has to make sense: a relief ends what an onset began, factors are
 * finite and above 0, p is in 0..1, since <= ts, what is open was told.
 */
#include "config.h"

#include "base/intern.h"
#include "base/mem.h"
#include "detect/watch.h"

#include <float.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MAX_SAMPLES 500 /* an input is to take milliseconds */

static struct {
    struct ep_watch *watch;
    struct ep_intern *eids;
    bool *open;
    size_t cap, told;
} now;

static void require(int condition)
{
    if (!condition)
        abort();
}

static bool *is_open(const char *eid)
{
    size_t known = ep_intern_count(now.eids);
    long i =
        ep_intern_add(now.eids, (struct ep_span){eid, strlen(eid)}, 1 << 20);

    require(i >= 0);
    if ((size_t)i == known) {
        now.open = ep_grow(now.open, &now.cap, known + 1, sizeof *now.open);
        now.open[i] = false;
    }
    return &now.open[i];
}

static void on_finding(void *ctx, const struct ep_finding *f)
{
    bool *open = is_open(f->eid);

    (void)ctx;
    require(isfinite(f->factor) && f->factor > 0);
    require(f->p >= 0 && f->p <= 1);
    require(isfinite(f->ts) && f->since <= f->ts);
    require(f->cause && *f->cause && f->evidence && *f->evidence);
    require(!strstr(f->evidence, "nan"));
    require(f->kind == EP_FINDING_ONSET || *open);
    require(f->kind == EP_FINDING_ONSET ? f->factor >= 1.1 - 1e-9
                                        : f->factor < 1.1);
    *open = f->kind == EP_FINDING_ONSET;
}

static void on_open(void *ctx, const struct ep_finding *f)
{
    (void)ctx;
    require(*is_open(f->eid));
    now.told++;
}

/* Four bytes: the ends; kind, size and job; the value. */
static void take(const uint8_t *b, double ts)
{
    static const double odd[8] = {1e-300, DBL_MAX, DBL_TRUE_MIN, 0,
                                  1,      -1,      1e9,          DBL_MIN};
    static const char *const names[16] = {
        "n1",       "n2",           "n3",       "n4",   "n5",    "n6",
        "n1/0",     "n1/1",         "n1/GPU-7", "n2/0", "GPU-1", "GPU-2",
        "n2/GPU-7", "0000:3b:00.0", "/",        ""};
    const char *src = names[b[0] % 16], *dst = names[b[0] / 16];
    struct ep_watch_link x = {
        .job = {"a", b[2] & 1},
        .src = {src, strlen(src)},
        .dst = {dst, strlen(dst)},
        .transport = {"tcp", b[2] & 2 ? 3 : 0},
        .bytes = b[2] & 4 ? 1 << 20 : -1,
        .ts = ts,
        .value = b[3] & 128 ? odd[b[3] % 8] : 1e9 * (1 + b[3] % 128 / 16.0),
    };
    int rc = ep_watch_link(now.watch, &x, NULL);

    require(rc == 0 || rc == EP_EDOM);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    double ts = 0;

    memset(&now, 0, sizeof now);
    now.watch = ep_watch_new(NULL, on_finding, NULL, NULL);
    now.eids = ep_intern_new();
    require(now.watch != NULL);
    for (int n = 0; size >= 4 && n < MAX_SAMPLES; data += 4, size -= 4) {
        /* the second byte: so many repeats of the last 4 x 16 as a round */
        ts += data[1] / 16.0;
        take(data, ts);
        n++;
        for (int k = 1; k < data[1] % 8 && size >= 64; k++)
            for (int i = 0; i < 16 && n < MAX_SAMPLES; i++, n++)
                take(data + 4 * (size_t)i, ts + k);
    }
    ep_watch_finish(now.watch);
    ep_watch_open(now.watch, on_open, NULL);
    for (size_t i = 0; i < ep_intern_count(now.eids); i++)
        now.told -= now.open[i];
    require(now.told == 0);
    ep_watch_free(now.watch);
    ep_intern_free(now.eids);
    free(now.open);
    return 0;
}
