/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rates.h - the pace and the share of each data-parallel group, from what its
 * ranks report and what events say of them.
 *
 * Legend: D groups, M micro-batches per step; a reporter is a rank, or
 * whatever else reports for a group, by its number. Pace: seconds of work per
 * micro-batch, busy / mb.
 *
 * The pace of a reporter is the median over its last "window" samples; that
 * of a group is the largest of its reporters, because the slowest stage sets
 * the pace of a pipeline.
 *
 * An event (onset, worsening or relief of an episode) parts the samples: what
 * is older than its "since" describes another state of the job, and a median
 * over both lies in neither. So only samples since count, for all reporters;
 * as long as a reporter has none, its pace is the median before, times what
 * the event changed if it names the reporter: the factor now over the factor
 * before, 1 when no episode is open. The factor of a reporter is the largest
 * of the open episodes that name it or its group; episodes are known by their
 * eid.
 *
 * A group of which no sample tells is taken to be as fast, when healthy, as
 * the median of the others: pace / factor of those, times its own factor. If
 * no group tells, the healthy pace is 1: what comes out is then relative.
 *
 * Pure: no records, no files, no clock.
 */
#ifndef EP_PLAN_RATES_H
#define EP_PLAN_RATES_H

#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define EP_RATES_WINDOW_MAX 1024

/* Reporters have numbers below this. */
#define EP_RATES_REPORTERS_MAX ((int64_t)1 << 21)

/* Most episodes that are open at the same time. */
#define EP_RATES_EPISODES_MAX 4096

/* Longest eid, in bytes. */
#define EP_RATES_EID_MAX 1024

struct ep_rates; /* opaque */

/*
 * groups        D, >= 1 and <= EP_RATES_REPORTERS_MAX
 * window        samples, 1..EP_RATES_WINDOW_MAX
 * microbatches  M, what the shares of all groups add up to
 * Free with ep_rates_free. Memory: 24 window bytes per reporter, 32 D bytes.
 */
struct ep_rates *ep_rates_new(size_t groups, size_t window,
                              int64_t microbatches);
void ep_rates_free(struct ep_rates *r); /* NULL allowed */

/* One step of one reporter. */
struct ep_rates_sample {
    int64_t reporter; /* 0..EP_RATES_REPORTERS_MAX - 1 */
    int64_t group;    /* 0..D - 1 */
    double ts;        /* s */
    int64_t step;
    int64_t mb;  /* micro-batches; -1: not told. 0: no work, passed over */
    double busy; /* s; NaN: not told, the sample then tells the share only */
};

/*
 * Errors, nothing being changed then: EP_EDOM (group or reporter out of
 * range, ts less than that of the reporter's last sample, busy <= 0 with
 * mb > 0). The message is the reason only.
 * Cost: O(1); O(D) when the shares changed; O(episodes) for a reporter that is
 * new, or in a group that is new to it.
 */
int ep_rates_sample(struct ep_rates *r, const struct ep_rates_sample *s,
                    struct ep_error *err) EP_MUST_USE;

/* Something changed. */
struct ep_rates_event {
    struct ep_span eid; /* the episode; copied */
    bool onset;         /* onset or worsening; false: relief */
    int64_t reporter;   /* which it names, or -1 */
    int64_t group;      /* its group, or the one that is named; or -1 */
    double factor;      /* of an onset, > 0; NaN: not told, counts as 1 */
    double ts;          /* when it was decided */
    double since;       /* when it began */
    int64_t step;       /* the step then, -1: not told */
};

/*
 * An event that began before the one that parts the samples now leaves the
 * parting where it is. Errors, nothing being changed then: EP_EDOM (reporter
 * or group out of range, factor <= 0), EP_ELIMIT (EP_RATES_EPISODES_MAX,
 * EP_RATES_EID_MAX). Cost: O(reporters x window + episodes).
 */
int ep_rates_event(struct ep_rates *r, const struct ep_rates_event *e,
                   struct ep_error *err) EP_MUST_USE;

/* Samples since the last event was taken, of whom has most. */
size_t ep_rates_fresh(const struct ep_rates *r);

enum ep_rates_source {
    EP_RATES_MEASURED, /* median of samples, since the event if there was one */
    EP_RATES_BEFORE,   /* median before the event, times what it changed */
    EP_RATES_ASSUMED,  /* healthy pace of the others, times the own factor */
};

struct ep_rates_group {
    double pace;    /* s per micro-batch, or relative; finite, > 0 */
    size_t samples; /* behind the median */
    enum ep_rates_source source;
};

/*
 * The pace of all groups; returns how many of them are measured (or from
 * before the event). 0: the paces are relative.
 *
 * out     [D]
 * Cost: O(reporters x window); no allocation.
 */
size_t ep_rates_paces(struct ep_rates *r, struct ep_rates_group *out);

/* The group that a reporter told last; -1 if it has told none. */
int64_t ep_rates_group_of(const struct ep_rates *r, int64_t reporter);

/* Did an event ever name a reporter or a group? */
bool ep_rates_named(const struct ep_rates *r);

enum ep_rates_told {
    EP_RATES_NONE,  /* no group told its share */
    EP_RATES_SOME,  /* not all of them did */
    EP_RATES_OTHER, /* they add up to something other than M */
    EP_RATES_ALL,
};

/*
 * The current shares: mb of the latest sample of each group, as they were
 * when they last added up to M. While new shares are being applied they do
 * not, for a moment; only if that lasts for more than "window" steps the
 * answer becomes EP_RATES_OTHER.
 *
 * share   [D] out; written with EP_RATES_ALL only
 * groups  out, may be NULL: how many told
 * sum     out, may be NULL: of their latest shares
 */
enum ep_rates_told ep_rates_shares(const struct ep_rates *r, int64_t *share,
                                   size_t *groups, int64_t *sum);

#endif
