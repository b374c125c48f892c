/* SPDX-License-Identifier: Apache-2.0 */
/*
 * describe.h - what is in a checkpoint, as text, JSON Lines or TSV.
 *
 *     text    a summary line, totals per type, metadata (long values cut), then
 *             a table of the tensors (ep_tensor_add_name); text of the file is
 *             escaped for terminals
 *     jsonl   {"type":"checkpoint","path":..,"tensors":..,"elements":..,
 *              "bytes":..,"files":..,"file_bytes":..,"dtypes":{"BF16":
 *              {"tensors":..,"elements":..,"bytes":..},..},"metadata":{..}}
 *             then for each tensor {"type":"tensor","name":..,"dtype":..,
 *              "shape":[..],"elements":..,"bytes":..,"file":..}
 *     tsv     name, dtype, shape (4096x1024, "scalar"), elements, bytes, file;
 *             escaped by ep_ckpt_add_tsv
 *
 * Only headers are read. Cost: O(output).
 */
#ifndef EP_CKPT_DESCRIBE_H
#define EP_CKPT_DESCRIBE_H

#include "base/buf.h"
#include "ckpt/ckpt.h"

enum ep_ckpt_format {
    EP_CKPT_TEXT,
    EP_CKPT_JSONL,
    EP_CKPT_TSV,
};

/* Append the description of c to out, whole lines. */
void ep_ckpt_describe(const struct ep_ckpt *c, enum ep_ckpt_format format,
                      struct ep_buf *out);

/*
 * Append a tensor's name for people: escaped, "" if it is empty, and where it
 * is longer than 60 columns with "..." for its middle.
 */
void ep_tensor_add_name(struct ep_span name, struct ep_buf *out);

/*
 * Append text of a file to a line of tab-separated values: \t, \n and \\ as
 * evenpace-record(5) has them, other bytes that ep_escape hides as \xNN.
 */
void ep_ckpt_add_tsv(struct ep_span text, struct ep_buf *out);

/* Append a shape: "4096x1024", "scalar". */
void ep_tensor_add_shape(const struct ep_tensor *t, struct ep_buf *out);

#endif
