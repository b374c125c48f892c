/* SPDX-License-Identifier: Apache-2.0 */
/*
 * watch_links.c - slow links and ends of links, from rounds of measurements of
 * pairs (pairs.h); see watch.h.
 *
 * Kept of each link (ends, transport, size) are its last healthy values, with
 * which later rounds compare it. A round is judged when a link reports for the
 * second time; repeats of a link directly one after the other are one
 * measurement, their mean.
 */
#include "config.h"

#include "base/mem.h"
#include "detect/watch_links_impl.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Variation of healthy links, inside a host and between hosts: FALCON, arXiv
   2410.12588. */
#define INSIDE_NOISE 0.09
#define BETWEEN_NOISE 0.29

static void free_case(struct link_case *c)
{
    free(c->as.id);
    free(c->as.host);
    free(c->ep.eid);
    free(c);
}

static void free_job(struct link_job *lj)
{
    if (!lj)
        return;
    for (size_t i = 0; i < ep_intern_count(lj->end_names); i++) {
        free(lj->ends[i].name);
        free(lj->ends[i].id);
        free(lj->ends[i].host);
    }
    for (size_t i = 0; i < lj->ncases; i++)
        free_case(lj->cases[i]);
    ep_intern_free(lj->end_names);
    ep_intern_free(lj->link_names);
    ep_intern_free(lj->class_names);
    free(lj->ends);
    free(lj->links);
    free(lj->classes);
    free(lj->fresh);
    free(lj->cases);
    free(lj);
}

void ep_watch_free_links(struct ep_watch *w)
{
    if (!w->links)
        return;
    for (size_t i = 0; i < w->links->n; i++)
        free_job(w->links->v[i]);
    free(w->links->v);
    free(w->links);
}

struct link_job *ep_watch_link_job(struct ep_watch *w, struct job *job)
{
    struct link_job *lj;

    if (!w->links)
        w->links = ep_calloc(1, sizeof *w->links);
    if (job->number >= w->links->n) {
        w->links->v = ep_grow(w->links->v, &w->links->cap, job->number + 1,
                              sizeof(void *));
        while (w->links->n <= job->number)
            w->links->v[w->links->n++] = NULL;
    }
    lj = w->links->v[job->number];
    if (lj)
        return lj;
    lj = w->links->v[job->number] = ep_calloc(1, sizeof *lj);
    lj->job = job;
    lj->last = -1;
    lj->end_names = ep_intern_new();
    lj->link_names = ep_intern_new();
    lj->class_names = ep_intern_new();
    return lj;
}

/* ==== Ends and links by name ==== */

/* "0000:3b:00.0", "00000000:3B:00.0" */
static bool is_pci(const char *s)
{
    size_t n = strspn(s, "0123456789abcdefABCDEF");

    return (n == 4 || n == 8) && s[n] == ':' && strlen(s + n) == 8 &&
           isxdigit((unsigned char)s[n + 1]) && s[n + 3] == ':' &&
           s[n + 6] == '.';
}

static bool is_device(const char *s)
{
    return strncmp(s, "GPU-", 4) == 0 || strncmp(s, "MIG-", 4) == 0 ||
           is_pci(s);
}

/* A host, a device, or HOST/DEVICE. */
struct end ep_watch_make_end(const char *name)
{
    const char *slash = strrchr(name, '/');
    const char *device = slash ? slash + 1 : name;
    struct end e = {.name = ep_strdup(name), .scope = EP_SCOPE_HOST};
    struct ep_buf id;

    ep_buf_init(&id);
    if (slash || is_device(name)) {
        e.scope = EP_SCOPE_GPU;
        if (slash && slash > name)
            e.host = ep_strndup(name, (size_t)(slash - name));
        ep_buf_adds(&id, "gpu=");
        ep_buf_adds(&id, is_device(device) ? device : name);
    } else {
        e.host = ep_strdup(name);
        ep_buf_adds(&id, "host=");
        ep_buf_adds(&id, name);
    }
    e.id = ep_strdup(id.ptr);
    ep_buf_free(&id);
    return e;
}

static long find_end(struct ep_watch *w, struct link_job *lj,
                     struct ep_span name, struct ep_error *err)
{
    size_t known = ep_intern_count(lj->end_names);
    long i = ep_watch_number(w, lj->end_names, name, err);

    if (i >= 0 && (size_t)i == known) {
        lj->ends =
            ep_grow(lj->ends, &lj->ends_cap, known + 1, sizeof *lj->ends);
        lj->ends[i] = ep_watch_make_end(ep_intern_name(lj->end_names, known));
    }
    return i;
}

/* Both in one host, as far as their names say. */
static bool is_inside(const struct end *a, const struct end *b)
{
    return a->scope == EP_SCOPE_GPU && b->scope == EP_SCOPE_GPU &&
           (!a->host || !b->host || strcmp(a->host, b->host) == 0);
}

static long find_class(struct ep_watch *w, struct link_job *lj,
                       const struct ep_watch_link *x, bool inside,
                       struct ep_error *err)
{
    size_t known = ep_intern_count(lj->class_names);
    long i;

    ep_buf_reset(&w->key);
    ep_buf_addf(&w->key, "%c%lld\t", inside ? 'i' : 'b', (long long)x->bytes);
    if (x->transport.len)
        ep_buf_add(&w->key, x->transport.ptr, x->transport.len);
    i = ep_watch_number(w, lj->class_names,
                        (struct ep_span){w->key.ptr, w->key.len}, err);
    if (i >= 0 && (size_t)i == known) {
        lj->classes = ep_grow(lj->classes, &lj->classes_cap, known + 1,
                              sizeof *lj->classes);
        lj->classes[i] = (struct link_class){
            .unlike = !inside            ? 1
                      : x->transport.len ? EP_PAIRS_UNLIKE_LEAST
                                         : EP_PAIRS_UNLIKE_MOST,
            .scatter = inside ? INSIDE_NOISE : BETWEEN_NOISE,
        };
    }
    return i;
}

static long find_link(struct ep_watch *w, struct link_job *lj,
                      const struct ep_watch_link *x, struct ep_error *err)
{
    long src = find_end(w, lj, x->src, err);
    long dst = src < 0 ? -1 : find_end(w, lj, x->dst, err);
    long cls = dst < 0
                   ? -1
                   : find_class(w, lj, x,
                                is_inside(&lj->ends[src], &lj->ends[dst]), err);
    size_t known = ep_intern_count(lj->link_names);
    long i;

    if (cls < 0)
        return -1;
    ep_buf_reset(&w->key);
    ep_buf_addf(&w->key, "%ld %ld %ld", src, dst, cls);
    i = ep_watch_number(w, lj->link_names,
                        (struct ep_span){w->key.ptr, w->key.len}, err);
    if (i >= 0 && (size_t)i == known) {
        lj->links =
            ep_grow(lj->links, &lj->links_cap, known + 1, sizeof *lj->links);
        lj->links[i] = (struct link){
            .src = (uint32_t)src, .dst = (uint32_t)dst, .cls = (uint32_t)cls};
    }
    return i;
}

/* ==== Records in, open cases out ==== */

int ep_watch_link(struct ep_watch *w, const struct ep_watch_link *x,
                  struct ep_error *err)
{
    struct job *job;
    struct link_job *lj;
    struct link *l;
    long i;

    if (!(x->value > 0) || !isfinite(x->value))
        return ep_error_set(err, EP_EDOM, "value is not above 0");
    if (!isfinite(x->ts))
        return ep_error_set(err, EP_EDOM, "ts is not finite");
    if (!x->src.len || !x->dst.len ||
        (x->src.len == x->dst.len &&
         memcmp(x->src.ptr, x->dst.ptr, x->src.len) == 0))
        return ep_error_set(err, EP_EDOM, "src and dst are not two ends");
    job = ep_watch_job(w, x->job, err);
    if (!job)
        return EP_ELIMIT;
    lj = ep_watch_link_job(w, job);
    i = find_link(w, lj, x, err);
    if (i < 0)
        return EP_ELIMIT;
    if (lj->links[i].resumed && x->ts <= lj->links[i].old_ts) {
        w->known++; /* taken before the state was saved */
        return 0;
    }
    if (lj->links[i].reps && i != lj->last)
        ep_watch_judge_links(w, lj);
    l = &lj->links[i];
    if (!l->reps++) {
        l->y = 0;
        lj->fresh = ep_grow(lj->fresh, &lj->cap, lj->n + 1, sizeof *lj->fresh);
        lj->fresh[lj->n++] = (uint32_t)i;
    }
    l->y += (-log(x->value) - l->y) / l->reps;
    l->ts = x->ts;
    lj->last = i;
    return 0;
}

void ep_watch_finish_links(struct ep_watch *w)
{
    for (size_t i = 0; w->links && i < w->links->n; i++)
        if (w->links->v[i])
            ep_watch_judge_links(w, w->links->v[i]);
}

void ep_watch_tell_links(const struct ep_watch *w,
                         void (*fn)(void *ctx, const struct ep_finding *),
                         void *ctx)
{
    for (size_t i = 0; w->links && i < w->links->n; i++) {
        const struct link_job *lj = w->links->v[i];

        for (size_t k = 0; lj && k < lj->ncases; k++)
            if (lj->cases[k]->ep.open)
                ep_watch_tell(&lj->cases[k]->as, &lj->cases[k]->ep, fn, ctx);
    }
}
