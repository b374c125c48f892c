/* SPDX-License-Identifier: Apache-2.0 */
/* describe.c - see describe.h. */
#include "config.h"

#include "ckpt/describe.h"

#include "base/json_write.h"
#include "base/num.h"
#include "base/table.h"

#include <string.h>

enum { META_SHOWN = 72 }; /* bytes of a metadata key or value in text */
/* columns of a tensor's name in text; of its ends if the middle is left out */
enum { NAME_SHOWN = 60, NAME_PART = 28 };

struct totals {
    uint64_t tensors, elements, bytes;
};

static void add_totals(struct totals *sum, const struct ep_tensor *t)
{
    sum->tensors++;
    sum->elements += t->count;
    sum->bytes += t->bytes;
}

/* Totals of each dtype; returns those of all. */
static struct totals count(const struct ep_ckpt *c, struct totals by[EP_DTYPES])
{
    struct totals all = {0};

    memset(by, 0, EP_DTYPES * sizeof *by);
    for (size_t i = 0; i < ep_ckpt_count(c); i++) {
        const struct ep_tensor *t = ep_ckpt_tensor(c, i);

        add_totals(&by[t->dtype], t);
        add_totals(&all, t);
    }
    return all;
}

void ep_tensor_add_shape(const struct ep_tensor *t, struct ep_buf *out)
{
    if (t->rank == 0)
        ep_buf_adds(out, "scalar");
    for (unsigned d = 0; d < t->rank; d++)
        ep_buf_addf(out, "%s%llu", d ? "x" : "",
                    (unsigned long long)t->shape[d]);
}

/* Does byte i of escaped text continue a character, or the \xNN of a byte? */
static bool is_inside(const char *text, size_t i)
{
    for (size_t k = i < 3 ? 0 : i - 3; k < i; k++)
        if (text[k] == '\\') /* never itself: it is escaped too */
            return true;
    return ((unsigned char)text[i] & 0xc0) == 0x80;
}

static size_t count_columns(const char *text, size_t n)
{
    size_t columns = 0;

    for (size_t i = 0; i < n; i++)
        columns += ((unsigned char)text[i] & 0xc0) != 0x80;
    return columns;
}

void ep_tensor_add_name(struct ep_span name, struct ep_buf *out)
{
    struct ep_buf b;

    ep_buf_init(&b);
    ep_buf_add_escaped(&b, name.ptr, name.len);
    if (!b.len) {
        ep_buf_adds(out, "\"\"");
    } else if (count_columns(b.ptr, b.len) <= NAME_SHOWN) {
        ep_buf_add(out, b.ptr, b.len);
    } else {
        size_t head = b.len, tail = 0;

        while (count_columns(b.ptr, head) > NAME_PART || is_inside(b.ptr, head))
            head--;
        while (count_columns(b.ptr + tail, b.len - tail) > NAME_PART ||
               is_inside(b.ptr, tail))
            tail++;
        ep_buf_add(out, b.ptr, head);
        ep_buf_adds(out, "...");
        ep_buf_add(out, b.ptr + tail, b.len - tail);
    }
    ep_buf_free(&b);
}

void ep_ckpt_add_tsv(struct ep_span text, struct ep_buf *out)
{
    size_t from = 0;

    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];

        if (c != '\t' && c != '\n' && c != '\\')
            continue;
        ep_buf_add_escaped(out, text.ptr + from, i - from);
        ep_buf_adds(out, c == '\t' ? "\\t" : c == '\n' ? "\\n" : "\\\\");
        from = i + 1;
    }
    ep_buf_add_escaped(out, text.ptr + from, text.len - from);
}

static void add_escaped(struct ep_buf *out, struct ep_span s)
{
    ep_buf_add_escaped(out, s.ptr, s.len);
}

/* The part of a path behind the last '/'. */
static struct ep_span file_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;

    return (struct ep_span){name, strlen(name)};
}

static void add_summary(const struct ep_ckpt *c, const struct totals *all,
                        struct ep_buf *out)
{
    const char *path = ep_ckpt_path(c);
    size_t files = ep_ckpt_files(c);

    ep_buf_add_escaped(out, path, strlen(path));
    ep_buf_addf(out, ": %llu tensor%s, ", (unsigned long long)all->tensors,
                all->tensors == 1 ? "" : "s");
    ep_num_format_si(out, (double)all->elements, "");
    ep_buf_addf(out, " parameter%s, ", all->elements == 1 ? "" : "s");
    ep_num_format_size(out, (double)all->bytes);
    if (files > 1)
        ep_buf_addf(out, " in %zu files", files);
    ep_buf_addc(out, '\n');
}

static void add_dtypes(const struct totals by[EP_DTYPES], struct ep_buf *out)
{
    struct ep_table t;

    ep_table_init(&t, 4, 1 << 1 | 1 << 2 | 1 << 3);
    for (int d = 0; d < EP_DTYPES; d++) {
        if (!by[d].tensors)
            continue;
        ep_buf_adds(ep_table_cell(&t), ep_dtype_name((enum ep_dtype)d));
        ep_buf_addf(ep_table_cell(&t), "%llu tensor%s",
                    (unsigned long long)by[d].tensors,
                    by[d].tensors == 1 ? "" : "s");
        ep_num_format_si(ep_table_cell(&t), (double)by[d].elements, "");
        ep_num_format_size(ep_table_cell(&t), (double)by[d].bytes);
    }
    ep_table_print(&t, "  ", out);
    ep_table_free(&t);
}

static void add_cut(struct ep_buf *out, struct ep_span s)
{
    char shown[META_SHOWN + 1];

    ep_buf_adds(out, ep_escape(shown, sizeof shown, s.ptr, s.len));
}

static void add_meta(const struct ep_ckpt *c, struct ep_buf *out)
{
    struct ep_table t;

    if (!ep_ckpt_meta_count(c))
        return;
    ep_table_init(&t, 2, 0);
    for (size_t i = 0; i < ep_ckpt_meta_count(c); i++) {
        struct ep_st_meta m = ep_ckpt_meta(c, i);

        add_cut(ep_table_cell(&t), m.key);
        add_cut(ep_table_cell(&t), m.value);
    }
    ep_buf_adds(out, "\nmetadata\n");
    ep_table_print(&t, "  ", out);
    ep_table_free(&t);
}

static void add_tensors(const struct ep_ckpt *c, struct ep_buf *out)
{
    static const char *const head[] = {"name",       "type", "shape",
                                       "parameters", "size", "file"};
    bool files = ep_ckpt_files(c) > 1;
    unsigned columns = files ? 6 : 5;
    struct ep_table t;

    if (!ep_ckpt_count(c))
        return;
    ep_table_init(&t, columns, 1 << 3 | 1 << 4);
    for (unsigned k = 0; k < columns; k++)
        ep_buf_adds(ep_table_cell(&t), head[k]);
    for (size_t i = 0; i < ep_ckpt_count(c); i++) {
        const struct ep_tensor *x = ep_ckpt_tensor(c, i);

        ep_tensor_add_name(x->name, ep_table_cell(&t));
        ep_buf_adds(ep_table_cell(&t), ep_dtype_name(x->dtype));
        ep_tensor_add_shape(x, ep_table_cell(&t));
        ep_num_format_si(ep_table_cell(&t), (double)x->count, "");
        ep_num_format_size(ep_table_cell(&t), (double)x->bytes);
        if (files)
            add_escaped(ep_table_cell(&t), file_name(ep_ckpt_file(c, i)));
    }
    ep_buf_addc(out, '\n');
    ep_table_print(&t, "", out);
    ep_table_free(&t);
}

static void describe_text(const struct ep_ckpt *c, struct ep_buf *out)
{
    struct totals by[EP_DTYPES], all = count(c, by);

    add_summary(c, &all, out);
    add_dtypes(by, out);
    add_meta(c, out);
    add_tensors(c, out);
}

static void key_uint(struct ep_jw *w, const char *key, uint64_t x)
{
    ep_jw_key(w, key);
    ep_jw_uint(w, x);
}

static void key_totals(struct ep_jw *w, const struct totals *t)
{
    key_uint(w, "tensors", t->tensors);
    key_uint(w, "elements", t->elements);
    key_uint(w, "bytes", t->bytes);
}

static void json_checkpoint(const struct ep_ckpt *c, struct ep_jw *w)
{
    struct totals by[EP_DTYPES], all = count(c, by);

    ep_jw_begin_object(w);
    ep_jw_key_string(w, "type", "checkpoint");
    ep_jw_key_string(w, "path", ep_ckpt_path(c));
    key_totals(w, &all);
    key_uint(w, "files", ep_ckpt_files(c));
    key_uint(w, "file_bytes", ep_ckpt_bytes(c));
    ep_jw_key(w, "dtypes");
    ep_jw_begin_object(w);
    for (int d = 0; d < EP_DTYPES; d++) {
        if (!by[d].tensors)
            continue;
        ep_jw_key(w, ep_dtype_name((enum ep_dtype)d));
        ep_jw_begin_object(w);
        key_totals(w, &by[d]);
        ep_jw_end_object(w);
    }
    ep_jw_end_object(w);
    ep_jw_key(w, "metadata");
    ep_jw_begin_object(w);
    for (size_t i = 0; i < ep_ckpt_meta_count(c); i++) {
        struct ep_st_meta m = ep_ckpt_meta(c, i);

        ep_jw_key_bytes(w, m.key);
        ep_jw_bytes(w, m.value);
    }
    ep_jw_end_object(w);
    ep_jw_end_object(w);
    ep_jw_newline(w);
}

static void describe_jsonl(const struct ep_ckpt *c, struct ep_buf *out)
{
    struct ep_jw w;

    ep_jw_init(&w, out);
    json_checkpoint(c, &w);
    for (size_t i = 0; i < ep_ckpt_count(c); i++) {
        const struct ep_tensor *t = ep_ckpt_tensor(c, i);

        ep_jw_begin_object(&w);
        ep_jw_key_string(&w, "type", "tensor");
        ep_jw_key(&w, "name");
        ep_jw_bytes(&w, t->name);
        ep_jw_key_string(&w, "dtype", ep_dtype_name(t->dtype));
        ep_jw_key(&w, "shape");
        ep_jw_begin_array(&w);
        for (unsigned d = 0; d < t->rank; d++)
            ep_jw_uint(&w, t->shape[d]);
        ep_jw_end_array(&w);
        key_uint(&w, "elements", t->count);
        key_uint(&w, "bytes", t->bytes);
        ep_jw_key(&w, "file");
        ep_jw_bytes(&w, file_name(ep_ckpt_file(c, i)));
        ep_jw_end_object(&w);
        ep_jw_newline(&w);
    }
}

static void describe_tsv(const struct ep_ckpt *c, struct ep_buf *out)
{
    ep_buf_adds(out, "name\tdtype\tshape\telements\tbytes\tfile\n");
    for (size_t i = 0; i < ep_ckpt_count(c); i++) {
        const struct ep_tensor *t = ep_ckpt_tensor(c, i);

        ep_ckpt_add_tsv(t->name, out);
        ep_buf_addf(out, "\t%s\t", ep_dtype_name(t->dtype));
        ep_tensor_add_shape(t, out);
        ep_buf_addf(out, "\t%llu\t%llu\t", (unsigned long long)t->count,
                    (unsigned long long)t->bytes);
        ep_ckpt_add_tsv(file_name(ep_ckpt_file(c, i)), out);
        ep_buf_addc(out, '\n');
    }
}

void ep_ckpt_describe(const struct ep_ckpt *c, enum ep_ckpt_format format,
                      struct ep_buf *out)
{
    switch (format) {
    case EP_CKPT_TEXT:
        describe_text(c, out);
        break;
    case EP_CKPT_JSONL:
        describe_jsonl(c, out);
        break;
    case EP_CKPT_TSV:
        describe_tsv(c, out);
        break;
    }
}
