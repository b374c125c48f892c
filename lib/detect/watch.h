/* SPDX-License-Identifier: Apache-2.0 */
/*
 * watch.h - the detectors put together: who became slow, when, by how much.
 *
 * A watch takes samples of a job in the order of time and calls back with
 * findings. It knows nothing of files or records. What it does:
 *
 *   steps    one pace (changepoint.h) per rank or worker, over busy / mb where
 *            the rank tells them (seconds of work per micro-batch: comparable
 *            between ranks and not changed by new shares), else over busy,
 *            else over dur; what it is for a series is settled by the first
 *            sample, and anew when EP_WATCH_OTHER in a row differ. A change
 *            that the other ranks of the job show alike is not the rank's: it
 *            is left to the job, and what comes on top of it is the rank's.
 *   job      one more pace over the longest dur of each step, or over dur of
 *            the job's own records where there are any.
 *   work     the pace of the job is divided by what the work of its steps
 *            explains (work.h): flops, else tokens, else micro-batches, the
 *            median over the ranks, so that a phase of longer sequences is no
 *            event, and one replica that has more than the others is; the values
 *            of ranks by what varies from step to step. So are those of a rank
 *            that is alone, or whose calls (phase) change.
 *   early    (watch_early.c) the first window x persist steps of a job the same
 *            values after each step; then those that were slow from the start
 *            every fourth step, for their relief.
 *   peers    (peers.h) every "window" steps the medians of busy / mb of all
 *            ranks, and apart from them of all workers, so that a rank that
 *            was slow from its first step is found too, or one that stays
 *            slow when the others recover; and the probes of all devices for
 *            the same test.
 *   cause    what the samples before and since the onset say, and the gauges
 *            of ranks, GPUs and hosts (verdict.c).
 *   links    (pairs.h) ends and links of measured pairs, against their own past
 *            and against others of the kind.
 *   cause    what the samples before and since the onset say (verdict.c).
 *
 * Ranks are compared by step number, so the streams of all ranks have to be
 * merged by time; a rank may be a step or two ahead. Workers do not wait for
 * each other: they are compared by time, and give their job no pace. A job
 * whose step numbers fall by 4 or more was restarted: the levels are kept, the
 * first three samples are not judged.
 *
 * Memory: 5 KB per rank or worker, 1 KB per device and test; of gauges see
 * gauges.h.
 * Memory: 5 KB per rank or worker, 1 KB per device and test, 250 bytes per
 * link.
 */
#ifndef EP_DETECT_WATCH_H
#define EP_DETECT_WATCH_H

#include "base/archive.h"
#include "base/buf.h"
#include "base/err.h"
#include "detect/changepoint.h"
#include "detect/peers.h"
#include "detect/place.h"
#include "detect/silence.h"

#include <stdbool.h>
#include <stdint.h>

/* Most ranks, workers, jobs, probed devices (in each test) and links. */
#define EP_WATCH_MAX_SERIES 500000

/* Samples in a row that change what a series is judged by. */
#define EP_WATCH_OTHER 8

#define EP_WATCH_WINDOW_MAX 64

struct ep_watch_config {
    struct ep_changepoint_config pace;
    struct ep_peers_config peers;
    int64_t window; /* steps behind a peer comparison, 4..EP_WATCH_WINDOW_MAX */
    int64_t persist; /* comparisons in a row that make a finding, >= 1 */
    struct ep_silence_config silence;
};

#define EP_WATCH_DEFAULTS                                                      \
    {                                                                          \
        .pace = EP_CHANGEPOINT_DEFAULTS, .peers = EP_PEERS_DEFAULTS,           \
        .window = 16, .persist = 2, .silence = EP_SILENCE_DEFAULTS             \
    }

enum ep_scope {
    EP_SCOPE_JOB,
    EP_SCOPE_RANK,
    EP_SCOPE_WORKER,
    EP_SCOPE_GPU,
    EP_SCOPE_HOST,
    EP_SCOPE_LINK,  /* id "src=n1,dst=n4" */
    EP_SCOPE_GROUP, /* "dp=0", a replica; "comm=..", a communicator */
    EP_SCOPE_STAGE, /* "pp=2" */
};

enum ep_finding_kind {
    EP_FINDING_ONSET,
    EP_FINDING_RELIEF,
    EP_FINDING_SPIKE,
    EP_FINDING_MISSING,
};

/* Names of the two, as event records have them. */
extern const char *const ep_scope_names[];
extern const char *const ep_finding_names[];

/* Strings are borrowed for the time of the call. */
struct ep_finding {
    enum ep_finding_kind kind;
    enum ep_scope scope;
    const char *job;      /* NULL without one */
    const char *host;     /* NULL if not known */
    int64_t rank;         /* -1 if it has none */
    const char *id;       /* "rank=3", "host=n1"; NULL for the job */
    const char *eid;      /* onset, updates and relief share it */
    const char *cause;    /* one of the words of skewdetect(1) */
    const char *evidence; /* a sentence without full stop */
    double ts;            /* when it was decided: end of the last sample */
    double since;         /* ts of the first sample that differs */
    int64_t step;         /* its step, -1 if it has none */
    double factor;        /* level now / healthy level; >= 1 is slower */
    double p;             /* how sure */
    double gpu_hours;     /* relief of a job: device hours lost; else NaN */
};

struct ep_watch;

/*
 * Free with ep_watch_free. config may be NULL (defaults); EP_EDOM if a field
 * is out of its range. fn is called from within the functions below and must
 * not call them. What it is given: factor finite and > 0, since <= ts; an eid
 * belongs to one episode of one watch. An onset with the eid of an open
 * episode says that it got worse; a relief that leaves it open has a factor
 * of 1 + min_change or more. An episode ends without a relief if its series
 * stops, or changes what it tells.
 */
struct ep_watch *ep_watch_new(const struct ep_watch_config *config,
                              void (*fn)(void *ctx, const struct ep_finding *),
                              void *ctx, struct ep_error *err) EP_MUST_USE;
void ep_watch_free(struct ep_watch *w); /* NULL allowed */

/* One iteration: of a rank, of a worker, or (neither) of the job. */
struct ep_watch_step {
    struct ep_span job, host, worker; /* len 0: none */
    int64_t rank;                     /* -1: none */
    struct ep_place place;
    double ts; /* s */
    int64_t step;
    double dur;  /* s, > 0 */
    double busy; /* s, NaN: not told */
    int64_t mb;  /* -1: not told; 0: the rank had no work */
    /* work of the rank in the step, all micro-batches; 0: not told */
    double tokens, flops;
    int64_t phase; /* steps of other numbers do not compare; 0: not told */
};

/*
 * Errors, the detectors being untouched then: EP_EDOM (ts, dur or busy is not
 * finite; dur is 0, or busy is 0 of a rank with work; step is not in 0..2^53;
 * ts runs backwards in its series), EP_ELIMIT (too many series). A step number
 * that falls while ts grows is a restart; a sample with the ts and step of the
 * one before is the same sample, and passed over.
 * Cost: O(window), with 50 ns on top of the change points; at an onset or
 * spike O(window x min(ranks, 255)) of a rank, O(window x ranks) of the job,
 * and every "window" steps O(ranks log ranks).
 */
int ep_watch_step(struct ep_watch *w, const struct ep_watch_step *s,
                  struct ep_error *err) EP_MUST_USE;

/* One measurement of one device. */
struct ep_watch_probe {
    struct ep_span job, host, gpu, test, dtype, unit;
    int64_t rank; /* -1: none */
    int64_t size; /* -1: none */
    double ts;
    double value; /* > 0 */
    bool high_is_better;
    double spread;  /* relative MAD, NaN: not told */
    double ref_own; /* the device's own healthy value; NaN: not told */
};

/*
 * Devices are compared when a round is over: when one reports for the second
 * time, or, once it is known how many there are, the last; and at the end.
 * A device is its gpu, else its rank, else its host.
 * Errors: EP_EDOM (value is not finite and > 0, ts not finite), EP_ELIMIT.
 * Cost: O(1); at the end of a round O(n log n) with the n devices in it.
 */
int ep_watch_probe(struct ep_watch *w, const struct ep_watch_probe *s,
                   struct ep_error *err) EP_MUST_USE;

/* One measurement of one link, in one direction. */
struct ep_watch_link {
    struct ep_span job, src, dst; /* HOST, HOST/DEVICE, or the id of a gpu */
    struct ep_span transport;     /* len 0: not told */
    int64_t bytes;                /* -1: not told */
    double ts;
    double value; /* B/s, > 0 */
};

/*
 * Links are judged when one reports for the second time, so that a round is
 * over, and at the end; repeats directly one after the other are one
 * measurement. Findings have the scope link, host or gpu, or job if all links
 * of a kind became slower. Errors: EP_EDOM (value is not finite and > 0, ts
 * not finite, src and dst are the same or empty), EP_ELIMIT. Cost: O(1); at the
 * end of a round that of ep_pairs_find.
 */
int ep_watch_link(struct ep_watch *w, const struct ep_watch_link *s,
                  struct ep_error *err) EP_MUST_USE;

/*
 * A reading of a sensor, by whatever name (sensors.h): of a rank, a GPU or a
 * host. Those of hosts and GPUs count for the ranks on them: a rank's GPU is
 * the one that it told (ep_watch_device, or a gauge with both); else, where as
 * many GPUs of a host have readings as it has ranks of the job, the ranks have
 * them in their order. GPUs of no named host are those of a job's only host.
 */
struct ep_watch_gauge {
    struct ep_span job, host, gpu, name;
    int64_t rank, gpu_index; /* -1: none */
    double ts, value;
};

/*
 * Names that tell nothing about a cause, and readings of nobody, are passed
 * over. Errors: EP_EDOM (a number is not finite), EP_ELIMIT. Cost: O(1).
 */
int ep_watch_gauge(struct ep_watch *w, const struct ep_watch_gauge *x,
                   struct ep_error *err) EP_MUST_USE;

/* The rank runs on that GPU; name, ts and value do not matter. EP_ELIMIT. */
int ep_watch_device(struct ep_watch *w, const struct ep_watch_gauge *x,
                    struct ep_error *err) EP_MUST_USE;

/*
 * A sign of life, of each record that tells one: who has stopped, see
 * silence.h. Apart from the functions above, since iterations that are found in
 * calls come late. Errors and cost as ep_silence_take.
 */
int ep_watch_sign(struct ep_watch *w, const struct ep_sign *x,
                  struct ep_error *err) EP_MUST_USE;

/* The input is live, has nothing to tell, and the wall clock says now. */
void ep_watch_tick(struct ep_watch *w, double now);

struct ep_comms;

/*
 * Where slow communication is, is asked of c (comms.h), which the caller feeds
 * with the calls of all ranks; it is borrowed for the life of the watch.
 */
void ep_watch_use_comms(struct ep_watch *w, struct ep_comms *c);

/* The input is at its end: judge what is still open. */
void ep_watch_finish(struct ep_watch *w);

/*
 * Save or load all that w knows, in the place of ep_watch_finish: what is open
 * stays open. w is new when it is loaded into, of the same configuration (else
 * the archive fails), and has to be freed even if it failed. It finds what the
 * saved one would have found, with the same eids. Samples that are fed again,
 * since the input is read from its beginning, are passed over: of a series those
 * not later, by ts and step, than its last one was. Cost: 3.3 KB per rank.
 */
void ep_watch_archive(struct ep_archive *a, struct ep_watch *w);

/* So many samples were passed over since the load. */
uint64_t ep_watch_known(const struct ep_watch *w);

/*
 * Call fn for each episode that is open now, of each job in the order of their
 * onsets, then of probed devices, then who is missing and which links are slow:
 * an onset whose factor, p and cause are those last reported; ts is NaN,
 * evidence NULL. What is left of its ranks to report counts: if none is, it is
 * left out. Cost: O(ranks of open episodes).
 */
void ep_watch_open(const struct ep_watch *w,
                   void (*fn)(void *ctx, const struct ep_finding *), void *ctx);

#endif
