/* SPDX-License-Identifier: Apache-2.0 */
/*
 * explain.h - the figures behind a finding, while it is reported: what the
 * series did, what its peers and the whole job did, and what a change has to
 * be to count.
 *
 * Everything is taken from what the watch holds anyway (the last "window"
 * samples of each series), so that a run that explains decides the same.
 */
#ifndef EP_DETECT_EXPLAIN_H
#define EP_DETECT_EXPLAIN_H

#include "base/buf.h"
#include "detect/watch.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define EP_EXPLAIN_PEERS 5 /* that are named */

struct ep_explain_sample {
    int64_t step;
    double ts, value; /* s */
    bool since;       /* the change */
};

/* A rank or worker: the median of its samples since the change, or of those
   before it too if there are none since, s. */
struct ep_explain_peer {
    const char *id, *host; /* host: NULL if not known */
    double value;
};

/* Strings are borrowed until the call of fn ends; what is not known is NaN. */
struct ep_explain {
    /* what the series' values are, "busy per micro-batch"; NULL: it has none */
    const char *what;
    struct ep_explain_sample sample[EP_WATCH_WINDOW_MAX]; /* oldest first */
    size_t n, nbefore, nafter; /* all; before the change; since */
    double before, after;      /* medians, s */
    double healthy, level;     /* s, as in changepoint.h */
    double noise;              /* sigma of log(value) */
    /* |log(after / before)| over 1.2533 noise sqrt(1/nafter + 1/nbefore) */
    double errors;
    /* what is asked of a change */
    double min_change, z;
    unsigned confirm;
    /* the others that tell the same kind of value */
    size_t peers;
    double peers_median; /* of their values since the change, s */
    double factor;       /* own median since over that */
    size_t alike; /* peers whose own factor since is >= 1 + min_change / 2 */
    double alike_factor; /* median of those factors of all peers */
    struct ep_explain_peer slowest[EP_EXPLAIN_PEERS]; /* slowest first */
    size_t nslowest;
    /* the whole job, s */
    double job_level, job_healthy, job_noise;
};

/*
 * For fn of ep_watch_new, while it is called: the figures behind what it was
 * given. false outside of it. Cost: O(ranks of the job x window).
 */
bool ep_watch_explain(const struct ep_watch *w, struct ep_explain *out);

/*
 * They as lines for people, each behind indent blanks: a bar for each of the
 * last EP_EXPLAIN_BARS samples, those since the change marked, then the change
 * against what is asked of it, the peers, and the job.
 */
#define EP_EXPLAIN_BARS 24
void ep_explain_print(const struct ep_explain *x, const struct ep_finding *f,
                      int indent, struct ep_buf *out);

#endif
