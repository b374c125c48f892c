/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_watch.c - any bytes as the course of a few jobs: steps of ranks,
 * workers and jobs, probes and gauges, restarts, odd values. What is found
 * has to make sense: a relief ends what an onset began, an eid is used again for
 * what comes again alone, which says so, factors are finite and above 0, p is
 * in 0..1, since <= ts.
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

#define MAX_SAMPLES 6000 /* an input is to take milliseconds */

enum life { UNKNOWN, OPEN, PERHAPS, OVER, ONCE };

static struct {
    struct ep_watch *watch;
    struct ep_intern *eids;
    unsigned char *life;
    size_t cap;
    double ts;
    int64_t step;
    unsigned taken;
} now;

static const double odd[16] = {
    1e-300,  1e300, DBL_TRUE_MIN, DBL_MAX, 0,    (double)NAN, (double)INFINITY,
    -1,      1,     1.5,          0.4,     0.04, 0.06,        1e-9,
    DBL_MIN, 2,
};

static void require(int condition)
{
    if (!condition)
        abort();
}

/* One sample more, taken or refused. */
static void take(int rc)
{
    require(rc == 0 || rc == EP_EDOM);
    now.taken++;
}

static unsigned char *life_of(const char *eid)
{
    size_t known = ep_intern_count(now.eids);
    long i =
        ep_intern_add(now.eids, (struct ep_span){eid, strlen(eid)}, 1 << 20);

    require(i >= 0);
    if ((size_t)i == known) {
        now.life = ep_grow(now.life, &now.cap, known + 1, 1);
        now.life[i] = UNKNOWN;
    }
    return &now.life[i];
}

static void on_finding(void *ctx, const struct ep_finding *f)
{
    unsigned char *life = life_of(f->eid);

    (void)ctx;
    require(isfinite(f->factor) && f->factor > 0);
    require(f->p >= 0 && f->p <= 1);
    require(isfinite(f->ts) && f->since <= f->ts);
    require(f->cause && *f->cause && f->evidence && *f->evidence);
    require(!(f->gpu_hours < 0));
    switch (f->kind) {
    case EP_FINDING_ONSET:
        require(*life != ONCE);
        /* it flaps */
        require(*life != OVER || strstr(f->evidence, " time since "));
        *life = OPEN;
        break;
    case EP_FINDING_MISSING:
        require(*life != OVER && *life != ONCE);
        *life = OPEN;
        break;
    case EP_FINDING_RELIEF:
        require(*life == OPEN || *life == PERHAPS);
        /* what is still slower may have been part of the way only */
        *life = f->factor < 1.1 ? OVER : PERHAPS;
        break;
    case EP_FINDING_SPIKE:
        require(*life == UNKNOWN);
        *life = ONCE;
        break;
    }
}

static void on_open(void *ctx, const struct ep_finding *f)
{
    unsigned char *life = life_of(f->eid);

    (void)ctx;
    require(*life == OPEN || *life == PERHAPS);
}

static struct ep_span job_name(unsigned k)
{
    static const char *const names[] = {"", "a", "a/rank=1", "b"};

    return (struct ep_span){names[k % 4], strlen(names[k % 4])};
}

/* Steps of four ranks or workers, of which one, or all, are slow. */
static void run(unsigned job, unsigned n, unsigned who, unsigned how,
                bool workers)
{
    static const char *const names[] = {"w0", "w1", "w2", "w3"};

    for (unsigned i = 0; i < n % 64; i++) {
        now.step++;
        now.ts += 1;
        for (unsigned r = 0; r < 4; r++) {
            double slow = who % 8 == r || who % 8 >= 6 ? 1 + how % 16 / 8.0 : 1;
            struct ep_watch_step s = {
                .job = job_name(job),
                .rank = workers ? -1 : (int64_t)r,
                .ts = now.ts,
                .step = now.step,
                .dur = how & 16 ? slow : 3,
                .busy = how & 32 ? (double)NAN : slow,
                .mb = how & 64 ? -1 : 8,
            };

            if (workers)
                s.worker = (struct ep_span){names[r], 2};
            take(ep_watch_step(now.watch, &s, NULL));
        }
    }
}

/* One step with odd values, of a rank or of the job. */
static void one(const uint8_t *b)
{
    struct ep_watch_step s = {
        .job = job_name(b[1]),
        .rank = b[1] & 128 ? -1 : b[1] / 4 % 8,
        .ts = now.ts + (b[5] & 128 ? odd[b[5] % 16] : b[5]),
        .step = now.step + b[2] % 8 - 3,
        .dur = odd[b[3] % 16],
        .busy = odd[b[3] / 16],
        .mb = b[4] % 5 - 1,
    };

    take(ep_watch_step(now.watch, &s, NULL));
}

static void probe(const uint8_t *b)
{
    char gpu = (char)('0' + b[1] / 4 % 8);
    struct ep_watch_probe p = {
        .job = job_name(b[1]),
        .host = {"n1", 2},
        .test = {"gemm", 4},
        .unit = {"s", 1},
        .rank = b[4] & 1 ? b[1] / 4 % 8 : -1,
        .size = b[4] & 2 ? 512 : -1,
        .ts = now.ts + (b[5] & 128 ? odd[b[5] % 16] : 0),
        .value = odd[b[2] % 16],
        .high_is_better = b[4] & 4,
        .spread = odd[b[3] % 16],
        .ref_own = odd[b[3] / 16],
    };

    if (b[4] & 8)
        p.gpu = (struct ep_span){&gpu, 1};
    take(ep_watch_probe(now.watch, &p, NULL));
}

/* A sensor of a rank, a GPU or a host, of each kind of reading. */
static void gauge(const uint8_t *b)
{
    static const char *const names[] = {
        "cpu_share",
        "nvidia_smi_clocks_current_sm",
        "nvidia_smi_clocks_event_reasons_active",
        "nvidia_smi_pcie_link_gen_current",
        "nvidia_smi_utilization_gpu",
        "DCGM_FI_DEV_XID_ERRORS",
        "DCGM_FI_DEV_PCIE_REPLAY_COUNTER",
        "node_cpu_seconds_total{cpu=\"0\",mode=\"iowait\"}",
        "node_cpu_seconds_total{cpu=\"1\",mode=\"iowait\"}",
        "node_pressure_io_waiting_seconds_total",
        "data_time",
    };
    static const char host = 'h', gpu = 'g';
    const char *name = names[b[4] % (sizeof names / sizeof names[0])];
    struct ep_watch_gauge x = {
        .job = job_name(b[1]),
        .name = {name, strlen(name)},
        .rank = b[5] & 1 ? b[1] / 4 % 8 : -1,
        .gpu_index = b[5] & 2 ? b[1] / 4 % 8 : -1,
        .ts = now.ts,
        .value = b[2] & 1 ? b[3] / 64.0 : odd[b[3] % 16],
    };

    if (b[5] & 4)
        x.host = (struct ep_span){&host, 1};
    if (b[5] & 8)
        x.gpu = (struct ep_span){&gpu, 1};
    take(b[5] & 16 ? ep_watch_device(now.watch, &x, NULL)
                   : ep_watch_gauge(now.watch, &x, NULL));
}

/* One operation; b has six bytes. */
static void operate(const uint8_t *b)
{
    switch (b[0] % 8) {
    case 0:
    case 1:
        run(b[1], b[2], b[3], b[4], false);
        break;
    case 2:
        run(b[1], b[2], b[3], b[4], true);
        break;
    case 3:
        one(b);
        break;
    case 4:
        probe(b);
        break;
    case 5:
        gauge(b);
        break;
    case 6:
        now.step = b[2];
        break;
    default:
        now.ts += b[2] & 1 ? 1e12 : b[1];
        break;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ep_watch_config c = EP_WATCH_DEFAULTS;

    memset(&now, 0, sizeof now);
    if (!size)
        return 0;
    c.window = 4 + data[0] % 32;
    c.persist = 1 + data[0] / 64;
    now.watch = ep_watch_new(&c, on_finding, NULL, NULL);
    now.eids = ep_intern_new();
    require(now.watch != NULL);
    data++;
    size--;
    for (; size >= 6 && now.taken < MAX_SAMPLES; data += 6, size -= 6)
        operate(data);
    ep_watch_open(now.watch, on_open, NULL);
    ep_watch_finish(now.watch);
    ep_watch_open(now.watch, on_open, NULL);
    ep_watch_free(now.watch);
    ep_intern_free(now.eids);
    free(now.life);
    return 0;
}
