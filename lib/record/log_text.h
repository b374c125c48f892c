/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log_text.h - what the importers of trainers' logs have in common: which
 * lines are worth a look, when they were written, and the cells of a line.
 *
 * Most lines of a log are of no interest and must cost little: one pass looks
 * for pairs of bytes, another at the head of the line for a time, which is
 * kept as text until somebody asks.
 *
 * When a line was written is what log_clock.h says, its own time being the last
 * one in its text before what is read from it, or that which a launcher put in
 * front of it.
 */
#ifndef EP_RECORD_LOG_TEXT_H
#define EP_RECORD_LOG_TEXT_H

#include "base/lines.h"
#include "record/import.h"
#include "record/log_clock.h"
#include "record/nccl_text.h"
#include "record/strip.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#define EP_LOG_NAME_MAX 128

struct ep_log {
    struct ep_log_clock clock;
    struct ep_strip line;  /* the line that was opened last */
    bool whole;            /* it has a line end */
    struct ep_buf scratch; /* its text may be in here */
    double said;           /* s: ts of the record before */
    char name[EP_LOG_NAME_MAX];
};

/* ---- importers --------------------------------------------------------- */

/*
 * What an importer of logs has to know, whose own struct begins with a struct
 * ep_log; self is that struct.
 */
struct ep_log_importer {
    size_t size;              /* of its struct */
    void (*init)(void *self); /* what is not zero at first; NULL: nothing */
    /* Is the line worth a look? Most are not: this must cost little. */
    bool (*wants)(const void *self, const struct ep_line *line);
    void (*line)(void *self); /* look at the line that was opened */
    /* The next record of it; false if there is none left. */
    bool (*next)(void *self, struct ep_record *r);
};

/* begin(), end() and next() of such an importer, as import.h has them. */
void *ep_log_begin(const struct ep_log_importer *how,
                   const struct ep_source *s);
void ep_log_end(void *self);
int ep_log_next(const struct ep_log_importer *how, void *self,
                struct ep_source *s, struct ep_record *r, struct ep_error *err);

/* ---- lines ------------------------------------------------------------ */

/* Pairs of bytes, one of which is in each line that is of interest. A pair
 * may be there twice. */
struct ep_log_pairs {
    char c[4][2];
};

#if defined(__SSE2__)
/* Where a pair is, given a block and that which begins a byte later. */
static inline __m128i ep_log_hits(__m128i a, __m128i b, const char pair[2])
{
    return _mm_and_si128(_mm_cmpeq_epi8(a, _mm_set1_epi8(pair[0])),
                         _mm_cmpeq_epi8(b, _mm_set1_epi8(pair[1])));
}
#endif

/*
 * The first place in [p, end) where one of the pairs is, or NULL. Loads up to
 * 17 bytes from end on (see EP_LINE_PAD). pairs should be a constant that the
 * compiler sees.
 */
static inline const char *ep_log_pair(const char *p, const char *end,
                                      const struct ep_log_pairs *pairs)
{
#if defined(__SSE2__)
    for (; p < end; p += 16) {
        __m128i a = _mm_loadu_si128((const __m128i *)(const void *)p);
        __m128i b = _mm_loadu_si128((const __m128i *)(const void *)(p + 1));
        int hits = _mm_movemask_epi8(
            _mm_or_si128(_mm_or_si128(ep_log_hits(a, b, pairs->c[0]),
                                      ep_log_hits(a, b, pairs->c[1])),
                         _mm_or_si128(ep_log_hits(a, b, pairs->c[2]),
                                      ep_log_hits(a, b, pairs->c[3]))));

        if (hits) {
            p += __builtin_ctz((unsigned)hits);
            return p + 1 < end ? p : NULL;
        }
    }
#else
    for (; p + 1 < end; p++)
        for (int i = 0; i < 4; i++)
            if (p[0] == pairs->c[i][0] && p[1] == pairs->c[i][1])
                return p;
#endif
    return NULL;
}

/*
 * Strip a line into log->line. Of a last line without a line end the last word
 * is left out: it may have been cut. Valid until the source's next line.
 */
void ep_log_open(struct ep_log *log, const struct ep_line *line);

/*
 * When the opened line was written, see above; mark, in its text, is where
 * that begins which is read. *own (may be NULL) says whether the line itself
 * had a time.
 */
double ep_log_time(struct ep_log *log, const char *mark, bool *own);

/*
 * When an interval of dur seconds began that ended at ts. Times in logs are
 * rounded, mostly to seconds, so up to 1 s before the record before is taken
 * for the same time as that: the records are then in order.
 */
double ep_log_begun(const struct ep_log *log, double ts, double dur);

/* Begin a record, and a gauge (the name is borrowed until it was printed). */
void ep_log_record(struct ep_log *log, enum ep_type type, double ts,
                   struct ep_record *r);
void ep_log_gauge(struct ep_log *log, double ts, const char *name, double value,
                  const char *unit, struct ep_record *r);

/* Who wrote the opened line, as far as its prefix says: rank, pid, host. rank
 * is what the text says, or -1. */
void ep_log_origin(const struct ep_log *log, int64_t rank, struct ep_record *r);

/* ---- what is in a line ------------------------------------------------ */

/* Where the first text is in c, or NULL; c is left alone. */
const char *ep_log_find(const struct ep_cursor *c, const char *text);

/*
 * A number times 10^exp10, to the nearest double. False, and nothing passed,
 * if there is none or it is not finite.
 */
bool ep_log_number(struct ep_cursor *c, int exp10, double *out);

/* The same if it is all of s but for blanks. */
bool ep_log_value(struct ep_span s, int exp10, double *out);

/* "key: value" or "key=value" between bars, without blanks at the ends. */
struct ep_log_cell {
    struct ep_span key, value; /* value is empty if there is neither : nor = */
};

/* The next one; false at the end. */
bool ep_log_next_cell(struct ep_cursor *c, struct ep_log_cell *cell);

/* What is from p to end, without blanks at either side. */
struct ep_span ep_log_trim(const char *p, const char *end);

/* The rest of the next function, for a name of n bytes. */
size_t ep_log_key_rest(struct ep_span key, const char *name, size_t n);

/*
 * Does key begin with name, in any case, '_' being the same as a blank? Returns
 * how many bytes that is, or 0.
 */
static inline size_t ep_log_key(struct ep_span key, const char *name)
{
    if (!key.len || (*key.ptr | 0x20) != *name) /* nearly always */
        return 0;
    return ep_log_key_rest(key, name, strlen(name));
}

/*
 * prefix, then a name of theirs in lower case with '_' for all that is neither
 * letter nor digit, then suffix: in log->name. NULL if it is empty or too long.
 */
const char *ep_log_name(struct ep_log *log, const char *prefix,
                        struct ep_span name, const char *suffix);

/* ---- "time (ms) | fwd: 3859.30 | bwd: 11267.97" ----------------------- */

/* A cell of a line before: lines have the same ones in the same order. */
struct ep_log_known {
    char text[40];        /* up to the colon or '=', which is the last byte */
    unsigned char len;    /* 0: none */
    unsigned char at, to; /* the key in it */
    unsigned char name_len;
    const char *prefix; /* that name begins with; NULL: there is no name */
    char name[72];
};

enum { EP_LOG_KNOWN = 12 };

/* All zero to begin with, to be used for all lines of a log. */
struct ep_log_times {
    struct ep_cursor rest;
    int number;         /* of the next cell */
    const char *prefix; /* of the gauges' names; a string constant */
    int64_t rank;       /* "[Rank 0]" in front of it, or -1 */
    double ts;
    bool own; /* as of ep_log_time */
    struct ep_log_known known[EP_LOG_KNOWN];
};

/* Does the opened line have it? */
bool ep_log_times(struct ep_log *log, struct ep_log_times *t);

/*
 * As ep_log_next_cell(), of cell number i, by what is known of the lines
 * before: the same cells, at less cost. *known becomes what is known of this
 * one, or NULL (may be NULL).
 */
bool ep_log_times_cell(struct ep_log_times *t, int i, struct ep_cursor *c,
                       struct ep_log_cell *cell, struct ep_log_known **known);

/* The next gauge, in seconds; false at the end. */
bool ep_log_next_time(struct ep_log *log, struct ep_log_times *t,
                      struct ep_record *r);

#endif
