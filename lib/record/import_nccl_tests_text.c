/* SPDX-License-Identifier: Apache-2.0 */
/*
 * import_nccl_tests_text.c - the tables that nccl-tests prints:
 *
 *     # Collective test starting: all_reduce_perf
 *     # nThread 1 nGpus 2 minBytes 8 ... warmup iters: 5 iters: 20 ...
 *     # Using devices
 *     #  Rank  0 Group  0 Pid   6151 on     ubuntu device  0 [0000:01:00] NAME
 *     #                                        out-of-place       in-place
 *     #      size  count  type  redop  root  time  algbw  busbw #wrong  time ..
 *         1048576  262144  float  sum    -1  93.1  11.26  11.26      0  92.9 ..
 *
 * The columns are those that the heading names, since they have changed over
 * the years: no root, no redop, "error" instead of #wrong, "bytes" for size; -I
 * adds four for each half, -S the time. A test that does not use redop may
 * leave it blank; one that is not measured in place, or not out of place,
 * leaves half of the row blank.
 *
 * [1] NVIDIA/nccl-tests: src/util.cu, and src/common.cu before 2025-10.
 */
#include "config.h"

#include "base/mem.h"
#include "record/import_nccl_tests.h"
#include "record/nccl_text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define TOKENS 48

/* Two halves are farther apart than columns are. */
#define BLANK_HALF 20

enum column {
    SIZE,
    COLUMN_COUNT,
    TYPE,
    REDOP,
    ROOT,
    TIME,
    BUSBW,
    WRONG,
    OTHER
};

struct ep_nt_text {
    struct ep_nt_run run;
    struct ep_nt_row row;
    bool in_row;
    bool named; /* the run that begins has said what it is */
    enum column column[TOKENS];
    size_t columns, front; /* all, and those before the first time */
    double mtime;
    struct ep_strip strip;
    struct ep_strip_zone zone;
    struct ep_buf scratch;
};

struct tokens {
    struct ep_span v[TOKENS];
    size_t n; /* TOKENS + 1: more than fit */
};

static void split(struct ep_span line, struct tokens *t)
{
    struct ep_cursor c = {line.ptr, line.ptr + line.len};

    t->n = 0;
    for (;;) {
        struct ep_span w;

        ep_cursor_blanks(&c);
        w = ep_cursor_word(&c);
        if (!w.len)
            return;
        if (t->n == TOKENS) {
            t->n++;
            return;
        }
        t->v[t->n++] = w;
    }
}

/* ==== The heading ==== */

/* As it was for years. */
static void usual_columns(struct ep_nt_text *t)
{
    static const enum column usual[] = {SIZE,  COLUMN_COUNT, TYPE,  REDOP, ROOT,
                                        TIME,  OTHER,        BUSBW, WRONG, TIME,
                                        OTHER, BUSBW,        WRONG};

    memcpy(t->column, usual, sizeof usual);
    t->columns = sizeof usual / sizeof *usual;
    t->front = 5;
}

static enum column column_of(struct ep_span name)
{
    static const struct {
        const char *name;
        enum column column;
    } names[] = {
        {"size", SIZE},      {"bytes", SIZE},  {"count", COLUMN_COUNT},
        {"N", COLUMN_COUNT}, {"type", TYPE},   {"redop", REDOP},
        {"op", REDOP},       {"root", ROOT},   {"time", TIME},
        {"cputime", TIME},   {"busbw", BUSBW}, {"#wrong", WRONG},
    };

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (ep_span_eq(name, names[i].name))
            return names[i].column;
    return OTHER;
}

/* "#  size  count  type ...": true if it is one. */
static bool take_heading(struct ep_nt_text *t, struct ep_span line)
{
    enum column column[TOKENS];
    struct tokens words;
    size_t n = 0, front = 0;

    split(line, &words);
    if (words.n < 8 || words.n > TOKENS || column_of(words.v[0]) != SIZE ||
        column_of(words.v[1]) != COLUMN_COUNT)
        return false;
    for (size_t i = 0; i < words.n; i++) {
        if (ep_span_eq(words.v[i], "timestamp"))
            break;
        column[n++] = column_of(words.v[i]);
        if (column[n - 1] == TIME && !front)
            front = n - 1;
    }
    if (!front)
        return false;
    memcpy(t->column, column, n * sizeof *column);
    t->columns = n;
    t->front = front;
    return true;
}

/* ==== Lines that begin with # ==== */

/* "Rank  0 Group  0 Pid   6151 on     ubuntu device  0 [0000:01:00] NAME" */
static void take_device(struct ep_nt_text *t, struct ep_cursor c)
{
    struct ep_nt_device d = {.group = 0, .pid = -1, .device = -1};
    const char *close;

    ep_cursor_blanks(&c);
    if (!ep_cursor_uint(&c, &d.rank))
        return;
    ep_cursor_blanks(&c);
    if (ep_cursor_lit(&c, "Group")) {
        ep_cursor_blanks(&c);
        (void)ep_cursor_uint(&c, &d.group);
        ep_cursor_blanks(&c);
    }
    if (ep_cursor_lit(&c, "Pid")) {
        ep_cursor_blanks(&c);
        (void)ep_cursor_uint(&c, &d.pid);
        ep_cursor_blanks(&c);
    }
    if (!ep_cursor_lit(&c, "on"))
        return;
    ep_cursor_blanks(&c);
    d.host = ep_cursor_word(&c);
    ep_cursor_blanks(&c);
    if (!ep_cursor_lit(&c, "device"))
        return;
    ep_cursor_blanks(&c);
    (void)ep_cursor_uint(&c, &d.device);
    ep_cursor_blanks(&c);
    d.address = (struct ep_span){c.p, 0};
    if (ep_cursor_lit(&c, "[") &&
        (close = memchr(c.p, ']', (size_t)(c.end - c.p))) != NULL &&
        !memchr(c.p, '\0', (size_t)(close - c.p)))
        d.address = (struct ep_span){c.p, (size_t)(close - c.p)};
    ep_nt_run_add_device(&t->run, &d);
}

/* "nThread 1 nGpus 2 ... warmup iters: 5 iters: 20 ...": a run begins. */
static void take_run(struct ep_nt_text *t, struct ep_cursor c)
{
    int64_t warmups;

    if (!t->named)
        ep_nt_run_test(&t->run, (struct ep_span){"", 0});
    t->named = false;
    t->run.iters = -1;
    ep_nt_run_clear_devices(&t->run);
    usual_columns(t);
    if (ep_cursor_find(&c, "warmup iters: ") && ep_cursor_uint(&c, &warmups) &&
        ep_cursor_lit(&c, " iters: "))
        (void)ep_cursor_uint(&c, &t->run.iters);
}

static double line_time(struct ep_nt_text *t)
{
    double ts = ep_strip_when(&t->zone, &t->strip);

    return isnan(ts) ? t->mtime : ts;
}

/* "Avg bus bandwidth    : 234.5": what follows the colon as a gauge. */
static int take_summary(struct ep_nt_text *t, struct ep_cursor c, int exp10,
                        const char *name, const char *unit, struct ep_record *r)
{
    struct ep_fp_decimal d;
    double value;

    if (!ep_cursor_find(&c, ": "))
        return 0;
    if (!ep_fp_scan(c.p, (size_t)(c.end - c.p), &d))
        return 0;
    value = ep_nt_number(&d, exp10);
    if (isnan(value))
        return 0;
    ep_nt_record(&t->run, EP_GAUGE, line_time(t), false, r);
    ep_record_set_str(r, EP_K_NAME, name);
    ep_record_set_num(r, EP_K_VALUE, value);
    ep_record_set_str(r, EP_K_UNIT, unit);
    return 1;
}

/* Behind the #: 1 if it gave a record. */
static int take_comment(struct ep_nt_text *t, struct ep_cursor c,
                        struct ep_record *r)
{
    ep_cursor_blanks(&c);
    if (ep_cursor_lit(&c, "Rank ")) {
        take_device(t, c);
    } else if (ep_cursor_lit(&c, "nThread ")) {
        take_run(t, c);
    } else if (ep_cursor_lit(&c, "Collective test starting: ")) {
        ep_nt_run_test(&t->run, ep_cursor_word(&c));
        t->named = true;
    } else if (ep_cursor_lit(&c, "Using devices")) {
        ep_nt_run_clear_devices(&t->run);
    } else if (ep_cursor_lit(&c, "Out of bounds values")) {
        return take_summary(t, c, 0, "nccl_tests_out_of_bounds", "1", r);
    } else if (ep_cursor_lit(&c, "Avg bus bandwidth")) {
        return take_summary(t, c, 9, "nccl_tests_avg_busbw", "B/s", r);
    } else {
        (void)take_heading(t, (struct ep_span){c.p, (size_t)(c.end - c.p)});
    }
    return 0;
}

/* ==== Rows ==== */

static bool is_number(struct ep_span s)
{
    for (size_t i = 0; i < s.len; i++)
        if (s.ptr[i] < '0' || s.ptr[i] > '9')
            return false;
    return s.len > 0 && s.len < 19;
}

static bool is_integer(struct ep_span s)
{
    if (s.len && *s.ptr == '-')
        s = (struct ep_span){s.ptr + 1, s.len - 1};
    return is_number(s);
}

/* Does the line begin as a row does: "1048576  262144  float"? */
static bool is_row(struct ep_span line)
{
    struct ep_cursor c = {line.ptr, line.ptr + line.len};
    struct ep_span size, count;

    ep_cursor_blanks(&c);
    if (c.p == c.end || *c.p < '0' || *c.p > '9')
        return false;
    size = ep_cursor_word(&c);
    ep_cursor_blanks(&c);
    count = ep_cursor_word(&c);
    ep_cursor_blanks(&c);
    return is_number(size) && is_number(count) && c.p < c.end &&
           ((*c.p >= 'a' && *c.p <= 'z') || (*c.p >= 'A' && *c.p <= 'Z'));
}

/* "2026-09-24 10:07:30" at the end of the row, which is taken off. */
static void take_timestamp(struct ep_nt_text *t, struct tokens *row)
{
    struct ep_span day, time;
    size_t len;

    if (row->n < 4 || row->n > TOKENS)
        return;
    day = row->v[row->n - 2];
    time = row->v[row->n - 1];
    len = (size_t)(time.ptr + time.len - day.ptr);
    if (day.len == 10 && time.ptr == day.ptr + day.len + 1 &&
        ep_strip_time(&t->zone, day.ptr, len, &t->row.ts) == len)
        row->n -= 2;
}

/* A number in the row, or NaN. */
static double cell_number(struct ep_span s, int exp10)
{
    struct ep_fp_decimal d;

    if (!s.len || ep_fp_scan(s.ptr, s.len, &d) != s.len)
        return (double)NAN;
    return ep_nt_number(&d, exp10);
}

static void take_cell(struct ep_nt_text *t, enum column column, int half,
                      struct ep_span s)
{
    struct ep_nt_cell *cell = &t->row.cell[half];
    struct ep_cursor c = {s.ptr, s.ptr + s.len};

    switch (column) {
    case SIZE:
        (void)ep_cursor_uint(&c, &t->row.size);
        break;
    case TYPE:
        ep_nt_row_dtype(&t->row, s);
        break;
    case TIME:
        cell->dur = cell_number(s, -6);
        break;
    case BUSBW:
        cell->busbw = cell_number(s, 9);
        break;
    case WRONG:
        cell->wrong = cell_number(s, 0);
        break;
    default:
        break;
    }
}

/*
 * Which columns the tokens are: front becomes their number before the first
 * time, *half the half that they begin with. False if they do not fit.
 */
static bool fit(const struct ep_nt_text *t, const struct tokens *row,
                size_t *front, int *half)
{
    size_t per_half = (t->columns - t->front) / 2;

    *front = t->front;
    *half = 0;
    /* redop left blank: the root is in its place */
    if (row->n + 1 == t->columns || row->n + 1 == t->front + per_half) {
        if (t->front < 5 || t->column[3] != REDOP || !is_integer(row->v[3]))
            return false;
        (*front)--;
    }
    if (row->n == *front + t->columns - t->front)
        return true;
    if (row->n != *front + per_half)
        return false;
    *half =
        row->v[*front].ptr - (row->v[*front - 1].ptr + row->v[*front - 1].len) >
        BLANK_HALF;
    return true;
}

static int take_row(struct ep_nt_text *t, struct ep_span line,
                    struct ep_error *err)
{
    struct tokens row;
    size_t front, at;
    int half;

    ep_nt_row_begin(&t->row);
    split(line, &row);
    take_timestamp(t, &row);
    if (isnan(t->row.ts))
        t->row.ts = line_time(t);
    if (row.n > TOKENS || !fit(t, &row, &front, &half))
        return ep_error_set(err, EP_EFORMAT,
                            "a row of %zu columns under a heading of %zu",
                            row.n, t->columns);
    for (size_t i = 0; i < front; i++) {
        bool shifted = front < t->front && i >= 3;

        take_cell(t, t->column[i + shifted], 0, row.v[i]);
    }
    at = t->front + (half ? (t->columns - t->front) / 2 : 0);
    for (size_t i = front; i < row.n; i++, at++) {
        half += t->column[at] == TIME && i > front;
        if (half > 1)
            break;
        take_cell(t, t->column[at], half, row.v[i]);
    }
    t->in_row = true;
    return 0;
}

/* ==== The importer ==== */

struct ep_nt_text *ep_nt_text_new(double mtime)
{
    struct ep_nt_text *t = ep_calloc(1, sizeof *t);

    ep_nt_run_init(&t->run);
    ep_buf_init(&t->scratch);
    t->mtime = t->zone.latest = mtime;
    usual_columns(t);
    return t;
}

void ep_nt_text_free(struct ep_nt_text *t)
{
    if (!t)
        return;
    ep_nt_run_free(&t->run);
    ep_buf_free(&t->scratch);
    free(t);
}

int ep_nt_text_next(struct ep_nt_text *t, struct ep_source *s,
                    struct ep_record *r, struct ep_error *err)
{
    for (;;) {
        struct ep_cursor c;
        int rc;

        if (t->in_row && ep_nt_row_next(&t->run, &t->row, r) > 0)
            return 1;
        t->in_row = false;
        rc = ep_source_line(s, err);
        if (rc <= 0)
            return rc;
        ep_strip(s->line.ptr, s->line.len, &t->scratch, &t->strip);
        c = (struct ep_cursor){t->strip.text.ptr,
                               t->strip.text.ptr + t->strip.text.len};
        rc = 0;
        if (ep_cursor_lit(&c, "#"))
            rc = take_comment(t, c, r);
        else if (is_row(t->strip.text))
            rc = take_row(t, t->strip.text, err);
        if (rc)
            return rc;
    }
}
