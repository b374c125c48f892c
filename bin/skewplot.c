/* SPDX-License-Identifier: Apache-2.0 */
/*
 * skewplot - the picture of it: pace, heat maps, timelines, links, loss.
 *
 * Options and wiring only: records are handed to draw/plot.h, which chooses
 * and draws.
 */
#include "config.h"

#include "base/buf.h"
#include "base/cli.h"
#include "base/clock.h"
#include "draw/plot.h"
#include "record/filter.h"
#include "record/select.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { FORMAT_SVG, FORMAT_TEXT };
enum { COLOUR_AUTO, COLOUR_NEVER, COLOUR_256, COLOUR_TRUE };
enum { X_TIME, X_STEP };

static struct {
    struct ep_filter_options io;
    int kind, colour, x;
    int64_t step, width, height;
    const char *title, *since, *until;
    struct ep_opt_list where;
} opt = {.io = {.format = -1}, .kind = -1, .step = -1};

static const struct ep_opt options[] = {
    {'f', "format", EP_OPT_CHOICE, &opt.io.format, "svg|text",
     "form of the picture [text on a terminal]", 0, 0},
    {'k', "kind", EP_OPT_CHOICE, &opt.kind,
     "heat|ranks|pace|timeline|links|loss", "what to draw [by the input]", 0,
     0},
    {'o', "output", EP_OPT_STRING, &opt.io.output, "FILE",
     "write to FILE, whole or not at all", 0, 0},
    {'q', "quiet", EP_OPT_FLAG, &opt.io.quiet, NULL, "no remarks", 0, 0},
    {'v', "verbose", EP_OPT_FLAG, &opt.io.verbose, NULL,
     "say on stderr what was read and drawn", 0, 0},
    {0, "colour", EP_OPT_CHOICE, &opt.colour, "auto|never|256|true",
     "colours of text [auto]", 0, 0},
    {0, "from", EP_OPT_STRING, &opt.io.from, "FORMAT",
     "read the input as FORMAT [by its content]", 0, 0},
    {0, "height", EP_OPT_INT, &opt.height, "N", "pixels of svg, lines of text",
     8, EP_LOOK_MAX},
    {0, "max-bad", EP_OPT_INT, &opt.io.max_bad, "N",
     "bad lines that are accepted [0]", 0, 1e15},
    {0, "since", EP_OPT_STRING, &opt.since, "TIME", "only from TIME on", 0, 0},
    {0, "step", EP_OPT_INT, &opt.step, "N",
     "timeline: of this step [the longest]", 0, 9007199254740991.0},
    {0, "strict", EP_OPT_FLAG, &opt.io.strict, NULL,
     "stop at the first bad line", 0, 0},
    {0, "title", EP_OPT_STRING, &opt.title, "TEXT", "heading of the picture", 0,
     0},
    {0, "until", EP_OPT_STRING, &opt.until, "TIME", "only before TIME", 0, 0},
    {0, "where", EP_OPT_LIST, &opt.where, "KEY=VALUE[,...]",
     "only records with these values", 0, 0},
    {0, "width", EP_OPT_INT, &opt.width, "N", "pixels of svg, columns of text",
     20, EP_LOOK_MAX},
    {0, "x", EP_OPT_CHOICE, &opt.x, "time|step",
     "pace, loss: over time or steps [time]", 0, 0},
};

static const struct ep_program program = {
    .name = "skewplot",
    .operands = "[FILE ...]",
    .purpose = "Draw telemetry: pace, heat maps, timelines, links, loss",
    .opts = options,
    .nopts = sizeof options / sizeof options[0],
};

/* ==== Records in ==== */

static void take_step(struct ep_plots *p, const struct ep_record *r)
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

    ep_plots_step(p, &s);
}

static void take_event(struct ep_plots *p, const struct ep_record *r)
{
    struct ep_plot_event e = {
        .job = ep_record_str(r, EP_K_JOB),
        .kind = ep_record_str(r, EP_K_KIND),
        .scope = ep_record_str(r, EP_K_SCOPE),
        .id = ep_record_str(r, EP_K_ID),
        .cause = ep_record_str(r, EP_K_CAUSE),
        .eid = ep_record_str(r, EP_K_EID),
        .step = ep_record_int(r, EP_K_STEP, -1),
        .since = ep_record_num(r, EP_K_SINCE),
        .factor = ep_record_num(r, EP_K_FACTOR),
    };

    ep_plots_event(p, &e);
}

static bool other_steps; /* there were spans, but not of --step */

static void take_span(struct ep_plots *p, const struct ep_record *r)
{
    struct ep_plot_span s = {
        .job = ep_record_str(r, EP_K_JOB),
        .op = ep_record_str(r, EP_K_OP),
        .ideal = ep_span_eq(ep_record_str(r, EP_K_WHAT), "ideal"),
        .rank = ep_record_int(r, EP_K_RANK, -1),
        .dp = ep_record_int(r, EP_K_DP, -1),
        .pp = ep_record_int(r, EP_K_PP, -1),
        .tp = ep_record_int(r, EP_K_TP, -1),
        .step = ep_record_int(r, EP_K_STEP, -1),
        .mb = ep_record_int(r, EP_K_MB, -1),
        .ts = ep_record_num(r, EP_K_TS),
        .dur = ep_record_num(r, EP_K_DUR),
    };

    if (opt.step < 0 || s.step == opt.step)
        ep_plots_span(p, &s);
    else
        other_steps = true;
}

static void take_loss(struct ep_plots *p, const struct ep_record *r)
{
    struct ep_plot_loss l = {
        .job = ep_record_str(r, EP_K_JOB),
        .worker = ep_record_str(r, EP_K_WORKER),
        .split = ep_record_str(r, EP_K_SPLIT),
        .rank = ep_record_int(r, EP_K_RANK, -1),
        .step = ep_record_int(r, EP_K_STEP, -1),
        .ts = ep_record_num(r, EP_K_TS),
        .value = ep_record_num(r, EP_K_VALUE),
    };

    ep_plots_loss(p, &l);
}

static void take_link(struct ep_plots *p, const struct ep_record *r)
{
    struct ep_plot_link l = {
        .src = ep_record_str(r, EP_K_SRC),
        .dst = ep_record_str(r, EP_K_DST),
        .value = ep_record_num(r, EP_K_VALUE),
    };

    ep_plots_link(p, &l);
}

static void take_whatif(struct ep_plots *p, const struct ep_record *r)
{
    struct ep_plot_whatif w = {
        .job = ep_record_str(r, EP_K_JOB),
        .what = ep_record_str(r, EP_K_WHAT),
        .id = ep_record_str(r, EP_K_ID),
        .slowdown = ep_record_num(r, EP_K_SLOWDOWN),
    };

    ep_plots_whatif(p, &w);
}

static void take(struct ep_plots *p, const struct ep_record *r)
{
    switch (r->type) {
    case EP_STEP:
        take_step(p, r);
        break;
    case EP_EVENT:
        take_event(p, r);
        break;
    case EP_SPAN:
        take_span(p, r);
        break;
    case EP_LOSS:
        take_loss(p, r);
        break;
    case EP_LINK:
        take_link(p, r);
        break;
    case EP_WHATIF:
        take_whatif(p, r);
        break;
    default:
        break;
    }
}

/* What a kind of picture is made of: -k keeps nothing else. */
static unsigned wanted(void)
{
    return opt.kind < 0 ? (1u << EP_PLOT_KINDS) - 1 : 1u << opt.kind;
}

/* ==== The terminal ==== */

static bool has(const char *variable, const char *part)
{
    const char *v = getenv(variable);

    return v && strstr(v, part);
}

/* As setlocale(3) chooses for characters. */
static bool is_utf8(void)
{
    static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *v = getenv(names[i]);

        if (v && *v)
            return strstr(v, "UTF-8") || strstr(v, "utf8") ||
                   strstr(v, "UTF8") || strstr(v, "utf-8");
    }
    return false;
}

static enum ep_depth depth(void)
{
    const char *no = getenv("NO_COLOR");

    if (opt.colour != COLOUR_AUTO)
        return opt.colour == COLOUR_256    ? EP_DEPTH_256
               : opt.colour == COLOUR_TRUE ? EP_DEPTH_TRUE
                                           : EP_DEPTH_NONE;
    if (opt.io.output || !isatty(STDOUT_FILENO) || (no && *no))
        return EP_DEPTH_NONE;
    if (has("COLORTERM", "truecolor") || has("COLORTERM", "24bit"))
        return EP_DEPTH_TRUE;
    return has("TERM", "256color") ? EP_DEPTH_256 : EP_DEPTH_NONE;
}

static void look_at_terminal(struct ep_term *t)
{
    struct winsize size;

    *t = (struct ep_term){80, 24, is_utf8(), depth()};
    if (!opt.io.output && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 &&
        size.ws_col >= 20 && size.ws_row >= 8) {
        t->width = size.ws_col < 1000 ? size.ws_col : 1000;
        t->height = size.ws_row < 1000 ? size.ws_row - 1 : 1000;
    }
    if (opt.width)
        t->width = (int)(opt.width < 1000 ? opt.width : 1000);
    if (opt.height)
        t->height = (int)(opt.height < 1000 ? opt.height : 1000);
}

/* ==== The picture out ==== */

static void add_kinds(struct ep_buf *b, unsigned kinds)
{
    bool first = true;

    for (int k = 0; k < EP_PLOT_KINDS; k++)
        if (kinds >> k & 1) {
            ep_buf_addf(b, "%s%s", first ? "" : ", ", ep_plot_names[k]);
            first = false;
        }
}

/* What else could be drawn; what did not fit. */
static void remark(const struct ep_plots *p, int kind)
{
    unsigned others = ep_plots_can(p) & ~(1u << kind);
    struct ep_buf b;

    if (ep_plots_left_out(p))
        ep_cli_warn("%llu records are left out of the picture: too many names",
                    (unsigned long long)ep_plots_left_out(p));
    if (opt.io.quiet || (!others && !opt.io.verbose))
        return;
    ep_buf_init(&b);
    ep_buf_addf(&b, "drawn: %s", ep_plot_names[kind]);
    if (others) {
        ep_buf_adds(&b, "; there is also (-k): ");
        add_kinds(&b, others);
    }
    ep_cli_warn("%s", b.ptr);
    ep_buf_free(&b);
}

/* Draw and write; *idle says why nothing could be. */
static void draw(struct ep_filter *io, struct ep_plots *p, struct ep_buf *idle)
{
    struct ep_plot_choice choice = {.svg = opt.io.format == FORMAT_SVG,
                                    .by_step = opt.x == X_STEP,
                                    .step = opt.step};
    struct ep_look look = {.title = opt.title};
    struct ep_error err;
    int kind = ep_plots_choose(p);

    if (kind < 0 && other_steps) {
        ep_buf_addf(idle, "cannot draw timeline: no span of step %lld",
                    (long long)opt.step);
        return;
    }
    if (kind < 0) {
        ep_buf_adds(idle, "cannot draw anything: no record for ");
        add_kinds(idle, wanted());
        ep_buf_adds(idle, opt.kind < 0 ? " in the input (see skewplot(1))"
                                       : " in the input");
        return;
    }
    if (choice.svg) {
        look.width = (double)opt.width;
        look.height = (double)opt.height;
    } else {
        look_at_terminal(&look.term);
    }
    if (ep_plots_draw(p, (enum ep_plot_kind)kind, &choice, &look, &io->text,
                      &err) < 0) {
        ep_buf_addf(idle, "cannot draw %s: %s", ep_plot_names[kind], err.msg);
        return;
    }
    (void)fwrite(io->text.ptr, 1, io->text.len, io->out);
    remark(p, kind);
}

static int check_sizes(struct ep_error *err)
{
    if (opt.io.format == FORMAT_TEXT)
        return 0;
    if (opt.width && opt.width < EP_LOOK_MIN)
        return ep_error_set(err, EP_EUSAGE,
                            "cannot use --width %d: svg needs at least %d",
                            (int)opt.width, EP_LOOK_MIN);
    if (opt.height && opt.height < EP_LOOK_MIN / 2)
        return ep_error_set(err, EP_EUSAGE,
                            "cannot use --height %d: svg needs at least %d",
                            (int)opt.height, EP_LOOK_MIN / 2);
    return 0;
}

static int choose(struct ep_select *want, struct ep_error *err)
{
    const struct ep_select_texts texts = {
        .where = opt.where.v,
        .nwhere = opt.where.n,
        .since = opt.since,
        .until = opt.until,
        .now = ep_clock_now(&ep_clock_wall),
    };

    return ep_select_init(want, &texts, err);
}

int main(int argc, char **argv)
{
    const struct ep_record *r;
    struct ep_plots *plots;
    struct ep_select want;
    struct ep_filter io;
    struct ep_buf idle;
    struct ep_error err;
    int first = ep_cli_begin(&program, argc, argv), rc;

    if (opt.io.format < 0)
        opt.io.format = ep_cli_default_format(opt.io.output) == EP_CLI_TEXT
                            ? FORMAT_TEXT
                            : FORMAT_SVG;
    if (check_sizes(&err) < 0 || choose(&want, &err) < 0 ||
        ep_filter_open(&io, &opt.io, (const char *const *)argv + first,
                       argc - first, &err) < 0) {
        ep_cli_error(&err);
        return EP_EXIT_TROUBLE;
    }
    ep_buf_init(&idle);
    plots = ep_plots_new(wanted());
    while ((rc = ep_filter_next(&io, &r, NULL, &err)) > 0)
        if (ep_select_match(&want, r))
            take(plots, r);
    if (rc == 0)
        draw(&io, plots, &idle);
    rc = ep_filter_close(&io, rc, idle.len ? idle.ptr : NULL, false, &err);
    ep_plots_free(plots);
    ep_buf_free(&idle);
    return ep_cli_end(rc);
}
