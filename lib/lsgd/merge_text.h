/* SPDX-License-Identifier: Apache-2.0 */
/* merge_text.h - a merge in words, for people. */
#ifndef EP_LSGD_MERGE_TEXT_H
#define EP_LSGD_MERGE_TEXT_H

#include "base/buf.h"
#include "lsgd/merge.h"

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

/* No newline: "2.25 GiB in 625 ms, 3.86 GB/s"; read and written. */
void ep_merge_text_speed(const struct ep_merge *m, double seconds,
                         struct ep_buf *out);

#endif
