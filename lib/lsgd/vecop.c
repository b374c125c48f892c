/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vecop.c - see vecop.h.
 *
 * The whole list is run on a block of elements before the next block is
 * begun, so that memory is passed over once for the list, not once for each
 * operation. A block of every vector of a server fits a first-level cache.
 */
#include "config.h"

#include "lsgd/vecop.h"

#include "ckpt/q4.h"

#include <string.h>

#ifdef __clang__
#pragma STDC FP_CONTRACT OFF
#endif

enum {
    BLOCK = 1024, /* elements at a time; a multiple of EP_Q4_BLOCK */
    RUN = 32,     /* steps in one pass at most */
};

static const float *in_at(const struct ep_vecop *op, size_t k, size_t at)
{
    return (const float *)op->in[k] + at;
}

/* Where the packed form of element at is. */
static size_t packed_at(size_t at)
{
    return at / EP_Q4_BLOCK * EP_Q4_BLOCK_BYTES;
}

static void apply(const struct ep_vectors *v, const float *const *g,
                  const struct ep_outer_step *step, size_t nsteps, size_t at,
                  size_t n)
{
    ep_outer_apply_f32(v->theta + at, v->m ? v->m + at : NULL,
                       v->d ? v->d + at : NULL, g, step, nsteps, n);
}

/* The STEPs from ops on. Returns how many there are. */
static size_t run_steps(const struct ep_vectors *v, const struct ep_vecop *ops,
                        size_t nops, size_t at, size_t n)
{
    const float *g[RUN];
    struct ep_outer_step step[RUN];
    size_t run = 0;

    while (run < nops && run < RUN && ops[run].kind == EP_OP_STEP) {
        g[run] = in_at(&ops[run], 0, at);
        step[run] = ops[run].step;
        run++;
    }
    apply(v, g, step, run, at, n);
    return run;
}

static void run_round(const struct ep_vectors *v, const struct ep_vecop *op,
                      size_t at, size_t n)
{
    double sum[BLOCK];
    float mean[BLOCK];
    const float *const g[1] = {mean};

    memset(sum, 0, sizeof sum);
    for (size_t k = 0; k < op->nin; k++) {
        const float *x = in_at(op, k, at);

        for (size_t i = 0; i < n; i++)
            sum[i] += (double)x[i];
    }
    for (size_t i = 0; i < n; i++)
        mean[i] = (float)(sum[i] / (double)op->nin);
    apply(v, g, &op->step, 1, at, n);
}

static void run_send(const struct ep_vectors *v, const struct ep_vecop *op,
                     size_t at, size_t n)
{
    if (op->q4) {
        unsigned char *packed = (unsigned char *)op->out + packed_at(at);
        float u[BLOCK], decoded[BLOCK];

        ep_sub_f32(u, v->snapshot + at, v->theta + at, n);
        ep_axpy_f32(u, v->error + at, 1, n);
        ep_q4_encode(u, n, packed);
        ep_q4_decode(packed, decoded, n);
        ep_sub_f32(v->error + at, u, decoded, n);
    } else {
        ep_sub_f32((float *)op->out + at, v->snapshot + at, v->theta + at, n);
    }
    if (op->carry)
        memcpy(v->sent + at, v->theta + at, n * sizeof(float));
}

static void run_merge(const struct ep_vectors *v, const struct ep_vecop *op,
                      size_t at, size_t n)
{
    const float *global = NULL;
    float kept[BLOCK];

    if (op->q4) {
        const unsigned char *packed =
            (const unsigned char *)op->in[0] + packed_at(at);
        float decoded[BLOCK];

        ep_q4_decode(packed, decoded, n);
        ep_axpy_f32(v->replica + at, decoded, 1, n);
        global = v->replica + at;
    } else {
        global = in_at(op, 0, at);
    }
    if (op->carry)
        ep_sub_f32(kept, v->sent + at, v->theta + at, n);
    ep_mix_f32(v->theta + at, global, op->alpha, n);
    memcpy(v->snapshot + at, v->theta + at, n * sizeof(float));
    if (op->carry)
        ep_axpy_f32(v->snapshot + at, kept, 1, n);
}

static void run_reply(const struct ep_vectors *v, const struct ep_vecop *op,
                      size_t at, size_t n)
{
    if (op->q4) {
        unsigned char *packed = (unsigned char *)op->out + packed_at(at);
        float *replica = v->client[op->client] + at, change[BLOCK];

        ep_sub_f32(change, v->theta + at, replica, n);
        ep_q4_encode(change, n, packed);
        ep_q4_decode(packed, change, n);
        ep_axpy_f32(replica, change, 1, n);
    } else {
        memcpy((float *)op->out + at, v->theta + at, n * sizeof(float));
    }
}

/* All operations on a block of at most BLOCK elements. */
static void run_block(const struct ep_vectors *v, const struct ep_vecop *ops,
                      size_t nops, size_t at, size_t n)
{
    for (size_t i = 0; i < nops;) {
        const struct ep_vecop *op = &ops[i++];

        switch (op->kind) {
        case EP_OP_STEP:
            i += run_steps(v, op, nops - i + 1, at, n) - 1;
            break;
        case EP_OP_ROUND:
            run_round(v, op, at, n);
            break;
        case EP_OP_SEND:
            run_send(v, op, at, n);
            break;
        case EP_OP_MERGE:
            run_merge(v, op, at, n);
            break;
        case EP_OP_REPLY:
            run_reply(v, op, at, n);
            break;
        case EP_OP_FETCH:
            memcpy((float *)op->out + at, v->theta + at, n * sizeof(float));
            break;
        }
    }
}

void ep_vecops_run(const struct ep_vectors *v, const struct ep_vecop *ops,
                   size_t nops, size_t begin, size_t n)
{
    for (size_t done = 0; done < n; done += BLOCK)
        run_block(v, ops, nops, begin + done,
                  n - done < BLOCK ? n - done : BLOCK);
}
