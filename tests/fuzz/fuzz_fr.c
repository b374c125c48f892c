/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_fr.c - any bytes as a dump of the Flight Recorder, see nccl_check.h. */
#include "config.h"

#include "nccl_check.h"
#include "record/importers.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct nccl_check check = {.keep = false};

    if (size >= 2 && data[0] == 0x1f) /* gzip is not what is tested */
        return 0;
    nccl_check(&ep_import_fr, data, size, &check);
    nccl_check(&ep_import_pickle, data, size, &check);
    return 0;
}
