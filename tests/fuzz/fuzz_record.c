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

static void require(int condition)
{
    if (!condition)
        abort();
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
    } else if (r.type != EP_OTHER) {
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
