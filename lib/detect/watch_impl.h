/* SPDX-License-Identifier: Apache-2.0 */
/*
 * watch_impl.h - what the files of watch share; for them alone.
 *
 *   watch.c        series and jobs by name, findings out
 *   watch_steps.c  steps of ranks, workers and jobs
 *   watch_peers.c  comparison of ranks by steps
 *   watch_probes.c comparison of devices by probes
 *   watch_incident.c, incident*.c  what is one cause; see incident.h
 *   watch_comms.c  where slow communication is
 *   verdict.c      causes
 */
#ifndef EP_DETECT_WATCH_IMPL_H
#define EP_DETECT_WATCH_IMPL_H

#include "base/intern.h"
#include "detect/watch.h"

#define OPEN_STEPS 4      /* steps of a job that wait for more ranks */
#define SHARES 32         /* readings of cpu_share that are kept */
#define RECENT_SLOTS 1024 /* a power of two */

/* What a series' values are. */
enum basis { BASIS_NONE, BASIS_PER_MB, BASIS_BUSY, BASIS_DUR };

struct sample {
    int64_t step;
    double ts, value;
};

/* An episode, of a test or as it was reported, and whether it goes on. */
struct episode {
    bool open;
    char *eid;         /* of the latest that was reported; else NULL */
    const char *cause; /* a constant */
    double since, factor, p;
    double excess; /* factor over that of the other ranks at that time */
    int64_t step;
};

struct link; /* incident.h */

struct series {
    enum ep_scope scope;
    struct job *job;
    int64_t rank;
    char *id, *host; /* host may be NULL */
    struct ep_place place;
    enum basis basis;
    int other;   /* samples in a row that are of another basis */
    bool member; /* is in its job's ranks or workers */
    struct ep_changepoint *pace; /* NULL until the first step */
    double last_ts;
    int64_t last_step;
    int unjudged;       /* samples to pass over after a restart */
    unsigned muted;     /* pace episode that all ranks share: not reported */
    struct episode ep;  /* of the pace: what the test says */
    size_t index;       /* among the members */
    double handicap;    /* slow before its pace was known: by that factor */
    struct link *links; /* the incidents that it has a part in */
    /* the last "window" samples, a ring: kept of them, the next goes to at */
    struct sample *ring;
    int kept, at;
    /* comparison with the peers: those missed since the last sample; verdicts
       in a row, and since when */
    int missed;
    int64_t hits, clean;
    double turn_ts;
    int64_t turn_step;
    struct episode peer; /* its factor is that of the last comparison */
    /* cpu_share, a ring */
    struct sample *shares;
    int64_t nshares;
};

struct open_step {
    int64_t step, n; /* n ranks have reported; 0: slot is free */
    double ts, dur, end;
};

/* The ranks, or the workers, of a job that have sent a step. */
struct members {
    struct series **v;
    size_t n, cap;
    int64_t since; /* steps of the job (samples of workers) since the last
                      comparison */
};

/* An incident that is over, in case it comes again. */
struct ended {
    enum ep_scope scope;
    char *id, *eid;
    double ts; /* of the end */
    int64_t step;
    int64_t steps; /* that it lasted, the last time; and s */
    double lasted;
    int64_t times, first_step;
    double first_ts;
};

#define ENDED 32

struct suspicion; /* incident.h */
struct incident;

struct incidents {
    struct incident **v; /* that go on, in the order of their onsets */
    size_t n, cap, resting;
    struct suspicion *held; /* until their steps are closed */
    size_t nheld, held_cap;
    struct ended ended[ENDED];
    /* the job is slow from..to, and charged for up to that */
    double slow_from, slow_to, charged;
    int64_t devices;    /* ranks in the last step */
    int64_t spike_step; /* of a rank, reported; -1 */
    int64_t ease_step;  /* of the last relief; -1 */
    uint64_t stamp;     /* judgements */
    size_t groups;      /* incidents of several ranks */
    size_t seeking;     /* whose place is looked for */
};

struct job {
    char *name; /* "" without one */
    size_t len, number;
    struct members ranks, workers;
    struct series *own; /* the job's pace; NULL until needed */
    struct open_step open[OPEN_STEPS];
    bool told;          /* has step records of its own, without rank */
    int64_t first_step; /* of any rank since the job (re)started; -1 */
    int64_t closed;     /* highest step passed on; -1: none */
    double restart_ts;  /* what is older was before the last restart */
    struct incidents incidents;
};

/* How far the names of episodes with one prefix are used up. */
struct used_name {
    int64_t step, n;
    double since;
};

struct ep_comms_place; /* comms.h */
struct probe_group;    /* watch_probes.c */
struct device;         /* watch_probes.c */

struct ep_watch {
    struct ep_watch_config config;
    void (*fn)(void *ctx, const struct ep_finding *f);
    void *ctx;
    struct ep_intern *job_names, *series_names, *group_names, *device_names;
    struct ep_intern *episode_names;
    size_t total; /* of EP_WATCH_MAX_SERIES */
    struct job **jobs;
    size_t jobs_cap;
    struct series **series;
    size_t series_cap;
    struct probe_group **groups;
    size_t groups_cap;
    struct device **devices;
    size_t devices_cap;
    struct used_name *used;
    size_t used_cap;
    struct job *last_job;
    struct series *recent[RECENT_SLOTS]; /* ranks, by job and number */
    /* room for values of each member; survey: those of all, in order */
    double *work, *survey;
    size_t work_cap, survey_cap;
    struct ep_comms *comms; /* NULL: calls are not followed */
    bool (*locate)(struct ep_comms *c, struct ep_span job, double since_ts,
                   struct ep_comms_place *out);
    struct ep_buf key, text;
};

/* ---- watch.c ---------------------------------------------------------- */

struct job *ep_watch_job(struct ep_watch *w, struct ep_span name,
                         struct ep_error *err);

/* The series of a rank (name empty), worker or (rank -1, no name) job. */
struct series *ep_watch_series(struct ep_watch *w, struct job *job,
                               int64_t rank, struct ep_span worker,
                               struct ep_error *err);

/*
 * Number of a name in one of the sets, which is new if the set has grown; -1
 * with *err set if all sets together are at EP_WATCH_MAX_SERIES.
 */
long ep_watch_number(struct ep_watch *w, struct ep_intern *names,
                     struct ep_span name, struct ep_error *err);

/*
 * Report. e is the episode that the finding opens, goes on with or ends;
 * NULL for a spike. f->id, host, job, rank and scope are filled in from s,
 * eid from e. what is put into a new eid behind the id, or NULL. A relief
 * leaves e open.
 */
void ep_watch_report(struct ep_watch *w, const struct series *s,
                     struct episode *e, const char *what, struct ep_finding *f);

/* An open episode as a finding, to whom ep_watch_open was told. */
void ep_watch_tell(const struct series *s, const struct episode *e,
                   void (*fn)(void *ctx, const struct ep_finding *), void *ctx);

/* ---- watch_steps.c, watch_peers.c, watch_probes.c --------------------- */

/* The ranks or workers among which s is one. */
struct members *ep_watch_members(const struct series *s);

/*
 * What a series did since the change of another: the median of its values
 * (of a spike: the largest) over its healthy level; NaN if unknown.
 */
double ep_watch_factor_since(const struct series *s, const struct ep_change *c);

void ep_watch_end_steps(struct ep_watch *w, struct job *job);

/* One more step of the members (sample of the workers): time to compare? */
void ep_watch_count_step(struct ep_watch *w, struct members *m, int64_t enough,
                         double now);

void ep_watch_finish_probes(struct ep_watch *w);
void ep_watch_tell_devices(const struct ep_watch *w,
                           void (*fn)(void *ctx, const struct ep_finding *),
                           void *ctx);
void ep_watch_free_groups(struct ep_watch *w);

/* ---- verdict.c -------------------------------------------------------- */

/* Why a rank's pace changed: the word, and the evidence into w->text. */
const char *ep_verdict_rank(struct ep_watch *w, const struct series *s,
                            const struct ep_change *c);

/* Why a rank is slower than its peers since a time; evidence is appended. */
const char *ep_verdict_peer(struct ep_watch *w, const struct series *s,
                            double since);

/*
 * The slowest of the ranks that have no past to be held against, as they came a
 * few steps ago, and its factor over the median of all that tell busy / mb.
 * NULL if there is none.
 */
struct series *ep_verdict_newcomer(struct ep_watch *w, const struct job *job,
                                   double *factor);

/* Why the job's pace changed, likewise. */
const char *ep_verdict_job(struct ep_watch *w, const struct job *job,
                           const struct ep_change *c);

#endif
