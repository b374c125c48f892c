/* SPDX-License-Identifier: Apache-2.0 */
/* event_tally.c - see event_tally.h. */
#include "config.h"

#include "record/event_tally.h"

#include "base/intern.h"
#include "base/mem.h"
#include "record/event_text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Of the slow, so many are named in the first line of a check; so many
   messages are kept. */
enum { NAMED = 3, MESSAGES = 20 };

/* What is still slow, as text. */
struct shown {
    double factor;
    char *line, *why;
};

/* An episode of which we were told. */
struct told {
    bool missing; /* and has not come back */
    double hours; /* that it cost, as far as that was told */
    char *line, *why;
};

struct ep_tally {
    struct ep_episodes *episodes;
    uint64_t onsets, missing, updates, reliefs, spikes;
    struct ep_intern *eids;
    struct told *told;
    size_t told_cap;
    uint64_t open; /* slow at the end */
    double worst;
    size_t n;
    struct shown shown[EP_TALLY_SHOWN];
    struct ep_buf key, text;
    char *message[MESSAGES];
    size_t messages; /* all of them */
};

struct ep_tally *ep_tally_new(void)
{
    struct ep_tally *t = ep_calloc(1, sizeof *t);

    t->episodes = ep_episodes_new();
    t->eids = ep_intern_new();
    t->worst = 1;
    ep_buf_init(&t->key);
    ep_buf_init(&t->text);
    return t;
}

void ep_tally_free(struct ep_tally *t)
{
    if (!t)
        return;
    for (size_t i = 0; i < ep_intern_count(t->eids); i++) {
        free(t->told[i].line);
        free(t->told[i].why);
    }
    for (size_t i = 0; i < t->n; i++) {
        free(t->shown[i].line);
        free(t->shown[i].why);
    }
    for (size_t i = 0; i < t->messages && i < MESSAGES; i++)
        free(t->message[i]);
    ep_episodes_free(t->episodes);
    ep_intern_free(t->eids);
    ep_buf_free(&t->key);
    ep_buf_free(&t->text);
    free(t->told);
    free(t);
}

static struct told *told_of(struct ep_tally *t, const struct ep_record *r)
{
    struct ep_span job = ep_record_str(r, EP_K_JOB);
    struct ep_span eid = ep_record_str(r, EP_K_EID);
    size_t known = ep_intern_count(t->eids);
    long i;

    ep_buf_reset(&t->key);
    ep_buf_addf(&t->key, "%zu:", job.len);
    ep_buf_add(&t->key, job.ptr ? job.ptr : "", job.len);
    ep_buf_add(&t->key, eid.ptr ? eid.ptr : "", eid.len);
    i = ep_intern_add(t->eids, (struct ep_span){t->key.ptr, t->key.len},
                      SIZE_MAX);
    if ((size_t)i == known) {
        t->told = ep_grow(t->told, &t->told_cap, known + 1, sizeof *t->told);
        t->told[i] = (struct told){.missing = false};
    }
    return &t->told[i];
}

/* What an event says, kept for the end. */
static void keep(struct ep_tally *t, struct told *x, const struct ep_record *r)
{
    ep_buf_reset(&t->text);
    ep_event_add_who(r, &t->text);
    ep_event_add_since(r, &t->text);
    free(x->line);
    x->line = ep_strndup(t->text.ptr, t->text.len);
    ep_buf_reset(&t->text);
    ep_event_add_why(r, &t->text);
    free(x->why);
    x->why = ep_strndup(t->text.len ? t->text.ptr : "", t->text.len);
}

enum ep_event_news ep_tally_event(struct ep_tally *t, const struct ep_record *r)
{
    enum ep_event_news news = ep_episodes_take(t->episodes, r);
    struct ep_span kind = ep_record_str(r, EP_K_KIND);
    double hours = ep_record_num(r, EP_K_GPU_HOURS);
    bool missing = ep_span_eq(kind, "missing");
    bool onset = missing || ep_span_eq(kind, "onset");
    bool relief = ep_span_eq(kind, "relief");
    struct told *x;

    t->spikes += ep_span_eq(kind, "spike");
    if (!onset && !relief)
        return news;
    if (news != EP_EVENT_FIRST)
        t->updates++;
    else
        *(relief ? &t->reliefs : missing ? &t->missing : &t->onsets) += 1;
    x = told_of(t, r);
    x->missing = missing;
    if (!isnan(hours))
        x->hours = hours;
    if (onset)
        keep(t, x, r);
    return news;
}

/* Keep the slowest; of equal ones those that came first. */
static void show(struct ep_tally *t, double factor, const char *line,
                 const char *why)
{
    size_t at = t->n;

    while (at > 0 && t->shown[at - 1].factor < factor)
        at--;
    if (at == EP_TALLY_SHOWN)
        return;
    if (t->n == EP_TALLY_SHOWN) {
        free(t->shown[t->n - 1].line);
        free(t->shown[t->n - 1].why);
    } else {
        t->n++;
    }
    for (size_t i = t->n - 1; i > at; i--)
        t->shown[i] = t->shown[i - 1];
    t->shown[at] = (struct shown){factor, ep_strdup(line), ep_strdup(why)};
}

void ep_tally_open(struct ep_tally *t, const struct ep_record *r)
{
    struct told *x = told_of(t, r);
    double factor = ep_record_num(r, EP_K_FACTOR);
    char *why = x->why; /* an open episode has no evidence with it */

    x->missing =
        x->missing || ep_span_eq(ep_record_str(r, EP_K_KIND), "missing");
    x->why = NULL;
    keep(t, x, r);
    if (why) {
        free(x->why);
        x->why = why;
    }
    if (x->missing)
        return; /* is listed from what was told */
    t->open++;
    if (factor > t->worst)
        t->worst = factor;
    show(t, isnan(factor) ? 1 : factor, x->line, x->why);
}

bool ep_tally_found(const struct ep_tally *t)
{
    return t->onsets + t->missing > 0;
}

static uint64_t count_missing(const struct ep_tally *t)
{
    uint64_t n = 0;

    for (size_t i = 0; i < ep_intern_count(t->eids); i++)
        n += t->told[i].missing;
    return n;
}

/* One line for each of what is missing and slow, EP_TALLY_SHOWN of either. */
static void list(const struct ep_tally *t, const char *missing,
                 const char *slow, bool why, struct ep_buf *out)
{
    uint64_t gone = 0;

    for (size_t i = 0; i < ep_intern_count(t->eids); i++) {
        if (!t->told[i].missing || ++gone > EP_TALLY_SHOWN)
            continue;
        ep_buf_addf(out, "%s%s\n", missing, t->told[i].line);
        if (why && *t->told[i].why)
            ep_buf_addf(out, "  %s\n", t->told[i].why);
    }
    if (gone > EP_TALLY_SHOWN)
        ep_buf_addf(out, "... and %llu more missing\n",
                    (unsigned long long)(gone - EP_TALLY_SHOWN));
    for (size_t i = 0; i < t->n; i++) {
        ep_buf_addf(out, "%s%s\n", slow, t->shown[i].line);
        if (why && *t->shown[i].why)
            ep_buf_addf(out, "  %s\n", t->shown[i].why);
    }
    if (t->open > t->n)
        ep_buf_addf(out, "... and %llu more\n",
                    (unsigned long long)(t->open - t->n));
}

void ep_tally_print_open(const struct ep_tally *t, struct ep_buf *out)
{
    list(t, "still missing: ", "still slow: ", false, out);
}

static void add_count(struct ep_buf *b, uint64_t n, const char *one,
                      const char *many)
{
    ep_buf_addf(b, "%llu %s", (unsigned long long)n, n == 1 ? one : many);
}

void ep_tally_print_counts(const struct ep_tally *t, struct ep_buf *out)
{
    add_count(out, t->onsets, "onset", "onsets");
    if (t->missing) {
        ep_buf_adds(out, ", ");
        add_count(out, t->missing, "missing", "missing");
    }
    if (t->updates) {
        ep_buf_adds(out, ", ");
        add_count(out, t->updates, "update", "updates");
    }
    ep_buf_adds(out, ", ");
    add_count(out, t->reliefs, "relief", "reliefs");
    ep_buf_adds(out, ", ");
    add_count(out, t->spikes, "spike", "spikes");
}

void ep_tally_message(struct ep_tally *t, const char *text)
{
    if (t->messages++ < MESSAGES)
        t->message[t->messages - 1] = ep_strdup(text);
}

/* ==== A check of a monitoring system ==== */

static double hours_of(const struct ep_tally *t)
{
    double sum = 0;

    for (size_t i = 0; i < ep_intern_count(t->eids); i++)
        sum += t->told[i].hours;
    return sum;
}

/* "1 missing: rank=7 (n2) since step 90; 2 stragglers: rank=3 2.03x .., .." */
static void add_findings(const struct ep_tally *t, uint64_t gone,
                         struct ep_buf *b)
{
    uint64_t k = 0;

    if (gone) {
        ep_buf_addf(b, "%llu missing: ", (unsigned long long)gone);
        for (size_t i = 0; i < ep_intern_count(t->eids) && k < NAMED; i++)
            if (t->told[i].missing)
                ep_buf_addf(b, "%s%s", k++ ? ", " : "", t->told[i].line);
        if (gone > k)
            ep_buf_adds(b, ", ...");
        ep_buf_adds(b, t->open ? "; " : "");
    }
    if (t->open) {
        add_count(b, t->open, "straggler: ", "stragglers: ");
        for (k = 0; k < t->n && k < NAMED; k++)
            ep_buf_addf(b, "%s%s", k ? ", " : "", t->shown[k].line);
        ep_buf_adds(b, t->open > k ? ", ..." : "");
    }
}

/* What a '|' begins is data: there is none in names. */
static void mask(struct ep_buf *b, size_t from)
{
    for (char *p = b->ptr + from; (p = strchr(p, '|'));)
        *p = '/';
}

/* worst=2.03;1.1;1.5;1 of which both thresholds are ranges that end there. */
static void add_data(const struct ep_tally *t, const struct ep_nagios *how,
                     uint64_t gone, struct ep_buf *b)
{
    ep_buf_addf(b, " | stragglers=%llu;%s;;0 worst=%.10g;",
                (unsigned long long)t->open, how->warning > 1 ? "" : "0",
                t->worst);
    if (how->warning > 1)
        ep_buf_addf(b, "%.10g", how->warning);
    ep_buf_addf(b, ";%.10g;1 missing=%llu;;0;0 gpu_hours=%.6g;;;0\n",
                how->critical, (unsigned long long)gone, hours_of(t));
}

int ep_tally_print_nagios(const struct ep_tally *t, const struct ep_nagios *how,
                          struct ep_buf *out)
{
    static const char *const words[] = {"OK", "WARNING", "CRITICAL", "UNKNOWN"};
    uint64_t gone = count_missing(t);
    size_t from = out->len;
    /* what is printed as the threshold has reached it */
    double worst = t->worst * (1 + 1e-9);
    int status = EP_NAGIOS_OK;

    if (how->trouble)
        status = EP_NAGIOS_UNKNOWN;
    else if (gone || (t->open && worst >= how->critical))
        status = EP_NAGIOS_CRITICAL;
    else if (t->open && worst >= how->warning)
        status = EP_NAGIOS_WARNING;
    ep_buf_addf(out, "%s %s - ", how->name, words[status]);
    if (how->trouble && t->messages)
        ep_buf_addf(out, "%s%s", t->message[0], gone || t->open ? "; " : "");
    if (!how->trouble && !gone && !t->open)
        ep_buf_adds(out, "no stragglers");
    add_findings(t, gone, out);
    mask(out, from);
    add_data(t, how, gone, out);
    from = out->len;
    list(t, "missing: ", "slow: ", true, out);
    ep_tally_print_counts(t, out);
    ep_buf_addf(out, " in %s\n", how->read);
    for (size_t i = how->trouble; i < t->messages && i < MESSAGES; i++)
        ep_buf_addf(out, "%s\n", t->message[i]);
    mask(out, from);
    return status;
}
