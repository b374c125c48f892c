/* SPDX-License-Identifier: Apache-2.0 */
/* timeline.c - see timeline.h: lanes and slots. */
#include "config.h"

#include "draw/timeline.h"

#include "base/mem.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *const ep_op_kind_names[EP_OP_KINDS] = {
    "forward", "backward",       "optimizer",  "gc",
    "other",   "point to point", "collective",
};

enum ep_op_kind ep_op_kind_of(const char *name)
{
    static const struct {
        const char *part;
        enum ep_op_kind kind;
    } parts[] = {
        {"send", EP_OP_P2P},
        {"recv", EP_OP_P2P},
        {"p2p", EP_OP_P2P},
        {"reduce", EP_OP_COLL},
        {"gather", EP_OP_COLL},
        {"scatter", EP_OP_COLL},
        {"broadcast", EP_OP_COLL},
        {"to-all", EP_OP_COLL},
        {"to_all", EP_OP_COLL},
        {"barrier", EP_OP_COLL},
        {"optimizer", EP_OP_OPTIMIZER},
        {"forward", EP_OP_FORWARD},
        {"backward", EP_OP_BACKWARD},
    };

    if (strcmp(name, "gc") == 0)
        return EP_OP_GC;
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        if (strstr(name, parts[i].part))
            return parts[i].kind;
    return EP_OP_OTHER;
}

void ep_timeline_extent(const struct ep_timeline *t, double first[2],
                        double *extent)
{
    *extent = 0;
    for (int p = 0; p < 2; p++) {
        double end = -(double)INFINITY;

        first[p] = (double)INFINITY;
        for (size_t i = 0; i < t->n[p]; i++) {
            first[p] = fmin(first[p], t->bar[p][i].start);
            end = fmax(end, t->bar[p][i].start + t->bar[p][i].dur);
        }
        if (t->n[p])
            *extent = fmax(*extent, end - first[p]);
        else
            first[p] = 0;
    }
    if (!(*extent > 0))
        *extent = 1e-6;
}

size_t ep_timeline_lanes(const struct ep_timeline *t, size_t most,
                         uint32_t *lane)
{
    int p = t->n[0] ? 0 : 1;
    double *busy, *score;
    size_t have = 0;

    if (t->lanes <= most) {
        for (size_t i = 0; i < t->lanes; i++)
            lane[i] = (uint32_t)i;
        return t->lanes;
    }
    busy = ep_calloc(t->lanes, sizeof *busy);
    score = ep_calloc(most + 1, sizeof *score);
    for (size_t i = 0; i < t->n[p]; i++)
        if (t->op_kind[t->bar[p][i].op] < EP_OP_P2P)
            busy[t->bar[p][i].lane] += t->bar[p][i].dur;
    for (size_t i = 0; i < t->lanes; i++) {
        size_t at;

        if (have == most && !(busy[i] > score[most - 1]))
            continue;
        for (at = have < most ? have++ : most - 1;
             at && busy[i] > score[at - 1]; at--) {
            score[at] = score[at - 1];
            lane[at] = lane[at - 1];
        }
        score[at] = busy[i];
        lane[at] = (uint32_t)i;
    }
    free(busy);
    free(score);
    return have;
}

/* The first bar of a lane that is not below it. */
static size_t lower_bound(const struct ep_timeline *t, int p, uint64_t lane)
{
    size_t lo = 0, hi = t->n[p];

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;

        if (t->bar[p][mid].lane < lane)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

void ep_timeline_bars(const struct ep_timeline *t, int panel, uint32_t lane,
                      size_t *begin, size_t *end)
{
    *begin = lower_bound(t, panel, lane);
    *end = lower_bound(t, panel, (uint64_t)lane + 1);
}

void ep_timeline_slots(const struct ep_timeline *t, int panel, uint32_t lane,
                       const double when[3], size_t n, double *slot,
                       uint32_t *count)
{
    double first = when[0], each = when[1] / (double)n, longest = when[2];
    int32_t *whole = ep_calloc((n + 1) * EP_OP_KINDS, sizeof *whole);
    size_t begin, end;

    memset(slot, 0, n * EP_OP_KINDS * sizeof *slot);
    if (count)
        memset(count, 0, n * sizeof *count);
    ep_timeline_bars(t, panel, lane, &begin, &end);
    for (size_t i = begin; i < end; i++) {
        const struct ep_bar *b = &t->bar[panel][i];
        double from = b->start - first, to = from + b->dur;
        size_t a = (size_t)fmin(from / each, (double)(n - 1));
        size_t z = (size_t)fmin(to / each, (double)(n - 1));
        size_t kind = t->op_kind[b->op];

        if (b->dur > longest)
            continue;
        if (count)
            count[a]++;
        if (a == z) {
            slot[a * EP_OP_KINDS + kind] += b->dur;
            continue;
        }
        /* parts of the ends; what is between is summed up below */
        slot[a * EP_OP_KINDS + kind] += fmax((double)(a + 1) * each - from, 0);
        slot[z * EP_OP_KINDS + kind] += fmax(to - (double)z * each, 0);
        whole[(a + 1) * EP_OP_KINDS + kind]++;
        whole[z * EP_OP_KINDS + kind]--;
    }
    for (size_t i = 0; i < n * EP_OP_KINDS; i++) {
        if (i >= EP_OP_KINDS)
            whole[i] += whole[i - EP_OP_KINDS];
        slot[i] += whole[i] * each;
    }
    free(whole);
}
