/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_probe_cpu.c - the CPU back end: its checks, on products and arrays
 * spoilt on purpose; pinning and threads; the tests themselves, for their
 * results and never for their speed.
 */
#include "config.h"

#include "probe/probe.h"

#include "base/mem.h"
#include "base/thread.h"
#include "tap.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

/* ==== The checks ==== */

static uint64_t seed = 20240607;

static uint64_t rnd(void)
{
    seed ^= seed << 13; /* xorshift64, Marsaglia 2003 */
    seed ^= seed >> 7;
    return seed ^= seed << 17;
}

enum { N = 17 };

/* Random a, b, and their product by the definition, in double. */
static void naive(double *a, double *b, double *c, int64_t m)
{
    for (int i = 0; i < N * N; i++) {
        a[i] = (double)((int64_t)(rnd() % (2 * (uint64_t)m + 1)) - m);
        b[i] = (double)((int64_t)(rnd() % (2 * (uint64_t)m + 1)) - m);
    }
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) {
            c[i * N + j] = 0.0;
            for (int k = 0; k < N; k++)
                c[i * N + j] += a[i * N + k] * b[k * N + j];
        }
}

static void test_limit(void)
{
    static const size_t n[] = {1, 2, 3, 17, 768, 1000, 1024, 4096, 65536};

    ok(ep_probe_gemm_limit(false, 1) == 4096);
    ok(ep_probe_gemm_limit(false, 1024) == 128);
    ok(ep_probe_gemm_limit(false, 1025) == 127);
    ok(ep_probe_gemm_limit(false, 65536) == 16);
    ok(ep_probe_gemm_limit(true, 8) == INT64_C(1) << 25);
    for (size_t i = 0; i < sizeof n / sizeof n[0]; i++)
        for (int f64 = 0; f64 < 2; f64++) {
            uint64_t m = (uint64_t)ep_probe_gemm_limit(f64, n[i]);
            uint64_t top = UINT64_C(1) << (f64 ? 53 : 24);

            ok(n[i] * m * m <= top && n[i] * (m + 1) * (m + 1) > top);
        }
}

static void test_check_f64(void)
{
    double a[N * N], b[N * N], c[N * N], keep;
    struct ep_error err;
    int missed = 0, refused = 0;

    printf("# seed %llu\n", (unsigned long long)seed);
    for (int round = 0; round < 50; round++) {
        size_t at = rnd() % ((size_t)N * N), other = at / N * N + rnd() % N;

        naive(a, b, c, ep_probe_gemm_limit(true, N));
        refused += ep_probe_gemm_check(true, N, a, b, c, rnd(), &err) != 0;
        for (int bit = 0; bit < 64; bit++) {
            uint64_t raw;

            if (c[at] == 0.0)
                break;
            keep = c[at];
            memcpy(&raw, &c[at], sizeof raw);
            raw ^= UINT64_C(1) << bit;
            memcpy(&c[at], &raw, sizeof raw);
            missed +=
                ep_probe_gemm_check(true, N, a, b, c, rnd(), &err) != EP_EDOM;
            c[at] = keep;
        }
        if (other != at) { /* the sum of the row stays right */
            c[at] += 1.0;
            c[other] -= 1.0;
            missed +=
                ep_probe_gemm_check(true, N, a, b, c, rnd(), &err) != EP_EDOM;
        }
    }
    ok(missed == 0);
    ok(refused == 0);
}

static void test_check_f32(void)
{
    double a64[N * N], b64[N * N], c64[N * N];
    float a[N * N], b[N * N], c[N * N], keep;
    struct ep_error err;
    int missed = 0, refused = 0;

    for (int round = 0; round < 50; round++) {
        size_t at = rnd() % ((size_t)N * N);

        naive(a64, b64, c64, ep_probe_gemm_limit(false, N));
        for (int i = 0; i < N * N; i++) {
            a[i] = (float)a64[i];
            b[i] = (float)b64[i];
            c[i] = (float)c64[i];
        }
        refused += ep_probe_gemm_check(false, N, a, b, c, rnd(), &err) != 0;
        for (int bit = 0; bit < 32 && c[at] != 0.0F; bit++) {
            uint32_t raw;

            keep = c[at];
            memcpy(&raw, &c[at], sizeof raw);
            raw ^= UINT32_C(1) << bit;
            memcpy(&c[at], &raw, sizeof raw);
            missed +=
                ep_probe_gemm_check(false, N, a, b, c, rnd(), &err) != EP_EDOM;
            c[at] = keep;
        }
    }
    ok(missed == 0);
    ok(refused == 0);
    c[3 * N + 5] = NAN;
    ok(ep_probe_gemm_check(false, N, a, b, c, 1, NULL) == EP_EDOM);
}

static void test_check_messages(void)
{
    double a[N * N] = {0}, b[N * N] = {0}, c[N * N] = {0};
    struct ep_error err;

    for (int i = 0; i < N; i++)
        a[i * N + i] = b[i * N + i] = c[i * N + i] = 1.0;
    ok(ep_probe_gemm_check(true, N, a, b, c, 1, &err) == 0);
    c[2 * N + 3] = 0.5;
    c[4 * N + 4] = 7.0;
    ok(ep_probe_gemm_check(true, N, a, b, c, 1, &err) == EP_EDOM);
    ok(strcmp(err.msg,
              "wrong result: element (2, 3) of the product of order "
              "17 is 0.5, must be 0; 2 wrong rows") == 0);
    c[2 * N + 3] = 0.0;
    ok(ep_probe_gemm_check(true, N, a, b, c, 1, &err) == EP_EDOM);
    ok(strstr(err.msg, "(4, 4)") && strstr(err.msg,
                                           "is 7, must be 1; 1 "
                                           "wrong row"));
    c[4 * N + 4] = 1.0;
    a[6] = 0.25;
    ok(ep_probe_gemm_check(true, N, a, b, c, 1, &err) == EP_EDOM);
    ok(strstr(err.msg, "row 0 of input A") != NULL);
    a[6] = 0.0;
    b[(size_t)5 * N] = 1e300;
    ok(ep_probe_gemm_check(true, N, a, b, c, 1, &err) == EP_EDOM);
    ok(strstr(err.msg, "row 5 of input B") != NULL);
}

static void test_array_checks(void)
{
    enum { LEN = 70000 }; /* beyond 2^16, where b starts again */
    uint64_t *u = ep_calloc(LEN, sizeof *u);
    double *d = ep_calloc(LEN, sizeof *d);

    for (size_t i = 0; i < LEN; i++) {
        u[i] = i * 0x9e3779b97f4a7c15;
        d[i] = (double)(i % 65536 + 3 * ((i % 65536) ^ (i / 65536)));
    }
    ok(ep_probe_copy_check(u, 0, LEN) == LEN);
    ok(ep_probe_triad_check(d, 0, LEN) == LEN);
    ok(ep_probe_copy_check(u, 9, 9) == 9);
    u[69000] ^= 1;
    d[69001] = -d[69001];
    ok(ep_probe_copy_check(u, 0, LEN) == 69000);
    ok(ep_probe_copy_check(u, 69001, LEN) == LEN);
    ok(ep_probe_triad_check(d, 100, LEN) == 69001);
    d[100] = NAN;
    ok(ep_probe_triad_check(d, 100, LEN) == 100);
    free(u);
    free(d);
}

/* ==== This machine ==== */

static void test_pin(void)
{
    cpu_set_t before;
    struct ep_error err;
    int bad = 0, allowed = 0;

    ok(ep_threads_allowed() >= 1);
    ok(ep_probe_pin(-1, &err) == EP_ERANGE);
    ok(ep_probe_pin(INT32_MAX, &err) == EP_ERANGE);
    ok(ep_probe_pin((1 << 20) - 1, &err) == EP_EUSAGE); /* beyond any Linux */
    ok(strstr(err.msg, "none of that number") != NULL);
    if (sched_getaffinity(0, sizeof before, &before) != 0) {
        printf("# more than %d CPUs: pinning not tried\n", CPU_SETSIZE);
        return;
    }
    ok(ep_threads_allowed() == CPU_COUNT(&before));
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (!CPU_ISSET(cpu, &before))
            continue;
        allowed++;
        bad += ep_probe_pin(cpu, &err) != 0 || sched_getcpu() != cpu ||
               ep_threads_allowed() != 1;
    }
    ok(allowed > 0 && bad == 0);
    ok(sched_setaffinity(0, sizeof before, &before) == 0);
}

static void test_system(void)
{
    struct ep_error err;
    char *p;

    ok(ep_probe_llc_bytes() == ep_probe_llc_bytes());
    p = ep_probe_map(10000, &err);
    ok(p && p[0] == 0 && p[9999] == 0);
    ep_probe_unmap(p, 10000);
    ep_probe_unmap(NULL, 10000);
    ok(!ep_probe_map(UINT64_C(1) << 62, &err) && err.code == EP_ELIMIT);
}

struct seen {
    int calls[8];
};

static void visit(void *ctx, int k)
{
    ((struct seen *)ctx)->calls[k]++;
}

/* Which CPU may this thread use, if it is only one? */
static void where(void *ctx, int k)
{
    ((int *)ctx)[k] = ep_threads_allowed() == 1 ? ep_probe_nth_cpu(0) : -1;
}

static void test_pool(void)
{
    static const int sizes[] = {1, 2, 3, 8};
    struct ep_error err;

    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct ep_probe_pool *p = ep_probe_pool_new(sizes[i], &err);
        struct seen s = {{0}};
        struct ep_probe_run run;
        int wrong = 0;

        printf("# %d threads\n", sizes[i]);
        ok(p && ep_probe_pool_threads(p) == sizes[i]);
        for (int round = 0; round < 100; round++)
            ep_probe_pool_run(p, visit, &s, round % 2 ? &run : NULL);
        for (int k = 0; k < 8; k++)
            wrong += s.calls[k] != (k < sizes[i] ? 100 : 0);
        ok(wrong == 0);
        ok(run.seconds >= 0.0 && run.held > 0.0 && run.cpu >= 0.0);
        ok(run.cpu <= 1.05 * run.held);
        ok(isnan(run.wait) || run.wait <= 1.05 * run.held);
        ep_probe_pool_free(p);
    }
    ep_probe_pool_free(NULL);
}

static void test_bound(void)
{
    int n = ep_threads_allowed(), wrong = 0;
    struct ep_error err;
    struct ep_probe_pool *p = ep_probe_pool_new(n, &err);

    int *at = ep_calloc((size_t)n, sizeof *at);

    if (p)
        ep_probe_pool_run(p, where, at, NULL);
    for (int k = 0; p && k < n; k++)
        wrong += ep_probe_pool_cpu(p, k) != ep_probe_nth_cpu(k) ||
                 at[k] != ep_probe_nth_cpu(k);
    ok(p && wrong == 0);
    free(at);
    ep_probe_pool_free(p);
    p = ep_probe_pool_new(n + 1, &err); /* not one CPU each: unbound */
    ok(p && ep_probe_pool_cpu(p, n) == -1 && ep_probe_pool_cpu(p, 0) == -1);
    ep_probe_pool_free(p);
    ok(ep_probe_nth_cpu(n) == -1 && ep_probe_nth_cpu(n - 1) >= 0);
}

static void test_real(void)
{
    static const struct {
        const char *spec;
        uint64_t size;
        int threads;
        int rc; /* of open */
    } table[] = {
        {"gemm:f32", 17, 1, 0},
        {"gemm:f64", 17, 1, 0},
        {"gemm:f32", 5, 1, 0},
        {"gemm:f32", 200, 2, 0},
        {"gemm:f64", 200, 2, 0},
        {"gemm:f32", EP_PROBE_MAX_GEMM + 1, 1, EP_ERANGE},
        {"gemm:f64", UINT64_MAX, 1, EP_ERANGE},
        {"membw:copy", 1 << 20, 1, 0},
        {"membw:triad", 1 << 20, 1, 0},
        {"membw:copy", 1000001, 3, 0},
        {"membw:triad", 1000001, 3, 0},
        {"membw:triad", 64 << 10, 1, 0},
        {"membw:triad", 65535, 1, EP_ERANGE},
        {"membw:copy", 64 << 10, 2, EP_ERANGE},
        {"membw:copy", UINT64_MAX, 1, EP_ELIMIT},
    };
    struct ep_probe_goal goal = {3, 1, 0.2};
    const struct ep_probe_test *test;
    struct ep_probe_result r;

    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        struct ep_probe_config cfg = {.size = table[i].size,
                                      .threads = table[i].threads};
        struct ep_error err = {0};
        const struct ep_probe_test *all[8];
        struct ep_probe *p;

        printf("# %s %llu\n", table[i].spec, (unsigned long long)table[i].size);
        ok(ep_probe_select(table[i].spec, all, 8, &err) == 1);
        test = all[0];
        p = ep_probe_open(test, &cfg, &err);
        if (!p && err.code == EP_EMISSING) {
            ok(strcmp(err.msg, "built without OpenBLAS") == 0);
            continue;
        }
        ok(err.code == table[i].rc && !p == (table[i].rc != 0));
        if (!p)
            continue;
        for (int again = 0; again < 2; again++) {
            ok(ep_probe_measure(p, &goal, &r, &err) == 0);
            ok(r.n == 3 && r.size == table[i].size);
            ok(r.value > 0.0 && r.best >= r.value && r.spread >= 0.0);
            ok(r.busy > 0.0 && r.wall >= r.busy);
            ok(r.cpu_share >= 0.0 && r.cpu_share <= 1.05);
            ok(isnan(r.wait_share) ||
               (r.wait_share >= 0.0 && r.wait_share <= 1.05));
            ok(r.threads == table[i].threads);
        }
        ep_probe_close(p);
    }
}

int main(void)
{
    test_limit();
    test_check_f64();
    test_check_f32();
    test_check_messages();
    test_array_checks();
    test_pin();
    test_system();
    test_pool();
    test_bound();
    test_real();
    return tap_done();
}
