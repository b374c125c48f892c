/* SPDX-License-Identifier: Apache-2.0 */
/*
 * foreign.c - see foreign.h.
 *
 * torch.save writes a zip archive since PyTorch 1.6 (APPNOTE.TXT, section
 * 4.3.7: local headers begin with 50 4b 03 04) and wrote bare pickles before
 * (Python's pickletools.py: PROTO is 0x80 and the protocol, 2 to 5). Git LFS
 * leaves pointers where files were not fetched (git-lfs, docs/spec.md).
 */
#include "config.h"

#include "ckpt/foreign.h"

#include <string.h>

#define CONVERT                                                                \
    "python3 -c 'import torch as t,safetensors.torch as s;"                    \
    "s.save_file(t.load(\"IN\",\"cpu\",weights_only=True),\"OUT\")'"

const char *ep_ckpt_foreign(const void *file, size_t len)
{
    static const char lfs[] = "version https://git-lfs";
    const unsigned char *b = file;

    if (len >= 4 && memcmp(b, "PK\3\4", 4) == 0)
        return "a zip archive (PyTorch's pickle?), never loaded; "
               "convert: " CONVERT;
    if (len >= 2 && b[0] == 0x80 && b[1] >= 2 && b[1] <= 5)
        return "a pickle, which is never loaded; convert: " CONVERT;
    if (len >= sizeof lfs - 1 && memcmp(b, lfs, sizeof lfs - 1) == 0)
        return "a pointer of Git LFS, not the file itself; fetch it: git lfs "
               "pull";
    return NULL;
}

const char *ep_ckpt_foreign_folder(void)
{
    return "a distributed checkpoint of PyTorch (.metadata is a pickle), never "
           "loaded; convert: python3 -m torch.distributed.checkpoint."
           "format_utils dcp_to_torch DIR OUT.pt";
}
