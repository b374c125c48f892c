/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_nccl_debug.c - any bytes as a log of NCCL_DEBUG, see nccl_check.h. */
#include "config.h"

#include "nccl_check.h"
#include "record/importers.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct nccl_check check = {.keep = false};

    nccl_check(&ep_import_nccl_debug, data, size, &check);
    return 0;
}
