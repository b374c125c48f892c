/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stream.h - records from one or more inputs, with one policy for bad lines.
 *
 * Several inputs are merged by ts: at each call the record with the least ts
 * among the next ones of all inputs comes first (a record without ts comes
 * at once). So a file per rank reads as one stream, provided that each file
 * is in order itself. Blank lines are passed over.
 *
 * Bad lines (not a record, or refused by the caller) are counted; the first
 * is described with FILE:LINE. By default reading goes on behind them; with
 * strict the first ends the stream. An input that cannot be opened or read
 * to its end is a failure: described, counted apart, the other inputs go on
 * (not with strict).
 */
#ifndef EP_RECORD_STREAM_H
#define EP_RECORD_STREAM_H

#include "base/err.h"
#include "base/lines.h"
#include "record/import.h"
#include "record/record.h"

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

struct ep_stream; /* opaque */

struct ep_stream_config {
    bool strict;
    bool no_merge; /* one input after the other, as they were given */
    /* Never end: inputs may grow, be replaced or appear (ep_input_follow,
       folders are looked at every second). An input that has nothing to say
       holds back the others for lateness seconds after its last record. The
       stream ends when *stop becomes true (NULL: never), or all inputs were
       pipes and have ended. Without follow, *stop ends an input that waits. */
    bool follow;
    double lateness; /* s */
    const volatile sig_atomic_t *stop;
    /* number of ranks of the job, by which records that know their rank in a
       communicator of that size get their global one (ranks_map.h); 0: as far
       as it can be told without */
    int64_t world;
    /* s, 0 for off: read all inputs again and again, from the beginning. Each
       round is a stream like another; then on_wait is called, and the next
       round begins at the next multiple of interval since the first. Ends
       after so many rounds (0: never), or when *stop becomes true. A URL that
       fails, or is back, is an event and is told once; URLs have interval, but
       1 s to 10 s, to answer. Not with follow. */
    double interval;
    int64_t rounds;
    const struct ep_importer *from; /* NULL: by the content of each input */
    /* Called for the first bad line, and for the first 3 failed inputs (with
       interval for each that fails or is back). */
    void (*complain)(void *ctx, const struct ep_error *err);
    /* Called for each record before it finds its place among those of the other
       inputs: may change its numbers, ts too (but the line stays as it was).
       NULL: none. */
    void (*correct)(void *correct_ctx, struct ep_record *r);
    void *correct_ctx;
    /* Called before a read that would wait, and each second while it does
       (ep_input_on_wait), or while none of what is followed has anything; may
       be NULL, and may not use the stream. */
    void (*on_wait)(void *ctx);
    void *ctx;
};

/*
 * Open n inputs ("-" is standard input); n == 0 means standard input alone. A
 * folder stands for the files below it (base/paths.h); those of no known format
 * are passed over and counted. Never NULL: an input that cannot be opened counts
 * as failed. The paths are borrowed until closed.
 *
 * There may be more files than descriptors (base/fdpool.h; the limit of open
 * files is raised as far as it can be), but not with follow, which keeps them
 * open. With no_merge one is open at a time.
 * Memory per input, while it is read: up to 32 inputs 0.4 MiB, and 0.5 MiB more
 * for 16 that inflate in threads; of many n a buffer of 64 MiB / n, but 16 to
 * 128 KiB, which grows to hold the longest line, and some KiB beside: in all
 * 26 KiB of 5,000 files of records, 74 KiB if they are compressed (measured).
 * What other importers keep comes on top.
 */
struct ep_stream *ep_stream_open(const char *const *paths, int n,
                                 const struct ep_stream_config *config);
void ep_stream_close(struct ep_stream *s); /* NULL allowed */

/*
 * The next record and the line that it came from, both borrowed until the
 * next call (line may be NULL if the caller does not want it; *line becomes
 * NULL if the input is not of records, or the record is an event of the stream's
 * own, so that there is no such line). Returns 1, 0
 * at the end, or a negative error (strict only). Cost: that of parsing the line,
 * and O(log inputs).
 */
int ep_stream_next(struct ep_stream *s, const struct ep_record **r,
                   const struct ep_line **line,
                   struct ep_error *err) EP_MUST_USE;

/*
 * The caller refuses the record just read: counts as a bad line with the
 * given reason. Returns 0, or EP_EFORMAT with *err filled when strict.
 */
int ep_stream_reject(struct ep_stream *s, struct ep_error *err, const char *fmt,
                     ...) EP_MUST_USE EP_PRINTF(3, 4);

/*
 * How far: bytes of all inputs read, and their sizes, as they are stored.
 * False if an input is no regular file. Cost: a system call per input.
 */
bool ep_stream_progress(const struct ep_stream *s, uint64_t *done,
                        uint64_t *total);

uint64_t ep_stream_bad(const struct ep_stream *s); /* bad lines so far */

/* Failed inputs. With interval: 0 if any input could ever be read. */
int ep_stream_failed(const struct ep_stream *s);

/* interval: rounds that were left out, since one before took too long. */
uint64_t ep_stream_missed(const struct ep_stream *s);

/* What was read of a format. */
struct ep_stream_format {
    const struct ep_importer *importer;
    uint64_t inputs;  /* which hold anything */
    uint64_t records; /* good ones, those that the caller refuses included */
    uint64_t bad;     /* lines or elements */
};

/* All formats, [*n], many with nothing in it; borrowed until closed. */
const struct ep_stream_format *ep_stream_formats(const struct ep_stream *s,
                                                 int *n);

/* Bad lines of one kind. */
struct ep_stream_reason {
    uint64_t n;
    char *text;  /* with N for numbers and "..." for what is in quotes */
    char *first; /* where the first is: FILE:LINE, or "FILE: byte N" */
};

/*
 * Why lines were bad, [*n] in the order in which kinds appeared; the kind
 * "others" takes what comes behind the 20th. Borrowed until closed.
 */
const struct ep_stream_reason *ep_stream_reasons(const struct ep_stream *s,
                                                 int *n);

/* follow: records delivered behind one with a later ts. */
uint64_t ep_stream_late(const struct ep_stream *s);

/* Inputs that were opened. */
int ep_stream_inputs(const struct ep_stream *s);

/* Files found in folders that are of no known format. */
uint64_t ep_stream_passed_over(const struct ep_stream *s);

#endif
