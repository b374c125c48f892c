/* SPDX-License-Identifier: Apache-2.0 */
/*
 * foreign.c - see foreign.h.
 *
 * torch.save writes a zip archive since PyTorch 1.6 (APPNOTE.TXT, section
 * 4.3.7: local headers begin with 50 4b 03 04) and wrote bare pickles before
 * (Python's pickletools.py: PROTO is 0x80 and the protocol, 2 to 5). Git LFS
 * leaves pointers where files were not fetched (git-lfs, docs/spec.md). GGUF:
 * ggml, docs/gguf.md; HDF5: its file format specification, section II.A; gzip:
 * RFC 1952, section 2.3.1.
 */
#include "config.h"

#include "ckpt/foreign.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

#define CONVERT                                                                \
    "python3 -c 'import torch as t,safetensors.torch as s;"                    \
    "s.save_file(t.load(\"IN\",\"cpu\",weights_only=True),\"OUT\")'"

/* Other formats that models are met in, and what comes instead of a model. */
static const struct {
    const char *magic;
    size_t len;
    const char *what;
} known[] = {
    {"GGUF", 4,
     "a GGUF file of llama.cpp, whose tensors are quantised; merge the "
     "safetensors that it was made from"},
    {"\x89HDF\r\n\x1a\n", 8,
     "an HDF5 file; convert its weights to safetensors"},
    {"\x1f\x8b", 2, "compressed by gzip; unpack it: gunzip"},
    {"version https://git-lfs", 23,
     "a pointer of Git LFS, not the file itself; fetch it: git lfs pull"},
};

static bool begins_with(const char *s, size_t len, const char *lower)
{
    for (; *lower; lower++, s++, len--)
        if (!len || tolower((unsigned char)*s) != *lower)
            return false;
    return true;
}

/* A page that a server sent in place of the file? Spaces may come first. */
static bool is_html(const char *s, size_t len)
{
    while (len && (*s == ' ' || *s == '\t' || *s == '\r' || *s == '\n')) {
        s++;
        len--;
    }
    return begins_with(s, len, "<!doctype html") ||
           begins_with(s, len, "<html");
}

const char *ep_ckpt_foreign(const void *file, size_t len)
{
    const unsigned char *b = file;

    if (len >= 4 && memcmp(b, "PK\3\4", 4) == 0)
        return "a zip archive (PyTorch's pickle?), never loaded; "
               "convert: " CONVERT;
    if (len >= 2 && b[0] == 0x80 && b[1] >= 2 && b[1] <= 5)
        return "a pickle, which is never loaded; convert: " CONVERT;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (len >= known[i].len && memcmp(b, known[i].magic, known[i].len) == 0)
            return known[i].what;
    if (len && is_html(file, len))
        return "a page of HTML, not a model: was it downloaded without a "
               "login?";
    return NULL;
}

const char *ep_ckpt_foreign_folder(void)
{
    return "a distributed checkpoint of PyTorch (.metadata is a pickle), never "
           "loaded; convert: python3 -m torch.distributed.checkpoint."
           "format_utils dcp_to_torch DIR OUT.pt";
}
