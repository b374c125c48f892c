/* SPDX-License-Identifier: Apache-2.0 */
/*
 * import_deepspeed.c - logs of DeepSpeed: its throughput timer, and the times
 * that wall_clock_breakdown prints.
 *
 *     [2023-11-07 01:55:23,714] [INFO] [timer.py:260:stop]
 *         epoch=0/micro_step=40/global_step=10, RunningAvgSamplesPerSec=25.02,
 *         CurrSamplesPerSec=25.7, MemAllocated=4.32GB, MaxMemAllocated=38.49GB
 *     [2024-04-21 02:45:24,651] [INFO] [logging.py:96:log_dist] [Rank 0] time
 *         (ms) | fwd: 3859.30 | bwd: 11267.97 | bwd_inner: 10508.40 | ...
 *     [2024-04-21 02:45:24,651] ... [Rank 0] step=2, skipped=0, lr=[...
 *     [2024-04-21 02:40:00,000] ... train_batch_size ............. 1024
 *
 * Nothing says how long a step took. It can be known in two ways, both without
 * the time in which data are waited for:
 *
 *     train_batch_size / CurrSamplesPerSec     if the settings were printed
 *     fwd + bwd + step                         of wall_clock_breakdown
 *
 * The second has no number of the step, so it is counted from the line before
 * that has one; a log without one gives no such steps. Where both are there
 * the first counts. Both are of the job: the ranks synchronise.
 *
 * The other values are gauges: deepspeed_timer_fwd and so on in seconds, with
 * the rank that wrote them; deepspeed_samples_per_second, the same with _mean;
 * deepspeed_memory_allocated, the same with _max. "GB" are GiB there.
 *
 * [1] deepspeedai/DeepSpeed: utils/timer.py, runtime/engine.py.
 */
#include "config.h"

#include "record/importers.h"
#include "record/log_text.h"

#include <math.h>
#include <string.h>

#define THROUGHPUT "RunningAvgSamplesPerSec="
#define GIB 1073741824.0

enum doing { NOTHING, STEP, RATES, TIMES };

struct deepspeed {
    struct ep_log log;
    enum doing doing, after; /* after: the step */
    struct ep_cursor rest;   /* of RATES */
    struct ep_log_times times;
    double ts, dur;
    bool own;        /* the line has a time of its own */
    int64_t number;  /* of the step to tell */
    int64_t step;    /* that was named last, or counted; -1: none */
    bool named;      /* and not counted on from yet */
    int64_t told;    /* the step that the throughput told; -1: none */
    int64_t counted; /* the rank whose times are counted; -2: none yet */
    int64_t batch;   /* train_batch_size; 0: unknown */
};

/* ==== Throughput ==== */

/* "CurrSamplesPerSec=25.7" behind rest, if it is there and positive. */
static bool current_rate(struct ep_cursor c, double *rate)
{
    return ep_cursor_find(&c, "CurrSamplesPerSec=") &&
           ep_log_number(&c, 0, rate) && *rate > 0 &&
           (c.p == c.end || *c.p == ',' || *c.p == ' ');
}

static bool begin_rates(struct deepspeed *self, struct ep_cursor c)
{
    const char *mark = ep_log_find(&c, THROUGHPUT);
    struct ep_cursor before = {c.p, mark};
    double rate;

    if (!mark)
        return false;
    self->ts = ep_log_time(&self->log, mark, &self->own);
    self->rest = (struct ep_cursor){mark, c.end};
    self->doing = RATES;
    if (!ep_cursor_find(&before, "global_step=") ||
        !ep_cursor_uint(&before, &self->number))
        return true;
    self->step = self->number;
    self->named = true;
    if (!self->batch || !current_rate(self->rest, &rate))
        return true;
    self->dur = (double)self->batch / rate;
    self->told = self->number;
    self->doing = STEP;
    self->after = RATES;
    return true;
}

static const struct rate {
    const char *key, *name, *unit, *suffix;
    double factor;
} rates[] = {
    {"RunningAvgSamplesPerSec", "deepspeed_samples_per_second_mean", "1/s", "",
     1},
    {"CurrSamplesPerSec", "deepspeed_samples_per_second", "1/s", "", 1},
    {"MemAllocated", "deepspeed_memory_allocated", "B", "GB", GIB},
    {"MaxMemAllocated", "deepspeed_memory_allocated_max", "B", "GB", GIB},
};

/* "Key=value" up to a comma. */
static bool take_rate(struct ep_span item, const struct rate **found,
                      double *value)
{
    struct ep_cursor c = {item.ptr, item.ptr + item.len};

    for (size_t i = 0; i < sizeof rates / sizeof rates[0]; i++) {
        struct ep_cursor at = c;

        if (!ep_cursor_lit(&at, rates[i].key) || !ep_cursor_lit(&at, "="))
            continue;
        *found = &rates[i];
        return ep_log_number(&at, 0, value) &&
               ep_cursor_lit(&at, rates[i].suffix) && at.p == at.end;
    }
    return false;
}

static bool next_rate(struct deepspeed *self, struct ep_record *r)
{
    struct ep_cursor *c = &self->rest;

    while (c->p < c->end) {
        const char *begin, *comma;
        const struct rate *rate;
        double value;

        ep_cursor_blanks(c);
        begin = c->p;
        comma = memchr(begin, ',', (size_t)(c->end - begin));
        c->p = comma ? comma + 1 : c->end;
        while (!comma && c->end > begin && c->end[-1] == ' ')
            c->end--;
        if (!take_rate(
                (struct ep_span){begin,
                                 (size_t)((comma ? comma : c->end) - begin)},
                &rate, &value))
            continue;
        value *= rate->factor;
        if (!isfinite(value))
            continue;
        ep_log_gauge(&self->log, self->ts, rate->name, value, rate->unit, r);
        if (rate->factor > 1) /* of a device, not of the job */
            ep_log_origin(&self->log, -1, r);
        return true;
    }
    self->doing = NOTHING;
    return false;
}

/* ==== Times ==== */

/* fwd + bwd + step, or NaN. */
static double sum_of(struct ep_log_times *t)
{
    struct ep_cursor c = t->rest;
    double forward = (double)NAN, backward = forward, update = forward;
    struct ep_log_cell cell;

    for (int i = 0; ep_log_times_cell(t, i, &c, &cell, NULL); i++) {
        if (EP_SPAN_IS(cell.key, "fwd"))
            (void)ep_log_value(cell.value, -3, &forward);
        else if (EP_SPAN_IS(cell.key, "bwd"))
            (void)ep_log_value(cell.value, -3, &backward);
        else if (EP_SPAN_IS(cell.key, "step"))
            (void)ep_log_value(cell.value, -3, &update);
    }
    /* they are multiples of 10 us: the double nearest to the sum */
    return rint((forward + backward + update) * 1e8) / 1e8;
}

static bool begin_times(struct deepspeed *self)
{
    int64_t rank;

    if (!ep_log_times(&self->log, &self->times))
        return false;
    self->times.prefix = "deepspeed_timer_";
    self->doing = TIMES;
    rank = self->times.rank >= 0 ? self->times.rank : self->log.line.rank;
    self->dur = sum_of(&self->times);
    if (isnan(self->dur))
        return true;
    if (self->counted == -2)
        self->counted = rank;
    if (self->counted != rank || self->step < 0)
        return true;
    if (!self->named && self->step < INT64_C(1) << 52)
        self->step++;
    self->named = false;
    self->number = self->step;
    if (!(self->dur > 0) || self->told == self->number)
        return true;
    self->ts = self->times.ts;
    self->own = self->times.own;
    self->doing = STEP;
    self->after = TIMES;
    return true;
}

static bool next_step(struct deepspeed *self, struct ep_record *r)
{
    double begun =
        self->own ? ep_log_begun(&self->log, self->ts, self->dur) : self->ts;

    self->doing = self->after;
    if (!isfinite(self->dur))
        return false;
    ep_log_record(&self->log, EP_STEP, begun, r);
    ep_record_set_int(r, EP_K_STEP, self->number);
    ep_record_set_num(r, EP_K_DUR, self->dur);
    return true;
}

/* ==== Lines ==== */

/* "[Rank 0] step=2, skipped=0" */
static bool take_number(struct deepspeed *self, struct ep_cursor c)
{
    int64_t n;

    if (!ep_cursor_find(&c, " step=") || !ep_cursor_uint(&c, &n) ||
        !ep_cursor_lit(&c, ", skipped="))
        return false;
    self->step = n;
    self->named = true;
    return true;
}

/* "train_batch_size ............. 1024" */
static void take_batch(struct deepspeed *self, struct ep_cursor c)
{
    int64_t n;

    if (!ep_cursor_find(&c, "train_batch_size"))
        return;
    (void)ep_cursor_lit(&c, "\"");
    while (c.p < c.end && (*c.p == ' ' || *c.p == '.' || *c.p == ':'))
        c.p++;
    if (!ep_cursor_uint(&c, &n) || n <= 0)
        return;
    if (c.p == c.end || *c.p == ' ' || *c.p == ',')
        self->batch = n;
}

static void begin_line(void *ctx)
{
    struct deepspeed *self = ctx;
    struct ep_span text = self->log.line.text;
    struct ep_cursor c = {text.ptr, text.ptr + text.len};

    if (!begin_rates(self, c) && !begin_times(self) && !take_number(self, c))
        take_batch(self, c);
}

static bool follows(const char *p, const char *end, const char *text)
{
    size_t n = strlen(text);

    return (size_t)(end - p) >= n && memcmp(p, text, n) == 0;
}

/* "time (ms) |", "PerSec=", " step=", "train_batch_size" */
static bool is_candidate(const void *ctx, const struct ep_line *line)
{
    static const struct ep_log_pairs pairs = {
        {{'m', 's'}, {'c', '='}, {'p', '='}, {'h', '_'}}};
    const char *begin = line->ptr, *p = begin, *end = p + line->len;

    (void)ctx;
    while ((p = ep_log_pair(p, end, &pairs)) != NULL) {
        if (*p == 'm' ? follows(p, end, "ms) |")
            : *p == 'h'
                ? p - begin >= 10 && follows(p - 10, end, "train_batch_size")
            : *p == 'c' ? p - begin >= 5 && follows(p - 5, end, "PerSec=")
                        : p - begin >= 4 && follows(p - 4, end, " step="))
            return true;
        p++;
    }
    return false;
}

static bool next_part(struct deepspeed *self, struct ep_record *r)
{
    switch (self->doing) {
    case NOTHING:
        return false;
    case STEP:
        return next_step(self, r);
    case RATES:
        return next_rate(self, r);
    case TIMES:
        if (ep_log_next_time(&self->log, &self->times, r))
            return true;
        self->doing = NOTHING;
    }
    return false;
}

static bool next_record(void *ctx, struct ep_record *r)
{
    struct deepspeed *self = ctx;

    while (self->doing != NOTHING)
        if (next_part(self, r))
            return true;
    return false;
}

static void init(void *ctx)
{
    struct deepspeed *self = ctx;

    self->step = self->told = -1;
    self->counted = -2;
}

static const struct ep_log_importer how = {
    .size = sizeof(struct deepspeed),
    .init = init,
    .wants = is_candidate,
    .line = begin_line,
    .next = next_record,
};

static void *begin(struct ep_source *s)
{
    return ep_log_begin(&how, s);
}

static int next(void *self, struct ep_source *s, struct ep_record *r,
                struct ep_error *err)
{
    return ep_log_next(&how, self, s, r, err);
}

static int sniff(const char *head, size_t len, const char *name)
{
    const struct ep_cursor c = {head, head + len};

    (void)name;
    if (len && *head == '{')
        return 0;
    if (ep_log_find(&c, THROUGHPUT) || ep_log_find(&c, "time (ms) | fwd") ||
        ep_log_find(&c, "time (ms) | optimizer_"))
        return 70;
    if (ep_log_find(&c, "DeepSpeed info: version") ||
        ep_log_find(&c, "[INFO] [real_accelerator.py"))
        return 35;
    return 0;
}

const struct ep_importer ep_import_deepspeed = {
    .name = "deepspeed",
    .what = "logs of DeepSpeed",
    .sniff = sniff,
    .begin = begin,
    .next = next,
    .end = ep_log_end,
};
