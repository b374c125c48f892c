/* SPDX-License-Identifier: Apache-2.0 */
/* table.c - see table.h. */
#include "config.h"

#include "base/table.h"

#include "base/mem.h"

#include <stdlib.h>

void ep_table_init(struct ep_table *t, unsigned columns, unsigned right)
{
    *t = (struct ep_table){.columns = columns, .right = right};
    ep_buf_init(&t->text);
}

void ep_table_free(struct ep_table *t)
{
    ep_buf_free(&t->text);
    free(t->start);
    t->start = NULL;
    t->cells = t->cap = 0;
}

struct ep_buf *ep_table_cell(struct ep_table *t)
{
    t->start = ep_grow(t->start, &t->cap, t->cells + 1, sizeof *t->start);
    t->start[t->cells++] = t->text.len;
    return &t->text;
}

static struct ep_span cell(const struct ep_table *t, size_t i)
{
    size_t end = i + 1 < t->cells ? t->start[i + 1] : t->text.len;

    return (struct ep_span){t->text.ptr + t->start[i], end - t->start[i]};
}

/* Characters of UTF-8: bytes that do not continue one. */
static size_t width(struct ep_span s)
{
    size_t n = 0;

    for (size_t i = 0; i < s.len; i++)
        n += ((unsigned char)s.ptr[i] & 0xc0) != 0x80;
    return n;
}

static void add_spaces(struct ep_buf *out, size_t n)
{
    while (n--)
        ep_buf_addc(out, ' ');
}

/* Print one row of n <= columns cells, from cell first on. */
static void print_row(const struct ep_table *t, const size_t *widths,
                      size_t first, size_t n, struct ep_buf *out)
{
    size_t owed = 0; /* spaces that only a later cell makes visible */

    for (size_t c = 0; c < n; c++) {
        struct ep_span s = cell(t, first + c);
        size_t w = width(s);
        size_t pad = w < widths[c] ? widths[c] - w : 0;
        bool right = t->right >> c & 1;

        if (s.len) {
            add_spaces(out, owed + (right ? pad : 0));
            ep_buf_add(out, s.ptr, s.len);
            owed = right ? 0 : pad;
        } else {
            owed += pad;
        }
        owed += 2;
    }
    ep_buf_addc(out, '\n');
}

void ep_table_print(const struct ep_table *t, const char *indent,
                    struct ep_buf *out)
{
    size_t widths[EP_TABLE_COLUMNS] = {0};

    for (size_t i = 0; i < t->cells; i++) {
        size_t w = width(cell(t, i)), *most = &widths[i % t->columns];

        if (w > *most && w <= EP_TABLE_WIDTH)
            *most = w;
    }
    for (size_t i = 0; i < t->cells; i += t->columns) {
        size_t n = t->cells - i;

        ep_buf_adds(out, indent);
        print_row(t, widths, i, n < t->columns ? n : t->columns, out);
    }
}
