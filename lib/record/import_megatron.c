/* SPDX-License-Identifier: Apache-2.0 */
/*
 * import_megatron.c - logs of Megatron-LM and its forks: steps, losses, timers
 * and stragglers.
 *
 *      [2026-08-22 15:22:22.123456] iteration      182/  250000 | consumed
 *         samples: 186368 | elapsed time per iteration (ms): 12699.3 |
 *         global batch size: 1024 | lm loss: 2.382640E+00 | ...
 *     [2024-09-16 22:59:19][INFO][training_log:661] -  iteration= 1/ 317892 |
 *         consumed_samples= 768 | elapsed_time_per_iteration_ms=29570.0 | ...
 *     (min, max) time across ranks (ms):
 *         forward-backward ........................: (26094.39, 26095.09)
 *      0: INFO:megatron.core.utils:[2024-03-14 23:07:56] | MnRtt/Rnk:
 *         3453.08ms/8 | MxRtt/Rnk: 3468.20ms/0 | MnPwr/Rnk: 601796W/8 | ...
 *      validation loss at iteration 100 | lm loss value: 2.34E+00 | ...
 *
 *   - An iteration line is written by the last rank, for the job: its step and
 *     loss say no rank, whatever prefix it has. The time is that of the end;
 *     elapsed time is the mean since the line before.
 *   - tokens of a step are known to forks that print the sequence length,
 *     those of a loss (all up to then) to forks that print them. FLOP/s are of
 *     one GPU, and how many there are is not said: no flops.
 *   - Older logs have no time at all: log_text.h says what is taken instead.
 *   - Power is in milliwatts though "W" is printed.
 *   - Timers and --log-straggler give gauges: megatron_timer_forward_backward
 *     with _min, _max, or the rank; megatron_straggler_power_max and so on.
 *     "time (ms) | forward-compute: 82.09" is what timers were before 2023.
 *
 * [1] NVIDIA/Megatron-LM: training/training.py, core/timers.py, core/utils.py.
 */
#include "config.h"

#include "base/word.h"
#include "record/importers.h"
#include "record/log_text.h"
#include "record/megatron_timers.h"

#include <math.h>
#include <string.h>

/* What the rest of the line holds. */
enum doing {
    NOTHING,
    STEP,
    LOSS,
    TIMES,    /* "time (ms) |" */
    TIMER,    /* of a list */
    EXTREMES, /* "MnRtt/Rnk: ..." */
    RANKING,  /* "^^^^ Bottom ..." */
};

/* What a cell of an iteration says. */
enum cell { OTHER, ELAPSED, CONSUMED, BATCH, LENGTH, LM_LOSS, SOME_LOSS };

enum { CELLS = 24 };

/* The beginning of a cell that was seen, up to the colon or '='. */
struct known {
    char text[47];
    unsigned char len; /* 0: none */
    enum cell kind;
};

struct megatron {
    struct ep_log log;
    enum doing doing;
    struct ep_megatron_timers timers;
    struct ep_cursor rest;
    struct ep_log_times times;
    double ts, dur, loss; /* dur and loss may be NaN */
    int64_t step, tokens, consumed, batch, length;
    const char *split;
    struct known known[CELLS + 1]; /* by number; the last one is scratch */
};

/* ==== Iterations ==== */

/* "iteration   182/  250000 |": *c goes behind the bar. NULL if there is none,
 * else where it begins. */
static const char *take_iteration(struct ep_cursor *c, int64_t *step)
{
    for (;;) {
        struct ep_cursor at;

        if (!ep_cursor_find(c, "iteration"))
            return NULL;
        at = *c;
        while (at.p < at.end && (*at.p == ' ' || *at.p == '=' || *at.p == ':'))
            at.p++;
        if (!ep_cursor_uint(&at, step))
            continue;
        ep_cursor_blanks(&at);
        if (at.p < at.end && (*at.p == '/' || *at.p == '|')) {
            const char *begin = c->p - strlen("iteration");

            *c = at;
            return ep_cursor_find(c, "|") ? begin : NULL;
        }
    }
}

/* A whole number in a cell, or -1. */
static int64_t whole(struct ep_span cell)
{
    struct ep_span value = ep_log_trim(cell.ptr, cell.ptr + cell.len);
    struct ep_cursor c = {value.ptr, value.ptr + value.len};
    int64_t n;

    return ep_cursor_uint(&c, &n) && c.p == c.end ? n : -1;
}

static bool is_milliseconds(struct ep_span key, size_t from)
{
    struct ep_cursor c = {key.ptr + from, key.ptr + key.len};

    return ep_log_find(&c, "ms") != NULL;
}

/* "lm loss", or another loss if there was none: 2, 1; else 0. */
static int is_loss(struct ep_span key)
{
    if (key.len && ep_log_key(key, "lm loss") == key.len)
        return 2;
    return key.len >= 4 && memcmp(key.ptr + key.len - 4, "loss", 4) == 0;
}

static enum cell kind_of(struct ep_span key)
{
    size_t n = ep_log_key(key, "elapsed time per iteration");

    if (n && is_milliseconds(key, n))
        return ELAPSED;
    if (ep_log_key(key, "consumed tokens"))
        return CONSUMED;
    if (ep_log_key(key, "global batch size"))
        return BATCH;
    if (ep_log_key(key, "actual seqlen"))
        return LENGTH;
    switch (is_loss(key)) {
    case 2:
        return LM_LOSS;
    case 1:
        return SOME_LOSS;
    default:
        return OTHER;
    }
}

/*
 * The next cell, which is number i: what its key says, and its value. The keys
 * of a line are those of the line before, mostly.
 */
static enum cell next_cell(struct megatron *self, int i, struct ep_cursor *c,
                           struct ep_span *value)
{
    struct known *known = &self->known[i < CELLS ? i : CELLS];
    size_t left = (size_t)(c->end - c->p), n = known->len;
    const char *from = c->p, *mid;
    enum cell kind = known->kind;

    if (!n || n > left || memcmp(from, known->text, n) != 0) {
        mid = find3(from, c->end, ':', '=', '|');
        n = (size_t)(mid - from) + (mid < c->end && *mid != '|');
        kind = kind_of(ep_log_trim(from, mid));
        known->len = 0;
        if (n <= sizeof known->text && i < CELLS && mid < c->end &&
            *mid != '|') {
            memcpy(known->text, from, n);
            known->len = (unsigned char)n;
            known->kind = kind;
        }
    }
    mid = find3(from + n, c->end, '|', '|', '|');
    *value = (struct ep_span){from + n, (size_t)(mid - (from + n))};
    c->p = mid < c->end ? mid + 1 : mid;
    return kind;
}

/* What a cell says; *best is how good the loss is that was found. */
static void take_cell(struct megatron *self, enum cell kind, struct ep_span v,
                      int *best)
{
    int how = kind == LM_LOSS ? 2 : kind == SOME_LOSS;

    if (how == 1 && !self->log.whole)
        how = 0; /* the right one may have been cut */
    switch (kind) {
    case OTHER:
        break;
    case ELAPSED:
        (void)ep_log_value(v, -3, &self->dur);
        break;
    case CONSUMED:
        self->consumed = whole(v);
        break;
    case BATCH:
        self->batch = whole(v);
        break;
    case LENGTH:
        self->length = whole(v);
        break;
    case LM_LOSS:
    case SOME_LOSS:
        if (how > *best && ep_log_value(v, 0, &self->loss))
            *best = how;
        break;
    }
}

static bool begin_iteration(struct megatron *self, struct ep_cursor c)
{
    const char *mark = take_iteration(&c, &self->step);
    int best = 0;

    if (!mark)
        return false;
    self->dur = self->loss = (double)NAN;
    self->tokens = self->consumed = self->batch = self->length = -1;
    self->split = "train";
    for (int i = 0; c.p < c.end; i++) {
        struct ep_span value;
        enum cell kind = next_cell(self, i, &c, &value);

        take_cell(self, kind, value, &best);
    }
    if (self->batch > 0 && self->length > 0 &&
        self->batch < (INT64_C(1) << 53) / self->length)
        self->tokens = self->batch * self->length;
    if (!(self->dur >= 0) && isnan(self->loss))
        return false;
    self->rest.p = mark;
    self->doing = STEP;
    return true;
}

static bool next_step(struct megatron *self, struct ep_record *r)
{
    bool own;

    self->doing = LOSS;
    self->ts = ep_log_time(&self->log, self->rest.p, &own);
    if (!(self->dur >= 0))
        return false;
    ep_log_record(
        &self->log, EP_STEP,
        own ? ep_log_begun(&self->log, self->ts, self->dur) : self->ts, r);
    ep_record_set_int(r, EP_K_STEP, self->step);
    ep_record_set_num(r, EP_K_DUR, self->dur);
    if (self->tokens >= 0)
        ep_record_set_int(r, EP_K_TOKENS, self->tokens);
    return true;
}

static bool next_loss(struct megatron *self, struct ep_record *r)
{
    self->doing = NOTHING;
    if (isnan(self->loss))
        return false;
    ep_log_record(&self->log, EP_LOSS, self->ts, r);
    ep_record_set_int(r, EP_K_STEP, self->step);
    ep_record_set_num(r, EP_K_VALUE, self->loss);
    if (self->consumed >= 0)
        ep_record_set_int(r, EP_K_TOKENS, self->consumed);
    ep_record_set_str(r, EP_K_SPLIT, self->split);
    return true;
}

/* " validation loss at iteration 100 on test set | lm loss value: 2.34E+00" */
static bool begin_validation(struct megatron *self, struct ep_cursor c)
{
    const char *mark = ep_log_find(&c, "validation loss at iteration ");
    struct ep_log_cell cell;
    struct ep_cursor head;

    if (!mark || !ep_cursor_find(&c, "iteration ") ||
        !ep_cursor_uint(&c, &self->step))
        return false;
    head = (struct ep_cursor){c.p, c.p};
    if (!ep_cursor_find(&c, "|"))
        return false;
    head.end = c.p;
    self->split = ep_log_find(&head, "test") ? "test" : "valid";
    while (ep_log_next_cell(&c, &cell)) {
        if (cell.key.len < 10 || !ep_log_value(cell.value, 0, &self->loss) ||
            memcmp(cell.key.ptr + cell.key.len - 10, "loss value", 10) != 0)
            continue;
        self->consumed = -1;
        self->ts = ep_log_time(&self->log, mark, NULL);
        self->doing = LOSS;
        return true;
    }
    return false;
}

/* ==== Stragglers ==== */

#define THROUGHPUT "megatron_straggler_throughput"

static const struct metric {
    const char *key, *name, *unit;
    int exp10; /* of what is printed */
} metrics[] = {
    {"MnRtt/Rnk", "megatron_straggler_time_min", "s", -3},
    {"MxRtt/Rnk", "megatron_straggler_time_max", "s", -3},
    {"MnPwr/Rnk", "megatron_straggler_power_min", "W", -3},
    {"MxPwr/Rnk", "megatron_straggler_power_max", "W", -3},
    {"MnTmp/Rnk", "megatron_straggler_temperature_min", "degC", 0},
    {"MxTmp/Rnk", "megatron_straggler_temperature_max", "degC", 0},
    {"MnUtl/Rnk", "megatron_straggler_utilization_min", "1", -2},
    {"MxUtl/Rnk", "megatron_straggler_utilization_max", "1", -2},
    {"MnClk/Rnk", "megatron_straggler_clock_min", "Hz", 6},
    {"MxClk/Rnk", "megatron_straggler_clock_max", "Hz", 6},
    {"MnDRtt/Rnk", "megatron_straggler_data_time_min", "s", -3},
    {"MxDRtt/Rnk", "megatron_straggler_data_time_max", "s", -3},
    {"MnEtpt/Rnk", THROUGHPUT "_min", "FLOP/s", 12},
    {"MxEtpt/Rnk", THROUGHPUT "_max", "FLOP/s", 12},
};

static bool begin_extremes(struct megatron *self, struct ep_cursor c)
{
    const char *mark = ep_log_find(&c, "MnRtt/Rnk:");

    if (!mark)
        return false;
    self->ts = ep_log_time(&self->log, mark, NULL);
    self->rest = (struct ep_cursor){mark, c.end};
    self->doing = EXTREMES;
    return true;
}

/* "3453.08ms/8" or "296.02/0" */
static bool take_ranked(struct ep_cursor *c, int exp10, double *value,
                        int64_t *rank)
{
    if (!ep_log_number(c, exp10, value))
        return false;
    while (c->p < c->end && *c->p != '/' && *c->p != ' ' && *c->p != ',')
        c->p++;
    return ep_cursor_lit(c, "/") && ep_cursor_uint(c, rank);
}

static bool next_extreme(struct megatron *self, struct ep_record *r)
{
    struct ep_log_cell cell;

    while (ep_log_next_cell(&self->rest, &cell)) {
        struct ep_cursor c = {cell.value.ptr, cell.value.ptr + cell.value.len};
        const struct metric *m = NULL;
        int64_t rank;
        double value;

        for (size_t i = 0; i < sizeof metrics / sizeof metrics[0]; i++)
            if (ep_span_eq(cell.key, metrics[i].key))
                m = &metrics[i];
        if (!m || !take_ranked(&c, m->exp10, &value, &rank) || c.p != c.end)
            continue;
        ep_log_gauge(&self->log, self->ts, m->name, value, m->unit, r);
        ep_record_set_int(r, EP_K_RANK, rank);
        return true;
    }
    self->doing = NOTHING;
    return false;
}

/* "^^^^ Bottom 4 Ranks with lowest  Etpt(TF): 296.02/0, 296.17/2," */
static bool begin_ranking(struct megatron *self, struct ep_cursor c)
{
    const char *mark = ep_log_find(&c, "^^^^ ");

    if (!mark || !ep_cursor_find(&c, "Etpt(TF):"))
        return false;
    self->ts = ep_log_time(&self->log, mark, NULL);
    self->rest = c;
    self->doing = RANKING;
    return true;
}

static bool next_ranked(struct megatron *self, struct ep_record *r)
{
    int64_t rank;
    double value;

    ep_cursor_blanks(&self->rest);
    if (!take_ranked(&self->rest, 12, &value, &rank)) {
        self->doing = NOTHING;
        return false;
    }
    (void)ep_cursor_lit(&self->rest, ",");
    ep_log_gauge(&self->log, self->ts, THROUGHPUT, value, "FLOP/s", r);
    ep_record_set_int(r, EP_K_RANK, rank);
    return true;
}

/* ==== Lines ==== */

static bool begin_times(struct megatron *self)
{
    if (!ep_log_times(&self->log, &self->times))
        return false;
    self->times.prefix =
        self->times.rank >= 0 ? "deepspeed_timer_" : "megatron_timer_";
    self->doing = TIMES;
    return true;
}

static void begin_line(void *ctx)
{
    struct megatron *self = ctx;
    struct ep_span text = self->log.line.text;
    struct ep_cursor c = {text.ptr, text.ptr + text.len};

    if (begin_iteration(self, c))
        self->timers.left = 0;
    else if (ep_megatron_timers_line(&self->timers, &self->log))
        self->doing = TIMER;
    else
        (void)(begin_times(self) || begin_extremes(self, c) ||
               begin_ranking(self, c) || begin_validation(self, c));
}

/* Is there more in the line? */
static bool go_on(struct megatron *self, bool more)
{
    if (!more)
        self->doing = NOTHING;
    return more;
}

static bool next_part(struct megatron *self, struct ep_record *r)
{
    switch (self->doing) {
    case NOTHING:
        return false;
    case STEP:
        return next_step(self, r);
    case LOSS:
        return next_loss(self, r);
    case TIMES:
        return go_on(self, ep_log_next_time(&self->log, &self->times, r));
    case TIMER:
        return go_on(self,
                     ep_megatron_timers_next(&self->timers, &self->log, r));
    case EXTREMES:
        return next_extreme(self, r);
    case RANKING:
        return next_ranked(self, r);
    }
    return false;
}

static bool next_record(void *ctx, struct ep_record *r)
{
    struct megatron *self = ctx;

    while (self->doing != NOTHING)
        if (next_part(self, r))
            return true;
    return false;
}

/* "(ms)", "_ms=", "3453.08ms/8", "^^^^", "lm loss PPL"; a list of timers */
static bool is_candidate(const void *ctx, const struct ep_line *line)
{
    static const struct ep_log_pairs pairs = {
        {{'m', 's'}, {'^', '^'}, {'P', 'P'}, {'m', 's'}}};
    const struct megatron *self = ctx;
    const char *p = line->ptr, *end = p + line->len;

    if (self->timers.left)
        return true;
    while ((p = ep_log_pair(p, end, &pairs)) != NULL) {
        char third = '\0';

        if (p + 2 < end)
            third = p[2];
        if (*p == 'm' ? third == ')' || third == '=' || third == '/'
                      : third == '^' || third == 'L')
            return true;
        p++;
    }
    return false;
}

static const struct ep_log_importer how = {
    .size = sizeof(struct megatron),
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
    if (ep_log_find(&c, "elapsed time per iteration (ms):") ||
        ep_log_find(&c, "elapsed_time_per_iteration_ms=") ||
        ep_log_find(&c, "MnRtt/Rnk:") || ep_log_find(&c, "across ranks (ms):"))
        return 75;
    if (ep_log_find(&c, "megatron.core.") || ep_log_find(&c, "^^^^ Bottom ") ||
        ep_log_find(&c, "validation loss at iteration ") ||
        ep_log_find(&c, "--- arguments ---"))
        return 40;
    return ep_log_find(&c, "time (ms) |") ? 20 : 0;
}

const struct ep_importer ep_import_megatron = {
    .name = "megatron",
    .what = "logs of Megatron-LM and its forks",
    .sniff = sniff,
    .begin = begin,
    .next = next,
    .end = ep_log_end,
};
