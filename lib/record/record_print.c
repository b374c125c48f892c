/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record_print.c - a record as a line of JSON.
 *
 * The way out of every program, so it writes without looking where it can: room
 * for all numbers that a record may have is made once, keys are copied with
 * their quotes and separators at a fixed length, of which a part is overwritten
 * again, and only a string asks whether there is room for it.
 */
#include "config.h"

#include "record/record.h"

#include "base/fp.h"
#include "base/json_write.h"

/* Of all keys with numbers, and the end of the line. */
#define ROOM ((size_t)EP_KEYS * (EP_MEMBER_MAX + EP_FP_MAX) + 64)

/* A text so long is no name: it is written by pieces. */
#define LONG 4096

/* An array of strings without the white space between its elements. */
static void add_compact(struct ep_buf *out, struct ep_span text)
{
    bool inside = false;

    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];

        if (inside && c == '\\')
            ep_buf_addc(out, text.ptr[i++]), c = text.ptr[i];
        else if (c == '"')
            inside = !inside;
        if (inside || (unsigned char)c > ' ')
            ep_buf_addc(out, c);
    }
}

/* What goes through the buffer: p is where the line ends so far. Returns where
   it ends now, with ROOM behind. */
static __attribute__((noinline)) char *
add_slowly(struct ep_buf *out, char *p, struct ep_span s, enum ep_value value)
{
    struct ep_jw w;

    (void)ep_buf_extend(out, (size_t)(p - (out->ptr + out->len)));
    if (value == EP_V_STRINGS) {
        add_compact(out, s);
    } else {
        ep_jw_init(&w, out);
        ep_jw_bytes(&w, s);
    }
    return ep_buf_reserve(out, ROOM);
}

static char *put_string(struct ep_buf *out, char *p, struct ep_span s)
{
    const char *limit = out->ptr + out->cap;

    if (s.len > LONG)
        return add_slowly(out, p, s, EP_V_STRING);
    if ((size_t)(limit - p) <= ROOM + EP_JW_STRING_MAX(s.len)) {
        (void)ep_buf_extend(out, (size_t)(p - (out->ptr + out->len)));
        p = ep_buf_reserve(out, ROOM + EP_JW_STRING_MAX(s.len));
    }
    return ep_jw_put_string(p, s);
}

/*
 * A time, which many records in a row may share: the sensors of one scrape, the
 * metrics of one step. The text of the last one is kept.
 */
static size_t put_time(double ts, char *p)
{
    static _Thread_local struct {
        uint64_t bits;
        size_t len; /* 0: none */
        char text[EP_FP_MAX];
    } last;

    uint64_t bits; /* 0 is not -0 */

    memcpy(&bits, &ts, sizeof bits);
    if (!last.len || last.bits != bits) {
        last.bits = bits;
        last.len = ep_fp_print(ts, last.text);
    }
    memcpy(p, last.text, EP_FP_MAX);
    return last.len;
}

void ep_record_print(const struct ep_record *r, struct ep_buf *out)
{
    size_t begin = out->len;
    char *p = ep_buf_reserve(out, ROOM);

    for (int half = 0; half < 2; half++) {
        for (uint64_t bits = r->have[half]; bits; bits &= bits - 1) {
            int k = half * 64 + __builtin_ctzll(bits);
            const struct ep_key_info *info = &ep_key_table[k];
            enum ep_value value = ep_key_value(r->type, (enum ep_key)k);

            /* what is not finite does not exist in a record */
            if (value == EP_V_NUMBER && !isfinite(r->v[k].num))
                continue;
            memcpy(p, info->member, EP_MEMBER_MAX);
            p += info->member_len;
            if (value == EP_V_STRING)
                p = put_string(out, p, r->v[k].str);
            else if (value == EP_V_INTEGER)
                p += ep_fp_print_int((int64_t)r->v[k].num, p);
            else if (k == EP_K_TS)
                p += put_time(r->v[k].num, p);
            else if (value == EP_V_NUMBER)
                p += ep_fp_print(r->v[k].num, p);
            else
                p = add_slowly(out, p, r->v[k].str, value);
        }
    }
    if (p == out->ptr + begin)
        p++;
    out->ptr[begin] = '{'; /* in place of the comma */
    p[0] = '}';
    p[1] = '\n';
    (void)ep_buf_extend(out, (size_t)(p + 2 - (out->ptr + out->len)));
}
