/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cpu_gemm.c - matrix product on the CPU, by OpenBLAS. See probe.h.
 *
 *     C = A B     [N][N] each, row-major; 2 N^3 FLOP per thread
 *
 * The only file that includes cblas.h. Without it the tests exist and say
 * what is missing; the check is there always.
 *
 * The matrices hold random integers, as large as still leaves the product
 * free of rounding (ep_probe_gemm_limit). A check of a product of arbitrary
 * reals needs a tolerance for rounding; the bound n u |A||B||r| (N. J. Higham,
 * "Accuracy and Stability of Numerical Algorithms", 2002, section 3.5) is
 * 16 for entries in [-1, 1], float and n = 1024, where the elements
 * of C themselves are near 10: a corrupted element would have to be grossly
 * wrong to be seen. Here every wrong bit is seen. (nccl-tests chooses its
 * inputs for the same reason.) The price: the low bits of the factors are
 * zero (with n = 1024 float has 8 bits to use of 24, double 22 of 53), so a
 * multiplier defect there is not exercised.
 *
 * Every thread multiplies matrices of its own, all at once, by a BLAS that has
 * only this one thread: the size does not depend on the number of threads, and
 * the slowest CPU ends the run, as it does in a job.
 * Default order: 1024 (f32) and 768 (f64). Measured on one core of a 2-core
 * Sapphire Rapids class VM, shared, with OpenBLAS 0.3.21: 15 to 21 and 14 ms
 * with its SkylakeX kernels, 27 to 40 and 28 to 33 ms with Haswell's, 128 to
 * 142 and 123 ms with Prescott's, which it takes by itself there because it
 * does not know the CPU.
 */
#include "config.h"

#include "probe/probe.h"

#include "base/mem.h"

#include <dlfcn.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#ifdef HAVE_OPENBLAS
#include <cblas.h>
#endif

#define DEFAULT_F32 1024
#define DEFAULT_F64 768

/* ==== The check ==== */

/* splitmix64 (G. L. Steele et al., OOPSLA 2014). */
static uint64_t next_random(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15;

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

int64_t ep_probe_gemm_limit(bool f64, size_t n)
{
    double bound = ldexp(1.0, f64 ? 53 : 24) / (double)n;
    int64_t m = (int64_t)sqrt(bound);

    /* The root may have been rounded up. */
    return (double)m * (double)m > bound ? m - 1 : m;
}

/* A matrix as the check sees it. */
struct view {
    const void *data;
    bool f64;
    size_t n;
    double limit; /* no element is larger */
};

/*
 * Row i as integers modulo 2^64 into out[n]. Index of the first element that
 * is not an integer within the limit (it becomes 0), or n.
 */
static size_t load_row(const struct view *v, size_t i, uint64_t *out)
{
    const float *f = v->f64 ? NULL : (const float *)v->data + i * v->n;
    const double *d = v->f64 ? (const double *)v->data + i * v->n : NULL;
    size_t bad = v->n;

    for (size_t j = 0; j < v->n; j++) {
        double x = d ? d[j] : (double)f[j];
        bool fits = fabs(x) <= v->limit;
        int64_t k = fits ? (int64_t)x : 0;

        if ((!fits || (double)k != x) && bad == v->n)
            bad = j;
        out[j] = (uint64_t)k;
    }
    return bad;
}

/* y = M x modulo 2^64; x, y, row [n]. The first row with a misfit, or n. */
static size_t times(const struct view *m, const uint64_t *x, uint64_t *row,
                    uint64_t *y)
{
    size_t bad = m->n;

    for (size_t i = 0; i < m->n; i++) {
        uint64_t sum = 0;

        if (load_row(m, i, row) < m->n && bad == m->n)
            bad = i;
        for (size_t j = 0; j < m->n; j++)
            sum += row[j] * x[j];
        y[i] = sum;
    }
    return bad;
}

/*
 * Compute row i of A B exactly (into exact[n]; row is scratch) and name its
 * first wrong element in C.
 */
static int blame(const struct view v[3], size_t i, size_t rows, uint64_t *exact,
                 uint64_t *row, struct ep_error *err)
{
    size_t n = v[0].n, j = 0;
    const float *f = v[2].data;
    const double *d = v[2].data;
    uint64_t *a = ep_calloc(n, sizeof *a);
    double got = NAN;

    memset(exact, 0, n * sizeof *exact);
    (void)load_row(&v[0], i, a);
    for (size_t k = 0; k < n; k++) {
        (void)load_row(&v[1], k, row);
        for (size_t l = 0; l < n; l++)
            exact[l] += a[k] * row[l];
    }
    for (; j < n; j++) {
        got = v[2].f64 ? d[i * n + j] : (double)f[i * n + j];
        if (got != (double)(int64_t)exact[j])
            break;
    }
    free(a);
    if (j == n)
        return ep_error_set(err, EP_EDOM,
                            "wrong result or wrong check: row %zu fails and "
                            "is right when computed again",
                            i);
    return ep_error_set(err, EP_EDOM,
                        "wrong result: element (%zu, %zu) of the product of "
                        "order %zu is %.17g, must be %.17g; %zu wrong row%s",
                        i, j, n, got, (double)(int64_t)exact[j], rows,
                        rows == 1 ? "" : "s");
}

int ep_probe_gemm_check(bool f64, size_t n, const void *a, const void *b,
                        const void *c, uint64_t seed, struct ep_error *err)
{
    double limit = (double)ep_probe_gemm_limit(f64, n);
    struct view v[3] = {
        {a, f64, n, limit},
        {b, f64, n, limit},
        {c, f64, n, ldexp(1.0, f64 ? 53 : 24)},
    };
    uint64_t *work = ep_calloc(n, 5 * sizeof *work);
    uint64_t *r = work, *x = work + n, *want = x + n, *got = want + n;
    uint64_t *row = got + n;
    size_t first = n, wrong = 0, bad;
    int rc = 0;

    for (size_t j = 0; j < n; j++)
        r[j] = next_random(&seed) | 1;
    for (int k = 0; k < 2; k++) {
        bad = times(&v[1 - k], k ? x : r, row, k ? want : x);
        if (bad < n) {
            rc = ep_error_set(err, EP_EDOM,
                              "wrong result: row %zu of input %c of order %zu "
                              "changed in memory",
                              bad, k ? 'A' : 'B', n);
            goto out;
        }
    }
    bad = times(&v[2], r, row, got);
    for (size_t i = 0; i < n; i++)
        if (want[i] != got[i] || (i >= bad && load_row(&v[2], i, row) < n)) {
            first = wrong ? first : i;
            wrong++;
        }
    if (wrong)
        rc = blame(v, first, wrong, x, row, err);
out:
    free(work);
    return rc;
}

/* ==== The test ==== */

#ifdef HAVE_OPENBLAS
/*
 * OpenBLAS is loaded when the first gemm is opened and not when the program
 * starts, because its constructor makes a thread for every other CPU, and
 * each spins for 2^28 cycles before it sleeps: measured with 0.3.21 on 2
 * CPUs, 2.7 ms and 66 ms of CPU time in a program that does nothing. On a
 * node at work that would be a probe that makes stragglers. One thread is all
 * we need; the environment is how a constructor can be told.
 */
static struct {
    void *handle; /* never closed: OpenBLAS keeps per-thread buffers */
    __typeof__(cblas_sgemm) *sgemm;
    __typeof__(cblas_dgemm) *dgemm;
    __typeof__(openblas_get_config) *get_config;
    __typeof__(openblas_set_num_threads) *set_num_threads;
} blas;

static void *load_alone(void)
{
    static const char *const names[] = {"libopenblas.so.0", "libopenblas.so"};
    static const char var[] = "OPENBLAS_NUM_THREADS";
    const char *old = getenv(var);
    char *keep = old ? ep_strdup(old) : NULL;
    void *handle = NULL;

    (void)setenv(var, "1", 1);
    for (size_t i = 0; !handle && i < sizeof names / sizeof names[0]; i++)
        handle = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    if (keep)
        (void)setenv(var, keep, 1);
    else
        (void)unsetenv(var);
    free(keep);
    return handle;
}

static int load_blas(struct ep_error *err)
{
    const struct {
        const char *name;
        void *to; /* a pointer to a function */
    } table[] = {
        {"cblas_sgemm", &blas.sgemm},
        {"cblas_dgemm", &blas.dgemm},
        {"openblas_get_config", &blas.get_config},
        {"openblas_set_num_threads", &blas.set_num_threads},
    };
    void *handle;

    if (blas.handle)
        return 0;
    handle = load_alone();
    if (!handle)
        return ep_error_set(err, EP_EMISSING, "cannot load OpenBLAS: %s",
                            dlerror());
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        void *symbol = dlsym(handle, table[i].name);

        if (!symbol) {
            (void)dlclose(handle);
            return ep_error_set(err, EP_EMISSING,
                                "cannot use OpenBLAS: it has no %s",
                                table[i].name);
        }
        /* POSIX lets dlsym return functions as void *; ISO C no cast. */
        memcpy(table[i].to, &symbol, sizeof symbol);
    }
    /* In case that the program is linked with it after all. */
    blas.set_num_threads(1);
    blas.handle = handle;
    return 0;
}

/*
 * How many threads may be inside OpenBLAS: it was built with two buffers per
 * MAX_THREADS; 0.3.21 (64) warns on stderr beyond 128 threads, measured.
 */
static int most_threads(void)
{
    static const char key[] = "MAX_THREADS=";
    const char *at = strstr(blas.get_config(), key);
    long max = at ? strtol(at + sizeof key - 1, NULL, 10) : 0;

    return max > 0 && max <= EP_PROBE_MAX_THREADS ? 2 * (int)max : 64;
}

struct gemm {
    struct ep_probe_pool *pool;
    bool f64;
    int n;
    uint64_t bytes; /* of one matrix */
    char *mem;      /* A, B, C of thread 0, of thread 1, ... */
    struct seat {   /* [threads] */
        uint64_t seed;
        struct ep_error err;
        int rc;
    } * seats;
};

/* The matrices of thread k: which = 0, 1, 2 for A, B, C. */
static void *matrix(const struct gemm *g, int k, int which)
{
    return g->mem + (3 * (uint64_t)k + (uint64_t)which) * g->bytes;
}

/* Random integers in [-m, m]. */
static void fill(const struct gemm *g, int k, int which)
{
    size_t len = (size_t)g->n * (size_t)g->n;
    int64_t m = ep_probe_gemm_limit(g->f64, (size_t)g->n);
    uint64_t span = 2 * (uint64_t)m + 1;
    float *f = matrix(g, k, which);
    double *d = matrix(g, k, which);

    for (size_t i = 0; i < len; i++) {
        uint64_t r = next_random(&g->seats[k].seed) >> 1;
        int64_t v = (int64_t)(r % span) - m;

        if (g->f64)
            d[i] = (double)v;
        else
            f[i] = (float)v;
    }
}

static void fill_all(void *ctx, int k)
{
    struct gemm *g = ctx;

    g->seats[k].seed = ((uint64_t)k << 32) + (uint64_t)g->n;
    fill(g, k, 0);
    fill(g, k, 1);
    /* NaN, so that a product that was not written is not taken for one. */
    memset(matrix(g, k, 2), 0xff, g->bytes);
}

static void multiply(void *ctx, int k)
{
    struct gemm *g = ctx;
    void *a = matrix(g, k, 0), *b = matrix(g, k, 1), *c = matrix(g, k, 2);
    int n = g->n;

    if (g->f64)
        blas.dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, n, n, n, 1.0, a,
                   n, b, n, 0.0, c, n);
    else
        blas.sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, n, n, n, 1.0F, a,
                   n, b, n, 0.0F, c, n);
}

static void verify(void *ctx, int k)
{
    struct gemm *g = ctx;
    struct seat *s = &g->seats[k];

    s->rc = ep_probe_gemm_check(g->f64, (size_t)g->n, matrix(g, k, 0),
                                matrix(g, k, 1), matrix(g, k, 2),
                                next_random(&s->seed), &s->err);
}

static int gemm_run(void *state, struct ep_probe_run *out, struct ep_error *err)
{
    struct gemm *g = state;

    (void)err;
    ep_probe_pool_run(g->pool, multiply, g, out);
    return 0;
}

static int gemm_check(void *state, struct ep_error *err)
{
    struct gemm *g = state;

    ep_probe_pool_run(g->pool, verify, g, NULL);
    for (int k = 0; k < ep_probe_pool_threads(g->pool); k++) {
        struct seat *s = &g->seats[k];
        int cpu = ep_probe_pool_cpu(g->pool, k);

        if (s->rc == 0)
            continue;
        if (cpu >= 0)
            return ep_error_set(err, s->rc, "CPU %d: %s", cpu, s->err.msg);
        return ep_error_set(err, s->rc, "thread %d: %s", k, s->err.msg);
    }
    return 0;
}

static void gemm_release(void *state)
{
    struct gemm *g = state;
    int threads = ep_probe_pool_threads(g->pool);

    ep_probe_pool_free(g->pool);
    ep_probe_unmap(g->mem, 3 * (uint64_t)threads * g->bytes);
    free(g->seats);
    free(g);
}

static int gemm_prepare(const struct ep_probe_test *self,
                        const struct ep_probe_config *cfg, void **state,
                        struct ep_probe_shape *shape, struct ep_error *err)
{
    bool f64 = strcmp(self->dtype, "f64") == 0;
    uint64_t n = cfg->size ? cfg->size : f64 ? DEFAULT_F64 : DEFAULT_F32;
    int threads = cfg->threads, rc = load_blas(err);
    struct gemm *g;

    if (rc < 0)
        return rc;
    if (threads > most_threads())
        threads = most_threads();
    if (n > EP_PROBE_MAX_GEMM)
        return ep_error_set(err, EP_ERANGE, "order %llu is not in 1 .. %d",
                            (unsigned long long)n, EP_PROBE_MAX_GEMM);
    g = ep_calloc(1, sizeof *g);
    g->f64 = f64;
    g->n = (int)n;
    g->bytes = n * n * (f64 ? sizeof(double) : sizeof(float));
    g->mem = ep_probe_map(3 * (uint64_t)threads * g->bytes, err);
    g->pool = g->mem ? ep_probe_pool_new(threads, err) : NULL;
    if (!g->pool) {
        ep_probe_unmap(g->mem, 3 * (uint64_t)threads * g->bytes);
        free(g);
        return err ? err->code : EP_ESYS;
    }
    g->seats = ep_calloc((size_t)threads, sizeof *g->seats);
    ep_probe_pool_run(g->pool, fill_all, g, NULL);
    *state = g;
    *shape = (struct ep_probe_shape){
        .size = n,
        .work = 2.0 * threads * (double)n * (double)n * (double)n,
        .threads = threads,
    };
    return 0;
}
#else
static int gemm_prepare(const struct ep_probe_test *self,
                        const struct ep_probe_config *cfg, void **state,
                        struct ep_probe_shape *shape, struct ep_error *err)
{
    (void)self;
    (void)cfg;
    (void)state;
    (void)shape;
    return ep_error_set(err, EP_EMISSING, "built without OpenBLAS");
}

#define gemm_run NULL
#define gemm_check NULL
#define gemm_release NULL
#endif

static const struct ep_probe_test tests[] = {
    {"gemm:f32", "gemm", "f32", "FLOP/s", "high", gemm_prepare, gemm_run,
     gemm_check, gemm_release},
    {"gemm:f64", "gemm", "f64", "FLOP/s", "high", gemm_prepare, gemm_run,
     gemm_check, gemm_release},
};

const struct ep_probe_backend ep_probe_cpu_gemm = {
    "cpu",
    tests,
    sizeof tests / sizeof tests[0],
};
