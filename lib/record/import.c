/* SPDX-License-Identifier: Apache-2.0 */
/* import.c - see import.h: the table of formats, and sources. */
#include "config.h"

#include "record/import.h"

#include "base/clock.h"
#include "base/input.h"
#include "base/mem.h"
#include "base/url.h"
#include "record/importers.h"
#include "record/nccl_text.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

const struct ep_importer *const ep_importers[] = {
    &ep_import_inspector,
    &ep_import_ras,
    &ep_import_nccl_debug,
    &ep_import_timeline,
    &ep_import_kineto,
    &ep_import_megatron,
    &ep_import_deepspeed,
    &ep_import_nvrx,
    &ep_import_prometheus,
    &ep_import_smi,
    &ep_import_dmon,
    &ep_import_fr,
    &ep_import_nccl_tests,
    &ep_import_pickle,
    &ep_import_records,
    &ep_import_pattern,
    NULL,
};

const struct ep_importer *ep_importer_find(const char *name)
{
    for (int i = 0; ep_importers[i]; i++)
        if (strcmp(ep_importers[i]->name, name) == 0)
            return ep_importers[i];
    return NULL;
}

const struct ep_importer *ep_importer_guess(const char *head, size_t len,
                                            const char *name)
{
    const struct ep_importer *best = NULL;
    const char *slash = strrchr(name, '/');
    int most = 0;

    for (int i = 0; ep_importers[i]; i++) {
        int sure = ep_importers[i]->sniff(head, len, slash ? slash + 1 : name);

        if (sure > most) {
            most = sure;
            best = ep_importers[i];
        }
    }
    return best;
}

static double time_of(const char *path)
{
    struct stat st;

    if (strcmp(path, "-") != 0 && stat(path, &st) == 0 && S_ISREG(st.st_mode))
        return (double)st.st_mtim.tv_sec + 1e-9 * (double)st.st_mtim.tv_nsec;
    return ep_clock_now(&ep_clock_wall);
}

/* Choose the importer by the first bytes. EP_EAGAIN if they are not there. */
static int choose(struct ep_source *s, struct ep_error *err)
{
    const char *head;
    ssize_t n = ep_input_peek(s->input, &head, err);

    if (n < 0)
        return (int)n;
    if (n > 0)
        s->importer = ep_importer_guess(head, (size_t)n, s->name);
    s->over = n == 0;
    if (n > 0 && !s->importer)
        return ep_error_set(err, EP_EFORMAT,
                            "cannot read %s: not a format that is known "
                            "(see tlmcat --formats)",
                            s->name);
    return 0;
}

static void begin(struct ep_source *s)
{
    s->begun = true;
    if (s->importer && s->importer->begin)
        s->self = s->importer->begin(s);
}

/*
 * The host of a URL, RFC 3986 section 3.2: between "//" and the next '/', '?' or
 * '#', without user and port; as records have it. NULL if there is none.
 */
static char *host_of(const char *url)
{
    const char *p = strstr(url, "//") + 2, *end = p + strcspn(p, "/?#");
    struct ep_span host;

    for (const char *at; (at = memchr(p, '@', (size_t)(end - p)));)
        p = at + 1;
    if (p < end && *p == '[') {
        const char *close = memchr(p, ']', (size_t)(end - p));

        p++;
        end = close ? close : end;
    } else {
        const char *port = memchr(p, ':', (size_t)(end - p));

        end = port ? port : end;
    }
    host = ep_nccl_host((struct ep_span){p, (size_t)(end - p)});
    return host.len ? ep_strndup(host.ptr, host.len) : NULL;
}

int ep_source_start(struct ep_source *s, const char *path,
                    const struct ep_source_how *how, struct ep_error *err)
{
    struct ep_error why = {.code = 0};

    *s = (struct ep_source){.importer = how->from,
                            .give_up = how->give_up,
                            .give_up_ctx = how->give_up_ctx};
    s->input = ep_input_open_within(path, how->limits, &why);
    if (s->input && how->follow && ep_input_follow(s->input, &why) < 0) {
        ep_input_close(s->input);
        s->input = NULL;
    }
    if (!s->input) {
        if (err)
            *err = why;
        return why.code;
    }
    if (how->on_wait)
        ep_input_on_wait(s->input, how->on_wait, how->on_wait_ctx);
    ep_input_stop(s->input, how->stop);
    if (how->buffer_bytes)
        ep_input_small(s->input, how->buffer_bytes);
    s->name = ep_input_name(s->input);
    s->mtime = time_of(path);
    s->host = ep_url_is(path) ? host_of(path) : NULL;
    return 0;
}

int ep_source_ready(struct ep_source *s, const struct ep_source_how *how,
                    struct ep_error *err)
{
    int rc = 0;

    if (!s->importer)
        rc = choose(s, err);
    if (rc == EP_EAGAIN)
        return 0;
    if (rc < 0)
        return rc;
    if (how->buffer_bytes)
        ep_input_rewind(s->input);
    begin(s);
    return 0;
}

int ep_source_open(struct ep_source *s, const char *path,
                   const struct ep_importer *from, void (*on_wait)(void *ctx),
                   void *on_wait_ctx, struct ep_error *err)
{
    struct ep_source_how how = {
        .from = from, .on_wait = on_wait, .on_wait_ctx = on_wait_ctx};
    int rc = ep_source_start(s, path, &how, err);

    if (rc < 0)
        return rc;
    rc = ep_source_ready(s, &how, err);
    if (rc < 0)
        ep_source_close(s);
    return rc;
}

bool ep_source_would_wait(struct ep_source *s)
{
    return s->input && ep_input_would_wait(s->input);
}

void ep_source_close(struct ep_source *s)
{
    if (s->begun && s->importer && s->importer->end)
        s->importer->end(s->self);
    if (s->lines)
        ep_lines_free(s->lines);
    else
        ep_input_close(s->input);
    free(s->host);
    *s = (struct ep_source){.over = true};
}

int ep_source_next(struct ep_source *s, struct ep_record *r,
                   struct ep_error *err)
{
    int rc;

    if (s->over)
        return 0;
    if (!s->importer) {
        rc = choose(s, err);
        if (rc < 0 || s->over) {
            s->over = rc != EP_EAGAIN;
            return rc;
        }
        begin(s);
    }
    rc = s->importer->next(s->self, s, r, err);
    if (s->host && rc > 0 && r->type == EP_GAUGE &&
        !ep_record_has(r, EP_K_HOST))
        ep_record_set_str(r, EP_K_HOST, s->host);
    return rc;
}

int ep_source_line(struct ep_source *s, struct ep_error *err)
{
    int rc;

    if (!s->lines) {
        s->lines = ep_lines_new(s->input);
        s->input = NULL;
    }
    if (s->give_up && s->give_up(s->give_up_ctx))
        return EP_EAGAIN;
    rc = ep_lines_next(s->lines, &s->line, err);
    s->over = ep_lines_over(s->lines);
    return rc;
}

long ep_source_read(struct ep_source *s, void *dst, size_t cap,
                    struct ep_error *err)
{
    ssize_t n = ep_input_read(s->input, dst, cap, err);

    s->over = n <= 0 && n != EP_EAGAIN;
    return (long)n;
}

bool ep_source_progress(const struct ep_source *s, uint64_t *done,
                        uint64_t *total)
{
    if (s->lines)
        return ep_lines_progress(s->lines, done, total);
    return s->input && ep_input_progress(s->input, done, total);
}
