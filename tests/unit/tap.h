/* SPDX-License-Identifier: Apache-2.0 */
/* tap.h - the whole unit-test framework: TAP on stdout. */
#ifndef EP_TAP_H
#define EP_TAP_H
#include <math.h>
#include <stdio.h>
static int tap_n, tap_bad;
#define ok(cond) tap_ok((cond), #cond, __FILE__, __LINE__)
#define near(a, b, tol) tap_near((a), (b), (tol), #a, __FILE__, __LINE__)
static inline int tap_ok(int c, const char *what, const char *f, int l)
{
    printf("%sok %d - %s\n", c ? "" : "not ", ++tap_n, what);
    if (!c) {
        tap_bad++;
        printf("# at %s:%d\n", f, l);
    }
    return c;
}
static inline int tap_near(double a, double b, double tol, const char *what,
                           const char *f, int l)
{
    int c = fabs(a - b) <= tol;
    if (!c)
        printf("# got %.17g, want %.17g, |diff| %.3g > %.3g\n", a, b,
               fabs(a - b), tol);
    return tap_ok(c, what, f, l);
}
static inline int tap_done(void)
{
    printf("1..%d\n", tap_n);
    return tap_bad != 0;
}
#endif
