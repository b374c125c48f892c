/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pattern.c - see pattern.h: what wraps PCRE2.
 *
 * Everything about a group is decided when it is compiled (its key, its unit),
 * so that a match is a loop over the groups that took part.
 */
#include "config.h"

#include "record/pattern.h"

#include "base/mem.h"
#include "record/pattern_literal.h"
#include "record/pattern_value.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#ifdef HAVE_PCRE2

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

/*
 * How much a match may cost. What uses the limit up takes 3 ms a line where
 * PCRE2 makes machine code of it, 26 ms where it interprets it.
 */
#define MATCH_LIMIT 1000000
#define DEPTH_LIMIT 100000
#define HEAP_LIMIT_KIB 16384
#define JIT_STACK_BYTES ((size_t)1 << 20)

/* A group that is there, and the key that it becomes. */
struct group {
    const struct ep_pattern_unit *unit; /* NULL: in the text, or none */
    uint32_t number;
    enum ep_key key;
};

struct constant {
    enum ep_key key;
    char *text;
    double num; /* where the key is a number */
};

struct pattern {
    char *name;
    enum ep_type type;
    struct ep_literal literal;
    int section; /* -1: any */
    enum ep_pattern_bars bars;
    pcre2_code *code;
    bool machine; /* code was compiled for the machine */
    struct group *groups;
    size_t ngroups;
    struct constant *constants;
    size_t nconstants;
};

struct ep_patterns {
    struct pattern *v; /* [n] */
    size_t n, cap;
    struct ep_literal *sections; /* [nsections] headings, all different */
    size_t nsections, sections_cap;
    struct ep_literals any; /* one of these is in a line of interest */
    pcre2_match_context *context;
    pcre2_jit_stack *stack;
    pcre2_match_data *data; /* large enough for all of them; NULL at first */
};

struct ep_patterns *ep_patterns_new(void)
{
    struct ep_patterns *p = ep_calloc(1, sizeof *p);
    struct ep_literal escape; /* may be in the middle of another literal */

    ep_literal_set(&escape, "\x1b", 1);
    ep_literals_add(&p->any, &escape);
    p->any.tail = false; /* there is nothing behind it to break */
    p->context = pcre2_match_context_create(NULL);
    if (p->context) {
        (void)pcre2_set_match_limit(p->context, MATCH_LIMIT);
        (void)pcre2_set_depth_limit(p->context, DEPTH_LIMIT);
        (void)pcre2_set_heap_limit(p->context, HEAP_LIMIT_KIB);
        p->stack =
            pcre2_jit_stack_create((size_t)32 << 10, JIT_STACK_BYTES, NULL);
        if (p->stack)
            pcre2_jit_stack_assign(p->context, NULL, p->stack);
    }
    return p;
}

static void free_pattern(struct pattern *pat)
{
    free(pat->name);
    pcre2_code_free(pat->code);
    free(pat->groups);
    for (size_t i = 0; i < pat->nconstants; i++)
        free(pat->constants[i].text);
    free(pat->constants);
}

void ep_patterns_free(struct ep_patterns *p)
{
    if (!p)
        return;
    for (size_t i = 0; i < p->n; i++)
        free_pattern(&p->v[i]);
    free(p->v);
    free(p->sections);
    ep_literals_free(&p->any);
    pcre2_match_data_free(p->data);
    pcre2_match_context_free(p->context);
    pcre2_jit_stack_free(p->stack);
    free(p);
}

size_t ep_patterns_count(const struct ep_patterns *p)
{
    return p->n;
}

/* ==== Compiling ==== */

static int find_type(const char *name, enum ep_type *type, struct ep_error *err)
{
    char shown[40];

    for (int t = 0; t < EP_TYPES; t++)
        if (strcmp(ep_type_table[t].name, name) == 0) {
            *type = (enum ep_type)t;
            return 0;
        }
    return ep_error_set(err, EP_EFORMAT,
                        "'%s' is no type of evenpace-record(5)",
                        ep_escape(shown, sizeof shown, name, strlen(name)));
}

static int compile_regex(struct pattern *pat, const char *regex,
                         struct ep_pattern_fault *fault, struct ep_error *err)
{
    PCRE2_UCHAR why[160];
    PCRE2_SIZE where;
    int code;

    pat->code = pcre2_compile((PCRE2_SPTR)regex, PCRE2_ZERO_TERMINATED,
                              PCRE2_DUPNAMES | PCRE2_NEVER_UTF |
                                  PCRE2_NEVER_BACKSLASH_C,
                              &code, &where, NULL);
    if (!pat->code) {
        if (pcre2_get_error_message(code, why, sizeof why) < 0)
            why[0] = '\0';
        if (fault) {
            fault->at = where;
            return ep_error_set(err, EP_EFORMAT, "%s", (const char *)why);
        }
        return ep_error_set(err, EP_EFORMAT, "byte %zu: %s", where,
                            (const char *)why);
    }
    /* Where there is no compiler for the machine it is interpreted. */
    pat->machine = pcre2_jit_compile(pat->code, PCRE2_JIT_COMPLETE) == 0;
    ep_literal_find(&pat->literal, regex);
    return 0;
}

/* The entries of PCRE2's table of names: number (2 bytes), name, NUL. */
static int take_groups(struct pattern *pat, struct ep_error *err)
{
    uint32_t count = 0, size = 0;
    PCRE2_SPTR entry = NULL;
    int rc = 0;

    (void)pcre2_pattern_info(pat->code, PCRE2_INFO_NAMECOUNT, &count);
    (void)pcre2_pattern_info(pat->code, PCRE2_INFO_NAMEENTRYSIZE, &size);
    (void)pcre2_pattern_info(pat->code, PCRE2_INFO_NAMETABLE, &entry);
    if (count == 0)
        return ep_error_set(err, EP_EFORMAT, "no named group in it");
    pat->groups = ep_calloc(count, sizeof *pat->groups);
    for (uint32_t i = 0; i < count && rc == 0; i++, entry += size) {
        struct group *g = &pat->groups[pat->ngroups++];
        const char *name = (const char *)entry + 2;

        g->number = (uint32_t)entry[0] << 8 | entry[1];
        rc = ep_pattern_key((struct ep_span){name, strlen(name)}, &g->key,
                            &g->unit, err);
    }
    return rc;
}

static int take_constant(struct pattern *pat, const struct ep_pattern_set *set,
                         struct ep_error *err)
{
    struct constant *c = &pat->constants[pat->nconstants];
    const struct ep_pattern_unit *unit;
    struct ep_strip_zone zone = {.known = false};
    struct ep_record r;
    int rc = ep_pattern_key((struct ep_span){set->key, strlen(set->key)},
                            &c->key, &unit, err);

    if (rc < 0)
        return rc;
    c->text = ep_strdup(set->value);
    pat->nconstants++;
    ep_record_begin(&r, pat->type);
    rc =
        ep_pattern_value(&r, c->key, (struct ep_span){c->text, strlen(c->text)},
                         unit, &zone, err);
    if (rc < 0)
        return rc;
    if (!ep_record_has(&r, c->key))
        return ep_error_set(err, EP_EFORMAT, "%s is set to nothing", set->key);
    c->num = r.v[c->key].num;
    return 0;
}

/* Will its records have all keys that they need? */
static int check_needs(const struct pattern *pat, struct ep_error *err)
{
    const enum ep_key *need = ep_type_table[pat->type].need;

    for (int i = 0; i < 8 && need[i] != EP_K_TYPE; i++) {
        bool found = need[i] == EP_K_TS;

        for (size_t j = 0; j < pat->ngroups; j++)
            found = found || pat->groups[j].key == need[i];
        for (size_t j = 0; j < pat->nconstants; j++)
            found = found || pat->constants[j].key == need[i];
        if (!found)
            return ep_error_set(err, EP_EFORMAT,
                                "a %s record needs %s, and no group is "
                                "named so",
                                ep_type_table[pat->type].name,
                                ep_key_table[need[i]].name);
    }
    return 0;
}

static int compile(struct pattern *pat, const struct ep_pattern_spec *spec,
                   struct ep_error *err)
{
    struct ep_pattern_fault none = {.at = 0};
    struct ep_pattern_fault *fault = spec->fault ? spec->fault : &none;
    int rc;

    *fault = (struct ep_pattern_fault){.in = EP_FAULT_PATTERN};
    rc = find_type(spec->type, &pat->type, err);
    if (rc < 0)
        return rc;
    fault->in = EP_FAULT_REGEX;
    rc = compile_regex(pat, spec->regex, spec->fault, err);
    if (rc == 0)
        rc = take_groups(pat, err);
    if (rc < 0)
        return rc;
    fault->in = EP_FAULT_SET;
    pat->constants = ep_calloc(spec->nset + 1, sizeof *pat->constants);
    for (size_t i = 0; i < spec->nset; i++) {
        fault->at = i;
        rc = take_constant(pat, &spec->set[i], err);
        if (rc < 0)
            return rc;
    }
    *fault = (struct ep_pattern_fault){.in = EP_FAULT_PATTERN};
    return check_needs(pat, err);
}

/* The number of a heading. */
static int find_section(struct ep_patterns *p, const char *text)
{
    struct ep_literal l;

    ep_literal_set(&l, text, strlen(text));
    for (size_t i = 0; i < p->nsections; i++)
        if (p->sections[i].len == l.len &&
            memcmp(p->sections[i].text, l.text, l.len) == 0)
            return (int)i;
    p->sections = ep_grow(p->sections, &p->sections_cap, p->nsections + 1,
                          sizeof *p->sections);
    p->sections[p->nsections] = l;
    ep_literals_add(&p->any, &l);
    return (int)p->nsections++;
}

/* Room for the groups of pattern pat too. */
static int make_room(struct ep_patterns *p, const struct pattern *pat,
                     struct ep_error *err)
{
    uint32_t count = 0;

    (void)pcre2_pattern_info(pat->code, PCRE2_INFO_CAPTURECOUNT, &count);
    if (!p->data || pcre2_get_ovector_count(p->data) < count + 1) {
        pcre2_match_data_free(p->data);
        p->data = pcre2_match_data_create(count + 1, NULL);
    }
    if (!p->data || !p->context)
        return ep_error_set(err, EP_ELIMIT, "no memory for it");
    return 0;
}

int ep_patterns_add(struct ep_patterns *p, const struct ep_pattern_spec *spec,
                    struct ep_error *err)
{
    struct pattern pat = {.section = -1, .bars = spec->bars};
    char shown[64];
    int rc;

    (void)ep_escape(shown, sizeof shown, spec->name, strlen(spec->name));
    if (p->n == EP_PATTERNS_MAX)
        rc = ep_error_set(err, EP_ELIMIT, "there are %d already",
                          EP_PATTERNS_MAX);
    else
        rc = compile(&pat, spec, err);
    if (rc == 0)
        rc = make_room(p, &pat, err);
    if (rc < 0) {
        free_pattern(&pat);
        (void)ep_error_prefix(err, "%spattern '%s'",
                              spec->fault ? "" : "cannot use ", shown);
        return rc;
    }
    if (spec->after)
        pat.section = find_section(p, spec->after);
    else
        ep_literals_add(&p->any, &pat.literal);
    pat.name = ep_strdup(shown);
    p->v = ep_grow(p->v, &p->cap, p->n + 1, sizeof *p->v);
    p->v[p->n++] = pat;
    return 0;
}

/* ==== Matching ==== */

bool ep_pattern_begin(struct ep_pattern_cursor *c, const struct ep_patterns *p,
                      struct ep_span line)
{
    c->line = line;
    c->stripped = c->barred = c->begun = false;
    c->at = 0;
    if (c->section < 0 && !ep_literals_any(&p->any, line.ptr, line.len))
        return false;
    for (size_t i = 0; i < p->nsections; i++)
        if (ep_literal_in(&p->sections[i], line.ptr, line.len))
            c->section = (int)i;
    c->odd = memchr(line.ptr, '\x1b', line.len) != NULL;
    return p->n > 0;
}

/* What of the line is matched next; false if the pattern had all of it. */
static bool next_text(struct ep_pattern_cursor *c, const struct pattern *pat,
                      struct ep_span *text)
{
    struct ep_span bar;
    bool any = false;

    if (c->begun)
        return pat->bars == EP_BARS_EVERY && ep_strip_next_bar(&c->rest, text);
    c->begun = true;
    if (pat->bars == EP_BARS_NONE) {
        if (!c->stripped)
            ep_strip(c->line.ptr, c->line.len, &c->scratch, &c->strip);
        c->stripped = true;
        *text = c->strip.text;
        return true;
    }
    if (!c->barred)
        ep_strip_bars(c->line.ptr, c->line.len, &c->bars_scratch, &c->bars);
    c->barred = true;
    c->rest = c->bars.text;
    if (pat->bars == EP_BARS_EVERY)
        return ep_strip_next_bar(&c->rest, text);
    while (ep_strip_next_bar(&c->rest, &bar)) {
        *text = bar;
        any = true;
    }
    return any;
}

/* The time of a text: a date that it begins with; else the prefix's, ... */
static double time_of(struct ep_pattern_cursor *c, const struct ep_strip *strip,
                      struct ep_span s)
{
    double ts;

    if (s.len && (*s.ptr == '[' || *s.ptr == '(')) {
        s.ptr++;
        s.len--;
    }
    if (!ep_strip_stamp(&c->clock.zone, s.ptr, s.len, &ts))
        ts = ep_strip_when(&c->clock.zone, strip);
    return ep_log_clock_at(&c->clock, ts);
}

/* What the launcher said of the process, where no group did. */
static void set_identity(const struct ep_strip *s, struct ep_record *r)
{
    if (s->rank >= 0 && !ep_record_has(r, EP_K_RANK))
        ep_record_set_int(r, EP_K_RANK, s->rank);
    if (s->pid >= 0 && !ep_record_has(r, EP_K_PID))
        ep_record_set_int(r, EP_K_PID, s->pid);
    if (s->host.len && !ep_record_has(r, EP_K_HOST))
        ep_record_set_span(r, EP_K_HOST, s->host);
}

/* What the groups of a match have; text is what was matched. */
static int set_groups(struct ep_pattern_cursor *c, const struct ep_patterns *p,
                      const struct pattern *pat, const char *text,
                      struct ep_record *r, struct ep_error *err)
{
    const PCRE2_SIZE *at = pcre2_get_ovector_pointer(p->data);

    for (size_t i = 0; i < pat->ngroups; i++) {
        const struct group *g = &pat->groups[i];
        size_t place = (size_t)2 * g->number;
        PCRE2_SIZE from = at[place], to = at[place + 1];
        int rc;

        if (from == PCRE2_UNSET || to < from)
            continue; /* it took no part; \K in a lookahead */
        rc = ep_pattern_value(r, g->key,
                              (struct ep_span){text + from, to - from}, g->unit,
                              &c->clock.zone, err);
        if (rc < 0)
            return rc;
    }
    return 0;
}

/* The record of a match. */
static int make_record(struct ep_pattern_cursor *c, const struct ep_patterns *p,
                       const struct pattern *pat, struct ep_span text,
                       struct ep_record *r, struct ep_error *err)
{
    const struct ep_strip *strip =
        pat->bars == EP_BARS_NONE ? &c->strip : &c->bars;
    const enum ep_key *need = ep_type_table[pat->type].need;
    int rc;

    ep_record_begin(r, pat->type);
    for (size_t i = 0; i < pat->nconstants; i++) {
        const struct constant *k = &pat->constants[i];

        if (ep_key_value(pat->type, k->key) == EP_V_STRING)
            ep_record_set_str(r, k->key, k->text);
        else
            ep_record_set_num(r, k->key, k->num);
    }
    rc = set_groups(c, p, pat, text.ptr, r, err);
    if (rc < 0)
        return rc;
    if (ep_record_has(r, EP_K_TS))
        (void)ep_log_clock_at(&c->clock, ep_record_num(r, EP_K_TS));
    else
        ep_record_set_num(r, EP_K_TS, time_of(c, strip, text));
    set_identity(strip, r);
    for (int i = 0; i < 8 && need[i] != EP_K_TYPE; i++)
        if (!ep_record_has(r, need[i]))
            return ep_error_set(err, EP_EFORMAT, "no %s",
                                ep_key_table[need[i]].name);
    return 0;
}

/* 1: r is its record, 0: it does not match, or an error. */
static int try_pattern(struct ep_pattern_cursor *c, const struct ep_patterns *p,
                       const struct pattern *pat, struct ep_span text,
                       struct ep_record *r, struct ep_error *err)
{
    PCRE2_SPTR s = (PCRE2_SPTR)text.ptr;
    int rc;

    if (pat->machine) /* the same without a check of its arguments */
        rc = pcre2_jit_match(pat->code, s, text.len, 0, 0, p->data, p->context);
    else
        rc = pcre2_match(pat->code, s, text.len, 0, 0, p->data, p->context);
    if (rc == PCRE2_ERROR_NOMATCH)
        return 0;
    if (rc < 0) {
        c->rest.len = 0; /* once a line is enough */
        return ep_error_set(err, EP_ELIMIT, "pattern '%s': %s", pat->name,
                            rc == PCRE2_ERROR_MATCHLIMIT ||
                                    rc == PCRE2_ERROR_DEPTHLIMIT ||
                                    rc == PCRE2_ERROR_HEAPLIMIT ||
                                    rc == PCRE2_ERROR_JIT_STACKLIMIT
                                ? "takes too long with this line"
                                : "cannot be matched");
    }
    rc = make_record(c, p, pat, text, r, err);
    if (rc < 0) {
        (void)ep_error_prefix(err, "pattern '%s'", pat->name);
        return rc;
    }
    return 1;
}

/* Can the pattern match the line at all? */
static bool is_possible(const struct ep_pattern_cursor *c,
                        const struct pattern *pat)
{
    return (pat->section < 0 || pat->section == c->section) &&
           (c->odd || ep_literal_in(&pat->literal, c->line.ptr, c->line.len));
}

int ep_pattern_next(struct ep_pattern_cursor *c, const struct ep_patterns *p,
                    struct ep_record *r, struct ep_error *err)
{
    while (c->at < p->n) {
        const struct pattern *pat = &p->v[c->at];
        struct ep_span text;
        int rc;

        if ((c->begun || is_possible(c, pat)) && next_text(c, pat, &text)) {
            rc = try_pattern(c, p, pat, text, r, err);
            if (rc)
                return rc;
        } else {
            c->at++;
            c->begun = false;
        }
    }
    return 0;
}

#else /* HAVE_PCRE2 */

struct ep_patterns {
    char none;
};

struct ep_patterns *ep_patterns_new(void)
{
    return ep_calloc(1, sizeof(struct ep_patterns));
}

void ep_patterns_free(struct ep_patterns *p)
{
    free(p);
}

size_t ep_patterns_count(const struct ep_patterns *p)
{
    (void)p;
    return 0;
}

int ep_patterns_add(struct ep_patterns *p, const struct ep_pattern_spec *spec,
                    struct ep_error *err)
{
    char shown[64];

    (void)p;
    if (spec->fault)
        *spec->fault = (struct ep_pattern_fault){.in = EP_FAULT_PATTERN};
    return ep_error_set(
        err, EP_EMISSING, "cannot use pattern '%s': built without PCRE2",
        ep_escape(shown, sizeof shown, spec->name, strlen(spec->name)));
}

bool ep_pattern_begin(struct ep_pattern_cursor *c, const struct ep_patterns *p,
                      struct ep_span line)
{
    (void)p;
    c->line = line;
    return false;
}

int ep_pattern_next(struct ep_pattern_cursor *c, const struct ep_patterns *p,
                    struct ep_record *r, struct ep_error *err)
{
    (void)c;
    (void)p;
    (void)r;
    (void)err;
    return 0;
}

#endif /* HAVE_PCRE2 */

/* ==== With and without PCRE2 ==== */

void ep_pattern_cursor_init(struct ep_pattern_cursor *c, double mtime)
{
    *c = (struct ep_pattern_cursor){.section = -1};
    ep_log_clock_init(&c->clock, mtime);
    ep_buf_init(&c->scratch);
    ep_buf_init(&c->bars_scratch);
}

void ep_pattern_cursor_free(struct ep_pattern_cursor *c)
{
    ep_buf_free(&c->scratch);
    ep_buf_free(&c->bars_scratch);
}
