/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_safetensors.c - any bytes as a safetensors file: refused with a reason,
 * or accepted, and then the tensors fill the data one after the other, each of
 * the size of its type and shape, and no name is there twice.
 *
 * The first 8 bytes are taken as they are and, if that is refused, replaced by
 * the length of the JSON that follows up to its last '}': most inputs would
 * fail there and get no further.
 */
#include "config.h"

#include "base/mem.h"
#include "ckpt/safetensors.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static volatile unsigned sink; /* what was read has to be read */

static void require(int condition)
{
    if (!condition)
        abort();
}

static void check_tensor(const struct ep_tensor *t)
{
    uint64_t count = 1, bits;

    require(t->rank <= EP_ST_RANK_MAX && t->dtype < EP_DTYPES);
    for (unsigned i = 0; i < t->rank; i++)
        require(!__builtin_mul_overflow(count, t->shape[i], &count));
    require(!__builtin_mul_overflow(count, ep_dtype_bits(t->dtype), &bits));
    require(t->count == count && bits % 8 == 0 && t->bytes == bits / 8);
}

static void check(const struct ep_st *st, const uint8_t *file, size_t size)
{
    uint64_t end = 0;
    unsigned sum = 0;

    require(st->header_bytes + st->data_bytes == size);
    for (size_t i = 0; i < st->n; i++) {
        const struct ep_tensor *t = &st->tensor[i];

        check_tensor(t);
        require(t->begin == end);
        require(t->data == file + st->header_bytes + end);
        end += t->bytes;
        for (size_t b = 0; b < t->name.len; b++)
            sum += (unsigned char)t->name.ptr[b];
        for (size_t k = 0; k < i && i < 100; k++)
            require(st->tensor[k].name.len != t->name.len ||
                    memcmp(st->tensor[k].name.ptr, t->name.ptr, t->name.len) !=
                        0);
    }
    require(end == st->data_bytes);
    for (size_t i = 0; i < st->nmeta; i++)
        for (size_t b = 0; b < st->meta[i].value.len; b++)
            sum += (unsigned char)st->meta[i].value.ptr[b];
    sink = sum;
}

/* Was it accepted? */
static int run(const uint8_t *file, size_t size)
{
    struct ep_error err = {.code = 0};
    struct ep_st st, again;
    int rc = ep_st_parse(&st, file, size, size, &err);

    if (rc < 0) {
        require(err.code == rc && err.msg[0]);
        return 0;
    }
    check(&st, file, size);
    /* the header alone says the same */
    require(ep_st_parse(&again, file, (size_t)st.header_bytes, size, NULL) ==
            0);
    require(again.n == st.n &&
            (st.n == 0 || !again.tensor[0].data || st.data_bytes == 0));
    ep_st_free(&again);
    ep_st_free(&st);
    return 1;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *file = ep_realloc(NULL, size, 1); /* its bounds are watched */
    size_t end = size;

    if (size)
        memcpy(file, data, size);
    if (!run(file, size)) {
        while (end > 8 && file[end - 1] != '}')
            end--;
        for (int i = 0; end > 8 && i < 8; i++)
            file[i] = (uint8_t)((uint64_t)(end - 8) >> 8 * i);
        (void)run(file, size);
    }
    free(file);
    return 0;
}
