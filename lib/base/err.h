/* SPDX-License-Identifier: Apache-2.0 */
/*
 * err.h - errors as values.
 *
 * A library function that can fail returns 0 (or a count) when it worked and
 * a negative enum ep_err when it did not; one that returns a pointer returns
 * NULL. The last parameter, struct ep_error *, takes the details; it may be
 * NULL. The library neither prints nor exits; the programs in bin/ do.
 *
 * Messages read "cannot VERB OBJECT: reason", on one line and with no full
 * stop. Bytes that came from input are escaped when they are formatted.
 */
#ifndef EP_BASE_ERR_H
#define EP_BASE_ERR_H

#include <stddef.h>

#define EP_MUST_USE __attribute__((warn_unused_result))
#define EP_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#define EP_NORETURN __attribute__((noreturn))

enum ep_err {
    EP_OK = 0,
    EP_EFORMAT = -1,  /* input is not what its format says            */
    EP_ERANGE = -2,   /* a number does not fit its type or its bounds */
    EP_EDOM = -3,     /* an argument makes no sense to the equation   */
    EP_ESYS = -4,     /* the system refused; sys_errno says why       */
    EP_ELIMIT = -5,   /* a cap of ours was met (length, depth, ...)   */
    EP_ETRUNC = -6,   /* input ends in the middle of something        */
    EP_EMISSING = -7, /* built without, or not found at run time      */
    EP_EUSAGE = -8,   /* a command line that cannot be carried out    */
    EP_ETIMEOUT = -9, /* a deadline passed                            */
    EP_EAGAIN = -10,  /* nothing is there yet: ask again later        */
};

struct ep_error {
    int code;      /* enum ep_err */
    int sys_errno; /* errno with EP_ESYS, else 0 */
    char msg[256]; /* cut, never overrun; always terminated */
};

/*
 * Fill *e (may be NULL) and return code, so that a caller can write
 * "return ep_error_set(e, EP_EFORMAT, ...)".
 */
int ep_error_set(struct ep_error *e, int code, const char *fmt, ...)
    EP_PRINTF(3, 4);

/* As above with code EP_ESYS; ": " and strerror(errnum) are appended. */
int ep_error_sys(struct ep_error *e, int errnum, const char *fmt, ...)
    EP_PRINTF(3, 4);

/*
 * Put "text: " before the message of *e: the caller that knows the file name
 * adds it to what a deeper layer reported. Returns e->code (0 if e is NULL).
 */
int ep_error_prefix(struct ep_error *e, const char *fmt, ...) EP_PRINTF(2, 3);

/*
 * Make n bytes of input printable: control bytes, backslash and bytes that
 * are not UTF-8 become \xNN, the result is cut with "..." to fit. Returns dst
 * for use as a printf argument.
 *
 * dst     [cap] char, written, always terminated; cap >= 8
 */
const char *ep_escape(char *dst, size_t cap, const char *src, size_t n);

#endif
