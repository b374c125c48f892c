/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_hostlist.c - any string as a host list: what comes out begins and ends
 * as the string does outside of its brackets, is no list itself (expands to
 * itself) and is within the caps; a refusal says why and appends nothing.
 */
#include "config.h"

#include "base/hostlist.h"
#include "base/mem.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
    if (!condition)
        abort();
}

static void check_name(const char *s, const char *name)
{
    struct ep_hostlist again = {0};
    size_t head = strcspn(s, "[");
    const char *close = strrchr(s, ']');
    size_t tail = close ? strlen(close + 1) : 0;

    require(strncmp(s, name, head) == 0);
    require(strlen(name) >= tail);
    require(!close || strcmp(name + strlen(name) - tail, close + 1) == 0);
    require(ep_hostlist_expand(&again, name, NULL) == 0 && again.n == 1);
    require(strcmp(again.v[0], name) == 0);
    ep_hostlist_free(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *s = ep_strndup((const char *)data, size);
    struct ep_hostlist h = {0};
    struct ep_error err = {0};
    int rc = ep_hostlist_expand(&h, s, &err);

    if (rc != 0) {
        require(rc == EP_EFORMAT || rc == EP_ELIMIT);
        require(err.code == rc && h.n == 0);
        require(strncmp(err.msg, "cannot expand ", 14) == 0);
    } else {
        require(h.n >= 1 && h.n <= EP_HOSTLIST_NAMES);
        require(strchr(s, '[') || (h.n == 1 && strcmp(h.v[0], s) == 0));
        check_name(s, h.v[0]);
        check_name(s, h.v[h.n / 2]);
        check_name(s, h.v[h.n - 1]);
    }
    ep_hostlist_free(&h);
    free(s);
    return 0;
}
