/* SPDX-License-Identifier: Apache-2.0 */
/* megatron_timers.c - see megatron_timers.h. */
#include "config.h"

#include "record/megatron_timers.h"

#include <string.h>

/* Lines of others in a list, one after the other, at most. */
#define FOREIGN_MAX 8

/* Dots fill up to here. */
#define COLUMN 48

#define PREFIX "megatron_timer_"

static bool at_end(struct ep_cursor *c)
{
    ep_cursor_blanks(c);
    return c->p == c->end;
}

/* "forward-backward ......: " */
static bool take_dotted(struct ep_cursor *c, struct ep_span *name)
{
    const char *dots;

    ep_cursor_blanks(c);
    *name = ep_cursor_word(c);
    if (!name->len || !ep_cursor_lit(c, " "))
        return false;
    dots = c->p;
    while (c->p < c->end && *c->p == '.')
        c->p++;
    if (c->p == dots && name->len + 1 < COLUMN)
        return false;
    return ep_cursor_lit(c, ": ");
}

static bool take_spread(struct ep_megatron_timers *t, struct ep_cursor c)
{
    if (!take_dotted(&c, &t->timer))
        return false;
    if (t->option == EP_MEGATRON_MAX) {
        if (!ep_log_number(&c, -3, &t->high) || !at_end(&c))
            return false;
        t->values = 1;
        return true;
    }
    if (!ep_cursor_lit(&c, "(") || !ep_log_number(&c, -3, &t->low) ||
        !ep_cursor_lit(&c, ", ") || !ep_log_number(&c, -3, &t->high) ||
        !ep_cursor_lit(&c, ")") || !at_end(&c))
        return false;
    t->values = 2;
    return true;
}

/* "     rank  0: 12.34" */
static bool take_rank(struct ep_megatron_timers *t, struct ep_cursor c)
{
    if (!t->name_len || !ep_cursor_lit(&c, "rank "))
        return false;
    ep_cursor_blanks(&c);
    if (!ep_cursor_uint(&c, &t->rank) || !ep_cursor_lit(&c, ": ") ||
        !ep_log_number(&c, -3, &t->high) || !at_end(&c))
        return false;
    t->timer = (struct ep_span){t->name, t->name_len};
    t->values = 1;
    return true;
}

/* One of these, or "  name:" which they follow. */
static bool take_ranked(struct ep_megatron_timers *t, struct ep_cursor c)
{
    const char *begin = c.p;
    struct ep_span name;

    ep_cursor_blanks(&c);
    if (c.p == begin)
        return false;
    if (take_rank(t, c))
        return true;
    name = ep_cursor_word(&c);
    if (!at_end(&c) || name.len < 2 || name.ptr[name.len - 1] != ':' ||
        name.len > sizeof t->name)
        return false;
    t->name_len = name.len - 1;
    memcpy(t->name, name.ptr, t->name_len);
    return true;
}

static bool take_timer(struct ep_megatron_timers *t, struct ep_cursor c)
{
    return t->option == EP_MEGATRON_ALL ? take_ranked(t, c) : take_spread(t, c);
}

/* From the same process as the header? */
static bool is_ours(const struct ep_strip *a, const struct ep_strip *b)
{
    return a->rank == b->rank && a->local_rank == b->local_rank &&
           a->task == b->task && a->pid == b->pid;
}

/* What "worker-0: (min, max) time" has in front may be in front of each. */
static void keep_lead(struct ep_megatron_timers *t, const char *begin,
                      const char *end)
{
    t->lead_len = 0;
    if (end - begin < 3 || end - begin > EP_MEGATRON_NAME_MAX ||
        memcmp(end - 2, ": ", 2) != 0)
        return;
    t->lead_len = (size_t)(end - begin);
    memcpy(t->lead, begin, t->lead_len);
}

static bool take_header(struct ep_megatron_timers *t, struct ep_log *log,
                        struct ep_cursor c)
{
    static const struct {
        enum ep_megatron_option option;
        const char *text;
    } headers[] = {
        {EP_MEGATRON_MINMAX, "(min, max) time across ranks (ms):"},
        {EP_MEGATRON_MAX, "max time across ranks (ms):"},
        {EP_MEGATRON_ALL, "times across ranks (ms):"},
    };

    for (size_t i = 0; i < sizeof headers / sizeof headers[0]; i++) {
        const char *mark = ep_log_find(&c, headers[i].text);

        if (!mark)
            continue;
        t->option = headers[i].option;
        t->header = log->line;
        t->left = FOREIGN_MAX;
        t->name_len = 0;
        keep_lead(t, c.p, mark);
        (void)ep_log_time(log, mark, NULL);
        (void)ep_cursor_find(&c, headers[i].text);
        /* who joins lines writes the first timer here */
        (void)take_timer(t, c);
        return true;
    }
    return false;
}

bool ep_megatron_timers_line(struct ep_megatron_timers *t, struct ep_log *log)
{
    struct ep_span text = log->line.text;
    struct ep_cursor c = {text.ptr, text.ptr + text.len}, at = c;

    t->values = 0;
    if (t->left) {
        if (t->lead_len && text.len >= t->lead_len &&
            memcmp(at.p, t->lead, t->lead_len) == 0)
            at.p += t->lead_len;
        if (is_ours(&t->header, &log->line) && take_timer(t, at)) {
            t->left = FOREIGN_MAX;
            return true;
        }
        t->left--;
    }
    return take_header(t, log, c);
}

bool ep_megatron_timers_next(struct ep_megatron_timers *t, struct ep_log *log,
                             struct ep_record *r)
{
    while (t->values) {
        bool low = t->values-- == 2;
        double ts = ep_log_time(log, log->line.text.ptr, NULL);
        const char *name = ep_log_name(log, PREFIX, t->timer,
                                       t->option == EP_MEGATRON_ALL ? ""
                                       : low                        ? "_min"
                                                                    : "_max");

        if (!name)
            continue;
        ep_log_gauge(log, ts, name, low ? t->low : t->high, "s", r);
        if (t->option == EP_MEGATRON_ALL)
            ep_record_set_int(r, EP_K_RANK, t->rank);
        return true;
    }
    return false;
}
