/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_whatif.c - any bytes as records, their spans as a trace: refused with
 * a reason, or replayed. What runs has to run in order, every operation once;
 * results are numbers, or NaN where nothing can be said, and the ideal of an
 * ideal trace is itself. Lines that begin with % name operations (--ops).
 */
#include "config.h"

#include "../unit/replay_span.h"
#include "base/mem.h"
#include "record/record.h"
#include "replay/whatif.h"
#include "replay/whatif_text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int condition)
{
    if (!condition)
        abort();
}

static void take(struct ep_spans *spans, const struct ep_ops *ops,
                 const struct ep_record *r)
{
    struct ep_replay_span s = replay_span_of(ops, r);
    struct ep_error err = {.msg = ""};

    if (s.type >= 0 && ep_ops_role(ops, (size_t)s.type) != EP_OP_IGNORE &&
        ep_spans_add(spans, &s, &err) < 0)
        require(err.msg[0]);
}

static void read_lines(struct ep_spans *spans, struct ep_ops *ops,
                       const char *text, size_t size)
{
    static struct ep_record_parser *parser;
    struct ep_record r;

    if (!parser)
        parser = ep_record_parser_new();
    while (size) {
        const char *nl = memchr(text, '\n', size);
        size_t n = nl ? (size_t)(nl - text) : size;

        if (n && *text == '%')
            (void)!ep_ops_read(ops, text + 1, n - 1, NULL);
        else if (ep_record_parse(parser, text, n, &r, NULL) == 0 &&
                 r.type == EP_SPAN)
            take(spans, ops, &r);
        n += nl != NULL;
        text += n;
        size -= n;
    }
}

/* Every operation runs once, behind those that it waits for. */
static void check_graph(const struct ep_graph *g)
{
    size_t *when = ep_calloc(g->n, sizeof *when), seen = 0;

    for (size_t u = 0; u < g->units; u++) {
        require(g->unit_at[u] < g->unit_at[u + 1]);
        for (uint32_t i = g->unit_at[u]; i < g->unit_at[u + 1]; i++) {
            require(!when[g->member[i]] && !g->skip[g->member[i]]);
            when[g->member[i]] = u + 1;
        }
    }
    for (size_t v = 0; v < g->n; v++) {
        seen += g->skip[v] || when[v];
        for (uint32_t i = g->dep_at[v]; i < g->dep_at[v + 1]; i++)
            require(when[g->dep[i]] && when[g->dep[i]] < when[v]);
    }
    require(seen == g->n);
    free(when);
}

static void check_value(const struct ep_whatif_value *v, size_t steps)
{
    require(!isinf(v->all));
    for (size_t s = 0; s < steps; s++)
        require(!isinf(v->step[s]));
}

static void check_results(const struct ep_graph *g, const struct ep_ops *ops,
                          const struct ep_trace *t)
{
    double *cost = ep_calloc(t->n * t->lanes, sizeof *cost);
    double ideal[EP_OPS_MAX];
    struct ep_whatif_rules rules = EP_WHATIF_RULES;
    struct ep_whatif w;
    struct ep_buf text;

    ep_replay_costs(g, t, cost);
    ep_replay_ideal(g, ops, cost, t->lanes, ideal);
    ep_whatif_run(&w, g, ops, t, cost, ideal);
    require(isfinite(w.time.all) && isfinite(w.ideal) &&
            isfinite(w.traced.all));
    if (w.ideal > 1e-9) {
        check_value(&w.slowdown, w.steps);
        for (size_t d = 0; d < w.dp; d++)
            check_value(&w.of_dp[d], w.steps);
        ep_buf_init(&text);
        ep_whatif_text(&w, ops, t->step, ep_whatif_judge(&w, ops, &rules),
                       &text);
        require(text.len > 0 && text.ptr[text.len - 1] == '\n');
        ep_buf_free(&text);
    }
    ep_whatif_free(&w);
    free(cost);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ep_spans *spans = ep_spans_new();
    struct ep_ops *ops = ep_ops_new();
    struct ep_error err = {.msg = ""};
    struct ep_trace t;
    struct ep_graph g;

    read_lines(spans, ops, (const char *)data, size);
    if (ep_trace_make(&t, spans, ops, &err) == 0) {
        if (ep_graph_build(&g, t.op, t.n, ops, t.step[0], &err) == 0) {
            check_graph(&g);
            check_results(&g, ops, &t);
            ep_graph_free(&g);
        } else {
            require(strncmp(err.msg, "cannot replay", 13) == 0);
        }
        ep_trace_free(&t);
    } else {
        require(strncmp(err.msg, "cannot replay", 13) == 0);
    }
    ep_spans_free(spans);
    ep_ops_free(ops);
    return 0;
}
