/* SPDX-License-Identifier: Apache-2.0 */
/*
 * comms_impl.h - what the files of comms.h share: jobs, members of
 * communicators, and series of transfers.
 */
#ifndef EP_DETECT_COMMS_IMPL_H
#define EP_DETECT_COMMS_IMPL_H

#include "detect/comms.h"

#include "base/intern.h"

enum {
    COMMS_BIN = 8,     /* bins of a size */
    COMMS_LEVELS = 12, /* sizes: 8 * (2^12 - 1) calls */
    COMMS_BINS = COMMS_BIN * COMMS_LEVELS,
    COMMS_BEST =
        4, /* the level whose bins, of 16 calls, are a sustained pace */
    COMMS_KINDS = 8,  /* classes of a series that are told apart */
    COMMS_LATES = 32, /* last to arrive: runs of calls that are kept */
    COMMS_RUN = 8,
    COMMS_SLOTS = 8, /* calls of a series that may be awaited, at first */
    COMMS_SLOTS_MAX = 256,
    COMMS_OF_RANK = 1024, /* communicators of a rank */
    COMMS_ENDS = 1024,    /* peers of a member, each way */
};

/* What the structs below hold is saved by comms_archive.c. */

/* Means of 2^level calls; t: of the last call in it. A ring. */
struct comms_level {
    double t[COMMS_BIN];
    float v[COMMS_BIN];
};

struct comms_past {
    struct comms_level *level; /* [levels] */
    uint8_t levels, head[COMMS_LEVELS], n[COMMS_LEVELS];
    float best; /* least v of a bin of COMMS_BEST; INFINITY */
};

struct comms_bin {
    double from, to; /* s: of the last call before it, and the last in it */
    double v, calls;
};

struct comms_kind {
    uint64_t key;
    double ref; /* log s */
    uint64_t n;
};

/* A call whose ends are awaited; n 0: none. */
struct comms_slot {
    int64_t seq;
    double ts; /* of the last to arrive */
    uint64_t kind;
    int64_t bytes;
    float least, second; /* s */
    int32_t who;         /* comm_rank of the last to arrive */
    uint32_t n;
    bool done;
};

/* Up to COMMS_RUN calls in a row with the same one last. */
struct comms_late {
    double ts;   /* of the first */
    float until; /* s from there to the last */
    float gap;   /* s that the next to last waited for it, all together */
    int32_t who;
    uint32_t n;
};

/* Transfers of a communicator, or from one rank of it to another. */
struct comms_track {
    struct comms_group *group;
    size_t at;        /* in the job's, while they are saved or loaded */
    int32_t src, dst; /* comm_ranks; -1: all ranks, a collective */
    struct comms_slot *slot;
    uint32_t slots, lost; /* slots: a power of 2 */
    uint32_t want;        /* ends that complete a call; 0: not known (yet) */
    uint64_t begun;       /* slots */
    bool counted;         /* seq does not match: by count */
    struct comms_past past;
    struct comms_kind *kind;
    uint32_t kinds;
    uint64_t calls;
    double mixed;            /* ts at which a class came into it; -INFINITY */
    struct comms_late *late; /* [COMMS_LATES], a ring; NULL */
    uint32_t lates;
};

/* A member's end of a pair of ranks. */
struct comms_end {
    int32_t peer;
    bool send;
    int64_t seq, count;
    double ts;
    struct comms_track *track;
};

struct comms_member {
    struct comms_group *group;
    struct comms_track *track; /* of the group, once it had a collective */
    int32_t comm_rank, rank;
    int64_t seq, count; /* seq: of its last collective; -1 */
    double ts;
    struct comms_end *end;
    uint32_t ends, last;
};

struct comms_group {
    struct comms_job *job;
    size_t at; /* as of a track */
    char *name;
    size_t len;
    uint64_t hash;
    int64_t nranks;               /* -1: not told */
    struct comms_member **member; /* by comm_rank, NULL: not heard */
    size_t cap, n;
    uint64_t joined; /* slots begun when the last member came */
    bool mixed;      /* two ranks with one comm_rank: several communicators */
    bool full;       /* every pair exchanges: all_to_all */
    struct comms_track *track;
};

struct comms_rank {
    int64_t pid;
    int32_t host; /* -1 */
    uint32_t n, cap, last;
    struct comms_place {
        uint64_t hash; /* of the communicator's name */
        struct comms_member *member;
    } * in;
};

struct comms_job {
    struct ep_comms *all;
    char *name;
    size_t len;
    struct ep_intern *hosts;
    struct comms_rank **rank;
    size_t ranks; /* allocated */
    struct comms_group **group;
    size_t groups, groups_cap;
    uint32_t *table; /* of groups by hash, number + 1; a power of 2 */
    size_t slots;
    struct comms_track **track;
    size_t tracks, tracks_cap;
    double first; /* ts of its first call; NaN */
};

struct ep_comms {
    double least; /* log(1 + min_change) */
    struct ep_intern *names;
    struct comms_job **job;
    size_t cap;
    struct comms_job *last;
    struct ep_comms_summary sum;
    struct ep_buf id, text;
};

/* ---- comms.c ---- */

/* NULL: no such job. */
struct comms_job *comms_job(const struct ep_comms *c, struct ep_span name);

/* New if it was not there; NULL: there are too many. */
struct comms_job *comms_add_job(struct ep_comms *c, struct ep_span name,
                                struct ep_error *err);

/* New ones if they were not there; NULL if there is no room. */
struct comms_rank *comms_find_rank(struct comms_job *j, int64_t rank);
struct comms_group *comms_find_group(struct comms_job *j, struct ep_span name);
struct comms_track *comms_add_track(struct comms_group *g, int32_t src,
                                    int32_t dst);

/*
 * A member that was saved: of a rank, not in it yet; last: the last that came to
 * its place. NULL if it or another is there already, or there is no room.
 */
struct comms_member *comms_add_member(struct comms_group *g,
                                      struct comms_rank *r, int32_t rank,
                                      int32_t comm_rank, bool last);

/* Would more bytes be too many? */
bool comms_full(struct ep_comms *c, size_t more);

/* Of a member of a group that was heard: host, -1 if not told. */
int32_t comms_host(const struct comms_member *m);

/* ---- comms_track.c ---- */

/* What one end of a call tells. */
struct comms_arrival {
    int64_t seq, bytes;
    int32_t who;
    uint64_t kind;
    double ts, dur;
};

/* NULL if there is no room. Owned by the job. */
struct comms_track *comms_track_new(struct comms_group *g, int32_t src,
                                    int32_t dst);
void comms_track_free(struct comms_track *t);

void comms_arrive(struct comms_track *t, const struct comms_arrival *a);

/* An end was restarted: calls of which it was at or before ts are over. */
void comms_forget(struct comms_track *t, double ts);

/* Bins, the oldest first. Returns how many. */
size_t comms_bins(const struct comms_past *p, struct comms_bin *out);

/* The class with the most calls; NULL if there is none. */
const struct comms_kind *comms_main(const struct comms_track *t);

/* ---- comms_evidence.c ---- */

struct comms_evidence {
    const struct comms_track *track;
    uint64_t kind;                     /* class, and whether it leaves a host */
    double before, since;              /* v */
    double nbefore, nsince;            /* calls; nbefore 0: not known */
    double squares, freedom, variance; /* of a call */
    double y, se;
    double w; /* 1 / se^2; 0: it says nothing */
    bool remote;
};

/*
 * Of all series of the job that have calls since then. *least: 0 if they are
 * compared with their own past; else they are with others of their class, and
 * that is the least y that counts. Caller frees.
 */
struct comms_evidence *comms_gather(const struct comms_job *j, double since_ts,
                                    size_t *n, double *least);

/* ---- comms_late.c ---- */

bool comms_locate_late(struct ep_comms *c, const struct comms_job *j,
                       double since_ts, struct ep_comms_place *out);

#endif
