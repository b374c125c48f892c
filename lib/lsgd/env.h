/* SPDX-License-Identifier: Apache-2.0 */
/*
 * env.h - what a simulation is about: regions, their workers and links, the
 * model, the settings of each method. lsgd-sim(1) describes the JSON text.
 *
 * Reading is strict: unknown, duplicate and missing keys are errors (all that
 * are missing in an object are named), as are values out of range. Units are in
 * the names of keys.
 */
#ifndef EP_LSGD_ENV_H
#define EP_LSGD_ENV_H

#include "base/err.h"
#include "lsgd/outer.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum ep_method {
    EP_METHOD_HALOS,
    EP_METHOD_ASYNC,
    EP_METHOD_DILOCO,
    EP_METHOD_DILOCO_DYNAMIC,
    EP_METHOD_SYNC,
    EP_METHODS, /* how many */
};

extern const char *const ep_method_names[EP_METHODS];

/* Settings of a method; what a method does not have is 0. */
struct ep_env_method {
    bool given;          /* are they in the file; always for sync */
    uint64_t h;          /* H: local steps of the fastest worker */
    uint64_t k;          /* halos */
    double alpha;        /* halos */
    struct ep_outer lps; /* halos */
    struct ep_outer gps; /* of the global model */
};

struct ep_env_region {
    char *name;   /* letters, digits, '.', '_', '-'; owned */
    size_t first; /* worker, in the order of regions */
    size_t workers;
};

struct ep_env_failure {
    size_t worker;
    double down, up; /* s; up is infinite if it never comes back */
};

#define EP_ENV_EVENTS 20000000 /* max_events; about 3 s */

/* Caps, so that no number of the file becomes an allocation or a loop. */
enum {
    EP_ENV_WORKERS = 4096,
    EP_ENV_FAILURES = 65536,
    EP_ENV_NAME_BYTES = 64, /* of a region */
};

/* Fields may be changed within the ranges of lsgd-sim(1). */
struct ep_env {
    struct ep_env_region *region; /* [nregions] */
    size_t nregions;              /* at most EP_LINKS_REGIONS */
    double *speed;                /* [nworkers] > 0, in any unit */
    size_t *region_of;            /* [nworkers] */
    size_t nworkers;              /* at most EP_ENV_WORKERS */
    double fastest;
    double *gbit_s; /* [nregions][nregions] from, to; diagonal: inside */
    size_t gps_region;
    double step; /* s per local step of the fastest worker */
    uint64_t parameters, bytes_per_parameter;
    uint64_t total_steps, tokens_per_step;
    struct ep_env_method method[EP_METHODS];

    /* options, all off by default */
    double latency; /* s per message */
    bool contention;
    double lps_time, gps_time;      /* s per update */
    double mttf, rejoin;            /* mean s; mttf 0: no such failures */
    struct ep_env_failure *failure; /* [nfailures] by worker, then down */
    size_t nfailures;
    uint64_t seed;
    uint64_t
        max_events; /* a run that needs more is given up; not in the file */
    bool carry, q4;
};

/*
 * text    [len] JSON
 * Errors: EP_EFORMAT, EP_ETRUNC, EP_ELIMIT, EP_ERANGE, EP_EDOM with "line
 * L, column C (byte N): KEY: reason", L and C from 1; nothing to free then. Cost: O(len).
 */
int ep_env_parse(struct ep_env *env, const char *text, size_t len,
                 struct ep_error *err) EP_MUST_USE;
void ep_env_free(struct ep_env *env); /* all-zero allowed */

/* Multiply the bandwidth between regions, not that inside. factor > 0. */
void ep_env_scale_links(struct ep_env *env, double factor);

#endif
