/* SPDX-License-Identifier: Apache-2.0 */
/* test_input.c - inputs and lines: every kind of end, and damage. */
#include "config.h"

#include "base/input.h"
#include "base/lines.h"
#include "base/mem.h"
#include "tap.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* gzip -n of "one\ntwo\n" and of "three\n" (made with Python's gzip) */
static const unsigned char member_a[] = {
    0x1f, 0x8b, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0xff,
    0xcb, 0xcf, 0x4b, 0xe5, 0x2a, 0x29, 0xcf, 0xe7, 0x02, 0x00,
    0xe6, 0x0b, 0xba, 0x12, 0x08, 0x00, 0x00, 0x00};
static const unsigned char member_b[] = {
    0x1f, 0x8b, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02,
    0xff, 0x2b, 0xc9, 0x28, 0x4a, 0x4d, 0xe5, 0x02, 0x00,
    0xd8, 0xc5, 0x46, 0xff, 0x06, 0x00, 0x00, 0x00};

static char path[] = "/tmp/evenpace-test-XXXXXX";

static void put(const void *data, size_t n)
{
    FILE *f = fopen(path, "wb");

    if (!f || fwrite(data, 1, n, f) != n || fclose(f) != 0)
        exit(99);
}

/*
 * All lines of the file, joined by '|' ("~" behind one without '\n'), then
 * the code that ended the reading, if any, as "!CODE".
 */
static const char *read_all(struct ep_error *err)
{
    static char text[4096];
    struct ep_input *in = ep_input_open(path, err);
    struct ep_lines *l;
    struct ep_line line;
    size_t at = 0;
    int rc;

    if (!in)
        return "cannot open";
    l = ep_lines_new(in);
    text[0] = '\0';
    while ((rc = ep_lines_next(l, &line, err)) != 0) {
        if (rc < 0 && rc != EP_ELIMIT)
            break;
        at += (size_t)snprintf(
            text + at, sizeof text - at, "%.*s%s|", rc < 0 ? 4 : (int)line.len,
            rc < 0 ? "LONG" : line.ptr, line.terminated ? "" : "~");
    }
    if (rc < 0)
        (void)snprintf(text + at, sizeof text - at, "!%d", rc);
    ep_lines_free(l);
    return text;
}

static void check_plain(void)
{
    static const struct {
        const char *text, *want;
    } cases[] = {
        {"", ""},
        {"\n", "|"},
        {"a\nb\n", "a|b|"},
        {"a\r\nb\r\n", "a|b|"},
        {"a\rb\n", "a\rb|"},
        {"a\nb", "a|b~|"},
        {"a\nb\r", "a|b\r~|"},
        {"\n\n\nx\n", "|||x|"},
        {"\x1f", "\x1f~|"},
        {"\xef\xbb\xbf"
         "a\n",
         "a|"},
        {"\xef\xbb\xbf", ""},
        {"\xef\xbb", "\xef\xbb~|"},
        {"a\xef\xbb\xbf", "a\xef\xbb\xbf~|"},
    };
    struct ep_error err;

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        put(cases[i].text, strlen(cases[i].text));
        ok(strcmp(read_all(&err), cases[i].want) == 0);
    }
}

static void check_offsets(void)
{
    struct ep_error err;
    struct ep_line line;
    struct ep_lines *l;

    put("ab\r\n\ncdef\n", 10);
    l = ep_lines_new(ep_input_open(path, &err));
    ok(ep_lines_next(l, &line, &err) == 1 && line.number == 1 &&
       line.offset == 0 && line.len == 2);
    ok(ep_lines_next(l, &line, &err) == 1 && line.number == 2 &&
       line.offset == 4 && line.len == 0);
    ok(ep_lines_next(l, &line, &err) == 1 && line.number == 3 &&
       line.offset == 5 && line.len == 4);
    ok(ep_lines_next(l, &line, &err) == 0);
    ok(ep_lines_next(l, &line, &err) == 0); /* and stays at the end */
    ep_lines_free(l);
}

/* Lines as long as the cap, one byte longer, and much longer. */
static void check_long(void)
{
    size_t n = 3 * EP_LINE_MAX + 64;
    char *big = ep_realloc(NULL, n, 1);
    struct ep_error err;
    struct ep_line line;
    struct ep_lines *l;
    size_t at = 0;

    memset(big, 'x', n);
    at += EP_LINE_MAX;
    big[at++] = '\n';
    at += EP_LINE_MAX + 1;
    big[at++] = '\n';
    big[at++] = 'o';
    big[at++] = 'k';
    big[at++] = '\n';
    put(big, at);
    l = ep_lines_new(ep_input_open(path, &err));
    ok(ep_lines_next(l, &line, &err) == 1 && line.len == EP_LINE_MAX);
    ok(ep_lines_next(l, &line, &err) == EP_ELIMIT && line.number == 2 &&
       line.offset == EP_LINE_MAX + 1);
    ok(strcmp(err.msg, "line is longer than 16777216 bytes") == 0);
    ok(ep_lines_next(l, &line, &err) == 1 && line.number == 3 &&
       line.len == 2 && memcmp(line.ptr, "ok", 2) == 0);
    ok(ep_lines_next(l, &line, &err) == 0);
    ep_lines_free(l);

    big[EP_LINE_MAX] = 'x'; /* one line of 2 * EP_LINE_MAX + 2, then ok */
    put(big, at);
    ok(strcmp(read_all(&err), "LONG|ok|") == 0);
    put(big, 2 * EP_LINE_MAX); /* and without an end */
    ok(strcmp(read_all(&err), "LONG|") == 0);
    free(big);
}

static void check_errors(void)
{
    struct ep_error err;

    ok(ep_input_open("/nonexistent/x", &err) == NULL);
    ok(err.code == EP_ESYS && err.sys_errno == ENOENT);
    ok(strcmp(err.msg,
              "cannot open /nonexistent/x: No such file or directory") == 0);
    ok(ep_input_open("/tmp", &err) == NULL);
    ok(err.code == EP_ESYS && err.sys_errno == EISDIR);
    ok(ep_input_open("a\nb", &err) == NULL);
    ok(strcmp(err.msg, "cannot open a\\x0ab: No such file or directory") == 0);
}

#ifdef HAVE_ZLIB

static void check_gzip(void)
{
    unsigned char b[256] = {0};
    size_t na = sizeof member_a, nb = sizeof member_b;
    struct ep_error err;
    char want[64];

    memcpy(b, member_a, na);
    memcpy(b + na, member_b, nb);
    put(b, na);
    ok(strcmp(read_all(&err), "one|two|") == 0);
    put(b, na + nb);
    ok(strcmp(read_all(&err), "one|two|three|") == 0);
    put(b, na + nb + 100); /* padding */
    ok(strcmp(read_all(&err), "one|two|three|") == 0);

    /* cut at every byte: an error, and never a line that was not there */
    for (size_t n = 2; n < na + nb; n++) {
        const char *got;

        if (n == na)
            continue;
        put(b, n);
        got = read_all(&err);
        if (n > na)
            ok(strncmp(got, "one|two|", 8) == 0);
        else
            ok(strstr(got, "three") == NULL);
        (void)snprintf(want, sizeof want, "!%d", EP_ETRUNC);
        ok(strstr(got, want) != NULL && err.code == EP_ETRUNC);
    }
    (void)snprintf(want, sizeof want,
                   ": byte %zu: compressed data end in the middle",
                   na + nb - 1);
    ok(strstr(err.msg, want) != NULL);

    b[na + 12] ^= 0x55; /* damage in the second member */
    put(b, na + nb);
    ok(strncmp(read_all(&err), "one|two|", 8) == 0);
    ok(err.code == EP_EFORMAT && strstr(err.msg, "damaged compressed data"));

    (void)snprintf((char *)b + na, sizeof b - na, "garbage\n");
    put(b, na + 8);
    (void)snprintf(want, sizeof want, "one|two|!%d", EP_EFORMAT);
    ok(strcmp(read_all(&err), want) == 0);
    ok(strstr(err.msg, "byte 28: bytes after the end") != NULL);
}

#else

static void check_gzip(void)
{
    struct ep_error err;
    char want[16];

    put(member_a, sizeof member_a);
    (void)snprintf(want, sizeof want, "!%d", EP_EMISSING);
    ok(strcmp(read_all(&err), want) == 0);
    ok(strstr(err.msg, "built without zlib") != NULL);
    (void)member_b;
}

#endif

/*
 * One input of many forgets what was peeked at, if it can be read again, and
 * gives the same bytes then; plain or compressed, with a mark or without.
 */
static void check_rewind(void)
{
    static const struct {
        const char *text;
        size_t len;
    } cases[] = {
        {"one\ntwo\n", 8},
        {"\xef\xbb\xbfone\ntwo\n", 11},
#ifdef HAVE_ZLIB
        {(const char *)member_a, sizeof member_a},
#endif
    };
    struct ep_error err;
    struct ep_line line;
    const char *head;

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct ep_input *in;
        struct ep_lines *l;

        put(cases[i].text, cases[i].len);
        in = ep_input_open(path, &err);
        ep_input_small(in, 4096);
        ok(ep_input_buffer(in) == 4096);
        for (int round = 0; round < 2; round++) {
            ok(ep_input_peek(in, &head, &err) == 8 &&
               memcmp(head, "one\ntwo\n", 8) == 0);
            ep_input_rewind(in);
        }
        l = ep_lines_new(in);
        ok(ep_lines_next(l, &line, &err) == 1 && line.len == 3 &&
           memcmp(line.ptr, "one", 3) == 0);
        ok(ep_lines_next(l, &line, &err) == 1 && line.len == 3);
        ok(ep_lines_next(l, &line, &err) == 0);
        ep_lines_free(l);
    }
}

/*
 * With 8 descriptors, 40 files read in turns, a few bytes at a time: each
 * delivers its own bytes. One that is another file by then does not.
 */
static void check_parking(void)
{
    enum { FILES = 40 };
    struct ep_input *in[FILES];
    struct rlimit before, few;
    struct ep_error err;
    char name[FILES][64], got[8];
    int wrong = 0;

    if (getrlimit(RLIMIT_NOFILE, &before) != 0)
        exit(99);
    few = before;
    few.rlim_cur = 16;
    ok(setrlimit(RLIMIT_NOFILE, &few) == 0);
    for (int f = 0; f < FILES; f++) {
        FILE *out;

        (void)snprintf(name[f], sizeof name[f], "%s-%d", path, f);
        out = fopen(name[f], "w");
        for (int i = 0; out && i < 20000; i++)
            (void)fprintf(out, "%02d%05d\n", f, i);
        if (!out || fclose(out) != 0)
            exit(99);
        in[f] = ep_input_open(name[f], &err);
        ok(in[f] != NULL);
    }
    for (int i = 0; i < 20000; i++)
        for (int f = 0; f < FILES; f++) {
            char want[16];

            (void)snprintf(want, sizeof want, "%02d%05d\n", f, i);
            wrong += f != 7 && (ep_input_read(in[f], got, 8, &err) != 8 ||
                                memcmp(got, want, 8) != 0);
        }
    ok(wrong == 0);
    ok(rename(name[6], name[7]) == 0);
    ok(ep_input_read(in[7], got, 8, &err) == EP_ESYS);
    ok(err.code == EP_ESYS && strstr(err.msg, "it was replaced while"));
    for (int f = 0; f < FILES; f++) {
        ep_input_close(in[f]);
        (void)unlink(name[f]);
    }
    ok(setrlimit(RLIMIT_NOFILE, &before) == 0);
}

static void count_wait(void *ctx)
{
    ++*(int *)ctx;
}

/* The hook is called before a read that has to wait, and only then. */
static void check_wait(void)
{
    struct ep_error err;
    struct ep_line line;
    struct ep_lines *l;
    struct ep_input *in;
    char name[32];
    int fd[2], waits = 0;

    if (pipe(fd) != 0)
        exit(99);
    (void)snprintf(name, sizeof name, "/dev/fd/%d", fd[0]);
    in = ep_input_open(name, &err);
    ep_input_on_wait(in, count_wait, &waits);
    l = ep_lines_new(in);
    ok(write(fd[1], "a\nb\n", 4) == 4);
    ok(ep_lines_next(l, &line, &err) == 1 && waits == 0);
    ok(ep_lines_next(l, &line, &err) == 1 && waits == 0);
    (void)close(fd[1]);
    ok(ep_lines_next(l, &line, &err) == 0 && waits == 0);
    ep_lines_free(l);
    (void)close(fd[0]);
}

int main(void)
{
    int fd = mkstemp(path);

    if (fd < 0)
        return 99;
    (void)close(fd);
    check_plain();
    check_offsets();
    check_long();
    check_errors();
    check_gzip();
    check_rewind();
    check_parking();
    check_wait();
    (void)unlink(path);
    return tap_done();
}
