/* SPDX-License-Identifier: Apache-2.0 */
/* record_text.c - see record_text.h. */
#include "config.h"

#include "record/record_text.h"

#include "record/event_text.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>

/* Local time; false without ts, or far outside of what a calendar has. */
static bool local_time(double ts, struct tm *tm)
{
    time_t whole = (time_t)(ts < 1e12 ? floor(ts) : 0);

    return ts < 1e12 && localtime_r(&whole, tm);
}

/* "-- 2026-11-30 UTC --", if it is not what was printed last. */
static void add_day(struct ep_record_text *t, const struct tm *tm,
                    struct ep_buf *out)
{
    char day[sizeof t->day];

    if (strftime(day, sizeof day, "-- %Y-%m-%d %Z --\n", tm) == 0 ||
        strcmp(day, t->day) == 0)
        return;
    memcpy(t->day, day, sizeof day);
    ep_buf_adds(out, day);
}

/* "03:14:15.926" */
static void add_clock(double ts, const struct tm *tm, struct ep_buf *out)
{
    ep_buf_addf(out, "%02d:%02d:%02d.%03d", tm->tm_hour, tm->tm_min, tm->tm_sec,
                (int)((ts - floor(ts)) * 1000));
}

void ep_record_text_free(struct ep_record_text *t)
{
    ep_episodes_free(t->episodes);
    *t = (struct ep_record_text){.episodes = NULL};
}

void ep_record_print_text(struct ep_record_text *t, const struct ep_record *r,
                          struct ep_buf *out)
{
    double ts = ep_record_num(r, EP_K_TS);
    struct tm tm;

    if (local_time(ts, &tm))
        add_day(t, &tm, out);
    if (r->type == EP_EVENT) {
        if (!t->episodes)
            t->episodes = ep_episodes_new();
        ep_event_print_text(r, ep_episodes_take(t->episodes, r), out);
        return;
    }
    if (local_time(ts, &tm)) {
        add_clock(ts, &tm, out);
    } else {
        ep_buf_addf(out, "%12s", "");
    }
    ep_buf_addf(out, " %-7s", ep_type_table[r->type].name);
    for (int k = EP_K_TS + 1; k < EP_KEYS; k++) {
        enum ep_value kind = ep_key_value(r->type, (enum ep_key)k);

        if (!ep_record_has(r, (enum ep_key)k))
            continue;
        ep_buf_addf(out, " %s=", ep_key_table[k].name);
        if (kind == EP_V_NUMBER || kind == EP_V_INTEGER)
            ep_buf_addf(out, kind == EP_V_INTEGER ? "%.0f" : "%.7g",
                        r->v[k].num);
        else
            ep_buf_add_escaped(out, r->v[k].str.ptr, r->v[k].str.len);
    }
    ep_buf_addc(out, '\n');
}
