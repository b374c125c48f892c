/* SPDX-License-Identifier: Apache-2.0 */
/* timeline_svg.c - a timeline as SVG; see timeline.h. */
#include "config.h"

#include "base/mem.h"
#include "draw/axis.h"
#include "draw/colour.h"
#include "draw/svg.h"
#include "draw/timeline.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BUDGET 13000 /* pieces: about 1.7 MB with their titles */
#define MARGIN 16.0
#define BOTTOM 46.0
#define PANEL_HEAD 24.0
#define ROOM 520.0 /* for lanes, without a height that was asked for */
#define LEAST_LANE 13.0
#define NAME_MOST 130.0

struct timeline_svg {
    const struct ep_timeline *t;
    struct ep_svg s;
    struct ep_buf text;
    double head; /* where heading and summary end */
    double width, left, right, pitch;
    double first[2], extent;
    uint32_t *lane;
    size_t lanes;  /* that are drawn */
    size_t slots;  /* units in a lane */
    size_t pieces; /* drawn, or (counting) to be drawn */
    bool counting;
    double *slot;
    uint32_t *count;
};

static bool is_comm(enum ep_op_kind k)
{
    return k >= EP_OP_P2P;
}

/* A piece of a lane whose top is y, from a to b seconds. */
static void piece(struct timeline_svg *d, enum ep_op_kind kind, double y,
                  const double ab[2], const char *title)
{
    double scale = (d->right - d->left) / d->extent;
    double x = d->left + ab[0] * scale, w = (ab[1] - ab[0]) * scale;
    double h = d->pitch - 3, up = is_comm(kind) ? 0.68 * h : 0;
    char cls[16];

    if (w > 3)
        w -= 0.6; /* so that equal neighbours stay apart */
    (void)snprintf(cls, sizeof cls, "o%d", (int)kind);
    ep_svg_rect(&d->s, cls,
                (const double[4]){x, y + 1.5 + up, fmax(w, 0.3),
                                  is_comm(kind) ? 0.32 * h : 0.62 * h},
                title);
}

static void bar_title(struct timeline_svg *d, const struct ep_bar *b, int panel)
{
    ep_buf_reset(&d->text);
    d->t->op_name(d->t->ctx, b->op, &d->text);
    if (b->mb >= 0)
        ep_buf_addf(&d->text, ", micro-batch %lld", (long long)b->mb);
    ep_buf_adds(&d->text, ": ");
    ep_axis_add_value(&d->text, b->dur, "s");
    ep_buf_adds(&d->text, " from ");
    ep_axis_add_value(&d->text, b->start - d->first[panel], "s");
    ep_buf_adds(&d->text, " on\n");
    d->t->lane_name(d->t->ctx, b->lane, &d->text);
}

/* How many bars of a lane are wider than two units. */
static size_t count_wide(const struct timeline_svg *d, int panel, uint32_t lane)
{
    size_t begin, end, n = 0;

    ep_timeline_bars(d->t, panel, lane, &begin, &end);
    for (size_t i = begin; i < end; i++)
        n += d->t->bar[panel][i].dur > 2 * d->extent / (double)d->slots;
    return n;
}

/* These bars, one by one. */
static void wide(struct timeline_svg *d, int panel, uint32_t lane, double y)
{
    size_t begin, end;

    ep_timeline_bars(d->t, panel, lane, &begin, &end);
    for (size_t i = begin; i < end; i++) {
        const struct ep_bar *b = &d->t->bar[panel][i];
        double from = b->start - d->first[panel];

        if (b->dur <= 2 * d->extent / (double)d->slots)
            continue;
        bar_title(d, b, panel);
        piece(d, d->t->op_kind[b->op], y,
              (const double[2]){from, from + b->dur}, d->text.ptr);
    }
}

/* The kind that fills most of a slot, of computation or of communication. */
static int dominant(const double *slot, bool comm)
{
    int best = -1;

    for (int k = comm ? EP_OP_P2P : 0; k < (comm ? EP_OP_KINDS : EP_OP_P2P);
         k++)
        if (slot[k] > 0 && (best < 0 || slot[k] > slot[best]))
            best = k;
    return best;
}

/* The rest, in runs of units with the same kind. */
static void narrow(struct timeline_svg *d, uint32_t lane, double y, bool comm)
{
    double unit = d->extent / (double)d->slots;

    for (size_t i = 0; i < d->slots;) {
        int kind = dominant(d->slot + i * EP_OP_KINDS, comm);
        size_t end = i + 1, bars = d->count[i];
        double busy = 0;

        for (; end < d->slots && kind >= 0 &&
               dominant(d->slot + end * EP_OP_KINDS, comm) == kind;
             end++)
            bars += d->count[end];
        for (size_t k = i; k < end && kind >= 0; k++)
            busy += d->slot[k * EP_OP_KINDS + (size_t)kind];
        if (kind >= 0 && busy > 0.02 * unit) {
            d->pieces++;
            if (!d->counting) {
                ep_buf_reset(&d->text);
                ep_buf_addf(&d->text, "%zu operations begin here: %s ", bars,
                            ep_op_kind_names[kind]);
                ep_axis_add_value(&d->text, busy, "s");
                ep_buf_addc(&d->text, '\n');
                d->t->lane_name(d->t->ctx, lane, &d->text);
                piece(d, (enum ep_op_kind)kind, y,
                      (const double[2]){(double)i * unit, (double)end * unit},
                      d->text.ptr);
            }
        }
        i = end;
    }
}

static void lane(struct timeline_svg *d, int panel, uint32_t n, double y)
{
    double when[3] = {d->first[panel], d->extent,
                      2 * d->extent / (double)d->slots};
    size_t bars = count_wide(d, panel, n);
    bool apart = bars <= d->slots; /* they cannot all lie over each other */

    if (!apart)
        when[2] = (double)INFINITY;

    if (!d->counting) {
        ep_buf_reset(&d->text);
        d->t->lane_name(d->t->ctx, n, &d->text);
        ep_svg_text_in(&d->s, "e",
                       (const double[2]){d->left - 7, y + d->pitch / 2 + 4}, 12,
                       NAME_MOST, d->text.ptr);
    }
    ep_timeline_slots(d->t, panel, n, when, d->slots, d->slot, d->count);
    narrow(d, n, y, false);
    narrow(d, n, y, true);
    d->pieces += apart ? bars : 0;
    if (apart && !d->counting)
        wide(d, panel, n, y);
}

/* Returns where the panel ends. */
static double panel(struct timeline_svg *d, int p, double y)
{
    static const char *const names[] = {"as it was", "ideal: no stragglers"};
    double bottom = y + PANEL_HEAD + (double)d->lanes * d->pitch, end = 0;

    if (!d->counting) {
        struct ep_axis a;

        for (size_t i = 0; i < d->t->n[p]; i++)
            end = fmax(end, d->t->bar[p][i].start + d->t->bar[p][i].dur);
        ep_buf_reset(&d->text);
        ep_buf_addf(&d->text, "%s, ", names[p]);
        ep_axis_add_value(&d->text, end - d->first[p], "s");
        if (d->lanes < d->t->lanes)
            ep_buf_addf(&d->text, "; the busiest %zu of %zu lanes", d->lanes,
                        d->t->lanes);
        ep_svg_text(&d->s, "", d->left, y + PANEL_HEAD - 8, d->text.ptr);
        ep_svg_rect(&d->s, "p",
                    (const double[4]){d->left, y + PANEL_HEAD,
                                      d->right - d->left,
                                      bottom - y - PANEL_HEAD},
                    NULL);
        ep_axis_init(&a, EP_AXIS_LINEAR, 0, d->extent,
                     (int)((d->right - d->left) / 70), "s", false);
        for (int i = 0; i < a.n; i++) {
            double x =
                d->left + (d->right - d->left) * ep_axis_pos(&a, a.tick[i].at);

            ep_svg_line(&d->s, "g", x, y + PANEL_HEAD, x, bottom);
        }
    }
    for (size_t i = 0; i < d->lanes; i++)
        lane(d, p, d->lane[i], y + PANEL_HEAD + (double)i * d->pitch);
    if (!d->counting && d->extent > 0) {
        double x =
            d->left + (d->right - d->left) * (end - d->first[p]) / d->extent;

        ep_svg_line(&d->s, "a", x, y + PANEL_HEAD, x, bottom);
    }
    return bottom;
}

static void time_axis(struct timeline_svg *d, double y)
{
    struct ep_axis a;

    ep_axis_init(&a, EP_AXIS_LINEAR, 0, d->extent,
                 (int)((d->right - d->left) / 70), "s", false);
    for (int i = 0; i < a.n; i++) {
        double x =
            d->left + (d->right - d->left) * ep_axis_pos(&a, a.tick[i].at);

        ep_svg_line(&d->s, "a", x, y, x, y + 5);
        ep_svg_text(&d->s, "m", x, y + 18, a.tick[i].label);
    }
    ep_buf_reset(&d->text);
    ep_buf_addf(&d->text, "time since the step began, %s", a.unit);
    ep_svg_text(&d->s, "s m", (d->left + d->right) / 2, y + 36, d->text.ptr);
}

/* The kinds that occur; returns the base line of the last. */
static double legend(struct timeline_svg *d)
{
    bool seen[EP_OP_KINDS] = {false};
    double x = MARGIN, y = d->head + 12;

    for (int p = 0; p < 2; p++)
        for (size_t i = 0; i < d->t->n[p]; i++)
            seen[d->t->op_kind[d->t->bar[p][i].op]] = true;
    for (int k = 0; k < EP_OP_KINDS; k++) {
        double w = ep_svg_text_width(ep_op_kind_names[k], 12) + 34;
        char cls[16];

        if (!seen[k])
            continue;
        if (x + w > d->width - MARGIN && x > MARGIN) {
            x = MARGIN;
            y += 18;
        }
        (void)snprintf(cls, sizeof cls, "o%d", k);
        ep_svg_rect(
            &d->s, cls,
            (const double[4]){x, is_comm((enum ep_op_kind)k) ? y - 7 : y - 9,
                              18, is_comm((enum ep_op_kind)k) ? 5 : 9},
            NULL);
        ep_svg_text(&d->s, "", x + 23, y, ep_op_kind_names[k]);
        x += w;
    }
    return y;
}

static void lay_out(struct timeline_svg *d, const struct ep_look *look,
                    double legend_end)
{
    int panels = (d->t->n[0] > 0) + (d->t->n[1] > 0);
    double room = ROOM, most = 30;
    size_t fit;

    if (look->height > 0)
        room = look->height - legend_end - BOTTOM - panels * PANEL_HEAD;
    room = fmax(room, panels * 3 * LEAST_LANE);
    fit = (size_t)(room / panels / LEAST_LANE);
    d->lane = ep_calloc(fit, sizeof *d->lane);
    d->lanes = ep_timeline_lanes(d->t, fit, d->lane);
    d->pitch = fmin(room / panels / (double)d->lanes, 30);
    for (size_t i = 0; i < d->lanes; i++) {
        ep_buf_reset(&d->text);
        d->t->lane_name(d->t->ctx, d->lane[i], &d->text);
        most = fmax(most, ep_svg_text_width(d->text.ptr, 12));
    }
    d->left = MARGIN + fmin(most, NAME_MOST) + 7;
    d->right = d->width - MARGIN - 10;
}

/* The finest units with which there are not too many pieces. */
static void choose_units(struct timeline_svg *d)
{
    d->slots = (size_t)((d->right - d->left) * 2);
    d->slot = ep_calloc(d->slots * EP_OP_KINDS, sizeof *d->slot);
    d->count = ep_calloc(d->slots, sizeof *d->count);
    d->counting = true;
    for (;; d->slots /= 2) {
        d->pieces = 0;
        for (int p = 0; p < 2; p++)
            if (d->t->n[p])
                (void)panel(d, p, 0);
        if (d->pieces <= BUDGET || d->slots < 8)
            break;
    }
    d->counting = false;
}

static void add_style(struct timeline_svg *d)
{
    static const unsigned category[EP_OP_KINDS] = {
        EP_BLUE, EP_ORANGE, EP_GREEN, 0, 0, EP_SKY, EP_PURPLE};

    ep_buf_reset(&d->text);
    for (int k = 0; k < EP_OP_KINDS; k++)
        ep_buf_addf(&d->text, ".o%d{fill:#%06x}", k,
                    k == EP_OP_GC      ? 0x24292fu
                    : k == EP_OP_OTHER ? 0x8b949eu
                                       : ep_colour_category(category[k]));
    ep_svg_style(&d->s, d->text.ptr, ".o3{fill:#e6edf3}.o0{fill:#3d9be0}");
}

void ep_timeline_svg(const struct ep_timeline *t, const struct ep_look *look,
                     struct ep_buf *out)
{
    const char *title = look->title ? look->title : t->title;
    struct timeline_svg d = {.t = t};
    struct ep_buf body;
    double y;

    ep_buf_init(&d.text);
    ep_buf_init(&body);
    d.s.out = &body;
    d.width = look->width > 0 ? look->width : 960;
    d.head =
        EP_SVG_HEAD + ep_svg_head_more(d.width - 2 * MARGIN, title, t->summary);
    ep_timeline_extent(t, d.first, &d.extent);
    y = legend(&d);
    lay_out(&d, look, y);
    choose_units(&d);
    for (int p = 0; p < 2; p++)
        if (t->n[p])
            y = panel(&d, p, y + 4);
    time_axis(&d, y);
    ep_svg_begin(&d.s, out, d.width, fmax(y + BOTTOM, look->height), title,
                 t->summary);
    add_style(&d);
    ep_svg_head(&d.s, MARGIN, d.width - 2 * MARGIN, title, t->summary);
    ep_buf_add(out, body.ptr, body.len);
    ep_svg_end(&d.s);
    free(d.lane);
    free(d.slot);
    free(d.count);
    ep_buf_free(&body);
    ep_buf_free(&d.text);
}
