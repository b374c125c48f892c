/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jobgen.c - write the telemetry of a job whose stragglers are known.
 *
 * Records go to standard output, in the order of ts but that the steps of an
 * iteration come before what happened in it. The same arguments give the same
 * bytes. What the job is, and what the labels mean, is in job.h.
 */
#include "config.h"

#include "base/cli.h"
#include "base/opt.h"
#include "job.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static struct {
    int64_t seed, index, max_ranks;
    int class, records;
    double share;
    const char *labels, *series;
} opt = {.seed = 1, .max_ranks = MAX_RANKS, .share = 0.5};

static const struct ep_opt options[] = {
    {'s', "seed", EP_OPT_INT, &opt.seed, "N", "seed of all jobs [1]", 0, 1e15},
    {0, "class", EP_OPT_CHOICE, &opt.class, "compute|comm",
     "what is slow, if anything is [compute]", 0, 0},
    {0, "index", EP_OPT_INT, &opt.index, "N", "number of the job [0]", 0, 1e9},
    {0, "labels", EP_OPT_STRING, &opt.labels, "FILE",
     "write what is true of the job, as JSON lines", 0, 0},
    {0, "max-ranks", EP_OPT_INT, &opt.max_ranks, "N",
     "ranks that a job has at most [1024]", 8, MAX_RANKS},
    {0, "records", EP_OPT_CHOICE, &opt.records,
     "step|step+gauge|step+coll|all|coll", "types of the records [step]", 0, 0},
    {0, "series", EP_OPT_STRING, &opt.series, "FILE",
     "write step, ts and dur of the job, as columns", 0, 0},
    {0, "share", EP_OPT_DOUBLE, &opt.share, "P",
     "probability that the job has a straggler [0.5]", 0, 1},
};

static const struct ep_program program = {
    .name = "jobgen",
    .operands = "",
    .purpose = "Write the telemetry of a job whose stragglers are known",
    .opts = options,
    .nopts = sizeof options / sizeof options[0],
};

static const unsigned record_sets[] = {
    WRITE_STEP, WRITE_STEP | WRITE_GAUGE, WRITE_STEP | WRITE_COLL,
    WRITE_STEP | WRITE_COLL | WRITE_GAUGE, WRITE_COLL};

static struct job job;
static struct noise noise;
static struct iteration iteration;
static double start[MAX_ITERATIONS + 1];

static int cannot_write(const char *path)
{
    ep_cli_warn("cannot write %s: %s", path, strerror(errno));
    return EP_EXIT_TROUBLE;
}

/* The job's own series, for detectors that know no records. */
static int write_series(const char *path, const double *dur)
{
    FILE *f = fopen(path, "w");
    int bad;

    if (!f)
        return -1;
    for (int i = 0; i < job.iterations; i++)
        (void)fprintf(f, "%d\t%.6f\t%.6f\n", i, start[i], dur[i]);
    bad = ferror(f);
    return fclose(f) || bad ? -1 : 0;
}

int main(int argc, char **argv)
{
    static double dur[MAX_ITERATIONS];

    (void)ep_cli_begin(&program, argc, argv);
    job_draw(&job, (uint64_t)opt.seed, (uint64_t)opt.index,
             opt.class ? COMM : COMPUTE, opt.share, (int)opt.max_ranks);
    start[0] = EPOCH;
    for (int i = 0; i < job.iterations; i++) {
        noise_draw(&job, &noise);
        job_iterate(&job, &noise, i, 0, &iteration);
        write_iteration(&job, &iteration, i, start[i],
                        record_sets[opt.records]);
        job_measure(&job, &noise, i, &iteration);
        dur[i] = iteration.dur;
        start[i + 1] = start[i] + iteration.dur;
    }
    job_measured(&job);
    if (opt.labels && write_labels(&job, start, opt.labels) < 0)
        return cannot_write(opt.labels);
    if (opt.series && write_series(opt.series, dur) < 0)
        return cannot_write(opt.series);
    return ep_cli_end(EP_EXIT_CLEAN);
}
