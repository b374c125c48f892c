/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record.h - the vocabulary of evenpace: one JSON object per line.
 *
 * evenpace-record(5) is the normative text; record_table.c is the same table
 * for the compiler, and a test holds the two against each other. A record is
 * a type and a set of keys. Parsing fills one slot per known key; unknown
 * keys are checked as JSON and passed over (a program that passes records
 * through prints the line it got). null counts as absent.
 *
 * Numbers are finite doubles; an integer key takes whole numbers below 2^53
 * in magnitude. Every key has a range, every type a list of keys it needs.
 */
#ifndef EP_RECORD_RECORD_H
#define EP_RECORD_RECORD_H

#include "base/buf.h"
#include "base/err.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum ep_type {
    EP_LAYOUT,
    EP_STEP,
    EP_COLL,
    EP_P2P,
    EP_SPAN,
    EP_GAUGE,
    EP_PROBE,
    EP_LINK,
    EP_LOSS,
    EP_EVENT,
    EP_WHATIF,
    EP_PLAN,
    EP_ASSIGN,
    EP_MERGE,
    EP_TYPES,            /* how many */
    EP_OTHER = EP_TYPES, /* a type that this version does not know */
};

/* In the order in which a record is printed. */
enum ep_key {
    EP_K_TYPE,
    EP_K_TS,
    /* where it is from */
    EP_K_JOB,
    EP_K_HOST,
    EP_K_PID,
    EP_K_RANK,
    EP_K_GPU,
    EP_K_GPU_INDEX,
    EP_K_DP,
    EP_K_PP,
    EP_K_TP,
    EP_K_REGION,
    EP_K_WORKER,
    /* what it says */
    EP_K_CP,
    EP_K_EP,
    EP_K_VPP,
    EP_K_ORDER,
    EP_K_HOSTS,
    EP_K_GPUS_PER_HOST,
    EP_K_MICROBATCHES,
    EP_K_COST_S2,
    EP_K_COST_S3,
    EP_K_COST_S4,
    EP_K_OP,
    EP_K_COMM,
    EP_K_NRANKS,
    EP_K_COMM_RANK,
    EP_K_PEER,
    EP_K_SEQ,
    EP_K_BYTES,
    EP_K_EID,
    EP_K_KIND,
    EP_K_SCOPE,
    EP_K_ID,
    EP_K_SINCE,
    EP_K_STEP,
    EP_K_DUR,
    EP_K_BUSY,
    EP_K_MB,
    EP_K_CHUNK,
    EP_K_TOKENS,
    EP_K_FLOPS,
    EP_K_NAME,
    EP_K_TEST,
    EP_K_DTYPE,
    EP_K_SIZE,
    EP_K_SRC,
    EP_K_DST,
    EP_K_TRANSPORT,
    EP_K_VALUE,
    EP_K_UNIT,
    EP_K_BETTER,
    EP_K_N,
    EP_K_SPREAD,
    EP_K_REF_OWN,
    EP_K_REF_SPEC,
    EP_K_SPLIT,
    EP_K_FACTOR,
    EP_K_P,
    EP_K_CAUSE,
    EP_K_EVIDENCE,
    EP_K_GPU_HOURS,
    EP_K_WHAT,
    EP_K_SLOWDOWN,
    EP_K_SHARE,
    EP_K_LEVEL,
    EP_K_ACTION,
    EP_K_GAIN,
    EP_K_COST,
    EP_K_FROM,
    EP_K_TO,
    EP_K_LOCAL_STEPS,
    EP_K_TIER,
    EP_K_VERSION,
    EP_K_BASE,
    EP_K_STALENESS,
    EP_K_STEPS,
    EP_K_NORM,
    EP_KEYS, /* how many */
};

/* What a key's value is. */
enum ep_value {
    EP_V_STRING,  /* UTF-8 text */
    EP_V_NUMBER,  /* finite */
    EP_V_INTEGER, /* whole, |v| < 2^53 */
    EP_V_STRINGS, /* an array of strings, kept as its JSON text */
};

#define EP_MEMBER_MAX 24

struct ep_key_info {
    const char *name;
    enum ep_value value;
    double min, max;  /* of a number, both ends included */
    const char *unit; /* "s", "B", "1", ...; NULL for text */
    /* ,"name": as it is printed; so many bytes, zeros behind */
    unsigned char member_len;
    char member[EP_MEMBER_MAX];
};

struct ep_type_info {
    const char *name;
    enum ep_key need[8]; /* required keys; ends at the first EP_K_TYPE */
    enum ep_key may[24]; /* optional ones beside ts and where; likewise */
};

/* Tables indexed by enum ep_key and enum ep_type (record_table.c). */
extern const struct ep_key_info ep_key_table[EP_KEYS];
extern const struct ep_type_info ep_type_table[EP_TYPES];

/* What value a key has in records of a type (merge: from is a string). */
static inline enum ep_value ep_key_value(enum ep_type type, enum ep_key key)
{
    if (type == EP_MERGE && key == EP_K_FROM)
        return EP_V_STRING; /* the worker or region that was merged */
    return ep_key_table[key].value;
}

/* What range (whatif: share is any number). */
void ep_key_range(enum ep_type type, enum ep_key key, double *min, double *max);

struct ep_record {
    enum ep_type type;
    uint64_t have[2]; /* bit k: key k is present */
    union {
        double num;
        struct ep_span str; /* points into the line or the parser */
    } v[EP_KEYS];
};

/* ---- reading ---------------------------------------------------------- */

struct ep_record_parser; /* opaque: the key index and room for escapes */

struct ep_record_parser *ep_record_parser_new(void);
void ep_record_parser_free(struct ep_record_parser *p); /* NULL allowed */

/*
 * Parse one line into *r. Strings are borrowed from line and from the
 * parser, both until the parser's next call. Of duplicate keys the last
 * counts. Errors, with the reason as message: EP_EFORMAT (not JSON, not an
 * object, no type, a key of the wrong kind or missing), EP_ETRUNC (JSON ends
 * early), EP_ERANGE (a number out of its range or not finite), EP_ELIMIT.
 * A type that is not known gives EP_OTHER, and no key is checked then.
 * Cost: one pass, no allocation after the longest line was seen.
 */
int ep_record_parse(struct ep_record_parser *p, const char *line, size_t len,
                    struct ep_record *r, struct ep_error *err) EP_MUST_USE;

/*
 * As above for a line with pad bytes behind it that may be loaded, whatever
 * they are (ep_json_begin_padded).
 */
int ep_record_parse_padded(struct ep_record_parser *p, const char *line,
                           size_t len, size_t pad, struct ep_record *r,
                           struct ep_error *err) EP_MUST_USE;

static inline bool ep_record_has(const struct ep_record *r, enum ep_key k)
{
    return (r->have[k >> 6] >> (k & 63)) & 1;
}

/* Value of a number; NaN when absent. */
static inline double ep_record_num(const struct ep_record *r, enum ep_key k)
{
    return ep_record_has(r, k) ? r->v[k].num : (double)NAN;
}

/* Value of an integer; fallback when absent. */
static inline int64_t ep_record_int(const struct ep_record *r, enum ep_key k,
                                    int64_t fallback)
{
    return ep_record_has(r, k) ? (int64_t)r->v[k].num : fallback;
}

/* Value of a string; {NULL, 0} when absent. */
static inline struct ep_span ep_record_str(const struct ep_record *r,
                                           enum ep_key k)
{
    return ep_record_has(r, k) ? r->v[k].str : (struct ep_span){NULL, 0};
}

/* ---- writing ---------------------------------------------------------- */

/* An empty record of a type. */
void ep_record_begin(struct ep_record *r, enum ep_type type);

/* The key is there, or is not; its value is left alone. */
static inline void ep_record_mark(struct ep_record *r, enum ep_key k)
{
    r->have[k >> 6] |= UINT64_C(1) << (k & 63);
}

static inline void ep_record_unmark(struct ep_record *r, enum ep_key k)
{
    r->have[k >> 6] &= ~(UINT64_C(1) << (k & 63));
}

/* A value that is not finite leaves the key out. */
static inline void ep_record_set_num(struct ep_record *r, enum ep_key k,
                                     double v)
{
    if (!isfinite(v)) {
        ep_record_unmark(r, k);
        return;
    }
    ep_record_mark(r, k);
    r->v[k].num = v;
}

static inline void ep_record_set_int(struct ep_record *r, enum ep_key k,
                                     int64_t v)
{
    ep_record_mark(r, k);
    r->v[k].num = (double)v;
}

/* Borrowed until the record was printed; NULL leaves the key out. */
static inline void ep_record_set_span(struct ep_record *r, enum ep_key k,
                                      struct ep_span s)
{
    if (!s.ptr) {
        ep_record_unmark(r, k);
        return;
    }
    ep_record_mark(r, k);
    r->v[k].str = s;
}

static inline void ep_record_set_str(struct ep_record *r, enum ep_key k,
                                     const char *s)
{
    ep_record_set_span(r, k, (struct ep_span){s, s ? strlen(s) : 0});
}

/*
 * Append the record as one line of JSON, '\n' included, as json_write.h would.
 * Cost: one pass; makes sure of room for the longest numbers, so that *out
 * holds some KiB.
 */
void ep_record_print(const struct ep_record *r, struct ep_buf *out);

/*
 * Tab-separated form: one header line per type, one line per record, columns
 * ts, where, then the type's keys in the order of enum ep_key. Absent values
 * are empty; tabs, newlines and backslashes in strings become \t, \n, \\, and other
 * control characters \xNN.
 */
void ep_record_tsv_header(enum ep_type type, struct ep_buf *out);
void ep_record_print_tsv(const struct ep_record *r, struct ep_buf *out);

#endif
