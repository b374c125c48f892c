/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_json_stream.c - elements of a text in pieces, against the texts that the
 * document was put together from, for pieces and windows of many sizes.
 */
#include "config.h"

#include "base/json_stream.h"
#include "tap.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* What a text is read from, in pieces of so many bytes. */
struct pieces {
    const char *text;
    size_t len, at, piece;
    int fail; /* code to return instead of the end */
};

static long read_piece(void *ctx, void *dst, size_t cap, struct ep_error *err)
{
    struct pieces *p = ctx;
    size_t n = p->len - p->at;

    if (n > p->piece)
        n = p->piece;
    if (n > cap)
        n = cap;
    if (n == 0 && p->fail)
        return ep_error_set(err, p->fail, "the disk is on fire");
    memcpy(dst, p->text + p->at, n);
    p->at += n;
    return (long)n;
}

/* How the elements are taken. */
enum mode {
    WHOLE,  /* checked to their end */
    PASSED, /* left at once */
    MEMBER, /* an object after its first member */
    MODES
};

static int take(struct ep_json *j, const struct ep_json_value *v,
                enum mode mode, struct ep_span *raw)
{
    struct ep_json_value key, member;

    if (mode == WHOLE)
        return ep_json_skip(j, raw);
    if (mode == MEMBER && v->kind == EP_JSON_OBJECT) {
        ep_json_enter(j);
        return ep_json_next(j, &key, &member);
    }
    return 0;
}

/* Read all; append a line for each thing that came to out. */
static void run(const char *text, size_t len, size_t piece,
                const struct ep_json_stream_config *base, enum mode mode,
                int fail, struct ep_buf *out)
{
    struct pieces p = {text, len, 0, piece, fail};
    struct ep_json_stream_config config = *base;
    struct ep_json_stream *s;
    struct ep_json_value key, v;
    struct ep_error err = {.code = 0};
    struct ep_json j;
    int what;

    config.read = read_piece;
    config.ctx = &p;
    s = ep_json_stream_new(&config);
    for (;;) {
        struct ep_span raw = {"", 0};
        int rc;

        what = ep_json_stream_next(s, &key, &j, &v, &err);
        if (what <= 0) {
            if (what == 0 || ep_json_stream_over(s))
                break;
            ep_buf_addf(out, "%d@%d ", what, (int)ep_json_stream_offset(s));
            continue;
        }
        rc = take(&j, &v, mode, &raw);
        rc = ep_json_stream_done(s, &j, rc, &err);
        if (rc == EP_JSON_STREAM_AGAIN)
            continue;
        if (rc < 0 && ep_json_stream_over(s)) {
            what = rc;
            break;
        }
        if (rc < 0) {
            ep_buf_addf(out, "%d@%d ", rc, (int)ep_json_stream_offset(s));
            continue;
        }
        if (what == EP_JSON_STREAM_MEMBER)
            ep_buf_addf(out, "%.*s:", (int)key.raw.len, key.raw.ptr);
        if (mode == WHOLE && raw.len)
            ep_buf_add(out, raw.ptr, raw.len);
        else
            ep_buf_add(out, v.raw.ptr, v.raw.len);
        ep_buf_addc(out, ' ');
    }
    ep_buf_addf(out, "%d", what);
    ep_json_stream_free(s);
}

static bool equal(const struct ep_buf *got, const char *want)
{
    return got->ptr && want && strcmp(got->ptr, want) == 0;
}

/* The same for every mode of a text, whatever the pieces? */
static bool steady(const char *text, const struct ep_json_stream_config *config)
{
    bool same = true;

    for (int mode = 0; mode < MODES; mode++) {
        struct ep_buf want;

        ep_buf_init(&want);
        run(text, strlen(text), SIZE_MAX, config, (enum mode)mode, 0, &want);
        for (size_t piece = 1; piece < 20; piece++) {
            struct ep_buf got;

            ep_buf_init(&got);
            run(text, strlen(text), piece, config, (enum mode)mode, 0, &got);
            if (!equal(&got, want.ptr)) {
                printf("# pieces of %zu, mode %d: %s, not %s\n", piece, mode,
                       got.ptr, want.ptr);
                same = false;
            }
            ep_buf_free(&got);
        }
        ep_buf_free(&want);
    }
    return same;
}

static const struct {
    const char *text, *want;
} cases[] = {
    {"[]", "0"},
    {" [ ] ", "0"},
    {"[1,2 , 3]", "1 2 3 0"},
    {"[{\"a\":1},[2,[3]],\"x,]\",null,true,-1.5e3]",
     "{\"a\":1} [2,[3]] x,] null true -1.5e3 0"},
    {"{}", "0"},
    {"{\"a\":1,\"t\":[1,2],\"b\":{\"c\":[3]}}", "a:1 1 2 b:{\"c\":[3]} 0"},
    {"{ \"t\" : [ ] , \"b\" : \"x\" }", "b:x 0"},
    {"{\"t\":null,\"u\":[1,2]}", "t:null u:[1,2] 0"},
    {"{\"t\":[1],\"t\":[2]}", "1 2 0"},
    {"{\"t\\u0061\":1}", "t\\u0061:1 0"},
    /* accepted beyond the RFC */
    {"[1,]", "1 0"},
    {"{\"t\":[1,],}", "1 0"},
    /* broken elements: their code and place, and what follows them */
    {"[1,,2]", "1 -1@3 2 0"},
    {"[1 2]", "1 -1@3 2 0"},
    {"[{\"a\":NaN},2]", "-1@6 2 0"},
    {"[{\"a\":[1},2]", "-1@8 2 0"},
    {"[{\"a\":1],2", "-1@7 -1"},
    {"[{\"a\" 1},{\"b\":\"\\x\"},3]", "-1@6 -1@16 3 0"},
    {"[\"abc\n\",1,\n\"d\"]", "-1@5 0"},
    {"[\"abc,\n1],2]", "-1@6 -1"},
    {"[nul,tru,1]", "-1@4 -1@8 1 0"},
    {"{1:2,\"t\":[3]}", "-1@1 3 0"},
    {"{\"a\",\"t\":[3]}", "-1@4 3 0"},
    {"{\"a\":,\"t\":[3]}", "-1@5 3 0"},
    {"{\"a\":1 \"t\":[3]}", "a:1 -1@7 3 0"},
    {"[}1,2]", "-1@1 2 0"},
    /* the text as a whole */
    {"", "-6"},
    {"  ", "-6"},
    {"7", "-1"},
    {"[1] 2", "1 -1"},
    {"[1,2", "1 -6"},
    {"[1,{\"a\":2", "1 -6"},
    {"{\"t\":[1]", "1 -6"},
    {"{\"t\":[1", "-6"},
    {"{\"t\":[1,", "1 -6"},
    {"{\"t\"", "-6"},
    {"{\"t\":", "-6"},
};

static void test_cases(void)
{
    struct ep_json_stream_config config = {.array = "t", .window = 4};

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct ep_buf got;

        ep_buf_init(&got);
        run(cases[i].text, strlen(cases[i].text), SIZE_MAX, &config, WHOLE, 0,
            &got);
        if (!ok(equal(&got, cases[i].want)))
            printf("# %s: got %s, want %s\n", cases[i].text, got.ptr,
                   cases[i].want);
        ok(steady(cases[i].text, &config));
        ep_buf_free(&got);
    }
}

static bool gives(const char *text, const struct ep_json_stream_config *config,
                  int fail, const char *want)
{
    struct ep_buf got;
    bool same;

    ep_buf_init(&got);
    run(text, strlen(text), 3, config, WHOLE, fail, &got);
    same = equal(&got, want);
    if (!same)
        printf("# %s: got %s, want %s\n", text, got.ptr, want);
    ep_buf_free(&got);
    return same;
}

static void test_ends(void)
{
    struct ep_json_stream_config config = {.array = "t", .open_end = true};

    ok(gives("[1,{}", &config, 0, "1 {} 0"));
    ok(gives("[1,2,", &config, 0, "1 2 0"));
    ok(gives("[", &config, 0, "0"));
    ok(gives("[1,{", &config, 0, "1 -6"));
    ok(gives("{\"t\":[1,", &config, 0, "1 -6"));
    ok(gives("[1,2,", &config, EP_ESYS, "1 2 -4"));
    ok(gives("[1,{\"a\":", &config, EP_ESYS, "1 -4"));
    ok(gives("[1]", &config, EP_ESYS, "1 -4"));
}

static void test_limit(void)
{
    struct ep_json_stream_config config = {
        .array = "t", .window = 8, .max = 16};

    ok(gives("[\"12345678901234\",2]", &config, 0, "12345678901234 2 0"));
    ok(gives("[\"123456789012345\",2]", &config, 0, "-5@1 2 0"));
    ok(gives("{\"a\":{\"bcdefghijk\":[1,2,{}]},\"t\":[2]}", &config, 0,
             "-5@5 2 0"));
    ok(gives("{\"long key, far too\":1,\"t\":[2]}", &config, 0, "-5@1 2 0"));
    ok(gives("[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]],2]", &config, 0,
             "-5@1 2 0"));
    ok(gives("[{\"a\":\"12345678901234567890", &config, 0, "-5@1 -6"));
}

/* ---- documents at random ---- */

static uint64_t state;

static uint32_t draw(uint32_t below)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 33) % below;
}

static void add_value(struct ep_buf *b)
{
    enum { DEEP = 5 };
    static const char *const scalar[] = {
        "0",
        "-12.5e-3",
        "null",
        "true",
        "\"\"",
        "\"a,b\"",
        "\"\\\"]}\\\\\"",
        "\"\\ud83d\\ude00\"",
        "\"é\"",
        "1234567890123456789012",
        "\"{[\"",
    };
    char close[DEEP];
    uint32_t n[DEEP], of[DEEP];
    int depth = 0;

    do {
        uint32_t kind = draw(depth == DEEP ? 4 : 8);

        if (kind < 4) {
            ep_buf_adds(b, scalar[draw(sizeof scalar / sizeof *scalar)]);
        } else {
            ep_buf_addc(b, kind & 1 ? '[' : '{');
            close[depth] = kind & 1 ? ']' : '}';
            of[depth] = draw(5);
            n[depth++] = 0;
        }
        while (depth && n[depth - 1] == of[depth - 1])
            ep_buf_addc(b, close[--depth]);
        if (!depth)
            continue;
        if (n[depth - 1]++)
            ep_buf_adds(b, draw(2) ? ", " : ",");
        if (close[depth - 1] == '}')
            ep_buf_addf(b, "\"k%u\":%s", n[depth - 1], draw(2) ? " " : "");
    } while (depth);
}

/* A value as run() shows it: a string without its quotes. */
static void show(struct ep_buf *out, struct ep_span v)
{
    bool quoted = *v.ptr == '"';

    ep_buf_add(out, v.ptr + quoted, v.len - (quoted ? 2 : 0));
    ep_buf_addc(out, ' ');
}

/* A document, and what has to come of it. */
static void make(struct ep_buf *text, struct ep_buf *want)
{
    static const char *const space[] = {"", " ", "\n  ", "\t\r\n"};
    bool object = draw(2);
    uint32_t members = object ? draw(4) : 0, where = object ? draw(4) : 0;

    ep_buf_adds(text, object ? "{" : "");
    for (uint32_t m = 0; m <= members || m <= where; m++) {
        if (object)
            ep_buf_addf(text, "%s%s\"%s\"%s:%s", m ? "," : "", space[draw(4)],
                        m == where ? "t" : "m", space[draw(4)], space[draw(4)]);
        if (m != where) {
            size_t at = text->len;

            add_value(text);
            ep_buf_adds(want, "m:");
            show(want, (struct ep_span){text->ptr + at, text->len - at});
            continue;
        }
        ep_buf_addc(text, '[');
        for (uint32_t i = draw(6); i > 0; i--) {
            size_t at;

            ep_buf_adds(text, space[draw(4)]);
            at = text->len;
            add_value(text);
            show(want, (struct ep_span){text->ptr + at, text->len - at});
            ep_buf_addf(text, "%s%s", space[draw(4)], i > 1 ? "," : "");
        }
        ep_buf_addc(text, ']');
    }
    ep_buf_adds(text, object ? "}" : "");
    ep_buf_adds(want, "0");
}

static void test_random(void)
{
    int wrong = 0, unsteady = 0, uncut = 0;

    state = 20261130;
    printf("# seed %llu\n", (unsigned long long)state);
    for (int i = 0; i < 300; i++) {
        struct ep_json_stream_config config = {.array = "t",
                                               .window = 1 + draw(40)};
        struct ep_buf text, want, got;
        size_t cut;

        ep_buf_init(&text);
        ep_buf_init(&want);
        ep_buf_init(&got);
        make(&text, &want);
        run(text.ptr, text.len, 1 + draw(50), &config, WHOLE, 0, &got);
        wrong += !equal(&got, want.ptr);
        unsteady += !steady(text.ptr, &config);
        /* cut: the same elements as far as they go, then EP_ETRUNC */
        cut = draw((uint32_t)text.len);
        ep_buf_reset(&got);
        run(text.ptr, cut, 1 + draw(9), &config, WHOLE, 0, &got);
        uncut += got.len < 2 || strcmp(got.ptr + got.len - 2, "-6") != 0 ||
                 strncmp(got.ptr, want.ptr, got.len - 2) != 0;
        ep_buf_free(&text);
        ep_buf_free(&want);
        ep_buf_free(&got);
    }
    ok(wrong == 0);
    ok(unsteady == 0);
    ok(uncut == 0);
}

/* Elements far larger than the window and 64-byte blocks with backslashes. */
static void test_large(void)
{
    struct ep_json_stream_config config = {.array = "t"};
    struct ep_buf text, want, got;

    for (int mode = 0; mode < MODES; mode++) {
        ep_buf_init(&text);
        ep_buf_init(&want);
        ep_buf_init(&got);
        ep_buf_adds(&text, "[{\"a\":\"");
        for (int i = 0; i < 300000; i++)
            ep_buf_adds(&text, i % 1000 == 0 ? "\\\"]}" : "abc{");
        ep_buf_adds(&text, "\\\\\"},7]");
        if (mode == WHOLE)
            ep_buf_add(&want, text.ptr + 1, text.len - 4);
        else
            ep_buf_adds(&want, "{");
        ep_buf_adds(&want, " 7 0");
        run(text.ptr, text.len, 10000, &config, (enum mode)mode, 0, &got);
        ok(equal(&got, want.ptr));
        ep_buf_free(&text);
        ep_buf_free(&want);
        ep_buf_free(&got);
    }
}

/*
 * Elements whose brackets lead to the end of the text, though each is short:
 * in a string with a line end the scanner and the brackets differ. The cost must
 * not be elements times length, or this does not end in time.
 */
static void test_astray(void)
{
    struct ep_json_stream_config config = {.array = "t"};
    struct ep_buf text, got;

    ep_buf_init(&text);
    ep_buf_init(&got);
    ep_buf_addc(&text, '[');
    for (int i = 0; i < 200000; i++)
        ep_buf_adds(&text, "{\"z\":1,\"y\":\"{\n},");
    ep_buf_adds(&text, "7]");
    run(text.ptr, text.len, 1 << 16, &config, MEMBER, 0, &got);
    ok(got.len > 4 && strcmp(got.ptr + got.len - 4, " 7 0") == 0);
    ep_buf_free(&text);
    ep_buf_free(&got);
}

/* An error of the caller's own passes over the element; the place is its. */
static void test_refusal(void)
{
    struct pieces p = {"[1,{\"a\":[2]},3]", 15, 0, 2, 0};
    struct ep_json_stream_config config = {
        .array = "t", .window = 4, .read = read_piece, .ctx = &p};
    struct ep_json_stream *s = ep_json_stream_new(&config);
    struct ep_json_value key, v;
    struct ep_error err;
    struct ep_json j;
    int n = 0, refused = 0, rc;

    while ((rc = ep_json_stream_next(s, &key, &j, &v, &err)) > 0) {
        rc = v.kind == EP_JSON_OBJECT
                 ? ep_error_set(&err, EP_EDOM, "byte 1: not wanted")
                 : 0;
        rc = ep_json_stream_done(s, &j, rc, &err);
        if (rc == EP_EDOM) {
            refused++;
            ok(ep_json_stream_offset(s) == 3);
            ok(strcmp(err.msg, "byte 1: not wanted") == 0);
        }
        n += rc == 0;
    }
    ok(rc == 0 && n == 2 && refused == 1 && ep_json_stream_bare(s));
    ep_json_stream_free(s);
}

int main(void)
{
    test_cases();
    test_ends();
    test_limit();
    test_large();
    test_astray();
    test_refusal();
    test_random();
    return tap_done();
}
