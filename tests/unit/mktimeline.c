/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mktimeline.c - write the span records of a job that never ran, for tests,
 * benches and share/examples/timeline.jsonl.gz.
 *
 *     mktimeline DP PP VPP MICROBATCHES STEPS CAUSE
 *
 * CAUSE is none, worker (dp 1, stage 0 computes at half the pace), stage (the
 * last one has 1.6 times the work), sequence (micro-batches of unequal
 * length), gc, comm (messages of stage 0 are slow) or gaps (launches are
 * late). Times come from the plain simulator.
 */
#include "config.h"

#include "base/num.h"
#include "plain_replay.h"
#include "record/record.h"

#define FIRST_STEP 100
#define EPOCH 1.7e9 /* s */

static double jitter(struct ep_rng *r)
{
    return 1 + 0.02 * (ep_rng_uniform(r) - 0.5);
}

/* s; a job of no straggler */
static double base_cost(const struct plain_job *j, int type)
{
    switch (type) {
    case P_FWD:
        return 0.010 / j->vpp;
    case P_BWD:
        return 0.020 / j->vpp;
    case P_FS:
    case P_FR:
    case P_BS:
    case P_BR:
        return 0.0004;
    case P_GC:
        return 1e-5;
    case P_OPT:
        return 0.004;
    default:
        return 0.002;
    }
}

static double length_of(const struct plain_op *op, int step)
{
    struct ep_rng r;

    ep_rng_seed(&r, (uint64_t)step, (uint64_t)op->d * 1000 + (uint64_t)op->mb);
    return 0.5 + 1.5 * ep_rng_uniform(&r);
}

static void set_times(struct plain_job *j, struct ep_rng *r, const char *cause,
                      int step)
{
    for (int i = 0; i < j->n; i++) {
        struct plain_op *op = &j->op[i];
        bool compute = op->type == P_FWD || op->type == P_BWD;

        op->cost = base_cost(j, op->type) * jitter(r);
        op->delay = 1e-5 * ep_rng_uniform(r);
        if (strcmp(cause, "worker") == 0 && compute && op->d == 1 && op->p == 0)
            op->cost *= 2;
        if (strcmp(cause, "stage") == 0 && compute && op->p == j->pp - 1)
            op->cost *= 1.6;
        if (strcmp(cause, "sequence") == 0 && compute)
            op->cost *= length_of(op, step);
        if (strcmp(cause, "gc") == 0 && op->type == P_GC &&
            ep_rng_uniform(r) < 0.2)
            op->cost += 0.2;
        if (strcmp(cause, "comm") == 0 && op->p == 0 && op->type >= P_FS &&
            op->type <= P_BR)
            op->cost += 0.02;
        if (strcmp(cause, "gaps") == 0 && compute)
            op->delay += 0.008 * ep_rng_uniform(r);
    }
}

static void write_step(const struct plain_job *j, int step, double begins)
{
    struct ep_record r;
    struct ep_buf b;

    ep_buf_init(&b);
    for (int i = 0; i < j->n; i++) {
        const struct plain_op *op = &j->op[i];

        ep_record_begin(&r, EP_SPAN);
        ep_record_set_num(&r, EP_K_TS, round(1e6 * (begins + op->start)) / 1e6);
        ep_record_set_int(&r, EP_K_DP, op->d);
        ep_record_set_int(&r, EP_K_PP, op->p);
        ep_record_set_str(&r, EP_K_OP, plain_names[op->type]);
        ep_record_set_int(&r, EP_K_SEQ, op->seq);
        ep_record_set_int(&r, EP_K_STEP, step);
        ep_record_set_num(&r, EP_K_DUR,
                          round(1e6 * (op->end - op->start)) / 1e6);
        if (op->mb >= 0)
            ep_record_set_int(&r, EP_K_MB, op->mb);
        if (op->chunk >= 0)
            ep_record_set_int(&r, EP_K_CHUNK, op->chunk);
        ep_buf_reset(&b);
        ep_record_print(&r, &b);
        (void)fwrite(b.ptr, 1, b.len, stdout);
    }
    ep_buf_free(&b);
}

int main(int argc, char **argv)
{
    struct plain_job j = {.gather = true,
                          .gc = true,
                          .layernorm = true,
                          .embedding = true,
                          .clip = true};
    int64_t v[5];
    double begins = EPOCH;
    struct ep_rng r;

    for (int i = 0; i < 5; i++)
        if (argc != 7 || ep_num_int(argv[i + 1], 1, 256, &v[i], NULL) < 0)
            return 2;
    j.dp = (int)v[0];
    j.pp = (int)v[1];
    j.vpp = (int)v[2];
    for (int d = 0; d < j.dp; d++)
        j.mb[d] = (int)v[3];
    plain_make(&j);
    ep_rng_seed(&r, 1, 0);
    for (int s = 0; s < (int)v[4]; s++) {
        set_times(&j, &r, argv[6], FIRST_STEP + s);
        double time = plain_run(&j);
        write_step(&j, FIRST_STEP + s, begins);
        begins += time;
    }
    plain_free(&j);
    return fflush(stdout) || ferror(stdout) ? 2 : 0;
}
