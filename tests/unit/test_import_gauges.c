/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_import_gauges.c - the importers of sensors (Prometheus, nvidia-smi,
 * dmon): all fixtures, cut at every byte and with bytes damaged; why elements
 * are refused; what is recognised as what; units against strtod(3).
 */
#include "config.h"

#include "import_fixtures.h"
#include "record/gauge_units.h"
#include "record/import_prometheus_line.h"
#include "record/importers.h"

#include <time.h>

static const struct ep_importer *const importers[] = {
    &ep_import_prometheus, &ep_import_smi, &ep_import_dmon};

static struct ep_span span(const char *s)
{
    return (struct ep_span){s, strlen(s)};
}

/* ==== Fixtures ==== */

/* Bytes that hurt. */
static const char bytes[] = {'\0', '"', '{', '}', '\\', '9',
                             ' ',  ',', '=', '#', '-',  '\xff'};

/* Is it as it should be? Then it is damaged. */
static bool check_fixture(const struct ep_importer *from, const char *path)
{
    bool right = fixture_is_right(from, path);

    hurt_fixture(from, path, bytes, sizeof bytes, 1, 3);
    return right;
}

/* ==== Reasons ==== */

#define SMI "index, power.draw [W]\n"
#define DMON "# gpu pwr\n# Idx W\n"

static const struct import_case cases[] = {
    {&ep_import_prometheus, "", NULL, 0},
    {&ep_import_prometheus, "# only comments\n\n \t\n# EOF", NULL, 0},
    {&ep_import_prometheus, "a 1", "the last line was cut, it has no line end",
     0},
    {&ep_import_prometheus, "a\n", "no value", 0},
    {&ep_import_prometheus, "a{b=\"c\"}\n", "no value", 0},
    {&ep_import_prometheus, "a{b=\"c\" 1\n", "the labels do not end", 0},
    {&ep_import_prometheus, "a{b=\"c\n", "the labels do not end", 0},
    {&ep_import_prometheus, "a{\n", "the labels do not end", 0},
    {&ep_import_prometheus, "a{b=c} 1\n", "not a label", 0},
    {&ep_import_prometheus, "{b=\"c\"} 1\n", "no name of a metric", 0},
    {&ep_import_prometheus, "{\"b\",\"c\"} 1\n", "two names", 0},
    {&ep_import_prometheus, "a-b 1\n", "not a sample", 0},
    {&ep_import_prometheus, "a one\n", "the value is one, no number", 0},
    {&ep_import_prometheus, "a 1 x\n", "the timestamp is x", 0},
    {&ep_import_prometheus, "a 1 NaN\n", "the timestamp is NaN", 0},
    {&ep_import_prometheus, "a 1 2 3\n", "text behind the timestamp", 0},
    {&ep_import_prometheus, "DCGM_x{gpu=\"0\"} any text at all\n", NULL, 0},
    {&ep_import_smi, SMI, NULL, 0},
    {&ep_import_smi, SMI "0, 1 W\n", NULL, 1},
    {&ep_import_smi, SMI "0, 1 W", "the last line was cut, it has no line end",
     0},
    {&ep_import_smi, SMI "0\n", "1 cells, where the header has 2", 0},
    {&ep_import_smi, SMI "x, 1 W\n", "'x' is no index of a GPU", 0},
    {&ep_import_smi, SMI "0, 1 furlong\n",
     "nvidia_smi_power_draw is '1 furlong', no number", 0},
    {&ep_import_smi, "timestamp, power.draw [W]\nnow, 1 W\n",
     "'now' is no time", 0},
    {&ep_import_dmon, DMON, NULL, 0},
    {&ep_import_dmon, DMON " 0 -\n", NULL, 0},
    {&ep_import_dmon, " 0 100\n",
     "no line with the names of the columns before it", 0},
    {&ep_import_dmon, DMON " 0 1 2\n", "3 cells, where the header has 2", 0},
    {&ep_import_dmon, DMON " 0 x\n", "nvidia_smi_dmon_pwr is 'x', no number",
     0},
    {&ep_import_dmon, "# Time gpu pwr\n 25:00:00 0 1\n",
     "'25:00:00' is no time of day", 0},
    {&ep_import_dmon, "# Date Time gpu pwr\n 2026-9-1 10:00:00 0 1\n",
     "'2026--9--1 10:00:00' is no date and time", 0},
    {&ep_import_dmon, "# Date Time gpu pwr\n 1/1/26 10:00:00 0 1\n",
     "'1/1/26' is no date", 0},
};

static void check_many(void)
{
    struct nccl_check check = {.keep = false};
    char line[4096], header[4096];
    size_t n = 0, m = 0;

    for (int i = 0; i < EP_PROMETHEUS_LABELS + 1; i++)
        n += (size_t)snprintf(line + n, sizeof line - n, "%cl%d=\"v\"",
                              i ? ',' : '{', i);
    memmove(line + 1, line, n);
    line[0] = 'm';
    (void)snprintf(line + n + 1, sizeof line - n - 1, "} 1\n");
    nccl_check(&ep_import_prometheus, line, strlen(line), &check);
    ok(check.errors == 1 && strcmp(check.first, "too many labels") == 0);
    for (int i = 0; i < 257; i++)
        m += (size_t)snprintf(header + m, sizeof header - m, "%sp%d",
                              i ? ", " : "", i);
    (void)snprintf(header + m, sizeof header - m, ", uuid\n");
    nccl_check(&ep_import_smi, header, strlen(header), &check);
    ok(check.errors == 1 && strcmp(check.first, "more than 256 columns") == 0);
    m = (size_t)snprintf(header, sizeof header, "# gpu");
    for (int i = 0; i < 256; i++)
        m += (size_t)snprintf(header + m, sizeof header - m, " p%d", i);
    (void)snprintf(header + m, sizeof header - m, "\n");
    nccl_check(&ep_import_dmon, header, strlen(header), &check);
    ok(check.errors == 1 && strcmp(check.first, "more than 256 columns") == 0);
}

/* A long line of what begins things must not take its square. */
static void check_long(void)
{
    static const char *const pieces[] = {
        "a{b=\"", "\"",       "\\",   "\",c",   "\",c=\"", "\"} ", "\"}\\",
        "a,",     "power.x,", "0 W,", "# gpu ", "\" , ",   "}",    "a"};
    enum { BYTES = 1 << 20 };
    char *line = malloc(BYTES + 1);

    for (size_t i = 0; line && i < sizeof pieces / sizeof pieces[0]; i++) {
        size_t n = strlen(pieces[i]), at = 0;

        (void)snprintf(line, BYTES, "a{b=\"");
        for (at = i % 2 ? 5 : 0; at + n <= BYTES; at += n)
            memcpy(line + at, pieces[i], n);
        line[at++] = '\n';
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

/* ==== Recognising ==== */

static const struct {
    const char *head;
    const struct ep_importer *from; /* NULL: none of these */
} heads[] = {
    {"# HELP a b", &ep_import_prometheus},
    {"# TYPE a gauge\n", &ep_import_prometheus},
    {"\n# a comment\nDCGM_FI_DEV_GPU_TEMP{gpu=\"0\"", &ep_import_prometheus},
    {"nccl_bus_bandwidth_gbs{version=\"v5.1\",slurm", &ep_import_prometheus},
    {"a_b 1\n", &ep_import_prometheus},
    {"# gpu    pwr  gtemp", &ep_import_dmon},
    {"# gpu foo\n# Idx W\n", &ep_import_dmon},
    {"power.draw [W]\n30 W\n", &ep_import_smi},
    {"index, name\n", &ep_import_smi},
    {"0, NVIDIA H100, 30.00 W\n", &ep_import_smi},
    {"epoch 5\n", NULL},
    {"step 10 loss 3\n", NULL},
    {"# a comment\n", NULL},
    {"# gpu is here\n", NULL},
    {"a,b,c\n1,2,3\n", NULL},
    {"{\"type\":\"step\",\"ts\":1}", NULL},
    {"{\"a\"", NULL},
    {"", NULL},
    {"{", NULL},
};

static void check_heads(void)
{
    for (size_t i = 0; i < sizeof heads / sizeof heads[0]; i++) {
        const char *head = heads[i].head;
        size_t n = strlen(head);

        for (size_t k = 0; k < 3; k++) {
            int sure = importers[k]->sniff(head, n, "x");

            if (!ok(sure >= 0 && sure <= 100 &&
                    (sure > 0) == (importers[k] == heads[i].from)))
                printf("# %s: %s says %d\n", head, importers[k]->name, sure);
        }
    }
}

/* ==== Units ==== */

/* What a unit does to a number is what an exponent would do to its text. */
static void check_convert(void)
{
    static const struct {
        const char *unit, *exponent;
    } units[] = {{"MHz", "e6"}, {"mJ", "e-3"}, {"ns", "e-9"}, {"%", "e-2"},
                 {"us", "e-6"}, {"W", ""},     {"GB/s", "e9"}};
    unsigned seed = 12345;
    int bad = 0;

    printf("# seed %u\n", seed);
    for (int i = 0; i < 20000; i++) {
        size_t u = (size_t)i % (sizeof units / sizeof units[0]);
        char text[64], scaled[80];
        double got = -1;

        seed = seed * 1103515245U + 12345U;
        (void)snprintf(text, sizeof text, "%s%u.%0*u", seed & 8 ? "-" : "",
                       seed >> 5, 1 + i % 8, seed % 9);
        (void)snprintf(scaled, sizeof scaled, "%s%s", text, units[u].exponent);
        if (!ep_gauge_number(span(text),
                             ep_gauge_unit_named(span(units[u].unit)), &got) ||
            got != strtod(scaled, NULL)) {
            printf("# %s: %.17g\n", scaled, got);
            bad++;
        }
    }
    ok(bad == 0);
}

static const struct {
    const char *text;
    double value; /* NaN: no number */
} numbers[] = {
    {"1", 1},
    {"+1", 1},
    {"-1.5e3", -1500},
    {"1e999", INFINITY},
    {"", NAN},
    {"+", NAN},
    {"-", NAN},
    {"+-1", NAN},
    {"1x", NAN},
    {"0x10", NAN},
    {"inf", INFINITY},
    {"+Inf", INFINITY},
    {"i", NAN},
    {"infinit", NAN},
    {"-Infinity", -INFINITY},
    {"infx", NAN},
    {"1 ", NAN},
    {".5", 0.5},
};

static void check_numbers(void)
{
    const struct ep_gauge_unit *mib = ep_gauge_unit_named(span("MiB"));
    double v = 0;

    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        double want = numbers[i].value;
        bool is = ep_gauge_number(span(numbers[i].text), &ep_gauge_plain, &v);

        if (!ok(isnan(want) ? !is : is && v == want))
            printf("# '%s': %d %g\n", numbers[i].text, is, v);
    }
    ok(ep_gauge_number(span("NaN"), &ep_gauge_plain, &v) && isnan(v));
    ok(ep_gauge_number(span("-nan"), &ep_gauge_plain, &v) && isnan(v));
    ok(ep_gauge_number(span("3"), mib, &v) && v == 3145728);
    ok(ep_gauge_number(span("0"), mib, &v) && v == 0);
    /* 25 digits: read by another way, and then rounded once more */
    ok(ep_gauge_number(span("1234567890123456789012345"),
                       ep_gauge_unit_named(span("ms")), &v));
    near(v, 1234567890123456789012.345, 1e6);
    ok(ep_gauge_number(span("1234567890123456789012345"),
                       ep_gauge_unit_named(span("MHz")), &v));
    near(v / 1e30, 1.234567890123456789012345, 1e-15);
    ok(!ep_gauge_unit_named(span("furlong")) && !ep_gauge_unit_named(span("")));
}

static void check_pci(void)
{
    static const char *const pairs[][2] = {
        {"00000000:8D:00.0", "0000:8d:00.0"},
        {"0000:8D:00.0", "0000:8d:00.0"},
        {"00010000:AE:1F.7", "10000:ae:1f.7"},
        {"ABCDEF01:00:00.0", "abcdef01:00:00.0"},
        {"0000:8X:00.0", "0000:8X:00.0"},
        {"8D:00.0", "8D:00.0"},
        {"00000000-8D:00.0", "00000000-8D:00.0"},
        {"", ""},
    };

    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        char buf[EP_GAUGE_PCI_MAX];

        ok(ep_span_eq(ep_gauge_pci(span(pairs[i][0]), buf), pairs[i][1]));
    }
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
    check_cases(cases, sizeof cases / sizeof cases[0]);
    check_many();
    check_long();
    check_heads();
    check_convert();
    check_numbers();
    check_pci();
    return tap_done();
}
