/* SPDX-License-Identifier: Apache-2.0 */
/* comms_trial.h - hypotheses on trial, for comms_locate.c and comms_names.c. */
#ifndef EP_DETECT_COMMS_TRIAL_H
#define EP_DETECT_COMMS_TRIAL_H

#include "detect/comms_impl.h"

enum kind { LINK, NODE, INSIDE, GROUP, ALL, KINDS };

/* A link is between nodes: hosts, or ranks where there is one host. */
struct hypothesis {
    enum kind kind;
    int32_t a, b; /* nodes; GROUP: a is the number of the evidence */
    double wy, w; /* sums */
    uint64_t set;
    size_t n;     /* series */
    size_t stamp; /* the series that was added last, + 1 */
    double phi, gain, weight;
};

struct trial {
    const struct comms_job *job;
    const struct comms_evidence *e;
    size_t n;
    double least;
    bool hosts;   /* nodes are hosts */
    bool classes; /* series are compared with others, not with their past */
    struct hypothesis *h;
    size_t nh, cap;
    uint32_t *table; /* of links, number + 1; a power of 2 */
    size_t slots, links;
    uint32_t *node, *inside; /* [nodes] hypothesis + 1 of each */
    uint32_t all;            /* likewise */
    uint32_t *in;            /* hypotheses of each series, one after another */
    size_t nin, in_cap;
    size_t *until; /* [n] where those of a series end */
};

/* ---- comms_names.c ---- */

/* Scope, id and candidates of the best; false: nothing can be named. */
bool comms_name(const struct trial *t, const struct hypothesis *best,
                struct ep_comms_place *out);

/* The evidence. classes: it was compared with others, not with its past. */
void comms_explain(const struct trial *t, const struct hypothesis *best,
                   bool classes, struct ep_comms_place *out);

#endif
