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

/* How often a byte is met in logs: a class from 0, rare, to 5. */
int ep_literal_commonness(unsigned char c);

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
 * at 16 places at a time where the machine can; 8 GB/s on lines of 117 bytes.
 */
bool ep_literal_in(const struct ep_literal *l, const char *s, size_t n);

/* ---- many at once ---- */

#define EP_LITERALS_BUCKETS 8
#define EP_LITERALS_BYTES 3

/* A literal, and where in it the bytes are by which it is looked for. */
struct ep_literals_entry {
    struct ep_literal literal;
    size_t at, next; /* next of its bucket; 0: none, else 1 + its index */
};

struct ep_literals {
    struct ep_literals_entry *v; /* [n] */
    size_t n, cap;
    bool always; /* one of them is in every line */
    bool tail;   /* one of them is shorter than what is looked for */
    size_t first[EP_LITERALS_BUCKETS];
    /* bit b of low[i][x & 15] & high[i][x >> 4]: x may be byte i of a literal
       of bucket b */
    unsigned char low[EP_LITERALS_BYTES][16], high[EP_LITERALS_BYTES][16];
};

void ep_literals_add(struct ep_literals *set, const struct ep_literal *l);
void ep_literals_free(struct ep_literals *set); /* all-zero allowed */

/*
 * Is any of them in s? Cost: independent of their number as long as it is a few
 * dozen, 2 GB/s on lines of 117 bytes with AVX2 (a form of "Teddy",
 * G. Langdale, Hyperscan 2015: the nibbles of three bytes in a row are looked
 * up, 32 places at a time); without it, that of ep_literal_in() for each.
 */
bool ep_literals_any(const struct ep_literals *set, const char *s, size_t n);

#endif
