/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pattern.h - records out of any line of text, by regular expressions (PCRE2)
 * whose named groups are keys of evenpace-record(5).
 *
 *     train, step (?<step>\d+), .*cuda:(?<rank>\d+) .*, (?<dur>[\d.]+) sec/step
 *
 * A group is named as the key that it becomes, or as the key and its unit,
 * dur_ms or value_GBps, where the text has the number alone. A number may carry
 * its unit itself: 12.5ms, 3.2 s, 4GB, 1h30m, 0:01:05, 45%, 1,234. Without any
 * it is in the unit of the key.
 *
 * A line is matched without the prefixes that launchers add (strip.h), and what
 * they say is used: rank, host and pid where no group has them. ts is, of these
 * the first that there is: a group ts (seconds since the epoch, or a date as
 * ep_strip_stamp() reads it); such a date at the beginning of the line, in
 * brackets or not; the prefix's time; a time in the first 64 bytes of the line
 * or of the nearest before it that has one; the time of the file (log_clock.h).
 *
 * Of a line that was drawn over, by carriage returns, what is seen last and is
 * no progress bar is matched (ep_strip()); a pattern may ask for the bars.
 *
 * Bytes are matched, not characters. A match that backtracks without end is
 * given up (PCRE2's match, depth and heap limits) and an error of that line.
 * Most lines of a log match nothing: a text that is in all that a pattern can
 * match is looked for first (pattern_literal.h).
 *
 * All of this needs PCRE2. Without it ep_patterns_add() and so
 * ep_patterns_load() give EP_EMISSING.
 */
#ifndef EP_RECORD_PATTERN_H
#define EP_RECORD_PATTERN_H

#include "base/buf.h"
#include "base/err.h"
#include "record/log_clock.h"
#include "record/record.h"
#include "record/strip.h"

#include <stdbool.h>
#include <stddef.h>

#define EP_PATTERNS_MAX 1024 /* in one set */

/* ---- a set of patterns ---- */

/* Opaque. Matching uses room in it: one thread at a time. */
struct ep_patterns;

struct ep_patterns *ep_patterns_new(void);
void ep_patterns_free(struct ep_patterns *p); /* NULL allowed */
size_t ep_patterns_count(const struct ep_patterns *p);

/* A key that has the same value in all records of a pattern. */
struct ep_pattern_set {
    const char *key, *value;
};

/* What of a line with carriage returns is matched. */
enum ep_pattern_bars {
    EP_BARS_NONE,  /* what is seen last that is no progress bar */
    EP_BARS_LAST,  /* the last state, a bar or not */
    EP_BARS_EVERY, /* each state, on its own */
};

/* Where a pattern is wrong. */
struct ep_pattern_fault {
    enum { EP_FAULT_PATTERN, EP_FAULT_REGEX, EP_FAULT_SET } in;
    size_t at; /* byte of the regex, or which of the set; else 0 */
};

struct ep_pattern_spec {
    const char *name;                 /* for messages */
    const char *type;                 /* of the records: "step" */
    const char *regex;                /* the syntax of pcre2pattern(3) */
    const struct ep_pattern_set *set; /* [nset] */
    size_t nset;
    /* Text of a heading, or NULL: only lines after one with it are matched, up
       to the next line that is the heading of another pattern. */
    const char *after;
    enum ep_pattern_bars bars;
    /* NULL; or what becomes the place of an error, for a caller who says where
       that is: the message then begins with "pattern 'NAME': ". */
    struct ep_pattern_fault *fault;
};

/*
 * Compile a pattern into the set. Nothing of *spec is kept.
 * Errors: "cannot use pattern 'NAME': reason" with EP_EFORMAT (not a regular
 * expression; a group that is no key, or of no such unit; a key that the type
 * needs and nobody sets; no such type), EP_ERANGE (a set value), EP_ELIMIT (too
 * many patterns), EP_EMISSING (built without PCRE2). The set is then unchanged.
 */
int ep_patterns_add(struct ep_patterns *p, const struct ep_pattern_spec *spec,
                    struct ep_error *err) EP_MUST_USE;

/*
 * The same from a command line: type_of is TYPE[,KEY=VALUE...], as in
 * "gauge,name=loss,unit=1"; NULL means "step".
 */
int ep_patterns_add_text(struct ep_patterns *p, const char *regex,
                         const char *type_of, enum ep_pattern_bars bars,
                         struct ep_error *err) EP_MUST_USE;

#define EP_PATTERNS_FILE_MAX ((size_t)1 << 20) /* bytes of a file */

/*
 * Add the patterns of a file. A line of it is a keyword, a blank, and the rest;
 * blanks in front, empty lines and lines that begin with # do not count.
 *
 *     pattern NAME TYPE       begins one; the others are about it
 *     regex REGEX
 *     set KEY VALUE           any number of them
 *     after TEXT
 *     raw                     EP_BARS_LAST
 *     raw every               EP_BARS_EVERY
 *     sample LINE             any number of them
 *
 * Each sample must give a record, or the pattern is refused: a file of patterns
 * is its own test. "\r" in a sample, after raw, is a carriage return.
 * Errors: as ep_input_open() and ep_input_read(); EP_ELIMIT if it is larger than
 * EP_PATTERNS_FILE_MAX; or "cannot use PATH:LINE:COLUMN: reason". What was added
 * before stays.
 */
int ep_patterns_load(struct ep_patterns *p, const char *path,
                     struct ep_error *err) EP_MUST_USE;

/* ---- matching ---- */

/* Where one input is; its line and what of it was found out. */
struct ep_pattern_cursor {
    /* of the lines; whose ep_log_clock_note() the caller may call with each */
    struct ep_log_clock clock;
    size_t at;   /* the pattern that is tried next */
    bool begun;  /* ... and was, with some text of the line */
    int section; /* heading seen last, or -1 */
    struct ep_span line;
    bool odd, stripped, barred;  /* line has an escape sequence; strip and bars
                                   are of it */
    struct ep_strip strip, bars; /* without and with progress bars */
    struct ep_span rest;         /* of bars, for a pattern that wants every */
    struct ep_buf scratch, bars_scratch;
};

void ep_pattern_cursor_init(struct ep_pattern_cursor *c, double mtime);
void ep_pattern_cursor_free(struct ep_pattern_cursor *c);

/*
 * Begin with a line, borrowed until the next one. False if no pattern can match
 * it. Cost: one pass for all literals and headings together, 2 GB/s.
 */
bool ep_pattern_begin(struct ep_pattern_cursor *c, const struct ep_patterns *p,
                      struct ep_span line);

/*
 * The record of the next pattern that matches: a line gives one for each.
 * Returns 1; 0 if no more do; or an error with a reason, EP_EFORMAT or
 * EP_ERANGE (a group's text is not what its key is; a needed group took no
 * part) or EP_ELIMIT (the limits of a match), after which the call goes on with
 * the patterns behind. Strings of *r are borrowed from the line, *c and *p.
 */
int ep_pattern_next(struct ep_pattern_cursor *c, const struct ep_patterns *p,
                    struct ep_record *r, struct ep_error *err) EP_MUST_USE;

/* ---- the importer ---- */

/*
 * What the importer "pattern" uses from now on; NULL: nothing, and then it
 * recognises no input. Borrowed: must outlive the sources that it reads. To be
 * called before they are opened.
 */
void ep_import_pattern_use(const struct ep_patterns *p);

#endif
