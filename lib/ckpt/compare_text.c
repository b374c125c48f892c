/* SPDX-License-Identifier: Apache-2.0 */
/* compare_text.c - print what compare.c found; see compare.h. */
#include "config.h"

#include "ckpt/compare.h"

#include "base/fp.h"
#include "base/json_write.h"
#include "base/mem.h"
#include "base/table.h"

#include <math.h>
#include <stdlib.h>

enum { WORST = 20 }; /* rows of each table, unless all are asked for */

static const char *const kind_names[EP_COMPARE_KINDS] = {
    [EP_COMPARE_EQUAL] = "equal",   [EP_COMPARE_VALUES] = "values",
    [EP_COMPARE_DIFFER] = "differ", [EP_COMPARE_DTYPE] = "dtype",
    [EP_COMPARE_SHAPE] = "shape",   [EP_COMPARE_ONLY_A] = "only_a",
    [EP_COMPARE_ONLY_B] = "only_b",
};

/* Were the elements of the pair read? */
static bool was_read(const struct ep_compared *t)
{
    return t->kind <= EP_COMPARE_DIFFER;
}

/* ==== Text ==== */

static void add_norms(const struct ep_compare *r, struct ep_buf *out)
{
    ep_buf_addf(out, ", relative norm %.3g", r->relative);
    if (r->broken)
        ep_buf_addf(out, ", %llu element%s NaN or infinite",
                    (unsigned long long)r->broken, r->broken == 1 ? "" : "s");
}

static void add_incomparable(const struct ep_compare *r, struct ep_buf *out)
{
    static const struct {
        enum ep_compare_kind kind;
        const char *text;
    } parts[] = {
        {EP_COMPARE_ONLY_A, "only in A"},
        {EP_COMPARE_ONLY_B, "only in B"},
        {EP_COMPARE_SHAPE, "of another shape"},
        {EP_COMPARE_DTYPE, "of another type"},
    };
    size_t differ = r->kinds[EP_COMPARE_DIFFER], left = r->n;
    const char *sep = ":";

    ep_buf_adds(out, "not comparable");
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        size_t n = r->kinds[parts[i].kind];

        if (!n)
            continue;
        ep_buf_addf(out, "%s %zu %s", sep, n, parts[i].text);
        left -= n;
        sep = ",";
    }
    if (!left)
        return;
    ep_buf_addf(out, "; of the other %zu, ", left);
    if (!differ) {
        ep_buf_adds(out, "none differs");
        return;
    }
    ep_buf_addf(out, "%zu differ%s", differ, differ == 1 ? "s" : "");
    add_norms(r, out);
}

void ep_compare_add_verdict(const struct ep_compare *r, struct ep_buf *out)
{
    const char *s = r->n == 1 ? "" : "s";

    switch (ep_compare_verdict(r)) {
    case EP_VERDICT_EQUAL:
        ep_buf_addf(out, "equal: %zu tensor%s", r->n, s);
        break;
    case EP_VERDICT_VALUES:
        ep_buf_addf(out,
                    "equal values in %zu tensor%s, %zu of them of another "
                    "type or with other bits",
                    r->n, s, r->kinds[EP_COMPARE_VALUES]);
        break;
    case EP_VERDICT_DIFFER:
        ep_buf_addf(out, "differ in %zu of %zu tensor%s",
                    r->kinds[EP_COMPARE_DIFFER], r->n, s);
        add_norms(r, out);
        break;
    case EP_VERDICT_INCOMPARABLE:
        add_incomparable(r, out);
        break;
    }
}

/* Element at as its indices, "[3,17]"; a scalar has none. */
static void add_index(const struct ep_tensor *t, uint64_t at,
                      struct ep_buf *out)
{
    uint64_t stride = t->count;

    if (t->rank == 0) {
        ep_buf_addc(out, '-');
        return;
    }
    ep_buf_addc(out, '[');
    for (unsigned d = 0; d < t->rank; d++) {
        stride /= t->shape[d]; /* not 0: there is an element */
        ep_buf_addf(out, "%s%llu", d ? "," : "",
                    (unsigned long long)(at / stride));
        at %= stride;
    }
    ep_buf_addc(out, ']');
}

/* "BF16 4096x1024", or "-" for none. */
static void add_kind(const struct ep_tensor *t, struct ep_buf *out)
{
    if (!t) {
        ep_buf_addc(out, '-');
        return;
    }
    ep_buf_addf(out, "%s ", ep_dtype_name(t->dtype));
    ep_tensor_add_shape(t, out);
}

static void add_name(const struct ep_compared *t, struct ep_buf *out)
{
    ep_tensor_add_name(t->name, out);
}

static void add_left_out(size_t n, struct ep_buf *out)
{
    if (n > WORST)
        ep_buf_addf(out, "and %zu more\n", n - WORST);
}

static void print_incomparable(const struct ep_compare *r, bool all,
                               struct ep_buf *out)
{
    struct ep_table t;
    size_t n = 0;

    ep_table_init(&t, 3, 0);
    ep_buf_adds(ep_table_cell(&t), "not comparable");
    ep_buf_adds(ep_table_cell(&t), "A");
    ep_buf_adds(ep_table_cell(&t), "B");
    for (size_t i = 0; i < r->n; i++) {
        if (was_read(&r->tensor[i]) || (n++ >= WORST && !all))
            continue;
        add_name(&r->tensor[i], ep_table_cell(&t));
        add_kind(r->tensor[i].a, ep_table_cell(&t));
        add_kind(r->tensor[i].b, ep_table_cell(&t));
    }
    if (n) {
        ep_buf_addc(out, '\n');
        ep_table_print(&t, "", out);
        if (!all)
            add_left_out(n, out);
    }
    ep_table_free(&t);
}

/* One of those to be sorted. */
struct row {
    const struct ep_compared *t;
};

/* The worst first; see compare.h. Equal ones, if they are there, last. */
static int by_badness(const void *a, const void *b)
{
    const struct ep_compared *x = ((const struct row *)a)->t;
    const struct ep_compared *y = ((const struct row *)b)->t;
    bool raw_x = !x->numeric, raw_y = !y->numeric;

    if (x->kind != y->kind)
        return x->kind > y->kind ? -1 : 1;
    if (x->broken != y->broken)
        return x->broken > y->broken ? -1 : 1;
    if (x->kind == EP_COMPARE_DIFFER && raw_x != raw_y)
        return raw_x ? -1 : 1;
    if (x->relative != y->relative)
        return x->relative > y->relative ? -1 : 1;
    return x < y ? -1 : 1; /* by name */
}

/* What a row of numbers does not say. */
static void add_remarks(const struct ep_compared *t, struct ep_buf *out)
{
    const struct {
        uint64_t n;
        const char *text;
    } counts[] = {
        {t->nan_a, "NaN in A"},
        {t->nan_b, "NaN in B"},
        {t->inf_a, "infinite in A"},
        {t->inf_b, "infinite in B"},
    };
    const char *sep = "";

    if (t->a->dtype != t->b->dtype) {
        ep_buf_addf(out, "%s / %s", ep_dtype_name(t->a->dtype),
                    ep_dtype_name(t->b->dtype));
        sep = ", ";
    } else if (t->kind == EP_COMPARE_VALUES) {
        ep_buf_adds(out, "other bits");
        sep = ", ";
    } else if (!t->numeric) {
        ep_buf_addf(out, "%s, by bytes", ep_dtype_name(t->a->dtype));
        sep = ", ";
    }
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        if (!counts[i].n)
            continue;
        ep_buf_addf(out, "%s%llu %s", sep, (unsigned long long)counts[i].n,
                    counts[i].text);
        sep = ", ";
    }
    if (t->broken && t->a->rank) {
        ep_buf_addf(out, "%sfirst at ", sep);
        add_index(t->a, t->broken_at, out);
    }
}

static void add_number(struct ep_table *t, bool there, double x)
{
    struct ep_buf *cell = ep_table_cell(t);

    if (there)
        ep_buf_addf(cell, "%.3g", x);
    else
        ep_buf_addc(cell, '-');
}

static void add_row(struct ep_table *t, const struct ep_compared *x)
{
    struct ep_buf *cell;
    bool bytes = ep_dtype_bits(x->a->dtype) < 8;
    bool place = x->numeric ? x->max_abs > 0 : x->differing > 0 && !bytes;

    add_name(x, ep_table_cell(t));
    add_number(t, x->numeric, x->relative);
    add_number(t, x->numeric, x->diff_norm);
    add_number(t, x->numeric, x->max_abs);
    cell = ep_table_cell(t);
    if (place)
        add_index(x->a, x->max_at, cell);
    else
        ep_buf_addc(cell, '-');
    ep_buf_addf(ep_table_cell(t), "%llu of %llu",
                (unsigned long long)x->differing,
                (unsigned long long)(bytes ? x->a->bytes : x->a->count));
    add_remarks(x, ep_table_cell(t));
}

static void print_differing(const struct ep_compare *r, bool all,
                            struct ep_buf *out)
{
    static const char *const head[] = {"tensor",    "relative", "|a-b|",
                                       "max |a-b|", "at",       "differing",
                                       "remarks"};
    struct row *row = ep_calloc(r->n + 1, sizeof *row);
    struct ep_table t;
    size_t n = 0;

    for (size_t i = 0; i < r->n; i++)
        if (was_read(&r->tensor[i]) &&
            (all || r->tensor[i].kind != EP_COMPARE_EQUAL))
            row[n++].t = &r->tensor[i];
    if (n) {
        qsort(row, n, sizeof *row, by_badness);
        ep_table_init(&t, 7, 1 << 1 | 1 << 2 | 1 << 3 | 1 << 5);
        for (size_t k = 0; k < 7; k++)
            ep_buf_adds(ep_table_cell(&t), head[k]);
        for (size_t i = 0; i < n && (all || i < WORST); i++)
            add_row(&t, row[i].t);
        ep_buf_addc(out, '\n');
        ep_table_print(&t, "", out);
        ep_table_free(&t);
        if (!all)
            add_left_out(n, out);
    }
    free(row);
}

static void print_text(const struct ep_compare *r, bool all, struct ep_buf *out)
{
    ep_compare_add_verdict(r, out);
    ep_buf_addc(out, '\n');
    print_incomparable(r, all, out);
    print_differing(r, all, out);
}

/* ==== JSON Lines ==== */

static void key_uint(struct ep_jw *w, const char *key, uint64_t x)
{
    ep_jw_key(w, key);
    ep_jw_uint(w, x);
}

static void json_totals(const struct ep_compare *r, struct ep_jw *w)
{
    static const char *const verdicts[] = {
        [EP_VERDICT_EQUAL] = "equal",
        [EP_VERDICT_VALUES] = "values",
        [EP_VERDICT_DIFFER] = "differ",
        [EP_VERDICT_INCOMPARABLE] = "incomparable",
    };

    ep_jw_begin_object(w);
    ep_jw_key_string(w, "type", "compare");
    ep_jw_key_string(w, "verdict", verdicts[ep_compare_verdict(r)]);
    ep_jw_key_string(w, "a", ep_ckpt_path(r->a));
    ep_jw_key_string(w, "b", ep_ckpt_path(r->b));
    key_uint(w, "tensors", r->n);
    for (int k = 0; k < EP_COMPARE_KINDS; k++)
        key_uint(w, kind_names[k], r->kinds[k]);
    ep_jw_key_double(w, "diff_norm", r->diff_norm);
    ep_jw_key_double(w, "a_norm", r->a_norm);
    ep_jw_key_double(w, "relative", r->relative);
    key_uint(w, "differing", r->differing);
    key_uint(w, "broken", r->broken);
    ep_jw_end_object(w);
    ep_jw_newline(w);
}

static void json_tensor(struct ep_jw *w, const struct ep_tensor *t,
                        const char *dtype, const char *shape)
{
    if (!t)
        return;
    ep_jw_key_string(w, dtype, ep_dtype_name(t->dtype));
    ep_jw_key(w, shape);
    ep_jw_begin_array(w);
    for (unsigned d = 0; d < t->rank; d++)
        ep_jw_uint(w, t->shape[d]);
    ep_jw_end_array(w);
}

static void json_compared(const struct ep_compared *t, struct ep_jw *w)
{
    ep_jw_begin_object(w);
    ep_jw_key_string(w, "type", "compared");
    ep_jw_key(w, "name");
    ep_jw_bytes(w, t->name);
    ep_jw_key_string(w, "kind", kind_names[t->kind]);
    json_tensor(w, t->a, "dtype_a", "shape_a");
    json_tensor(w, t->b, "dtype_b", "shape_b");
    if (was_read(t) && t->numeric) {
        ep_jw_key_double(w, "relative", t->relative);
        ep_jw_key_double(w, "diff_norm", t->diff_norm);
        ep_jw_key_double(w, "a_norm", t->a_norm);
        ep_jw_key_double(w, "max_abs", t->max_abs);
    }
    if (was_read(t)) {
        if (t->differing)
            key_uint(w, "max_at", t->max_at);
        key_uint(w, "differing", t->differing);
        key_uint(w, "broken", t->broken);
        if (t->broken)
            key_uint(w, "broken_at", t->broken_at);
    }
    if (was_read(t) && t->numeric) {
        key_uint(w, "nan_a", t->nan_a);
        key_uint(w, "inf_a", t->inf_a);
        key_uint(w, "nan_b", t->nan_b);
        key_uint(w, "inf_b", t->inf_b);
    }
    ep_jw_end_object(w);
    ep_jw_newline(w);
}

/* ==== TSV ==== */

static void tsv_double(struct ep_buf *out, bool there, double x)
{
    char digits[EP_FP_MAX];

    ep_buf_addc(out, '\t');
    if (there && isfinite(x))
        ep_buf_add(out, digits, ep_fp_print(x, digits));
}

static void tsv_uint(struct ep_buf *out, bool there, uint64_t x)
{
    ep_buf_addc(out, '\t');
    if (there)
        ep_buf_addf(out, "%llu", (unsigned long long)x);
}

static void tsv_tensor(struct ep_buf *out, const struct ep_tensor *t)
{
    ep_buf_addf(out, "\t%s\t", t ? ep_dtype_name(t->dtype) : "");
    if (t)
        ep_tensor_add_shape(t, out);
}

static void tsv_compared(const struct ep_compared *t, struct ep_buf *out)
{
    bool read = was_read(t), norms = read && t->numeric;

    ep_ckpt_add_tsv(t->name, out);
    ep_buf_addf(out, "\t%s", kind_names[t->kind]);
    tsv_tensor(out, t->a);
    tsv_tensor(out, t->b);
    tsv_double(out, norms, t->relative);
    tsv_double(out, norms, t->diff_norm);
    tsv_double(out, norms, t->a_norm);
    tsv_double(out, norms, t->max_abs);
    tsv_uint(out, read && t->differing, t->max_at);
    tsv_uint(out, read, t->differing);
    tsv_uint(out, read, t->broken);
    tsv_uint(out, read && t->broken, t->broken_at);
    tsv_uint(out, norms, t->nan_a);
    tsv_uint(out, norms, t->inf_a);
    tsv_uint(out, norms, t->nan_b);
    tsv_uint(out, norms, t->inf_b);
    ep_buf_addc(out, '\n');
}

void ep_compare_print(const struct ep_compare *r,
                      const struct ep_compare_options *opt, struct ep_buf *out)
{
    struct ep_jw w;

    ep_jw_init(&w, out);
    switch (opt->format) {
    case EP_CKPT_TEXT:
        print_text(r, opt->all, out);
        return;
    case EP_CKPT_JSONL:
        json_totals(r, &w);
        break;
    case EP_CKPT_TSV:
        ep_buf_adds(out,
                    "name\tkind\tdtype_a\tshape_a\tdtype_b\tshape_b\t"
                    "relative\tdiff_norm\ta_norm\tmax_abs\tmax_at\t"
                    "differing\tbroken\tbroken_at\tnan_a\tinf_a\tnan_b\t"
                    "inf_b\n");
        break;
    }
    for (size_t i = 0; i < r->n; i++) {
        if (!opt->all && r->tensor[i].kind == EP_COMPARE_EQUAL)
            continue;
        if (opt->format == EP_CKPT_JSONL)
            json_compared(&r->tensor[i], &w);
        else
            tsv_compared(&r->tensor[i], out);
    }
}
