/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record_fast.c - records as our own programs write them, read without a JSON
 * scanner.
 *
 * Which key comes next is guessed: the one that came there the last time in a
 * record of this type. If its name stands there, in quotes and with its colon,
 * which is two comparisons of words, then where the value begins and of what
 * kind it must be is known at once. Everything is checked all the same; a line
 * with anything else than plain strings and plain numbers, or with anything
 * wrong, is left to record.c, which can say what.
 */
#include "config.h"

#include "base/fp.h"
#include "base/word.h"
#include "record/record_impl.h"

/* The type and its key, with which a line has to begin. */
#define BEGIN "{\"type\":\""

void ep_record_fast_init(struct ep_record_parser *p)
{
    for (int k = 0; k < EP_KEYS; k++) {
        const struct ep_key_info *info = &ep_key_table[k];
        size_t n = info->member_len - 1U;
        struct ep_record_word *w = &p->word[k];

        if (n > 16) /* no text equals this */
            continue;
        w->mask_a = n >= 8 ? ~UINT64_C(0) : (UINT64_C(1) << 8 * n) - 1;
        w->mask_b = n == 16 ? ~UINT64_C(0)
                    : n > 8 ? (UINT64_C(1) << 8 * (n - 8)) - 1
                            : 0;
        w->a = load8(info->member + 1) & w->mask_a;
        w->b = load8(info->member + 9) & w->mask_b;
    }
    for (int t = 0; t < EP_TYPES; t++) {
        const char *name = ep_type_table[t].name;

        p->type_len[t] = (unsigned char)strlen(name);
        p->type[t] = load_short(name, p->type_len[t]);
        for (int i = 0; ep_type_table[t].need[i] != EP_K_TYPE; i++) {
            int k = (int)ep_type_table[t].need[i];

            p->need[t][k >> 6] |= UINT64_C(1) << (k & 63);
        }
    }
}

/* The number at p as the value of key k. Returns what follows, or NULL. */
EP_INLINE const char *number(const char *p, const char *end, int k,
                             struct ep_record *r)
{
    const struct ep_key_info *info = &ep_key_table[k];
    bool neg = *p == '-';
    uint64_t mant, fraction;
    unsigned n, f = 0;
    double x;

    p += neg;
    mant = digits16(p, &n);
    if (n - 1 > 14 || (*p == '0' && n > 1))
        return NULL;
    p += n;
    if (p < end && *p == '.') {
        if (info->value == EP_V_INTEGER)
            return NULL;
        fraction = digits16(p + 1, &f);
        if (f - 1 > 14 || n + f > 19)
            return NULL;
        mant = mant * ep_fp_pow10_u64[f] + fraction;
        p += 1 + f;
    }
    if (FLT_EVAL_METHOD == 0 && mant <= UINT64_C(1) << 53) {
        x = (double)(int64_t)mant;
        if (f)
            x /= ep_fp_exact_pow10[f];
    } else {
        struct ep_fp_decimal d = {.mant = mant, .exp10 = -(int32_t)f};

        x = ep_fp_from_decimal(&d, NULL, 0);
    }
    if (neg)
        x = -x;
    if (!(x >= info->min && x <= info->max))
        return NULL;
    r->v[k].num = x;
    return p;
}

/* The key whose name in quotes begins at p, or EP_RECORD_NONE. */
static __attribute__((noinline)) int find(const struct ep_record_parser *p,
                                          const char *at)
{
    const char *quote = plain_end_padded(at + 1, at + 2);
    size_t n = (size_t)(quote - at) - 1;
    uint64_t head = load8(at + 1);

    if (n - 1 > 14 || *quote != '"')
        return EP_RECORD_NONE;
    if (n < 8)
        head &= (UINT64_C(1) << 8 * n) - 1;
    for (size_t i = ep_record_hash(head, n); p->index[i].key != EP_RECORD_NONE;
         i = (i + 1) % EP_RECORD_INDEX)
        if (p->index[i].head == head && p->index[i].len == n)
            return p->index[i].key; /* to be compared in full */
    return EP_RECORD_NONE;
}

EP_INLINE bool is_key(const struct ep_record_word *w, const char *at)
{
    return (((load8(at) & w->mask_a) ^ w->a) |
            ((load8(at + 8) & w->mask_b) ^ w->b)) == 0 &&
           w->mask_a;
}

/* The type whose name and closing quote begin at p; it has *len bytes. */
EP_INLINE int type_at(struct ep_record_parser *p, const char *at, size_t *len)
{
    uint64_t w = load8(at), quote = w ^ EP_BYTES('"');
    int t = p->last_type;

    quote = (quote - EP_BYTES(1)) & ~quote & EP_BYTES(0x80);
    if (!quote)
        return EP_OTHER; /* no name is that long */
    *len = (size_t)__builtin_ctzll(quote) >> 3;
    w &= (UINT64_C(1) << 8 * *len) - 1;
    for (int i = 0; i < EP_TYPES; i++, t = t + 1 < EP_TYPES ? t + 1 : 0)
        if (w == p->type[t] && *len == p->type_len[t]) { /* NUL is a byte */
            p->last_type = t;
            return t;
        }
    return EP_OTHER;
}

/* The members behind the type, from the separator on; p may be NULL. */
EP_INLINE bool members(struct ep_record_parser *self, const char *p,
                       const char *end, struct ep_record *r)
{
    unsigned char *after = self->after[r->type];
    int k = EP_K_TYPE;

    while (p && p < end && *p == ',') {
        int before = k;

        p++;
        k = after[before];
        if (EP_UNLIKELY(!is_key(&self->word[k], p))) {
            k = find(self, p);
            if (k == EP_RECORD_NONE || !is_key(&self->word[k], p))
                return false;
            after[before] = (unsigned char)k;
        }
        if (k == EP_K_TYPE || k == EP_K_FROM)
            return false; /* twice; or a string in one type, else a number */
        p += ep_key_table[k].member_len - 1;
        if (p >= end)
            return false;
        ep_record_mark(r, (enum ep_key)k);
        if (ep_key_table[k].value == EP_V_STRING) {
            const char *from = p + 1;

            if (*p != '"')
                return false;
            p = plain_end_padded(from, end);
            if (p >= end || *p != '"')
                return false;
            r->v[k].str = (struct ep_span){from, (size_t)(p - from)};
            p++;
        } else if (ep_key_table[k].value == EP_V_STRINGS) {
            return false;
        } else {
            p = number(p, end, k, r);
        }
    }
    return p && p + 1 == end && *p == '}';
}

bool ep_record_fast(struct ep_record_parser *p, const char *line, size_t len,
                    struct ep_record *r)
{
    const char *name = line + sizeof BEGIN - 1, *end = line + len;
    size_t n;
    int t;

    if (len < sizeof BEGIN || memcmp(line, BEGIN, sizeof BEGIN - 1) != 0)
        return false;
    t = type_at(p, name, &n);
    if (t == EP_OTHER || name + n >= end)
        return false;
    ep_record_begin(r, (enum ep_type)t);
    r->v[EP_K_TYPE].str = (struct ep_span){name, n};
    return members(p, name + n + 1, end, r) &&
           (r->have[0] & p->need[t][0]) == p->need[t][0] &&
           (r->have[1] & p->need[t][1]) == p->need[t][1];
}
