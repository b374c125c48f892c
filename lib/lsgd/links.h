/* SPDX-License-Identifier: Apache-2.0 */
/*
 * links.h - how long transfers take.
 *
 * A link leads from a region to a region: its bandwidth is a matrix's, and the
 * two directions do not slow each other. Inside a region there are two, one to
 * its server and one from it.
 *
 *     alone         bytes x 8 / bandwidth + latency
 *     contention    the transfers that are on a link at once share it equally
 *
 * Equal sharing is exact [1, fluid model; virtual time]: on a link with n
 * transfers its virtual time V grows by bandwidth / n per second, a transfer
 * of B bits that begins at V0 ends when V reaches V0 + B, and only the next
 * end of a link is on the clock. Latency comes after the bits, and is shared
 * with nobody.
 *
 * A sender has one transfer at a time. All-reduces are not transfers: see
 * ep_links_allreduce.
 *
 * [1] Parekh, Gallager, "A generalized processor sharing approach to flow
 *     control in integrated services networks", IEEE/ACM Transactions on
 *     Networking 1 (1993).
 */
#ifndef EP_LSGD_LINKS_H
#define EP_LSGD_LINKS_H

#include "lsgd/clock.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define EP_LINKS_REGIONS 16 /* at most; ep_ring_narrowest is exponential */

struct ep_links_config {
    size_t nregions;      /* 1 .. EP_LINKS_REGIONS */
    const double *gbit_s; /* [n][n] from, to; diagonal: inside. Borrowed */
    double latency;       /* s per message, >= 0 */
    bool contention;
    size_t nsenders;
    uint32_t arrived, ended; /* kinds of events that belong to this module */
};

struct ep_links; /* opaque */

/* The clock is borrowed. Never NULL. */
struct ep_links *ep_links_new(const struct ep_links_config *config,
                              struct ep_vclock *clock);
void ep_links_free(struct ep_links *l); /* NULL allowed */

/* Which link: inside a region (from == to), down is the one from its server. */
size_t ep_links_between(const struct ep_links *l, size_t from, size_t to,
                        bool down);

/*
 * A sender, who has nothing on its way, begins a transfer. An event of kind
 * arrived with id sender will come.
 * Cost: O(log n) with n transfers on the link.
 */
void ep_links_send(struct ep_links *l, size_t sender, size_t link,
                   double bytes);

/* What a sender has on its way is lost; nothing if there is nothing. */
void ep_links_cancel(struct ep_links *l, size_t sender);

/* An event of kind ended came. */
void ep_links_ended(struct ep_links *l, const struct ep_vevent *e);

/* An event of kind arrived came: true if it counts (was not cancelled); its
   bytes are then credited, and the sender is free. */
bool ep_links_arrived(struct ep_links *l, const struct ep_vevent *e);

/* Bytes that arrived so far, between regions and inside them; exact below
   2^53. */
void ep_links_bytes(const struct ep_links *l, double *between, double *inside);

/*
 * The link whose transfers so far, those that arrived, would need most time one
 * after the other, latency apart: how much, in s, and from where to where. 0
 * if nothing has arrived. More than the time that has passed: without
 * contention they were given more than the link has.
 */
double ep_links_busiest(const struct ep_links *l, size_t *from, size_t *to);

/* Add bytes that went over links without a transfer (all-reduces). */
void ep_links_credit(struct ep_links *l, double between, double inside);

/*
 * Bandwidth of the narrowest link of the best ring through all n regions: the
 * Hamiltonian cycle whose narrowest link is widest. n = 1: infinite.
 *
 * gbit_s  [n][n] from, to; n <= EP_LINKS_REGIONS
 * Cost: O(2^n n log n).
 */
double ep_ring_narrowest(const double *gbit_s, size_t n);

/*
 * Ring all-reduce [2] of bytes over all workers, in the order of regions on
 * the best ring:
 *
 *     2 (w - 1) / w x bytes x 8 / narrowest + 2 (w - 1) latency
 *
 * with w workers in all; the narrowest link is that between regions or, in a
 * region of two or more workers, the one inside. 0 for one worker. *between
 * and *inside become the bytes that all workers send.
 *
 * workers [nregions], each >= 1
 * [2] Patarasuk, Yuan, "Bandwidth optimal all-reduce algorithms for clusters of
 *     workstations", J. Parallel and Distributed Computing 69 (2009).
 */
double ep_links_allreduce(const struct ep_links *l, const size_t *workers,
                          double bytes, double *between, double *inside);

#endif
