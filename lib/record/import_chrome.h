/* SPDX-License-Identifier: Apache-2.0 */
/*
 * import_chrome.h - what the importers of Chrome traces share, and others that
 * read large JSON documents use; private to import_*.c.
 *
 * A trace is an array of events, bare or as "traceEvents" in an object ("Trace
 * Event Format", Google, the JSON array and object formats). An event has a
 * name, a category (cat), a phase (ph; "X": an interval), a process and a
 * thread (pid, tid: numbers or strings), a start and a duration in microseconds
 * (ts, dur), and args, an object whose keys are the writer's own.
 *
 * What is needed for a record may come behind the event in the file: the name
 * of its thread, or members of the object. Then records are held, packed, in a
 * queue that keeps little in memory, and delivered when all is read.
 */
#ifndef EP_RECORD_IMPORT_CHROME_H
#define EP_RECORD_IMPORT_CHROME_H

#include "base/buf.h"
#include "base/intern.h"
#include "base/json_shape.h"
#include "base/json_stream.h"
#include "record/import.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- events ---- */

/* One event; a value that is absent is of kind NULL. */
struct ep_chrome_event {
    struct ep_json_value name, cat, ph, pid, tid, ts, dur;
};

/*
 * What a format makes of a trace. Any of these may be called for an event
 * again after args() or event() asked for nothing: see json_stream.h.
 */
struct ep_chrome_format {
    /* A new event, or the same one from its beginning. */
    void (*begin)(void *self);
    /* Is it of use, as far as it is known? False: passed over. May be NULL. */
    bool (*wanted)(const struct ep_chrome_event *e);
    /*
     * If it is not NULL all members of args are scalars, and this one is wanted
     * there (zero: absent), or not at all; then arg is not called.
     */
    struct ep_json_value *(*arg_slot)(void *self, struct ep_span key);
    /* A member of args, whose value v the function may enter. */
    int (*arg)(void *self, struct ep_json *j, const struct ep_json_value *key,
               const struct ep_json_value *v);
    /* A member of the object round the events; likewise. May be NULL. */
    int (*member)(void *self, struct ep_json *j,
                  const struct ep_json_value *key,
                  const struct ep_json_value *v);
    /* The event is whole: 1 if *r is a record now, 0, or an error. */
    int (*event)(void *self, const struct ep_chrome_event *e,
                 struct ep_record *r, struct ep_error *err);
    /* The trace is over: the next held record as 1, or 0. */
    int (*held)(void *self, struct ep_record *r, struct ep_error *err);
};

struct ep_chrome {
    const struct ep_chrome_format *format;
    void *self;
    struct ep_source *source; /* of the call that is going on */
    struct ep_json_stream *stream;
    struct ep_chrome_event event;
    struct ep_json_shape shape; /* of the last event, if there is arg_slot */
    bool fresh; /* the event is of that shape: nothing else was written */
    bool drained;
    int failed; /* code of a final error, which *late describes */
    struct ep_error late;
};

void ep_chrome_init(struct ep_chrome *c, const struct ep_chrome_format *format,
                    void *self);
void ep_chrome_free(struct ep_chrome *c);

/* As next() of struct ep_importer. */
int ep_chrome_next(struct ep_chrome *c, struct ep_source *s,
                   struct ep_record *r, struct ep_error *err) EP_MUST_USE;

/* Does the beginning of an input look like a trace? Where its text begins, or
 * NULL; *bare tells an array from an object. */
const char *ep_chrome_begins(const char *head, size_t len, bool *bare);

/* Does text occur in the bytes? */
bool ep_chrome_has(const char *head, size_t len, const char *text);

/* ---- values ---- */

/* Is a key this one? (An escaped key is none.) */
static inline bool ep_chrome_is(const struct ep_json_value *key,
                                const char *name, size_t len)
{
    return key->raw.len == len && memcmp(key->raw.ptr, name, len) == 0;
}

/* The same of the bytes of a string literal. */
#define EP_CHROME_IS(key, literal)                                             \
    ep_chrome_is(key, literal, sizeof(literal) - 1)

/*
 * The bytes of a string; decoded into *room (emptied first) if it has escapes.
 * {NULL, 0} if v is no string, or a NUL is in it.
 */
struct ep_span ep_chrome_text(const struct ep_json_value *v,
                              struct ep_buf *room);

int ep_chrome_int_slow(const struct ep_json_value *v, const char *what,
                       int64_t lo, int64_t *out,
                       struct ep_error *err) EP_MUST_USE;

/*
 * An integer >= lo of a member, or absent (null, missing): *out is then
 * unchanged. EP_EFORMAT or EP_ERANGE "WHAT is ..." otherwise.
 */
EP_MUST_USE static inline int ep_chrome_int(const struct ep_json_value *v,
                                            const char *what, int64_t lo,
                                            int64_t *out, struct ep_error *err)
{
    /* Most are written plainly. */
    if (v->kind == EP_JSON_NUMBER && v->integer && !v->dec.neg &&
        v->dec.exp10 == 0 && v->dec.mant < UINT64_C(1) << 53 &&
        lo <= (int64_t)v->dec.mant) {
        *out = (int64_t)v->dec.mant;
        return 0;
    }
    return ep_chrome_int_slow(v, what, lo, out, err);
}

/* Microseconds as seconds: the double nearest to the decimal value (of its
 * first 19 digits). -0 is 0. Errors: as above; also below 0 and absent. */
int ep_chrome_seconds(const struct ep_json_value *us, const char *what,
                      double *s, struct ep_error *err) EP_MUST_USE;

/*
 * The number of a string in a table of at most EP_CHROME_NAMES, each of at most
 * EP_CHROME_NAME_MAX bytes; EP_ELIMIT "too many WHAT" or "WHAT is too long".
 */
#define EP_CHROME_NAMES 16384
#define EP_CHROME_NAME_MAX 1024
int ep_chrome_intern(struct ep_intern *table, struct ep_span s,
                     const char *what, int32_t *id,
                     struct ep_error *err) EP_MUST_USE;

/* ---- the queue ---- */

struct ep_chrome_hold; /* opaque */

/* Items of so many bytes each. Allocates nothing yet. */
struct ep_chrome_hold *ep_chrome_hold_new(size_t item_bytes);
void ep_chrome_hold_free(struct ep_chrome_hold *h); /* NULL allowed */

/*
 * Append. Up to 8 MiB stay in memory, the others go to a file without a name
 * in $TMPDIR or /tmp. Errors: EP_ESYS "cannot write to a file in DIR: ...".
 * Not after the first take.
 */
int ep_chrome_hold_add(struct ep_chrome_hold *h, const void *item,
                       struct ep_error *err) EP_MUST_USE;

bool ep_chrome_hold_any(const struct ep_chrome_hold *h); /* items added */

/* Take the first: 1, 0 if there is none, or EP_ESYS. */
int ep_chrome_hold_take(struct ep_chrome_hold *h, void *item,
                        struct ep_error *err) EP_MUST_USE;

/* ---- threads of a timeline ---- */

/* A thread, and what its name says: -1 if nothing. */
struct ep_chrome_lane {
    int64_t pid, tid;
    int32_t pp, tp;
    int64_t rank;
};

struct ep_chrome_lanes; /* opaque */

struct ep_chrome_lanes *ep_chrome_lanes_new(void);
void ep_chrome_lanes_free(struct ep_chrome_lanes *l); /* NULL allowed */

/* The number of a thread; EP_ELIMIT if there are more than 2^18. */
int ep_chrome_lane_find(struct ep_chrome_lanes *l, int64_t pid, int64_t tid,
                        uint32_t *lane, struct ep_error *err) EP_MUST_USE;

/* "PP rank 2, TP rank 0, compute" is the name of the thread. */
void ep_chrome_lane_name(struct ep_chrome_lanes *l, uint32_t lane,
                         struct ep_span name);

/*
 * All names are known: derive the ranks. tid = rank * n + k is how timelines
 * number the n threads of a rank; it is believed if all named threads fit it:
 * the threads of each (pid, pp, tp) are n >= 2 in a row that begins at a
 * multiple of n, n is the same for all, and no two share a tid.
 */
void ep_chrome_lanes_rank(struct ep_chrome_lanes *l);

const struct ep_chrome_lane *ep_chrome_lane(const struct ep_chrome_lanes *l,
                                            uint32_t lane);

#endif
