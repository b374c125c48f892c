/* SPDX-License-Identifier: Apache-2.0 */
/* state.c - see state.h. */
#include "config.h"

#include "detect/state.h"

#include <stdio.h>

#define PROGRAM "skewdetect"

/* An option has to be what it was: what was learned rests on it. */
static void option(struct ep_archive *a, const char *name, double now)
{
    double saved = ep_archive_f64(a, now);
    char why[160];

    if (saved == now || !ep_archive_ok(a))
        return;
    (void)snprintf(why, sizeof why,
                   "--%s was %.10g when it was written, and is %.10g now", name,
                   saved, now);
    ep_archive_fail(a, why);
}

static void archive(const struct ep_state *s, struct ep_archive *a)
{
    option(a, "min-change", s->options->min_change);
    option(a, "confirm", (double)s->options->confirm);
    option(a, "window", (double)s->options->window);
    option(a, "world", (double)s->options->world);
    option(a, "hazard", s->options->hazard);
    option(a, "z", s->options->z);
    option(a, "spike", s->options->spike);
    option(a, "hang", s->options->hang);
    ep_calls_archive(a, s->calls);
    ep_comms_archive(a, s->comms);
    ep_watch_archive(a, s->watch);
}

int ep_state_save(const struct ep_state *s, struct ep_archive *a,
                  const char *version, struct ep_error *err)
{
    ep_archive_save(a, PROGRAM, EP_STATE_FORMAT, version);
    archive(s, a);
    return ep_archive_saved(a, err);
}

int ep_state_load(struct ep_state *s, struct ep_span bytes,
                  struct ep_error *err)
{
    struct ep_archive a;
    int rc = ep_archive_load(&a, bytes.ptr, bytes.len, PROGRAM, EP_STATE_FORMAT,
                             err);

    if (rc == 0) {
        archive(s, &a);
        rc = ep_archive_loaded(&a, err);
    }
    ep_archive_free(&a);
    return rc;
}
