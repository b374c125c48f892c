/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sim_text.c - see sim_text.h.
 *
 * A line is a list of cells, made once for all forms: JSON and tab-separated
 * values take key and value, the table takes title and text.
 */
#include "config.h"

#include "lsgd/sim_text.h"

#include "base/json_write.h"
#include "base/mem.h"
#include "base/num.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum kind { ABSENT, STRING, WHOLE, REAL };

enum { CELLS = 28, TEXT = EP_ENV_NAME_BYTES + 16 };

struct cell {
    const char *key;   /* NULL: in the table only */
    const char *title; /* NULL: not in the table */
    enum kind kind;
    uint64_t whole;
    double real;
    char text[TEXT];     /* as the table has it; the string of a STRING */
    const char *message; /* in its place, if not NULL; not in the table */
};

struct line {
    const char *type;
    size_t n;
    struct cell cell[CELLS];
};

/* ==== Cells ==== */

static struct cell *add(struct line *l, const char *key, const char *title,
                        enum kind kind)
{
    struct cell *c = &l->cell[l->n++];

    *c = (struct cell){.key = key, .title = title, .kind = kind};
    return c;
}

static void add_string(struct line *l, const char *key, const char *title,
                       const char *s)
{
    struct cell *c = add(l, key, title, STRING);

    (void)snprintf(c->text, sizeof c->text, "%s", s);
}

/* shown: the method has such a thing. */
static void add_whole(struct line *l, const char *key, const char *title,
                      uint64_t v, bool shown)
{
    struct cell *c = add(l, key, title, shown ? WHOLE : ABSENT);

    c->whole = v;
    if (shown)
        (void)snprintf(c->text, sizeof c->text, "%llu", (unsigned long long)v);
}

enum form { DIGITS, PERCENT, BYTES, HOURS };

/* Three, with the zeros at the end. */
static void add_digits(struct ep_buf *b, double v)
{
    ep_buf_addf(b, v < 99.95 ? "%#.3g" : "%.0f", v);
}

static void add_real(struct line *l, const char *key, const char *title,
                     double v, enum form form, bool shown)
{
    struct cell *c = add(l, key, title, shown ? REAL : ABSENT);
    struct ep_buf b;

    c->real = v;
    if (!shown)
        return;
    ep_buf_init(&b);
    if (form == PERCENT)
        ep_buf_addf(&b, "%.0f%%", 100 * v);
    else if (form == BYTES)
        ep_num_format_si(&b, v, "B");
    else
        add_digits(&b, form == HOURS ? v / 3600 : v);
    (void)snprintf(c->text, sizeof c->text, "%s", b.ptr);
    ep_buf_free(&b);
}

static double ratio(double a, double b)
{
    return b > 0 ? a / b : 0;
}

/* Mean and maximum: two keys, one column. */
static void add_staleness(struct line *l, const char *mean, const char *max,
                          const char *title, const struct ep_sim_tier *t)
{
    double m = ratio(t->sum, (double)t->updates);
    struct cell *c;

    add_real(l, mean, NULL, m, DIGITS, t->updates > 0);
    add_whole(l, max, NULL, t->max, t->updates > 0);
    c = add(l, NULL, title, t->updates ? STRING : ABSENT);
    if (t->updates)
        (void)snprintf(c->text, sizeof c->text,
                       m < 9.95 ? "%.1f/%llu" : "%.0f/%llu", m,
                       (unsigned long long)t->max);
}

/* A message, which is longer than a cell. */
static void add_failed(struct line *l, const char *why)
{
    add(l, "failed", NULL, why ? STRING : ABSENT)->message = why;
}

/* What a run is called, in every kind of line. */
static void begin_line(struct line *l, const char *type,
                       const struct ep_sim_row *r)
{
    *l = (struct line){.type = type};
    add_string(l, "method", "method", ep_method_names[r->method]);
    add_whole(l, "H", "H", r->settings->h, true);
    add_whole(l, "K", "K", r->settings->k, r->method == EP_METHOD_HALOS);
}

static void run_line(const struct ep_sim_row *r, struct line *l)
{
    static const struct ep_sim_result none;
    const struct ep_sim_result *o = r->result ? r->result : &none;
    bool ran = r->result != NULL;
    bool halos = ran && r->method == EP_METHOD_HALOS;
    bool barrier = r->method != EP_METHOD_HALOS && r->method != EP_METHOD_ASYNC;
    struct ep_sim_tier gps = o->gps;

    if (barrier)
        gps.updates = 0; /* never stale: not worth a column */
    begin_line(l, "sim", r);
    add_real(l, "seconds", "hours", o->seconds, HOURS, ran);
    add_real(l, "speed", "speed", r->speed, DIGITS, ran);
    add_whole(l, "gps_updates", "G", o->gps.updates, ran);
    add_whole(l, "lps_updates", "L", o->lps.updates, halos);
    add_whole(l, "worker_updates", NULL, o->worker_updates, ran);
    add_staleness(l, "gps_staleness_mean", "gps_staleness_max", "lag G", &gps);
    add_staleness(l, "lps_staleness_mean", "lps_staleness_max", "lag L",
                  &o->lps);
    add_real(l, "bytes_between", "between", o->between, BYTES, ran);
    add_real(l, "bytes_inside", "inside", o->inside, BYTES, ran);
    add_real(l, "unsent", "unsent",
             ratio((double)o->unsent, (double)o->lps.updates), PERCENT, halos);
    add_whole(l, "unsent_updates", NULL, o->unsent, halos);
    add_whole(l, "pending_updates", NULL, o->pending, halos);
    add_real(l, "link_load", NULL, o->load, DIGITS, ran && !barrier);
    add_whole(l, "steps", NULL, o->steps, ran);
    add_whole(l, "failures", NULL, o->failures, ran);
    add_whole(l, "steps_lost", NULL, o->steps_lost, ran);
    add_whole(l, "events", NULL, o->events, ran);
    add_failed(l, r->failed);
}

/* What failures have cost, for a table of its own. */
static void failures_line(const struct ep_sim_row *r, struct line *l)
{
    bool ran = r->result != NULL;

    begin_line(l, "", r);
    add_whole(l, NULL, "failures", ran ? r->result->failures : 0, ran);
    add_whole(l, NULL, "lost", ran ? r->result->steps_lost : 0, ran);
}

static void region_line(const struct ep_sim_row *r, size_t region,
                        struct line *l)
{
    const struct ep_sim_region *o = &r->result->region[region];
    bool halos = r->method == EP_METHOD_HALOS;

    begin_line(l, "sim_region", r);
    add_string(l, "region", "region", r->env->region[region].name);
    add_whole(l, "workers", "workers", r->env->region[region].workers, true);
    add_whole(l, "worker_updates", "updates", o->updates, true);
    add_whole(l, "sent_updates", "sent", o->sent, halos);
    add_real(
        l, "unsent", "unsent",
        ratio((double)o->unsent, (double)(o->sent + o->unsent + o->pending)),
        PERCENT, halos);
    add_whole(l, "unsent_updates", NULL, o->unsent, halos);
    add_whole(l, "pending_updates", "pending", o->pending, halos);
}

void ep_sim_worker_name(const struct ep_env *env, size_t worker,
                        struct ep_buf *out)
{
    const struct ep_env_region *r = &env->region[env->region_of[worker]];

    ep_buf_addf(out, "%s/%zu", r->name, worker - r->first);
}

static void worker_line(const struct ep_sim_row *r, size_t worker,
                        struct line *l)
{
    const struct ep_sim_worker *o = &r->result->worker[worker];
    bool failures = r->result->failures > 0;
    struct ep_buf name;

    ep_buf_init(&name);
    ep_sim_worker_name(r->env, worker, &name);
    begin_line(l, "sim_worker", r);
    add_string(l, "worker", "worker", name.ptr);
    add_real(l, "relative_speed", "pace",
             r->env->speed[worker] / r->env->fastest, DIGITS, true);
    add_whole(l, "local_steps", "H_i", o->h, true);
    add_whole(l, "worker_updates", "updates", o->updates, true);
    add_real(l, "busy", "busy", ratio(o->busy, r->result->seconds), PERCENT,
             true);
    add_whole(l, "failures", NULL, o->failures, true);
    add_whole(l, "steps_lost", NULL, o->steps_lost, true);
    add_whole(l, NULL, "failures", o->failures, failures);
    add_whole(l, NULL, "lost", o->steps_lost, failures);
    ep_buf_free(&name);
}

/* ==== JSON Lines and tab-separated values ==== */

static void print_json(const struct line *l, struct ep_buf *out)
{
    struct ep_jw w;

    ep_jw_init(&w, out);
    ep_jw_begin_object(&w);
    ep_jw_key_string(&w, "type", l->type);
    for (size_t i = 0; i < l->n; i++) {
        const struct cell *c = &l->cell[i];

        if (!c->key || c->kind == ABSENT)
            continue;
        ep_jw_key(&w, c->key);
        if (c->kind == STRING)
            ep_jw_string(&w, c->message ? c->message : c->text);
        else if (c->kind == WHOLE)
            ep_jw_uint(&w, c->whole);
        else
            ep_jw_double(&w, c->real);
    }
    ep_jw_end_object(&w);
    ep_jw_newline(&w);
}

static void print_tsv(const struct line *l, bool header, struct ep_buf *out)
{
    struct ep_jw w;

    ep_buf_adds(out, header ? "type" : l->type);
    for (size_t i = 0; i < l->n; i++) {
        const struct cell *c = &l->cell[i];

        if (!c->key)
            continue;
        ep_buf_addc(out, '\t');
        ep_jw_init(&w, out);
        if (header)
            ep_buf_adds(out, c->key);
        else if (c->kind == STRING)
            ep_buf_adds(out, c->message ? c->message : c->text);
        else if (c->kind == WHOLE)
            ep_jw_uint(&w, c->whole);
        else if (c->kind == REAL)
            ep_jw_double(&w, c->real);
    }
    ep_buf_addc(out, '\n');
}

void ep_sim_jsonl(const struct ep_sim_row *rows, size_t n, bool detail,
                  struct ep_buf *out)
{
    struct line l;

    for (size_t i = 0; i < n; i++) {
        run_line(&rows[i], &l);
        print_json(&l, out);
        if (!detail || !rows[i].result)
            continue;
        for (size_t r = 0; r < rows[i].env->nregions; r++) {
            region_line(&rows[i], r, &l);
            print_json(&l, out);
        }
        for (size_t w = 0; w < rows[i].env->nworkers; w++) {
            worker_line(&rows[i], w, &l);
            print_json(&l, out);
        }
    }
}

void ep_sim_tsv(const struct ep_sim_row *rows, size_t n, bool detail,
                struct ep_buf *out)
{
    struct line l;
    bool first = true; /* of those with detail */

    for (size_t i = 0; i < n; i++) {
        run_line(&rows[i], &l);
        if (i == 0)
            print_tsv(&l, true, out);
        print_tsv(&l, false, out);
        if (!detail || !rows[i].result)
            continue;
        for (size_t r = 0; r < rows[i].env->nregions; r++) {
            region_line(&rows[i], r, &l);
            if (first && r == 0)
                print_tsv(&l, true, out);
            print_tsv(&l, false, out);
        }
        for (size_t w = 0; w < rows[i].env->nworkers; w++) {
            worker_line(&rows[i], w, &l);
            if (first && w == 0)
                print_tsv(&l, true, out);
            print_tsv(&l, false, out);
        }
        first = false;
    }
}

/* ==== The table ==== */

/* Columns from the how manieth cell on; those that no line has are left out.
   Text is put at the left, numbers at the right. */
static void print_table(const struct line *l, size_t n, size_t from,
                        struct ep_buf *out)
{
    size_t width[CELLS] = {0};

    for (size_t c = from; c < l[0].n; c++) {
        for (size_t i = 0; i < n; i++)
            if (strlen(l[i].cell[c].text) > width[c])
                width[c] = strlen(l[i].cell[c].text);
        if (!l[0].cell[c].title)
            width[c] = 0;
        else if (width[c] && strlen(l[0].cell[c].title) > width[c])
            width[c] = strlen(l[0].cell[c].title);
    }
    for (size_t i = 0; i <= n; i++) {
        for (size_t c = from; c < l[0].n; c++) {
            const char *s = i ? l[i - 1].cell[c].text : l[0].cell[c].title;
            int pad = (int)width[c];

            if (pad)
                ep_buf_addf(out, "%s%*s", c > from ? " " : "",
                            c == from ? -pad : pad, *s ? s : "-");
        }
        ep_buf_addc(out, '\n');
    }
}

static void print_detail(const struct ep_sim_row *r, struct ep_buf *out)
{
    const struct ep_env *env = r->env;
    size_t most = env->nworkers > env->nregions ? env->nworkers : env->nregions;
    struct line *l = ep_calloc(most, sizeof *l);

    ep_buf_addf(out, "\n%s", ep_method_names[r->method]);
    ep_buf_addf(out, " H %llu", (unsigned long long)r->settings->h);
    if (r->method == EP_METHOD_HALOS)
        ep_buf_addf(out, " K %llu", (unsigned long long)r->settings->k);
    ep_buf_addc(out, '\n');
    for (size_t i = 0; i < env->nregions; i++)
        region_line(r, i, &l[i]);
    print_table(l, env->nregions, 3, out);
    for (size_t i = 0; i < env->nworkers; i++)
        worker_line(r, i, &l[i]);
    print_table(l, env->nworkers, 3, out);
    free(l);
}

/* The settings of each run, and what failures have cost it, if any did. */
static void print_failures(const struct ep_sim_row *rows, size_t n,
                           struct line *l, bool legend, struct ep_buf *out)
{
    bool any = false;

    for (size_t i = 0; i < n; i++) {
        failures_line(&rows[i], &l[i]);
        any = any || (rows[i].result && rows[i].result->failures);
    }
    if (!any)
        return;
    ep_buf_addc(out, '\n');
    print_table(l, n, 0, out);
    if (legend)
        ep_buf_adds(out,
                    "failures: of workers; lost: local steps that "
                    "were trained for nothing\n");
}

void ep_sim_text(const struct ep_sim_row *rows, size_t n, bool detail,
                 bool legend, struct ep_buf *out)
{
    struct line *l = ep_calloc(n, sizeof *l);

    for (size_t i = 0; i < n; i++)
        run_line(&rows[i], &l[i]);
    if (n)
        print_table(l, n, 0, out);
    if (legend)
        ep_buf_adds(out,
                    "speed: times that of the slowest row; G, L: updates "
                    "of the global server and\n"
                    "of the regions'; lag: staleness, mean/max; bytes "
                    "between regions and inside\n");
    print_failures(rows, n, l, legend, out);
    free(l);
    for (size_t i = 0; detail && i < n; i++)
        if (rows[i].result)
            print_detail(&rows[i], out);
}
