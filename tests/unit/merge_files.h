/* SPDX-License-Identifier: Apache-2.0 */
/* merge_files.h - small checkpoints for the tests of merges. */
#ifndef EP_MERGE_FILES_H
#define EP_MERGE_FILES_H

#include "base/mem.h"
#include "ckpt/ckpt.h"
#include "ckpt/convert.h"
#include "ckpt/st_write.h"
#include "lsgd/merge.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[] = "/tmp/evenpace-merge-XXXXXX";

/* "FOLDER/NAME"; eight results are good at a time. */
static const char *in_folder(const char *name)
{
    static char text[8][512];
    static int at;

    at = (at + 1) % 8;
    (void)snprintf(text[at], sizeof text[at], "%s/%s", folder, name);
    return text[at];
}

static void begin_folder(void)
{
    if (!mkdtemp(folder))
        exit(2);
}

static void end_folder(void)
{
    char command[128];

    (void)snprintf(command, sizeof command, "rm -rf '%s'", folder);
    if (system(command) != 0) /* NOLINT(cert-env33-c) */
        exit(2);
}

/* A tensor to be written: doubles, converted; or raw bytes. */
struct file_tensor {
    const char *name;
    enum ep_dtype dtype;
    uint64_t rows, columns; /* columns 0: of one dimension */
    const double *v;
    const void *raw;
};

/* Write a file; metadata as "key=value" strings, the last NULL. */
static void make_file(const char *path, const struct file_tensor *t, size_t n,
                      const char *const *meta)
{
    struct ep_tensor tensor[16];
    uint64_t shape[16][2];
    struct ep_st_meta entry[16];
    struct ep_st_plan plan = {.tensor = tensor, .n = n, .meta = entry};
    struct ep_st_writer *w;
    struct ep_error err;
    int bad = 0;

    for (; meta && meta[plan.nmeta]; plan.nmeta++) {
        const char *text = meta[plan.nmeta];
        size_t key = strcspn(text, "=");

        entry[plan.nmeta].key = (struct ep_span){text, key};
        entry[plan.nmeta].value =
            (struct ep_span){text + key + 1, strlen(text + key + 1)};
    }
    for (size_t i = 0; i < n; i++) {
        shape[i][0] = t[i].rows;
        shape[i][1] = t[i].columns;
        tensor[i] = (struct ep_tensor){
            .name = {t[i].name, strlen(t[i].name)},
            .dtype = t[i].dtype,
            .rank = t[i].columns ? 2 : 1,
            .shape = shape[i],
            .count = t[i].rows * (t[i].columns ? t[i].columns : 1),
        };
        tensor[i].bytes = tensor[i].count * ep_dtype_bits(t[i].dtype) / 8;
    }
    w = ep_st_writer_open(path, &plan, &err);
    for (size_t i = 0; w && i < n; i++) {
        void *bytes = ep_calloc(tensor[i].bytes + 1, 1);

        if (t[i].raw)
            memcpy(bytes, t[i].raw, tensor[i].bytes);
        else
            ep_encode_f64(t[i].dtype, t[i].v, bytes, tensor[i].count);
        bad |= ep_st_writer_write(w, i, 0, bytes, tensor[i].bytes, &err);
        free(bytes);
    }
    if (!w || bad || ep_st_writer_commit(w, false, &err) < 0) {
        (void)fprintf(stderr, "%s\n", err.msg);
        exit(2);
    }
}

static struct ep_ckpt *must_open(const char *path)
{
    struct ep_error err;
    struct ep_ckpt *c = ep_ckpt_open(path, &err);

    if (!c) {
        (void)fprintf(stderr, "%s\n", err.msg);
        exit(2);
    }
    return c;
}

/* What a merge came to. */
struct outcome {
    int rc;
    struct ep_error err;
    struct ep_merge_lines lines; /* free with outcome_free */
    struct ep_merge_report report;
};

static void outcome_free(struct outcome *o)
{
    ep_merge_lines_free(&o->lines);
    free(o->report.norm);
}

/* Merge files of the folder; state_in, state_out may be NULL. */
struct job {
    const char *out, *state_in, *state_out, *base;
    const char *input[320];
    size_t ninputs;
    int threads;
    /* of struct ep_merge_how */
    void (*progress)(void *ctx, uint64_t done_bytes, uint64_t all_bytes);
    int (*ready)(void *ctx, const struct ep_merge_report *report,
                 struct ep_error *err);
    const atomic_int *stop;
};

static void merge_files(struct outcome *o, const struct ep_merge_config *config,
                        const struct job *job)
{
    struct ep_ckpt *base = must_open(in_folder(job->base)), *input[320];
    struct ep_ckpt *state =
        job->state_in ? must_open(in_folder(job->state_in)) : NULL;
    struct ep_merge_files files = {.base = base,
                                   .input =
                                       (const struct ep_ckpt *const *)input,
                                   .ninputs = job->ninputs,
                                   .state = state};
    struct ep_merge_how how = {.threads = job->threads ? job->threads : 1,
                               .progress = job->progress,
                               .ready = job->ready,
                               .stop = job->stop};
    struct ep_merge_config c = *config;
    struct ep_merge *m;

    for (size_t i = 0; i < job->ninputs; i++)
        input[i] = must_open(in_folder(job->input[i]));
    how.out = job->out ? in_folder(job->out) : NULL;
    how.state_out = job->state_out ? in_folder(job->state_out) : NULL;
    memset(o, 0, sizeof *o);
    ep_merge_lines_init(&o->lines);
    c.keep_state = job->state_out != NULL;
    m = ep_merge_plan(&c, &files, &o->lines, &o->err);
    o->rc =
        m ? ep_merge_run(m, &how, &o->report, &o->lines, &o->err) : o->err.code;
    ep_merge_free(m);
    for (size_t i = 0; i < job->ninputs; i++)
        ep_ckpt_close(input[i]);
    ep_ckpt_close(base);
    ep_ckpt_close(state);
}

/* Are two files of the folder equal, byte for byte? */
static inline bool same_file(const char *a, const char *b)
{
    FILE *f = fopen(in_folder(a), "rb"), *g = fopen(in_folder(b), "rb");
    bool same = f && g;
    int c = 0;

    while (same && c != EOF) {
        c = getc(f);
        same = c == getc(g);
    }
    if (f)
        (void)fclose(f);
    if (g)
        (void)fclose(g);
    return same;
}

/* Values of a tensor of a file of the folder, as doubles; count is exact. */
static inline void read_values(const char *file, const char *name, double *v,
                               size_t count)
{
    struct ep_ckpt *c = must_open(in_folder(file));
    const struct ep_tensor *t =
        ep_ckpt_find(c, (struct ep_span){name, strlen(name)});

    if (!t || t->count != count) {
        (void)fprintf(stderr, "%s: no tensor %s of %zu\n", file, name, count);
        exit(2);
    }
    ep_decode_f64(t->dtype, t->data, v, count);
    ep_ckpt_close(c);
}

/* A number in [-1, 1) that is exact in 8 bits of mantissa: in BF16 too. */
static inline double coarse(uint64_t *x)
{
    *x = *x * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return ((double)(*x >> 56) - 128) / 128;
}

#endif
