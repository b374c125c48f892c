/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gps.h - the global server as a state machine, pure like lps.h.
 *
 *     on u of client r, in the order of arrival:
 *         optimiser step with u; version += 1
 *         send the parameters back to that client only
 *     on a fetch of client r (one that was away, or takes them elsewhere):
 *         what it holds is what it fetched; its exchange is given up
 *
 * Clients are the regions of HALoS (arXiv 2506.04531, algorithm 2), or the
 * workers themselves: then this is asynchronous local SGD with delayed
 * Nesterov (arXiv 2401.09135).
 */
#ifndef EP_LSGD_GPS_H
#define EP_LSGD_GPS_H

#include "lsgd/lps.h"

struct ep_gps_config {
    struct ep_outer outer;
    bool q4; /* replies are differences to what the client holds */
};

struct ep_gps_client {
    uint64_t exchange; /* the last one that was answered */
    uint64_t version;  /* GPS version that the client holds */
    struct ep_work work;
};

/* Read-only for others. */
struct ep_gps {
    struct ep_gps_config config;
    uint64_t t;
    uint64_t version;
    struct ep_work work;          /* credited, of all clients */
    struct ep_gps_client *client; /* [nclients], owned */
    size_t nclients;
};

struct ep_gps_effect {
    uint64_t staleness;     /* versions since what the client held */
    struct ep_vecop ops[2]; /* STEP, REPLY */
    size_t nops;
    uint64_t version; /* of the reply */
};

/* EP_EDOM "NAME: reason"; nothing to free then. nclients >= 1. */
int ep_gps_init(struct ep_gps *g, const struct ep_gps_config *config,
                size_t nclients, struct ep_error *err) EP_MUST_USE;
void ep_gps_free(struct ep_gps *g); /* all-zero allowed */

/*
 * Exchange x of a client. EP_EDOM if client >= nclients or x is not the one
 * after the last answered ("cannot apply delta: ..."); nothing has changed
 * then. O(1).
 */
int ep_gps_delta(struct ep_gps *g, size_t client, uint64_t x,
                 const struct ep_work *w, struct ep_gps_effect *out,
                 struct ep_error *err) EP_MUST_USE;

/*
 * A client has taken the parameters of a version, usually the current one,
 * other than by a reply: after it was away, or when its delta was lost. What
 * it holds is then that version, from which the staleness of its next delta
 * counts. Told at the fetch or, if that is out of sight, before the delta that
 * started from it. The exchange that was under way, if any, is given up: no
 * number has passed, the next delta's is again the last answered plus 1, and
 * the driver hands in none of before.
 *
 * The vectors are the driver's: theta to the client (EP_OP_FETCH), and with q4
 * also into its replica, so that then only the current version will do.
 *
 * EP_EDOM if client >= nclients or there is no such version ("cannot fetch
 * parameters: ..."); nothing has changed then. O(1).
 */
int ep_gps_fetch(struct ep_gps *g, size_t client, uint64_t version,
                 struct ep_error *err) EP_MUST_USE;

#endif
