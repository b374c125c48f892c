/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_archive.c - any bytes as an archive: as they are, and as the payload of a
 * whole one, read by whatever functions the first bytes name. Nothing is read
 * beyond the end, and after the first error all is zero.
 */
#include "config.h"

#include "base/archive.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int condition)
{
    if (!condition)
        abort();
}

/* One value; 0, empty or NULL if the archive has failed. */
static void read_one(struct ep_archive *a, unsigned kind)
{
    struct ep_span s;
    double pair[2] = {1, 1};
    char *text;

    switch (kind % 9) {
    case 0:
        require(ep_archive_u64(a, 5, 1000) <= 1000);
        break;
    case 1:
        require(ep_archive_i64(a, 5, 10, 20) >= 10);
        break;
    case 2:
        (void)ep_archive_bool(a, true);
        break;
    case 3:
        (void)ep_archive_f64(a, 1);
        require(ep_archive_ok(a) || ep_archive_f64(a, 1) == 0);
        break;
    case 4:
        require(isfinite(ep_archive_finite(a, 1)));
        break;
    case 5:
        require(ep_archive_size(a, 9, 1 << 20, 3) * 3 <=
                (size_t)(a->end - a->at));
        break;
    case 6:
        s = ep_archive_span(a, (struct ep_span){NULL, 7}, 100);
        require(s.ptr && s.len <= 100);
        break;
    case 7:
        text = ep_archive_string(a, NULL, 100);
        require(!text || strlen(text) <= 100);
        free(text);
        break;
    default:
        ep_archive_f64s(a, pair, 2);
        break;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t kinds = size ? data[0] % 64 : 0;
    struct ep_archive out, in;

    if (ep_archive_load(&in, data, size, "fuzz", 1, NULL) == 0)
        for (int i = 0; i < 100; i++)
            read_one(&in, (unsigned)i);
    ep_archive_free(&in);
    ep_archive_save(&out, "fuzz", 1, "v");
    for (size_t i = kinds + 1; i < size; i++)
        ep_buf_addc(&out.out, (char)data[i]);
    require(ep_archive_saved(&out, NULL) == 0);
    require(ep_archive_load(&in, out.out.ptr, out.out.len, "fuzz", 1, NULL) ==
            0);
    for (size_t i = 1; i <= kinds && i < size; i++)
        read_one(&in, data[i]);
    (void)!ep_archive_loaded(&in, NULL);
    ep_archive_free(&in);
    ep_archive_free(&out);
    return 0;
}
