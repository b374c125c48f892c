/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_record.c - any bytes as a record: refused with a reason, or accepted,
 * printed, read back as the same record and printed as the same bytes.
 */
#include "config.h"

#include "base/mem.h"
#include "record/record.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define PAD 32 /* EP_LINE_PAD */

static void require(int condition)
{
    if (!condition)
        abort();
}

/* Of a double: 0 is not -0. */
static uint64_t bits(double x)
{
    uint64_t u;

    memcpy(&u, &x, sizeof u);
    return u;
}

/* With padding behind the line, which is read in another way, the same comes
   out. */
static void check_padded(const char *line, size_t size, int code,
                         const struct ep_record *r)
{
    static struct ep_record_parser *parser;
    char *padded = ep_calloc(size + PAD, 1);
    struct ep_record other;
    int rc;

    if (!parser)
        parser = ep_record_parser_new();
    memcpy(padded, line, size);
    memset(padded + size, '0', PAD);
    rc = ep_record_parse_padded(parser, padded, size, PAD, &other, NULL);
    require(rc == code);
    if (rc == 0) {
        require(other.type == r->type && other.have[0] == r->have[0] &&
                other.have[1] == r->have[1]);
        for (int k = 0; r->type != EP_OTHER && k < EP_KEYS; k++) {
            enum ep_value kind = ep_key_value(r->type, (enum ep_key)k);

            if (!ep_record_has(r, (enum ep_key)k))
                continue;
            if (kind == EP_V_NUMBER || kind == EP_V_INTEGER)
                require(bits(other.v[k].num) == bits(r->v[k].num));
            else
                require(other.v[k].str.len == r->v[k].str.len &&
                        memcmp(other.v[k].str.ptr, r->v[k].str.ptr,
                               r->v[k].str.len) == 0);
        }
    }
    free(padded);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct ep_record_parser *parser, *second_parser;
    char *line = ep_strndup((const char *)data, size);
    struct ep_buf first, second;
    struct ep_record r, back;
    struct ep_error err = {.code = 0};

    if (!parser) {
        parser = ep_record_parser_new();
        second_parser = ep_record_parser_new();
    }
    ep_buf_init(&first);
    ep_buf_init(&second);
    if (ep_record_parse(parser, line, size, &r, &err) < 0) {
        require(err.code < 0 && err.msg[0]);
        check_padded(line, size, err.code, &r);
    } else if (r.type != EP_OTHER) {
        check_padded(line, size, 0, &r);
        ep_record_print(&r, &first);
        require(first.len && first.ptr[first.len - 1] == '\n' &&
                memchr(first.ptr, '\n', first.len - 1) == NULL);
        require(ep_record_parse(second_parser, first.ptr, first.len - 1, &back,
                                &err) == 0);
        ep_record_print(&back, &second);
        require(first.len == second.len &&
                memcmp(first.ptr, second.ptr, first.len) == 0);
        ep_record_print_tsv(&r, &second);
    }
    ep_buf_free(&first);
    ep_buf_free(&second);
    free(line);
    return 0;
}
