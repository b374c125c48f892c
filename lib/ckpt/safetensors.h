/* SPDX-License-Identifier: Apache-2.0 */
/*
 * safetensors.h - the header of a safetensors file, checked in full.
 *
 *     0        8            8 + N                       end of file
 *     | N      | N bytes of | tensors, one after the    |
 *     | u64 le | JSON       | other: no hole, no overlap |
 *
 *     {"__metadata__": {"key": "text", ...},
 *      "name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, ...}
 *
 * What is accepted is what the reference implementation accepts (N not
 * aligned, white space round the JSON, unknown keys in an entry, null
 * metadata, scalars, tensors without elements, no tensors at all), except
 * that a name that stands twice is refused: a merge would be ambiguous (and
 * what st_parse.c lists, which no writer does). The format:
 * https://github.com/huggingface/safetensors, README.
 */
#ifndef EP_CKPT_SAFETENSORS_H
#define EP_CKPT_SAFETENSORS_H

#include "base/buf.h"
#include "base/err.h"
#include "ckpt/dtype.h"

#include <stddef.h>
#include <stdint.h>

#define EP_ST_HEADER_MAX UINT64_C(100000000)
enum { EP_ST_RANK_MAX = 64 };

/* One tensor, as the file describes it. */
struct ep_tensor {
    struct ep_span name; /* UTF-8, decoded; may hold any byte, NUL too */
    enum ep_dtype dtype;
    unsigned rank;         /* number of dimensions; 0: a scalar */
    const uint64_t *shape; /* [rank] */
    uint64_t count;        /* elements: product of shape, 1 for a scalar */
    uint64_t bytes;        /* count * bits / 8 */
    uint64_t begin;        /* bytes from the start of the data */
    const void *data;      /* its bytes, no alignment; NULL if only the header
                              was at hand */
};

struct ep_st_meta {
    struct ep_span key, value; /* UTF-8, decoded */
};

/* A file's header. Read-only for others; everything is owned by it. */
struct ep_st {
    struct ep_tensor *tensor; /* [n], in the order of the data */
    size_t n;
    struct ep_st_meta *meta; /* [nmeta], in the order of the file, each key
                                once: of several the last, as the reference */
    size_t nmeta;
    uint64_t header_bytes; /* 8 + N: where the data begin */
    uint64_t data_bytes;
    void *memory; /* private */
};

/*
 * Check a header and describe its tensors. All checks are done here: after 0,
 * every tensor lies inside the file, sizes agree with shapes and types.
 *
 * file        [len] the first bytes of the file, at least 8 + N of them;
 *             usually a map of all of it. tensor[].data points into it if len
 *             == file_bytes, else is NULL. Nothing else refers to it later.
 * file_bytes  size of the whole file
 *
 * Errors, the message being the reason alone ("header, byte N: ...", N from
 * the first byte of the JSON, or "tensor \"NAME\": ..."): EP_ETRUNC (shorter
 * than 8 bytes, or than the header or the data say), EP_EFORMAT (not JSON, a
 * wrong kind, unknown dtype, hole, overlap, bytes after the end, size not that
 * of the shape, a name twice; N = 0), EP_ELIMIT (N or the rank beyond the cap,
 * JSON nested too deeply), EP_ERANGE (a dimension, offset or product that
 * overflows). *st needs no ep_st_free after an error.
 * Cost: O(header log n); memory O(header).
 */
int ep_st_parse(struct ep_st *st, const void *file, size_t len,
                uint64_t file_bytes, struct ep_error *err) EP_MUST_USE;

void ep_st_free(struct ep_st *st); /* all-zero *st allowed */

/* Value of a metadata key, or {NULL, 0}. */
struct ep_span ep_st_meta_find(const struct ep_st *st, const char *key);

#endif
