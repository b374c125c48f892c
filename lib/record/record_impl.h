/* SPDX-License-Identifier: Apache-2.0 */
/* record_impl.h - what record.c and record_fast.c share; private to them. */
#ifndef EP_RECORD_RECORD_IMPL_H
#define EP_RECORD_RECORD_IMPL_H

#include "record/record.h"

#define EP_RECORD_INDEX_BITS 9
#define EP_RECORD_INDEX (1 << EP_RECORD_INDEX_BITS) /* several times EP_KEYS */
#define EP_RECORD_NONE 255
#define EP_RECORD_INT_MAX 9007199254740991.0

/* What a slot holds, kept beside the record while it is parsed. */
enum slot { IS_STRING, IS_NUMBER, IS_ARRAY, IS_OTHER };

/* A key's name as ep_json_head gives it, its length and the key. */
struct ep_record_entry {
    uint64_t head;
    unsigned char len, key; /* key EP_RECORD_NONE: free */
};

/* "name": as two words to compare a text with, zeros behind. */
struct ep_record_word {
    uint64_t a, b, mask_a, mask_b;
};

struct ep_record_parser {
    struct ep_record_entry index[EP_RECORD_INDEX]; /* open addressing */
    struct ep_buf text; /* unescaped strings of the line */
    unsigned char slot[EP_KEYS];

    /* of record_fast.c */
    struct ep_record_word word[EP_KEYS];
    uint64_t need[EP_TYPES][2]; /* as have: the keys that a type must have */
    unsigned char after[EP_TYPES][EP_KEYS]; /* which key came behind another */
    uint64_t type[EP_TYPES]; /* names, at most 7 bytes, the first one lowest */
    unsigned char type_len[EP_TYPES];
    int last_type;
};

static inline size_t ep_record_hash(uint64_t head, size_t len)
{
    return (head ^ len * UINT64_C(0x9e3779b97f4a7c15)) *
               UINT64_C(0xbf58476d1ce4e5b9) >>
           (64 - EP_RECORD_INDEX_BITS);
}

/* Bytes behind a line that ep_record_fast() may load. */
#define EP_RECORD_FAST_PAD 32

void ep_record_fast_init(struct ep_record_parser *p); /* once index is made */

/*
 * Read a line as our own programs write it: no white space, no escape, keys
 * that are known, all in their ranges. True: *r is what ep_record_parse() gives
 * without this. False: the line may be good all the same.
 */
bool ep_record_fast(struct ep_record_parser *p, const char *line, size_t len,
                    struct ep_record *r);

#endif
