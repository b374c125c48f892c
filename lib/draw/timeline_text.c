/* SPDX-License-Identifier: Apache-2.0 */
/* timeline_text.c - a timeline as characters; see timeline.h. */
#include "config.h"

#include "base/mem.h"
#include "draw/axis.h"
#include "draw/colour.h"
#include "draw/timeline.h"

#include <math.h>
#include <stdlib.h>

#define LEAST 3 /* lanes of a panel */

/* A letter for each kind: without colours it has to do. */
static const char letters[EP_OP_KINDS] = {'F', 'B', 'O', 'G', '?', '-', '='};

struct timeline_text {
    const struct ep_timeline *t;
    const struct ep_term *term;
    struct ep_canvas *c;
    struct ep_buf text;
    double first[2], extent;
    uint32_t *lane;
    size_t lanes;
    int left, width;
    double *slot;
};

static int32_t colour_of(int kind)
{
    static const unsigned category[EP_OP_KINDS] = {
        EP_BLUE, EP_ORANGE, EP_GREEN, EP_YELLOW, 0, EP_SKY, EP_PURPLE};

    return kind == EP_OP_OTHER ? 0x8b949e
                               : (int32_t)ep_colour_category(category[kind]);
}

/* What most of a slot is: computation before communication. */
static int kind_of(const double *slot, double length)
{
    int best = -1;
    double busy = 0;

    for (int k = 0; k < EP_OP_P2P; k++) {
        busy += slot[k];
        if (slot[k] > 0 && (best < 0 || slot[k] > slot[best]))
            best = k;
    }
    if (best >= 0 && busy >= 0.25 * length)
        return best;
    for (int k = EP_OP_P2P; k < EP_OP_KINDS; k++)
        if (slot[k] > 0 && (best < 0 || slot[k] > slot[best]))
            best = k;
    return best;
}

static int panel(struct timeline_text *d, int p, int y)
{
    static const char *const names[] = {"as it was", "ideal"};
    const double when[3] = {d->first[p], d->extent, (double)INFINITY};
    double end = 0;

    for (size_t i = 0; i < d->t->n[p]; i++)
        end = fmax(end, d->t->bar[p][i].start + d->t->bar[p][i].dur);
    ep_buf_reset(&d->text);
    ep_buf_addf(&d->text, "%s, ", names[p]);
    ep_axis_add_value(&d->text, end - d->first[p], "s");
    if (d->lanes < d->t->lanes)
        ep_buf_addf(&d->text, "; the busiest %zu of %zu", d->lanes,
                    d->t->lanes);
    ep_canvas_text_in(d->c, 0, y++, d->term->width, d->text.ptr);
    for (size_t i = 0; i < d->lanes; i++, y++) {
        ep_buf_reset(&d->text);
        d->t->lane_name(d->t->ctx, d->lane[i], &d->text);
        ep_canvas_text_in(d->c, 0, y, d->left - 1, d->text.ptr);
        ep_timeline_slots(d->t, p, d->lane[i], when, (size_t)d->width, d->slot,
                          NULL);
        for (int x = 0; x < d->width; x++) {
            int kind = kind_of(d->slot + (size_t)x * EP_OP_KINDS,
                               d->extent / d->width);
            int32_t bg = kind < 0 ? EP_NO_COLOUR : colour_of(kind);

            ep_canvas_put(d->c, d->left + x, y,
                          kind < 0 ? ' ' : (unsigned char)letters[kind],
                          kind < 0                           ? EP_NO_COLOUR
                          : ep_colour_is_light((uint32_t)bg) ? 0
                                                             : 0xffffff,
                          bg);
        }
    }
    return y;
}

static void time_axis(struct timeline_text *d, int y)
{
    struct ep_axis a;

    ep_axis_init(&a, EP_AXIS_LINEAR, 0, d->extent, d->width / 10, "s", false);
    for (int i = 0; i < a.n; i++) {
        int x = (int)lround(ep_axis_pos(&a, a.tick[i].at) * (d->width - 1));

        ep_buf_reset(&d->text);
        ep_buf_addf(&d->text, "|%s", a.tick[i].label);
        if (i == 0)
            ep_buf_addf(&d->text, " %s", a.unit);
        if (x + (int)d->text.len <= d->width)
            ep_canvas_text(d->c, d->left + x, y, d->text.ptr, EP_NO_COLOUR);
    }
}

static void legend(struct timeline_text *d, int y)
{
    bool seen[EP_OP_KINDS] = {false};
    int x = 0;

    for (int p = 0; p < 2; p++)
        for (size_t i = 0; i < d->t->n[p]; i++)
            seen[d->t->op_kind[d->t->bar[p][i].op]] = true;
    for (int k = 0; k < EP_OP_KINDS; k++) {
        int end = x + 2 + ep_canvas_columns(ep_op_kind_names[k]);

        if (!seen[k])
            continue;
        if (x && end > d->term->width) {
            end -= x;
            x = 0;
            y++;
        }
        ep_canvas_put(d->c, x, y, (unsigned char)letters[k],
                      ep_colour_is_light((uint32_t)colour_of(k)) ? 0 : 0xffffff,
                      colour_of(k));
        ep_canvas_text(d->c, x + 2, y, ep_op_kind_names[k], EP_NO_COLOUR);
        x = end + 2;
    }
}

void ep_timeline_text(const struct ep_timeline *t, const struct ep_look *look,
                      struct ep_buf *out)
{
    struct timeline_text d = {.t = t, .term = &look->term};
    const char *title = look->title ? look->title : t->title;
    int panels = (t->n[0] > 0) + (t->n[1] > 0);
    int y = ep_canvas_head(NULL, d.term->width, title, t->summary);
    int fit = (d.term->height - y - 3 - panels) / (panels ? panels : 1);

    ep_buf_init(&d.text);
    fit = fit > LEAST ? fit : LEAST;
    d.lane = ep_calloc((size_t)fit, sizeof *d.lane);
    d.lanes = ep_timeline_lanes(t, (size_t)fit, d.lane);
    ep_timeline_extent(t, d.first, &d.extent);
    for (size_t i = 0; i < d.lanes; i++) {
        int n;

        ep_buf_reset(&d.text);
        t->lane_name(t->ctx, d.lane[i], &d.text);
        n = ep_canvas_columns(d.text.ptr) + 1;
        d.left = n > d.left ? n : d.left;
    }
    d.left = d.left < d.term->width / 3 ? d.left : d.term->width / 3;
    d.width = d.term->width - d.left;
    d.slot = ep_calloc((size_t)d.width * EP_OP_KINDS, sizeof *d.slot);
    d.c = ep_canvas_new(d.term, d.term->width,
                        y + panels * ((int)d.lanes + 1) + 1 + EP_OP_KINDS);
    (void)ep_canvas_head(d.c, d.term->width, title, t->summary);
    for (int p = 0; p < 2; p++)
        if (t->n[p])
            y = panel(&d, p, y);
    time_axis(&d, y);
    legend(&d, y + 1);
    ep_canvas_print(d.c, out);
    ep_canvas_free(d.c);
    free(d.slot);
    free(d.lane);
    ep_buf_free(&d.text);
}
