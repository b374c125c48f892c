/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json.c - the scanner (see json.h) for every case: the whole grammar, and what
 * to do when the text is not of it. json_next.c is its fast path for the
 * members of records, and leaves the rest to ep_json_next_general() here.
 *
 * Still no step goes byte by byte through plain text: strings are searched 16
 * bytes at a time, and digits read 8 at a time (as in Lemire, "Number parsing
 * at a gigabyte per second", Software: Practice and Experience 51(8), 2021).
 * The levels are a shift register of bits, object or array. A failure leaves
 * all levels (json_error.c), so that no state of its own needs checking.
 */
#include "config.h"

#include "base/json_impl.h"

EP_INLINE bool is_digit(char c)
{
    return (unsigned char)(c - '0') <= 9;
}

static __attribute__((noinline)) const char *more_space(const char *p,
                                                        const char *end)
{
    while (p < end && (*p == ' ' || *p == '\n' || *p == '\t' || *p == '\r'))
        p++;
    return p;
}

/* Most texts have no white space, or one blank after ',' and ':'. */
EP_INLINE const char *skip_space(const char *p, const char *end)
{
    if (p < end && *p == ' ')
        p++;
    if (p < end && (unsigned char)*p <= ' ')
        p = more_space(p, end);
    return p;
}

/*
 * Read a run of digits at p: *mant = *mant * 10^n + digits, modulo 2^64.
 * Returns its end. The sum finds the first byte that is no digit: it carries
 * into higher bytes, but only from one that is already found.
 */
EP_INLINE const char *digits(const struct ep_json *j, const char *p,
                             const char *end, uint64_t *mant)
{
    for (;;) {
        uint64_t w = load8_bounded(j->start, p, end) ^ EP_BYTES('0');
        uint64_t other = ((w + EP_BYTES(0x76)) | w) & EP_BYTES(0x80);
        unsigned n;

        if (other == 0) {
            *mant = *mant * 100000000 + eight_digits(w);
            p += 8;
            continue;
        }
        n = (unsigned)__builtin_ctzll(other) >> 3;
        w = w << (56 - 8 * n) << 8;
        *mant = *mant * ep_fp_pow10_u64[n] + eight_digits(w);
        return p + n;
    }
}

/*
 * The mantissa of a number of more than 19 digits: its first 19 significant
 * ones. Returns what that adds to the exponent. s is after the sign.
 */
static __attribute__((noinline)) int64_t
long_mantissa(const char *s, const char *end, struct ep_fp_decimal *d)
{
    int64_t exp10 = 0;
    bool fraction = false;
    int n = 0;

    d->mant = 0;
    for (; s < end && (is_digit(*s) || *s == '.'); s++) {
        if (*s == '.') {
            fraction = true;
        } else if (n < 19) {
            d->mant = d->mant * 10 + (uint64_t)(*s - '0');
            n += d->mant != 0;
            exp10 -= fraction;
        } else {
            d->cut |= *s != '0';
            exp10 += !fraction;
        }
    }
    return exp10;
}

/* Read the exponent, p being after the 'e'. Far out values are kept there. */
static __attribute__((noinline)) const char *
exponent(struct ep_json *j, const char *p, int64_t *exp10)
{
    bool neg = false;
    int64_t e = 0;

    if (p < j->end && (*p == '+' || *p == '-'))
        neg = *p++ == '-';
    if (p == j->end || !is_digit(*p))
        return ep_json_expected(j, p, "a digit");
    for (; p < j->end && is_digit(*p); p++)
        if (e < INT64_MAX / 100)
            e = e * 10 + (*p - '0');
    *exp10 = neg ? -e : e;
    return p;
}

/* The rest of a number that has an exponent or more than 19 digits. */
static __attribute__((noinline)) const char *
rare_number(struct ep_json *j, const char *s, const char *p, int64_t exp10,
            struct ep_json_value *v)
{
    int64_t e = 0;

    if (p - s > 19)
        exp10 = long_mantissa(s, p, &v->dec);
    if (p < j->end && (*p | 0x20) == 'e') {
        v->integer = false;
        p = exponent(j, p + 1, &e);
        if (!p)
            return NULL;
    }
    exp10 += e;
    if (exp10 > EP_FP_EXP_CAP)
        exp10 = EP_FP_EXP_CAP;
    if (exp10 < -EP_FP_EXP_CAP)
        exp10 = -EP_FP_EXP_CAP;
    v->dec.exp10 = (int32_t)exp10;
    v->raw.len = (size_t)(p - v->raw.ptr);
    return p;
}

/* Read the number that begins at p with a digit or '-'. */
EP_INLINE const char *number(struct ep_json *j, const char *p, const char *end,
                             struct ep_json_value *v)
{
    uint64_t mant = 0;
    const char *s = p + (*p == '-'), *point;
    int64_t exp10 = 0;

    v->kind = EP_JSON_NUMBER;
    v->integer = true;
    v->raw.ptr = p;
    v->dec.neg = *p == '-';
    v->dec.cut = false;
    p = digits(j, s, end, &mant);
    if (EP_UNLIKELY(p == s))
        return ep_json_expected(j, p, "a digit");
    if (EP_UNLIKELY(*s == '0' && p - s > 1))
        return ep_json_fail(j, s + 1, EP_EFORMAT, "digit after a leading zero");
    if (p < end && *p == '.') {
        v->integer = false;
        point = ++p;
        p = digits(j, p, end, &mant);
        if (EP_UNLIKELY(p == point))
            return ep_json_expected(j, p, "a digit");
        exp10 = point - p;
    }
    v->dec.mant = mant;
    /* 20 bytes may be 19 digits and a point, or 20 digits: cheap to redo. */
    if (EP_UNLIKELY(p - s > 19 || (p < end && (*p | 0x20) == 'e')))
        return rare_number(j, s, p, exp10, v);
    v->dec.exp10 = (int32_t)exp10;
    v->raw.len = (size_t)(p - v->raw.ptr);
    return p;
}

/* Read a literal or the beginning of a container, or fail. */
static __attribute__((noinline)) const char *
other_value(struct ep_json *j, const char *p, struct ep_json_value *v)
{
    static const char *const word[] = {"null", "false", "true"};

    if (p == j->end)
        return ep_json_expected(j, p, "a value");
    v->raw.ptr = p;
    if (*p == '{' || *p == '[') {
        if (j->depth == EP_JSON_MAX_DEPTH)
            return ep_json_fail(j, p, EP_ELIMIT, "nested too deeply");
        v->kind = *p == '{' ? EP_JSON_OBJECT : EP_JSON_ARRAY;
        v->raw.len = 1;
        j->pending = true;
        j->separator = EP_JSON_NO_SEPARATOR;
        return p + 1;
    }
    for (int i = EP_JSON_NULL; i <= EP_JSON_TRUE; i++) {
        const char *w = word[i];

        if (*p != *w)
            continue;
        for (; *w != '\0'; p++, w++)
            if (p == j->end || *p != *w)
                return ep_json_expected(j, p, word[i]);
        v->kind = (enum ep_json_kind)i;
        v->raw.len = (size_t)(p - v->raw.ptr);
        return p;
    }
    return ep_json_expected(j, p, "a value");
}

/* Read the string whose opening quote is at p; returns what follows it. */
EP_INLINE const char *string(struct ep_json *j, const char *p, const char *end,
                             struct ep_json_value *v)
{
    const char *q = plain_end(j->start, p + 1, end);

    v->kind = EP_JSON_STRING;
    v->escaped = false;
    if (EP_UNLIKELY(q == end || *q != '"')) {
        q = ep_json_string_rest(j, q, &v->escaped);
        if (!q)
            return NULL;
    }
    v->raw.ptr = p + 1;
    v->raw.len = (size_t)(q - v->raw.ptr);
    return q + 1;
}

EP_INLINE const char *value(struct ep_json *j, const char *p, const char *end,
                            struct ep_json_value *v)
{
    if (EP_LIKELY(p < end)) {
        if (*p == '"')
            return string(j, p, end, v);
        if (EP_LIKELY(is_digit(*p) || *p == '-'))
            return number(j, p, end, v);
    }
    return other_value(j, p, v);
}

/* Read a key and its colon; returns what follows. */
EP_INLINE const char *member_key(struct ep_json *j, const char *p,
                                 const char *end, struct ep_json_value *key)
{
    if (EP_UNLIKELY(p == end || *p != '"'))
        return ep_json_expected(j, p, "a key");
    p = string(j, p, end, key);
    if (EP_UNLIKELY(!p))
        return NULL;
    if (EP_UNLIKELY(p == end || *p != ':')) {
        p = skip_space(p, end);
        if (p == end || *p != ':')
            return ep_json_expected(j, p, "':'");
    }
    return skip_space(p + 1, end);
}

/* What j->separator is after an element of this level. */
EP_INLINE int after_element(const struct ep_json *j)
{
    if (j->depth == 0)
        return EP_JSON_NO_SEPARATOR;
    return j->objects & 1 ? ',' : EP_JSON_IN_ARRAY + ',';
}

/* Leave the level whose closing bracket is at p. */
EP_INLINE int leave(struct ep_json *j, const char *p)
{
    j->p = p + 1;
    j->depth--;
    j->objects >>= 1;
    j->separator = after_element(j);
    return 0;
}

/* ep_json_next() where nothing is pending and some level is entered. */
static __attribute__((noinline)) int
step(struct ep_json *j, struct ep_json_value *key, struct ep_json_value *v)
{
    bool first = j->separator != after_element(j), object = j->objects & 1;
    const char *end = j->end, *p = skip_space(j->p + first, end);

    if (p < end && *p == (object ? '}' : ']'))
        return leave(j, p);
    if (!first) {
        if (p == end || *p != ',') {
            ep_json_expected(j, p, object ? "',' or '}'" : "',' or ']'");
            return j->failed;
        }
        p = skip_space(p + 1, end);
    }
    j->separator = after_element(j);
    if (object) {
        p = member_key(j, p, end, key);
        if (!p)
            return j->failed;
    }
    p = value(j, p, end, v);
    if (!p)
        return j->failed;
    j->p = p;
    return 1;
}

void ep_json_enter(struct ep_json *j)
{
    if (!j->pending)
        return;
    j->pending = false;
    j->p--;
    j->objects = j->objects << 1 | (*j->p == '{');
    j->depth++;
    j->separator = *j->p == '{' ? '{' : EP_JSON_IN_ARRAY + '[';
}

/* Read on until only depth levels are left. */
static __attribute__((noinline)) int pass(struct ep_json *j, int depth)
{
    struct ep_json_value key, v;

    ep_json_enter(j);
    while (j->depth > depth) {
        int r = step(j, &key, &v);

        if (r < 0)
            return r;
        ep_json_enter(j);
    }
    return j->failed;
}

int ep_json_next_general(struct ep_json *j, struct ep_json_value *key,
                         struct ep_json_value *v)
{
    struct ep_json_value unused;

    /* What the fast path leaves of a record is mostly its end. */
    if (EP_LIKELY(j->separator == ',' && j->p < j->end && *j->p == '}'))
        return leave(j, j->p);
    if (j->pending) {
        int r = pass(j, j->depth);

        if (r < 0)
            return r;
    }
    if (j->depth == 0)
        return j->failed;
    return step(j, key ? key : &unused, v);
}

int ep_json_begin_padded(struct ep_json *j, const char *text, size_t len,
                         size_t pad, struct ep_json_value *root,
                         struct ep_error *err)
{
    const char *p;

    j->start = text;
    j->end = text + len;
    j->readable = j->end + pad;
    j->err = err;
    j->depth = 0;
    j->failed = 0;
    j->objects = 0;
    j->pending = false;
    j->wide = ep_json_have_wide();
    j->separator = EP_JSON_NO_SEPARATOR;
    if (EP_LIKELY(len > 0 && *text == '{')) {
        root->kind = EP_JSON_OBJECT;
        root->raw.ptr = text;
        root->raw.len = 1;
        j->pending = true;
        j->p = text + 1;
        return 0;
    }
    p = value(j, skip_space(text, j->end), j->end, root);
    if (!p)
        return j->failed;
    j->p = p;
    return 0;
}

int ep_json_begin(struct ep_json *j, const char *text, size_t len,
                  struct ep_json_value *root, struct ep_error *err)
{
    return ep_json_begin_padded(j, text, len, 0, root, err);
}

int ep_json_skip(struct ep_json *j, struct ep_span *raw)
{
    const char *from = j->pending ? j->p - 1 : j->p;
    int r = j->failed;

    if (j->pending)
        r = pass(j, j->depth);
    if (raw) {
        raw->ptr = from;
        raw->len = r ? 0 : (size_t)(j->p - from);
    }
    return r;
}

int ep_json_end(struct ep_json *j)
{
    const char *p;

    if ((j->pending || j->depth > 0 || j->failed) && pass(j, 0) < 0)
        return j->failed;
    p = skip_space(j->p, j->end);
    if (p < j->end)
        ep_json_expected(j, p, "the end of the text");
    else
        j->p = p;
    return j->failed;
}

size_t ep_json_offset(const struct ep_json *j)
{
    return (size_t)(j->p - j->start);
}
