/* SPDX-License-Identifier: Apache-2.0 */
/*
 * merge_plan.c - the inputs against the base: what each one is, and which of
 * its tensors answers to which of the base's. Both lists are sorted by name,
 * so that they are walked side by side.
 */
#include "config.h"

#include "base/mem.h"
#include "lsgd/merge_impl.h"

#include <stdlib.h>
#include <string.h>

/* ==== What a file says that it is ==== */

enum said { SAID_NOTHING, SAID_MODEL, SAID_DELTA, SAID_STATE, SAID_OTHER };

static enum said kind_of(const struct ep_ckpt *c)
{
    struct ep_span kind = ep_ckpt_meta_find(c, "evenpace.kind");

    if (!kind.ptr)
        return SAID_NOTHING;
    if (ep_span_eq(kind, "model"))
        return SAID_MODEL;
    if (ep_span_eq(kind, "delta"))
        return SAID_DELTA;
    return ep_span_eq(kind, "state") ? SAID_STATE : SAID_OTHER;
}

/* "its evenpace.kind "Delta" is not model, delta or state" */
static void refuse_value(const struct ep_ckpt *c, const char *key,
                         const char *not_one_of, struct ep_merge_lines *l)
{
    struct ep_span value = ep_ckpt_meta_find(c, key);
    char shown[60];

    ep_merge_line(l, ep_ckpt_path(c), "its %s \"%s\" is not %s", key,
                  ep_escape(shown, sizeof shown, value.ptr, value.len),
                  not_one_of);
}

/*
 * Refuse what a misspelt word would make something else: a delta that is taken
 * for a model is averaged without a sign that anything is wrong.
 */
static void check_words(const struct ep_ckpt *c, bool declared,
                        struct ep_merge_lines *l)
{
    struct ep_span sign = ep_ckpt_meta_find(c, "evenpace.sign");
    enum said said = kind_of(c);

    if (said == SAID_OTHER)
        refuse_value(c, "evenpace.kind", "model, delta or state", l);
    if (sign.ptr && !ep_span_eq(sign, "start-end") &&
        !ep_span_eq(sign, "end-start"))
        refuse_value(c, "evenpace.sign", "start-end or end-start", l);
    else if (sign.ptr && said == SAID_MODEL)
        ep_merge_line(l, ep_ckpt_path(c),
                      "it has an evenpace.sign and says that it is a model");
    else if (sign.ptr && said == SAID_NOTHING && !declared)
        ep_merge_line(l, ep_ckpt_path(c),
                      "it has an evenpace.sign, but no evenpace.kind that says "
                      "that it is a delta");
}

static const char *sign_name(enum ep_merge_kind kind)
{
    return kind == EP_MERGE_START_END ? "start-end" : "end-start";
}

/* The sign of a file that says that it is a delta; MODEL: it has none. */
static enum ep_merge_kind sign_of(const struct ep_ckpt *c)
{
    struct ep_span sign = ep_ckpt_meta_find(c, "evenpace.sign");

    if (ep_span_eq(sign, "start-end"))
        return EP_MERGE_START_END;
    return ep_span_eq(sign, "end-start") ? EP_MERGE_END_START : EP_MERGE_MODEL;
}

/* What the input is, from its metadata and from what was declared. */
static void settle_kind(struct ep_merge *m, size_t i, struct ep_merge_lines *l)
{
    const struct ep_ckpt *c = m->source[i].ckpt;
    enum ep_merge_kind declared = m->config.declared, sign;
    enum said said = kind_of(c);

    m->input[i].kind = declared;
    check_words(c, declared != EP_MERGE_MODEL, l);
    if (said == SAID_STATE) {
        ep_merge_line(l, ep_ckpt_path(c),
                      "it is the state of an optimiser, not a model or delta");
    } else if (said == SAID_MODEL && declared != EP_MERGE_MODEL) {
        ep_merge_line(l, ep_ckpt_path(c),
                      "it says that it is a model, not a delta of sign %s",
                      sign_name(declared));
    } else if (said == SAID_DELTA ||
               (said == SAID_NOTHING && declared != EP_MERGE_MODEL)) {
        sign = sign_of(c);
        if (!ep_ckpt_meta_find(c, "evenpace.sign").ptr &&
            declared == EP_MERGE_MODEL)
            ep_merge_line(l, ep_ckpt_path(c), "a delta that states no sign");
        else if (sign != EP_MERGE_MODEL && declared != EP_MERGE_MODEL &&
                 sign != declared)
            ep_merge_line(l, ep_ckpt_path(c),
                          "its sign is %s, not %s as declared", sign_name(sign),
                          sign_name(declared));
        if (sign != EP_MERGE_MODEL)
            m->input[i].kind = sign;
    }
}

static void settle_work(struct ep_merge *m, size_t i, struct ep_merge_lines *l)
{
    const struct ep_ckpt *c = m->source[i].ckpt;
    struct ep_merge_input *in = &m->input[i];
    bool bad = false;

    in->steps = ep_merge_meta_number(c, "evenpace.steps", NULL);
    in->tokens = ep_merge_meta_number(c, "evenpace.tokens", &bad);
    if (!m->config.by_tokens)
        return;
    if (in->tokens < 0)
        ep_merge_line(l, ep_ckpt_path(c), "evenpace.tokens %s",
                      bad ? "is not a number of tokens" : "is missing");
    in->weight = (double)in->tokens;
}

/* ==== Tensors ==== */

static int compare(struct ep_span a, struct ep_span b)
{
    size_t n = a.len < b.len ? a.len : b.len;
    int c = n ? memcmp(a.ptr, b.ptr, n) : 0;

    return c ? c : (a.len > b.len) - (a.len < b.len);
}

/* "[2, 3]"; a long one is cut. */
static const char *shape_text(char *dst, size_t cap, const struct ep_tensor *t)
{
    struct ep_buf b;
    size_t n;

    ep_buf_init(&b);
    ep_buf_addc(&b, '[');
    for (unsigned k = 0; k < t->rank; k++)
        ep_buf_addf(&b, "%s%llu", k ? ", " : "",
                    (unsigned long long)t->shape[k]);
    ep_buf_addc(&b, ']');
    n = b.len < cap - 1 ? b.len : cap - 1;
    memcpy(dst, b.ptr, n);
    dst[n] = '\0';
    ep_buf_free(&b);
    return dst;
}

static bool same_shape(const struct ep_tensor *a, const struct ep_tensor *b)
{
    return a->rank == b->rank &&
           (a->rank == 0 ||
            memcmp(a->shape, b->shape, a->rank * sizeof *a->shape) == 0);
}

/* Can t stand beside the base's tensor? */
static void check_pair(const struct ep_tensor *base, const struct ep_tensor *t,
                       const char *file, struct ep_merge_lines *l)
{
    char a[160], b[160];

    if (!same_shape(base, t))
        ep_merge_line_tensor(l, file, base->name, "shape %s, the base has %s",
                             shape_text(a, sizeof a, t),
                             shape_text(b, sizeof b, base));
    else if (t->dtype != base->dtype &&
             (!ep_dtype_is_real(t->dtype) || !ep_dtype_is_real(base->dtype)))
        ep_merge_line_tensor(l, file, base->name, "type %s, the base has %s",
                             ep_dtype_name(t->dtype),
                             ep_dtype_name(base->dtype));
}

/* Remember where tensor i is; an index is made when one is needed. */
static void remember(struct merge_source *s, size_t n, size_t i, uint32_t at)
{
    if (!s->index) {
        if (at == i)
            return;
        s->index = ep_calloc(n, sizeof *s->index);
        for (size_t k = 0; k < i; k++)
            s->index[k] = (uint32_t)k;
    }
    s->index[i] = at;
}

static void match(struct ep_merge *m, struct merge_source *s,
                  struct ep_merge_lines *l)
{
    size_t have = ep_ckpt_count(s->ckpt), i = 0, k = 0;
    const char *path = ep_ckpt_path(s->ckpt);

    while (i < m->n || k < have) {
        const struct ep_tensor *base =
            i < m->n ? ep_ckpt_tensor(m->base, i) : NULL;
        const struct ep_tensor *t =
            k < have ? ep_ckpt_tensor(s->ckpt, k) : NULL;
        int order = base && t ? compare(base->name, t->name) : 0;

        if (base && (!t || order < 0)) {
            if (!m->config.allow_missing)
                ep_merge_line_tensor(l, path, base->name, "missing");
            remember(s, m->n, i++, MERGE_NONE);
        } else if (t && (!base || order > 0)) {
            if (!m->config.allow_missing)
                ep_merge_line_tensor(l, ep_ckpt_file(s->ckpt, k), t->name,
                                     "not in the base");
            m->extra++;
            k++;
        } else if (base && t) {
            check_pair(base, t, ep_ckpt_file(s->ckpt, k), l);
            remember(s, m->n, i++, (uint32_t)k++);
        }
    }
}

void ep_merge_plan_inputs(struct ep_merge *m, struct ep_merge_lines *l)
{
    enum said base = kind_of(m->base);
    double sum = 0;

    check_words(m->base, false, l);
    if (base == SAID_DELTA || base == SAID_STATE)
        ep_merge_line(l, ep_ckpt_path(m->base),
                      "it is a %s, the base must be a model",
                      base == SAID_DELTA ? "delta" : "state");
    m->models =
        m->config.method == EP_MERGE_MEAN || m->config.method == EP_MERGE_MIX;
    for (size_t i = 0; i < m->nin; i++) {
        settle_kind(m, i, l);
        settle_work(m, i, l);
        if (ep_ckpt_count(m->source[i].ckpt) >= MERGE_NONE)
            ep_merge_line(l, ep_ckpt_path(m->source[i].ckpt),
                          "too many tensors");
        else
            match(m, &m->source[i], l);
        m->models = m->models && m->input[i].kind == EP_MERGE_MODEL;
        sum += m->input[i].weight;
    }
    if (m->config.by_tokens && sum == 0)
        ep_merge_line(l, ep_ckpt_path(m->base),
                      "the tokens of all inputs are 0");
}
