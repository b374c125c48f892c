/* SPDX-License-Identifier: Apache-2.0 */
/* record_tsv.c - records as tab-separated values; see record.h, columns.h. */
#include "config.h"

#include "base/fp.h"
#include "record/columns.h"
#include "record/record.h"

#include <string.h>

/* Is k a column of the type's table? */
static bool is_column(enum ep_type type, int k)
{
    const struct ep_type_info *t = &ep_type_table[type];

    if (k >= EP_K_TS && k <= EP_K_WORKER)
        return true;
    for (size_t i = 0; t->need[i] != EP_K_TYPE; i++)
        if ((int)t->need[i] == k)
            return true;
    for (size_t i = 0; t->may[i] != EP_K_TYPE; i++)
        if ((int)t->may[i] == k)
            return true;
    return false;
}

/* Is it a control character that a terminal obeys? Of one beyond ASCII (C1,
   two bytes of UTF-8) either byte. */
static bool is_control(struct ep_span s, size_t i)
{
    unsigned char c = (unsigned char)s.ptr[i];
    unsigned char next = i + 1 < s.len ? (unsigned char)s.ptr[i + 1] : 0;
    unsigned char last = i > 0 ? (unsigned char)s.ptr[i - 1] : 0;

    return c < 0x20 || c == 0x7f ||
           (c == 0xc2 && next >= 0x80 && next < 0xa0) ||
           (last == 0xc2 && c >= 0x80 && c < 0xa0);
}

static void add_escaped(struct ep_buf *out, struct ep_span s)
{
    for (size_t i = 0; i < s.len; i++) {
        char c = s.ptr[i];

        if (c == '\t')
            ep_buf_adds(out, "\\t");
        else if (c == '\n')
            ep_buf_adds(out, "\\n");
        else if (c == '\\')
            ep_buf_adds(out, "\\\\");
        else if (is_control(s, i))
            ep_buf_addf(out, "\\x%02x", (unsigned)(unsigned char)c);
        else
            ep_buf_addc(out, c);
    }
}

void ep_record_tsv_header(enum ep_type type, struct ep_buf *out)
{
    ep_buf_adds(out, "type");
    for (int k = EP_K_TS; k < EP_KEYS; k++)
        if (is_column(type, k)) {
            ep_buf_addc(out, '\t');
            ep_buf_adds(out, ep_key_table[k].name);
        }
    ep_buf_addc(out, '\n');
}

/* A value, or nothing. */
static void add_value(struct ep_buf *out, const struct ep_record *r,
                      enum ep_key k)
{
    enum ep_value kind = ep_key_value(r->type, k);
    char digits[EP_FP_MAX];

    if (!ep_record_has(r, k))
        return;
    if (kind == EP_V_STRING || kind == EP_V_STRINGS)
        add_escaped(out, r->v[k].str);
    else
        ep_buf_add(out, digits, ep_fp_print(r->v[k].num, digits));
}

void ep_record_print_tsv(const struct ep_record *r, struct ep_buf *out)
{
    add_escaped(out, r->v[EP_K_TYPE].str);
    for (int k = EP_K_TS; k < EP_KEYS; k++) {
        if (!is_column(r->type, k))
            continue;
        ep_buf_addc(out, '\t');
        add_value(out, r, (enum ep_key)k);
    }
    ep_buf_addc(out, '\n');
}

/* ==== Columns that were chosen ==== */

enum { WORD_MAX = 24, ALIKE = 2 /* letters to change, at most */ };

/*
 * How many letters have to be changed, put in, left out, or swapped with their
 * neighbour to make b of a: the optimal string alignment distance.
 */
static int distance(struct ep_span a, const char *b)
{
    int d[WORD_MAX + 1][WORD_MAX + 1], n = (int)strlen(b), m = (int)a.len;

    if (m > WORD_MAX || n > WORD_MAX)
        return WORD_MAX;
    for (int i = 0; i <= m; i++)
        for (int j = 0; j <= n; j++) {
            int best =
                i && j ? d[i - 1][j - 1] + (a.ptr[i - 1] != b[j - 1]) : i + j;

            if (i && d[i - 1][j] + 1 < best)
                best = d[i - 1][j] + 1;
            if (j && d[i][j - 1] + 1 < best)
                best = d[i][j - 1] + 1;
            if (i > 1 && j > 1 && a.ptr[i - 1] == b[j - 2] &&
                a.ptr[i - 2] == b[j - 1] && d[i - 2][j - 2] + 1 < best)
                best = d[i - 2][j - 2] + 1;
            d[i][j] = best;
        }
    return d[m][n];
}

static int no_such_key(struct ep_span word, struct ep_error *err)
{
    int best = ALIKE + 1;
    const char *alike = NULL;
    char shown[64];

    (void)ep_escape(shown, sizeof shown, word.ptr, word.len);
    for (int k = 0; k < EP_KEYS; k++) {
        int d = distance(word, ep_key_table[k].name);

        if (d < best) {
            best = d;
            alike = ep_key_table[k].name;
        }
    }
    if (alike && best < (int)word.len)
        return ep_error_set(err, EP_EUSAGE,
                            "cannot use --columns %s: no such key; is it %s?",
                            shown, alike);
    return ep_error_set(err, EP_EUSAGE,
                        "cannot use --columns %s: no such key, see "
                        "evenpace-record(5)",
                        shown);
}

int ep_columns_init(struct ep_columns *c, const char *text,
                    struct ep_error *err)
{
    c->n = 0;
    for (;;) {
        struct ep_span word = {text, strcspn(text, ",")};
        int k = 0;

        while (k < EP_KEYS && !ep_span_eq(word, ep_key_table[k].name))
            k++;
        if (k == EP_KEYS)
            return no_such_key(word, err);
        if (c->n == EP_COLUMNS_MAX)
            return ep_error_set(err, EP_ELIMIT,
                                "cannot use --columns: more than %d",
                                EP_COLUMNS_MAX);
        c->key[c->n++] = (enum ep_key)k;
        text += word.len;
        if (!*text++)
            return 0;
    }
}

void ep_columns_header(const struct ep_columns *c, struct ep_buf *out)
{
    for (int i = 0; i < c->n; i++) {
        ep_buf_adds(out, i ? "\t" : "");
        ep_buf_adds(out, ep_key_table[c->key[i]].name);
    }
    ep_buf_addc(out, '\n');
}

void ep_columns_print(const struct ep_columns *c, const struct ep_record *r,
                      struct ep_buf *out)
{
    for (int i = 0; i < c->n; i++) {
        ep_buf_adds(out, i ? "\t" : "");
        add_value(out, r, c->key[i]);
    }
    ep_buf_addc(out, '\n');
}
