/* SPDX-License-Identifier: Apache-2.0 */
/*
 * import_nccl_tests.c - the output of nccl-tests (all_reduce_perf and its kin),
 * as text or with -J as JSON, to probe records. What is common to both is here.
 *
 * The value of a probe is the bus bandwidth, which does not depend on the
 * number of ranks where the hardware is the limit; dur is the time of one
 * operation. A measurement is of all devices of the run: it has a host if they
 * are all on one, and a device if there is only one.
 */
#include "config.h"

#include "record/import_nccl_tests.h"

#include "base/input.h"
#include "base/mem.h"
#include "record/importers.h"
#include "record/nccl_text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* ==== A run ==== */

void ep_nt_run_init(struct ep_nt_run *run)
{
    *run = (struct ep_nt_run){.iters = -1};
    ep_buf_init(&run->host);
    ep_nt_run_test(run, (struct ep_span){"", 0});
    ep_nt_run_clear_devices(run);
}

void ep_nt_run_free(struct ep_nt_run *run)
{
    ep_buf_free(&run->host);
}

static void copy_name(char to[EP_NT_NAME_MAX], struct ep_span s)
{
    size_t n = s.len < EP_NT_NAME_MAX ? s.len : EP_NT_NAME_MAX - 1;

    memcpy(to, s.ptr, n);
    to[n] = '\0';
    /* A NUL in it would not be a string of a record. */
    for (size_t i = 0; i < n; i++)
        if (!to[i])
            to[i] = '?';
}

void ep_nt_run_test(struct ep_nt_run *run, struct ep_span program)
{
    static const char *const names[][2] = {{"alltoall", "all_to_all"},
                                           {"alltoallv", "all_to_all_v"},
                                           {"sendrecv", "send_recv"}};
    const char *slash = memrchr(program.ptr, '/', program.len);
    char name[EP_NT_NAME_MAX];
    const char *end;

    if (slash) {
        program.len -= (size_t)(slash + 1 - program.ptr);
        program.ptr = slash + 1;
    }
    end = memmem(program.ptr, program.len, "_perf", 5);
    if (end)
        program.len = (size_t)(end - program.ptr);
    if (!program.len)
        program = (struct ep_span){"nccl-tests", 10};
    copy_name(name, program);
    for (size_t i = 0; i < COUNT(names); i++)
        if (ep_span_eq(program, names[i][0]))
            (void)snprintf(name, sizeof name, "%s", names[i][1]);
    (void)snprintf(run->test[0], sizeof run->test[0], "%s", name);
    (void)snprintf(run->test[1], sizeof run->test[1], "%s:in-place", name);
}

void ep_nt_run_clear_devices(struct ep_nt_run *run)
{
    run->devices = run->nranks = 0;
    run->one_host = true;
    run->pid = run->gpu_index = -1;
    run->gpu[0] = '\0';
    ep_buf_reset(&run->host);
}

void ep_nt_run_add_device(struct ep_nt_run *run, const struct ep_nt_device *d)
{
    struct ep_span host = ep_nccl_host(d->host);

    if (run->devices++ == 0) {
        run->group = d->group;
        run->pid = d->pid;
        run->gpu_index = d->device;
        ep_buf_add(&run->host, host.ptr, host.len);
        /* domain:bus:device; older forms have the bus alone */
        if (d->address.len == 10 && d->address.ptr[4] == ':' &&
            d->address.ptr[7] == ':')
            (void)snprintf(run->gpu, sizeof run->gpu, "%.10s.0",
                           d->address.ptr);
    }
    run->nranks += d->group == run->group;
    run->one_host = run->one_host && host.len == run->host.len && host.len &&
                    memcmp(host.ptr, run->host.ptr, host.len) == 0;
}

/* ==== A row ==== */

void ep_nt_row_begin(struct ep_nt_row *row)
{
    *row = (struct ep_nt_row){.ts = (double)NAN, .size = -1, .iters = -1};
    for (int i = 0; i < 2; i++)
        row->cell[i] = (struct ep_nt_cell){(double)NAN, (double)NAN,
                                           (double)NAN, (double)NAN};
}

void ep_nt_row_dtype(struct ep_nt_row *row, struct ep_span type)
{
    static const char *const names[][2] = {
        {"int8", "i8"},       {"char", "i8"},       {"uint8", "u8"},
        {"int32", "i32"},     {"int", "i32"},       {"uint32", "u32"},
        {"int64", "i64"},     {"uint64", "u64"},    {"half", "f16"},
        {"float", "f32"},     {"double", "f64"},    {"bfloat16", "bf16"},
        {"f8e4m3", "f8e4m3"}, {"f8e5m2", "f8e5m2"},
    };

    copy_name(row->dtype, type);
    for (size_t i = 0; i < COUNT(names); i++)
        if (ep_span_eq(type, names[i][0]))
            (void)snprintf(row->dtype, sizeof row->dtype, "%s", names[i][1]);
}

double ep_nt_number(const struct ep_fp_decimal *number, int exp10)
{
    struct ep_fp_decimal d = *number;
    double x;

    d.cut = false; /* the rest of 19 digits is below a double's resolution */
    d.exp10 += exp10;
    x = ep_fp_from_decimal(&d, NULL, 0);
    return isfinite(x) && x >= 0 ? x + 0.0 : (double)NAN;
}

void ep_nt_record(const struct ep_nt_run *run, enum ep_type type, double ts,
                  bool in_place, struct ep_record *r)
{
    ep_record_begin(r, type);
    ep_record_set_num(r, EP_K_TS, ts);
    ep_record_set_str(r, EP_K_TEST, run->test[in_place]);
    if (run->devices && run->one_host)
        ep_record_set_span(r, EP_K_HOST,
                           (struct ep_span){run->host.ptr, run->host.len});
    if (run->nranks > 0)
        ep_record_set_int(r, EP_K_NRANKS, run->nranks);
    if (run->devices != 1)
        return;
    if (run->pid >= 0)
        ep_record_set_int(r, EP_K_PID, run->pid);
    if (run->gpu[0])
        ep_record_set_str(r, EP_K_GPU, run->gpu);
    if (run->gpu_index >= 0)
        ep_record_set_int(r, EP_K_GPU_INDEX, run->gpu_index);
}

static void set_row(const struct ep_nt_row *row, struct ep_record *r)
{
    if (row->size >= 0)
        ep_record_set_int(r, EP_K_SIZE, row->size);
    if (row->dtype[0])
        ep_record_set_str(r, EP_K_DTYPE, row->dtype);
}

static void set_probe(const struct ep_nt_run *run, const struct ep_nt_row *row,
                      const struct ep_nt_cell *cell, struct ep_record *r)
{
    int64_t n = row->iters >= 0 ? row->iters : run->iters;

    ep_record_set_num(r, EP_K_VALUE, cell->busbw);
    ep_record_set_str(r, EP_K_UNIT, "B/s");
    ep_record_set_str(r, EP_K_BETTER, "high");
    ep_record_set_num(r, EP_K_DUR, cell->dur);
    ep_record_set_num(r, EP_K_SPREAD, cell->spread);
    if (n >= 0)
        ep_record_set_int(r, EP_K_N, n);
}

int ep_nt_row_next(const struct ep_nt_run *run, struct ep_nt_row *row,
                   struct ep_record *r)
{
    while (row->at < 4) {
        int i = row->at / 2;
        bool wrong = row->at % 2 == 1;
        const struct ep_nt_cell *cell = &row->cell[i];

        row->at++;
        if (wrong ? !(cell->wrong > 0) : isnan(cell->busbw))
            continue;
        ep_nt_record(run, wrong ? EP_GAUGE : EP_PROBE, row->ts, i == 1, r);
        set_row(row, r);
        if (!wrong) {
            set_probe(run, row, cell, r);
            return 1;
        }
        ep_record_set_str(r, EP_K_NAME, "nccl_tests_wrong");
        ep_record_set_num(r, EP_K_VALUE, cell->wrong);
        ep_record_set_str(r, EP_K_UNIT, "1");
        return 1;
    }
    return 0;
}

/* ==== The importer ==== */

struct importer {
    double mtime;
    struct ep_nt_text *text; /* the one that it is, once that is known */
    struct ep_nt_json *json;
};

static bool has(const char *head, size_t len, const char *text)
{
    return memmem(head, len, text, strlen(text)) != NULL;
}

static bool is_json(const char *head, size_t len)
{
    size_t i = 0;

    while (i < len && (head[i] == ' ' || head[i] == '\n' || head[i] == '\t' ||
                       head[i] == '\r'))
        i++;
    return i < len && head[i] == '{';
}

static int sniff(const char *head, size_t len, const char *name)
{
    (void)name;
    if (is_json(head, len)) {
        if (!has(head, len, "\"version\"") ||
            !has(head, len, "\"start_time\"") || !has(head, len, "\"args\""))
            return 0;
        return has(head, len, "_perf") || has(head, len, "\"nccl_version\"")
                   ? 95
                   : 50;
    }
    if (has(head, len, "# Collective test starting: ") ||
        (has(head, len, "# nThread ") && has(head, len, " minBytes ")) ||
        (has(head, len, "out-of-place") && has(head, len, "busbw")))
        return 80;
    return 0;
}

static void *begin(struct ep_source *s)
{
    struct importer *self = ep_calloc(1, sizeof *self);

    self->mtime = s->mtime >= 0 ? s->mtime : 0;
    return self;
}

static void end(void *ctx)
{
    struct importer *self = ctx;

    if (!self)
        return;
    ep_nt_text_free(self->text);
    ep_nt_json_free(self->json);
    free(self);
}

static int next(void *ctx, struct ep_source *s, struct ep_record *r,
                struct ep_error *err)
{
    struct importer *self = ctx;

    if (!self->text && !self->json) {
        const char *head;
        ssize_t n = ep_input_peek(s->input, &head, err);

        if (n <= 0) {
            s->over = true;
            return (int)n;
        }
        if (is_json(head, (size_t)n))
            self->json = ep_nt_json_new(self->mtime);
        else
            self->text = ep_nt_text_new(self->mtime);
    }
    return self->json ? ep_nt_json_next(self->json, s, r, err)
                      : ep_nt_text_next(self->text, s, r, err);
}

const struct ep_importer ep_import_nccl_tests = {
    .name = "nccl-tests",
    .what = "nccl-tests, text and JSON",
    .sniff = sniff,
    .begin = begin,
    .next = next,
    .end = end,
};
