/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_st_parse.c - headers of safetensors files: what is read of them, and
 * every reason to refuse one. The verdicts are those of the Python package
 * safetensors 0.8.0 but where it says otherwise (tests/safetensors.bats).
 */
#include "config.h"

#include "base/mem.h"
#include "ckpt/safetensors.h"
#include "tap.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct bytes {
    unsigned char *v;
    size_t n;
};

/* A file of that header and n bytes of data 0, 1, 2, ...; v is malloc'ed. */
static struct bytes file_of(const char *header, size_t len, size_t n)
{
    struct bytes b = {ep_calloc(8 + len + n, 1), 8 + len + n};

    for (int i = 0; i < 8; i++)
        b.v[i] = (unsigned char)((uint64_t)len >> 8 * i);
    memcpy(b.v + 8, header, len);
    for (size_t i = 0; i < n; i++)
        b.v[8 + len + i] = (unsigned char)i;
    return b;
}

static int parse(struct ep_st *st, const char *header, size_t data,
                 struct ep_error *err)
{
    struct bytes b = file_of(header, strlen(header), data);
    int rc = ep_st_parse(st, b.v, b.n, b.n, err);

    free(b.v);
    return rc;
}

/* ==== What is read ==== */

static void check_fields(void)
{
    static const char header[] =
        "{\"__metadata__\":{\"format\":\"pt\",\"\\u00e9\":\"\"},"
        "\"b\":{\"dtype\":\"BF16\",\"shape\":[2,3],\"data_offsets\":[4,16]},"
        "\"a\\u0000\\n\":{\"data_offsets\":[0,4],\"shape\":[],\"x\":[{}],"
        "\"dtype\":\"F32\"},"
        "\"z\":{\"dtype\":\"I64\",\"shape\":[4,0],\"data_offsets\":[4,4]}}  ";
    struct bytes b = file_of(header, strlen(header), 16);
    const struct ep_tensor *t;
    struct ep_span found;
    struct ep_error err;
    struct ep_st st;

    ok(ep_st_parse(&st, b.v, b.n, b.n, &err) == 0);
    ok(st.n == 3 && st.nmeta == 2);
    ok(st.header_bytes == 8 + strlen(header) && st.data_bytes == 16);
    t = &st.tensor[0];
    ok(t->name.len == 3 && memcmp(t->name.ptr, "a\0\n", 3) == 0);
    ok(t->dtype == EP_DT_F32 && t->rank == 0 && t->count == 1);
    ok(t->begin == 0 && t->bytes == 4);
    ok(t->data == b.v + st.header_bytes);
    t = &st.tensor[1];
    ok(ep_span_eq(t->name, "z") && t->dtype == EP_DT_I64 && t->rank == 2);
    ok(t->shape[0] == 4 && t->shape[1] == 0 && t->count == 0 && t->bytes == 0);
    t = &st.tensor[2];
    ok(ep_span_eq(t->name, "b") && t->dtype == EP_DT_BF16 && t->rank == 2);
    ok(t->shape[0] == 2 && t->shape[1] == 3 && t->count == 6);
    ok(t->begin == 4 && t->bytes == 12);
    ok(((const unsigned char *)t->data)[11] == 15);
    ok(ep_span_eq(st.meta[0].key, "format"));
    ok(ep_span_eq(ep_st_meta_find(&st, "format"), "pt"));
    found = ep_st_meta_find(&st, "\xc3\xa9");
    ok(found.ptr && found.len == 0);
    found = ep_st_meta_find(&st, "form");
    ok(found.ptr == NULL && found.len == 0);
    ep_st_free(&st);
    ok(st.n == 0 && st.tensor == NULL && st.memory == NULL);
    ep_st_free(&st);
    /* the header alone at hand: no data, nothing else differs */
    ok(ep_st_parse(&st, b.v, b.n - 16, b.n, NULL) == 0);
    ok(st.n == 3 && st.tensor[2].data == NULL && st.tensor[2].begin == 4);
    free(b.v); /* nothing refers to it */
    ok(ep_span_eq(st.tensor[2].name, "b") && st.tensor[2].shape[1] == 3);
    ok(ep_span_eq(ep_st_meta_find(&st, "format"), "pt"));
    ep_st_free(&st);
}

static void check_dtypes(void)
{
    static const struct {
        const char *name;
        enum ep_dtype type;
        unsigned bytes; /* of 4 elements */
    } cases[] = {
        {"BOOL", EP_DT_BOOL, 4},
        {"F4", EP_DT_F4, 2},
        {"F6_E2M3", EP_DT_F6_E2M3, 3},
        {"F6_E3M2", EP_DT_F6_E3M2, 3},
        {"U8", EP_DT_U8, 4},
        {"I8", EP_DT_I8, 4},
        {"F8_E5M2", EP_DT_F8_E5M2, 4},
        {"F8_E4M3", EP_DT_F8_E4M3, 4},
        {"F8_E8M0", EP_DT_F8_E8M0, 4},
        {"F8_E4M3FNUZ", EP_DT_F8_E4M3FNUZ, 4},
        {"F8_E5M2FNUZ", EP_DT_F8_E5M2FNUZ, 4},
        {"I16", EP_DT_I16, 8},
        {"U16", EP_DT_U16, 8},
        {"F16", EP_DT_F16, 8},
        {"BF16", EP_DT_BF16, 8},
        {"I32", EP_DT_I32, 16},
        {"U32", EP_DT_U32, 16},
        {"F32", EP_DT_F32, 16},
        {"C64", EP_DT_C64, 32},
        {"F64", EP_DT_F64, 32},
        {"I64", EP_DT_I64, 32},
        {"U64", EP_DT_U64, 32},
    };
    char header[200];

    ok(sizeof cases / sizeof *cases == EP_DTYPES);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct ep_st st;

        (void)snprintf(
            header, sizeof header,
            "{\"a\":{\"dtype\":\"%s\",\"shape\":[4],\"data_offsets\":[0,%u]}}",
            cases[i].name, cases[i].bytes);
        ok(parse(&st, header, cases[i].bytes, NULL) == 0 && st.n == 1 &&
           st.tensor[0].dtype == cases[i].type && st.tensor[0].count == 4);
        ep_st_free(&st);
    }
}

/* An entry of one float at byte 0. */
#define A "\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}"
/* The entry of "a" with these fields. */
#define E(fields) "{\"a\":{" fields "}}"
#define F32 "\"dtype\":\"F32\","
#define S1 "\"shape\":[1],"
#define O4 "\"data_offsets\":[0,4]"
#define O0 "\"data_offsets\":[0,0]"

static void check_accepted(void)
{
    static const struct {
        const char *header;
        size_t data, tensors, metadata;
    } cases[] = {
        {"{}", 0, 0, 0},
        {" \n\t\r{} \n\t\r", 0, 0, 0},
        {"{" A "}", 4, 1, 0},
        {"{ " A " }   ", 4, 1, 0},
        {"{\"__metadata__\":null," A "}", 4, 1, 0},
        {"{\"__metadata__\":{}," A "}", 4, 1, 0},
        {"{" A ",\"\\u005f_metadata__\":{\"k\":\"v\"}}", 4, 1, 1},
        {"{\"__metadata__\":{\"k\":\"v\",\"k\":\"w\",\"l\":\"\"}}", 0, 0, 2},
        {E(F32 S1 O4 ",\"x\":{\"dtype\":1},\"x\":null"), 4, 1, 0},
        {E("\"d\\u0074ype\":\"F\\u00332\"," S1 O4), 4, 1, 0},
        {E(F32 "\"shape\":[]," O4), 4, 1, 0},
        {E(F32 "\"shape\":[0,18446744073709551615]," O0), 0, 1, 0},
        {E(F32 S1 O4 ",\"x\":1e999"), 4, 1, 0}, /* refused there */
        {"{\"\":{" F32 S1 O4 "}}", 4, 1, 0},
        {"{\"\\ud83d\\ude00\x7f\":{" F32 S1 O4 "}}", 4, 1, 0},
        {E("\"dtype\":\"F4\",\"shape\":[2],\"data_offsets\":[0,1]"), 1, 1, 0},
        {"{\"z\":{" F32 "\"shape\":[0]," O0 "}," A
         ",\"b\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[4,4]}}",
         4, 3, 0},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct ep_error err = {.msg = ""};
        struct ep_st st;

        if (!ok(parse(&st, cases[i].header, cases[i].data, &err) == 0))
            printf("# %s: %s\n", cases[i].header, err.msg);
        ok(st.n == cases[i].tensors && st.nmeta == cases[i].metadata);
        if (st.nmeta == 2) /* the last of a key, as there */
            ok(ep_span_eq(ep_st_meta_find(&st, "k"), "w"));
        ep_st_free(&st);
    }
}

/* ==== What is refused ==== */

static const struct refused {
    const char *header;
    size_t data;
    int code;
    const char *msg;
} refused[] = {
    /* not JSON, or not of that shape */
    {" ", 0, EP_EFORMAT, "header, byte 1: text ends, expected a value"},
    {"[]", 0, EP_EFORMAT, "header, byte 1: not an object"},
    {"null", 0, EP_EFORMAT, "header, byte 4: not an object"},
    {"{", 0, EP_EFORMAT, "header, byte 1: text ends, expected a key"},
    {"{" A ",}", 4, EP_EFORMAT, "header, byte 54: expected a key, found '}'"},
    {"{" A "}x", 4, EP_EFORMAT,
     "header, byte 54: expected the end of the text, found 'x'"},
    {"\xef\xbb\xbf{}", 0, EP_EFORMAT,
     "header, byte 0: expected a value, found '\\xef\\xbb\\xbf'"},
    {"{\"\xff\":1}", 0, EP_EFORMAT, "header, byte 2: invalid UTF-8 in string"},
    {"{\"a\n\":1}", 0, EP_EFORMAT,
     "header, byte 3: control character in string"},
    {"{\"\\ud800\":1}", 0, EP_EFORMAT, "header, byte 2: lone high surrogate"},
    {"{\"\\udc00\":1}", 0, EP_EFORMAT, "header, byte 2: lone low surrogate"},
    {E(F32 S1 O4 ",\"x\":\"\\ud800\""), 4, EP_EFORMAT,
     "header, byte 58: lone high surrogate"},
    {E(F32 S1 O4 ",\"x\":01"), 4, EP_EFORMAT,
     "header, byte 58: digit after a leading zero"},
    /* metadata */
    {"{\"__metadata__\":[]}", 0, EP_EFORMAT,
     "header, byte 17: __metadata__ is not an object"},
    {"{\"__metadata__\":{\"k\":1}}", 0, EP_EFORMAT,
     "header, byte 22: metadata \"k\" is not a string"},
    {"{\"__metadata__\":{\"k\":null}}", 0, EP_EFORMAT,
     "header, byte 25: metadata \"k\" is not a string"},
    {"{\"__metadata__\":null,\"__metadata__\":{}}", 0, EP_EFORMAT,
     "header, byte 37: __metadata__ stands twice"},
    /* an entry */
    {"{\"a\":null}", 0, EP_EFORMAT,
     "tensor \"a\": header byte 9: its entry is not an object"},
    {"{\"a\":[\"F32\",[1],[0,4]]}", 4, EP_EFORMAT, /* accepted there */
     "tensor \"a\": header byte 6: its entry is not an object"},
    {E(S1 O4), 4, EP_EFORMAT, "tensor \"a\": header byte 39: dtype is missing"},
    {E(F32 O4), 4, EP_EFORMAT,
     "tensor \"a\": header byte 41: shape is missing"},
    {E("\"dtype\":\"F32\",\"shape\":[1]"), 4, EP_EFORMAT,
     "tensor \"a\": header byte 32: data_offsets is missing"},
    {E(F32 F32 S1 O4), 4, EP_EFORMAT,
     "tensor \"a\": header byte 33: dtype stands twice"},
    {E(F32 S1 S1 O4), 4, EP_EFORMAT,
     "tensor \"a\": header byte 41: shape stands twice"},
    {E(F32 S1 O4 "," O4), 4, EP_EFORMAT,
     "tensor \"a\": header byte 69: data_offsets stands twice"},
    /* dtype */
    {E("\"dtype\":\"f32\"," S1 O4), 4, EP_EFORMAT,
     "tensor \"a\": header byte 19: unknown dtype \"f32\""},
    {E("\"dtype\":\"\"," S1 O4), 4, EP_EFORMAT,
     "tensor \"a\": header byte 16: unknown dtype \"\""},
    {E("\"dtype\":\"F32\\u0000\"," S1 O4), 4, EP_EFORMAT,
     "tensor \"a\": header byte 25: unknown dtype \"F32\\x00\""},
    {E("\"dtype\":null," S1 O4), 4, EP_EFORMAT,
     "tensor \"a\": header byte 18: dtype is not a string"},
    {E("\"dtype\":{\"F32\":null}," S1 O4), 4, EP_EFORMAT, /* accepted there */
     "tensor \"a\": header byte 15: dtype is not a string"},
    /* shape */
    {E(F32 "\"shape\":1," O4), 4, EP_EFORMAT,
     "tensor \"a\": header byte 29: shape is not an array"},
    {E(F32 "\"shape\":[-1]," O4), 4, EP_EFORMAT,
     "tensor \"a\": header byte 31: shape: not a natural number"},
    {E(F32 "\"shape\":[-0]," O0), 0, EP_EFORMAT,
     "tensor \"a\": header byte 31: shape: not a natural number"},
    {E(F32 "\"shape\":[1.0]," O4), 4, EP_EFORMAT,
     "tensor \"a\": header byte 32: shape: not a natural number"},
    {E(F32 "\"shape\":[1e0]," O4), 4, EP_EFORMAT,
     "tensor \"a\": header byte 32: shape: not a natural number"},
    {E(F32 "\"shape\":[\"1\"]," O4), 4, EP_EFORMAT,
     "tensor \"a\": header byte 32: shape: not a natural number"},
    {E(F32 "\"shape\":[[1]]," O4), 4, EP_EFORMAT,
     "tensor \"a\": header byte 30: shape: not a natural number"},
    {E(F32 "\"shape\":[0,18446744073709551616]," O0), 0, EP_ERANGE,
     "tensor \"a\": header byte 51: shape: a number beyond 64 bits"},
    {E(F32 "\"shape\":[100000000000000000000]," O0), 0, EP_ERANGE,
     "tensor \"a\": header byte 50: shape: a number beyond 64 bits"},
    {E(F32 "\"shape\":[9223372036854775808,2,0]," O0), 0, EP_ERANGE,
     "tensor \"a\": header byte 75: the elements of its shape are beyond 64 "
     "bits"},
    {E(F32 "\"shape\":[1152921504606846976],"
           "\"data_offsets\":[0,4611686018427387904]"),
     0, EP_ERANGE,
     "tensor \"a\": header byte 89: the size of its shape is beyond 64 bits"},
    {E("\"dtype\":\"F4\",\"shape\":[3],\"data_offsets\":[0,2]"), 2, EP_EFORMAT,
     "tensor \"a\": header byte 52: its elements do not fill whole bytes"},
    {E("\"dtype\":\"F6_E3M2\",\"shape\":[3],\"data_offsets\":[0,3]"), 3,
     EP_EFORMAT,
     "tensor \"a\": header byte 57: its elements do not fill whole bytes"},
    /* offsets */
    {E(F32 S1 "\"data_offsets\":{}"), 4, EP_EFORMAT,
     "tensor \"a\": header byte 48: data_offsets is not an array"},
    {E(F32 S1 "\"data_offsets\":[4]"), 4, EP_EFORMAT,
     "tensor \"a\": header byte 50: data_offsets has fewer than 2 elements"},
    {E(F32 S1 "\"data_offsets\":[0,4,4]"), 4, EP_EFORMAT,
     "tensor \"a\": header byte 53: data_offsets has more than 2 elements"},
    {E(F32 S1 "\"data_offsets\":[0,4.0]"), 4, EP_EFORMAT,
     "tensor \"a\": header byte 53: data_offsets: not a natural number"},
    {E(F32 S1 "\"data_offsets\":[4,0]"), 4, EP_EFORMAT,
     "tensor \"a\": header byte 52: data_offsets: the end is before the "
     "beginning"},
    {E(F32 S1 "\"data_offsets\":[0,5]"), 5, EP_EFORMAT,
     "tensor \"a\": header byte 53: shape and dtype make 4 bytes, data_offsets "
     "5"},
    {E(F32 "\"shape\":[]," O0), 0, EP_EFORMAT,
     "tensor \"a\": header byte 52: shape and dtype make 4 bytes, data_offsets "
     "0"},
    /* all together */
    {"{" A "," A "}", 4, EP_EFORMAT,
     "tensor \"a\": the name stands twice"}, /* accepted there */
    {"{" A ",\"b\":{" F32 S1 "\"data_offsets\":[4,8]},"
     "\"\\u0061\":{" F32 S1 "\"data_offsets\":[8,12]}}",
     12, EP_EFORMAT, "tensor \"a\": the name stands twice"},
    {E(F32 S1 "\"data_offsets\":[4,8]"), 8, EP_EFORMAT,
     "tensor \"a\": begins at byte 4 of the data, what is before it ends at "
     "byte 0 (a hole)"},
    {"{\"b\\n\":{" F32 S1 "\"data_offsets\":[8,12]}," A "}", 12, EP_EFORMAT,
     "tensor \"b\\x0a\": begins at byte 8 of the data, what is before it ends "
     "at byte 4 (a hole)"},
    {"{" A ",\"b\":{" F32 S1 "\"data_offsets\":[2,6]}}", 6, EP_EFORMAT,
     "tensor \"b\": begins at byte 2 of the data, what is before it ends at "
     "byte 4 (they overlap)"},
    {"{" A ",\"b\":{" F32 S1 O4 "}}", 4, EP_EFORMAT,
     "tensor \"b\": begins at byte 0 of the data, what is before it ends at "
     "byte 4 (they overlap)"},
    {"{" A ",\"z\":{" F32 "\"shape\":[0],\"data_offsets\":[2,2]}}", 4,
     EP_EFORMAT,
     "tensor \"z\": begins at byte 2 of the data, what is before it ends at "
     "byte 4 (they overlap)"},
    {"{" A "}", 3, EP_ETRUNC,
     "tensor \"a\": ends at byte 4 of the data, the file at byte 3"},
    {"{" A "}", 0, EP_ETRUNC,
     "tensor \"a\": ends at byte 4 of the data, the file at byte 0"},
    {"{" A "}", 9, EP_EFORMAT,
     "the tensors end at byte 4 of the data, the file at byte 9"},
    {"{}", 1, EP_EFORMAT,
     "the tensors end at byte 0 of the data, the file at byte 1"},
};

static void check_refused(void)
{
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        const struct refused *c = &refused[i];
        struct ep_error err = {.msg = ""};
        struct ep_st st;
        int rc = parse(&st, c->header, c->data, &err);

        if (!ok(rc == c->code && err.code == c->code &&
                strcmp(err.msg, c->msg) == 0))
            printf("# %s\n# %d %s\n", c->header, rc, err.msg);
        ok(st.tensor == NULL && st.meta == NULL && st.memory == NULL);
        ok(parse(&st, c->header, c->data, NULL) == c->code);
    }
}

/* The eight bytes of N, and files that are too short for it. */
static void check_lengths(void)
{
    static const struct {
        uint64_t n;
        size_t len;
        uint64_t file_bytes;
        int code;
        const char *msg;
    } cases[] = {
        {2, 0, 0, EP_ETRUNC, "too short for safetensors (0 of 8 bytes)"},
        {2, 7, 7, EP_ETRUNC, "too short for safetensors (7 of 8 bytes)"},
        {2, 7, 10, EP_ETRUNC, "too short for safetensors (7 of 8 bytes)"},
        {0, 8, 8, EP_EFORMAT, "header length 0"},
        {0, 10, 10, EP_EFORMAT, "header length 0"},
        {2, 8, 8, EP_ETRUNC, "header length 2, of which 0 bytes are there"},
        {3, 10, 10, EP_ETRUNC, "header length 3, of which 2 bytes are there"},
        {3, 10, 11, EP_ETRUNC, "header length 3, of which 2 bytes are there"},
        {100000000, 10, 10, EP_ETRUNC,
         "header length 100000000, of which 2 bytes are there"},
        {100000001, 10, 10, EP_ELIMIT,
         "header length 100000001, more than the 100000000 of safetensors: "
         "another format?"},
        {UINT64_MAX, 10, UINT64_MAX, EP_ELIMIT,
         "header length 18446744073709551615, more than the 100000000 of "
         "safetensors: another format?"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        unsigned char *file = ep_calloc(cases[i].len, 1); /* ASan sees ends */
        struct ep_error err = {.msg = ""};
        struct ep_st st;
        int rc;

        for (size_t b = 0; b < 8 && b < cases[i].len; b++)
            file[b] = (unsigned char)(cases[i].n >> 8 * b);
        if (cases[i].len == 10) {
            file[8] = '{';
            file[9] = '}';
        }
        rc = ep_st_parse(&st, file, cases[i].len, cases[i].file_bytes, &err);
        if (!ok(rc == cases[i].code && err.code == rc &&
                strcmp(err.msg, cases[i].msg) == 0))
            printf("# %d %s\n", rc, err.msg);
        free(file);
    }
    {
        struct ep_st st;

        ok(ep_st_parse(&st, NULL, 0, 0, NULL) == EP_ETRUNC);
    }
}

/* A raw NUL is no white space, and no end. */
static void check_nul(void)
{
    static const char header[] = "{}\0\0";
    struct bytes b = file_of(header, 4, 0);
    struct ep_error err;
    struct ep_st st;

    ok(ep_st_parse(&st, b.v, b.n, b.n, &err) == EP_EFORMAT);
    ok(strcmp(err.msg,
              "header, byte 2: expected the end of the text, found "
              "'\\x00'") == 0);
    free(b.v);
}

/* Ranks and levels up to the cap, and one more. */
static void check_caps(void)
{
    struct ep_error err;
    struct ep_buf text;
    struct ep_st st;

    ep_buf_init(&text);
    for (int rank = EP_ST_RANK_MAX; rank <= EP_ST_RANK_MAX + 1; rank++) {
        ep_buf_reset(&text);
        ep_buf_adds(&text, "{\"a\":{" F32 O4 ",\"shape\":[1");
        for (int i = 1; i < rank; i++)
            ep_buf_adds(&text, ",1");
        ep_buf_adds(&text, "]}}");
        if (rank == EP_ST_RANK_MAX) {
            ok(parse(&st, text.ptr, 4, &err) == 0 &&
               st.tensor[0].rank == EP_ST_RANK_MAX && st.tensor[0].count == 1);
            ep_st_free(&st);
        } else {
            ok(parse(&st, text.ptr, 4, &err) == EP_ELIMIT);
            ok(strcmp(err.msg,
                      "tensor \"a\": header byte 179: shape has more "
                      "than 64 elements") == 0);
        }
    }
    for (int levels = 62; levels <= 63; levels++) {
        ep_buf_reset(&text);
        ep_buf_adds(&text, "{\"a\":{" F32 S1 O4 ",\"x\":");
        for (int i = 0; i < levels; i++)
            ep_buf_addc(&text, '[');
        for (int i = 0; i < levels; i++)
            ep_buf_addc(&text, ']');
        ep_buf_adds(&text, "}}");
        if (levels == 62) {
            ok(parse(&st, text.ptr, 4, &err) == 0);
            ep_st_free(&st);
        } else {
            ok(parse(&st, text.ptr, 4, &err) == EP_ELIMIT);
            ok(strcmp(err.msg, "header, byte 119: nested too deeply") == 0);
        }
    }
    ep_buf_free(&text);
}

/* A name of 100 kB and a message that stays within its bounds. */
static void check_long_name(void)
{
    struct ep_error err;
    struct ep_buf text;
    struct ep_st st;

    ep_buf_init(&text);
    ep_buf_adds(&text, "{\"");
    for (int i = 0; i < 100000; i++)
        ep_buf_addc(&text, 'n');
    ep_buf_adds(&text, "\":{" F32 S1 O4 "}}");
    ok(parse(&st, text.ptr, 4, &err) == 0 && st.tensor[0].name.len == 100000);
    ep_st_free(&st);
    ok(parse(&st, text.ptr, 3, &err) == EP_ETRUNC);
    ok(strstr(err.msg,
              "nnn...\": ends at byte 4 of the data, the file at byte "
              "3") != NULL &&
       strlen(err.msg) < 160);
    ep_buf_free(&text);
}

/*
 * Many tensors, listed and laid out in two unrelated orders (steps of numbers
 * prime to n): each is found where it must be, and a change to one of them
 * shows.
 */
static void check_many(void)
{
    const size_t n = 5003;
    struct ep_error err;
    struct ep_buf text;
    bool right = true;
    struct ep_st st;

    ep_buf_init(&text);
    for (unsigned i = 0; i < n; i++) {
        unsigned name = i * 1234 % 5003, at = i * 777 % 5003;

        ep_buf_addf(&text,
                    "%c\"t%u\":{\"dtype\":\"U16\",\"shape\":[1],"
                    "\"data_offsets\":[%u,%u]}",
                    i ? ',' : '{', name, 2 * at, 2 * at + 2);
    }
    ep_buf_addc(&text, '}');
    ok(parse(&st, text.ptr, 2 * n, &err) == 0 && st.n == n);
    for (unsigned i = 0; i < n; i++) {
        char name[16];

        (void)snprintf(name, sizeof name, "t%u", i * 1234 % 5003);
        right &= ep_span_eq(st.tensor[i * 777 % 5003].name, name);
    }
    ok(right);
    ep_st_free(&st);
    memcpy(strstr(text.ptr, "\"t17\":"), "\"t18\":", 6);
    ok(parse(&st, text.ptr, 2 * n, &err) == EP_EFORMAT);
    ok(strcmp(err.msg, "tensor \"t18\": the name stands twice") == 0);
    ep_buf_free(&text);
}

/* Every beginning of a file is refused, and none is read past its end. */
static void check_cut(void)
{
    struct bytes b = file_of("{" A "}", strlen("{" A "}"), 4);
    bool refuses = true;

    for (size_t n = 0; n < b.n; n++) {
        unsigned char *part = ep_realloc(NULL, n, 1);
        struct ep_st st;

        memcpy(part, b.v, n);
        refuses &= ep_st_parse(&st, part, n, n, NULL) == EP_ETRUNC;
        free(part);
    }
    ok(refuses);
    free(b.v);
}

int main(void)
{
    check_fields();
    check_dtypes();
    check_accepted();
    check_refused();
    check_lengths();
    check_nul();
    check_caps();
    check_long_name();
    check_many();
    check_cut();
    return tap_done();
}
