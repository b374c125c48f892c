/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_prom.c - records as Prometheus metrics: names, values, episodes, limits,
 * and whatever records say a valid exposition (prom_check.h). With --check it
 * checks standard input, for tests/prom.bats.
 */
#include "config.h"

#include "base/mem.h"
#include "base/rng.h"
#include "prom_check.h"
#include "record/prom.h"
#include "record/prom_name.h"
#include "tap.h"

static struct ep_span span(const char *s)
{
    return (struct ep_span){s, strlen(s)};
}

/* Feed a line of JSON. */
static void feed(struct ep_prom *p, const char *line)
{
    struct ep_record_parser *parser = ep_record_parser_new();
    struct ep_record r;
    struct ep_error err = {.code = 0};

    if (ep_record_parse(parser, line, strlen(line), &r, &err) < 0)
        tap_ok(0, err.msg, line, 0);
    else
        ep_prom_add(p, &r);
    ep_record_parser_free(parser);
}

/* What is printed; free with free(). */
static char *printed(struct ep_prom *p)
{
    char *text = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&text, &n);

    ep_prom_print(p, f);
    (void)fclose(f);
    return text;
}

/* All samples of a family, in one string; the last call's is overwritten. */
static const char *samples(struct ep_prom *p, const char *family)
{
    static char found[4000];
    char *text = printed(p), why[1200];
    size_t n, len = strlen(family), at = 0;

    if (!prom_check(text, why, &n))
        tap_ok(0, why, family, 0);
    *found = '\0';
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
        if (strncmp(line, family, len) == 0 &&
            (line[len] == '{' || line[len] == ' '))
            at += (size_t)snprintf(found + at, sizeof found - at, "%s\n",
                                   line + len);
    free(text);
    return found;
}

static int same(const char *got, const char *want)
{
    if (strcmp(got, want) == 0)
        return 1;
    printf("# got  %s\n# want %s\n", got, want);
    return 0;
}

/* ==== Names ==== */

static void test_names(void)
{
    static const struct {
        const char *name, *unit, *family, *labels;
    } t[] = {
        {"cpu_share", "1", "_cpu_share", "name=\"cpu_share\""},
        {"DCGM_FI_DEV_FB_USED", "B", "_dcgm_fi_dev_fb_used_bytes",
         "name=\"DCGM_FI_DEV_FB_USED\""},
        {"x{pod=\"a\"}", "W", "_x_watts", "name=\"x\",pod=\"a\""},
        /* the unit is there already, or is to be another one */
        {"node_cpu_seconds_total", "s", "_node_cpu_seconds",
         "name=\"node_cpu_seconds_total\""},
        {"node_memory_MemTotal_bytes", "B", "_node_memory_mem_total_bytes",
         "name=\"node_memory_MemTotal_bytes\""},
        {"a_milliseconds", "s", "_a_seconds", "name=\"a_milliseconds\""},
        {"clock_sm_mhz", "Hz", "_clock_sm_hertz", "name=\"clock_sm_mhz\""},
        {"a_seconds", "1", "_a_seconds_value", "name=\"a_seconds\""},
        {"a_seconds", "B", "_a_seconds_bytes", "name=\"a_seconds\""},
        {"rx_bytes_per_second", "B/s", "_rx_bytes_per_second",
         "name=\"rx_bytes_per_second\""},
        {"rx_bytes_per_second", "1/s", "_rx_bytes_per_second_per_second",
         "name=\"rx_bytes_per_second\""},
        {"util_percent", "1", "_util_ratio", "name=\"util_percent\""},
        {"t", "degC", "_t_celsius", "name=\"t\""},
        {"fan", "rpm", "_fan", "name=\"fan\",unit=\"rpm\""},
        {"rate", "tokens/s", "_rate_tokens", "name=\"rate\",unit=\"tokens/s\""},
        {"a", "", "_a", "name=\"a\""},
        /* endings of other types */
        {"req_count", "1", "_req_count_value", "name=\"req_count\""},
        {"req_bucket{le=\"0.5\"}", "1", "_req_bucket_value",
         "name=\"req_bucket\",exported_le=\"0.5\""},
        {"req_seconds_sum", "s", "_req_seconds_sum_seconds",
         "name=\"req_seconds_sum\""},
        {"total", "1", "", "name=\"total\""},
        {"total_total", "1", "_total_value", "name=\"total_total\""},
        {"a_gauge_m_b", "1", "_a", "name=\"a_gauge_m_b\""},
        /* labels: renamed, in order, empty ones gone */
        {"x{b=\"1\",A=\"2\",c=\"\"}", "1", "_x", "name=\"x\",a=\"2\",b=\"1\""},
        {"x{host=\"h\",exported_host=\"e\"}", "1", "_x",
         "name=\"x\",exported_exported_host=\"h\",exported_host=\"e\""},
        /* (our reader ends a value where a label can follow) */
        {"x{a_b=\"1\",a.b=\"2\"}", "1", "_x",
         "name=\"x\",a_b=\"1\\\",a.b=\\\"2\""},
        {"x{aB=\"1\",a_b=\"2\"}", "1", "_x",
         "name=\"x\",a_b=\"1\",exported_a_b=\"2\""},
        {"x{__a=\"1\",_0=\"2\"}", "1", "_x",
         "name=\"x\",a=\"1\",label_0=\"2\""},
        {"{\"a.x\",\"c.d\"=\"e\"}", "1", "_a_x", "name=\"a.x\",c_d=\"e\""},
        {"x{a=\"q\\\"\\\\\\n\"}", "1", "_x", "name=\"x\",a=\"q\\\"\\\\\\n\""},
        {"power draw [W]", "W", "_power_draw_w_watts",
         "name=\"power draw [W]\""},
        {"\xc3\xa4{", "1", "", "name=\"\xc3\xa4{\""},
        {"a\nb\\", "1", "_a", "name=\"a\\nb\\\\\""},
    };
    struct ep_buf family, labels;

    ep_buf_init(&family);
    ep_buf_init(&labels);
    for (size_t i = 0; i < sizeof t / sizeof t[0]; i++) {
        ep_buf_reset(&family);
        ep_buf_reset(&labels);
        ep_prom_name(span(t[i].name), span(t[i].unit), &family, &labels);
        tap_ok(same(family.ptr ? family.ptr : "", t[i].family) &
                   same(labels.ptr, t[i].labels),
               t[i].name, __FILE__, __LINE__);
    }
    ep_buf_free(&family);
    ep_buf_free(&labels);
}

/* ==== Values ==== */

static void test_latest(void)
{
    struct ep_prom *p = ep_prom_new(1000);

    feed(p,
         "{\"type\":\"step\",\"ts\":10,\"rank\":1,\"step\":5,\"dur\":2,"
         "\"busy\":1,\"pid\":7}");
    ok(same(samples(p, "evenpace_step"), "{rank=\"1\"} 5\n"));
    /* late: counts, but is not the last; another pid is the same rank */
    feed(p,
         "{\"type\":\"step\",\"ts\":9,\"rank\":1,\"step\":4,\"dur\":3,"
         "\"pid\":8}");
    ok(same(samples(p, "evenpace_step"), "{rank=\"1\"} 5\n"));
    ok(same(samples(p, "evenpace_step_duration_seconds"), "{rank=\"1\"} 2\n"));
    ok(same(samples(p, "evenpace_steps_total"), "{rank=\"1\"} 2\n"));
    ok(same(samples(p, "evenpace_step_time_seconds_total"),
            "{rank=\"1\"} 5\n"));
    ok(same(samples(p, "evenpace_last_record_timestamp_seconds"),
            "{type=\"step\",rank=\"1\"} 10\n"));
    /* what a record lacks stays */
    feed(p, "{\"type\":\"step\",\"ts\":10,\"rank\":1,\"step\":6,\"dur\":1}");
    ok(same(samples(p, "evenpace_step"), "{rank=\"1\"} 6\n"));
    ok(same(samples(p, "evenpace_step_busy_seconds"), "{rank=\"1\"} 1\n"));
    ok(same(samples(p, "evenpace_step_busy_time_seconds_total"),
            "{rank=\"1\"} 1\n"));
    /* ranks in the order of numbers; nothing for what no record had */
    feed(p, "{\"type\":\"step\",\"ts\":1,\"rank\":10,\"step\":1,\"dur\":1}");
    feed(p, "{\"type\":\"step\",\"ts\":1,\"rank\":2,\"step\":2,\"dur\":1}");
    feed(p, "{\"type\":\"step\",\"ts\":1,\"step\":3,\"dur\":1,\"host\":\"\"}");
    feed(p, "{\"type\":\"step\",\"ts\":2,\"step\":4,\"dur\":1}");
    ok(same(samples(p, "evenpace_step"),
            " 4\n{rank=\"1\"} 6\n"
            "{rank=\"2\"} 2\n{rank=\"10\"} 1\n"));
    ok(same(samples(p, "evenpace_step_flop_total"), ""));
    ok(ep_prom_refused(p) == 0);
    ep_prom_free(p);
}

/* A record without ts is the latest; sums that overflow are +Inf. */
static void test_without_ts(void)
{
    struct ep_prom *p = ep_prom_new(1000);

    feed(p, "{\"type\":\"whatif\",\"what\":\"all\",\"slowdown\":1.5}");
    feed(p, "{\"type\":\"whatif\",\"what\":\"all\",\"slowdown\":1.25}");
    ok(same(samples(p, "evenpace_whatif_slowdown_ratio"),
            "{what=\"all\"} 1.25\n"));
    ok(same(samples(p, "evenpace_last_record_timestamp_seconds"), ""));
    for (int i = 0; i < 2; i++)
        feed(p,
             "{\"type\":\"coll\",\"op\":\"a\",\"comm\":\"c\","
             "\"comm_rank\":3,\"seq\":1,\"dur\":1.5e308}");
    feed(p,
         "{\"type\":\"coll\",\"op\":\"a\",\"comm\":\"c\",\"rank\":0,"
         "\"comm_rank\":3,\"dur\":1,\"bytes\":8}");
    ok(same(samples(p, "evenpace_coll_seconds_total"),
            "{op=\"a\",comm=\"c\",comm_rank=\"3\"} +Inf\n"
            "{rank=\"0\",op=\"a\",comm=\"c\"} 1\n"));
    ok(same(samples(p, "evenpace_coll_bytes_total"),
            "{rank=\"0\",op=\"a\",comm=\"c\"} 8\n"));
    /* a type that is not known */
    feed(p, "{\"type\":\"later\",\"ts\":5}");
    ok(same(samples(p, "evenpace_last_record_timestamp_seconds"), ""));
    ep_prom_free(p);
}

static void test_gauges(void)
{
    struct ep_prom *p = ep_prom_new(1000);

    feed(p,
         "{\"type\":\"gauge\",\"ts\":1,\"gpu\":\"GPU-1\",\"name\":"
         "\"P{b=\\\"1\\\",a=\\\"2\\\"}\",\"value\":-2.5,\"unit\":\"W\"}");
    /* the same series in another spelling, and one that has another case */
    feed(p,
         "{\"type\":\"gauge\",\"ts\":2,\"gpu\":\"GPU-1\",\"name\":"
         "\"P{a=\\\"2\\\",b=\\\"1\\\"}\",\"value\":3,\"unit\":\"W\","
         "\"ref_own\":4,\"ref_spec\":5}");
    feed(p,
         "{\"type\":\"gauge\",\"ts\":2,\"name\":\"p\",\"value\":6,"
         "\"unit\":\"W\"}");
    ok(same(samples(p, "evenpace_sensor_p_watts"),
            "{gpu=\"GPU-1\",name=\"P\",a=\"2\",b=\"1\"} 3\n"
            "{name=\"p\"} 6\n"));
    ok(same(samples(p, "evenpace_reference_p_watts"),
            "{gpu=\"GPU-1\",name=\"P\",a=\"2\",b=\"1\",ref=\"own\"} 4\n"
            "{gpu=\"GPU-1\",name=\"P\",a=\"2\",b=\"1\",ref=\"spec\"} 5\n"));
    feed(p,
         "{\"type\":\"probe\",\"ts\":2,\"test\":\"gemm\",\"size\":64,"
         "\"value\":7,\"unit\":\"FLOP/s\",\"better\":\"high\"}");
    feed(p,
         "{\"type\":\"probe\",\"ts\":2,\"test\":\"membw\",\"size\":64,"
         "\"value\":8,\"unit\":\"B/s\",\"better\":\"high\",\"spread\":0.5}");
    ok(same(samples(p, "evenpace_probe_result_flop_per_second"),
            "{test=\"gemm\",size=\"64\"} 7\n"));
    ok(same(samples(p, "evenpace_probe_result_bytes_per_second"),
            "{test=\"membw\",size=\"64\"} 8\n"));
    ok(same(samples(p, "evenpace_probe_spread_ratio"),
            "{test=\"membw\",size=\"64\"} 0.5\n"));
    ep_prom_free(p);
}

/* ==== Events ==== */

static void event(struct ep_prom *p, const char *eid, const char *kind,
                  const char *id, const char *cause)
{
    static double ts = 100;
    struct ep_record r;

    ep_record_begin(&r, EP_EVENT);
    ep_record_set_num(&r, EP_K_TS, ts++);
    ep_record_set_str(&r, EP_K_EID, eid);
    ep_record_set_str(&r, EP_K_KIND, kind);
    ep_record_set_str(&r, EP_K_SCOPE, "rank");
    ep_record_set_str(&r, EP_K_ID, id);
    ep_record_set_str(&r, EP_K_CAUSE, cause);
    ep_record_set_num(&r, EP_K_SINCE, 50);
    ep_record_set_num(&r, EP_K_GPU_HOURS, 0.25);
    ep_prom_add(p, &r);
}

static void test_events(void)
{
    static const char active[] = "evenpace_event_active";
    struct ep_prom *p = ep_prom_new(1000);

    event(p, "e1", "onset", "r=1", "cpu");
    ok(same(samples(p, active),
            "{scope=\"rank\",id=\"r=1\",cause=\"cpu\"} 1\n"));
    event(p, "e1", "onset", "r=1", "cpu"); /* an update */
    event(p, "e2", "onset", "r=1", "cpu"); /* a second episode */
    ok(same(samples(p, active),
            "{scope=\"rank\",id=\"r=1\",cause=\"cpu\"} 2\n"));
    event(p, "e1", "onset", "r=1", "gpu"); /* the cause is another one */
    ok(same(samples(p, active),
            "{scope=\"rank\",id=\"r=1\",cause=\"cpu\"} 1\n"
            "{scope=\"rank\",id=\"r=1\",cause=\"gpu\"} 1\n"));
    event(p, "e1", "relief", "r=1", NULL); /* whatever it says of the cause */
    event(p, "e1", "relief", "r=1", NULL);
    ok(same(samples(p, active),
            "{scope=\"rank\",id=\"r=1\",cause=\"cpu\"} 1\n"
            "{scope=\"rank\",id=\"r=1\",cause=\"gpu\"} 0\n"));
    ok(same(samples(p, "evenpace_event_lost_gpu_seconds"),
            "{scope=\"rank\",id=\"r=1\",cause=\"cpu\"} 900\n"
            "{scope=\"rank\",id=\"r=1\",cause=\"gpu\"} 900\n"));
    /* a relief whose onset was not seen; a spike opens nothing */
    event(p, "e9", "relief", "r=9", "cpu");
    event(p, "e8", "spike", "r=8", "cpu");
    event(p, "e7", "missing", "r=7", NULL);
    ok(same(samples(p, active),
            "{scope=\"rank\",id=\"r=1\",cause=\"cpu\"} 1\n"
            "{scope=\"rank\",id=\"r=1\",cause=\"gpu\"} 0\n"
            "{scope=\"rank\",id=\"r=7\"} 1\n"
            "{scope=\"rank\",id=\"r=9\",cause=\"cpu\"} 0\n"));
    ok(same(samples(p, "evenpace_events_total"),
            "{kind=\"missing\",scope=\"rank\",id=\"r=7\"} 1\n"
            "{kind=\"onset\",scope=\"rank\",id=\"r=1\",cause=\"cpu\"} 2\n"
            "{kind=\"relief\",scope=\"rank\",id=\"r=1\"} 1\n"
            "{kind=\"spike\",scope=\"rank\",id=\"r=8\",cause=\"cpu\"} 1\n"));
    ep_prom_free(p);
}

/* ==== Limits ==== */

static void test_limit(void)
{
    struct ep_prom *p = ep_prom_new(30);
    char line[200], why[1200], *text;
    size_t n;

    for (int i = 0; i < 100; i++) {
        (void)snprintf(line, sizeof line,
                       "{\"type\":\"loss\",\"ts\":1,\"step\":%d,\"value\":1,"
                       "\"host\":\"n%d\"}",
                       i, i);
        feed(p, line);
    }
    text = printed(p);
    ok(prom_check(text, why, &n));
    free(text);
    /* of each host 3: loss, its step, when */
    ok(n == 30);
    ok(ep_prom_refused(p) == 90);
    /* what is known goes on */
    n = (size_t)ep_prom_refused(p);
    feed(p,
         "{\"type\":\"loss\",\"ts\":2,\"step\":7,\"value\":9,"
         "\"host\":\"n0\"}");
    ok(ep_prom_refused(p) == n);
    ok(strstr(samples(p, "evenpace_loss"), "{host=\"n0\"} 9\n") != NULL);
    feed(p,
         "{\"type\":\"gauge\",\"ts\":2,\"name\":\"a\",\"value\":9,"
         "\"unit\":\"s\"}");
    event(p, "e", "onset", "r", "c");
    event(p, "e", "spike", "r", "c");
    ok(ep_prom_refused(p) == n + 3);
    ep_prom_free(p);
}

/* ==== Anything at all ==== */

static struct ep_rng rng;

static unsigned below(unsigned n)
{
    return (unsigned)(ep_rng_next(&rng) % n);
}

/* Mostly of few values, so that labels meet again; with all that hurts. */
static void random_string(char *s, size_t room)
{
    static const char *const bits[] = {
        "a",    "B",        "_",    "{",     "}",      "\"", "\\",     "\n",
        "=",    ",",        "1",    "total", "_total", "ms", "_count", "\xff",
        "\xc3", "\xc3\xa4", "host", "le",    "\x01",   " ",  "#",      "gauge"};
    int n = (int)below(6);

    *s = '\0';
    if (below(2)) {
        (void)snprintf(s, room, "n%d", n);
        return;
    }
    if (below(4) == 0)
        (void)snprintf(s, room, "m{%s=\"%s\",%s=\"v\"}", bits[below(24)],
                       bits[below(24)], bits[below(24)]);
    while (n-- > 0 && strlen(s) + 10 < room)
        (void)snprintf(s + strlen(s), 10, "%s", bits[below(24)]);
}

static void random_record(struct ep_record *r, char text[EP_KEYS][64])
{
    ep_record_begin(r, (enum ep_type)below(EP_TYPES));
    for (int k = EP_K_TS; k < EP_KEYS; k++) {
        enum ep_value kind = ep_key_value(r->type, (enum ep_key)k);
        const struct ep_key_info *info = &ep_key_table[k];

        if (below(3) == 0)
            continue;
        if (kind == EP_V_INTEGER) {
            ep_record_set_int(r, (enum ep_key)k,
                              (int64_t)info->min + (int64_t)below(3));
        } else if (kind == EP_V_NUMBER) {
            double v = ep_rng_uniform(&rng);

            ep_record_set_num(r, (enum ep_key)k, v < info->min ? info->min : v);
        } else {
            random_string(text[k], 64);
            ep_record_set_str(r, (enum ep_key)k, text[k]);
        }
    }
    if (r->type == EP_EVENT && below(2))
        ep_record_set_str(r, EP_K_KIND, below(2) ? "onset" : "relief");
}

/* The sum of a family's samples. */
static double total(const char *text, const char *family)
{
    size_t n = strlen(family);
    double sum = 0;

    for (const char *p = text; *p; p += strcspn(p, "\n") + 1)
        if (strncmp(p, family, n) == 0 && (p[n] == ' ' || p[n] == '{')) {
            const char *end = p + strcspn(p, "\n");

            while (end[-1] != ' ')
                end--;
            sum += strtod(end, NULL);
        }
    return sum;
}

static void test_random(uint64_t seed)
{
    char text[EP_KEYS][64], why[1200], *out;
    double steps = 0, bytes = 0, samples_before = 0;
    bool good = true, grows = true;
    struct ep_prom *p = ep_prom_new(1000000);
    size_t n;

    ep_rng_seed(&rng, seed, 0);
    for (int round = 0; round < 4 && good; round++) {
        for (int i = 0; i < 2000; i++) {
            struct ep_record r;

            random_record(&r, text);
            ep_prom_add(p, &r);
            steps += r.type == EP_STEP;
            if (r.type == EP_COLL && ep_record_has(&r, EP_K_BYTES))
                bytes += ep_record_num(&r, EP_K_BYTES);
        }
        out = printed(p);
        good = prom_check(out, why, &n);
        if (!good)
            printf("# %s\n", why);
        grows &= (double)n > samples_before;
        samples_before = (double)n;
        if (round == 3) {
            near(total(out, "evenpace_steps_total"), steps, 0);
            near(total(out, "evenpace_coll_bytes_total"), bytes, 0);
        }
        free(out);
    }
    ok(good);
    ok(grows);
    ok(ep_prom_refused(p) == 0);
    ep_prom_free(p);
}

/* A record of few labels that has all values, at time ts. */
static void full_record(struct ep_record *r, int ts, char name[16])
{
    static const enum ep_type types[] = {EP_STEP, EP_COLL, EP_GAUGE, EP_MERGE};

    ep_record_begin(r, types[below(4)]);
    (void)snprintf(name, 16, "%c{a=\"%u\"}", 'A' + (int)below(60), below(3));
    for (int k = EP_K_TS; k < EP_KEYS; k++) {
        enum ep_value kind = ep_key_value(r->type, (enum ep_key)k);

        if (kind == EP_V_STRING)
            ep_record_set_str(r, (enum ep_key)k, k == EP_K_NAME ? name : "x");
        else if (k > EP_K_WORKER)
            ep_record_set_num(r, (enum ep_key)k, below(1000));
    }
    ep_record_set_int(r, EP_K_RANK, below(20));
    ep_record_set_num(r, EP_K_TS, ts);
}

/* The text does not depend on the order in which records came. */
static void test_order(uint64_t seed)
{
    enum { N = 3000 };
    struct ep_record *r = ep_calloc(N, sizeof *r);
    char(*name)[16] = ep_calloc(N, sizeof *name);
    struct ep_prom *a = ep_prom_new(100000), *b = ep_prom_new(100000);
    char *x, *y;

    ep_rng_seed(&rng, seed, 1);
    for (int i = 0; i < N; i++) {
        full_record(&r[i], i, name[i]);
        ep_prom_add(a, &r[i]);
        if (i == N / 2)
            free(printed(a)); /* nor on when it was printed */
    }
    for (int i = N - 1; i >= 0; i--)
        ep_prom_add(b, &r[i]);
    x = printed(a);
    y = printed(b);
    ok(strlen(x) > 10000);
    ok(strcmp(x, y) == 0);
    free(x);
    free(y);
    free(r);
    free(name);
    ep_prom_free(a);
    ep_prom_free(b);
}

static int check_stdin(void)
{
    char why[1200], *text = NULL;
    size_t n = 0, cap = 0, got;

    do {
        text = ep_grow(text, &cap, n + 65537, 1);
        got = fread(text + n, 1, 65536, stdin);
        n += got;
    } while (got);
    text[n] = '\0';
    if (!prom_check(text, why, &n)) {
        printf("%s\n", why);
        free(text);
        return 1;
    }
    printf("%zu\n", n);
    free(text);
    return 0;
}

int main(int argc, char **argv)
{
    uint64_t seed = 20261130;

    if (argc > 1 && strcmp(argv[1], "--check") == 0)
        return check_stdin();
    if (argc > 1)
        seed = strtoull(argv[1], NULL, 10);
    printf("# seed %llu\n", (unsigned long long)seed);
    test_names();
    test_latest();
    test_without_ts();
    test_gauges();
    test_events();
    test_limit();
    test_random(seed);
    test_order(seed);
    return tap_done();
}
