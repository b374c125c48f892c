/* SPDX-License-Identifier: Apache-2.0 */
/*
 * select.h - which records are wanted: by type, keys and time.
 */
#ifndef EP_RECORD_SELECT_H
#define EP_RECORD_SELECT_H

#include "base/buf.h"
#include "base/err.h"
#include "record/record.h"

#include <stdbool.h>
#include <stdint.h>

enum { EP_SELECT_MAX = 16 };

/* One "key=value"; of a number, value is what it has to equal. */
struct ep_select_where {
    enum ep_key key;
    const char *text; /* the whole value, borrowed from the option */
    size_t len;
    double num; /* NaN if the text is no number */
};

struct ep_select {
    uint32_t types; /* bit t: wanted; 0: all */
    struct ep_select_where where[EP_SELECT_MAX];
    int nwhere;
    double since, until; /* s since the epoch; -inf, inf: no bound */
};

/*
 * From the texts of options, each of which may be NULL:
 *   types   "step,coll": names of types
 *   where   "host=n1,rank=3": all have to hold; of one key given twice, one of
 *           the two ("rank=3,rank=4"); a value may not have a comma
 *   since, until   seconds since the epoch, or YYYY-MM-DD[Thh:mm[:ss]] (also
 *           with a space) in local time, or with a 'Z' at the end in UTC
 * Errors: EP_EUSAGE "cannot use --type X: reason" and the like; EP_ELIMIT.
 * The texts are borrowed as long as *s is used.
 */
int ep_select_init(struct ep_select *s, const char *types, const char *where,
                   const char *since, const char *until,
                   struct ep_error *err) EP_MUST_USE;

/*
 * Is the record wanted? since <= ts < until; a record without ts passes only
 * where there is no bound. A key that a record lacks does not match. O(where).
 */
bool ep_select_match(const struct ep_select *s, const struct ep_record *r);

#endif
