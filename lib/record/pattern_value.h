/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pattern_value.h - text from a log as the value of a key: numbers with units,
 * times, names. Private to pattern*.c.
 */
#ifndef EP_RECORD_PATTERN_VALUE_H
#define EP_RECORD_PATTERN_VALUE_H

#include "base/buf.h"
#include "base/err.h"
#include "record/record.h"
#include "record/strip.h"

/* A unit: times 10^exp10 times factor it is that of the key. */
struct ep_pattern_unit {
    const char *name;
    unsigned char kinds; /* what it measures: see pattern_value.c */
    signed char exp10;
    double factor; /* exact */
};

/*
 * The key that a group's name means, alone or with "_UNIT" behind it; *unit
 * becomes NULL without one.
 * Errors: EP_EFORMAT "group 'NAME' is no key of evenpace-record(5)", "... is of
 * no unit that KEY can have".
 */
int ep_pattern_key(struct ep_span name, enum ep_key *key,
                   const struct ep_pattern_unit **unit,
                   struct ep_error *err) EP_MUST_USE;

/*
 * Set key k of *r from text, blanks round it not counted. unit is of a number
 * that has none; NULL: as the key has it. A string is borrowed, an empty one
 * left out. zone is for ts, see ep_strip_stamp().
 * Errors: EP_EFORMAT "KEY 'TEXT': not a number", "... unknown unit"; EP_ERANGE
 * "KEY 'TEXT': not in ...".
 */
int ep_pattern_value(struct ep_record *r, enum ep_key k, struct ep_span text,
                     const struct ep_pattern_unit *unit,
                     struct ep_strip_zone *zone,
                     struct ep_error *err) EP_MUST_USE;

#endif
