/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_import_nccl_tests.c - the importers of nccl-tests, of the Flight
 * Recorder and of pickles: what is recognised, the reasons why elements are
 * refused, and all fixtures cut at every byte and with bytes damaged. What
 * they make of whole files is in import-more.bats.
 */
#include "config.h"

#include "import_fixtures.h"
#include "record/importers.h"

#include <time.h>

/* Bytes that hurt. */
static const char bytes[] = {'\0', '"', '{', '}', '\\', '9', ' ', '\xff'};

/* Is it recognised? Then it is damaged. */
static bool check_fixture(const struct ep_importer *from, const char *path)
{
    static char in[FILE_MAX];
    size_t n = load(path, in);

    hurt_fixture(from, path, bytes, sizeof bytes, 1, 3);
    return from->sniff(in, n, strrchr(path, '/') + 1) >= 80;
}

#define HEAD "#  size  count  type  redop  root  time  algbw  busbw  #wrong "
#define FR(entry) "{\"entries\":[" entry "],\"version\":\"2.10\"}"
#define COLL "\"profiling_name\":\"nccl:all_reduce\",\"process_group\":[\"0\"]"

static const struct import_case cases[] = {
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
    check_folder(&ep_import_nccl_tests, root, check_fixture);
    check_folder(&ep_import_fr, root, check_fixture);
    check_cases(cases, sizeof cases / sizeof cases[0]);
    check_pickles();
    return tap_done();
}
