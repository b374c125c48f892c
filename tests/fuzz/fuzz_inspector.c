/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_inspector.c - any bytes as lines of NCCL Inspector, see nccl_check.h. */
#include "config.h"

#include "nccl_check.h"
#include "record/importers.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct nccl_check check = {.keep = false};

    nccl_check(&ep_import_inspector, data, size, &check);
    return 0;
}
