/* SPDX-License-Identifier: Apache-2.0 */
/* merge.c - see merge.h: settings, the plan's life, and small things. */
#include "config.h"

#include "lsgd/merge.h"

#include "base/mem.h"
#include "base/num.h"
#include "lsgd/merge_impl.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ==== Lines ==== */

void ep_merge_lines_init(struct ep_merge_lines *l)
{
    ep_buf_init(&l->text);
    l->n = 0;
}

void ep_merge_lines_free(struct ep_merge_lines *l)
{
    ep_buf_free(&l->text);
    l->n = 0;
}

static void EP_PRINTF(2, 0)
    add_formatted(struct ep_buf *b, const char *fmt, va_list ap)
{
    char text[512];

    (void)vsnprintf(text, sizeof text, fmt, ap);
    ep_buf_adds(b, text);
}

static void begin_line(struct ep_merge_lines *l, const char *file)
{
    ep_buf_adds(&l->text, "cannot merge ");
    ep_buf_add_escaped(&l->text, file, strlen(file));
    ep_buf_adds(&l->text, ": ");
}

static void end_line(struct ep_merge_lines *l)
{
    ep_buf_addc(&l->text, '\n');
    l->n++;
}

void ep_merge_line(struct ep_merge_lines *l, const char *file, const char *fmt,
                   ...)
{
    va_list ap;

    begin_line(l, file);
    va_start(ap, fmt);
    add_formatted(&l->text, fmt, ap);
    va_end(ap);
    end_line(l);
}

void ep_merge_line_tensor(struct ep_merge_lines *l, const char *file,
                          struct ep_span name, const char *fmt, ...)
{
    va_list ap;

    begin_line(l, file);
    ep_buf_adds(&l->text, "tensor \"");
    ep_buf_add_escaped(&l->text, name.ptr, name.len);
    ep_buf_adds(&l->text, "\": ");
    va_start(ap, fmt);
    add_formatted(&l->text, fmt, ap);
    va_end(ap);
    end_line(l);
}

/* ==== Tensors of sources ==== */

static uint32_t index_in(const struct merge_source *s, size_t i)
{
    return s->index ? s->index[i] : (uint32_t)i;
}

const struct ep_tensor *ep_merge_find(const struct merge_source *s, size_t i)
{
    uint32_t at;

    if (!s->ckpt)
        return NULL;
    at = index_in(s, i);
    return at == MERGE_NONE ? NULL : ep_ckpt_tensor(s->ckpt, at);
}

const char *ep_merge_file(const struct merge_source *s, size_t i)
{
    return ep_ckpt_file(s->ckpt, index_in(s, i));
}

bool ep_merge_is_double(const struct ep_merge *m, size_t i)
{
    if (m->config.compute != EP_MERGE_AUTO)
        return m->config.compute == EP_MERGE_F64;
    if (m->config.dtype == EP_DT_F64 ||
        ep_ckpt_tensor(m->base, i)->dtype == EP_DT_F64)
        return true;
    for (size_t k = 0; k < m->nin; k++) {
        const struct ep_tensor *t = ep_merge_find(&m->source[k], i);

        if (t && t->dtype == EP_DT_F64)
            return true;
    }
    return false;
}

/* ==== Metadata ==== */

/* A terminated copy of a value without a NUL in it, or NULL. */
static char *text_of(const struct ep_ckpt *c, const char *key)
{
    struct ep_span s = ep_ckpt_meta_find(c, key);

    if (!s.ptr || memchr(s.ptr, '\0', s.len))
        return NULL;
    return ep_strndup(s.ptr, s.len);
}

int64_t ep_merge_meta_number(const struct ep_ckpt *c, const char *key,
                             bool *bad)
{
    char *text = text_of(c, key);
    int64_t v = -1;

    if (text && ep_num_int(text, 0, (INT64_C(1) << 53) - 1, &v, NULL) < 0)
        v = -1;
    if (bad && v < 0 && ep_ckpt_meta_find(c, key).ptr)
        *bad = true;
    free(text);
    return v;
}

static void own(struct merge_meta *m, char *s)
{
    m->owned =
        ep_grow(m->owned, &m->owned_cap, m->nowned + 1, sizeof *m->owned);
    m->owned[m->nowned++] = s;
}

void ep_merge_meta_keep(struct merge_meta *m, struct ep_st_meta entry)
{
    m->entry = ep_grow(m->entry, &m->cap, m->n + 1, sizeof *m->entry);
    m->entry[m->n++] = entry;
}

void ep_merge_meta_set(struct merge_meta *m, const char *key, const char *fmt,
                       ...)
{
    char text[64], *value;
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    value = ep_strdup(text);
    own(m, value);
    ep_merge_meta_keep(
        m, (struct ep_st_meta){{key, strlen(key)}, {value, strlen(value)}});
}

struct ep_span ep_merge_meta_own(struct merge_meta *m, struct ep_buf *b)
{
    char *s = ep_strndup(b->ptr, b->len);

    own(m, s);
    return (struct ep_span){s, b->len};
}

static void target_free(struct merge_target *t)
{
    for (size_t i = 0; i < t->meta.nowned; i++)
        free(t->meta.owned[i]);
    free(t->meta.owned);
    free(t->meta.entry);
    free(t->tensor);
}

/* ==== What is written of a model ==== */

static bool is_ours(struct ep_span key)
{
    static const char *const names[] = {
        "evenpace.kind",   "evenpace.sign",  "evenpace.outer_step",
        "evenpace.tokens", "evenpace.steps",
    };

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (ep_span_eq(key, names[i]))
            return true;
    return false;
}

/* Work behind the result, if all inputs told theirs and the sum is a number
   that a reader takes. */
static void set_work(struct ep_merge *m, const char *key, bool tokens)
{
    int64_t sum = 0;

    for (size_t i = 0; i < m->nin; i++) {
        int64_t v = tokens ? m->input[i].tokens : m->input[i].steps;

        if (v < 0 || v >= (INT64_C(1) << 53) - sum)
            return;
        sum += v;
    }
    ep_merge_meta_set(&m->model.meta, key, "%lld", (long long)sum);
}

static void plan_meta(struct ep_merge *m)
{
    struct merge_meta *meta = &m->model.meta;
    bool delta = m->config.method == EP_MERGE_DELTA;

    for (size_t i = 0; i < ep_ckpt_meta_count(m->base); i++) {
        struct ep_st_meta entry = ep_ckpt_meta(m->base, i);

        if (!is_ours(entry.key))
            ep_merge_meta_keep(meta, entry);
    }
    ep_merge_meta_set(meta, "evenpace.kind", "%s", delta ? "delta" : "model");
    if (delta)
        ep_merge_meta_set(meta, "evenpace.sign", "start-end");
    ep_merge_meta_set(meta, "evenpace.outer_step", "%llu",
                      (unsigned long long)m->step_to);
    set_work(m, "evenpace.tokens", true);
    set_work(m, "evenpace.steps", false);
}

static void plan_model(struct ep_merge *m)
{
    m->model.tensor = ep_calloc(m->n + 1, sizeof *m->model.tensor);
    m->model.n = m->n;
    for (size_t i = 0; i < m->n; i++) {
        struct ep_tensor *t = &m->model.tensor[i];

        *t = *ep_ckpt_tensor(m->base, i);
        t->data = NULL;
        if (ep_dtype_is_real(t->dtype) && m->config.dtype >= 0) {
            t->dtype = (enum ep_dtype)m->config.dtype;
            t->bytes = t->count * (ep_dtype_bits(t->dtype) / 8);
        }
    }
    plan_meta(m);
}

/* ==== The plan ==== */

static int check_weights(const struct ep_merge_config *c, size_t nin,
                         struct ep_error *err)
{
    double sum = 0;

    if (!c->weights && !c->by_tokens)
        return 0;
    if (c->method == EP_MERGE_DELAYED)
        return ep_error_set(err, EP_EDOM,
                            "cannot use weights with delayed-nesterov: each "
                            "input is a step of its own");
    if (!c->weights)
        return 0;
    if (c->nweights != nin)
        return ep_error_set(err, EP_EDOM,
                            "cannot use %zu weight%s: there %s %zu input%s",
                            c->nweights, c->nweights == 1 ? "" : "s",
                            nin == 1 ? "is" : "are", nin, nin == 1 ? "" : "s");
    for (size_t i = 0; i < nin; i++) {
        if (!isfinite(c->weights[i]) || c->weights[i] < 0)
            return ep_error_set(err, EP_EDOM,
                                "cannot use weight %g: negative or not finite",
                                c->weights[i]);
        sum += c->weights[i];
    }
    if (!isfinite(sum) || sum == 0)
        return ep_error_set(err, EP_EDOM, "cannot use the weights: sum is %g",
                            sum);
    return 0;
}

static int check(const struct ep_merge_config *c,
                 const struct ep_merge_files *f, struct ep_error *err)
{
    bool steps = c->method == EP_MERGE_SGD || c->method == EP_MERGE_NESTEROV ||
                 c->method == EP_MERGE_DELAYED;

    if (f->ninputs == 0)
        return ep_error_set(err, EP_EDOM, "cannot merge: no inputs");
    if (ep_ckpt_count(f->base) >= MERGE_NONE)
        return ep_error_set(err, EP_ELIMIT, "cannot merge: too many tensors");
    if (c->method == EP_MERGE_MIX && !(c->alpha >= 0 && c->alpha <= 1))
        return ep_error_set(err, EP_EDOM, "cannot use alpha %g: not in 0..1",
                            c->alpha);
    if (c->dtype >= 0 && !ep_dtype_is_real((enum ep_dtype)c->dtype))
        return ep_error_set(err, EP_EDOM, "cannot compute in type %s",
                            ep_dtype_name((enum ep_dtype)c->dtype));
    if (steps && ep_outer_check(&c->outer, err) < 0)
        return ep_error_prefix(err, "cannot use the outer optimiser");
    return check_weights(c, f->ninputs, err);
}

static struct ep_merge *new_merge(const struct ep_merge_config *c,
                                  const struct ep_merge_files *f)
{
    struct ep_merge *m = ep_calloc(1, sizeof *m);

    m->config = *c;
    m->config.weights = NULL;
    m->base = f->base;
    m->n = ep_ckpt_count(f->base);
    m->nin = f->ninputs;
    m->source = ep_calloc(m->nin, sizeof *m->source);
    m->input = ep_calloc(m->nin, sizeof *m->input);
    m->state = f->state;
    for (size_t i = 0; i < m->nin; i++) {
        m->source[i].ckpt = f->input[i];
        m->input[i].weight = c->weights ? c->weights[i] : 1;
    }
    if (c->method == EP_MERGE_SGD)
        m->config.outer.beta = 0;
    if (c->method == EP_MERGE_SGD || c->method == EP_MERGE_NESTEROV) {
        m->config.outer.n = 1;
        m->config.outer.c = 0;
    }
    return m;
}

struct ep_merge *ep_merge_plan(const struct ep_merge_config *config,
                               const struct ep_merge_files *files,
                               struct ep_merge_lines *lines,
                               struct ep_error *err)
{
    size_t before = lines->n;
    struct ep_merge *m;

    if (check(config, files, err) < 0)
        return NULL;
    m = new_merge(config, files);
    ep_merge_plan_inputs(m, lines);
    ep_merge_plan_state(m, lines);
    if (lines->n > before) {
        (void)ep_error_set(err, EP_EFORMAT, "cannot merge: %zu difference%s",
                           lines->n - before,
                           lines->n - before == 1 ? "" : "s");
        ep_merge_free(m);
        return NULL;
    }
    plan_model(m);
    ep_merge_plan_keep(m);
    return m;
}

void ep_merge_free(struct ep_merge *m)
{
    if (!m)
        return;
    for (size_t i = 0; i < m->nin; i++)
        free(m->source[i].index);
    free(m->source);
    free(m->input);
    free(m->momentum.index);
    free(m->buffer.index);
    free(m->step);
    target_free(&m->model);
    target_free(&m->keep);
    free(m->m_out);
    free(m->d_out);
    free(m);
}

struct ep_merge_input ep_merge_input(const struct ep_merge *m, size_t i)
{
    struct ep_merge_input in = m->input[i];

    in.version = m->config.method == EP_MERGE_DELAYED ? m->step_from + i + 1
                                                      : m->step_to;
    return in;
}

/* What --allow-missing came to for tensor i. */
static void count_missing(const struct ep_merge *m, size_t i,
                          struct ep_merge_totals *s)
{
    size_t have = 0;

    if (!ep_dtype_is_real(ep_ckpt_tensor(m->base, i)->dtype))
        return;
    for (size_t k = 0; k < m->nin; k++)
        have += ep_merge_find(&m->source[k], i) != NULL;
    s->none += have == 0;
    s->fewer += have > 0 && have < m->nin;
    s->zeroed += (m->momentum.ckpt && !ep_merge_find(&m->momentum, i)) ||
                 (m->buffer.ckpt && !ep_merge_find(&m->buffer, i));
}

static uint64_t bytes_of(const struct ep_tensor *t)
{
    return t ? t->bytes : 0;
}

struct ep_merge_totals ep_merge_totals(const struct ep_merge *m)
{
    struct ep_merge_totals s = {.tensors = m->n,
                                .step_from = m->step_from,
                                .step_to = m->step_to,
                                .momentum = m->use_m || m->use_d,
                                .extra = m->extra};

    for (size_t i = 0; i < m->n; i++) {
        count_missing(m, i, &s);
        s.carried += !ep_dtype_is_real(m->model.tensor[i].dtype);
        s.model_bytes += m->model.tensor[i].bytes;
        s.read_bytes += ep_ckpt_tensor(m->base, i)->bytes;
        for (size_t k = 0; k < m->nin; k++)
            s.read_bytes += bytes_of(ep_merge_find(&m->source[k], i));
        s.read_bytes += bytes_of(ep_merge_find(&m->momentum, i)) +
                        bytes_of(ep_merge_find(&m->buffer, i));
    }
    for (size_t i = 0; i < m->keep.n; i++)
        s.state_bytes += m->keep.tensor[i].bytes;
    return s;
}
