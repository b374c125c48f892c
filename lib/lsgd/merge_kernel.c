/* SPDX-License-Identifier: Apache-2.0 */
/*
 * merge_kernel.c - a chunk of a tensor, block by block: decode, apply the
 * method, check, encode. A block's vectors stay in the first-level cache, the
 * chunk's output in the second; every byte of the files is touched once.
 *
 * Whether an input is finite is seen from the sum of squares of its
 * pseudo-gradient, which is needed for the norm anyway; only if that is not
 * finite is the culprit looked for.
 */
#include "config.h"

#include "base/mem.h"
#include "lsgd/merge_impl.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ==== Scratch ==== */

enum { ALIGN = 64, VECTORS = 7 + MERGE_STEPS };

static void *take(unsigned char **at, size_t n)
{
    void *p = *at;

    *at += (n + ALIGN - 1) / ALIGN * ALIGN;
    return p;
}

void ep_merge_scratch_init(struct merge_scratch *s, const struct ep_merge *m)
{
    const size_t block = MERGE_BLOCK * sizeof(double);
    const size_t out = MERGE_CHUNK * sizeof(double);
    size_t bytes = VECTORS * block + out * (1 + m->use_m + m->use_d) + ALIGN;
    unsigned char *at;

    memset(s, 0, sizeof *s);
    s->memory = ep_calloc(bytes, 1); /* what is not used costs no memory */
    at = s->memory;
    at += -(uintptr_t)at % ALIGN;
    s->theta = take(&at, block);
    s->x = take(&at, block);
    s->y = take(&at, block);
    s->zero = take(&at, block);
    s->m = take(&at, block);
    s->d = take(&at, block);
    s->acc = take(&at, block);
    for (size_t k = 0; k < MERGE_STEPS; k++)
        s->g[k] = take(&at, block);
    s->out = take(&at, out);
    s->m_out = m->use_m ? take(&at, out) : NULL;
    s->d_out = m->use_d ? take(&at, out) : NULL;
    s->part = ep_calloc(m->nin, sizeof *s->part);
    s->sumsq = ep_calloc(m->nin, sizeof *s->sumsq);
    s->differs = ep_calloc(m->nin, sizeof *s->differs);
}

void ep_merge_scratch_free(struct merge_scratch *s)
{
    free(s->memory);
    free(s->part);
    free(s->sumsq);
    free(s->differs);
}

void ep_merge_gather(struct merge_scratch *s, const struct ep_merge *m,
                     size_t i)
{
    s->nparts = 0;
    s->total = 0;
    for (size_t k = 0; k < m->nin; k++) {
        const struct ep_tensor *t = ep_merge_find(&m->source[k], i);

        if (!t)
            continue;
        s->part[s->nparts++] = (struct merge_part){k, t, m->input[k].weight};
        s->total += m->input[k].weight;
    }
    if (s->total == 0)
        s->nparts = 0;
}

/* ==== One block ==== */

struct block {
    const struct ep_merge *m;
    struct merge_scratch *s;
    const struct merge_arith *a;
    size_t tensor;
    const struct ep_tensor *base, *momentum, *buffer; /* NULL: none in */
    enum ep_dtype to;
    uint64_t at; /* first element, in the tensor */
    size_t n;
};

static const void *bytes_at(const struct ep_tensor *t, uint64_t at)
{
    return (const unsigned char *)t->data + at * (ep_dtype_bits(t->dtype) / 8);
}

/* The block of t; in the file itself if it can be used as it is there. */
static const void *view(const struct block *b, const struct ep_tensor *t,
                        void *room)
{
    const void *p = bytes_at(t, b->at);

    if (t->dtype == b->a->dtype && (uintptr_t)p % b->a->size == 0)
        return p;
    b->a->decode(t->dtype, p, room, b->n);
    return room;
}

/* The block of t into room, zeros if there is no t. */
static void load(const struct block *b, const struct ep_tensor *t, void *room)
{
    if (t)
        b->a->decode(t->dtype, bytes_at(t, b->at), room, b->n);
    else
        memset(room, 0, b->n * b->a->size);
}

/* Index in the tensor of element i of the block, to be printed. */
static unsigned long long element(const struct block *b, size_t i)
{
    uint64_t at = b->at + i;

    return at;
}

static double value_at(const struct block *b, const void *v, size_t i)
{
    return b->a->size == sizeof(double) ? ((const double *)v)[i]
                                        : (double)((const float *)v)[i];
}

/* ==== What is not finite ==== */

/* "cannot merge FILE: tensor "NAME", element I: it is nan" */
static int complain(const struct block *b, const char *file,
                    const struct ep_tensor *t, size_t i, double v,
                    struct ep_error *err)
{
    char path[96], name[96];

    return ep_error_set(
        err, EP_EDOM, "cannot merge %s: tensor \"%s\", element %llu: it is %g",
        ep_escape(path, sizeof path, file, strlen(file)),
        ep_escape(name, sizeof name, t->name.ptr, t->name.len), element(b, i),
        v);
}

/* Refuse v, the block of a file's tensor, if it is not finite. */
static int demand_finite(const struct block *b, const char *file,
                         const struct ep_tensor *t, const void *v,
                         struct ep_error *err)
{
    size_t i = b->a->first_nonfinite(v, b->n);

    if (i == b->n)
        return 0;
    return complain(b, file, t, i, value_at(b, v, i), err);
}

/* The base as it is in the file: theta has changed, perhaps. */
static int demand_base(const struct block *b, struct ep_error *err)
{
    load(b, b->base, b->s->x);
    return demand_finite(b, ep_ckpt_file(b->m->base, b->tensor), b->base,
                         b->s->x, err);
}

static int demand_state(const struct block *b, const struct merge_source *s,
                        struct ep_error *err)
{
    const struct ep_tensor *t = ep_merge_find(s, b->tensor);

    if (!t)
        return 0;
    load(b, t, b->s->x);
    return demand_finite(b, ep_merge_file(s, b->tensor), t, b->s->x, err);
}

/* Element i of the result (or of what belongs to it) is not finite: why? */
static int blame(const struct block *b, const char *what, double v,
                 const char *type, size_t i, struct ep_error *err)
{
    char name[96];

    if (demand_base(b, err) < 0 || demand_state(b, &b->m->momentum, err) < 0 ||
        demand_state(b, &b->m->buffer, err) < 0)
        return EP_EDOM;
    (void)ep_escape(name, sizeof name, b->base->name.ptr, b->base->name.len);
    if (isfinite(v))
        return ep_error_set(err, EP_EDOM,
                            "cannot write tensor \"%s\", element %llu: %s %g "
                            "is too large for %s",
                            name, element(b, i), what, v, type);
    return ep_error_set(err, EP_EDOM,
                        "cannot write tensor \"%s\", element %llu: %s is %g",
                        name, element(b, i), what, v);
}

static int check_result(const struct block *b, const void *y,
                        struct ep_error *err)
{
    const struct merge_arith *a = b->a;
    size_t i;

    if (b->m->config.allow_nonfinite)
        return 0;
    i = a->first_beyond(y, b->to, b->n);
    if (i < b->n)
        return blame(b, "the result", value_at(b, y, i), ep_dtype_name(b->to),
                     i, err);
    if (b->m->use_m && (i = a->first_nonfinite(b->s->m, b->n)) < b->n)
        return blame(b, "its momentum", value_at(b, b->s->m, i), "", i, err);
    if (b->m->use_d && (i = a->first_nonfinite(b->s->d, b->n)) < b->n)
        return blame(b, "its buffer", value_at(b, b->s->d, i), "", i, err);
    return 0;
}

/* ==== The methods ==== */

/*
 * The block of an input and its pseudo-gradient: *x, *g; both may be the same
 * memory, or the file. room is for g, s->x is overwritten. Adds to the norm.
 */
static int read_part(const struct block *b, const struct merge_part *p,
                     void *room, const void **x, const void **g,
                     struct ep_error *err)
{
    struct merge_scratch *s = b->s;
    enum ep_merge_kind kind = b->m->input[p->input].kind;
    double sumsq;
    int rc;

    *x = view(b, p->tensor, kind == EP_MERGE_START_END ? room : s->x);
    *g = kind == EP_MERGE_START_END ? *x : room;
    if (kind == EP_MERGE_MODEL)
        b->a->sub(room, s->theta, *x, b->n);
    else if (kind == EP_MERGE_END_START)
        b->a->sub(room, s->zero, *x, b->n);
    sumsq = b->a->sumsq(*g, b->n);
    s->sumsq[p->input] += sumsq;
    if (isfinite(sumsq) || b->m->config.allow_nonfinite)
        return 0;
    rc = demand_finite(b, ep_merge_file(&b->m->source[p->input], b->tensor),
                       p->tensor, *x, err);
    if (rc == 0 && kind == EP_MERGE_MODEL)
        rc = demand_finite(b, ep_ckpt_file(b->m->base, b->tensor), b->base,
                           s->theta, err);
    return rc;
}

/* The weighted mean of the inputs, or of their pseudo-gradients, in *v. */
static int mean(const struct block *b, const void **v, struct ep_error *err)
{
    struct merge_scratch *s = b->s;
    const void *x = NULL, *g = NULL;
    int rc;

    for (size_t k = 0; k < s->nparts; k++) {
        rc = read_part(b, &s->part[k], s->g[0], &x, &g, err);
        if (rc < 0)
            return rc;
        if (s->nparts > 1)
            b->a->weigh(s->acc, b->m->models ? x : g, s->part[k].weight, k == 0,
                        b->n);
    }
    *v = b->m->models ? x : g;
    if (s->nparts > 1) {
        b->a->mean(s->y, s->acc, s->total, b->n);
        *v = s->y;
    }
    return 0;
}

/* A method that takes the inputs as one. */
static int one_step(const struct block *b, const void **y, struct ep_error *err)
{
    struct merge_scratch *s = b->s;
    const struct ep_merge_config *c = &b->m->config;
    const void *v = NULL;
    int rc = mean(b, &v, err);

    if (rc < 0)
        return rc;
    *y = s->theta;
    switch (c->method) {
    case EP_MERGE_MEAN:
        if (b->m->models) {
            *y = v;
        } else {
            b->a->sub(s->x, s->theta, v, b->n);
            *y = s->x;
        }
        break;
    case EP_MERGE_MIX:
        if (b->m->models)
            b->a->mix(s->theta, v, c->alpha, b->n);
        else
            b->a->axpy(s->theta, v, -c->alpha, b->n);
        break;
    case EP_MERGE_DELTA:
        *y = v;
        break;
    default:
        b->a->apply(s->theta, b->m->use_m ? s->m : NULL, NULL, &v, b->m->step,
                    1, b->n);
    }
    return 0;
}

/* A step for each input, a few at a time. */
static int many_steps(const struct block *b, struct ep_error *err)
{
    struct merge_scratch *s = b->s;
    struct ep_outer_step step[MERGE_STEPS];
    const void *g[MERGE_STEPS], *x;
    size_t have = 0;

    /* y moves; theta stays, since models differ from the base as it was */
    memcpy(s->y, s->theta, b->n * b->a->size);
    for (size_t k = 0; k < s->nparts; k++) {
        int rc = read_part(b, &s->part[k], s->g[have], &x, &g[have], err);

        if (rc < 0)
            return rc;
        step[have++] = b->m->step[s->part[k].input];
        if (have < MERGE_STEPS && k + 1 < s->nparts)
            continue;
        b->a->apply(s->y, b->m->use_m ? s->m : NULL, b->m->use_d ? s->d : NULL,
                    g, step, have, b->n);
        have = 0;
    }
    return 0;
}

static int run_block(const struct block *b, size_t done, struct ep_error *err)
{
    struct merge_scratch *s = b->s;
    const struct merge_arith *a = b->a;
    const void *y = s->theta;
    int rc = 0;

    load(b, b->base, s->theta);
    if (b->m->use_m)
        load(b, b->momentum, s->m);
    if (b->m->use_d)
        load(b, b->buffer, s->d);
    if (s->nparts && b->m->config.method == EP_MERGE_DELAYED) {
        rc = many_steps(b, err);
        y = s->y;
    } else if (s->nparts) {
        rc = one_step(b, &y, err);
    } else if (b->m->config.method == EP_MERGE_DELTA) {
        y = s->zero;
    }
    if (rc == 0)
        rc = check_result(b, y, err);
    if (rc < 0)
        return rc;
    if (b->to == EP_DT_F8_E4M3)
        s->saturated += a->saturated(y, b->n);
    a->encode(b->to, y, s->out + done * (ep_dtype_bits(b->to) / 8), b->n);
    if (b->m->use_m && b->m->config.keep_state)
        memcpy(s->m_out + done * a->size, s->m, b->n * a->size);
    if (b->m->use_d && b->m->config.keep_state)
        memcpy(s->d_out + done * a->size, s->d, b->n * a->size);
    return 0;
}

/* ==== A chunk ==== */

int ep_merge_chunk_real(struct merge_scratch *s, const struct ep_merge *m,
                        const struct merge_chunk *c, struct ep_error *err)
{
    struct block b = {
        .m = m,
        .s = s,
        .a = ep_merge_is_double(m, c->tensor) ? &ep_merge_double
                                              : &ep_merge_float,
        .tensor = c->tensor,
        .base = ep_ckpt_tensor(m->base, c->tensor),
        .momentum = ep_merge_find(&m->momentum, c->tensor),
        .buffer = ep_merge_find(&m->buffer, c->tensor),
        .to = m->model.tensor[c->tensor].dtype,
    };

    ep_merge_gather(s, m, c->tensor);
    memset(s->sumsq, 0, m->nin * sizeof *s->sumsq);
    for (size_t done = 0; done < c->n; done += b.n) {
        int rc;

        b.at = c->at + done;
        b.n = c->n - done < MERGE_BLOCK ? c->n - done : MERGE_BLOCK;
        rc = run_block(&b, done, err);
        if (rc < 0)
            return rc;
    }
    return 0;
}

void ep_merge_chunk_carried(struct merge_scratch *s, const struct ep_merge *m,
                            const struct merge_chunk *c)
{
    const struct ep_tensor *base = ep_ckpt_tensor(m->base, c->tensor);
    const unsigned char *a = base->data;

    for (size_t k = 0; k < m->nin; k++) {
        const struct ep_tensor *t = ep_merge_find(&m->source[k], c->tensor);
        const unsigned char *b = t ? t->data : NULL;

        s->differs[k] = b && memcmp(a + c->at, b + c->at, c->n) != 0;
    }
}
