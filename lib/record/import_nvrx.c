/* SPDX-License-Identifier: Apache-2.0 */
/*
 * import_nvrx.c - what the straggler detection of NVIDIA Resiliency Extension
 * writes into a log, through its callbacks for Lightning and others.
 *
 *     GPU relative performance:
 *      Worst performing 3/32 ranks:
 *       Rank=7 Node=n1 Score=0.61
 *     GPU individual performance:
 *       Rank=7 Node=n1 Score=0.98
 *     STRAGGLER DETECTION WARNING: Some GPUs have worse relative performance.
 *         Affected ranks: {StragglerId(rank=7, node='n1')}
 *
 * A score is the reference's median time over the rank's own: 1 is as fast,
 * 0.5 takes twice the time. The reference is the fastest rank (relative) or
 * the rank's own past (individual). They become gauges nvrx_gpu_relative_perf
 * and nvrx_gpu_individual_perf; each rank of a warning a gauge of value 1,
 * nvrx_gpu_relative_straggler or nvrx_gpu_individual_straggler: which threshold
 * was used, and since when the rank is slow, is not said, so it is no event.
 *
 * The lines with the scores have no time of their own: log_text.h says which
 * is taken. The prefix of a line says who wrote the report, not whom it is of.
 * An older form of the warning has numbers only: "[76, 13, 45]".
 *
 * [1] NVIDIA/nvidia-resiliency-ext: ptl_resiliency/straggler_det_callback.py.
 */
#include "config.h"

#include "record/importers.h"
#include "record/log_text.h"

#include <string.h>

#define WARNING "STRAGGLER DETECTION WARNING: Some GPUs "

enum scores { UNKNOWN, RELATIVE, INDIVIDUAL };

struct nvrx {
    struct ep_log log;
    enum scores scores;    /* what the scores that follow are */
    struct ep_cursor rest; /* of a warning */
    const char *name;      /* of the gauges in it; NULL: none is left */
    double ts;
    bool scored; /* the line is a score */
    struct ep_span node;
    int64_t rank;
    double score;
};

static bool set_who(int64_t rank, struct ep_span node, struct ep_record *r)
{
    struct ep_span host;

    ep_record_set_int(r, EP_K_RANK, rank);
    if (!node.len || *node.ptr == '<') /* <unk>, <notset> */
        return true;
    host = ep_nccl_host(node);
    if (host.len)
        ep_record_set_span(r, EP_K_HOST, host);
    return true;
}

/* "  Rank=7 Node=n1 Score=0.61" */
static bool take_score(struct nvrx *self, struct ep_cursor c)
{
    const char *mark = ep_log_find(&c, "Rank=");

    if (!mark || self->scores == UNKNOWN || !ep_cursor_find(&c, "Rank=") ||
        !ep_cursor_uint(&c, &self->rank) || !ep_cursor_lit(&c, " Node="))
        return false;
    self->node = ep_cursor_word(&c);
    if (!ep_cursor_lit(&c, " Score=") || !ep_log_number(&c, 0, &self->score))
        return false;
    ep_cursor_blanks(&c);
    if (c.p < c.end)
        return false;
    self->ts = ep_log_time(&self->log, mark, NULL);
    self->scored = true;
    return true;
}

static bool next_score(struct nvrx *self, struct ep_record *r)
{
    self->scored = false;
    ep_log_gauge(&self->log, self->ts,
                 self->scores == RELATIVE ? "nvrx_gpu_relative_perf"
                                          : "nvrx_gpu_individual_perf",
                 self->score, "1", r);
    return set_who(self->rank, self->node, r);
}

static bool take_header(struct nvrx *self, struct ep_cursor c)
{
    if (ep_log_find(&c, "GPU relative performance:"))
        self->scores = RELATIVE;
    else if (ep_log_find(&c, "GPU individual performance:"))
        self->scores = INDIVIDUAL;
    else
        return false;
    return true;
}

static bool begin_warning(struct nvrx *self, struct ep_cursor c)
{
    const char *mark = ep_log_find(&c, WARNING);

    if (!mark || !ep_cursor_find(&c, WARNING))
        return false;
    if (ep_cursor_lit(&c, "have worse relative "))
        self->name = "nvrx_gpu_relative_straggler";
    else if (ep_cursor_lit(&c, "performance dropped"))
        self->name = "nvrx_gpu_individual_straggler";
    else
        return false;
    if (!ep_cursor_find(&c, "Affected ranks: ") ||
        !(ep_cursor_lit(&c, "{") || ep_cursor_lit(&c, "[")))
        return false;
    self->ts = ep_log_time(&self->log, mark, NULL);
    self->rest = c;
    return true;
}

/* "StragglerId(rank=7, node='n1')" or "7" */
static bool take_straggler(struct ep_cursor *c, int64_t *rank,
                           struct ep_span *node)
{
    const char *begin;
    char quote;

    *node = (struct ep_span){NULL, 0};
    if (!ep_cursor_lit(c, "StragglerId(rank="))
        return ep_cursor_uint(c, rank);
    if (!ep_cursor_uint(c, rank) || !ep_cursor_lit(c, ", node="))
        return false;
    if (ep_cursor_lit(c, "None)"))
        return true;
    if (c->p == c->end || (*c->p != '\'' && *c->p != '"'))
        return false;
    quote = *c->p++;
    begin = c->p;
    while (c->p < c->end && *c->p != quote)
        c->p++;
    *node = (struct ep_span){begin, (size_t)(c->p - begin)};
    if (c->p < c->end)
        c->p++;
    return ep_cursor_lit(c, ")");
}

static bool next_straggler(struct nvrx *self, struct ep_record *r)
{
    struct ep_cursor *c = &self->rest;
    const char *name = self->name;
    struct ep_span node;
    int64_t rank;
    bool good = take_straggler(c, &rank, &node);

    if (!good || !ep_cursor_lit(c, ", "))
        self->name = NULL;
    if (!good ||
        (!self->name && !ep_cursor_lit(c, "}") && !ep_cursor_lit(c, "]")))
        return false;
    ep_log_gauge(&self->log, self->ts, name, 1, "1", r);
    return set_who(rank, node, r);
}

/* "GPU relative", "STRAGGLER", "Rank=" */
static bool is_candidate(const void *ctx, const struct ep_line *line)
{
    static const struct ep_log_pairs pairs = {
        {{'P', 'U'}, {'G', 'G'}, {'k', '='}, {'k', '='}}};
    const char *p = line->ptr, *end = p + line->len;

    (void)ctx;
    while ((p = ep_log_pair(p, end, &pairs)) != NULL) {
        if (*p != 'P' ||
            (end - p > 3 && p[2] == ' ' && (p[3] == 'r' || p[3] == 'i')))
            return true;
        p++;
    }
    return false;
}

static void begin_line(void *ctx)
{
    struct nvrx *self = ctx;
    struct ep_span text = self->log.line.text;
    struct ep_cursor c = {text.ptr, text.ptr + text.len};

    if (!take_score(self, c) && !take_header(self, c))
        (void)begin_warning(self, c);
}

static bool next_record(void *ctx, struct ep_record *r)
{
    struct nvrx *self = ctx;

    if (self->scored)
        return next_score(self, r);
    while (self->name)
        if (next_straggler(self, r))
            return true;
    return false;
}

static const struct ep_log_importer how = {
    .size = sizeof(struct nvrx),
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
    if (ep_log_find(&c, "GPU relative performance:") ||
        ep_log_find(&c, "GPU individual performance:") ||
        ep_log_find(&c, WARNING))
        return 60;
    return 0;
}

const struct ep_importer ep_import_nvrx = {
    .name = "nvrx",
    .what = "straggler reports of NVIDIA Resiliency Extension, in a log",
    .sniff = sniff,
    .begin = begin,
    .next = next,
    .end = ep_log_end,
};
