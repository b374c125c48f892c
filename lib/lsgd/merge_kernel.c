/* SPDX-License-Identifier: Apache-2.0 */
/*
 * merge_kernel.c - a chunk of a tensor, block by block: decode, apply the
 * method, check, encode. A block's vectors stay in the first-level cache, the
 * chunk's output in the second; every byte of the files is touched once.
 *
 * What is merged most, models of one type, takes fused kernels: struct
 * merge_fused. They give the same bits as the generic way, which does the
 * rest, and all blocks in which something is not finite. A merge of two BF16
 * models moved 5 GB/s without them and moves 19 (AVX-512, a Xeon of model 207;
 * memcpy 20; tests/bench/bench_merge).
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

enum { ALIGN = 64, LINE = 64, VECTORS = 5 + MERGE_STEPS };

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
    bool pair; /* all of it is one fused kernel, */
    enum merge_pair op;
    double factor; /* this one, with this factor */
    uint64_t at;   /* first element, in the tensor */
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

/*
 * The block of t into room, zeros if there is no t. Asks for the next one: the
 * hardware forgets a file while blocks of the others are read.
 */
static void load(const struct block *b, const struct ep_tensor *t, void *room)
{
    if (t) {
        const char *p = bytes_at(t, b->at);
        size_t bytes = b->n * (ep_dtype_bits(t->dtype) / 8);

        for (size_t i = 0; i < bytes; i += LINE)
            __builtin_prefetch(p + bytes + i);
        b->a->decode(t->dtype, p, room, b->n);
    } else {
        memset(room, 0, b->n * b->a->size);
    }
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

/* Is the difference of the input to theta one fused kernel, and which? */
static const struct merge_fused *fused(const struct block *b,
                                       const struct merge_part *p)
{
    if (b->a != &ep_merge_float || b->n % MERGE_FUSED_STEP ||
        b->m->input[p->input].kind != EP_MERGE_MODEL)
        return NULL;
    return ep_merge_fused(p->tensor->dtype);
}

/* Add to the norm of an input; refuse it if it is not finite. */
static int count(const struct block *b, const struct merge_part *p,
                 double sumsq, struct ep_error *err)
{
    struct merge_scratch *s = b->s;
    const void *x;
    int rc;

    s->sumsq[p->input] += sumsq;
    if (isfinite(sumsq) || b->m->config.allow_nonfinite)
        return 0;
    x = view(b, p->tensor, s->x);
    rc = demand_finite(b, ep_merge_file(&b->m->source[p->input], b->tensor),
                       p->tensor, x, err);
    if (rc == 0 && b->m->input[p->input].kind == EP_MERGE_MODEL)
        rc = demand_finite(b, ep_ckpt_file(b->m->base, b->tensor), b->base,
                           s->theta, err);
    return rc;
}

/*
 * The block of an input and its pseudo-gradient: *x (NULL: not wanted), *g;
 * both may be the same memory, or the file. room is for g, s->x is
 * overwritten. Adds to the norm.
 */
static int read_part(const struct block *b, const struct merge_part *p,
                     void *room, const void **x, const void **g,
                     struct ep_error *err)
{
    struct merge_scratch *s = b->s;
    enum ep_merge_kind kind = b->m->input[p->input].kind;
    const struct merge_fused *f = x ? NULL : fused(b, p);
    const void *in;

    if (f) {
        *g = room;
        return count(b, p,
                     f->diff(p->tensor->dtype, s->theta,
                             bytes_at(p->tensor, b->at), room, b->n),
                     err);
    }
    in = view(b, p->tensor, kind == EP_MERGE_START_END ? room : s->x);
    *g = kind == EP_MERGE_START_END ? in : room;
    if (kind == EP_MERGE_MODEL)
        b->a->sub(room, s->theta, in, b->n);
    else if (kind == EP_MERGE_END_START)
        b->a->sub(room, s->zero, in, b->n);
    if (x)
        *x = in;
    return count(b, p, b->a->sumsq(*g, b->n), err);
}

/* Add an input to the mean of several, s->acc. */
static int weigh_part(const struct block *b, size_t k, struct ep_error *err)
{
    struct merge_scratch *s = b->s;
    const struct merge_part *p = &s->part[k];
    const struct merge_fused *f = fused(b, p);
    const void *x, *g;
    int rc;

    if (f) {
        struct merge_weigh w = {.x = bytes_at(p->tensor, b->at),
                                .theta = s->theta,
                                .acc = s->acc,
                                .weight = p->weight,
                                .of_g = !b->m->models,
                                .first = k == 0,
                                .n = b->n};

        return count(b, p, f->weigh(p->tensor->dtype, &w), err);
    }
    rc = read_part(b, p, s->g[0], &x, &g, err);
    if (rc == 0)
        b->a->weigh(s->acc, b->m->models ? x : g, p->weight, k == 0, b->n);
    return rc;
}

/* The weighted mean of the inputs, or of their pseudo-gradients, in *v. */
static int mean(const struct block *b, const void **v, struct ep_error *err)
{
    struct merge_scratch *s = b->s;
    const void *g;
    int rc;

    if (s->nparts == 1) {
        *v = s->x;
        if (b->m->models)
            return read_part(b, &s->part[0], s->g[0], v, &g, err);
        return read_part(b, &s->part[0], s->g[0], NULL, v, err);
    }
    for (size_t k = 0; k < s->nparts; k++) {
        rc = weigh_part(b, k, err);
        if (rc < 0)
            return rc;
    }
    b->a->mean(s->y, s->acc, s->total, b->n);
    *v = s->y;
    return 0;
}

/* A method that takes the inputs as one. */
static int one_step(const struct block *b, const void **y, struct ep_error *err)
{
    struct merge_scratch *s = b->s;
    const struct ep_merge_config *c = &b->m->config;
    const void *v = s->y;
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
    const void *g[MERGE_STEPS];
    size_t have = 0;

    /* y moves; theta stays, since models differ from the base as it was */
    memcpy(s->y, s->theta, b->n * b->a->size);
    for (size_t k = 0; k < s->nparts; k++) {
        int rc = read_part(b, &s->part[k], s->g[have], NULL, &g[have], err);

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

/* The whole block in one pass; false: nothing is done, take another way. */
static bool run_pair(const struct block *b, size_t done)
{
    struct merge_scratch *s = b->s;
    const struct merge_part *p = &s->part[0];
    const struct merge_fused *f = b->pair ? fused(b, p) : NULL;
    struct merge_models two = {.dtype = b->to, .a = b->factor, .n = b->n};
    double sumsq;

    if (!f)
        return false;
    two.theta = bytes_at(b->base, b->at);
    two.x = bytes_at(p->tensor, b->at);
    two.out = s->out + done * (ep_dtype_bits(b->to) / 8);
    if (!f->pair(b->op, &two, &sumsq))
        return false;
    s->sumsq[p->input] += sumsq;
    return true;
}

static int run_block(const struct block *b, size_t done, struct ep_error *err)
{
    struct merge_scratch *s = b->s;
    const struct merge_arith *a = b->a;
    const void *y = s->theta;
    int rc = 0;

    if (run_pair(b, done))
        return 0;
    load(b, b->base, s->theta);
    if (b->m->use_m) {
        s->m = s->m_out + done * a->size;
        load(b, b->momentum, s->m);
    }
    if (b->m->use_d) {
        s->d = s->d_out + done * a->size;
        load(b, b->buffer, s->d);
    }
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
    return 0;
}

/* ==== A chunk ==== */

/* Is it a merge of two models of one type that struct merge_fused has? */
static void choose_pair(struct block *b)
{
    const struct ep_merge_config *c = &b->m->config;
    const struct merge_scratch *s = b->s;

    b->pair = s->nparts == 1 && b->base->dtype == b->to &&
              s->part[0].tensor->dtype == b->to;
    b->op = MERGE_PAIR_COPY;
    if (c->method != EP_MERGE_SGD && !b->m->models)
        b->pair = false; /* another input is a delta */
    if (c->method == EP_MERGE_MIX) {
        b->op = MERGE_PAIR_MIX;
        b->factor = c->alpha;
    } else if (c->method == EP_MERGE_SGD) {
        b->op = MERGE_PAIR_STEP;
        b->factor = b->m->step[0].lr;
    } else if (c->method != EP_MERGE_MEAN) {
        b->pair = false;
    }
}

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
    choose_pair(&b);
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
