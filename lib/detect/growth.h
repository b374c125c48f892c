/* SPDX-License-Identifier: Apache-2.0 */
/*
 * growth.h - by how much counters grew since they were last read.
 *
 * Counters are known by a device's number and a name, of which a hash of 64 bits
 * is kept alone: 32 bytes a counter, where node_exporter has one per CPU, disk
 * and link.
 */
#ifndef EP_DETECT_GROWTH_H
#define EP_DETECT_GROWTH_H

#include "base/archive.h"
#include "base/buf.h"

#include <stddef.h>
#include <stdint.h>

#define EP_GROWTH_MAX 4000000

struct ep_counter;

/* All zero to begin with. */
struct ep_growth {
    struct ep_counter *v;
    size_t n, slots; /* slots: 0 or a power of two */
};

void ep_growth_free(struct ep_growth *g);

/*
 * A counter that falls was reset, and grew by what it now says (as rate() of
 * Prometheus has it). NaN at its first reading, and of one more than
 * EP_GROWTH_MAX. Cost: O(1).
 */
double ep_growth_since(struct ep_growth *g, size_t device, struct ep_span name,
                       double value);

/* Save or load; g is all zero when it is loaded into. 16 bytes a counter. */
void ep_growth_archive(struct ep_archive *a, struct ep_growth *g);

#endif
