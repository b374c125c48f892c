/* SPDX-License-Identifier: Apache-2.0 */
/* probes_archive.c - probed devices in bytes; see base/archive.h. */
#include "config.h"

#include "detect/probes_impl.h"

#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

/* The i-th name of a set. */
static struct ep_span name(struct ep_archive *a, struct ep_intern *names,
                           size_t i)
{
    struct ep_span s = {"", 0};

    if (a->saving)
        s = ep_intern_span(names, i);
    s = ep_archive_span(a, s, EP_WATCH_NAME_BYTES);
    return s;
}

/* What find_group would have made. */
static void group(struct ep_archive *a, struct ep_watch *w, size_t i)
{
    struct probe_group *g = a->saving ? w->groups[i] : NULL;
    struct ep_span key = name(a, w->group_names, i);
    size_t label = (size_t)ep_archive_u64(a, g ? g->label_at : 0, key.len);
    bool high = ep_archive_bool(a, g && g->high_is_better);
    bool compared = ep_archive_bool(a, g && g->compared);
    size_t devices =
        (size_t)ep_archive_u64(a, g ? g->devices : 0, EP_WATCH_MAX_SERIES);
    const char *unit = key.ptr;

    if (g || !ep_archive_ok(a))
        return;
    /* "JOB\t+\tUNIT\tLABEL" */
    for (int tabs = 0; tabs < 2 && unit; tabs++) {
        unit = memchr(unit, '\t', (size_t)(key.ptr + key.len - unit));
        if (unit)
            unit++;
    }
    ep_archive_require(a, unit && (size_t)(unit - key.ptr) < label,
                       "a test has no unit");
    if (!ep_archive_ok(a))
        return;
    ep_archive_require(a, ep_intern_add(w->group_names, key, i + 1) == (long)i,
                       "two tests have one name");
    if (!ep_archive_ok(a))
        return;
    ep_buf_reset(&w->key);
    ep_buf_add(&w->key, key.ptr, key.len);
    w->groups = ep_grow(w->groups, &w->groups_cap, i + 1, sizeof(void *));
    w->groups[i] = ep_watch_new_group(
        w, i, label,
        (struct ep_span){unit, label - 1 - (size_t)(unit - key.ptr)}, high);
    w->groups[i]->compared = compared;
    w->groups[i]->devices = devices;
    w->total++;
}

static bool is_scope_of_device(uint64_t scope)
{
    return scope == EP_SCOPE_GPU || scope == EP_SCOPE_RANK ||
           scope == EP_SCOPE_HOST;
}

/* A device of no fields yet, of a name that is the i-th. */
static void add_device(struct ep_archive *a, struct ep_watch *w,
                       struct ep_span key, size_t i)
{
    const char *tab = key.len ? memchr(key.ptr, '\t', key.len) : NULL;
    struct device *d;

    ep_archive_require(a, tab != NULL, "a device is of no test");
    if (!ep_archive_ok(a))
        return;
    ep_archive_require(a, ep_intern_add(w->device_names, key, i + 1) == (long)i,
                       "two devices have one name");
    if (!ep_archive_ok(a))
        return;
    d = ep_calloc(1, sizeof *d);
    d->number = i;
    d->id = ep_calloc(1, sizeof *d->id);
    d->id->id = ep_strndup(tab + 1, (size_t)(key.ptr + key.len - tab - 1));
    w->devices = ep_grow(w->devices, &w->devices_cap, i + 1, sizeof(void *));
    w->devices[i] = d;
    w->total++;
}

static void device(struct ep_archive *a, struct ep_watch *w, size_t i)
{
    struct ep_span key = name(a, w->device_names, i);
    size_t jobs = ep_intern_count(w->job_names), job;
    struct device *d;
    struct series *s;

    if (!a->saving)
        add_device(a, w, key, i);
    if (!ep_archive_ok(a))
        return;
    d = w->devices[i];
    s = d->id;
    job = a->saving ? s->job->number : 0;
    job = (size_t)ep_archive_u64(a, job, jobs ? jobs - 1 : 0);
    ep_archive_require(a, job < jobs, "a device is of no job");
    if (!ep_archive_ok(a))
        return;
    s->job = w->jobs[job];
    s->scope = (enum ep_scope)ep_archive_u64(a, s->scope, EP_SCOPE_STAGE);
    ep_archive_require(a, is_scope_of_device(s->scope),
                       "a device is of no kind");
    s->rank = ep_archive_i64(a, s->rank, -1, INT64_MAX);
    s->host = ep_archive_string(a, s->host, EP_WATCH_NAME_BYTES);
    d->ts = ep_archive_finite(a, d->ts);
    if (!a->saving) {
        d->resumed = true;
        d->old_ts = d->ts;
    }
    d->value = ep_archive_finite(a, d->value);
    ep_archive_require(a, d->value > 0, "a value of a probe is not above 0");
    d->noise = ep_archive_finite(a, d->noise);
    ep_archive_require(a, d->noise >= 0, "a scatter of a probe is negative");
    d->ref_own = ep_archive_f64(a, d->ref_own);
    ep_watch_archive_episode(a, w, &d->peer);
    ep_watch_archive_episode(a, w, &d->own);
}

/* The devices of the round that is under way. */
static void fresh(struct ep_archive *a, struct ep_watch *w,
                  struct probe_group *g)
{
    size_t devices = ep_intern_count(w->device_names);
    size_t n = ep_archive_size(a, g->n, devices, 1);

    for (size_t i = 0; i < n && ep_archive_ok(a); i++) {
        size_t at = a->saving ? g->fresh[i]->number : 0;

        at = (size_t)ep_archive_u64(a, at, devices ? devices - 1 : 0);
        if (a->saving || !ep_archive_ok(a))
            continue;
        ep_archive_require(a, at < devices && !w->devices[at]->fresh,
                           "a device is twice in a round");
        if (!ep_archive_ok(a))
            return;
        g->fresh = ep_grow(g->fresh, &g->cap, g->n + 1, sizeof(void *));
        g->fresh[g->n++] = w->devices[at];
        w->devices[at]->fresh = true;
    }
}

void ep_watch_archive_probes(struct ep_archive *a, struct ep_watch *w)
{
    size_t groups = ep_archive_size(a, ep_intern_count(w->group_names),
                                    EP_WATCH_MAX_SERIES, 4);
    size_t devices;

    for (size_t i = 0; i < groups && ep_archive_ok(a); i++)
        group(a, w, i);
    devices = ep_archive_size(a, ep_intern_count(w->device_names),
                              EP_WATCH_MAX_SERIES, 40);
    for (size_t i = 0; i < devices && ep_archive_ok(a); i++)
        device(a, w, i);
    for (size_t i = 0; i < groups && ep_archive_ok(a); i++)
        fresh(a, w, w->groups[i]);
}
