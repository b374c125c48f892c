/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inspector_entry.h - one object that NCCL Inspector wrote, taken apart.
 */
#ifndef EP_RECORD_INSPECTOR_ENTRY_H
#define EP_RECORD_INSPECTOR_ENTRY_H

#include "record/nccl_text.h"

enum ep_inspector_kind {
    EP_INSPECTOR_NOTHING, /* of interest */
    EP_INSPECTOR_COLL,
    EP_INSPECTOR_P2P,
    EP_INSPECTOR_STATS,
};

/* A span is {NULL, 0} and a number -1 where the object does not say it. */
struct ep_inspector_entry {
    enum ep_inspector_kind kind;
    bool kernel_timed;
    struct ep_span id, host;
    struct ep_span op; /* as ep_nccl_op has it */
    int64_t rank, nranks, pid;
    int64_t seq, bytes, peer;
    int64_t start_us, kernel_us; /* since the epoch; at most 0: not known */
    int64_t dump_us, dropped;    /* of dump_stats */
    double dur;                  /* s */
    /* where the object has dump_timestamp_us and the end of its metadata; NULL
       if these are not in the usual order */
    struct ep_span dump;
    const char *head_end;
    int parts; /* headers and metadata that were read */
};

struct ep_inspector_reader; /* opaque: strings, and the head of the last one */

struct ep_inspector_reader *ep_inspector_reader_new(void);
void ep_inspector_reader_free(struct ep_inspector_reader *r); /* NULL allowed */

/*
 * Read the object at the beginning of text into *e. What follows it is not
 * looked at.
 *
 * text    borrowed until the next call, as the reader is, by the spans of *e
 * pad     bytes behind text that may be loaded
 * Returns the length of the object, or an error as ep_json_next has it (a
 * message of its own if the text is no object). Cost: 1.3 GB/s on lines with
 * the same head as the line before, 0.8 on others (-O2, one core).
 */
long ep_inspector_read(struct ep_inspector_reader *r, struct ep_span text,
                       size_t pad, struct ep_inspector_entry *e,
                       struct ep_error *err) EP_MUST_USE;

#endif
