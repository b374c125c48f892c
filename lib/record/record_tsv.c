/* SPDX-License-Identifier: Apache-2.0 */
/* record_tsv.c - records as tab-separated values; see record.h. */
#include "config.h"

#include "record/record.h"

#include "base/fp.h"

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

void ep_record_print_tsv(const struct ep_record *r, struct ep_buf *out)
{
    add_escaped(out, r->v[EP_K_TYPE].str);
    for (int k = EP_K_TS; k < EP_KEYS; k++) {
        enum ep_value kind = ep_key_value(r->type, (enum ep_key)k);

        if (!is_column(r->type, k))
            continue;
        ep_buf_addc(out, '\t');
        if (!ep_record_has(r, (enum ep_key)k))
            continue;
        if (kind == EP_V_STRING || kind == EP_V_STRINGS) {
            add_escaped(out, r->v[k].str);
        } else {
            char digits[EP_FP_MAX];

            ep_buf_add(out, digits, ep_fp_print(r->v[k].num, digits));
        }
    }
    ep_buf_addc(out, '\n');
}
