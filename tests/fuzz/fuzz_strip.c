/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_strip.c - any bytes as a line: the text is in the line or in scratch and
 * no longer than the line, what is not known is so marked, and a time that is
 * read is at least 0, in all its forms; bars are pieces of the line.
 */
#include "config.h"

#include "base/mem.h"
#include "record/strip.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int condition)
{
    if (!condition)
        abort();
}

static bool within(struct ep_span s, const char *from, size_t len)
{
    return s.ptr >= from && s.ptr + s.len <= from + len;
}

static void check_time(const char *line, size_t size)
{
    struct ep_strip_zone zone = {.latest = 1.8e9};
    double ts = -1;
    size_t n = ep_strip_time(&zone, line, size, &ts);

    require(n <= size);
    require(n == 0 ? ts == -1 : n >= 19 && ts >= 0 && ts < 1e12);
    ts = -1;
    n = ep_strip_stamp(&zone, line, size, &ts);
    require(n <= size);
    require(n == 0 ? ts == -1 : n >= 10 && ts >= 0 && ts < 1e12);
}

static void check_bars(const char *line, size_t size)
{
    struct ep_span rest, bar;
    struct ep_buf scratch;
    struct ep_strip s;

    ep_buf_init(&scratch);
    ep_strip_bars(line, size, &scratch, &s);
    require(s.text.len <= size);
    rest = s.text;
    while (ep_strip_next_bar(&rest, &bar))
        require(bar.len && within(bar, s.text.ptr, s.text.len) &&
                !memchr(bar.ptr, '\r', bar.len));
    require(rest.len == 0);
    ep_buf_free(&scratch);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *line = ep_realloc(NULL, size ? size : 1, 1); /* not terminated */
    struct ep_buf scratch;
    struct ep_strip s;

    if (size)
        memcpy(line, data, size);
    ep_buf_init(&scratch);
    ep_strip(line, size, &scratch, &s);
    require(within(s.text, line, size) ||
            within(s.text, scratch.ptr, scratch.len));
    require(s.text.len <= size);
    require(s.rank >= -1 && s.local_rank >= -1 && s.task >= -1 && s.pid >= -1);
    require(isnan(s.ts) || s.ts >= 0);
    require(!s.host.ptr || within(s.host, line, size) ||
            within(s.host, scratch.ptr, scratch.len));
    require(!s.stamp.ptr || within(s.stamp, line, size) ||
            within(s.stamp, scratch.ptr, scratch.len));
    check_time(line, size);
    check_bars(line, size);
    ep_buf_free(&scratch);
    free(line);
    return 0;
}
