/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_prometheus.c - any bytes as a Prometheus exposition, see nccl_check.h;
 * and what the names of records say is a series again, that reads as itself.
 */
#include "config.h"

#include "nccl_check.h"
#include "record/import_prometheus_line.h"
#include "record/importers.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A label as it would be written, read again: the same value. */
static void check_label(const struct ep_prometheus_label *l)
{
    static char first[1 << 17], second[1 << 17], text[1 << 18];
    static struct ep_prometheus_line line;
    size_t n, m;
    char *end = text;

    if (l->value.len > sizeof first / 4)
        return;
    memcpy(end, "m{l=\"", 5);
    end = ep_prometheus_encode(l, end + 5);
    memcpy(end, "\"} 1", 4);
    end += 4;
    nccl_require(ep_prometheus_scan(text, (size_t)(end - text),
                                    (struct ep_span){NULL, 0}, &line,
                                    NULL) == 0 &&
                     line.nlabels == 1,
                 "a label that was written is read");
    n = (size_t)(ep_prometheus_decode(l, first) - first);
    m = (size_t)(ep_prometheus_decode(&line.labels[0], second) - second);
    nccl_require(n == m && memcmp(first, second, n) == 0,
                 "it has the same value");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct ep_prometheus_line line;
    struct nccl_check check = {.keep = false};
    const char *text = (const char *)data;
    const char *nl = size ? memchr(text, '\n', size) : NULL;
    size_t len = nl ? (size_t)(nl - text) : size;

    if (ep_prometheus_scan(text, len, (struct ep_span){"up", 2}, &line, NULL) ==
        0)
        for (int i = 0; i < line.nlabels; i++)
            check_label(&line.labels[i]);
    nccl_check(&ep_import_prometheus, data, size, &check);
    return 0;
}
