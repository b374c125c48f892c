/* SPDX-License-Identifier: Apache-2.0 */
/*
 * table.h - columns of text, aligned.
 *
 * Cells are written one after the other, row by row, and aligned when the
 * whole is printed:
 *
 *     struct ep_table t;
 *
 *     ep_table_init(&t, 2, 1 << 1);       the second column to the right
 *     ep_buf_adds(ep_table_cell(&t), "name");
 *     ep_buf_adds(ep_table_cell(&t), "size");
 *     ep_table_print(&t, "  ", out);
 *     ep_table_free(&t);
 *
 * A character counts as one column wide. A cell wider than EP_TABLE_WIDTH is
 * printed in full and pushes the rest of its own row only. Text from input
 * must be escaped by whoever adds it. Memory: the text, and a word per cell.
 */
#ifndef EP_BASE_TABLE_H
#define EP_BASE_TABLE_H

#include "base/buf.h"

#include <stddef.h>

enum { EP_TABLE_COLUMNS = 16, EP_TABLE_WIDTH = 64 };

/* Private: use the functions. */
struct ep_table {
    struct ep_buf text;
    size_t *start; /* of cell i in text */
    size_t cells, cap;
    unsigned columns, right;
};

/*
 * columns     1..EP_TABLE_COLUMNS
 * right       bit i: column i is aligned to the right
 */
void ep_table_init(struct ep_table *t, unsigned columns, unsigned right);

void ep_table_free(struct ep_table *t);

/* Begin the next cell: append its text to the buffer, and nothing else. */
struct ep_buf *ep_table_cell(struct ep_table *t);

/*
 * Print the rows, each behind indent, two spaces between columns, none at the
 * end of a line. A last row that is not complete is padded with empty cells.
 */
void ep_table_print(const struct ep_table *t, const char *indent,
                    struct ep_buf *out);

#endif
