/* SPDX-License-Identifier: Apache-2.0 */
/*
 * merge.h - merge checkpoints once: the engine of lsgd-merge.
 *
 * Two steps. The plan matches the tensors of the inputs and of the optimiser's
 * state with those of the base, and lists all differences. The run goes over
 * memory once, in chunks that fit the second-level cache, on threads: blocks
 * of base and inputs are decoded to float or double, the method is applied,
 * the result is encoded and written in its place. Memory of the process does
 * not grow with the model: scratch is per thread (at most
 * EP_MERGE_THREAD_BYTES), the files are mapped.
 *
 * With theta the base, x_i a model, g_i = theta - x_i its pseudo-gradient (a
 * delta file holds g_i, sign "start-end", or -g_i, sign "end-start"), w_i >= 0
 * the weights and mean(v) = sum_i w_i v_i / sum_i w_i:
 *
 *     MEAN      out = mean(x), or theta - mean(g) if an input is a delta
 *     MIX       out = theta + alpha (mean(x) - theta), or theta - alpha mean(g)
 *     SGD       out = theta - lr mean(g)
 *     NESTEROV  one step of outer.h, N = 1, c = 0, on mean(g): DiLoCo's
 *     DELAYED   one step of outer.h for each input, in the order of the inputs
 *     DELTA     out = mean(g)
 *
 * MEAN with the work of each worker as weight is FedAvg (McMahan et al.,
 * "Communication-efficient learning of deep networks from decentralized data",
 * arXiv 1602.05629, algorithm 1).
 *
 * Arithmetic is in float, or in double for a tensor of which the base, an input
 * or the result is F64 (or as asked for), never in the type of the files. A mean of
 * two or more is summed in double, in the order of the inputs, divided by the
 * sum of the weights, and rounded once; that of one input is that input. The
 * result is rounded to the output's type once. Neither it nor the norms depend
 * on the number of threads.
 *
 * Tensors that cannot be computed with (ep_dtype_is_real) are the base's.
 */
#ifndef EP_LSGD_MERGE_H
#define EP_LSGD_MERGE_H

#include "base/buf.h"
#include "base/err.h"
#include "ckpt/ckpt.h"
#include "lsgd/outer.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum ep_merge_method {
    EP_MERGE_MEAN,
    EP_MERGE_MIX,
    EP_MERGE_SGD,
    EP_MERGE_NESTEROV,
    EP_MERGE_DELAYED,
    EP_MERGE_DELTA,
};
/* In the order above, as an option of choices has them. */
#define EP_MERGE_METHODS "mean|mix|sgd|nesterov|delayed-nesterov|delta"

/* What an input holds. */
enum ep_merge_kind {
    EP_MERGE_MODEL,
    EP_MERGE_START_END, /* a delta: start minus end, g */
    EP_MERGE_END_START, /* a delta: end minus start, -g */
};

enum ep_merge_compute {
    EP_MERGE_AUTO,
    EP_MERGE_F32,
    EP_MERGE_F64,
};

/* Largest scratch of one thread; with 300 inputs a few KiB more. */
#define EP_MERGE_THREAD_BYTES ((size_t)2 << 20)

struct ep_merge_config {
    enum ep_merge_method method;
    double alpha;          /* MIX: weight of the inputs, in [0, 1] */
    struct ep_outer outer; /* SGD: lr; NESTEROV: lr, beta; DELAYED: all */
    const double *weights; /* [nweights], finite, >= 0, not all 0; NULL: 1
                              each. Not with DELAYED. Copied. */
    size_t nweights;       /* must be the number of inputs */
    bool by_tokens;        /* weight = evenpace.tokens of each input */
    /* EP_MERGE_MODEL: inputs say themselves what they are (metadata); else
       all are deltas of this sign */
    enum ep_merge_kind declared;
    int dtype; /* enum ep_dtype of real tensors, or -1: as in the base */
    enum ep_merge_compute compute;
    bool allow_missing, allow_nonfinite;
    bool keep_state;      /* the state will be written too */
    uint64_t shard_bytes; /* struct ep_st_plan */
};

/* The files; opened by the caller, borrowed until ep_merge_free. */
struct ep_merge_files {
    const struct ep_ckpt *base;
    const struct ep_ckpt *const *input; /* [ninputs], at least one */
    size_t ninputs;
    const struct ep_ckpt *state; /* NULL: momentum and buffer begin at 0 */
};

/* Lines for people, each ended by '\n', bytes of input escaped. */
struct ep_merge_lines {
    struct ep_buf text;
    size_t n;
};

void ep_merge_lines_init(struct ep_merge_lines *l);
void ep_merge_lines_free(struct ep_merge_lines *l);

struct ep_merge; /* opaque */

/*
 * Match everything. *lines gets every difference: "cannot merge FILE: tensor
 * \"NAME\": reason", or, when the plan stands, remarks. NULL on error:
 *   EP_EDOM    a setting that makes no sense
 *   EP_EFORMAT differences: tensors missing or extra (not with allow_missing:
 *              an input that lacks a tensor does not count for it, and where
 *              none has it the base's is kept; extra ones are left out), of
 *              another shape, or of a type that cannot be computed with beside
 *              one that can; an input that is a state, a delta without a sign,
 *              or of another sign than declared; a base or input that states a
 *              kind or sign that is not known, or a sign but not that it is a
 *              delta (nor was it declared); evenpace.tokens that is missing
 *              (by_tokens); a state of another outer step than the base
 *              (a base without one counts as 0, with allow_missing as any), or
 *              in the middle of a buffer of another N
 * Cost: O(T log T) for T tensors of each file; memory 4 bytes per tensor and
 * input whose names are not those of the base, else none.
 */
struct ep_merge *ep_merge_plan(const struct ep_merge_config *config,
                               const struct ep_merge_files *files,
                               struct ep_merge_lines *lines,
                               struct ep_error *err) EP_MUST_USE;

void ep_merge_free(struct ep_merge *m); /* NULL allowed */

/* What is known of an input before the run. */
struct ep_merge_input {
    enum ep_merge_kind kind;
    double weight;
    int64_t steps, tokens; /* evenpace.steps, evenpace.tokens; -1: not told */
    uint64_t version;      /* outer step after it */
};
struct ep_merge_input ep_merge_input(const struct ep_merge *m, size_t i);

struct ep_merge_totals {
    size_t tensors, carried;     /* all; those that are the base's */
    uint64_t read_bytes;         /* tensors of base, inputs and state in use */
    uint64_t model_bytes;        /* tensors that will be written */
    uint64_t state_bytes;        /* of the state; 0 without keep_state */
    uint64_t step_from, step_to; /* outer steps before and after */
    bool momentum;               /* the method has momentum or a buffer */
    /* with allow_missing, tensors that can be computed with: of fewer inputs
       than there are, of none (the base's), without a part of the state that
       is read (0 then); and all that were left out, summed over the files */
    size_t fewer, none, zeroed, extra;
};
struct ep_merge_totals ep_merge_totals(const struct ep_merge *m);

struct ep_merge_report {
    double *norm;       /* [ninputs] L2 norm of g_i, summed in double; the
                           caller frees it */
    uint64_t saturated; /* elements that became the largest of F8_E4M3 */
};

struct ep_merge_how {
    const char *out;       /* NULL: write nothing, only check and measure */
    const char *state_out; /* with keep_state; NULL: as above */
    int threads;           /* 1..EP_THREADS_MAX */
    bool sync;             /* fsync before files are put in place */
    const char *result;    /* what messages call the result; NULL: out */
    /* Called on the caller's thread, between chunks; may be NULL. */
    void (*progress)(void *ctx, uint64_t done_bytes, uint64_t all_bytes);
    /*
     * Called when all is written and nothing is in place yet: the last moment
     * to say no, by an error code and *err. May be NULL.
     */
    int (*ready)(void *ctx, const struct ep_merge_report *report,
                 struct ep_error *err);
    void *ctx;
    /* Looked at between chunks and before files are put in place; not 0: give
       up. A signal handler may set it. May be NULL. */
    const atomic_int *stop;
};

/*
 * Carry the plan out. The state is put in place before the model, so that a
 * model that is there has its state; if the model cannot be, the old state is
 * put back (ep_st_writer_place). *lines gets remarks, before how->ready: the
 * inputs whose bytes of a carried tensor differ from the base's.
 *
 * Errors: EP_EDOM a NaN or an infinity in a file, or in the result after
 * rounding ("cannot merge FILE: tensor \"NAME\", element I: reason"; the first
 * in the order of the base, whatever the number of threads), unless
 * allow_nonfinite; EP_EDOM "cannot merge FILE: it changed while it was read";
 * those of ep_st_writer_open, _write, _finish and _place, and of how->ready;
 * EP_ESYS if no thread starts, or "cannot merge: interrupted" by how->stop.
 * Nothing is put in place then, and *report is empty.
 */
int ep_merge_run(struct ep_merge *m, const struct ep_merge_how *how,
                 struct ep_merge_report *report, struct ep_merge_lines *lines,
                 struct ep_error *err) EP_MUST_USE;

#endif
