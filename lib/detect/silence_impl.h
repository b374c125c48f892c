/* SPDX-License-Identifier: Apache-2.0 */
/*
 * silence_impl.h - what the files of silence share; for them alone.
 *
 *   silence.c         signs: jobs, ranks, communicators, progress, restarts
 *   silence_judge.c   a look at all: who is stuck, and who is to blame
 *   silence_report.c  episodes: how several ranks are named, findings out
 *   silence_archive.c all of it in bytes
 */
#ifndef EP_DETECT_SILENCE_IMPL_H
#define EP_DETECT_SILENCE_IMPL_H

#include "base/intern.h"
#include "detect/silence.h"
#include "detect/watch.h"

#define RESTART_STEPS 4  /* by which steps fall */
#define RESTART_CALLS 64 /* by which a seq falls */

/* How far a rank is in a communicator. */
struct at {
    uint32_t comm; /* its number in the job */
    bool open;     /* the call is known to be under way */
    int64_t seq;   /* or a count */
    double ts;     /* when that came */
};

struct comm {
    int64_t nranks;   /* -1: not told */
    int64_t newest;   /* highest seq */
    double last, gap; /* when that came, and how long after the one before */
    /* while a look is taken: members, the least and the highest seq of them,
       how many are below the highest, or at a call under way */
    size_t n, below, open, blamed;
    int64_t lo, hi;
};

struct episode {
    char *eid, *id, *host; /* id, host: NULL if it has none */
    enum ep_scope scope;
    const char *cause; /* a constant */
    int64_t rank, step;
    double since, factor, p;
    size_t n, back; /* ranks, and how many of them have come back */
    bool open;
};

/* A rank, a worker, or (neither) the job's own records. */
struct member {
    struct episode *ep; /* it is missing */
    int64_t rank, pid, step;
    char *id;  /* "rank=3"; NULL for the job */
    long host; /* -1: not known */
    bool worker;
    struct ep_place place;
    uint32_t epoch;      /* restarts of the job that it has been through */
    double moved, other; /* latest progress, other record; -inf */
    double beat, usual;  /* the last step (call); NaN: not known */
    double pause[2];     /* the longest two */
    uint64_t moves, job_moves; /* its own; those of the job at that time */
    struct at *at;
    uint32_t nat, cap, recent; /* recent: of at, the latest */
    /* while a look is taken */
    bool active, behind, ahead, suspect;
    uint32_t why; /* of comms: where it is behind; UINT32_MAX: in steps */
};

struct job {
    char *name;
    size_t len;
    struct member **rank; /* [cap], NULL where none */
    size_t cap;
    struct ep_intern *workers;
    struct member **worker; /* by their numbers */
    size_t workers_cap;
    struct member **v; /* [n] all of them */
    size_t n, vcap;
    struct ep_intern *comm_names;
    struct comm *comms;
    size_t comms_cap;
    const struct comm *hung; /* of comms, while a look is taken */
    struct episode **episodes;
    size_t nepisodes, episodes_cap;
    bool steps; /* tells steps: these are the intervals */
    bool stuck; /* and that was judged */
    uint32_t epoch;
    uint64_t moves, signs; /* signs: as below, at the last look */
    double restart_ts, moved, usual, pause[2], looked;
    int64_t max_step;
};

struct ep_silence {
    struct ep_silence_config config;
    void (*fn)(void *ctx, const struct ep_finding *f);
    void *ctx;
    struct ep_intern *job_names, *host_names, *eids;
    struct job **jobs;
    size_t jobs_cap;
    struct job *last;
    double *host_sign; /* by host: its latest record without a rank */
    size_t host_cap;
    uint64_t signs; /* with which time went on */
    double now, swept;
    struct member **set; /* room for members */
    size_t set_cap;
    struct ep_buf text, who;
};

/* ==== silence.c ==== */

/* NULL with *err set: there are too many. */
struct job *ep_silence_job(struct ep_silence *s, struct ep_span name,
                           struct ep_error *err);

/* The number of a host; -1 without a name, or if there are too many. */
long ep_silence_host(struct ep_silence *s, struct ep_span name);

/* The number of a communicator; -1 if there are too many. */
long ep_silence_comm(struct job *job, struct ep_span name);

/*
 * Who tells it. NULL without *err: nobody, since a rank of whom there is no
 * progress is not waited for. The job's own records are before all ranks.
 */
struct member *ep_silence_member(struct ep_silence *s, struct job *job,
                                 const struct ep_sign *x, struct ep_error *err);

/* ==== silence_judge.c ==== */

/* live: now is of the wall clock. */
void ep_silence_look(struct ep_silence *s, struct job *job, bool live);
void ep_silence_look_last(struct ep_silence *s, struct job *job);

/* ==== silence_report.c ==== */

/* What is common to the members of one report. */
struct report {
    const char *cause;
    double p, usual; /* usual: NaN if not known */
    enum ep_scope scope;
    const char *id; /* of the whole; NULL: the job, or each by itself */
    /* the evidence, appended to s->text */
    void (*tell)(struct ep_silence *s, const struct job *job,
                 struct member *const *v, size_t n);
};

/* One finding for all in v[0..n). */
void ep_silence_report(struct ep_silence *s, struct job *job,
                       struct member *const *v, size_t n,
                       const struct report *r);

/* v[0..n) by hosts, by ranks, or as a group; they are sorted. */
void ep_silence_report_each(struct ep_silence *s, struct job *job,
                            struct member **v, size_t n,
                            const struct report *r);

/* A member made progress. */
void ep_silence_back(struct ep_silence *s, struct job *job, struct member *m);

/* The job was restarted: all its episodes end. */
void ep_silence_end_all(struct ep_silence *s, struct job *job, double ts);

void ep_silence_free_episodes(struct job *job);

#endif
