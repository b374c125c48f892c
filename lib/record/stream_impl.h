/* SPDX-License-Identifier: Apache-2.0 */
/* stream_impl.h - what stream.c and stream_live.c share. */
#ifndef EP_RECORD_STREAM_IMPL_H
#define EP_RECORD_STREAM_IMPL_H

#include "base/intern.h"
#include "base/paths.h"
#include "record/import.h"
#include "record/ranks_map.h"
#include "record/stream.h"

struct source {
    struct ep_source in;
    struct ep_record record; /* the next one to deliver */
    double ts;               /* its ts; -inf without one */
    int order;               /* of equal ts the least comes first */
    bool found;              /* in a folder */
    bool waiting;            /* followed, and nothing is there yet */
    double heard;            /* when it last had a record (monotonic clock) */
};

/* Of a stream that is followed; times of the monotonic clock. */
struct live {
    struct ep_intern *known; /* paths that are open, or were judged */
    struct ep_paths absent;  /* asked for, and not there yet */
    double polled, scanned;  /* when inputs and folders were looked at last */
    double hold_until; /* a silent input may hold back others until then */
    double last_ts;    /* of the record delivered last */
    bool may_grow;     /* something asked for is no pipe */
    uint64_t late;     /* delivered behind one with a later ts */
};

struct ep_stream {
    struct ep_stream_config config;
    const char *const *given; /* what was asked for, borrowed */
    int ngiven;
    struct source **sources; /* [nsources], each owned */
    int nsources;
    size_t cap_sources;
    struct ep_paths paths;
    struct ep_ranks_map *ranks;
    uint64_t passed_over; /* files in folders that are of no known format */
    struct source **heap; /* those that are ready, the next one on top */
    int nheap;
    size_t cap_heap;
    bool delivered; /* the top was, and has to advance before the next */
    struct live live;
    uint64_t bad;
    uint64_t ended_bytes; /* of inputs that were read to their end */
    int failed;
    struct ep_error error; /* what ended a strict stream */
};

/* Tell the caller of an error that ends nothing. */
void ep_stream_complain(struct ep_stream *s, const struct ep_error *err);

/* Open a path. 0, or EP_ESYS if it is not there (follow: nothing was said). */
int ep_stream_add(struct ep_stream *s, const struct ep_path *path);

/* The next record of src, if there is one: into the heap. */
void ep_stream_feed(struct ep_stream *s, struct source *src);

/*
 * follow: wait until the top of the heap may be delivered, or the stream is to
 * stop. Looks at inputs that wait, and at folders for new files.
 */
void ep_stream_wait(struct ep_stream *s);

/* follow: src has nothing more to say at present. */
void ep_stream_fell_silent(struct ep_stream *s, struct source *src);

/* follow: open what is new of what was asked for. */
void ep_stream_scan(struct ep_stream *s);

#endif
