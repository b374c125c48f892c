/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_json.c - the JSON scanner and writer on arbitrary bytes.
 *
 * Holds for every input, or the target aborts:
 *  - no byte outside of a block of exactly the input's size is read (that is
 *    for the address sanitizer to see);
 *  - pulling everything, passing over everything, and the general code alone
 *    end with the same code at the same place, which lies within the text;
 *  - every view lies within the text, and a message comes with every failure;
 *  - what is accepted, written again from its values and scanned again, gives
 *    the same values, and written once more the same bytes.
 */
#include "config.h"

#include "base/json_impl.h"
#include "base/json_write.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CHECK(cond) check((cond), #cond, __LINE__)

static void check(bool good, const char *what, int line)
{
    if (good)
        return;
    (void)fprintf(stderr, "fuzz_json.c:%d: not so: %s\n", line, what);
    abort();
}

static void check_view(const struct ep_json *j, const struct ep_json_value *v)
{
    CHECK(v->raw.ptr >= j->start && v->raw.ptr <= j->end);
    CHECK(v->raw.len <= (size_t)(j->end - v->raw.ptr));
    CHECK(v->kind >= EP_JSON_NULL && v->kind <= EP_JSON_OBJECT);
}

/* Write one scalar, or the beginning of a container. */
static void write_value(struct ep_jw *w, const struct ep_json_value *v,
                        struct ep_buf *scratch)
{
    double x;
    int64_t n;

    switch (v->kind) {
    case EP_JSON_NULL:
        ep_jw_null(w);
        break;
    case EP_JSON_FALSE:
    case EP_JSON_TRUE:
        ep_jw_bool(w, v->kind == EP_JSON_TRUE);
        break;
    case EP_JSON_NUMBER:
        /* -0 is a double: as an integer it loses its sign. */
        if (v->integer && ep_json_int(v, &n) == 0 && (n != 0 || !v->dec.neg))
            ep_jw_int(w, n);
        else if (ep_json_double(v, &x) == 0)
            ep_jw_double(w, x);
        else
            ep_jw_raw(w, v->raw);
        break;
    case EP_JSON_STRING:
        ep_buf_reset(scratch);
        ep_json_unescape(v, scratch);
        ep_jw_bytes(w, (struct ep_span){scratch->ptr, scratch->len});
        break;
    case EP_JSON_ARRAY:
        ep_jw_begin_array(w);
        break;
    case EP_JSON_OBJECT:
        ep_jw_begin_object(w);
        break;
    }
}

/*
 * Scan all levels of a text; out (may be NULL) becomes the text written again.
 * Returns the code, *at the place where it ended.
 */
static int pull(const char *text, size_t len, bool general, size_t *at,
                struct ep_buf *out)
{
    struct ep_error err = {0, 0, ""};
    struct ep_json_value key, v;
    struct ep_buf scratch;
    struct ep_jw w;
    struct ep_json j;
    int r = ep_json_begin(&j, text, len, &v, &err);

    ep_buf_init(&scratch);
    if (out)
        ep_jw_init(&w, out);
    if (r == 0 && out)
        write_value(&w, &v, &scratch);
    ep_json_enter(&j);
    while (r == 0 && j.depth > 0) {
        bool object = j.objects & 1;

        r = general ? ep_json_next_general(&j, &key, &v)
                    : ep_json_next(&j, &key, &v);
        if (r == 0 && out)
            object ? ep_jw_end_object(&w) : ep_jw_end_array(&w);
        if (r <= 0)
            continue;
        r = 0;
        check_view(&j, &v);
        if (object) {
            check_view(&j, &key);
            (void)ep_json_head(&j, key.raw);
        }
        if (object && out) {
            ep_buf_reset(&scratch);
            ep_json_unescape(&key, &scratch);
            ep_jw_key_bytes(&w, (struct ep_span){scratch.ptr, scratch.len});
        }
        if (out)
            write_value(&w, &v, &scratch);
        ep_json_enter(&j);
    }
    if (r == 0)
        r = ep_json_end(&j);
    *at = ep_json_offset(&j);
    CHECK(*at <= len && r <= 0 && (r == 0) == (err.msg[0] == '\0'));
    CHECK(r != EP_ETRUNC || *at == len);
    CHECK(err.code == r);
    ep_buf_free(&scratch);
    return r;
}

/* Pass over the root. */
static int pass_over(const char *text, size_t len, size_t *at)
{
    struct ep_json_value v;
    struct ep_json j;
    int r = ep_json_begin(&j, text, len, &v, NULL);

    if (r == 0)
        r = ep_json_end(&j);
    *at = ep_json_offset(&j);
    return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size ? size : 1);
    struct ep_buf once, twice, thrice;
    size_t at, other;
    int r;

    CHECK(text != NULL);
    if (size)
        memcpy(text, data, size);
    ep_buf_init(&once);
    ep_buf_init(&twice);
    ep_buf_init(&thrice);
    r = pull(text, size, false, &at, &once);
    CHECK(pull(text, size, true, &other, &twice) == r && other == at);
    CHECK(once.len == twice.len && !memcmp(once.ptr, twice.ptr, once.len));
    CHECK(pass_over(text, size, &other) == r && other == at);
    if (r == 0) {
        char *exact = malloc(once.len ? once.len : 1);

        CHECK(exact != NULL);
        memcpy(exact, once.ptr, once.len);
        CHECK(pull(exact, once.len, false, &at, &thrice) == 0);
        CHECK(thrice.len == once.len &&
              !memcmp(thrice.ptr, once.ptr, once.len));
        free(exact);
    }
    ep_buf_free(&once);
    ep_buf_free(&twice);
    ep_buf_free(&thrice);
    free(text);
    return 0;
}
