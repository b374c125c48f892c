/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_nccl_tests.c - any bytes as output of nccl-tests, see nccl_check.h. */
#include "config.h"

#include "nccl_check.h"
#include "record/importers.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct nccl_check check = {.keep = false};

    if (size >= 2 && data[0] == 0x1f) /* gzip is not what is tested */
        return 0;
    nccl_check(&ep_import_nccl_tests, data, size, &check);
    return 0;
}
