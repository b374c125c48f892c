/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_env.c - environments: what is read, and each way to be refused, by
 * changing one thing in a good text.
 */
#include "config.h"

#include "base/buf.h"
#include "lsgd/env.h"

#include "tap.h"

#include <string.h>

static const char good[] =
    "{\"regions\": [{\"name\": \"a\", \"speeds\": [1, 2.5]},"
    " {\"name\": \"b-1\", \"speeds\": [0.5]}],"
    " \"bandwidth_gbit_per_s\": [[100, 1.5], [2, 50]],"
    " \"gps_region\": \"b-1\", \"step_seconds\": 0.25,"
    " \"parameters\": 1000, \"bytes_per_parameter\": 4,"
    " \"total_steps\": 100, \"tokens_per_step\": 8,"
    " \"methods\": {\"halos\": {\"H\": 8, \"K\": 4, \"alpha\": 0.25,"
    " \"lps\": {\"lr\": 0.5, \"beta\": 0.9, \"N\": 4},"
    " \"gps\": {\"lr\": 1, \"beta\": 0, \"N\": 2, \"c\": 0.5}},"
    " \"diloco\": {\"H\": 3, \"gps\": {\"lr\": 0.7, \"beta\": 0.9, \"N\": 1}}},"
    " \"options\": {\"latency_seconds\": 0.125, \"contention\": true,"
    " \"failures\": [{\"worker\": \"b-1/0\", \"down_seconds\": 3},"
    " {\"worker\": \"a/1\", \"down_seconds\": 9, \"up_seconds\": 10},"
    " {\"worker\": \"a/1\", \"down_seconds\": 1, \"up_seconds\": 9}],"
    " \"lps_seconds_per_update\": 2, \"gps_seconds_per_update\": 3,"
    " \"mean_seconds_to_rejoin\": 7, \"seed\": 11, \"carry\": true,"
    " \"q4\": false}}";

static void test_good(void)
{
    struct ep_error err = {.code = 0};
    struct ep_env e;

    if (!ok(ep_env_parse(&e, good, strlen(good), &err) == 0)) {
        printf("# %s\n", err.msg);
        return;
    }
    ok(e.nregions == 2 && e.nworkers == 3 && e.gps_region == 1);
    ok(strcmp(e.region[1].name, "b-1") == 0);
    ok(e.region[0].workers == 2 && e.region[1].first == 2);
    ok(e.region_of[1] == 0 && e.region_of[2] == 1);
    near(e.speed[1], 2.5, 0);
    near(e.fastest, 2.5, 0);
    near(e.gbit_s[1], 1.5, 0);
    near(e.gbit_s[2], 2, 0);
    near(e.step, 0.25, 0);
    ok(e.parameters == 1000 && e.bytes_per_parameter == 4);
    ok(e.total_steps == 100 && e.tokens_per_step == 8);
    ok(e.method[EP_METHOD_HALOS].given && e.method[EP_METHOD_DILOCO].given);
    ok(!e.method[EP_METHOD_ASYNC].given && e.method[EP_METHOD_SYNC].given);
    ok(e.method[EP_METHOD_HALOS].h == 8 && e.method[EP_METHOD_HALOS].k == 4);
    near(e.method[EP_METHOD_HALOS].alpha, 0.25, 0);
    near(e.method[EP_METHOD_HALOS].lps.beta, 0.9, 0);
    near(e.method[EP_METHOD_HALOS].gps.c, 0.5, 0);
    ok(e.method[EP_METHOD_DILOCO].gps.n == 1);
    ok(e.method[EP_METHOD_SYNC].h == 1);
    near(e.latency, 0.125, 0);
    near(e.lps_time, 2, 0);
    near(e.gps_time, 3, 0);
    near(e.rejoin, 7, 0);
    near(e.mttf, 0, 0);
    ok(e.contention && e.carry && !e.q4 && e.seed == 11);
    ok(e.nfailures == 3 && e.failure[0].worker == 1);
    near(e.failure[0].down, 1, 0);
    near(e.failure[1].down, 9, 0);
    ok(e.failure[2].worker == 2 && isinf(e.failure[2].up));
    ep_env_scale_links(&e, 10);
    near(e.gbit_s[0], 100, 0);
    near(e.gbit_s[1], 15, 0);
    near(e.gbit_s[2], 20, 0);
    near(e.gbit_s[3], 50, 0);
    ep_env_free(&e);
    ep_env_free(&e);
}

/* Replace the first old of good by new: that is refused with code and words.
   Where mark is in the new text, which is one line, is what the message says
   the place is; NULL: the scanner's, or not told apart. */
static const struct {
    const char *old, *new, *mark;
    int code;
    const char *words;
} cases[] = {
    {"{\"regions\"", "[\"regions\"", NULL, EP_EFORMAT, "line 1, column "},
    {"\"seed\": 11", "\"seed\": 11,", NULL, EP_EFORMAT, "line 1, column "},
    {"\"q4\": false}}", "\"q4\": false}", NULL, EP_ETRUNC, "line 1, column "},
    {"\"q4\": false}}", "\"q4\": false}} x", NULL, EP_EFORMAT,
     "line 1, column "},
    /* keys */
    {"\"seed\": 11", "\"sead\": 11", "sead", EP_EFORMAT,
     "options: unknown key 'sead'"},
    {"\"gps_region\"", "\"gps\"", "gps\": \"b", EP_EFORMAT,
     "environment: unknown key 'gps'"},
    {"\"step_seconds\": 0.25,", "\"regions\": 1,", "regions\": 1", EP_EFORMAT,
     "environment: duplicate key 'regions'"},
    {"\"step_seconds\": 0.25, \"parameters\": 1000,", "", "{\"regions",
     EP_EFORMAT, "environment: missing: step_seconds, parameters"},
    {"\"K\": 4, \"alpha\": 0.25,", "", "{\"H\": 8", EP_EFORMAT,
     "halos: missing: K, alpha"},
    {"{\"H\": 3,", "{\"H\": 3, \"K\": 4,", "K\": 4, \"gps", EP_EFORMAT,
     "diloco: unknown key 'K'"},
    {"\"diloco\"", "\"fedavg\"", "fedavg", EP_EFORMAT,
     "methods: unknown key 'fedavg'"},
    {"\"beta\": 0, ", "", "{\"lr\": 1", EP_EFORMAT, "gps: missing: beta"},
    {", \"speeds\": [0.5]", "", "{\"name\": \"b", EP_EFORMAT,
     "regions: missing: speeds"},
    {"{\"worker\": \"b-1/0\", ", "{", "{\"down_seconds\": 3", EP_EFORMAT,
     "failures: missing: worker"},
    /* kinds */
    {"[1, 2.5]", "7", "7", EP_EFORMAT, "speeds: not an array"},
    {"[1, 2.5]", "[\"1\"]", "1\"]", EP_EFORMAT, "speeds: not a number"},
    {"\"name\": \"a\"", "\"name\": 5", "5", EP_EFORMAT, "name: not a string"},
    {"\"name\": \"a\"", "\"name\": \"a b\"", "a b", EP_EFORMAT,
     "name: not a string of 1 to 64"},
    {"\"name\": \"a\"", "\"name\": \"\"", NULL, EP_EFORMAT, "name: not"},
    {"\"contention\": true", "\"contention\": 1", "1, \"failures", EP_EFORMAT,
     "contention: not true or false"},
    {"\"parameters\": 1000", "\"parameters\": 1.5", "1.5, \"bytes", EP_EFORMAT,
     "parameters: not a whole number"},
    {"\"total_steps\": 100", "\"total_steps\": null", "null", EP_EFORMAT,
     "total_steps: not a whole number"},
    {"[2, 50]", "2", "2],", EP_EFORMAT, "bandwidth_gbit_per_s: not an array"},
    {"\"gps_region\": \"b-1\"", "\"gps_region\": 1", "1, \"step", EP_EFORMAT,
     "gps_region: not a string"},
    {"\"halos\": {", "\"async\": 5, \"halos\": {", "5, \"halos", EP_EFORMAT,
     "async: not an object"},
    {"\"worker\": \"b-1/0\"", "\"worker\": 0", "0, \"down", EP_EFORMAT,
     "worker: not a string"},
    /* ranges */
    {"[1, 2.5]", "[0]", "0]}", EP_ERANGE, "speeds: not above 0"},
    {"[1, 2.5]", "[1e10]", "1e10", EP_ERANGE, "speeds: not above 0"},
    {"[2, 50]", "[-2, 50]", "-2", EP_ERANGE,
     "bandwidth_gbit_per_s: not above 0"},
    {"\"step_seconds\": 0.25", "\"step_seconds\": 1e999", "1e999", EP_ERANGE,
     "step_seconds: not above 0 and at most 1e+06"},
    {"\"parameters\": 1000", "\"parameters\": 0", "0, \"bytes", EP_ERANGE,
     "parameters: not in 1..10000000000000"},
    {"\"bytes_per_parameter\": 4", "\"bytes_per_parameter\": 17", "17",
     EP_ERANGE, "bytes_per_parameter: not in 1..16"},
    {"\"total_steps\": 100", "\"total_steps\": 1e13", "1e13", EP_ERANGE,
     "total_steps: not in"},
    {"\"tokens_per_step\": 8", "\"tokens_per_step\": -1", "-1, ", EP_ERANGE,
     "tokens_per_step: not in"},
    {"\"H\": 8", "\"H\": 0", "0, \"K", EP_ERANGE, "H: not in 1..1000000000"},
    {"\"K\": 4", "\"K\": 0", "0, \"al", EP_ERANGE, "K: not in"},
    {"\"alpha\": 0.25", "\"alpha\": 1.25", "1.25", EP_ERANGE,
     "alpha: not at least 0 and at most 1"},
    {"\"latency_seconds\": 0.125", "\"latency_seconds\": -1", "-1, \"con",
     EP_ERANGE, "latency_seconds: not at least 0"},
    {"\"seed\": 11", "\"seed\": 99999999999999999999", "9999", EP_ERANGE,
     "seed: not in"},
    /* sense */
    {"\"b-1\", \"speeds\"", "\"a\", \"speeds\"", "a\", \"speeds\": [0.5",
     EP_EDOM, "name: another region has it"},
    {"[0.5]", "[]", "[]", EP_EDOM, "speeds: no worker"},
    {"\"gps_region\": \"b-1\"", "\"gps_region\": \"c\"", "c\", \"step", EP_EDOM,
     "gps_region: no such region"},
    {"[2, 50]]", "[2, 50], [1, 1]]", "[1, 1]]", EP_EDOM,
     "bandwidth_gbit_per_s: more rows than regions"},
    {", [2, 50]]", "]", "[[100", EP_EDOM,
     "bandwidth_gbit_per_s: fewer rows than regions"},
    {"[2, 50]", "[2]", "[2]", EP_EDOM,
     "bandwidth_gbit_per_s: fewer columns than regions"},
    {"[2, 50]", "[2, 50, 1]", "1]]", EP_EDOM,
     "bandwidth_gbit_per_s: more columns than regions"},
    {"\"beta\": 0.9, \"N\": 4", "\"beta\": 1, \"N\": 4", "{\"lr\": 0.5",
     EP_EDOM, "lps: beta: "},
    {"\"c\": 0.5", "\"c\": 0.6", "{\"lr\": 1", EP_EDOM, "gps: c: "},
    {"b-1/0", "b-1/1", "b-1/1", EP_EDOM, "worker: no such worker"},
    {"b-1/0", "b-1/", "b-1/\"", EP_EDOM, "worker: no such worker"},
    {"b-1/0", "b-1/00", "b-1/00", EP_EDOM, "worker: no such worker"},
    {"\"a/1\", \"down_seconds\": 9", "\"a/01\", \"down_seconds\": 9", "a/01",
     EP_EDOM, "worker: no such worker"},
    {"b-1/0", "0", "0\", \"down", EP_EDOM, "worker: no such worker"},
    {"b-1/0", "/0", "/0", EP_EDOM, "worker: no such worker"},
    {"b-1/0", "", "\", \"down_seconds\": 3", EP_EDOM, "worker: no such worker"},
    {"b-1/0", "a/99999999999999999999999", "a/9", EP_EDOM,
     "worker: no such worker"},
    {"\"up_seconds\": 10", "\"up_seconds\": 8", "{\"worker\": \"a/1\"", EP_EDOM,
     "failures: up before down"},
    {"\"down_seconds\": 9", "\"down_seconds\": 8", "[{\"worker", EP_EDOM,
     "failures: a worker goes down while it is down"},
    {"\"seed\": 11", "\"mean_seconds_to_failure\": 5", "[{\"worker", EP_EDOM,
     "failures: given beside mean_seconds_to_failure"},
};

static void test_bad(void)
{
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *at = strstr(good, cases[i].old), *mark;
        struct ep_error err = {.code = 0};
        struct ep_buf text, want;
        struct ep_env e;
        int rc;

        ep_buf_init(&text);
        ep_buf_init(&want);
        ep_buf_add(&text, good, (size_t)(at - good));
        ep_buf_adds(&text, cases[i].new);
        ep_buf_adds(&text, at + strlen(cases[i].old));
        mark = cases[i].mark ? strstr(text.ptr, cases[i].mark) : NULL;
        if (mark)
            ep_buf_addf(&want, "line 1, column %zu (byte %zu): ",
                        (size_t)(mark - text.ptr) + 1,
                        (size_t)(mark - text.ptr));
        ep_buf_adds(&want, cases[i].words);
        rc = ep_env_parse(&e, text.ptr, text.len, &err);
        if (!ok(rc == cases[i].code && err.code == rc &&
                (cases[i].mark || strncmp(cases[i].words, "line", 4) == 0 ||
                 strstr(err.msg, cases[i].words)) &&
                (mark || !cases[i].mark) &&
                (!mark || strncmp(err.msg, want.ptr, want.len) == 0)))
            printf("# %s -> %s: %d %s\n# want %d %s\n", cases[i].old,
                   cases[i].new, rc, err.msg, cases[i].code, want.ptr);
        if (rc == 0)
            ep_env_free(&e);
        ep_buf_free(&text);
        ep_buf_free(&want);
    }
}

/* Lines and columns, also after characters of several bytes. */
static void test_places(void)
{
    static const struct {
        const char *text, *told;
    } place[] = {
        {"", "line 1, column 1 (byte 0): "},
        {"{\n", "line 2, column 1 (byte 2): "},
        {"{\n  \"regions\": [],\n  7\n}", "line 3, column 3 (byte 21): "},
        {"{\"gps_region\": \"\xc3\xa9\xe2\x82\xac\", \"x\": 1}",
         "line 1, column 23 (byte 25): environment: unknown key 'x'"},
        {"{\r\n\"regions\": 1,\r\n\"regions\": 2}",
         "line 3, column 2 (byte 19): environment: duplicate key 'regions'"},
        {"[\n]", "line 1, column 1 (byte 0): environment: not an object"},
        {"\n\n {}", "line 3, column 2 (byte 3): environment: missing: "},
    };

    for (size_t i = 0; i < sizeof place / sizeof place[0]; i++) {
        struct ep_error err = {.code = 0};
        struct ep_env e;

        ok(ep_env_parse(&e, place[i].text, strlen(place[i].text), &err) < 0);
        if (!ok(strncmp(err.msg, place[i].told, strlen(place[i].told)) == 0))
            printf("# %s\n# want %s\n", err.msg, place[i].told);
        ok(strstr(err.msg, "byte ") == strrchr(err.msg, '(') + 1);
    }
}

/* A good text cut anywhere is refused, also without a place for the error. */
static void test_cut(void)
{
    int accepted = 0;

    for (size_t n = 0; n < strlen(good); n++) {
        struct ep_env e;

        if (ep_env_parse(&e, good, n, NULL) == 0) {
            accepted++;
            ep_env_free(&e);
        }
    }
    ok(accepted == 0);
}

static void repeat(struct ep_buf *b, const char *what, int n)
{
    for (int i = 0; i < n; i++)
        ep_buf_addf(b, "%s%s", i ? "," : "", what);
}

static void test_limits(void)
{
    struct ep_error err = {.code = 0};
    struct ep_buf b;
    struct ep_env e;
    const char *rest = strstr(good, " \"bandwidth");

    ep_buf_init(&b);
    ep_buf_adds(&b, "{\"regions\": [{\"name\": \"a\", \"speeds\": [");
    repeat(&b, "1", EP_ENV_WORKERS + 1);
    ep_buf_addf(&b, "]}],%s", rest);
    ok(ep_env_parse(&e, b.ptr, b.len, &err) == EP_ELIMIT);
    ok(strstr(err.msg, "speeds: more than 4096 workers") != NULL);
    ep_buf_reset(&b);
    ep_buf_adds(&b, "{\"regions\": [");
    for (int i = 0; i < 17; i++)
        ep_buf_addf(&b, "%s{\"name\": \"r%d\", \"speeds\": [1]}", i ? "," : "",
                    i);
    ep_buf_addf(&b, "],%s", rest);
    ok(ep_env_parse(&e, b.ptr, b.len, &err) == EP_ELIMIT);
    ok(strstr(err.msg, "regions: more than 16 regions") != NULL);
    ep_buf_reset(&b);
    rest = strstr(good, "\"failures\": [") + strlen("\"failures\": [");
    ep_buf_add(&b, good, (size_t)(rest - good));
    for (int i = 0; i <= EP_ENV_FAILURES; i++)
        ep_buf_addf(&b,
                    "%s{\"worker\": \"a/0\", \"down_seconds\": %d, "
                    "\"up_seconds\": %d}",
                    i ? "," : "", i, i);
    ep_buf_addf(&b, ",%s", rest);
    ok(ep_env_parse(&e, b.ptr, b.len, &err) == EP_ELIMIT);
    ok(strstr(err.msg, "failures: more than 65536 failures") != NULL);
    ep_buf_free(&b);
}

int main(void)
{
    test_good();
    test_bad();
    test_places();
    test_cut();
    test_limits();
    return tap_done();
}
