/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_trainers.c - any bytes as the log of a trainer, read by each of the
 * importers for such logs; see nccl_check.h.
 */
#include "config.h"

#include "nccl_check.h"
#include "record/importers.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct ep_importer *const importers[] = {
        &ep_import_megatron, &ep_import_deepspeed, &ep_import_nvrx};

    for (size_t i = 0; i < 3; i++) {
        struct nccl_check check = {.keep = false};

        nccl_check(importers[i], data, size, &check);
        nccl_require(check.errors == 0, "a log has no bad lines");
    }
    return 0;
}
