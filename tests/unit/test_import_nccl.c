/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_import_nccl.c - the importers of NCCL Inspector, RAS and NCCL_DEBUG:
 * all fixtures, cut at every byte and with every byte damaged; the reasons for
 * which elements are refused; what is recognised as which format.
 */
#include "config.h"

#include "import_fixtures.h"
#include "record/importers.h"

#include <time.h>

static const struct ep_importer *const importers[] = {
    &ep_import_inspector, &ep_import_ras, &ep_import_nccl_debug};

/* Bytes that hurt. */
static const char bytes[] = {'\0', '"', '{', '}', '\\', '9', ' ', '\xff'};

/* Is it as it should be? Then it is damaged. */
static bool check_fixture(const struct ep_importer *from, const char *path)
{
    bool right = fixture_is_right(from, path);

    hurt_fixture(from, path, bytes, sizeof bytes, 0, 0);
    return right;
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

static const struct import_case cases[] = {
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
        check_folder(importers[i], root, check_fixture);
        ok(ep_importer_find(importers[i]->name) == importers[i]);
    }
    check_sample(&ep_import_inspector, root, "sample.in");
    check_sample(&ep_import_ras, root, "missing-2.28.9.in");
    check_sample(&ep_import_ras, root, "mismatch.in");
    check_sample(&ep_import_nccl_debug, root, "init.in");
    check_cases(cases, sizeof cases / sizeof cases[0]);
    check_long();
    return tap_done();
}
