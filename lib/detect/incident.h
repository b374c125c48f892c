/* SPDX-License-Identifier: Apache-2.0 */
/*
 * incident.h - one cause, one episode; for the files of watch alone.
 *
 * What the pace of a rank, the comparison with its peers or the pace of the job
 * finds is a suspicion. Suspicions are held until the step in which they were
 * found is closed, so that what came together is judged together
 * (watch_incident.c): which ranks share the change, and what they have in
 * common (incident_where.c). That is an incident: it has the eid, one onset,
 * and one relief when most of its ranks are back (incident.c).
 *
 * A rank can have a part in several incidents. Slowdowns multiply: the link of
 * a rank to an incident says by what factor, and the product of these is what
 * is known of the rank; a change is held against that.
 */
#ifndef EP_DETECT_INCIDENT_H
#define EP_DETECT_INCIDENT_H

#include "detect/comms.h"
#include "detect/watch_impl.h"

/* Of the ranks of a set so many have to share a change, or be back. */
#define COVER 0.75

/*
 * What is common to all is what all but this share of them show at least: half
 * may be slow together (a replica of two), and some beside them on their own.
 */
#define COMMON 0.375

/* Who shares a change shows this much of it at least, in logarithms. */
#define SHARE 0.5

/*
 * Changes that begin closer together than this may be one: medians of fewer
 * samples than make a level do not tell them apart.
 */
#define NEAR_STEPS 8

/* The onsets of one change, in the job and in a rank, are as close as this. */
#define SAME_STEPS 2

/*
 * Flapping: what lasts no longer than this, and comes again after no more, is
 * the same episode: a whole turn of it is within what a pace remembers. Longer
 * ones are no flood, and each is news.
 */
#define FLAP_STEPS 32
#define FLAP_S 300.0 /* where steps have no numbers in common */

/* Steps without it before a relief, at the second time; doubled each time. */
#define QUIET_STEPS 16
#define QUIET_MOST 256

/* Steps for which slow communication is looked for. */
#define SEEK_STEPS 64

/* Where the suspicion comes from, and by what the relief is told. */
enum ground { GROUND_PACE, GROUND_PEERS, GROUND_JOB };

/* What the ranks of an incident have in common. */
enum kin {
    KIN_HOST,
    KIN_STAGE,
    KIN_REPLICA,
    KIN_TENSOR, /* of one replica, in one stage */
    KIN_RANK,   /* only itself */
    KIN_ALL,    /* the job */
    KIN_OTHER,  /* links and what else is no set of ranks */
};

struct incident;

struct link {
    struct incident *in;
    struct series *s;
    struct link *next; /* of the same series; the latest first */
    double effect;     /* factor that the incident adds */
};

struct incident {
    struct series who; /* scope, id, host, rank: as it is reported */
    struct episode ep;
    enum kin kin;
    enum ground ground;
    const struct series *like; /* one of its ranks; NULL */
    struct link **link;
    size_t n, cap;
    int64_t turn_step; /* of the last onset, update or relief */
    double gain; /* what it added since it last explained the job's pace */
    int64_t held_turn, held_since; /* its turn and the job's step, then; -1 */
    double lost;                   /* device seconds */
    uint64_t stamp;                /* of the judgement that looked at it last */
    /* flapping: how often it was there, the first time, and whether it is
       gone for now */
    int64_t times, first_step;
    double first_ts;
    int64_t last_step; /* it was there again, the last time */
    double last_ts;
    bool resting;
    struct ep_change rest; /* the relief that is held back */
    int seek;              /* steps for which its place is looked for */
    struct ep_change change;
    int64_t recheck; /* step at which its ranks are asked again; 0 */
    bool early;      /* the pace of the job has not shown it yet */
    double asked_ts; /* early: since when transfers are slow; NaN: the first */
    /* of ranks: who shows it, how sure its cause is, how often that was told
       better than at first */
    struct series *shows;
    double p_cause;
    int again;
};

struct suspicion {
    struct series *s;
    struct ep_change c;
    double excess, now;
    int64_t step; /* in which it was found */
    enum ground ground;
    const char *doubt; /* of a comparison; a constant */
};

/* Where a change is. */
struct where {
    enum kin kin, also; /* also: what is the same set, KIN_RANK: nothing */
    const struct series *like;
};

/* ---- incident_where.c -------------------------------------------------- */

/* Are both in the set of a kind that one of them is in? */
bool ep_incident_akin(enum kin kin, const struct series *a,
                      const struct series *b);

/*
 * Which set of ranks covers those that changed as rank s did. y[i] is the
 * logarithm of what is new of rank i of the job, NaN if that is not known. The
 * sets are those that s is in, if COVER of their known ranks changed and they
 * are at most half of the job; that with the largest F1 measure
 *
 *     2 hits / (ranks of the set + ranks that changed)
 *
 * is the answer. Of equal sets it is the host, which is what can be replaced;
 * but the stage if it was so from the first step, as no host is that by
 * chance and the layers are divided before it.
 * Cost: O(ranks).
 */
void ep_incident_where(const struct job *job, const struct series *s,
                       const double *y, bool from_first, struct where *out);

/* "host=n1", and the scope. like may be NULL for what is no set of ranks. */
enum ep_scope ep_incident_name(enum kin kin, const struct series *like,
                               struct ep_buf *id);

/* ---- incident.c -------------------------------------------------------- */

void ep_incident_free(struct job *job);

/* Not reported yet. like may be NULL. */
struct incident *ep_incident_new(struct job *job, enum kin kin,
                                 enum ground ground, const struct series *like);
void ep_incident_set_kin(struct incident *in, enum kin kin,
                         const struct series *like);
void ep_incident_forget(struct incident *in); /* nothing is told */
void ep_incident_set_who(struct incident *in, enum ep_scope scope,
                         const char *id, const char *host, int64_t rank);

struct link *ep_incident_link(const struct incident *in,
                              const struct series *s);
void ep_incident_join(struct incident *in, struct series *s, double effect);

void ep_incident_unlink(struct incident *in); /* it has no ranks any more */

/* The series has nothing to do with any incident any more. */
void ep_incident_leave(struct series *s);

/* Product of the effects on a series, of all incidents but one (NULL: all). */
double ep_incident_effects(const struct series *s, const struct incident *but);

/*
 * An onset, or that of an open one again, as it stands in c; the evidence is
 * in w->text. effect: the factor.
 */
void ep_incident_tell(struct ep_watch *w, struct incident *in,
                      const struct ep_change *c, const char *cause,
                      double effect, double now);

/* Partly back. */
void ep_incident_ease(struct ep_watch *w, struct incident *in,
                      const struct ep_change *c, double factor, double now);

/*
 * Over: it rests, if it was there before, or is told and freed. true if it is
 * gone.
 */
bool ep_incident_over(struct ep_watch *w, struct incident *in,
                      const struct ep_change *c, double factor, double now);

/* Back from rest by a change: nothing is told. */
void ep_incident_wake(struct incident *in, const struct ep_change *c);

/* It is part of another: the relief says so. */
void ep_incident_fold(struct ep_watch *w, struct incident *in,
                      const struct incident *into, const struct ep_change *c,
                      double now);

/* A step of the job is closed: who has rested enough, and what it cost. */
void ep_incident_step(struct ep_watch *w, struct job *job, int64_t step,
                      double now);

/* ---- incident_archive.c ------------------------------------------------ */

/* All incidents of a job, whose series are there: a field more of a struct above
   is one there. */
void ep_incident_archive(struct ep_archive *a, struct ep_watch *w,
                         struct job *job);

/* ---- watch_incident.c -------------------------------------------------- */

void ep_incident_suspect(struct ep_watch *w, const struct suspicion *x);

/* Judge what was found up to a step. */
void ep_incident_judge(struct ep_watch *w, struct job *job, int64_t step);

/* ---- incident_ranks.c -------------------------------------------------- */

/* What is known of a rank since a change, against health; NaN: nothing. */
double ep_incident_standing(const struct series *s, const struct ep_change *c,
                            enum ground ground);

/* v [n], reordered, n > 0: what is common to all, see COMMON. */
double ep_incident_common(double *v, size_t n);

/*
 * Product of the effects on a series of what did not begin with the change. What
 * a set of ranks has is not the beginning of what makes a slow rank slower.
 * shared: with what all have.
 */
double ep_incident_earlier(const struct series *s, const struct ep_change *c,
                           bool shared);

/* Product of the effects on a series of what all ranks have. */
double ep_incident_shared(const struct series *s);

/*
 * y [ranks of the job]: the logarithm of what is new since a change, with what
 * is common to all (COMMON, returned) left out. What began with the change
 * is new; of GROUND_JOB, what no incident has yet.
 */
double ep_incident_survey(struct ep_watch *w, const struct job *job,
                          const struct series *like, const struct ep_change *c,
                          enum ground ground, double *y);

/* The suspicion is nothing new, or more of the same: that is done. */
bool ep_incident_absorb(struct ep_watch *w, const struct suspicion *x);

/*
 * One more incident, or an open one that this shows to be larger; y is the
 * survey, NULL: only the rank itself.
 */
void ep_incident_place(struct ep_watch *w, const struct suspicion *x,
                       const double *y);

/* ---- incident_why.c ---------------------------------------------------- */

/* An onset of ranks, or that of an open one again: with its cause. */
void ep_incident_tell_ranks(struct ep_watch *w, struct incident *in,
                            const struct suspicion *x,
                            const struct where *where);

/*
 * A step is closed: incidents whose cause is known better than it was told, from
 * what came since, are told again, twice at most. Cost: O(open incidents), and
 * every fourth step after an onset, up to the 40th, that of ep_verdict_ranks.
 */
void ep_incident_ask(struct ep_watch *w, struct job *job, int64_t step,
                     double now);

/* ---- incident_relief.c ------------------------------------------------- */

/* A rank is back, or partly. */
void ep_incident_relieve(struct ep_watch *w, const struct suspicion *x);

/* Most ranks of it are back: over; or partly. */
void ep_incident_review(struct ep_watch *w, struct incident *in,
                        const struct suspicion *x);

/* ---- incident_job.c ---------------------------------------------------- */

/* The job's pace changed. */
void ep_incident_judge_job(struct ep_watch *w, struct job *job,
                           const struct suspicion *x);

/* "step time 1 s -> 2 s" into w->text. */
void ep_incident_job_text(struct ep_watch *w, const struct ep_change *c);

/*
 * All ranks were slow in the few steps that were known when it was told: are
 * they still? If not, it is communication, and told again as that.
 */
void ep_incident_recheck(struct ep_watch *w, struct job *job, int64_t step,
                         double now);

/* ---- incident_calls.c -------------------------------------------------- */

/* Ask where it is. true: that is known now, and told. */
bool ep_incident_locate(struct ep_watch *w, struct incident *in, double effect,
                        double now);

/* Its place is looked for in so many steps; 0: no more. */
void ep_incident_set_seek(struct incident *in, int steps);

/*
 * The pace shows what was told by the transfers: nothing new, or how much that
 * is. false: it is something else.
 */
bool ep_incident_confirm(struct ep_watch *w, struct job *job,
                         const struct ep_change *c, double effect, double now);

/*
 * A step of the job is closed: do its transfers tell what its pace does not yet?
 * Cost: O(1); where the last steps are slow, that of ep_comms_locate.
 */
void ep_incident_listen(struct ep_watch *w, struct job *job, double now);

/* Slow communication whose place is not known: is it now? */
void ep_incident_seek(struct ep_watch *w, struct job *job, double now);

#endif
