/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_stream.c - many inputs merged by ts, against a stable sort.
 *
 * Times repeat within and between files, files are of unequal length (some
 * empty), some records have no ts at all.
 */
#include "config.h"

#include "base/mem.h"
#include "record/stream.h"
#include "tap.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FILES = 40, MOST = 30 };

/* A record as it was written: which file, which line, at what time. */
struct entry {
    double ts; /* -1 without one */
    int file, line;
};

static char folder[] = "/tmp/evenpace-test-XXXXXX";
static uint64_t state;

static uint32_t draw(uint32_t below)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 33) % below;
}

static int by_time(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;

    if (x->ts != y->ts)
        return x->ts < y->ts ? -1 : 1;
    if (x->file != y->file)
        return x->file < y->file ? -1 : 1;
    return x->line - y->line;
}

/* Write the files; returns the number of entries. */
static int make(char names[][64], struct entry *all)
{
    int n = 0;

    for (int f = 0; f < FILES; f++) {
        FILE *out;
        int lines = (int)draw(MOST), ts = (int)draw(5);

        (void)snprintf(names[f], sizeof names[f], "%s/%d", folder, f);
        out = fopen(names[f], "w");
        for (int l = 0; out && l < lines; l++) {
            bool timed = l > 0 || draw(4) > 0;

            ts += (int)draw(3);
            all[n++] = (struct entry){timed ? ts : -1, f, l};
            if (timed)
                (void)fprintf(out,
                              "{\"type\":\"loss\",\"ts\":%d,\"step\":%d,"
                              "\"value\":%d}\n",
                              ts, l, f);
            else
                (void)fprintf(out,
                              "{\"type\":\"whatif\",\"what\":\"%d\","
                              "\"slowdown\":1}\n",
                              f);
        }
        if (out)
            ok(fclose(out) == 0);
    }
    return n;
}

/* How many of the delivered records are not the ones expected. */
static int compare(struct ep_stream *s, const struct entry *want, int n)
{
    const struct ep_record *r;
    struct ep_error err;
    int wrong = 0, i = 0;

    while (ep_stream_next(s, &r, NULL, &err) > 0) {
        if (i >= n)
            return -1;
        if (want[i].ts < 0) {
            char file[16];

            (void)snprintf(file, sizeof file, "%d", want[i].file);
            wrong += r->type != EP_WHATIF ||
                     !ep_span_eq(ep_record_str(r, EP_K_WHAT), file);
        } else
            wrong += r->type != EP_LOSS ||
                     ep_record_num(r, EP_K_TS) != want[i].ts ||
                     ep_record_int(r, EP_K_STEP, -1) != want[i].line ||
                     ep_record_num(r, EP_K_VALUE) != want[i].file;
        i++;
    }
    return wrong + n - i;
}

int main(int argc, char **argv)
{
    static char names[FILES][64];
    static struct entry all[FILES * MOST];
    const char *paths[FILES];

    state = argc > 1 ? strtoull(argv[1], NULL, 10) : 20261130;
    printf("# seed %llu\n", (unsigned long long)state);
    ok(mkdtemp(folder) != NULL);
    for (int round = 0; round < 5; round++) {
        struct ep_stream_config config = {.strict = true};
        struct ep_stream *s;
        int n = make(names, all);

        qsort(all, (size_t)n, sizeof all[0], by_time);
        for (int f = 0; f < FILES; f++)
            paths[f] = names[f];
        s = ep_stream_open(paths, FILES, &config);
        ok(compare(s, all, n) == 0);
        ep_stream_close(s);
    }
    for (int f = 0; f < FILES; f++)
        (void)unlink(names[f]);
    ok(rmdir(folder) == 0);
    return tap_done();
}
