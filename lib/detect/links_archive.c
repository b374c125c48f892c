/* SPDX-License-Identifier: Apache-2.0 */
/*
 * links_archive.c - measured links in bytes; see base/archive.h. Of each job the
 * names of ends and classes, then links, the round that is under way, and what
 * is slow.
 */
#include "config.h"

#include "base/mem.h"
#include "detect/watch_links_impl.h"

#include <math.h>
#include <string.h>

#define REPEATS_MAX (1 << 30)

/* The i-th name of a set, which is new when it is loaded; w counts it. */
static void name(struct ep_archive *a, struct ep_watch *w,
                 struct ep_intern *names, size_t i)
{
    struct ep_span s = {"", 0};

    if (a->saving)
        s = ep_intern_span(names, i);
    s = ep_archive_span(a, s, EP_WATCH_NAME_BYTES);
    if (!a->saving && ep_archive_ok(a))
        ep_archive_require(a, ep_watch_number(w, names, s, NULL) == (long)i,
                           "two ends or kinds of links have one name");
}

static void ends(struct ep_archive *a, struct ep_watch *w, struct link_job *lj)
{
    size_t n = ep_archive_size(a, ep_intern_count(lj->end_names),
                               EP_WATCH_MAX_SERIES, 1);

    for (size_t i = 0; i < n && ep_archive_ok(a); i++) {
        size_t known = ep_intern_count(lj->end_names);

        name(a, w, lj->end_names, i);
        if (ep_intern_count(lj->end_names) == known)
            continue;
        lj->ends = ep_grow(lj->ends, &lj->ends_cap, i + 1, sizeof *lj->ends);
        lj->ends[i] = ep_watch_make_end(ep_intern_name(lj->end_names, i));
    }
}

static void classes(struct ep_archive *a, struct ep_watch *w,
                    struct link_job *lj)
{
    size_t n = ep_archive_size(a, ep_intern_count(lj->class_names),
                               EP_WATCH_MAX_SERIES, 17);

    for (size_t i = 0; i < n && ep_archive_ok(a); i++) {
        struct link_class *c;

        name(a, w, lj->class_names, i);
        lj->classes =
            ep_grow(lj->classes, &lj->classes_cap, n, sizeof *lj->classes);
        c = &lj->classes[i];
        if (!a->saving)
            *c = (struct link_class){1, 1, 0, 0};
        c->unlike = ep_archive_finite(a, c->unlike);
        c->scatter = ep_archive_finite(a, c->scatter);
        ep_archive_require(a, c->unlike >= 1 && c->scatter > 0,
                           "a kind of links has no noise");
    }
}

/* Below a number of names. */
static uint32_t below(struct ep_archive *a, uint32_t i, size_t n)
{
    i = (uint32_t)ep_archive_u64(a, i, n ? n - 1 : 0);
    ep_archive_require(a, i < n, "a link has no ends or is of no kind");
    return i;
}

static void its_ends(struct ep_archive *a, struct ep_watch *w,
                     struct link_job *lj, size_t i)
{
    size_t n = ep_intern_count(lj->end_names);
    struct link l = {.src = 0};

    if (a->saving)
        l = lj->links[i];
    l.src = below(a, l.src, n);
    l.dst = below(a, l.dst, n);
    l.cls = below(a, l.cls, ep_intern_count(lj->class_names));
    ep_archive_require(a, l.src != l.dst, "a link has one end");
    if (a->saving || !ep_archive_ok(a))
        return;
    ep_buf_reset(&w->key);
    ep_buf_addf(&w->key, "%ld %ld %ld", (long)l.src, (long)l.dst, (long)l.cls);
    ep_archive_require(a,
                       ep_watch_number(w, lj->link_names,
                                       (struct ep_span){w->key.ptr, w->key.len},
                                       NULL) == (long)i,
                       "two links are the same");
    lj->links = ep_grow(lj->links, &lj->links_cap, i + 1, sizeof *lj->links);
    lj->links[i] = l;
}

static void links(struct ep_archive *a, struct ep_watch *w, struct link_job *lj)
{
    size_t n = ep_archive_size(a, ep_intern_count(lj->link_names),
                               EP_WATCH_MAX_SERIES, 13);

    for (size_t i = 0; i < n && ep_archive_ok(a); i++) {
        struct link *l;

        its_ends(a, w, lj, i);
        if (!ep_archive_ok(a))
            return;
        l = &lj->links[i];
        l->ts = ep_archive_finite(a, l->ts);
        l->npast = (int)ep_archive_u64(a, (uint64_t)l->npast, EP_LINK_PAST);
        l->at = (int)ep_archive_u64(a, (uint64_t)l->at, EP_LINK_PAST - 1);
        ep_archive_require(a, l->npast == EP_LINK_PAST || l->at == l->npast,
                           "values of a link are not where they should be");
        for (int k = 0; k < l->npast && ep_archive_ok(a); k++)
            l->past[k] = ep_archive_finite(a, l->past[k]);
        if (!a->saving) {
            l->resumed = true;
            l->old_ts = l->ts;
        }
    }
}

static void round_so_far(struct ep_archive *a, struct link_job *lj)
{
    size_t all = ep_intern_count(lj->link_names);
    size_t n = ep_archive_size(a, lj->n, all, 10);

    if (!a->saving)
        lj->fresh = ep_grow(lj->fresh, &lj->cap, n, sizeof *lj->fresh);
    for (size_t i = 0; i < n && ep_archive_ok(a); i++) {
        uint32_t at = below(a, a->saving ? lj->fresh[i] : 0, all);
        struct link *l;

        if (!ep_archive_ok(a))
            return;
        l = &lj->links[at];
        ep_archive_require(a, a->saving || !l->reps,
                           "a link is twice in a round");
        l->reps = (int)ep_archive_u64(a, (uint64_t)l->reps, REPEATS_MAX);
        l->y = ep_archive_finite(a, l->y);
        ep_archive_require(a, l->reps > 0, "a link was not measured");
        lj->fresh[i] = at;
        lj->n = a->saving ? n : i + 1;
    }
    lj->last = (long)ep_archive_i64(a, lj->last, -1, (int64_t)all - 1);
}

static void thing(struct ep_archive *a, const struct link_job *lj,
                  struct ep_pairs_thing *t)
{
    size_t n = ep_intern_count(lj->end_names);

    t->kind = (enum ep_pairs_kind)ep_archive_u64(a, t->kind, EP_PAIRS_ALL);
    if (t->kind == EP_PAIRS_ALL)
        n = ep_intern_count(lj->class_names);
    t->a = below(a, t->a, n);
    if (t->kind == EP_PAIRS_LINK || t->kind == EP_PAIRS_WAY)
        t->b = below(a, t->b, n);
}

static void fault(struct ep_archive *a, const struct link_job *lj,
                  struct ep_pairs_fault *f)
{
    thing(a, lj, &f->what);
    f->factor = ep_archive_finite(a, f->factor);
    f->p = ep_archive_finite(a, f->p);
    f->measured = (size_t)ep_archive_u64(a, f->measured, UINT32_MAX);
    f->peers = (size_t)ep_archive_u64(a, f->peers, UINT32_MAX);
    f->candidates = (size_t)ep_archive_u64(a, f->candidates, UINT32_MAX);
    ep_archive_require(a, f->candidates > 0, "what is slow is nothing");
    for (size_t i = 0; i + 1 < f->candidates && i < EP_PAIRS_OTHERS; i++)
        thing(a, lj, &f->other[i]);
}

static void cases(struct ep_archive *a, struct ep_watch *w, struct link_job *lj)
{
    size_t n = ep_archive_size(a, lj->ncases, EP_WATCH_MAX_SERIES, 60);

    for (size_t i = 0; i < n && ep_archive_ok(a); i++) {
        struct link_case *c;

        if (!a->saving) {
            lj->cases =
                ep_grow(lj->cases, &lj->cases_cap, i + 1, sizeof(void *));
            lj->cases[i] = ep_calloc(1, sizeof *lj->cases[i]);
            lj->ncases = i + 1;
        }
        c = lj->cases[i];
        fault(a, lj, &c->fault);
        c->as.job = lj->job;
        c->as.rank = -1;
        c->as.scope =
            (enum ep_scope)ep_archive_u64(a, c->as.scope, EP_SCOPE_STAGE);
        c->as.id = ep_archive_string(a, c->as.id, EP_WATCH_NAME_BYTES);
        c->as.host = ep_archive_string(a, c->as.host, EP_WATCH_NAME_BYTES);
        ep_watch_archive_episode(a, w, &c->ep);
        ep_archive_require(a, c->as.id != NULL, "what is slow has no name");
    }
}

void ep_watch_archive_links(struct ep_archive *a, struct ep_watch *w)
{
    for (size_t i = 0; i < ep_intern_count(w->job_names); i++) {
        struct link_job *lj =
            w->links && i < w->links->n ? w->links->v[i] : NULL;

        if (!ep_archive_bool(a, lj != NULL))
            continue;
        if (!lj)
            lj = ep_watch_link_job(w, w->jobs[i]);
        ends(a, w, lj);
        classes(a, w, lj);
        links(a, w, lj);
        round_so_far(a, lj);
        cases(a, w, lj);
    }
}
