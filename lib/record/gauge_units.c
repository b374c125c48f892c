/* SPDX-License-Identifier: Apache-2.0 */
/* gauge_units.c - see gauge_units.h. */
#include "config.h"

#include "record/gauge_units.h"

#include <string.h>

#define KIB 1024.0

const struct ep_gauge_unit ep_gauge_plain = {"1", 0, 1};

enum unit {
    PLAIN,
    S,
    MS,
    US,
    NS,
    B,
    KIB_,
    MIB,
    GIB,
    KB,
    MB,
    GB,
    BS,
    KIBS,
    MIBS,
    GIBS,
    KBS,
    MBS,
    GBS,
    HZ,
    KHZ,
    MHZ,
    GHZ,
    W,
    MW,
    KW,
    J,
    MJ,
    V,
    MV,
    A,
    MA,
    CELSIUS,
    PERCENT,
    RPM,
    PER_S,
    UNITS,
};

static const struct ep_gauge_unit units[UNITS] = {
    [PLAIN] = {"1", 0, 1},
    [S] = {"s", 0, 1},
    [MS] = {"s", -3, 1},
    [US] = {"s", -6, 1},
    [NS] = {"s", -9, 1},
    [B] = {"B", 0, 1},
    [KIB_] = {"B", 0, KIB},
    [MIB] = {"B", 0, KIB *KIB},
    [GIB] = {"B", 0, KIB *KIB *KIB},
    [KB] = {"B", 3, 1},
    [MB] = {"B", 6, 1},
    [GB] = {"B", 9, 1},
    [BS] = {"B/s", 0, 1},
    [KIBS] = {"B/s", 0, KIB},
    [MIBS] = {"B/s", 0, KIB *KIB},
    [GIBS] = {"B/s", 0, KIB *KIB *KIB},
    [KBS] = {"B/s", 3, 1},
    [MBS] = {"B/s", 6, 1},
    [GBS] = {"B/s", 9, 1},
    [HZ] = {"Hz", 0, 1},
    [KHZ] = {"Hz", 3, 1},
    [MHZ] = {"Hz", 6, 1},
    [GHZ] = {"Hz", 9, 1},
    [W] = {"W", 0, 1},
    [MW] = {"W", -3, 1},
    [KW] = {"W", 3, 1},
    [J] = {"J", 0, 1},
    [MJ] = {"J", -3, 1},
    [V] = {"V", 0, 1},
    [MV] = {"V", -3, 1},
    [A] = {"A", 0, 1},
    [MA] = {"A", -3, 1},
    [CELSIUS] = {"degC", 0, 1},
    [PERCENT] = {"1", -2, 1},
    [RPM] = {"Hz", 0, 1 / 60.0},
    [PER_S] = {"1/s", 0, 1},
};

struct named {
    const char *text;
    enum unit unit;
};

/* What stands behind a number, or in brackets in a header. */
static const struct named texts[] = {
    {"%", PERCENT},
    {"W", W},
    {"MHz", MHZ},
    {"MiB", MIB},
    {"C", CELSIUS},
    {"MB/s", MBS},
    {"MB", MB},
    {"us", US},
    {"ms", MS},
    {"s", S},
    {"ns", NS},
    {"mW", MW},
    {"kW", KW},
    {"J", J},
    {"mJ", MJ},
    {"Hz", HZ},
    {"kHz", KHZ},
    {"GHz", GHZ},
    {"B", B},
    {"KiB", KIB_},
    {"GiB", GIB},
    {"kB", KB},
    {"KB", KB},
    {"GB", GB},
    {"B/s", BS},
    {"KiB/s", KIBS},
    {"MiB/s", MIBS},
    {"GiB/s", GIBS},
    {"kB/s", KBS},
    {"KB/s", KBS},
    {"GB/s", GBS},
    {"V", V},
    {"mV", MV},
    {"A", A},
    {"mA", MA},
    {"rpm", RPM},
    {"RPM", RPM},
    {"bytes", B},
    {"errs", PLAIN},
    {"bool", PLAIN},
    {"GPM:%", PERCENT},
    {"GPM:MB/s", MBS},
    {"GPM:MiB/s", MIBS},
};

/* How the name of a metric ends. */
static const struct named endings[] = {
    {"_bytes_per_second", BS},
    {"_per_second", PER_S},
    {"_seconds", S},
    {"_bytes", B},
    {"_ratio", PLAIN},
    {"_celsius", CELSIUS},
    {"_hertz", HZ},
    {"_hz", HZ},
    {"_watts", W},
    {"_joules", J},
    {"_volts", V},
    {"_amperes", A},
    {"_amps", A},
    {"_percent", PERCENT},
    {"_percentage", PERCENT},
    {"_milliseconds", MS},
    {"_ms", MS},
    {"_microseconds", US},
    {"_nanoseconds", NS},
    {"_gbs", GBS},
    {"_mhz", MHZ},
    {"_milliwatts", MW},
    {"_millijoules", MJ},
    {"_kilobytes", KB},
    {"_megabytes", MB},
    {"_mebibytes", MIB},
    {"_mib", MIB},
    {"_rpm", RPM},
};

/* Behind DCGM_FI_DEV_; ^ is the beginning, else it is how the name ends. */
static const struct named fields[] = {
    {"_CLOCK", MHZ},
    {"_TEMP", CELSIUS},
    {"^GPU_TEMP_LIMIT", CELSIUS},
    {"^CPU_TEMP_", CELSIUS},
    {"^NVSWITCH_TEMPERATURE_", CELSIUS},
    {"^POWER_USAGE", W},
    {"^POWER_MGMT_LIMIT", W},
    {"^ENFORCED_POWER_LIMIT", W},
    {"^CPU_POWER_", W},
    {"_POWER_UTIL_CURRENT", W},
    {"^TOTAL_ENERGY_CONSUMPTION", MJ},
    {"_UTIL", PERCENT},
    {"_UTILIZATION", PERCENT},
    {"^FAN_SPEED", PERCENT},
    {"^FB_USED_PERCENT", PLAIN}, /* 0 to 1, whatever it is called */
    {"^FB_", MIB},
    {"^BAR1_", MIB},
    /* the comments of old field lists say us; it is ns (DCGM#266) */
    {"_VIOLATION", NS},
    {"_NS", NS},
    {"^PCIE_TX_THROUGHPUT", KBS},
    {"^PCIE_RX_THROUGHPUT", KBS},
};

static bool starts_with(struct ep_span s, const char *text)
{
    size_t n = strlen(text);

    return s.len >= n && memcmp(s.ptr, text, n) == 0;
}

static bool ends_with(struct ep_span s, const char *text)
{
    size_t n = strlen(text);

    return s.len >= n && memcmp(s.ptr + s.len - n, text, n) == 0;
}

/* Take text off the beginning, or the end, if it is there. */
static bool cut_start(struct ep_span *s, const char *text)
{
    bool there = starts_with(*s, text);

    if (there) {
        s->ptr += strlen(text);
        s->len -= strlen(text);
    }
    return there;
}

static bool cut_end(struct ep_span *s, const char *text)
{
    bool there = ends_with(*s, text);

    if (there)
        s->len -= strlen(text);
    return there;
}

const struct ep_gauge_unit *ep_gauge_unit_named(struct ep_span text)
{
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        if (ep_span_eq(text, texts[i].text))
            return &units[texts[i].unit];
    return NULL;
}

/* DCGM_FI_DEV_SM_CLOCK; dcgm-exporter 1 had dcgm_sm_clock. */
static enum unit unit_of_field(struct ep_span name)
{
    char upper[64];

    if (name.len > sizeof upper)
        return PLAIN;
    for (size_t i = 0; i < name.len; i++) {
        upper[i] = name.ptr[i];
        if (upper[i] >= 'a' && upper[i] <= 'z')
            upper[i] = (char)(upper[i] - ('a' - 'A'));
    }
    name.ptr = upper;
    if (cut_start(&name, "DCGM_FI_PROF_"))
        return ends_with(name, "_BYTES") ? BS : PLAIN;
    if (!cut_start(&name, "DCGM_FI_DEV_"))
        (void)cut_start(&name, "DCGM_");
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        const char *text = fields[i].text;

        if (*text == '^' ? starts_with(name, text + 1) : ends_with(name, text))
            return fields[i].unit;
    }
    return PLAIN;
}

bool ep_gauge_is_dcgm(struct ep_span name)
{
    return starts_with(name, "DCGM_") || starts_with(name, "dcgm_");
}

static enum unit unit_of_name(struct ep_span name)
{
    if (ep_gauge_is_dcgm(name))
        return unit_of_field(name);
    if (ends_with(name, "_bucket") || ends_with(name, "_count") ||
        ends_with(name, "_gcount"))
        return PLAIN;
    if (ends_with(name, "_created"))
        return S; /* since the epoch */
    if (!cut_end(&name, "_sum") && !cut_end(&name, "_gsum"))
        (void)cut_end(&name, "_total");
    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++)
        if (ends_with(name, endings[i].text))
            return endings[i].unit;
    return PLAIN;
}

const struct ep_gauge_unit *ep_gauge_unit_of_metric(struct ep_span name)
{
    return &units[unit_of_name(name)];
}

double ep_gauge_convert(const struct ep_gauge_unit *u,
                        const struct ep_fp_decimal *d, const char *text,
                        size_t len)
{
    struct ep_fp_decimal scaled = *d;

    /* more than 19 digits are read from text, which knows no unit */
    if (d->cut && u->exp10 > 0)
        return ep_fp_from_decimal(d, text, len) * ep_fp_exact_pow10[u->exp10] *
               u->times;
    if (d->cut && u->exp10 < 0)
        return ep_fp_from_decimal(d, text, len) / ep_fp_exact_pow10[-u->exp10] *
               u->times;
    if (d->mant)
        scaled.exp10 += u->exp10;
    return ep_fp_from_decimal(&scaled, text, len) * u->times;
}

/* NaN and infinities; *out is set if text is one of them. */
static bool number_word(struct ep_span text, double *out)
{
    static const struct {
        const char *word;
        float value;
    } words[] = {{"nan", __builtin_nanf("")},
                 {"inf", __builtin_inff()},
                 {"infinity", __builtin_inff()}};
    bool neg = text.len && *text.ptr == '-';

    if (text.len && (*text.ptr == '-' || *text.ptr == '+')) {
        text.ptr++;
        text.len--;
    }
    for (size_t w = 0; w < 3; w++) {
        size_t i = 0;

        while (i < text.len && words[w].word[i] &&
               (text.ptr[i] | 0x20) == words[w].word[i])
            i++;
        if (text.len && i == text.len && !words[w].word[i]) {
            *out = neg ? -(double)words[w].value : (double)words[w].value;
            return true;
        }
    }
    return false;
}

bool ep_gauge_number(struct ep_span text, const struct ep_gauge_unit *u,
                     double *out)
{
    struct ep_fp_decimal d;
    size_t plus = text.len > 1 && *text.ptr == '+' && text.ptr[1] != '-';
    size_t used = ep_fp_scan(text.ptr + plus, text.len - plus, &d);

    if (!used)
        return number_word(text, out);
    if (used + plus != text.len)
        return false;
    *out = ep_gauge_convert(u, &d, text.ptr + plus, used);
    return true;
}

bool ep_gauge_no_value(struct ep_span text)
{
    static const char *const words[] = {
        "-",
        "N/A",
        "ERR!",
        "Not Supported",
        "Unknown Error",
        "Insufficient Permissions",
        "GPU is lost",
        "Requested functionality has been deprecated",
        "Function Not Found",
        "Unknown",
    };

    if (!text.len || (*text.ptr == '[' && text.ptr[text.len - 1] == ']'))
        return true;
    if (*text.ptr >= '0' && *text.ptr <= '9') /* nearly always */
        return false;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (ep_span_eq(text, words[i]))
            return true;
    return false;
}

/* n hexadecimal digits at p into value; the lower-case digits into out. */
static bool hex(const char *p, size_t n, char *out)
{
    for (size_t i = 0; i < n; i++) {
        char c = p[i];

        if (c >= 'A' && c <= 'F')
            c = (char)(c + ('a' - 'A'));
        if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f')))
            return false;
        out[i] = c;
    }
    return true;
}

struct ep_span ep_gauge_pci(struct ep_span text, char buf[EP_GAUGE_PCI_MAX])
{
    char digits[8];
    size_t domain = text.len == 16 ? 8 : 4, zeros = 0;
    const char *p = text.ptr + domain;

    /* domain, then ":8d:00.0" */
    if ((text.len != 16 && text.len != 12) || p[0] != ':' || p[3] != ':' ||
        p[6] != '.' || !hex(text.ptr, domain, digits))
        return text;
    while (zeros + 4 < domain && digits[zeros] == '0')
        zeros++;
    domain -= zeros;
    memcpy(buf, digits + zeros, domain);
    memcpy(buf + domain, p, 8);
    if (!hex(p + 1, 2, buf + domain + 1) || !hex(p + 4, 2, buf + domain + 4) ||
        !hex(p + 7, 1, buf + domain + 7))
        return text;
    return (struct ep_span){buf, domain + 8};
}

struct ep_span ep_gauge_trim(struct ep_span s)
{
    while (s.len && (*s.ptr == ' ' || *s.ptr == '\t' || *s.ptr == '\r')) {
        s.ptr++;
        s.len--;
    }
    while (s.len && (s.ptr[s.len - 1] == ' ' || s.ptr[s.len - 1] == '\t' ||
                     s.ptr[s.len - 1] == '\r'))
        s.len--;
    return s;
}
