/* SPDX-License-Identifier: Apache-2.0 */
/* event_text.c - see event_text.h. */
#include "config.h"

#include "record/event_text.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>

/* Width of a terminal, and of the column of times. */
enum { COLUMNS = 80, INDENT = 10 };

void ep_event_add_wrapped(struct ep_buf *out, const char *text, size_t indent)
{
    size_t column = 0;

    while (*text) {
        size_t word = strcspn(text, " ");

        if (column && column + 1 + word > COLUMNS) {
            ep_buf_addc(out, '\n');
            column = 0;
        }
        if (!column) {
            ep_buf_addf(out, "%*s", (int)indent, "");
            column = indent;
        } else {
            ep_buf_addc(out, ' ');
            column++;
        }
        ep_buf_add(out, text, word);
        column += word;
        text += word;
        text += *text == ' ';
    }
    ep_buf_addc(out, '\n');
}

static void add_clock(struct ep_buf *b, double ts)
{
    time_t whole = (time_t)(ts < 1e12 ? ts : 0);
    struct tm tm;
    char s[16] = "?";

    if (ts < 1e12 && localtime_r(&whole, &tm))
        (void)strftime(s, sizeof s, "%H:%M:%S", &tm);
    ep_buf_adds(b, s);
}

static void add_name(struct ep_buf *b, struct ep_span s)
{
    if (s.ptr)
        ep_buf_add_escaped(b, s.ptr, s.len);
}

static bool has_scope(const struct ep_record *r, const char *scope)
{
    return ep_span_eq(ep_record_str(r, EP_K_SCOPE), scope);
}

void ep_event_add_who(const struct ep_record *r, struct ep_buf *out)
{
    /* whose ids do not say what they are of */
    bool worded =
        has_scope(r, "stage") || has_scope(r, "link") || has_scope(r, "group");
    struct ep_span id = ep_record_str(r, EP_K_ID);
    struct ep_span job = ep_record_str(r, EP_K_JOB);
    struct ep_span host = ep_record_str(r, EP_K_HOST);

    if (!id.len || worded) {
        add_name(out, ep_record_str(r, EP_K_SCOPE));
        if (job.len || id.len)
            ep_buf_addc(out, ' ');
    }
    add_name(out, job);
    if (id.len) {
        if (job.len)
            ep_buf_addc(out, '/');
        add_name(out, id);
    }
    if (host.len && (!id.len || !has_scope(r, "host"))) {
        ep_buf_adds(out, " (");
        add_name(out, host);
        ep_buf_addc(out, ')');
    }
}

static bool is_kind(const struct ep_record *r, const char *kind)
{
    return ep_span_eq(ep_record_str(r, EP_K_KIND), kind);
}

void ep_event_add_since(const struct ep_record *r, struct ep_buf *out)
{
    double factor = ep_record_num(r, EP_K_FACTOR);
    int64_t step = ep_record_int(r, EP_K_STEP, -1);

    if (!isnan(factor) && !is_kind(r, "missing"))
        ep_buf_addf(out, factor < 1000 ? " %.2fx" : " %.3gx", factor);
    ep_buf_adds(out, " since ");
    if (step >= 0)
        ep_buf_addf(out, "step %lld", (long long)step);
    else
        add_clock(out, ep_record_num(r, EP_K_SINCE));
}

void ep_event_add_why(const struct ep_record *r, struct ep_buf *out)
{
    struct ep_span cause = ep_record_str(r, EP_K_CAUSE);
    struct ep_span evidence = ep_record_str(r, EP_K_EVIDENCE);
    double hours = ep_record_num(r, EP_K_GPU_HOURS);

    add_name(out, cause);
    if (cause.len && evidence.len)
        ep_buf_adds(out, ": ");
    add_name(out, evidence);
    if (!isnan(hours))
        ep_buf_addf(out, "%s%.2g device hours lost",
                    cause.len || evidence.len ? ", " : "", hours);
}

/* Can the eid be seen from job, id and step: job/id@.., the only such one? */
static bool is_plain(const struct ep_record *r)
{
    struct ep_span eid = ep_record_str(r, EP_K_EID);
    struct ep_span id = ep_record_str(r, EP_K_ID);
    struct ep_span job = ep_record_str(r, EP_K_JOB);
    struct ep_buf b;
    bool same;

    ep_buf_init(&b);
    if (job.len) {
        ep_buf_add(&b, job.ptr, job.len);
        ep_buf_addc(&b, '/');
    }
    if (id.len)
        ep_buf_add(&b, id.ptr, id.len);
    else
        ep_buf_adds(&b, "job");
    ep_buf_addc(&b, '@');
    same = eid.ptr && eid.len >= b.len && memcmp(eid.ptr, b.ptr, b.len) == 0 &&
           !memchr(eid.ptr + b.len, '#', eid.len - b.len);
    ep_buf_free(&b);
    return same && ep_record_has(r, EP_K_STEP);
}

static void add_kind(const struct ep_record *r, enum ep_event_news news,
                     struct ep_buf *b)
{
    struct ep_span kind = ep_record_str(r, EP_K_KIND);
    size_t begin = b->len;

    if (is_kind(r, "missing"))
        ep_buf_adds(b, "MISSING");
    else if (news == EP_EVENT_WORSE)
        ep_buf_adds(b, "worse");
    else if (news == EP_EVENT_UPDATE)
        ep_buf_adds(b, "update");
    else if (is_kind(r, "onset"))
        ep_buf_adds(b, "ONSET");
    else
        add_name(b, kind);
    ep_buf_addf(b, "%*s", b->len - begin < 6 ? (int)(6 + begin - b->len) : 0,
                "");
}

void ep_event_print_text(const struct ep_record *r, enum ep_event_news news,
                         struct ep_buf *out)
{
    struct ep_span eid = ep_record_str(r, EP_K_EID);
    double p = ep_record_num(r, EP_K_P);
    size_t begin = out->len;
    struct ep_buf line;

    ep_buf_init(&line);
    add_clock(&line, ep_record_num(r, EP_K_TS));
    ep_buf_addf(out, "%-8s  ", line.ptr);
    add_kind(r, news, out);
    ep_buf_adds(out, "  ");
    ep_event_add_who(r, out);
    ep_buf_reset(&line);
    ep_event_add_since(r, &line);
    if (!isnan(p))
        ep_buf_addf(&line, ", sure %.2f", p);
    if (out->len - begin + line.len > COLUMNS)
        ep_buf_addf(out, "\n%*s", INDENT - 1, "");
    ep_buf_adds(out, line.ptr);
    ep_buf_addc(out, '\n');
    ep_buf_reset(&line);
    ep_event_add_why(r, &line);
    if (line.len)
        ep_event_add_wrapped(out, line.ptr, INDENT);
    if (!is_plain(r)) {
        ep_buf_addf(out, "%*seid ", INDENT, "");
        add_name(out, eid);
        ep_buf_addc(out, '\n');
    }
    ep_buf_free(&line);
}
