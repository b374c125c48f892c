/* SPDX-License-Identifier: Apache-2.0 */
/*
 * watch_impl.h - what the files of watch share; for them alone.
 *
 *   watch.c        series and jobs by name, findings out
 *   watch_steps.c  steps of ranks, workers and jobs
 *   watch_work.c   values by the work in them
 *   watch_peers.c  comparison of ranks by steps
 *   watch_early.c  the same from their first steps
 *   watch_probes.c comparison of devices by probes
 *   watch_gauges.c sensors of ranks
 *   verdict.c      causes, and the evidence for them
 *   verdict_cause.c, verdict_sensors.c  which of the causes of slow work
 *   watch_silence.c signs of life
 *   watch_links.c  links, and ends of links, by measurements of pairs
 *   watch_incident.c, incident*.c  what is one cause; see incident.h
 *   watch_comms.c  where slow communication is
 *   watch_archive.c, incident_archive.c, probes_archive.c, links_archive.c
 *                  all of it in bytes: a field more in a struct below is one
 *                  there
 */
#ifndef EP_DETECT_WATCH_IMPL_H
#define EP_DETECT_WATCH_IMPL_H

#include "base/intern.h"
#include "detect/gauges.h"
#include "detect/watch.h"
#include "detect/work.h"

#define OPEN_STEPS 4      /* steps of a job that wait for more ranks */
#define EARLY_STEPS 16    /* of a job that are compared at most */
#define RECENT_SLOTS 1024 /* a power of two */

/* What a series' values are. */
enum basis { BASIS_NONE, BASIS_PER_MB, BASIS_BUSY, BASIS_DUR };

struct sample {
    int64_t step;
    double ts, value;
    double work; /* tokens or flops of a micro-batch; 0: not told */
};

/* An episode, of a test or as it was reported, and whether it goes on. Saved by
   watch_archive.c. */
struct episode {
    bool open;
    char *eid;         /* of the latest that was reported; else NULL */
    const char *cause; /* a constant */
    double since, factor, p;
    double excess; /* factor over that of the other ranks at that time */
    int64_t step;
};

struct link; /* incident.h */

/* Saved by watch_archive.c. */
struct series {
    size_t number; /* its place in w->series */
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
    int unjudged;      /* samples to pass over after a restart */
    unsigned muted;    /* pace episode that all ranks share: not reported */
    double shared;     /* factor of a muted episode; 1 of others, 0: none yet */
    struct episode ep; /* of the pace: what the test says */
    size_t index;      /* among the members */
    double handicap;   /* slow before its pace was known: by that factor */
    struct link *links; /* the incidents that it has a part in */
    /* an incident's: whose samples show it, a rank or the job; NULL: its own */
    const struct series *shown;
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
    /* among the ranks of its host, by number; see ep_watch_place_ranks */
    int64_t local, on_host;
    /* the work in the values: what varies, and phases where the rank is alone
       or known by its calls (NULL until needed) */
    struct ep_work_slope slope;
    struct ep_work *work;
    int64_t phase, job_phase; /* phase told when the job's was job_phase */
    /* loaded: samples that are not later were taken before; not saved */
    bool resumed;
    double old_ts;
    int64_t old_step;
};

/* Saved by watch_archive.c. */
struct open_step {
    int64_t step, n; /* n ranks have reported; 0: slot is free */
    double ts, dur, end;
};

/* What ranks tell of their work in an open step. */
struct load {
    double *all, *mb; /* of those that tell it in the job's unit */
    size_t n, cap, mb_cap;
    size_t moved; /* ranks whose calls have changed since the job's phase */
    double most;
};

/* The ranks, or the workers, of a job that have sent a step. Saved by
   watch_archive.c. */
struct members {
    struct series **v;
    size_t n, cap;
    int64_t since; /* steps of the job (samples of workers) since the last
                      comparison */
    int64_t steps; /* of the job since its start or restart */
    int64_t closed[EARLY_STEPS]; /* their numbers, a ring */
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
    int wait, waits;    /* steps until transfers are asked again; times */
};

/* Saved by watch_archive.c. */
struct job {
    char *name; /* "" without one */
    size_t len, number;
    struct members ranks, workers;
    struct series *own; /* the job's pace; NULL until needed */
    struct open_step open[OPEN_STEPS];
    struct load load[OPEN_STEPS];
    struct ep_work work;
    uint32_t unit;      /* of work: the best that was told */
    int64_t phase;      /* times that the calls of most ranks changed */
    bool told;          /* has step records of its own, without rank */
    int64_t first_step; /* of any rank since the job (re)started; -1 */
    int64_t closed;     /* highest step passed on; -1: none */
    double restart_ts;  /* what is older was before the last restart */
    struct incidents incidents;
    /* when the ranks' places on their hosts were last counted */
    size_t placed;
    double placed_ts;
    /* median work of all ranks since a time, as of a judgement */
    struct {
        uint64_t stamp;
        double since_ts, value;
    } work_since;
};

/* How far the names of episodes with one prefix are used up. Saved by
   watch_archive.c. */
struct used_name {
    int64_t step, n;
    double since;
};

struct ep_comms_place; /* comms.h */
struct probe_group;    /* watch_probes.c */
struct device;         /* watch_probes.c */
struct links;          /* watch_links.c */

/* Factors above it are cut off: of values at the ends of what a double holds. */
#define FACTOR_MOST 1e100

/* Saved by watch_archive.c. */
struct ep_watch {
    struct ep_watch_config config;
    void (*fn)(void *ctx, const struct ep_finding *f);
    void *ctx;
    /* what fn is told of, while it is (explain.h); NULL else */
    const struct series *reporting;
    const struct ep_finding *finding;
    struct ep_intern *job_names, *series_names, *group_names, *device_names;
    struct ep_intern *episode_names;
    struct ep_intern *words; /* causes of episodes that were loaded */
    size_t total;            /* of EP_WATCH_MAX_SERIES */
    struct job **jobs;
    size_t jobs_cap;
    struct series **series;
    size_t series_cap;
    struct probe_group **groups;
    size_t groups_cap;
    struct device **devices;
    size_t devices_cap;
    struct links *links; /* NULL without any */
    struct used_name *used;
    size_t used_cap;
    struct ep_gauges *gauges;
    uint64_t known; /* samples passed over since the load; not saved */
    struct job *last_job;
    struct series *recent[RECENT_SLOTS]; /* ranks, by job and number */
    /* room for values of each member; survey: those of all, in order */
    double *work, *survey;
    size_t work_cap, survey_cap;
    struct ep_comms *comms; /* NULL: calls are not followed */
    bool (*locate)(struct ep_comms *c, struct ep_span job, double since_ts,
                   struct ep_comms_place *out);
    struct ep_buf key, text;
    struct ep_silence *silence;
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

/* ---- watch_work.c ----------------------------------------------------- */

/* A rank tells its work in a step: slot i of the open ones; begin it first. */
void ep_watch_load_begin(struct job *job, int i);
void ep_watch_load_add(struct series *s, int i, const struct ep_watch_step *x);
void ep_watch_free_loads(struct job *job);

/* One more step of the job, whose load is slot i, or (-1) that of x. */
void ep_watch_job_step(struct ep_watch *w, struct job *job,
                       const struct open_step *o, int i,
                       const struct ep_watch_step *x);

/* One more value of a rank or worker; 0 or an error as ep_watch_push. */
int ep_watch_rank_step(struct ep_watch *w, struct series *s, struct sample *v,
                       const struct ep_watch_step *x, double end,
                       struct ep_error *err);

/*
 * Of a change that the others show as well (c->factor is excess times theirs):
 * the factor that belongs to longer micro-batches and is no slow-down. 1: none.
 */
double ep_watch_shared(const struct series *s, const struct ep_change *c,
                       double excess);

/* The series starts anew. */
void ep_watch_forget_work(struct series *s);

/*
 * Tokens (flops) of a micro-batch since a change over those before it, medians
 * of the last "window" samples; NaN if one of the two is not known. 1.5 with a
 * change by 1.5: the rank was given longer sequences, and is not sick.
 */
double ep_watch_work_factor_since(const struct series *s,
                                  const struct ep_change *c);

/* The same since a time over the median of its peers since then. */
double ep_watch_work_over_peers(struct ep_watch *w, const struct series *s,
                                double since_ts);

/* ---- watch_steps.c, watch_peers.c, watch_early.c, watch_probes.c ------ */

/* The ranks or workers among which s is one. */
struct members *ep_watch_members(const struct series *s);

/*
 * What a series did since the change of another: the median of its values
 * (of a spike: the largest) over its healthy level; NaN if unknown.
 */
double ep_watch_factor_since(const struct series *s, const struct ep_change *c);

void ep_watch_end_steps(struct ep_watch *w, struct job *job);

/* One value of a series; end is when it is known. */
int ep_watch_push(struct ep_watch *w, struct series *s, const struct sample *x,
                  double end, struct ep_error *err);

/* One step of the job, its dur divided by scale; now: when it is given out. */
void ep_watch_push_job(struct ep_watch *w, struct job *job,
                       const struct ep_work_step *o, double now);

/* One more step of the members (sample of the workers): time to compare? */
void ep_watch_count_step(struct ep_watch *w, struct members *m, int64_t enough,
                         double now);

/*
 * What a comparison says of a rank or worker, as a suspicion; doubt: what limits
 * it, a constant.
 */
void ep_watch_suspect_peer(struct ep_watch *w, struct series *s,
                           enum ep_change_kind kind, const struct ep_peer *peer,
                           double median, const char *doubt, double now);

/* One more step of a job: its ranks from their start on. */
void ep_watch_early(struct ep_watch *w, struct members *m, int64_t step,
                    double now);

void ep_watch_finish_probes(struct ep_watch *w);
void ep_watch_tell_devices(const struct ep_watch *w,
                           void (*fn)(void *ctx, const struct ep_finding *),
                           void *ctx);
void ep_watch_free_groups(struct ep_watch *w);

/* ---- watch_gauges.c ---------------------------------------------------- */

#define EP_CAUSE_LIKELY 0.5

/* Ranks that are asked for a sensor; the median of more says the same. */
#define SENSED 63

/*
 * A sensor of some ranks around a change: medians over them, of counts the
 * most. NaN where none of them has a reading.
 */
struct senses {
    struct ep_gauge_stat at[EP_SENSORS];
    double peers[EP_SENSORS]; /* the others since then, alike */
    bool read[EP_SENSORS];    /* by one of them at any time */
};

/* healthy <= since, -INFINITY: there was no healthy time. O(job's ranks). */
void ep_watch_sense(struct ep_watch *w, const struct series *const *ranks,
                    size_t n, double healthy, double since, struct senses *out);

/* ---- verdict.c, verdict_cause.c ---------------------------------------- */
/* ---- watch_links.c ---------------------------------------------------- */
void ep_watch_finish_links(struct ep_watch *w);
void ep_watch_tell_links(const struct ep_watch *w,
                         void (*fn)(void *ctx, const struct ep_finding *),
                         void *ctx);
void ep_watch_free_links(struct ep_watch *w);
/* ---- watch_archive.c, probes_archive.c -------------------------------- */

/* At most so many bytes of a name are saved. */
#define EP_WATCH_NAME_BYTES (1 << 20)
#define EP_WATCH_EID_BYTES 512

/* An episode. w is asked to keep its cause. */
void ep_watch_archive_episode(struct ep_archive *a, struct ep_watch *w,
                              struct episode *e);
void ep_watch_archive_place(struct ep_archive *a, struct ep_place *p);
void ep_watch_archive_change(struct ep_archive *a, struct ep_change *c);

/* A word that lives as long as w, or NULL. */
const char *ep_watch_archive_word(struct ep_archive *a, struct ep_watch *w,
                                  const char *word);

/* A series by its place among all; NULL: none. It has to be of the job. */
struct series *ep_watch_archive_series(struct ep_archive *a, struct ep_watch *w,
                                       const struct job *job,
                                       const struct series *of);

/* The groups and devices of probes. */
void ep_watch_archive_probes(struct ep_archive *a, struct ep_watch *w);

/* Measurements of links, and which are slow. */
void ep_watch_archive_links(struct ep_archive *a, struct ep_watch *w);

/* ---- verdict.c -------------------------------------------------------- */

/* Why a rank's pace changed: the word, and the evidence into w->text. */
const char *ep_verdict_rank(struct ep_watch *w, const struct series *s,
                            const struct ep_change *c);

/* The values before and after into w->text, which is new. */
void ep_verdict_levels(struct ep_watch *w, const struct series *s,
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

/*
 * Why these ranks of one job (one or more; a host, stage, group, the ends of a
 * link, or all) work slower, or communicate slower if their work is as it was,
 * since a change: the most likely cause, a constant. Evidence is appended to
 * w->text, each part behind ", ". *p_cause (may be NULL): its probability. It
 * may be asked again as samples and readings come in, while their rings have
 * the time before the change: an answer rests on more than the one before. It
 * is better, and worth telling, if *p_cause has grown, or if it is another cause
 * with *p_cause of EP_CAUSE_LIKELY or more.
 */
const char *ep_verdict_ranks(struct ep_watch *w, enum ep_scope scope,
                             struct series *const *ranks, size_t n,
                             const struct ep_change *c, double *p_cause);

/* Slow compared with their peers since a time; there was no healthy past. */
const char *ep_verdict_among(struct ep_watch *w, enum ep_scope scope,
                             struct series *const *ranks, size_t n,
                             double since, double factor, double *p_cause);

/* Both, for those who may not change the ranks. among: as the latter. */
const char *ep_verdict_weigh(struct ep_watch *w, enum ep_scope scope,
                             const struct series *const *ranks, size_t n,
                             const struct ep_change *c, bool among,
                             double *p_cause);

#endif
