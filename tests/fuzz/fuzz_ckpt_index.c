/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_ckpt_index.c - any bytes as the index of a checkpoint: refused with a
 * reason, or a sorted table of tensors, each in a file whose name is one.
 */
#include "config.h"

#include "base/mem.h"
#include "ckpt/ckpt_index.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int condition)
{
    if (!condition)
        abort();
}

static void check(const struct ep_ckpt_index *ix)
{
    unsigned char *used = ep_calloc(ix->nfiles, 1);

    for (size_t i = 0; i < ix->n; i++) {
        const struct ep_ckpt_place *p = &ix->place[i];

        require(p->file < ix->nfiles);
        used[p->file] = 1;
        require(ep_ckpt_index_find(ix, p->name) == p);
        require(i == 0 || ep_span_order(p[-1].name, p->name) < 0);
    }
    for (size_t i = 0; i < ix->nfiles; i++) {
        struct ep_span f = ix->file[i];

        require(used[i] && f.len > 0 && strlen(f.ptr) == f.len);
        require(!strchr(f.ptr, '/') && strcmp(f.ptr, "..") != 0);
        require(i == 0 || ep_span_order(ix->file[i - 1], f) < 0);
    }
    free(used);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = ep_realloc(NULL, size, 1); /* its bounds are watched */
    struct ep_error err = {.code = 0};
    struct ep_ckpt_index ix;

    if (size)
        memcpy(text, data, size);
    if (ep_ckpt_index_parse(&ix, text, size, &err) < 0) {
        require(err.code < 0 && err.msg[0]);
    } else {
        check(&ix);
        ep_ckpt_index_free(&ix);
    }
    free(text);
    return 0;
}
