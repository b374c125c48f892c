/* SPDX-License-Identifier: Apache-2.0 */
/* align.c - see align.h. */
#include "config.h"

#include "record/align.h"

#include "base/json.h"
#include "base/json_write.h"
#include "base/num.h"
#include "base/table.h"

#include <math.h>
#include <string.h>
#include <sys/stat.h>

/* Hosts that are named one by one. */
#define NAMED 5

int ep_align_check(const char *const *paths, int n, struct ep_error *err)
{
    static const char cannot[] =
        "cannot use --align-clocks: it reads the input twice, and";
    char name[80];

    if (n == 0)
        return ep_error_set(err, EP_EUSAGE, "%s standard input is no file",
                            cannot);
    for (int i = 0; i < n; i++) {
        struct stat st;

        if (strcmp(paths[i], "-") == 0)
            return ep_error_set(err, EP_EUSAGE, "%s standard input is no file",
                                cannot);
        if (!strstr(paths[i], "://") &&
            (stat(paths[i], &st) != 0 || S_ISREG(st.st_mode) ||
             S_ISDIR(st.st_mode)))
            continue;
        return ep_error_set(
            err, EP_EUSAGE, "%s %s is no file", cannot,
            ep_escape(name, sizeof name, paths[i], strlen(paths[i])));
    }
    return 0;
}

struct ep_clock_table *ep_align_estimate(const char *const *paths, int n,
                                         const struct ep_stream_config *how)
{
    struct ep_stream_config config = {
        .no_merge = true, .world = how->world, .from = how->from};
    struct ep_clock_skew *skew = ep_clock_skew_new(0);
    struct ep_stream *s = ep_stream_open(paths, n, &config);
    struct ep_clock_table *t;
    const struct ep_record *r;

    while (ep_stream_next(s, &r, NULL, NULL) > 0)
        ep_clock_skew_take(skew, r);
    ep_stream_close(s);
    t = ep_clock_skew_solve(skew);
    ep_clock_skew_free(skew);
    return t;
}

/* ==== Records ==== */

static bool is_off(const struct ep_clock_host *h)
{
    return h && (h->line.offset != 0 || h->line.rate != 0);
}

bool ep_align_concerns(struct ep_clock_table *t, const struct ep_record *r)
{
    return r->type != EP_OTHER && ep_record_has(r, EP_K_HOST) &&
           is_off(ep_clock_table_find(t, ep_record_str(r, EP_K_HOST)));
}

static void correct(const struct ep_clock_host *h, struct ep_record *r,
                    enum ep_key k)
{
    if (ep_record_has(r, k))
        r->v[k].num = fmax(0, ep_clock_line_correct(&h->line, r->v[k].num));
}

void ep_align_record(void *table, struct ep_record *r)
{
    const struct ep_clock_host *h;

    if (r->type == EP_OTHER || !ep_record_has(r, EP_K_HOST))
        return;
    h = ep_clock_table_find(table, ep_record_str(r, EP_K_HOST));
    if (!is_off(h))
        return;
    correct(h, r, EP_K_TS);
    correct(h, r, EP_K_SINCE);
}

/* Is it ts or since? Else EP_K_TYPE. A name may be written with escapes. */
static enum ep_key time_key(const struct ep_json_value *key,
                            struct ep_buf *room)
{
    static const enum ep_key times[] = {EP_K_TS, EP_K_SINCE};
    struct ep_span name = key->raw;

    if (key->escaped) {
        ep_buf_reset(room);
        ep_json_unescape(key, room);
        name = (struct ep_span){room->ptr, room->len};
    }
    for (size_t i = 0; i < sizeof times / sizeof *times; i++)
        if (ep_span_eq(name, ep_key_table[times[i]].name))
            return times[i];
    return EP_K_TYPE;
}

void ep_align_line(const struct ep_line *line, const struct ep_record *r,
                   struct ep_buf *out)
{
    const char *copied = line->ptr, *end = line->ptr + line->len;
    struct ep_json_value key, v;
    struct ep_buf room;
    struct ep_json j;
    int rc = ep_json_begin(&j, line->ptr, line->len, &v, NULL);

    ep_buf_init(&room);
    ep_json_enter(&j);
    while (rc == 0 && ep_json_next(&j, &key, &v) > 0) {
        enum ep_key k = time_key(&key, &room);
        struct ep_jw w;

        if (k == EP_K_TYPE || v.kind != EP_JSON_NUMBER || !ep_record_has(r, k))
            continue;
        ep_buf_add(out, copied, (size_t)(v.raw.ptr - copied));
        ep_jw_init(&w, out);
        ep_jw_double(&w, r->v[k].num);
        copied = v.raw.ptr + v.raw.len;
    }
    ep_buf_add(out, copied, (size_t)(end - copied));
    ep_buf_addc(out, '\n');
    ep_buf_free(&room);
}

/* ==== Words ==== */

static const char *reference(const struct ep_clock_table *t, uint32_t group)
{
    size_t n;
    const struct ep_clock_host *h = ep_clock_table_hosts(t, &n);

    for (size_t i = 0; i < n; i++)
        if (h[i].line.known && h[i].line.reference && h[i].line.group == group)
            return h[i].name;
    return "";
}

static void add_name(struct ep_buf *b, const char *name)
{
    ep_buf_add_escaped(b, name, strlen(name));
}

void ep_align_gauge(const struct ep_clock_table *t,
                    const struct ep_clock_host *host, struct ep_record *r,
                    struct ep_buf *room)
{
    const struct ep_clock_line *l = &host->line;

    ep_buf_reset(room);
    ep_buf_addf(room, "from %llu collectives, spread ",
                (unsigned long long)l->n);
    ep_num_format_duration(room, l->spread);
    ep_buf_adds(room, ", error ");
    ep_num_format_duration(room, l->error);
    ep_buf_addf(room, ", drift %.3g ppm", l->rate * 1e6);
    if (l->reference) {
        ep_buf_adds(room, ", the reference");
    } else {
        ep_buf_adds(room, ", relative to ");
        ep_buf_adds(room, reference(t, l->group));
    }
    ep_record_begin(r, EP_GAUGE);
    ep_record_set_num(r, EP_K_TS, l->t0);
    ep_record_set_str(r, EP_K_HOST, host->name);
    ep_record_set_str(r, EP_K_NAME, "clock_offset");
    ep_record_set_num(r, EP_K_VALUE, ep_clock_line_ahead(l));
    ep_record_set_str(r, EP_K_UNIT, "s");
    ep_record_set_str(r, EP_K_EVIDENCE, room->ptr);
}

static void add_row(struct ep_table *table, const struct ep_clock_host *h,
                    size_t groups)
{
    const struct ep_clock_line *l = &h->line;

    add_name(ep_table_cell(table), h->name);
    ep_num_format_duration(ep_table_cell(table), ep_clock_line_ahead(l));
    ep_num_format_duration(ep_table_cell(table), l->error);
    if (l->rate != 0)
        ep_buf_addf(ep_table_cell(table), "%.3g ppm", l->rate * 1e6);
    else
        ep_buf_adds(ep_table_cell(table), "-");
    ep_buf_addf(ep_table_cell(table), "%llu", (unsigned long long)l->n);
    ep_num_format_duration(ep_table_cell(table), l->spread);
    if (groups > 1)
        ep_buf_addf(ep_table_cell(table), "%u", (unsigned)l->group + 1);
    ep_buf_adds(ep_table_cell(table), l->reference ? "reference" : "");
}

void ep_align_text(const struct ep_clock_table *t, struct ep_buf *out)
{
    static const char *const heads[] = {"host",  "offset",      "error",
                                        "drift", "collectives", "spread"};
    size_t n, groups = ep_clock_table_groups(t);
    const struct ep_clock_host *h = ep_clock_table_hosts(t, &n);
    struct ep_table table;

    ep_table_init(&table, groups > 1 ? 8 : 7, 0x3e);
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++)
        ep_buf_adds(ep_table_cell(&table), heads[i]);
    if (groups > 1)
        ep_buf_adds(ep_table_cell(&table), "group");
    ep_buf_adds(ep_table_cell(&table), "");
    for (size_t i = 0; i < n; i++)
        if (h[i].line.known)
            add_row(&table, &h[i], groups);
    ep_table_print(&table, "", out);
    ep_table_free(&table);
}

void ep_align_say_corrected(const struct ep_clock_table *t, struct ep_buf *out)
{
    size_t n, off = 0, known = 0;
    const struct ep_clock_host *h = ep_clock_table_hosts(t, &n), *worst = NULL;
    double ahead, most = 0;

    for (; known < n && h[known].line.known; known++) {
        if (!is_off(&h[known]))
            continue;
        off++;
        ahead = ep_clock_line_ahead(&h[known].line);
        if (!worst || fabs(ahead) > fabs(most)) {
            worst = &h[known];
            most = ahead;
        }
    }
    if (!worst) {
        ep_buf_adds(out, "no clock was corrected: ");
        if (known)
            ep_buf_addf(out, "those of %zu hosts agree", known);
        else
            ep_buf_adds(out,
                        "there is no collective of two hosts with ts, "
                        "host and seq in the input");
        return;
    }
    ep_buf_addf(out,
                "corrected the clocks of %zu hosts from %llu collectives, ",
                off, (unsigned long long)ep_clock_table_used(t));
    ep_buf_adds(out, "most that of ");
    add_name(out, worst->name);
    ep_buf_adds(out, ", which was ");
    ep_num_format_duration(out, fabs(most));
    ep_buf_adds(out, most < 0 ? " behind " : " ahead of ");
    add_name(out, reference(t, worst->line.group));
}

void ep_align_say_unknown(const struct ep_clock_table *t, struct ep_buf *out)
{
    size_t n, unknown = 0;
    const struct ep_clock_host *h = ep_clock_table_hosts(t, &n);

    while (unknown < n && !h[n - 1 - unknown].line.known)
        unknown++;
    if (!unknown)
        return;
    ep_buf_addf(out,
                "%zu hosts share no collective with another, their clocks "
                "are not compared:",
                unknown);
    for (size_t i = 0; i < unknown && i < NAMED; i++) {
        ep_buf_adds(out, i ? ", " : " ");
        add_name(out, h[n - unknown + i].name);
    }
    if (unknown > NAMED)
        ep_buf_adds(out, ", ...");
}

void ep_align_say_groups(const struct ep_clock_table *t, struct ep_buf *out)
{
    size_t n, groups = ep_clock_table_groups(t);
    const struct ep_clock_host *h = ep_clock_table_hosts(t, &n);

    if (groups < 2)
        return;
    ep_buf_addf(out,
                "hosts are in %zu groups that share no collective, each "
                "with a clock of its own:",
                groups);
    for (size_t i = 0, told = 0; i < n && told < NAMED; i++)
        if (h[i].line.known && h[i].line.reference) {
            ep_buf_adds(out, told++ ? ", " : " ");
            add_name(out, h[i].name);
        }
    if (groups > NAMED)
        ep_buf_adds(out, ", ...");
}

void ep_align_say_ambiguous(const struct ep_clock_table *t, struct ep_buf *out)
{
    if (ep_clock_table_ambiguous(t))
        ep_buf_addf(out,
                    "%llu collectives were not used: the same comm and "
                    "comm_rank on two hosts",
                    (unsigned long long)ep_clock_table_ambiguous(t));
}
