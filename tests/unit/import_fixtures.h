/* SPDX-License-Identifier: Apache-2.0 */
/*
 * import_fixtures.h - what the tests of importers share: their fixtures
 * (NAME.in, NAME.want, and NAME.bad, the number of errors, if there are any),
 * damage to them, and tables of texts with the reason why they are refused.
 */
#ifndef EP_IMPORT_FIXTURES_H
#define EP_IMPORT_FIXTURES_H

#include "../fuzz/nccl_check.h"
#include "tap.h"

#include <dirent.h>

#define FILE_MAX 65536

/* The file into out [FILE_MAX], terminated; empty if it is not there. */
static inline size_t load(const char *path, char *out)
{
    FILE *f = fopen(path, "r");
    size_t n = f ? fread(out, 1, FILE_MAX - 1, f) : 0;

    if (f)
        (void)fclose(f);
    out[n] = '\0';
    return n;
}

/* The file beside a fixture, NAME.in, that is called NAME.what. */
static inline size_t load_beside(const char *path, const char *what, char *out)
{
    char other[600];

    (void)snprintf(other, sizeof other, "%.*s.%s", (int)strlen(path) - 3, path,
                   what);
    return load(other, out);
}

/* Does NAME.in give NAME.want and NAME.bad, and is it recognised? */
static inline bool fixture_is_right(const struct ep_importer *from,
                                    const char *path)
{
    static char in[FILE_MAX], want[FILE_MAX], bad[FILE_MAX];
    struct nccl_check check = {.keep = true};
    size_t n = load(path, in);
    bool good;

    (void)load_beside(path, "want", want);
    (void)load_beside(path, "bad", bad);
    nccl_check(from, in, n, &check);
    good = n > 0 && strcmp(check.out.ptr ? check.out.ptr : "", want) == 0 &&
           check.errors == (int)strtol(bad, NULL, 10);
    if (!good)
        printf("# %s: %d errors (%s), records:\n# %s\n", path, check.errors,
               check.first, check.out.ptr ? check.out.ptr : "");
    if (ep_importer_guess(in, n, path) != from) {
        printf("# %s: not recognised\n", path);
        good = false;
    }
    ep_buf_free(&check.out);
    return good;
}

/*
 * Cut the file at every cuts-th byte, and put one of bytes [nbytes] in the
 * place of every hits-th (0: in some 400 places): nothing invalid may come of it.
 */
static inline void hurt_fixture(const struct ep_importer *from,
                                const char *path, const char *bytes,
                                size_t nbytes, size_t cuts, size_t hits)
{
    static char in[FILE_MAX];
    struct nccl_check check = {.keep = false};
    size_t n = load(path, in), some = n / 400 + 1;

    cuts = cuts ? cuts : some;
    hits = hits ? hits : some;
    for (size_t i = 0; i <= n; i += cuts)
        nccl_check(from, in, i, &check);
    for (size_t i = 0; i < n; i += hits) {
        char was = in[i];

        in[i] = bytes[i % nbytes];
        nccl_check(from, in, n, &check);
        in[i] = was;
    }
}

/* All fixtures of the format: at least 5, and right by what is_right says. */
static inline void
check_folder(const struct ep_importer *from, const char *root,
             bool (*is_right)(const struct ep_importer *from, const char *path))
{
    char folder[300], path[590];
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
        bad += !is_right(from, path);
    }
    if (d)
        (void)closedir(d);
    printf("# %s: %d fixtures\n", from->name, n);
    ok(n >= 5);
    ok(bad == 0);
}

struct import_case {
    const struct ep_importer *from;
    const char *in, *reason; /* NULL: no error */
    int records;
};

static inline void check_cases(const struct import_case *cases, size_t n)
{
    for (size_t i = 0; i < n; i++) {
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

#endif
