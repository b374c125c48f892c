/* SPDX-License-Identifier: Apache-2.0 */
/*
 * telemetry.h - what the makers of corpora share: see telemetry.c.
 */
#ifndef TESTS_BENCH_TELEMETRY_H
#define TESTS_BENCH_TELEMETRY_H

#include "base/buf.h"
#include "base/rng.h"

#include <stdbool.h>
#include <stdint.h>

#define EPOCH UINT64_C(1730000000)

struct corpus {
    struct ep_buf out;
    uint64_t written, want;
    struct ep_rng rng;
    uint64_t n; /* of the line or element that is made */
};

/* Should there be more? Writes what has gathered. */
bool telemetry_more(struct corpus *c);

/* A random number below n; one between lo and hi. */
uint64_t telemetry_below(struct corpus *c, uint64_t n);
double telemetry_uniform(struct corpus *c, double lo, double hi);

/* "2024-10-27 03:33:20", of so many seconds since EPOCH. */
void telemetry_time(struct ep_buf *b, char dash, uint64_t s);

/* One of "AllReduce" and so on. */
const char *telemetry_collective(struct corpus *c);

/* Logs (telemetry_logs.c): nearly nothing but lines of interest, */
void telemetry_nccl_debug(struct corpus *c);
void telemetry_megatron(struct corpus *c);
void telemetry_deepspeed(struct corpus *c);
void telemetry_pattern(struct corpus *c);

/* and such a line in twenty, as logs that people keep are. */
void telemetry_megatron_log(struct corpus *c);
void telemetry_deepspeed_log(struct corpus *c);
void telemetry_pattern_log(struct corpus *c);

#endif
