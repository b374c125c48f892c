/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_import_nccl.c - the importers of NCCL Inspector, RAS and NCCL_DEBUG:
 * all fixtures, cut at every byte and with every byte damaged; the reasons for
 * which elements are refused; what is recognised as which format.
 */
#include "config.h"

#include "../fuzz/nccl_check.h"
#include "record/importers.h"
#include "tap.h"

#include <dirent.h>
#include <time.h>

#define FILE_MAX 65536

static const struct ep_importer *const importers[] = {
    &ep_import_inspector, &ep_import_ras, &ep_import_nccl_debug};

static size_t load(const char *path, char *out)
{
    FILE *f = fopen(path, "r");
    size_t n = f ? fread(out, 1, FILE_MAX - 1, f) : 0;

    if (f)
        (void)fclose(f);
    out[n] = '\0';
    return n;
}

/* NAME.in against NAME.want and NAME.bad: is it as it should be? */
static bool check_fixture(const struct ep_importer *from, const char *path)
{
    static char in[FILE_MAX], want[FILE_MAX], bad[FILE_MAX];
    struct nccl_check check = {.keep = true};
    size_t n = load(path, in), stem = strlen(path) - 3;
    char other[512];
    bool good;

    (void)snprintf(other, sizeof other, "%.*s.want", (int)stem, path);
    (void)load(other, want);
    (void)snprintf(other, sizeof other, "%.*s.bad", (int)stem, path);
    (void)load(other, bad);
    nccl_check(from, in, n, &check);
    good = n > 0 && strcmp(check.out.ptr ? check.out.ptr : "", want) == 0 &&
           check.errors == (int)strtol(bad, NULL, 10);
    if (!good)
        printf("# %s: %d errors (%s), records:\n# %s\n", path, check.errors,
               check.first, check.out.ptr);
    if (ep_importer_guess(in, n, path) != from) {
        printf("# %s: not recognised\n", path);
        good = false;
    }
    ep_buf_free(&check.out);
    return good;
}

/* Cut at every byte, and each byte in turn replaced by one that hurts. */
static void hurt(const struct ep_importer *from, const char *path)
{
    static const char bytes[] = {'\0', '"', '{', '}', '\\', '9', ' ', '\xff'};
    static char in[FILE_MAX];
    struct nccl_check check = {.keep = false};
    size_t n = load(path, in), step = n / 400 + 1;

    for (size_t i = 0; i <= n; i += step)
        nccl_check(from, in, i, &check);
    for (size_t i = 0; i < n; i += step) {
        char was = in[i];

        in[i] = bytes[i % sizeof bytes];
        nccl_check(from, in, n, &check);
        in[i] = was;
    }
}

static void check_folder(const struct ep_importer *from, const char *root)
{
    char folder[300], path[600];
    struct dirent *e;
    int n = 0, bad = 0;
    DIR *d;

    (void)snprintf(folder, sizeof folder, "%s/tests/fixtures/%s", root,
                   from->name);
    d = opendir(folder);
    while (d && (e = readdir(d)) != NULL) {
        size_t len = strlen(e->d_name);

        if (len < 4 || strcmp(e->d_name + len - 3, ".in") != 0)
            continue;
        (void)snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        n++;
        bad += !check_fixture(from, path);
        hurt(from, path);
    }
    if (d)
        (void)closedir(d);
    printf("# %s: %d fixtures\n", from->name, n);
    ok(n >= 5);
    ok(bad == 0);
}

/* Whole, every byte: the sample of each format is short enough. */
static void check_sample(const struct ep_importer *from, const char *root,
                         const char *name)
{
    static char in[FILE_MAX];
    struct nccl_check check = {.keep = false};
    char path[600];
    size_t n;
    int most = 0;

    (void)snprintf(path, sizeof path, "%s/tests/fixtures/%s/%s", root,
                   from->name, name);
    n = load(path, in);
    for (size_t i = 0; i <= n; i++) {
        nccl_check(from, in, i, &check);
        most = check.records > most ? check.records : most;
    }
    ok(n > 0 && most > 0);
}

static const struct {
    const struct ep_importer *from;
    const char *in, *reason; /* NULL: no error */
    int records;
} cases[] = {
    {&ep_import_inspector, "", NULL, 0},
    {&ep_import_inspector, "[]\n", "not a JSON object", 0},
    {&ep_import_inspector, "{}\n", NULL, 0},
    {&ep_import_inspector, "{\"header\":1,\"coll_perf\":2}\n", NULL, 0},
    {&ep_import_inspector, "{\"coll_perf\":{\"coll\":\"Send\"}}\n",
     "coll_perf without id", 0},
    {&ep_import_inspector,
     "{\"header\":{\"id\":\"1\"},\"coll_perf\":{\"coll_exec_time_us\":1}}\n",
     "coll_perf without operation", 0},
    {&ep_import_inspector,
     "{\"header\":{\"id\":\"1\"},\"p2p_perf\":{\"p2p\":\"Send\"}}\n",
     "p2p_perf without exec_time_us", 0},
    {&ep_import_inspector, "{\"header\":{\"id\":\"0x1\"",
     "byte 21: text ends, expected ',' or '}'", 0},
    {&ep_import_ras, "{\"communicators\":[{\"ranks\":[{\"rank\":1}]}]}",
     "a communicator without hash", 0},
    {&ep_import_ras, "{\"communicators\":[{\"hash\":\"0x1\",\"ranks\":[{}]}]}",
     "a rank without its number", 0},
    {&ep_import_ras, "{\"a\":[}", "brackets do not match", 0},
    {&ep_import_ras, "{\"a\"}", "a key without value", 0},
    {&ep_import_ras, "{\"a\":tru}", "not JSON", 0},
    {&ep_import_ras, "{\"a\":\"b", "a string ends early", 0},
    {&ep_import_ras, "{\"a\":1,", "the report ends early", 0},
    {&ep_import_ras, "{\"a\":[[[[[[[[[[[[[[[[[", "too many levels", 0},
    {&ep_import_ras,
     "#0-0 (1) MISMATCH\n  Communicator ranks have different Reduce operation "
     "counts\n  3 ranks have launched up to operation 5",
     NULL, 1},
    {&ep_import_nccl_debug, "n1:1:1 [0] NCCL INFO\n", NULL, 0},
    {&ep_import_nccl_debug, " NCCL INFO x\n] NCCL WARN \n:1:1 [0] NCCL WARN \n",
     NULL, 0},
};

static void check_cases(void)
{
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct nccl_check check = {.keep = false};
        const char *reason = cases[i].reason;
        bool good;

        nccl_check(cases[i].from, cases[i].in, strlen(cases[i].in), &check);
        good = check.records == cases[i].records &&
               check.errors == (reason != NULL) &&
               strcmp(check.first, reason ? reason : "") == 0;
        if (!ok(good))
            printf("# %s: %d records, %d errors (%s)\n", cases[i].in,
                   check.records, check.errors, check.first);
    }
}

/* A long line of what begins objects and messages must not take its square. */
static void check_long(void)
{
    static const char *const pieces[] = {"{\"header\":",
                                         " NCCL INFO ",
                                         "]",
                                         "a",
                                         "n1:1:1 [0] NCCL WARN ",
                                         "{\"header\":{\"id\":1}}",
                                         "\r1%|",
                                         "{\"a\":",
                                         "[2",
                                         ":inf",
                                         "[["};
    enum { BYTES = 1 << 20 };
    char *line = malloc(BYTES);

    for (size_t i = 0; line && i < sizeof pieces / sizeof pieces[0]; i++) {
        size_t n = strlen(pieces[i]), at;

        for (at = 0; at + n <= BYTES; at += n)
            memcpy(line + at, pieces[i], n);
        for (size_t k = 0; k < 3; k++) {
            struct nccl_check check = {.keep = false};
            clock_t begin = clock();
            double s;

            nccl_check(importers[k], line, at, &check);
            s = (double)(clock() - begin) / CLOCKS_PER_SEC;
            if (s > 5) /* a square would take hours */
                printf("# %s: %s took %.1f s\n", importers[k]->name, pieces[i],
                       s);
            ok(s < 60);
        }
    }
    free(line);
}

int main(void)
{
    const char *root = getenv("top_srcdir");

    (void)setenv("TZ", "UTC", 1);
    tzset();
    root = root ? root : ".";
    for (size_t i = 0; i < 3; i++) {
        check_folder(importers[i], root);
        ok(ep_importer_find(importers[i]->name) == importers[i]);
    }
    check_sample(&ep_import_inspector, root, "sample.in");
    check_sample(&ep_import_ras, root, "missing-2.28.9.in");
    check_sample(&ep_import_ras, root, "mismatch.in");
    check_sample(&ep_import_nccl_debug, root, "init.in");
    check_cases();
    check_long();
    return tap_done();
}
