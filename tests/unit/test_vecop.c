/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_vecop.c - each vector operation against its rule, and lists of them in
 * chunks and batches against all at once.
 *
 * The vectors hold small whole numbers where the rule can be computed exactly
 * in float; the 4-bit codec is test_q4's business, and taken as given.
 */
#include "config.h"

#include "base/mem.h"
#include "base/simd.h"
#include "ckpt/q4.h"
#include "lsgd/vecop.h"

#include "series.h"
#include "tap.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define SEED 20260712
#define N 2500 /* more than two blocks, not a multiple of 64 */
#define PACKED ((size_t)((N + 63) / 64) * 36)
#define INPUTS 40

enum { THETA, M, D, SNAPSHOT, SENT, ERROR, REPLICA, CLIENT0, CLIENT1, VECTORS };

static struct rng rng = {SEED};

struct server {
    float v[VECTORS][N], out[N];
    unsigned char packed[PACKED];
    float *client[2];
    struct ep_vectors vectors;
};

static float in[INPUTS][N];
static const void *in_list[INPUTS];
static unsigned char packed_in[PACKED];
static const void *const packed_list[1] = {packed_in};

static struct server *new_server(void)
{
    struct server *s = ep_calloc(1, sizeof *s);

    s->client[0] = s->v[CLIENT0];
    s->client[1] = s->v[CLIENT1];
    s->vectors = (struct ep_vectors){.theta = s->v[THETA],
                                     .m = s->v[M],
                                     .d = s->v[D],
                                     .snapshot = s->v[SNAPSHOT],
                                     .sent = s->v[SENT],
                                     .error = s->v[ERROR],
                                     .replica = s->v[REPLICA],
                                     .client = s->client};
    return s;
}

static void fill(float *v, bool whole)
{
    for (size_t i = 0; i < N; i++)
        v[i] = whole ? (float)floor(rng_uniform(&rng) * 4096 - 2048)
                     : (float)rng_normal(&rng);
}

/* Random contents; whole: whole numbers. */
static void fill_server(struct server *s, bool whole)
{
    for (int k = 0; k < VECTORS; k++)
        fill(s->v[k], whole);
    memset(s->out, 0, sizeof s->out);
    memset(s->packed, 0, sizeof s->packed);
}

static void copy_server(struct server *to, const struct server *from)
{
    memcpy(to->v, from->v, sizeof to->v);
    memcpy(to->out, from->out, sizeof to->out);
    memcpy(to->packed, from->packed, sizeof to->packed);
}

static bool equal(const struct server *a, const struct server *b)
{
    const void *va = a->v, *vb = b->v, *oa = a->out, *ob = b->out;

    return memcmp(va, vb, sizeof a->v) == 0 &&
           memcmp(oa, ob, sizeof a->out) == 0 &&
           memcmp(a->packed, b->packed, sizeof a->packed) == 0;
}

/* Are all vectors but these (bits) as they were? */
static bool others_kept(const struct server *a, const struct server *b,
                        unsigned changed)
{
    for (int k = 0; k < VECTORS; k++) {
        const void *va = a->v[k], *vb = b->v[k];

        if (!(changed >> k & 1) && memcmp(va, vb, sizeof a->v[k]) != 0)
            return false;
    }
    return true;
}

static bool floats_equal(const float *a, const float *b)
{
    for (size_t i = 0; i < N; i++)
        if (a[i] != b[i])
            return false;
    return true;
}

struct fixture {
    struct server *now, *was;
};

/* Run one operation; was holds what was before it. */
static void run(struct fixture *f, struct ep_vecop op)
{
    if (op.kind == EP_OP_SEND || op.kind == EP_OP_REPLY ||
        op.kind == EP_OP_FETCH)
        op.out = op.q4 ? (void *)f->now->packed : f->now->out;
    copy_server(f->was, f->now);
    ep_vecops_run(&f->now->vectors, &op, 1, 0, N);
}

static struct ep_vecop step_op(const struct ep_outer *o, uint64_t t, size_t k)
{
    return (struct ep_vecop){.kind = EP_OP_STEP,
                             .step = ep_outer_step_after(o, t),
                             .in = &in_list[k],
                             .nin = 1};
}

static void test_step(struct fixture *f)
{
    const struct ep_outer o = {0.5, 0.5, 0, 2};
    bool right = true;

    fill_server(f->now, true);
    run(f, step_op(&o, 1, 3)); /* a flush */
    for (size_t i = 0; i < N; i++) {
        double g = (double)in[3][i], m = (double)f->was->v[M][i] / 2 +
                                         ((double)f->was->v[D][i] + g) / 2;

        right = right && (double)f->now->v[M][i] == m && f->now->v[D][i] == 0 &&
                (double)f->now->v[THETA][i] ==
                    (double)f->was->v[THETA][i] - 0.5 * (0.5 * m + g / 2);
    }
    ok(right);
    ok(others_kept(f->now, f->was, 1U << THETA | 1U << M | 1U << D));
}

/* The mean of 3 rounds once: from double, to float. */
static void test_round(struct fixture *f)
{
    const struct ep_outer o = {1, 0, 0, 1};
    bool right = true;

    fill_server(f->now, true);
    memset(f->now->v[THETA], 0, sizeof f->now->v[THETA]);
    run(f, (struct ep_vecop){.kind = EP_OP_ROUND,
                             .step = ep_outer_step_after(&o, 0),
                             .in = in_list,
                             .nin = 3});
    for (size_t i = 0; i < N; i++) {
        float mean =
            (float)(((double)in[0][i] + (double)in[1][i] + (double)in[2][i]) /
                    3);

        right = right && f->now->v[THETA][i] == 0 - mean;
    }
    ok(right);
    ok(others_kept(f->now, f->was, 1U << THETA | 1U << M));
}

/* The sum is taken in double: in float, 2^24 + 1 + 1 - 2^24 would be 0. */
static void test_round_order(struct fixture *f)
{
    static float big[N], little[N], minus[N];
    static const void *const list[4] = {big, little, little, minus};
    const struct ep_outer o = {1, 0, 0, 1};

    for (size_t i = 0; i < N; i++) {
        big[i] = 0x1p24F;
        little[i] = 1;
        minus[i] = -0x1p24F;
    }
    memset(f->now->v[THETA], 0, sizeof f->now->v[THETA]);
    run(f, (struct ep_vecop){.kind = EP_OP_ROUND,
                             .step = ep_outer_step_after(&o, 0),
                             .in = list,
                             .nin = 4});
    ok(f->now->v[THETA][0] == -0.5F && f->now->v[THETA][N - 1] == -0.5F);
}

static void test_send(struct fixture *f, bool carry)
{
    bool right = true;

    fill_server(f->now, true);
    run(f, (struct ep_vecop){.kind = EP_OP_SEND, .carry = carry});
    for (size_t i = 0; i < N; i++)
        right = right &&
                f->now->out[i] == f->was->v[SNAPSHOT][i] - f->was->v[THETA][i];
    ok(right);
    ok(others_kept(f->now, f->was, carry ? 1U << SENT : 0));
    if (carry)
        ok(floats_equal(f->now->v[SENT], f->was->v[THETA]));
}

/* What is sent and the new error make up u = snapshot - theta + error. */
static void test_send_q4(struct fixture *f, bool carry)
{
    static float u[N], decoded[N];
    static unsigned char packed[PACKED];
    bool right = true;

    fill_server(f->now, false);
    run(f, (struct ep_vecop){.kind = EP_OP_SEND, .q4 = true, .carry = carry});
    for (size_t i = 0; i < N; i++)
        u[i] = (f->was->v[SNAPSHOT][i] - f->was->v[THETA][i]) +
               f->was->v[ERROR][i];
    ep_q4_encode(u, N, packed);
    ok(memcmp(packed, f->now->packed, PACKED) == 0);
    ok(ep_q4_check(f->now->packed, N, NULL) == 0);
    ep_q4_decode(packed, decoded, N);
    for (size_t i = 0; i < N; i++)
        right = right && f->now->v[ERROR][i] == u[i] - decoded[i];
    ok(right);
    ok(others_kept(f->now, f->was, 1U << ERROR | (carry ? 1U << SENT : 0)));
    if (carry)
        ok(floats_equal(f->now->v[SENT], f->was->v[THETA]));
}

static void test_merge(struct fixture *f, bool carry)
{
    bool right = true;

    fill_server(f->now, true);
    run(f, (struct ep_vecop){.kind = EP_OP_MERGE,
                             .alpha = 0.25,
                             .carry = carry,
                             .in = &in_list[1],
                             .nin = 1});
    for (size_t i = 0; i < N; i++) {
        double theta = (double)f->was->v[THETA][i],
               now = 0.75 * theta + 0.25 * (double)in[1][i],
               kept = carry ? (double)f->was->v[SENT][i] - theta : 0;

        right = right && (double)f->now->v[THETA][i] == now &&
                (double)f->now->v[SNAPSHOT][i] == now + kept;
    }
    ok(right);
    ok(others_kept(f->now, f->was, 1U << THETA | 1U << SNAPSHOT));
}

static void test_merge_q4(struct fixture *f, bool carry)
{
    static float decoded[N];
    bool right = true;

    fill_server(f->now, false);
    run(f, (struct ep_vecop){.kind = EP_OP_MERGE,
                             .alpha = 0.4,
                             .q4 = true,
                             .carry = carry,
                             .in = packed_list,
                             .nin = 1});
    ep_q4_decode(packed_in, decoded, N);
    for (size_t i = 0; i < N; i++) {
        float r = f->was->v[REPLICA][i] + decoded[i],
              theta = f->was->v[THETA][i], now = theta + 0.4F * (r - theta);

        right = right && f->now->v[REPLICA][i] == r &&
                f->now->v[THETA][i] == now &&
                f->now->v[SNAPSHOT][i] ==
                    (carry ? now + (f->was->v[SENT][i] - theta) : now);
    }
    ok(right);
    ok(others_kept(f->now, f->was,
                   1U << THETA | 1U << SNAPSHOT | 1U << REPLICA));
}

static void test_reply(struct fixture *f)
{
    static float change[N], decoded[N];
    static unsigned char packed[PACKED];
    bool right = true;

    fill_server(f->now, true);
    run(f, (struct ep_vecop){.kind = EP_OP_REPLY, .client = 1});
    ok(floats_equal(f->now->out, f->was->v[THETA]));
    ok(others_kept(f->now, f->was, 0));
    run(f, (struct ep_vecop){.kind = EP_OP_FETCH});
    ok(floats_equal(f->now->out, f->was->v[THETA]));
    ok(others_kept(f->now, f->was, 0));
    fill_server(f->now, false);
    run(f, (struct ep_vecop){.kind = EP_OP_REPLY, .q4 = true, .client = 1});
    for (size_t i = 0; i < N; i++)
        change[i] = f->was->v[THETA][i] - f->was->v[CLIENT1][i];
    ep_q4_encode(change, N, packed);
    ep_q4_decode(packed, decoded, N);
    ok(memcmp(packed, f->now->packed, PACKED) == 0);
    for (size_t i = 0; i < N; i++)
        right = right &&
                f->now->v[CLIENT1][i] == f->was->v[CLIENT1][i] + decoded[i];
    ok(right);
    ok(others_kept(f->now, f->was, 1U << CLIENT1));
}

/* Steps, and every other operation after them: more than fit one pass. */
static size_t long_list(struct server *s, struct ep_vecop *ops, bool q4)
{
    static const struct ep_outer o = {0.3, 0.9, 0.01, 5};
    size_t n = 0;

    while (n < INPUTS) {
        ops[n] = step_op(&o, n, n);
        n++;
    }
    ops[n++] = (struct ep_vecop){.kind = EP_OP_SEND,
                                 .q4 = q4,
                                 .carry = true,
                                 .out = q4 ? (void *)s->packed : s->out};
    ops[n++] = step_op(&o, 40, 1);
    ops[n++] = (struct ep_vecop){.kind = EP_OP_MERGE,
                                 .alpha = 0.3,
                                 .q4 = q4,
                                 .carry = true,
                                 .in = q4 ? packed_list : in_list,
                                 .nin = 1};
    ops[n++] = (struct ep_vecop){.kind = EP_OP_ROUND,
                                 .step = ep_outer_step_after(&o, 41),
                                 .in = in_list,
                                 .nin = 7};
    return n;
}

/*
 * The list at once, at the portable level, against: one operation after the
 * other; chunks of multiples of 64 in a random order; at every level.
 */
static void test_cuts(struct fixture *f, bool q4)
{
    struct server *want = new_server(), *start = new_server();
    struct ep_vecop ops[INPUTS + 4];
    size_t nops, begin[N / 64 + 1], chunks;

    fill_server(start, false);
    copy_server(want, start);
    nops = long_list(want, ops, q4);
    ep_simd_limit(EP_SIMD_PORTABLE);
    for (size_t i = 0; i < nops; i++)
        ep_vecops_run(&want->vectors, &ops[i], 1, 0, N);
    nops = long_list(f->now, ops, q4);
    for (int level = 0; level <= EP_SIMD_AVX512; level++) {
        ep_simd_limit((enum ep_simd)level);
        copy_server(f->now, start);
        ep_vecops_run(&f->now->vectors, ops, nops, 0, N);
        ok(equal(f->now, want));
        copy_server(f->now, start);
        chunks = 0;
        for (size_t at = 0; at < N; chunks++) {
            begin[chunks] = at;
            at += 64 * (1 + (size_t)(rng_uniform(&rng) * 20));
        }
        for (size_t k = chunks; k-- > 0;) { /* the last one first */
            size_t end = k + 1 < chunks ? begin[k + 1] : N;

            ep_vecops_run(&f->now->vectors, ops, nops, begin[k],
                          end - begin[k]);
        }
        ok(equal(f->now, want));
    }
    copy_server(f->now, start);
    ep_vecops_run(&f->now->vectors, ops, nops, 0, 0);
    ep_vecops_run(&f->now->vectors, ops, 0, 0, N);
    ok(equal(f->now, start));
    free(want);
    free(start);
}

/* A server has the vectors that its configuration needs, no more. */
static void test_few_vectors(void)
{
    static float theta[N], out[N];
    const struct ep_outer o = {1, 0, 0, 1};
    const struct ep_vectors v = {.theta = theta};
    const struct ep_vecop ops[2] = {step_op(&o, 0, 0),
                                    {.kind = EP_OP_REPLY, .out = out}};

    ep_vecops_run(&v, ops, 2, 0, N);
    ok(theta[N - 1] == 0 - in[0][N - 1] && out[N - 1] == theta[N - 1]);
}

int main(void)
{
    struct fixture f = {new_server(), new_server()};

    printf("# seed %d\n", SEED);
    for (size_t k = 0; k < INPUTS; k++) {
        fill(in[k], true);
        in_list[k] = in[k];
    }
    fill(f.now->v[0], false);
    ep_q4_encode(f.now->v[0], N, packed_in);
    for (int level = 0; level <= EP_SIMD_AVX512; level++) {
        ep_simd_limit((enum ep_simd)level);
        test_step(&f);
        test_round(&f);
        test_round_order(&f);
        for (int carry = 0; carry <= 1; carry++) {
            test_send(&f, carry);
            test_send_q4(&f, carry);
            test_merge(&f, carry);
            test_merge_q4(&f, carry);
        }
        test_reply(&f);
    }
    test_cuts(&f, false);
    test_cuts(&f, true);
    test_few_vectors();
    free(f.now);
    free(f.was);
    return tap_done();
}
