/* SPDX-License-Identifier: Apache-2.0 */
/* import.c - see import.h: the table of formats, and sources. */
#include "config.h"

#include "record/import.h"

#include "base/clock.h"
#include "base/input.h"
#include "record/importers.h"

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
    if (s->importer && s->importer->begin)
        s->self = s->importer->begin(s);
}

/* The input of *s is open and set up: choose, and begin. */
static int set_up(struct ep_source *s, const char *path, struct ep_error *err)
{
    int rc = 0;

    s->name = ep_input_name(s->input);
    s->mtime = time_of(path);
    if (!s->importer)
        rc = choose(s, err);
    if (rc == EP_EAGAIN)
        return 0;
    if (rc < 0)
        ep_source_close(s);
    else
        begin(s);
    return rc;
}

int ep_source_open(struct ep_source *s, const char *path,
                   const struct ep_importer *from, void (*on_wait)(void *ctx),
                   void *on_wait_ctx, struct ep_error *err)
{
    *s =
        (struct ep_source){.importer = from, .input = ep_input_open(path, err)};
    if (!s->input)
        return err ? err->code : EP_ESYS;
    if (on_wait)
        ep_input_on_wait(s->input, on_wait, on_wait_ctx);
    return set_up(s, path, err);
}

int ep_source_follow(struct ep_source *s, const char *path,
                     const struct ep_importer *from, struct ep_error *err)
{
    *s =
        (struct ep_source){.importer = from, .input = ep_input_open(path, err)};
    if (!s->input)
        return err ? err->code : EP_ESYS;
    ep_input_follow(s->input);
    return set_up(s, path, err);
}

void ep_source_close(struct ep_source *s)
{
    if (s->importer && s->importer->end)
        s->importer->end(s->self);
    if (s->lines)
        ep_lines_free(s->lines);
    else
        ep_input_close(s->input);
    *s = (struct ep_source){.over = true};
}

int ep_source_next(struct ep_source *s, struct ep_record *r,
                   struct ep_error *err)
{
    if (s->over)
        return 0;
    if (!s->importer) {
        int rc = choose(s, err);

        if (rc < 0 || s->over) {
            s->over = rc != EP_EAGAIN;
            return rc;
        }
        begin(s);
    }
    return s->importer->next(s->self, s, r, err);
}

int ep_source_line(struct ep_source *s, struct ep_error *err)
{
    int rc;

    if (!s->lines) {
        s->lines = ep_lines_new(s->input);
        s->input = NULL;
    }
    rc = ep_lines_next(s->lines, &s->line, err);
    s->over = rc == 0 || (rc < 0 && rc != EP_ELIMIT && rc != EP_EAGAIN);
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
