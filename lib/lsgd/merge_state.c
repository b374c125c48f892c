/* SPDX-License-Identifier: Apache-2.0 */
/*
 * merge_state.c - the optimiser's state: tensors "momentum.NAME" and
 * "buffer.NAME" of each real tensor NAME of the base, in F32 or F64 as it is
 * computed in, and in the metadata evenpace.kind = "state",
 * evenpace.outer_step and the settings.
 */
#include "config.h"

#include "base/json_write.h"
#include "base/mem.h"
#include "base/num.h"
#include "lsgd/merge_impl.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char momentum_prefix[] = "momentum.";
static const char buffer_prefix[] = "buffer.";

/* ==== In ==== */

static bool begins_with(struct ep_span s, const char *prefix)
{
    size_t n = strlen(prefix);

    return s.len >= n && memcmp(s.ptr, prefix, n) == 0;
}

static bool has_momentum(const struct ep_ckpt *c)
{
    size_t n = c ? ep_ckpt_count(c) : 0;

    for (size_t i = 0; i < n; i++)
        if (begins_with(ep_ckpt_tensor(c, i)->name, momentum_prefix))
            return true;
    return false;
}

static bool same_shape(const struct ep_tensor *a, const struct ep_tensor *b)
{
    return a->rank == b->rank &&
           (a->rank == 0 ||
            memcmp(a->shape, b->shape, a->rank * sizeof *a->shape) == 0);
}

/* Index of a tensor that ep_ckpt_find gave: they are sorted by name. */
static uint32_t index_of(const struct ep_ckpt *c, const struct ep_tensor *t)
{
    size_t lo = 0, hi = ep_ckpt_count(c);

    while (lo + 1 < hi) {
        size_t mid = lo + (hi - lo) / 2;
        const struct ep_tensor *u = ep_ckpt_tensor(c, mid);
        size_t n = u->name.len < t->name.len ? u->name.len : t->name.len;
        int order = memcmp(u->name.ptr, t->name.ptr, n);

        if (order > 0 || (order == 0 && u->name.len > t->name.len))
            hi = mid;
        else
            lo = mid;
    }
    return (uint32_t)lo;
}

/* Find PREFIX.NAME of all real tensors. */
static void match(struct ep_merge *m, struct merge_source *s,
                  const char *prefix, struct ep_merge_lines *l)
{
    struct ep_buf name;

    s->ckpt = m->state;
    s->index = ep_calloc(m->n + 1, sizeof *s->index);
    ep_buf_init(&name);
    for (size_t i = 0; i < m->n; i++) {
        const struct ep_tensor *base = ep_ckpt_tensor(m->base, i), *t;
        struct ep_span key;

        s->index[i] = MERGE_NONE;
        if (!ep_dtype_is_real(base->dtype))
            continue;
        ep_buf_reset(&name);
        ep_buf_adds(&name, prefix);
        ep_buf_add(&name, base->name.ptr, base->name.len);
        key = (struct ep_span){name.ptr, name.len};
        t = ep_ckpt_find(m->state, key);
        if (!t) {
            if (!m->config.allow_missing)
                ep_merge_line_tensor(l, ep_ckpt_path(m->state), key, "missing");
            continue;
        }
        s->index[i] = index_of(m->state, t);
        if (!same_shape(base, t))
            ep_merge_line_tensor(l, ep_merge_file(s, i), key,
                                 "its shape is not that of the base's tensor");
        else if (t->dtype != EP_DT_F32 && t->dtype != EP_DT_F64)
            ep_merge_line_tensor(l, ep_merge_file(s, i), key,
                                 "type %s, a state has F32 or F64",
                                 ep_dtype_name(t->dtype));
    }
    ep_buf_free(&name);
}

/* Count, and unless it is allowed name, what only the state has. */
static void list_extra(struct ep_merge *m, struct ep_merge_lines *l)
{
    for (size_t k = 0; k < ep_ckpt_count(m->state); k++) {
        struct ep_span name = ep_ckpt_tensor(m->state, k)->name, rest = name;
        const struct ep_tensor *base = NULL;
        size_t skip = 0;

        if (m->use_m && begins_with(name, momentum_prefix))
            skip = strlen(momentum_prefix);
        else if (m->use_d && begins_with(name, buffer_prefix))
            skip = strlen(buffer_prefix);
        if (skip) {
            rest.ptr += skip;
            rest.len -= skip;
            base = ep_ckpt_find(m->base, rest);
        }
        if (base && ep_dtype_is_real(base->dtype))
            continue;
        m->extra++;
        if (!m->config.allow_missing)
            ep_merge_line_tensor(l, ep_ckpt_file(m->state, k), name,
                                 "no use for it with this base and method");
    }
}

/* Do the outer steps of base and state agree, and does the buffer? */
static void check_step(struct ep_merge *m, int64_t base,
                       struct ep_merge_lines *l)
{
    const char *path = ep_ckpt_path(m->state);
    int64_t t = ep_merge_meta_number(m->state, "evenpace.outer_step", NULL);
    int64_t n = ep_merge_meta_number(m->state, "evenpace.buffer", NULL);

    if (!ep_span_eq(ep_ckpt_meta_find(m->state, "evenpace.kind"), "state"))
        ep_merge_line(l, path, "it is not the state of an optimiser");
    if (t < 0) {
        ep_merge_line(l, path, "it states no evenpace.outer_step");
        return;
    }
    m->step_from = (uint64_t)t;
    if (base < 0 && !m->config.allow_missing)
        base = 0;
    if (base >= 0 && base != t)
        ep_merge_line(l, path,
                      "it is of outer step %lld, the base of %lld: they are "
                      "out of step",
                      (long long)t, (long long)base);
    if (n > 0 && t % n != 0 && (uint64_t)n != m->config.outer.n)
        ep_merge_line(l, path,
                      "its buffer of %lld holds %lld, a new size (%llu) needs "
                      "an empty one",
                      (long long)n, (long long)(t % n),
                      (unsigned long long)m->config.outer.n);
}

/* The coefficients of the steps to come. */
static void plan_steps(struct ep_merge *m)
{
    size_t n = m->config.method == EP_MERGE_DELAYED ? m->nin : 1;

    m->step_to = m->step_from + (m->config.method == EP_MERGE_DELTA ? 0 : n);
    if (m->config.method != EP_MERGE_SGD &&
        m->config.method != EP_MERGE_NESTEROV &&
        m->config.method != EP_MERGE_DELAYED)
        return;
    m->step = ep_calloc(n, sizeof *m->step);
    for (size_t i = 0; i < n; i++)
        m->step[i] = ep_outer_step_after(&m->config.outer, m->step_from + i);
}

void ep_merge_plan_state(struct ep_merge *m, struct ep_merge_lines *l)
{
    bool bad = false;
    int64_t base = ep_merge_meta_number(m->base, "evenpace.outer_step", &bad);
    bool stateful = m->config.method == EP_MERGE_NESTEROV ||
                    m->config.method == EP_MERGE_DELAYED;

    if (bad)
        ep_merge_line(l, ep_ckpt_path(m->base),
                      "its evenpace.outer_step is not a number of steps");
    if (base > 0)
        m->step_from = (uint64_t)base;
    m->use_m = stateful && (m->config.outer.beta > 0 || has_momentum(m->state));
    m->use_d = stateful && m->config.outer.n > 1;
    if (m->state && stateful) {
        check_step(m, base, l);
        if (m->use_m)
            match(m, &m->momentum, momentum_prefix, l);
        if (m->use_d)
            match(m, &m->buffer, buffer_prefix, l);
        list_extra(m, l);
    } else if (m->state) {
        ep_merge_line(l, ep_ckpt_path(m->state), "the method has no state");
    }
    plan_steps(m);
}

/* ==== Settings ==== */

static int not_a_number(const struct ep_ckpt *c, const char *key,
                        struct ep_error *err)
{
    struct ep_span s = ep_ckpt_meta_find(c, key);
    const char *path = ep_ckpt_path(c);
    char shown[60], file[100];

    return ep_error_set(err, EP_EFORMAT,
                        "cannot read %s: its %s \"%s\" is not a number",
                        ep_escape(file, sizeof file, path, strlen(path)), key,
                        ep_escape(shown, sizeof shown, s.ptr, s.len));
}

static int read_real(const struct ep_ckpt *c, const char *key, double *v,
                     struct ep_error *err)
{
    struct ep_span s = ep_ckpt_meta_find(c, key);
    char *text;
    int rc;

    *v = (double)NAN;
    if (!s.ptr)
        return 0;
    text = ep_strndup(s.ptr, s.len);
    rc = strlen(text) == s.len ? ep_num_double(text, 0, 1e300, v, NULL)
                               : EP_EFORMAT;
    free(text);
    return rc < 0 ? not_a_number(c, key, err) : 0;
}

int ep_merge_state_settings(const struct ep_ckpt *state, struct ep_outer *o,
                            struct ep_error *err)
{
    bool bad = false;
    int64_t n = ep_merge_meta_number(state, "evenpace.buffer", &bad);
    int rc = bad ? not_a_number(state, "evenpace.buffer", err) : 0;

    o->n = n > 0 ? (uint64_t)n : 0;
    if (rc == 0)
        rc = read_real(state, "evenpace.lr", &o->lr, err);
    if (rc == 0)
        rc = read_real(state, "evenpace.beta", &o->beta, err);
    if (rc == 0)
        rc = read_real(state, "evenpace.momentum_share", &o->c, err);
    return rc;
}

/* ==== Out ==== */

/* One tensor of the state; returns its index. */
static uint32_t add_tensor(struct ep_merge *m, const struct ep_tensor *like,
                           const char *prefix, bool is_double)
{
    struct ep_tensor *t = &m->keep.tensor[m->keep.n];
    struct ep_buf name;

    ep_buf_init(&name);
    ep_buf_adds(&name, prefix);
    ep_buf_add(&name, like->name.ptr, like->name.len);
    *t = *like;
    t->name = ep_merge_meta_own(&m->keep.meta, &name);
    t->dtype = is_double ? EP_DT_F64 : EP_DT_F32;
    t->bytes = t->count * (is_double ? sizeof(double) : sizeof(float));
    t->data = NULL;
    ep_buf_free(&name);
    return (uint32_t)m->keep.n++;
}

static void set_real(struct merge_meta *meta, const char *key, double v)
{
    struct ep_buf text;
    struct ep_jw w;

    ep_buf_init(&text);
    ep_jw_init(&w, &text);
    ep_jw_double(&w, v); /* the shortest that reads back */
    ep_merge_meta_set(meta, key, "%s", text.ptr);
    ep_buf_free(&text);
}

void ep_merge_plan_keep(struct ep_merge *m)
{
    struct merge_meta *meta = &m->keep.meta;
    const struct ep_outer *o = &m->config.outer;

    m->m_out = ep_calloc(m->n + 1, sizeof *m->m_out);
    m->d_out = ep_calloc(m->n + 1, sizeof *m->d_out);
    m->keep.tensor = ep_calloc(2 * m->n + 1, sizeof *m->keep.tensor);
    for (size_t i = 0; i < m->n; i++) {
        const struct ep_tensor *t = ep_ckpt_tensor(m->base, i);
        bool real = m->config.keep_state && ep_dtype_is_real(t->dtype);

        m->m_out[i] = m->d_out[i] = MERGE_NONE;
        if (real && m->use_m)
            m->m_out[i] =
                add_tensor(m, t, momentum_prefix, ep_merge_is_double(m, i));
        if (real && m->use_d)
            m->d_out[i] =
                add_tensor(m, t, buffer_prefix, ep_merge_is_double(m, i));
    }
    ep_merge_meta_set(meta, "evenpace.kind", "state");
    ep_merge_meta_set(meta, "evenpace.outer_step", "%llu",
                      (unsigned long long)m->step_to);
    set_real(meta, "evenpace.lr", o->lr);
    set_real(meta, "evenpace.beta", o->beta);
    ep_merge_meta_set(meta, "evenpace.buffer", "%llu",
                      (unsigned long long)o->n);
    set_real(meta, "evenpace.momentum_share", o->c);
}
