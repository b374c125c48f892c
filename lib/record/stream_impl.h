/* SPDX-License-Identifier: Apache-2.0 */
/* stream_impl.h - what the files of stream.h share. */
#ifndef EP_RECORD_STREAM_IMPL_H
#define EP_RECORD_STREAM_IMPL_H

#include "base/intern.h"
#include "base/paths.h"
#include "record/import.h"
#include "record/ranks_map.h"
#include "record/stream.h"

/* Kinds of bad lines that are told apart; one more for the others. */
enum { REASONS_MAX = 20 };

struct source {
    struct ep_source in;
    struct ep_record record; /* the next one to deliver */
    double ts;               /* its ts; -inf without one */
    int order;               /* of equal ts the least comes first */
    bool found;              /* in a folder */
    bool waiting;            /* followed, and nothing is there yet */
    double heard;            /* when it last had a record (monotonic clock) */
    const char *path;        /* borrowed of paths; followed: NULL */
    struct ep_stream_format *format; /* where it is counted, or NULL */
};

/* Of a stream that is followed; times of the monotonic clock. */
struct live {
    struct ep_intern *known; /* paths that are open, or were judged */
    struct ep_paths absent;  /* asked for, and not there yet */
    double polled, scanned;  /* when inputs and folders were looked at last */
    double hold_until; /* a silent input may hold back others until then */
    double last_ts;    /* of the record delivered last */
    double stopped;    /* when the stop was noticed; 0: not yet */
    bool may_grow;     /* something asked for is no pipe */
    uint64_t late;     /* delivered behind one with a later ts */
};

/* An input that is read again and again, or a URL. */
struct endpoint {
    bool down;    /* it failed when it was read last */
    double since; /* s since the epoch: when that began */
    char *eid;    /* of its event; owned */
};

/* An event of an endpoint; strings are owned. */
struct change {
    double ts, since;
    bool back;
    char *eid, *host, *evidence;
};

struct scrape {
    struct ep_intern *names;    /* paths of endpoints */
    struct endpoint *endpoints; /* by their numbers in names */
    size_t cap_endpoints;
    struct change *changes; /* [nchanges], those from at on not delivered */
    size_t at, nchanges, cap_changes;
    struct ep_record record; /* of the change delivered last */
    char id[80];             /* its id */
    double begun;            /* the first round (monotonic clock) */
    double tick;             /* number of the round's tick, from 0 */
    int64_t rounds;          /* that were read to their end */
    uint64_t missed;         /* ticks at which a round was still going on */
    bool answered;           /* an input could be read, ever */
};

/* Bad lines by kind. */
struct tally {
    struct ep_stream_format *formats; /* as ep_importers, with one more */
    int nformats;
    struct ep_stream_reason reasons[REASONS_MAX + 1];
    int nreasons;
};

struct ep_stream {
    struct ep_stream_config config;
    const char *const *given; /* what was asked for, borrowed */
    int ngiven;
    struct ep_paths paths;   /* what that means */
    struct source **started; /* [paths.n] URLs on their way; NULL: not */
    size_t admitted;         /* of paths */
    struct source **sources; /* [nsources] that are read, each owned */
    int nsources;
    size_t cap_sources;
    int inputs; /* that were opened */
    struct ep_ranks_map *ranks;
    uint64_t passed_over; /* files in folders that are of no known format */
    struct source **heap; /* those that are ready, the next one on top */
    int nheap;
    size_t cap_heap;
    bool delivered; /* the top was, and has to advance before the next */
    struct live live;
    struct scrape scrape;
    struct tally tally;
    uint64_t bad;
    uint64_t ended_bytes; /* of inputs that were read to their end */
    int failed;
    struct ep_error error; /* what ended a strict stream */
};

/* ==== stream.c ==== */

/* Tell the caller of an error that ends nothing. */
void ep_stream_complain(struct ep_stream *s, const struct ep_error *err);

/* An input failed, src (NULL: it was not opened) at path. Returns the code to
   end with, or 0 to go on. */
int ep_stream_fail(struct ep_stream *s, const char *path,
                   const struct source *src, const struct ep_error *err);

/* The next record of src, if there is one: into the heap. */
void ep_stream_feed(struct ep_stream *s, struct source *src);

/* Was the stream asked to stop? */
bool ep_stream_stopped(const struct ep_stream *s);

/* ==== stream_open.c ==== */

/* Open a path: 0, or EP_ESYS if it is not there (follow: nothing was said). */
int ep_stream_add(struct ep_stream *s, const struct ep_path *path);

/* Open all that was asked for, as it is now; of no_merge the URLs only. */
void ep_stream_open_all(struct ep_stream *s);

/* no_merge: go on with the next input that has a record. */
void ep_stream_open_next(struct ep_stream *s);

/* Close everything. */
void ep_stream_close_all(struct ep_stream *s);

/* The input is not needed any more. */
void ep_stream_end_source(struct ep_stream *s, struct source *src);

/* follow: as many open files as may be had. */
void ep_stream_allow_files(size_t n);

/* ==== stream_live.c ==== */

/*
 * follow: wait until the top of the heap may be delivered, or the stream is to
 * stop. Looks at inputs that wait, and at folders for new files.
 */
void ep_stream_wait(struct ep_stream *s);

/* follow: src has nothing more to say at present. */
void ep_stream_fell_silent(struct ep_stream *s, struct source *src);

/* follow: open what is new of what was asked for. */
void ep_stream_scan(struct ep_stream *s);

/* follow: a struct ep_stream is to stop, and what is there takes too long. */
bool ep_stream_give_up(void *s);

/* ==== stream_scrape.c ==== */

/* An input was read to its end. */
void ep_stream_answered(struct ep_stream *s, const struct source *src);

/* A URL, or (interval) any input, failed. Was it well before? */
bool ep_stream_lost(struct ep_stream *s, const char *path,
                    const struct source *src, const struct ep_error *err);

/* interval: did it fail in the round before? */
bool ep_stream_is_down(struct ep_stream *s, const char *path);

/* An event to deliver before the top of the heap, or NULL. */
const struct ep_record *ep_stream_event(struct ep_stream *s);

/* interval: wait for the next round and open everything; false at the end. */
bool ep_stream_next_round(struct ep_stream *s);

void ep_stream_scrape_free(struct ep_stream *s);

/* ==== stream_tally.c ==== */

void ep_stream_tally_init(struct ep_stream *s);
void ep_stream_tally_free(struct ep_stream *s);

/* The row of the format of src, which is being read. */
struct ep_stream_format *ep_stream_tally_format(struct ep_stream *s,
                                                struct source *src);

/* A bad line at place, for a reason. */
void ep_stream_tally_bad(struct ep_stream *s, const char *place,
                         const char *reason);

#endif
