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
 * ep_strip_time() reads it); a date at the beginning of the line, in brackets
 * or not; the prefix's time; the time of the file.
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

struct ep_pattern_spec {
    const char *name;                 /* for messages */
    const char *type;                 /* of the records: "step" */
    const char *regex;                /* the syntax of pcre2pattern(3) */
    const struct ep_pattern_set *set; /* [nset] */
    size_t nset;
    /* Text of a heading, or NULL: only lines after one with it are matched, up
       to the next line that is the heading of another pattern. */
    const char *after;
    bool raw; /* match the line as it is: progress bars are its text */
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
                         const char *type_of, struct ep_error *err) EP_MUST_USE;

/*
 * Add the patterns of a file. A line of it is a keyword, a blank, and the rest;
 * blanks in front, empty lines and lines that begin with # do not count.
 *
 *     pattern NAME TYPE       begins one; the others are about it
 *     regex REGEX
 *     set KEY VALUE           any number of them
 *     after TEXT
 *     raw
 *     sample LINE             any number of them
 *
 * Each sample must give a record, or the pattern is refused: a file of patterns
 * is its own test.
 * Errors: as ep_input_open() and ep_input_read(), or "cannot use PATH:LINE:
 * reason". What was added before stays.
 */
int ep_patterns_load(struct ep_patterns *p, const char *path,
                     struct ep_error *err) EP_MUST_USE;

/* ---- matching ---- */

/* Where one input is; its line and what of it was found out. */
struct ep_pattern_cursor {
    double mtime; /* of the input, for lines without a time */
    size_t at;    /* the pattern that is tried next */
    int section;  /* heading seen last, or -1 */
    struct ep_span line;
    bool odd, stripped; /* line has an escape sequence; strip is of it */
    struct ep_strip strip;
    struct ep_buf scratch;
    struct ep_strip_zone zone;
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
