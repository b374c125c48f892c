/* SPDX-License-Identifier: Apache-2.0 */
/*
 * merge_text.h - what people say to a merge, and what it says to them:
 * settings as options give them, tables, remarks.
 */
#ifndef EP_LSGD_MERGE_TEXT_H
#define EP_LSGD_MERGE_TEXT_H

#include "base/buf.h"
#include "lsgd/merge.h"

#include <stdbool.h>
#include <stdint.h>

/* Settings in words, each of which may not have been given. */
struct ep_merge_settings {
    int method;                    /* enum ep_merge_method; -1: MEAN */
    double alpha, lr, beta, share; /* NaN: not given */
    int64_t buffer;                /* 0: not given */
    /* NULL: not given. weights is "1,2.5,3" or "tokens" */
    const char *output, *weights, *state, *state_out;
    int sign, dtype, compute; /* index of a choice below; -1: not given */
    int64_t shard_size;       /* bytes; 0: one file */
    bool dry_run, allow_missing, allow_nonfinite;
};
#define EP_MERGE_SIGNS "start-end|end-start"
#define EP_MERGE_DTYPES "keep|F32|BF16|F16|F64|F8_E4M3|F8_E5M2"
#define EP_MERGE_COMPUTES "auto|f32|f64"

/*
 * Do the settings fit together? EP_EUSAGE "cannot use --OPTION: reason": not
 * with this method; an empty name; output and state_out are one place. "cannot
 * merge: no --output to write to".
 */
int ep_merge_check_settings(const struct ep_merge_settings *s,
                            struct ep_error *err) EP_MUST_USE;

/*
 * What they come to with the files that were opened, in *c. What was not given
 * is as the state was made, else the default; *lines gets a remark for each
 * that was given and is another. The caller frees *weights, also after an error.
 *
 * Errors: EP_EUSAGE state_out is a file of the base or of an input, output is
 * the state, delayed-nesterov without a buffer; EP_EFORMAT a state whose
 * setting is not a number, weights that are not numbers; EP_ERANGE.
 */
int ep_merge_settle(const struct ep_merge_settings *s,
                    const struct ep_merge_files *files,
                    struct ep_merge_config *c, double **weights,
                    struct ep_merge_lines *lines,
                    struct ep_error *err) EP_MUST_USE;

/*
 * Remarks before the run: a momentum that is lost or begins at 0; what
 * allow_missing came to, "not all tensors were there: 2 tensors from fewer
 * inputs, 1 the base's alone, 1 without its state, 3 left out".
 */
void ep_merge_text_remarks(const struct ep_merge *m,
                           const struct ep_merge_settings *s,
                           struct ep_merge_lines *lines);

/*
 * One line for each input, below a line of heads:
 *
 *     weight  steps  tokens   norm  input
 *          1      8    4096  0.125  east.safetensors
 *
 * path    [ninputs] what to call the inputs; escaped
 * norm    [ninputs] of struct ep_merge_report
 */
void ep_merge_text_table(const struct ep_merge *m, const char *const *path,
                         const double *norm, struct ep_buf *out);

/*
 * No newline: "mean of 2 inputs: 5 tensors, 1 of them carried, read 12 KiB,
 * write 4 KiB, outer step 1"
 */
void ep_merge_text_plan(const struct ep_merge *m, struct ep_buf *out);

/*
 * No newline: "moved 2.25 GiB in 625 ms, 3.86 GB/s", what was read and written;
 * or "nothing written: read 1.5 GiB in ...".
 */
void ep_merge_text_speed(const struct ep_merge *m, bool written, double seconds,
                         struct ep_buf *out);

/* " 43 %, 1.2 of 2.8 GiB" */
void ep_merge_text_progress(uint64_t done_bytes, uint64_t all_bytes,
                            struct ep_buf *out);

#endif
