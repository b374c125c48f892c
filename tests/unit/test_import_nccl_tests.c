/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_import_nccl_tests.c - the importers of nccl-tests, of the Flight
 * Recorder and of pickles: what is recognised, the reasons why elements are
 * refused, and all fixtures cut at every byte and with bytes damaged. What
 * they make of whole files is in import-more.bats.
 */
#include "config.h"

#include "../fuzz/nccl_check.h"
#include "record/importers.h"
#include "tap.h"

#include <dirent.h>
#include <time.h>

#define FILE_MAX 65536

static size_t load(const char *path, char *out)
{
    FILE *f = fopen(path, "r");
    size_t n = f ? fread(out, 1, FILE_MAX - 1, f) : 0;

    if (f)
        (void)fclose(f);
    out[n] = '\0';
    return n;
}

/* Cut at every byte, and bytes replaced by ones that hurt. */
static void hurt(const struct ep_importer *from, const char *path)
{
    static const char bytes[] = {'\0', '"', '{', '}', '\\', '9', ' ', '\xff'};
    static char in[FILE_MAX];
    struct nccl_check check = {.keep = false};
    size_t n = load(path, in);

    for (size_t i = 0; i <= n; i++)
        nccl_check(from, in, i, &check);
    for (size_t i = 0; i < n; i += 3) {
        char was = in[i];

        in[i] = bytes[i % sizeof bytes];
        nccl_check(from, in, n, &check);
        in[i] = was;
    }
}

static void check_folder(const struct ep_importer *from, const char *root)
{
    static char in[FILE_MAX];
    char folder[300], path[600];
    struct dirent *e;
    int n = 0, known = 0;
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
        known += from->sniff(in, load(path, in), e->d_name) >= 80;
        hurt(from, path);
    }
    if (d)
        (void)closedir(d);
    printf("# %s: %d fixtures\n", from->name, n);
    ok(n >= 5);
    ok(known == n);
}

#define HEAD "#  size  count  type  redop  root  time  algbw  busbw  #wrong "
#define FR(entry) "{\"entries\":[" entry "],\"version\":\"2.10\"}"
#define COLL "\"profiling_name\":\"nccl:all_reduce\",\"process_group\":[\"0\"]"

static const struct {
    const struct ep_importer *from;
    const char *in, *reason; /* NULL: no error */
    int records;
} cases[] = {
    {&ep_import_nccl_tests, "", NULL, 0},
    {&ep_import_nccl_tests, "hello\n1 2 3\n# Rank\n#\n", NULL, 0},
    {&ep_import_nccl_tests, HEAD "\n8 2 float sum -1 1.0 1.0 1.0 0\n", NULL, 1},
    {&ep_import_nccl_tests,
     HEAD "time algbw busbw #wrong\n8 2 float sum -1 1.0 1.0 1.0 0\n", NULL, 1},
    {&ep_import_nccl_tests, "8 2 float sum -1 1 1 1 0 1 1 1 0\n", NULL, 2},
    {&ep_import_nccl_tests, "8 2 float sum\n",
     "a row of 4 columns under a heading of 13", 0},
    {&ep_import_nccl_tests, "# Avg bus bandwidth    : nan\n", NULL, 0},
    {&ep_import_nccl_tests, "{\"results\":[7]}", "result is not an object", 0},
    {&ep_import_nccl_tests, "{\"results\":[{}]}", NULL, 0},
    {&ep_import_nccl_tests,
     "{\"results\":[{\"out_of_place\":{\"bus_bw\":inf}},"
     "{\"out_of_place\":{\"bus_bw\":1}}]}",
     "expected a value, found 'i'", 1},
    {&ep_import_fr, "{}", NULL, 0},
    {&ep_import_fr, FR(""), NULL, 0},
    {&ep_import_fr, FR("[]"), "entry is not an object", 0},
    {&ep_import_fr, FR("{" COLL "}"), "no state and no duration_ms", 0},
    {&ep_import_fr, FR("{" COLL ",\"duration_ms\":\"x\"}"),
     "duration_ms is not a number", 0},
    {&ep_import_fr, FR("{" COLL ",\"state\":\"started\"}"), NULL, 1},
    {&ep_import_fr, FR("{" COLL ",\"state\":\"gone\"}"),
     "no state and no duration_ms", 0},
    {&ep_import_fr, FR("{\"state\":\"started\"}"), "no profiling_name", 0},
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

static void check_pickles(void)
{
    static const char pickle[] = "\x80\x02}q\x01(X\x07\0\0\0entriesq\x02]u.";
    static const char zip[] = "PK\3\4\0\0\0\0archive/data.pkl";
    struct nccl_check check = {.keep = false};

    ok(ep_import_pickle.sniff(pickle, sizeof pickle, "x") == 80);
    ok(ep_import_pickle.sniff(zip, sizeof zip, "x") == 80);
    ok(ep_import_pickle.sniff(zip, 10, "x") == 0);
    ok(ep_import_pickle.sniff("\x80", 1, "x") == 0);
    ok(ep_import_pickle.sniff("\x80\x06", 2, "x") == 0);
    nccl_check(&ep_import_pickle, pickle, sizeof pickle, &check);
    ok(check.records == 0 && check.errors == 1);
    ok(strstr(check.first,
              "json.dump(pickle.load(open(sys.argv[1],\"rb\")),"
              "sys.stdout)' FILE >FILE.json") != NULL);
    nccl_check(&ep_import_pickle, zip, sizeof zip, &check);
    ok(strstr(check.first, "torch.load") != NULL);
}

int main(void)
{
    const char *root = getenv("top_srcdir");

    (void)setenv("TZ", "UTC", 1);
    tzset();
    root = root ? root : ".";
    check_folder(&ep_import_nccl_tests, root);
    check_folder(&ep_import_fr, root);
    check_cases();
    check_pickles();
    return tap_done();
}
