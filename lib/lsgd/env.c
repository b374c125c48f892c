/* SPDX-License-Identifier: Apache-2.0 */
/*
 * env.c - see env.h.
 *
 * Values are read in the order that suits us (names of regions before what
 * refers to them), whatever theirs is in the file: see env_field.h.
 */
#include "config.h"

#include "lsgd/env.h"

#include "base/json.h"
#include "base/mem.h"
#include "lsgd/env_field.h"
#include "lsgd/links.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *const ep_method_names[EP_METHODS] = {"halos", "async", "diloco",
                                                 "diloco-dynamic", "sync"};

/* ==== Regions ==== */

#define COUNT(a) (sizeof(a) / sizeof *(a))

static bool is_name(struct ep_span s)
{
    static const char allowed[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqr"
        "stuvwxyz0123456789._-";

    for (size_t i = 0; i < s.len; i++)
        if (!s.ptr[i] || !strchr(allowed, s.ptr[i]))
            return false;
    return s.len && s.len <= EP_ENV_NAME_BYTES;
}

/* The region of a name, or nregions. */
static size_t find_region(const struct ep_env *env, struct ep_span name)
{
    size_t r = 0;

    while (r < env->nregions && !ep_span_eq(name, env->region[r].name))
        r++;
    return r;
}

static int read_speeds(struct ep_fields *p, struct ep_env *env, size_t *cap,
                       const struct ep_field *f)
{
    struct ep_env_region *region = &env->region[env->nregions];
    struct ep_part v;
    struct ep_json j;
    int rc = ep_array_begin(p, &f->part, f->name, &j);

    while (rc == 0 && (rc = ep_array_next(&j, &v)) > 0) {
        double speed = 0;

        rc = ep_part_number(p, &v, f->name, EP_ABOVE_ZERO, 1e9, &speed);
        if (rc == 0 && env->nworkers == EP_ENV_WORKERS)
            rc = ep_fields_fail(p, v.v.raw.ptr, EP_ELIMIT, f->name,
                                "more than 4096 workers in all");
        if (rc < 0)
            return rc;
        env->speed =
            ep_grow(env->speed, cap, env->nworkers + 1, sizeof *env->speed);
        env->speed[env->nworkers++] = speed;
        region->workers++;
        env->fastest = fmax(env->fastest, speed);
    }
    if (rc == 0 && !region->workers)
        rc =
            ep_fields_fail(p, f->part.v.raw.ptr, EP_EDOM, f->name, "no worker");
    return rc;
}

static int read_region(struct ep_fields *p, struct ep_env *env, size_t *cap,
                       const struct ep_part *part)
{
    struct ep_field f[] = {{.name = "name"}, {.name = "speeds"}};
    struct ep_env_region *region = &env->region[env->nregions];
    int rc = ep_fields_take(p, part, "regions", f, COUNT(f));

    if (rc < 0)
        return rc;
    if (f[0].part.v.kind != EP_JSON_STRING || !is_name(f[0].part.v.raw))
        return ep_fields_fail(
            p, f[0].part.v.raw.ptr, EP_EFORMAT, "name",
            "not a string of 1 to 64 letters, digits, '.', '_', '-'");
    if (find_region(env, f[0].part.v.raw) < env->nregions)
        return ep_fields_fail(p, f[0].part.v.raw.ptr, EP_EDOM, "name",
                              "another region has it");
    region->first = env->nworkers;
    rc = read_speeds(p, env, cap, &f[1]);
    if (rc < 0)
        return rc;
    region->name = ep_strndup(f[0].part.v.raw.ptr, f[0].part.v.raw.len);
    env->nregions++;
    return 0;
}

static int read_regions(struct ep_fields *p, struct ep_env *env,
                        const struct ep_field *f)
{
    struct ep_part v;
    struct ep_json j;
    size_t cap = 0;
    int rc = ep_array_begin(p, &f->part, f->name, &j);

    env->region = ep_calloc(EP_LINKS_REGIONS, sizeof *env->region);
    while (rc == 0 && (rc = ep_array_next(&j, &v)) > 0) {
        if (env->nregions == EP_LINKS_REGIONS)
            return ep_fields_fail(p, v.v.raw.ptr, EP_ELIMIT, f->name,
                                  "more than 16 regions");
        rc = read_region(p, env, &cap, &v);
    }
    if (rc < 0)
        return rc;
    if (!env->nregions)
        return ep_fields_fail(p, f->part.v.raw.ptr, EP_EDOM, f->name,
                              "no region");
    env->region_of = ep_calloc(env->nworkers, sizeof *env->region_of);
    for (size_t r = 0; r < env->nregions; r++)
        for (size_t i = 0; i < env->region[r].workers; i++)
            env->region_of[env->region[r].first + i] = r;
    return 0;
}

/* One row of the matrix: exactly n numbers. */
static int read_row(struct ep_fields *p, const struct ep_part *part,
                    const char *name, double *row, size_t n)
{
    struct ep_part v;
    struct ep_json j;
    size_t i = 0;
    int rc = ep_array_begin(p, part, name, &j);

    while (rc == 0 && (rc = ep_array_next(&j, &v)) > 0) {
        if (i == n)
            return ep_fields_fail(p, v.v.raw.ptr, EP_EDOM, name,
                                  "more columns than regions");
        rc = ep_part_number(p, &v, name, EP_ABOVE_ZERO, 1e9, &row[i++]);
    }
    if (rc == 0 && i < n)
        rc = ep_fields_fail(p, part->v.raw.ptr, EP_EDOM, name,
                            "fewer columns than regions");
    return rc;
}

static int read_matrix(struct ep_fields *p, struct ep_env *env,
                       const struct ep_field *f)
{
    struct ep_part v;
    struct ep_json j;
    size_t n = env->nregions, row = 0;
    int rc = ep_array_begin(p, &f->part, f->name, &j);

    env->gbit_s = ep_calloc(n * n, sizeof *env->gbit_s);
    while (rc == 0 && (rc = ep_array_next(&j, &v)) > 0) {
        if (row == n)
            return ep_fields_fail(p, v.v.raw.ptr, EP_EDOM, f->name,
                                  "more rows than regions");
        rc = read_row(p, &v, f->name, &env->gbit_s[n * row++], n);
    }
    if (rc == 0 && row < n)
        rc = ep_fields_fail(p, f->part.v.raw.ptr, EP_EDOM, f->name,
                            "fewer rows than regions");
    return rc;
}

/* ==== Methods ==== */

static int read_outer(struct ep_fields *p, const struct ep_field *f,
                      struct ep_outer *out)
{
    struct ep_field o[] = {{.name = "lr"},
                           {.name = "beta"},
                           {.name = "N"},
                           {.name = "c", .optional = true}};
    struct ep_error why;
    int rc;

    if (!f->have)
        return 0;
    rc = ep_fields_take(p, &f->part, f->name, o, COUNT(o));
    if (rc == 0)
        rc = ep_field_number(p, &o[0], EP_ABOVE_ZERO, 1e9, &out->lr);
    if (rc == 0)
        rc = ep_field_number(p, &o[1], EP_FROM_ZERO, 1, &out->beta);
    if (rc == 0)
        rc = ep_field_integer(p, &o[2], 1, 1000000000, &out->n);
    if (rc == 0)
        rc = ep_field_number(p, &o[3], EP_FROM_ZERO, 1, &out->c);
    if (rc == 0 && ep_outer_check(out, &why) < 0)
        rc = ep_fields_fail(p, f->part.v.raw.ptr, EP_EDOM, f->name, why.msg);
    return rc;
}

static int read_method(struct ep_fields *p, const struct ep_field *f,
                       enum ep_method m, struct ep_env_method *out)
{
    /* gps H of all, the rest of halos alone */
    struct ep_field k[] = {{.name = "H"},
                           {.name = "gps"},
                           {.name = "K"},
                           {.name = "alpha"},
                           {.name = "lps"}};
    int rc;

    if (!f->have)
        return 0;
    rc = ep_fields_take(p, &f->part, f->name, k,
                        m == EP_METHOD_HALOS ? COUNT(k) : 2);
    if (rc == 0)
        rc = ep_field_integer(p, &k[0], 1, 1000000000, &out->h);
    if (rc == 0)
        rc = read_outer(p, &k[1], &out->gps);
    if (rc == 0)
        rc = ep_field_integer(p, &k[2], 1, 1000000000, &out->k);
    if (rc == 0)
        rc = ep_field_number(p, &k[3], EP_FROM_ZERO, 1, &out->alpha);
    if (rc == 0)
        rc = read_outer(p, &k[4], &out->lps);
    out->given = true;
    return rc;
}

static int read_methods(struct ep_fields *p, struct ep_env *env,
                        const struct ep_field *f)
{
    struct ep_field m[EP_METHOD_SYNC];
    int rc;

    for (int i = 0; i < EP_METHOD_SYNC; i++)
        m[i] = (struct ep_field){.name = ep_method_names[i], .optional = true};
    rc = ep_fields_take(p, &f->part, f->name, m, EP_METHOD_SYNC);
    for (int i = 0; rc == 0 && i < EP_METHOD_SYNC; i++)
        rc = read_method(p, &m[i], (enum ep_method)i, &env->method[i]);
    /* one local step, then the mean: nothing to set */
    env->method[EP_METHOD_SYNC] =
        (struct ep_env_method){.given = true, .h = 1, .gps = {.lr = 1, .n = 1}};
    return rc;
}

/* ==== Options ==== */

/* "REGION/I", I from 0, as merge records name a worker. */
static int read_worker(const struct ep_fields *p, const struct ep_env *env,
                       const struct ep_field *f, size_t *worker)
{
    struct ep_span s = f->part.v.raw, name = s;
    size_t r, i = 0, digits = 0;
    bool zeros;

    if (f->part.v.kind != EP_JSON_STRING)
        return ep_fields_fail(p, s.ptr, EP_EFORMAT, f->name, "not a string");
    while (digits < s.len && s.ptr[s.len - 1 - digits] >= '0' &&
           s.ptr[s.len - 1 - digits] <= '9')
        digits++;
    name.len = s.len > digits ? s.len - digits - 1 : 0;
    for (size_t d = s.len - digits; d < s.len && i < EP_ENV_WORKERS; d++)
        i = 10 * i + (size_t)(s.ptr[d] - '0');
    zeros = digits > 1 && s.ptr[s.len - digits] == '0'; /* "00" is no name */
    r = find_region(env, name);
    if (!digits || zeros || digits == s.len || s.ptr[name.len] != '/' ||
        r == env->nregions || i >= env->region[r].workers)
        return ep_fields_fail(p, s.ptr, EP_EDOM, f->name,
                              "no such worker (REGION/NUMBER, from 0)");
    *worker = env->region[r].first + i;
    return 0;
}

static int read_failure(struct ep_fields *p, struct ep_env *env,
                        const struct ep_part *part, size_t *cap)
{
    struct ep_field f[] = {{.name = "worker"},
                           {.name = "down_seconds"},
                           {.name = "up_seconds", .optional = true}};
    struct ep_env_failure x = {.up = (double)INFINITY};
    int rc = ep_fields_take(p, part, "failures", f, COUNT(f));

    if (rc == 0)
        rc = read_worker(p, env, &f[0], &x.worker);
    if (rc == 0)
        rc = ep_field_number(p, &f[1], EP_FROM_ZERO, 1e12, &x.down);
    if (rc == 0)
        rc = ep_field_number(p, &f[2], EP_FROM_ZERO, 1e12, &x.up);
    if (rc == 0 && x.up < x.down)
        rc = ep_fields_fail(p, part->v.raw.ptr, EP_EDOM, "failures",
                            "up before down");
    if (rc < 0)
        return rc;
    env->failure =
        ep_grow(env->failure, cap, env->nfailures + 1, sizeof *env->failure);
    env->failure[env->nfailures++] = x;
    return 0;
}

static int by_worker_and_time(const void *a, const void *b)
{
    const struct ep_env_failure *x = a, *y = b;

    if (x->worker != y->worker)
        return x->worker < y->worker ? -1 : 1;
    return (x->down > y->down) - (x->down < y->down);
}

static int read_failures(struct ep_fields *p, struct ep_env *env,
                         const struct ep_field *f)
{
    struct ep_part v;
    struct ep_json j;
    size_t cap = 0;
    int rc;

    if (!f->have)
        return 0;
    rc = ep_array_begin(p, &f->part, f->name, &j);
    while (rc == 0 && (rc = ep_array_next(&j, &v)) > 0) {
        if (env->nfailures == EP_ENV_FAILURES)
            return ep_fields_fail(p, v.v.raw.ptr, EP_ELIMIT, f->name,
                                  "more than 65536 failures");
        rc = read_failure(p, env, &v, &cap);
    }
    if (rc < 0 || !env->nfailures)
        return rc;
    qsort(env->failure, env->nfailures, sizeof *env->failure,
          by_worker_and_time);
    for (size_t i = 1; i < env->nfailures; i++)
        if (env->failure[i - 1].worker == env->failure[i].worker &&
            env->failure[i].down < env->failure[i - 1].up)
            return ep_fields_fail(p, f->part.v.raw.ptr, EP_EDOM, f->name,
                                  "a worker goes down while it is down");
    return 0;
}

static int read_options(struct ep_fields *p, struct ep_env *env,
                        const struct ep_field *f)
{
    struct ep_field o[] = {
        {.name = "latency_seconds", .optional = true},
        {.name = "contention", .optional = true},
        {.name = "lps_seconds_per_update", .optional = true},
        {.name = "gps_seconds_per_update", .optional = true},
        {.name = "mean_seconds_to_failure", .optional = true},
        {.name = "mean_seconds_to_rejoin", .optional = true},
        {.name = "failures", .optional = true},
        {.name = "seed", .optional = true},
        {.name = "carry", .optional = true},
        {.name = "q4", .optional = true},
    };
    int rc;

    if (!f->have)
        return 0;
    rc = ep_fields_take(p, &f->part, f->name, o, COUNT(o));
    if (rc == 0)
        rc = ep_field_number(p, &o[0], EP_FROM_ZERO, 1e6, &env->latency);
    if (rc == 0)
        rc = ep_field_boolean(p, &o[1], &env->contention);
    if (rc == 0)
        rc = ep_field_number(p, &o[2], EP_FROM_ZERO, 1e6, &env->lps_time);
    if (rc == 0)
        rc = ep_field_number(p, &o[3], EP_FROM_ZERO, 1e6, &env->gps_time);
    if (rc == 0)
        rc = ep_field_number(p, &o[4], EP_FROM_ZERO, 1e12, &env->mttf);
    if (rc == 0)
        rc = ep_field_number(p, &o[5], EP_FROM_ZERO, 1e12, &env->rejoin);
    if (rc == 0)
        rc = read_failures(p, env, &o[6]);
    if (rc == 0)
        rc = ep_field_integer(p, &o[7], 0, INT64_MAX, &env->seed);
    if (rc == 0)
        rc = ep_field_boolean(p, &o[8], &env->carry);
    if (rc == 0)
        rc = ep_field_boolean(p, &o[9], &env->q4);
    if (rc == 0 && env->nfailures && env->mttf > 0)
        rc = ep_fields_fail(p, o[6].part.v.raw.ptr, EP_EDOM, "failures",
                            "given beside mean_seconds_to_failure");
    return rc;
}

/* ==== The whole ==== */

/* The scanner's "byte N: reason", as our own messages have it. */
static int refuse_syntax(const struct ep_fields *p, const struct ep_json *j,
                         int code)
{
    struct ep_error own;
    const char *reason;

    if (!p->err)
        return code;
    own = *p->err;
    reason = strstr(own.msg, ": ");
    (void)ep_error_set(p->err, code, "%s", reason ? reason + 2 : own.msg);
    return ep_fields_place(p, p->text + ep_json_offset(j), code);
}

static int read_gps_region(const struct ep_fields *p, struct ep_env *env,
                           const struct ep_field *f)
{
    if (f->part.v.kind != EP_JSON_STRING)
        return ep_fields_fail(p, f->part.v.raw.ptr, EP_EFORMAT, f->name,
                              "not a string");
    env->gps_region = find_region(env, f->part.v.raw);
    if (env->gps_region == env->nregions)
        return ep_fields_fail(p, f->part.v.raw.ptr, EP_EDOM, f->name,
                              "no such region");
    return 0;
}

static int read_all(struct ep_fields *p, struct ep_env *env,
                    const struct ep_part *part)
{
    struct ep_field f[] = {
        {.name = "regions"},     {.name = "bandwidth_gbit_per_s"},
        {.name = "gps_region"},  {.name = "step_seconds"},
        {.name = "parameters"},  {.name = "bytes_per_parameter"},
        {.name = "total_steps"}, {.name = "tokens_per_step"},
        {.name = "methods"},     {.name = "options", .optional = true},
    };
    int rc = ep_fields_take(p, part, "environment", f, COUNT(f));

    if (rc == 0)
        rc = read_regions(p, env, &f[0]);
    if (rc == 0)
        rc = read_matrix(p, env, &f[1]);
    if (rc == 0)
        rc = read_gps_region(p, env, &f[2]);
    if (rc == 0)
        rc = ep_field_number(p, &f[3], EP_ABOVE_ZERO, 1e6, &env->step);
    if (rc == 0)
        rc = ep_field_integer(p, &f[4], 1, 10000000000000, &env->parameters);
    if (rc == 0)
        rc = ep_field_integer(p, &f[5], 1, 16, &env->bytes_per_parameter);
    if (rc == 0)
        rc = ep_field_integer(p, &f[6], 1, 1000000000000, &env->total_steps);
    if (rc == 0)
        rc = ep_field_integer(p, &f[7], 0, 1000000000, &env->tokens_per_step);
    if (rc == 0)
        rc = read_methods(p, env, &f[8]);
    if (rc == 0)
        rc = read_options(p, env, &f[9]);
    return rc;
}

int ep_env_parse(struct ep_env *env, const char *text, size_t len,
                 struct ep_error *err)
{
    struct ep_fields p = {.text = text, .err = err};
    struct ep_part root = {.whole = {text, len}};
    struct ep_json j;
    int rc = ep_json_begin(&j, text, len, &root.v, err);

    *env = (struct ep_env){.seed = 1, .max_events = EP_ENV_EVENTS};
    if (rc == 0)
        rc = ep_part_whole(&j, &root);
    if (rc == 0)
        rc = ep_json_end(&j); /* checks all of the syntax */
    rc = rc < 0 ? refuse_syntax(&p, &j, rc) : read_all(&p, env, &root);
    if (rc < 0)
        ep_env_free(env);
    return rc;
}

void ep_env_free(struct ep_env *env)
{
    for (size_t r = 0; r < env->nregions; r++)
        free(env->region[r].name);
    free(env->region);
    free(env->speed);
    free(env->region_of);
    free(env->gbit_s);
    free(env->failure);
    *env = (struct ep_env){.nregions = 0};
}

void ep_env_scale_links(struct ep_env *env, double factor)
{
    for (size_t i = 0; i < env->nregions * env->nregions; i++)
        if (i % (env->nregions + 1))
            env->gbit_s[i] *= factor;
}
