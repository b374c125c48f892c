/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_smi.c - any bytes as a table of nvidia-smi, and as dmon's lines; see
 * nccl_check.h. */
#include "config.h"

#include "nccl_check.h"
#include "record/importers.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct nccl_check check = {.keep = false};

    nccl_check(&ep_import_smi, data, size, &check);
    nccl_check(&ep_import_dmon, data, size, &check);
    return 0;
}
