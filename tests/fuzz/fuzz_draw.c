/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_draw.c - any bytes as lines of records, drawn in every way there is.
 *
 * The first byte says in which size and colours. Records that parse are handed
 * over as skewplot does it. What comes out has to be sound: SVG that nests and
 * stands alone (svg_check.h), text without control characters but those of
 * colours, both small.
 */
#include "config.h"

#include "base/buf.h"
#include "draw/plot.h"
#include "record/record.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../unit/svg_check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MOST 2000000

static void require(int condition)
{
    if (!condition)
        abort();
}

static void take_steps(struct ep_plots *p, const struct ep_record *r)
{
    struct ep_plot_step s = {
        .job = ep_record_str(r, EP_K_JOB),
        .worker = ep_record_str(r, EP_K_WORKER),
        .rank = ep_record_int(r, EP_K_RANK, -1),
        .step = ep_record_int(r, EP_K_STEP, -1),
        .ts = ep_record_num(r, EP_K_TS),
        .dur = ep_record_num(r, EP_K_DUR),
        .busy = ep_record_num(r, EP_K_BUSY),
    };
    struct ep_plot_loss l = {
        .job = s.job,
        .worker = s.worker,
        .split = ep_record_str(r, EP_K_SPLIT),
        .rank = s.rank,
        .step = s.step,
        .ts = s.ts,
        .value = ep_record_num(r, EP_K_VALUE),
    };

    if (r->type == EP_STEP)
        ep_plots_step(p, &s);
    else
        ep_plots_loss(p, &l);
}

static void take_span(struct ep_plots *p, const struct ep_record *r)
{
    struct ep_plot_span s = {
        .job = ep_record_str(r, EP_K_JOB),
        .op = ep_record_str(r, EP_K_OP),
        .ideal = ep_record_has(r, EP_K_WHAT),
        .rank = ep_record_int(r, EP_K_RANK, -1),
        .dp = ep_record_int(r, EP_K_DP, -1),
        .pp = ep_record_int(r, EP_K_PP, -1),
        .tp = ep_record_int(r, EP_K_TP, -1),
        .step = ep_record_int(r, EP_K_STEP, -1),
        .mb = ep_record_int(r, EP_K_MB, -1),
        .ts = ep_record_num(r, EP_K_TS),
        .dur = ep_record_num(r, EP_K_DUR),
    };

    ep_plots_span(p, &s);
}

static void take(struct ep_plots *p, const struct ep_record *r)
{
    struct ep_plot_event e = {
        .job = ep_record_str(r, EP_K_JOB),
        .kind = ep_record_str(r, EP_K_KIND),
        .scope = ep_record_str(r, EP_K_SCOPE),
        .id = ep_record_str(r, EP_K_ID),
        .cause = ep_record_str(r, EP_K_CAUSE),
        .step = ep_record_int(r, EP_K_STEP, -1),
        .since = ep_record_num(r, EP_K_SINCE),
        .factor = ep_record_num(r, EP_K_FACTOR),
    };
    struct ep_plot_whatif w = {e.job, ep_record_str(r, EP_K_WHAT), e.id,
                               ep_record_num(r, EP_K_SLOWDOWN)};
    struct ep_plot_link l = {ep_record_str(r, EP_K_SRC),
                             ep_record_str(r, EP_K_DST),
                             ep_record_num(r, EP_K_VALUE)};

    if (r->type == EP_STEP || r->type == EP_LOSS)
        take_steps(p, r);
    else if (r->type == EP_SPAN)
        take_span(p, r);
    else if (r->type == EP_EVENT)
        ep_plots_event(p, &e);
    else if (r->type == EP_WHATIF)
        ep_plots_whatif(p, &w);
    else if (r->type == EP_LINK)
        ep_plots_link(p, &l);
}

/* Only '\n', "\033[" of colours, and what can be printed. */
static void check_text(const struct ep_buf *b, bool utf8)
{
    for (size_t i = 0; i < b->len; i++) {
        unsigned char c = (unsigned char)b->ptr[i];

        require(c == '\n' || (c >= 0x20 && c != 0x7f) ||
                (c == 0x1b && b->ptr[i + 1] == '['));
        require(utf8 || c < 0x80);
    }
    require(b->len < MOST);
}

/* how: sizes, colours, steps or time. */
static void draw(struct ep_plots *p, int kind, unsigned how)
{
    struct ep_plot_choice choice = {
        .svg = true, .by_step = how & 1, .step = -1};
    struct ep_look look = {.width = how & 2   ? EP_LOOK_MIN
                                    : how & 4 ? EP_LOOK_MAX
                                              : 0,
                           .height = how & 8 ? EP_LOOK_MIN / 2 : 0,
                           .term = {how & 16 ? 20 : 100, how & 32 ? 8 : 30,
                                    how & 64,
                                    how & 128 ? EP_DEPTH_TRUE : EP_DEPTH_NONE}};
    struct ep_error err;
    struct ep_buf b;

    ep_buf_init(&b);
    require(ep_plots_draw(p, (enum ep_plot_kind)kind, &choice, &look, &b,
                          &err) == 0);
    require(b.len < MOST && svg_is_sound(&b));
    choice.svg = false;
    ep_buf_reset(&b);
    require(ep_plots_draw(p, (enum ep_plot_kind)kind, &choice, &look, &b,
                          &err) == 0);
    check_text(&b, look.term.utf8);
    ep_buf_free(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ep_record_parser *parser;
    struct ep_plots *p;
    const char *at, *end;
    struct ep_record r;

    if (!size)
        return 0;
    (void)setenv("TZ", "UTC", 1);
    tzset();
    parser = ep_record_parser_new();
    p = ep_plots_new((1u << EP_PLOT_KINDS) - 1);
    at = (const char *)data + 1;
    end = (const char *)data + size;
    while (at < end) {
        const char *nl = memchr(at, '\n', (size_t)(end - at));
        size_t len = (size_t)((nl ? nl : end) - at);

        if (ep_record_parse(parser, at, len, &r, NULL) == 0)
            take(p, &r);
        at += len + 1;
    }
    for (int kind = 0; kind < EP_PLOT_KINDS; kind++)
        if (ep_plots_can(p) >> kind & 1)
            draw(p, kind, data[0]);
    require((ep_plots_choose(p) < 0) == (ep_plots_can(p) == 0));
    ep_plots_free(p);
    ep_record_parser_free(parser);
    return 0;
}
