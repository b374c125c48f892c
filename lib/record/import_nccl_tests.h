/* SPDX-License-Identifier: Apache-2.0 */
/*
 * import_nccl_tests.h - what the two forms of nccl-tests' output share; private
 * to import_nccl_tests*.c.
 *
 * A run measures one operation at one or more sizes. Each size is a row, with
 * one measurement out of place and one in place; a row becomes up to two probe
 * records, and a gauge for each measurement of which the results were wrong.
 */
#ifndef EP_RECORD_IMPORT_NCCL_TESTS_H
#define EP_RECORD_IMPORT_NCCL_TESTS_H

#include "base/buf.h"
#include "base/fp.h"
#include "record/import.h"
#include "record/strip.h"

#include <stdbool.h>
#include <stdint.h>

#define EP_NT_NAME_MAX 64

/* ---- a run ---- */

/* -1, "" or {NULL, 0} where not known. */
struct ep_nt_run {
    char test[2][EP_NT_NAME_MAX + 16]; /* "all_reduce", "all_reduce:in-place" */
    int64_t iters;
    /* the devices */
    int64_t devices, nranks; /* nranks: of the first group */
    int64_t group;           /* of the first one */
    bool one_host;
    struct ep_buf host;     /* of the first one */
    int64_t pid, gpu_index; /* of the first one */
    char gpu[24];           /* its PCI address */
};

struct ep_nt_device {
    int64_t rank, group, pid, device;
    struct ep_span host, address; /* "0000:01:00" */
};

void ep_nt_run_init(struct ep_nt_run *run);
void ep_nt_run_free(struct ep_nt_run *run);

/* program is "/x/all_reduce_perf": the test is all_reduce; "": nccl-tests. */
void ep_nt_run_test(struct ep_nt_run *run, struct ep_span program);

void ep_nt_run_clear_devices(struct ep_nt_run *run);
void ep_nt_run_add_device(struct ep_nt_run *run, const struct ep_nt_device *d);

/* ---- a row ---- */

/* One measurement; NaN and -1 where not known. */
struct ep_nt_cell {
    double dur, busbw; /* s, B/s */
    double wrong;      /* elements with a wrong result */
    double spread;     /* of the times of the iterations */
};

struct ep_nt_row {
    double ts;
    int64_t size, iters;
    char dtype[EP_NT_NAME_MAX]; /* as records have it */
    struct ep_nt_cell cell[2];  /* out of place, in place */
    int at;                     /* the next record to deliver */
};

void ep_nt_row_begin(struct ep_nt_row *row);

/* float is f32, half is f16; an unknown one stays as it is. */
void ep_nt_row_dtype(struct ep_nt_row *row, struct ep_span type);

/* The value of a number 10^exp10 times as large, or NaN if it is not finite. */
double ep_nt_number(const struct ep_fp_decimal *d, int exp10);

/* The next record of the row: 1, or 0 if there are no more. Its strings are in
 * run and row. */
int ep_nt_row_next(const struct ep_nt_run *run, struct ep_nt_row *row,
                   struct ep_record *r);

/* Fill *r with what all records of the run have. Its strings are in run. */
void ep_nt_record(const struct ep_nt_run *run, enum ep_type type, double ts,
                  bool in_place, struct ep_record *r);

/* ---- the two forms: as functions of struct ep_importer ---- */

struct ep_nt_text; /* opaque */

struct ep_nt_text *ep_nt_text_new(double mtime);
void ep_nt_text_free(struct ep_nt_text *t); /* NULL allowed */
int ep_nt_text_next(struct ep_nt_text *t, struct ep_source *s,
                    struct ep_record *r, struct ep_error *err) EP_MUST_USE;

struct ep_nt_json; /* opaque */

struct ep_nt_json *ep_nt_json_new(double mtime);
void ep_nt_json_free(struct ep_nt_json *t); /* NULL allowed */
int ep_nt_json_next(struct ep_nt_json *t, struct ep_source *s,
                    struct ep_record *r, struct ep_error *err) EP_MUST_USE;

#endif
