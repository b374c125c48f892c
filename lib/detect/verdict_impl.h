/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verdict_impl.h - the weighing of causes; for verdict_cause.c, which has the
 * rules at its head, and verdict_sensors.c alone.
 */
#ifndef EP_DETECT_VERDICT_IMPL_H
#define EP_DETECT_VERDICT_IMPL_H

#include "detect/watch_impl.h"

#include <math.h>

#define DIRECT 50.0
#define SIGN 10.0
#define HINT 3.0
#define NORMAL 0.1

/* Of the slowdown, as a power of it, that a sensor has to explain. */
#define EXPLAINS 0.4

enum cause {
    COMPUTE,
    CPU,
    MEMORY,
    STORAGE,
    GC,
    STAGE,
    SEQUENCE,
    LINK,
    NETWORK,
    OTHER,
    CAUSES,
};

/* What was looked at and found normal, for people. */
enum looked { CLOCKS, MEMORY_CLOCK, CPUS, IO, LINKS, TOKENS, LOOKED };

struct note {
    enum cause cause;
    char text[96];
};

/* One question: sensors, and what speaks for and against which cause. */
struct trial {
    struct senses s;
    double factor;
    bool among;            /* against peers: no healthy past */
    double weight[CAUSES]; /* log of the odds so far */
    bool normal[LOOKED];
    bool fresh; /* a sensor was read since the change */
    struct note notes[EP_SENSORS + 2];
    size_t n;
};

static inline void weigh(struct trial *t, enum cause c, double times)
{
    t->weight[c] += log(times);
}

/* Share of the slowdown, as a power of it, in a ratio that should be 1. */
static inline double explained(const struct trial *t, double ratio)
{
    return t->factor > 1 ? log(ratio) / log(t->factor) : 0;
}

/* A note for people, "3 rows remapped"; without the count if that is 0. */
void ep_verdict_note(struct trial *t, enum cause c, double count,
                     const char *text);

/*
 * All sensors but those of the network. longer: by how many seconds each
 * micro-batch takes longer, 0 if that is not known.
 */
void ep_verdict_sensors(struct trial *t, double longer);

/* Those of links and of the network. */
void ep_verdict_transport(struct trial *t);

#endif
