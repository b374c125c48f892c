/* SPDX-License-Identifier: Apache-2.0 */
/* test_base.c - the small parts: errors, escapes, buffers, sets, threads. */
#include "config.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/intern.h"
#include "base/thread.h"
#include "tap.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

static void check_errors(void)
{
    char big[600];
    struct ep_error e;

    ok(ep_error_set(&e, EP_ERANGE, "x %d", 3) == EP_ERANGE);
    ok(e.code == EP_ERANGE && strcmp(e.msg, "x 3") == 0 && e.sys_errno == 0);
    ok(ep_error_sys(&e, ENOENT, "cannot open %s", "a") == EP_ESYS);
    ok(strcmp(e.msg, "cannot open a: No such file or directory") == 0);
    ok(e.sys_errno == ENOENT);
    ok(ep_error_prefix(&e, "in %s", "b") == EP_ESYS);
    ok(strcmp(e.msg, "in b: cannot open a: No such file or directory") == 0);
    ok(ep_error_set(NULL, EP_EDOM, "x") == EP_EDOM);
    ok(ep_error_sys(NULL, ENOENT, "x") == EP_ESYS);
    ok(ep_error_prefix(NULL, "x") == 0);
    memset(big, 'y', sizeof big - 1);
    big[sizeof big - 1] = '\0';
    (void)ep_error_set(&e, EP_EDOM, "%s", big);
    (void)ep_error_prefix(&e, "%s", big);
    ok(strlen(e.msg) == sizeof e.msg - 1);
}

static void check_escape(void)
{
    /* U+202E, which must not stand in a source as a string */
    static const char override[] = {(char)0xe2, (char)0x80, (char)0xae, 0};
    static const struct {
        const char *text;
        size_t len;
        const char *want;
    } cases[] = {
        {"plain", 5, "plain"},
        {"a\nb\t", 4, "a\\x0ab\\x09"},
        {"\x1b[31m", 5, "\\x1b[31m"},
        {"a\0b", 3, "a\\x00b"},
        {"\\", 1, "\\x5c"},
        {"\xc3\xa9", 2, "\xc3\xa9"},
        {"\xc3", 1, "\\xc3"},
        {"\xff\xfe", 2, "\\xff\\xfe"},
        {"\xc2\x9b", 2, "\\xc2\\x9b"}, /* CSI of one character */
        {"\xed\xa0\x80", 3, "\\xed\\xa0\\x80"},
        {override, 3, "\\xe2\\x80\\xae"}, /* turns text round */
        {"\xe2\x82\xac", 3, "\xe2\x82\xac"},
        {"0123456789abcdefghijk", 21, "0123456789abcdef..."},
        {"0123456789abcde\n\n", 17, "0123456789abcde..."},
    };
    char dst[20];

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        ok(strcmp(ep_escape(dst, sizeof dst, cases[i].text, cases[i].len),
                  cases[i].want) == 0);
}

static void check_buffer(void)
{
    struct ep_buf b;

    ep_buf_init(&b);
    ok(b.len == 0 && *b.ptr == '\0');
    ep_buf_reset(&b);
    ep_buf_add(&b, "", 0);
    ok(b.len == 0 && *b.ptr == '\0');
    for (int i = 0; i < 1000; i++)
        ep_buf_addf(&b, "%d,", i);
    ok(b.len == 3890 && strcmp(b.ptr + b.len - 8, "998,999,") == 0);
    ep_buf_reset(&b);
    ok(b.len == 0 && *b.ptr == '\0');
    ep_buf_free(&b);
    ep_buf_free(&b);
    ok(b.cap == 0);
    ep_buf_adds(&b, "<");
    for (int i = 0; i < 100; i++)
        ep_buf_add_escaped(&b, "a\n", 2);
    ok(b.len == 501 && strncmp(b.ptr, "<a\\x0aa\\x0a", 11) == 0);
    ep_buf_free(&b);
    ok(ep_span_eq((struct ep_span){"abc", 2}, "ab"));
    ok(!ep_span_eq((struct ep_span){"abc", 2}, "abc"));
}

static void check_intern(void)
{
    struct ep_intern *t = ep_intern_new();
    int good = 0;

    for (int round = 0; round < 2; round++)
        for (int i = 0; i < 5000; i++) {
            char name[16];
            int n = snprintf(name, sizeof name, "k%d", i);

            good +=
                ep_intern_add(t, (struct ep_span){name, (size_t)n}, 5000) == i;
        }
    ok(good == 10000);
    ok(ep_intern_count(t) == 5000);
    ok(strcmp(ep_intern_name(t, 4321), "k4321") == 0);
    ok(ep_intern_add(t, (struct ep_span){"new", 3}, 5000) == -1);
    ok(ep_intern_add(t, (struct ep_span){"k7", 2}, 5000) == 7);
    ok(ep_intern_add(t, (struct ep_span){NULL, 0}, 9999) == 5000);
    ok(ep_intern_add(t, (struct ep_span){"a\0b", 3}, 9999) == 5001);
    ok(ep_intern_add(t, (struct ep_span){"a\0c", 3}, 9999) == 5002);
    ep_intern_free(t);
}

static void add_one(int i, void *ctx)
{
    (void)atomic_fetch_add((atomic_int *)ctx, 1 << (4 * i));
}

static void check_threads(void)
{
    struct ep_error e;
    atomic_int sum = 0;

    ok(ep_threads_run(5, add_one, &sum, &e) == 0);
    ok(atomic_load(&sum) == 0x11111);
    ok(ep_threads_run(1, add_one, &sum, &e) == 0);
    ok(atomic_load(&sum) == 0x11112);
    ok(ep_threads_run(0, add_one, &sum, &e) == EP_ELIMIT);
    ok(ep_threads_run(EP_THREADS_MAX + 1, add_one, &sum, &e) == EP_ELIMIT);
    ok(strcmp(e.msg, "1025 threads: not in 1..1024") == 0);
    ok(ep_threads_allowed() >= 1);
}

int main(void)
{
    check_errors();
    check_escape();
    check_buffer();
    check_intern();
    check_threads();
    return tap_done();
}
