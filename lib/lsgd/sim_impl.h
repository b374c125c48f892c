/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sim_impl.h - what the files of the simulator share; private to sim*.c.
 *
 * sim.c has workers, failures and servers' queues; a method says by a table of
 * functions what is done with what arrives. Servers are numbered: region r's
 * is r, the global one nregions. Senders of links.h: worker w is w, the
 * exchange of region r with the global server is nworkers + r.
 */
#ifndef EP_LSGD_SIM_IMPL_H
#define EP_LSGD_SIM_IMPL_H

#include "base/rng.h"
#include "lsgd/clock.h"
#include "lsgd/gps.h"
#include "lsgd/links.h"
#include "lsgd/lps.h"
#include "lsgd/round.h"
#include "lsgd/sim.h"
#include "lsgd/worker.h"

/* Kinds of events. id, gen: */
enum {
    EP_EV_ARRIVED, /* sender, links.h's */
    EP_EV_ENDED,   /* link, links.h's */
    EP_EV_TRAINED, /* worker, its life */
    EP_EV_SERVED,  /* server */
    EP_EV_REDUCED, /* -, the attempt */
    EP_EV_DOWN,    /* worker */
    EP_EV_UP,      /* worker */
};

/* What a worker is at. */
enum ep_sim_state {
    EP_AT_FETCH, /* parameters are on their way to it */
    EP_AT_TRAIN,
    EP_AT_SEND, /* its delta is on its way */
    EP_AT_WAIT, /* for its server, or at the barrier */
    EP_AT_DOWN,
};

struct ep_sim_agent {
    struct ep_worker machine;
    enum ep_sim_state state;
    uint64_t life;    /* rises when it goes down */
    uint64_t fetched; /* version on its way to it, or that it trains from */
    struct ep_worker_effect delta; /* that it has finished */
    double step;                   /* s */
    double round;                  /* s of training */
    double began;                  /* training, s */
    struct ep_rng rng;             /* of its failures */
    size_t failure;                /* next in the list of the environment */
};

/* What a server is handed. */
struct ep_sim_message {
    size_t from;   /* worker, or region (of an exchange) */
    bool exchange; /* a delta of, or a reply to, a region's server */
    uint64_t life; /* of the worker */
    uint64_t number, base, version;
    struct ep_work work;
};

/* A server serves one after the other: a ring of what waits. */
struct ep_sim_server {
    double time; /* s each */
    struct ep_sim_message *queue;
    size_t first, n, cap;
};

struct ep_sim;

struct ep_sim_ops {
    int (*begin)(struct ep_sim *s);
    void (*end)(struct ep_sim *s); /* fill in the result; frees nothing */
    /* The version that a worker would fetch now. */
    uint64_t (*version)(const struct ep_sim *s, size_t worker);
    /* A server is done with a message. */
    int (*serve)(struct ep_sim *s, size_t server,
                 const struct ep_sim_message *m);
    /* A region's exchange arrived; NULL if the method has none. */
    int (*exchanged)(struct ep_sim *s, size_t region);
    /* With a barrier: a worker has finished (instead of sending); has gone
       down; the all-reduce is over. NULL without. */
    void (*finished)(struct ep_sim *s, size_t worker);
    void (*lost)(struct ep_sim *s, size_t worker);
    int (*reduced)(struct ep_sim *s);
    bool regional; /* a worker's server is its region's */
};

extern const struct ep_sim_ops ep_sim_halos, ep_sim_async, ep_sim_rounds;

/* An exchange of a region with the global server, one at a time. */
struct ep_sim_exchange {
    bool up; /* towards the global server */
    struct ep_sim_message message;
};

struct ep_sim {
    const struct ep_env *env;
    enum ep_method method;
    const struct ep_env_method *settings;
    const struct ep_sim_ops *ops;
    struct ep_vclock clock;
    struct ep_links *links;
    double bytes, q4_bytes; /* of a model; of an exchange between servers */
    struct ep_samples samples;
    struct ep_sim_agent *agent;   /* [nworkers] */
    struct ep_sim_server *server; /* [nregions + 1] */
    struct ep_lps *lps;           /* [nregions] */
    uint64_t *dropped; /* [nregions] lost of the LPS at its last merge */
    struct ep_sim_exchange *exchange; /* [nregions] */
    struct ep_gps gps;
    struct ep_round round;
    double ring, ring_between, ring_inside; /* all-reduce: s, bytes */
    size_t finished;                        /* workers at the barrier */
    uint64_t attempt;                       /* of an all-reduce */
    uint64_t credited;                      /* steps */
    bool done;
    struct ep_sim_result *out;
    ep_sim_on_merge *on_merge;
    void *ctx;
    struct ep_error *err;
};

/* A worker fetches the parameters as they are now. */
void ep_sim_fetch(struct ep_sim *s, size_t worker);

/* A worker begins to train from what it fetched, or from a version that it
   has. */
int ep_sim_train(struct ep_sim *s, size_t worker);

/* The region in which a server is. */
size_t ep_sim_region_of(const struct ep_sim *s, size_t server);

/* A message has come to a server: it waits for its turn. */
int ep_sim_arrive(struct ep_sim *s, size_t server,
                  const struct ep_sim_message *m);

/* Count an update, and report it. */
void ep_sim_count(struct ep_sim *s, struct ep_sim_tier *tier,
                  const struct ep_sim_merge *m);

#endif
