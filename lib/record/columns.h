/* SPDX-License-Identifier: Apache-2.0 */
/*
 * columns.h - records as tab-separated values with columns that were chosen.
 *
 * One header, then one line for each record of whatever type: the values of
 * the keys, empty where a record has none. Values and what is escaped in them
 * are those of ep_record_print_tsv.
 */
#ifndef EP_RECORD_COLUMNS_H
#define EP_RECORD_COLUMNS_H

#include "base/buf.h"
#include "base/err.h"
#include "record/record.h"

enum { EP_COLUMNS_MAX = 128 };

struct ep_columns {
    enum ep_key key[EP_COLUMNS_MAX];
    int n;
};

/*
 * From "ts,host,rank". A key may come twice.
 * Errors: EP_EUSAGE "cannot use --columns NAME: no such key" with the key that
 * is spelt most like it, if there is one; EP_ELIMIT.
 */
int ep_columns_init(struct ep_columns *c, const char *text,
                    struct ep_error *err) EP_MUST_USE;

void ep_columns_header(const struct ep_columns *c, struct ep_buf *out);
void ep_columns_print(const struct ep_columns *c, const struct ep_record *r,
                      struct ep_buf *out);

#endif
