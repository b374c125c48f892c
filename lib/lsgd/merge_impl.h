/* SPDX-License-Identifier: Apache-2.0 */
/*
 * merge_impl.h - what the files merge*.c share; for them only.
 *
 *     merge.c         the plan's life; metadata of what is written
 *     merge_plan.c    tensors of the inputs against those of the base
 *     merge_state.c   the optimiser's state, in and out
 *     merge_arith.c   float and double behind one table; fused kernels
 *     merge_kernel.c  one block, and the chunk that it belongs to
 *     merge_run.c     threads, norms, writers
 */
#ifndef EP_LSGD_MERGE_IMPL_H
#define EP_LSGD_MERGE_IMPL_H

#include "ckpt/st_write.h"
#include "lsgd/merge.h"

/* Index of a tensor that a file lacks. */
#define MERGE_NONE UINT32_MAX

struct merge_chunk;

/* ==== The plan ==== */

/* An input, or a part of the state. */
struct merge_source {
    const struct ep_ckpt *ckpt; /* NULL: there is none */
    /* [tensors of the base] its index in ckpt; NULL: the same index */
    uint32_t *index;
};

/* The tensor that answers to tensor i of the base, or NULL. */
const struct ep_tensor *ep_merge_find(const struct merge_source *s, size_t i);
/* The file it is in; only if there is one. */
const char *ep_merge_file(const struct merge_source *s, size_t i);

/* Metadata that is ours. */
struct merge_meta {
    struct ep_st_meta *entry;
    size_t n, cap;
    char **owned; /* the strings behind the entries that are */
    size_t nowned, owned_cap;
};
void ep_merge_meta_keep(struct merge_meta *m, struct ep_st_meta entry);
void ep_merge_meta_set(struct merge_meta *m, const char *key, const char *fmt,
                       ...) EP_PRINTF(3, 4);
/* A copy that lives as long as m. */
struct ep_span ep_merge_meta_own(struct merge_meta *m, struct ep_buf *b);

/* What will be written of one file: the arrays of a struct ep_st_plan. */
struct merge_target {
    struct ep_tensor *tensor;
    size_t n;
    struct merge_meta meta;
};

struct ep_merge {
    struct ep_merge_config config;
    const struct ep_ckpt *base;
    size_t n;                     /* its tensors */
    struct merge_source *source;  /* [nin] */
    struct ep_merge_input *input; /* [nin] */
    size_t nin;
    bool models; /* MEAN, MIX: all inputs are models, average them */

    /* the optimiser; step [nsteps] */
    const struct ep_ckpt *state;
    struct merge_source momentum, buffer;
    struct ep_outer_step *step;
    bool use_m, use_d;
    uint64_t step_from, step_to;
    size_t extra; /* tensors of inputs and state that are left out */

    /* tensor i of the base is tensor i of model; its momentum and buffer are
       tensors m_out[i] and d_out[i] of keep (MERGE_NONE: none) */
    struct merge_target model, keep;
    uint32_t *m_out, *d_out;
};

/* Is tensor i of the base computed in double? Only for a real one. */
bool ep_merge_is_double(const struct ep_merge *m, size_t i);

/*
 * Metadata "key" of c as a whole number from 0 to 2^53 - 1, or -1: it has none,
 * or (with *bad set) it is something else.
 */
int64_t ep_merge_meta_number(const struct ep_ckpt *c, const char *key,
                             bool *bad);

/* "cannot merge FILE: reason" */
void ep_merge_line(struct ep_merge_lines *l, const char *file, const char *fmt,
                   ...) EP_PRINTF(3, 4);
/* "cannot merge FILE: tensor \"NAME\": reason" */
void ep_merge_line_tensor(struct ep_merge_lines *l, const char *file,
                          struct ep_span name, const char *fmt, ...)
    EP_PRINTF(4, 5);

/*
 * Make *err, why chunk c failed, say what it is about: OUT, if it is about the
 * result; and of a number that was finite in its file, but not as the float
 * that it is computed in, what it was.
 */
void ep_merge_explain(const struct ep_merge *m, const struct ep_merge_how *how,
                      const struct merge_chunk *c, struct ep_error *err);

/* Steps of the plan, in this order; what is wrong goes to l. */
void ep_merge_plan_inputs(struct ep_merge *m, struct ep_merge_lines *l);
void ep_merge_plan_state(struct ep_merge *m, struct ep_merge_lines *l);
void ep_merge_plan_keep(struct ep_merge *m); /* the state to be written */

/*
 * What a state was made with: NaN, or n = 0, where it does not say. EP_EFORMAT
 * "cannot read FILE: its evenpace.KEY \"VALUE\" is not a number".
 */
int ep_merge_state_settings(const struct ep_ckpt *state, struct ep_outer *o,
                            struct ep_error *err) EP_MUST_USE;

/* ==== The arithmetic ==== */

/*
 * Functions of convert.h and outer.h for one type, and a few of our own; all
 * vectors are of this type unless it says otherwise.
 */
struct merge_arith {
    enum ep_dtype dtype;
    size_t size;
    void (*decode)(enum ep_dtype t, const void *src, void *dst, size_t n);
    void (*encode)(enum ep_dtype t, const void *src, void *dst, size_t n);
    void (*sub)(void *y, const void *a, const void *b, size_t n);
    void (*mix)(void *y, const void *x, double alpha, size_t n);
    void (*axpy)(void *y, const void *x, double w, size_t n);
    double (*sumsq)(const void *v, size_t n);
    size_t (*first_nonfinite)(const void *v, size_t n);
    /* at most MERGE_STEPS of them */
    void (*apply)(void *theta, void *m, void *d, const void *const *g,
                  const struct ep_outer_step *step, size_t nsteps, size_t n);
    /* acc = w x, or acc + w x; acc is double */
    void (*weigh)(double *acc, const void *x, double w, bool first, size_t n);
    /* y = acc / total */
    void (*mean)(void *y, const double *acc, double total, size_t n);
    /* Index of the first NaN, or value that type t cannot hold and that does
       not saturate; n if there is none. */
    size_t (*first_beyond)(const void *v, enum ep_dtype t, size_t n);
    /* How many become the largest of F8_E4M3 by saturation. */
    size_t (*saturated)(const void *v, size_t n);
};

enum { MERGE_STEPS = 8 };

extern const struct merge_arith ep_merge_float, ep_merge_double;

/* ==== Fused kernels ==== */

/* Of two models theta and x of one type, to that type. */
enum merge_pair {
    MERGE_PAIR_COPY, /* x */
    MERGE_PAIR_MIX,  /* theta + a (x - theta), 0 <= a <= 1 */
    MERGE_PAIR_STEP, /* theta - a (theta - x) */
};

/* For them; no alignment is needed. */
struct merge_models {
    enum ep_dtype dtype;
    const void *theta, *x; /* [n] */
    void *out;             /* [n] */
    double a;
    size_t n;
};

/* One input of a weighted mean. */
struct merge_weigh {
    const void *x;      /* [n] of a file */
    const float *theta; /* [n] */
    double *acc;        /* [n] weight x is added, or weight (theta - x) */
    double weight;
    bool of_g;
    bool first; /* acc is set instead */
    size_t n;
};

enum { MERGE_FUSED_STEP = 32 }; /* n is a multiple of it */

/*
 * What the functions of struct merge_arith do one after the other, with the
 * same bits, for types BF16, F32 and, if f16, F16. sumsq is that of theta - x.
 * NaNs and infinities: diff and weigh return a sum that is not finite; pair
 * returns false, then or if a result does not fit the type, with nothing that
 * could be used in out and *sumsq.
 */
struct merge_fused {
    bool f16;
    bool (*pair)(enum merge_pair op, const struct merge_models *two,
                 double *sumsq);
    /* g = theta - x; returns its sumsq */
    double (*diff)(enum ep_dtype t, const float *theta, const void *x, float *g,
                   size_t n);
    double (*weigh)(enum ep_dtype t, const struct merge_weigh *w);
    /* y = acc by, or acc / by, rounded */
    void (*mean)(float *y, const double *acc, double by, bool divide, size_t n);
    /* Has one of v, without its sign, bits above limit? */
    bool (*above)(const float *v, int32_t limit, size_t n);
};

/* Those of the level of base/simd.h; NULL if type t has none. */
const struct merge_fused *ep_merge_fused(enum ep_dtype t);

/* ==== The run ==== */

enum {
    MERGE_BLOCK = 1024,        /* elements */
    MERGE_CHUNK = 64 * 1024,   /* elements of a real tensor */
    MERGE_CARRY = 1024 * 1024, /* bytes of a carried one */
};

/* One worker's memory. */
struct merge_scratch {
    void *memory;
    void *theta, *x, *y, *zero;         /* [MERGE_BLOCK] */
    void *m, *d;                        /* the block's part of m_out, d_out */
    void *g[MERGE_STEPS];               /* [MERGE_BLOCK] each */
    double *acc;                        /* [MERGE_BLOCK] */
    unsigned char *out, *m_out, *d_out; /* [MERGE_CHUNK] elements */
    struct merge_part *part;            /* [nin] */
    size_t nparts;
    double total;  /* of their weights */
    double *sumsq; /* [nin] of this chunk */
    bool *differs; /* [nin] a carried tensor is another one there */
    uint64_t saturated;
};

/* An input that counts for the tensor at hand. */
struct merge_part {
    size_t input;
    const struct ep_tensor *tensor;
    double weight;
};

/* A part of a tensor: elements of a real one, bytes of a carried one. */
struct merge_chunk {
    size_t tensor;
    uint64_t at;
    size_t n;
};

void ep_merge_scratch_init(struct merge_scratch *s, const struct ep_merge *m);
void ep_merge_scratch_free(struct merge_scratch *s);

/* The inputs that count for tensor i, into s->part. */
void ep_merge_gather(struct merge_scratch *s, const struct ep_merge *m,
                     size_t i);

/*
 * One chunk of a real tensor: s->out, m_out and d_out hold its bytes, s->sumsq
 * what it adds to the norms. EP_EDOM as ep_merge_run.
 */
int ep_merge_chunk_real(struct merge_scratch *s, const struct ep_merge *m,
                        const struct merge_chunk *c, struct ep_error *err);

/* One chunk of a carried tensor: only compares; fills s->differs. */
void ep_merge_chunk_carried(struct merge_scratch *s, const struct ep_merge *m,
                            const struct merge_chunk *c);

#endif
