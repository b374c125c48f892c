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

enum { EP_SELECT_MAX = 64 };

enum ep_select_how {
    EP_SELECT_EQ,
    EP_SELECT_NE,
    EP_SELECT_LT,
    EP_SELECT_LE,
    EP_SELECT_GT,
    EP_SELECT_GE,
};

/* One "key=value"; of a number, value is what it is compared with. */
struct ep_select_where {
    enum ep_key key;
    enum ep_select_how how;
    struct ep_span text; /* the whole value, borrowed from the option */
    bool glob;           /* ... has * or ? */
    double num;          /* NaN if the text is no number */
};

struct ep_select {
    uint32_t types; /* bit t: wanted; 0: all */
    struct ep_select_where where[EP_SELECT_MAX];
    int nwhere;
    double since, until; /* s since the epoch; -inf, inf: no bound */
};

/*
 * The texts of options, and the time. Borrowed as long as what they made is
 * used.
 */
struct ep_select_texts {
    /* [ntypes] each "step,coll": names of types; those of all are wanted */
    const char *const *types;
    int ntypes;
    /*
     * [nwhere] each "host=n1,rank>=8": conditions; a value has no comma.
     *
     *   KEY=VALUE  KEY!=VALUE    text, in which * is any bytes and ? any one,
     *                            and \* \? \\ are these; or a number
     *   KEY<N  <=  >  >=         of a number; N may have a unit where the key
     *                            has one: dur>500ms, bytes>=1MiB
     *
     * All have to hold, but of those with = for one key only one.
     */
    const char *const *where;
    int nwhere;
    /*
     * NULL, or:
     *   1796007255.25                seconds since the epoch
     *   YYYY-MM-DD[Thh:mm[:ss[.f]]]  local time, T or a blank; with Z, +hh:mm
     *                                or -hhmm behind it of that zone
     *   -10m  -1h30m                 before now, see ep_num_duration()
     *   now  today  yesterday        the latter when they began, local time
     */
    const char *since, *until;
    double now; /* s since the epoch */
};

/*
 * Errors: EP_EUSAGE "cannot use --type X: reason" and the like, also if since
 * is not before until; EP_ELIMIT.
 */
int ep_select_init(struct ep_select *s, const struct ep_select_texts *texts,
                   struct ep_error *err) EP_MUST_USE;

/*
 * Is the record wanted? since <= ts < until; a record without ts passes only
 * where there is no bound. A key that a record lacks fulfils no condition, !=
 * neither. O(where), and O(n m) for a glob of n bytes on a text of m.
 */
bool ep_select_match(const struct ep_select *s, const struct ep_record *r);

#endif
