/* SPDX-License-Identifier: Apache-2.0 */
/* ranks.c - see ranks.h. */
#include "config.h"

#include "plan/ranks.h"

#include "base/num.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

enum { TP, CP, EP, DP, PP, DIMS };

static const char *const names[DIMS] = {"tp", "cp", "ep", "dp", "pp"};

/* The dimension of that name, or DIMS. */
static int find(struct ep_span name)
{
    int d = 0;

    while (d < DIMS && !ep_span_eq(name, names[d]))
        d++;
    return d;
}

static int check_sizes(const int64_t *size, int64_t *count,
                       struct ep_error *err)
{
    *count = 1;
    for (int d = 0; d < DIMS; d++) {
        if (size[d] < 1)
            return ep_error_set(err, EP_EDOM, "%s is %" PRId64 ", below 1",
                                names[d], size[d]);
        if (size[d] > EP_RANKS_MAX / *count)
            return ep_error_set(err, EP_ELIMIT, "more than %" PRId64 " ranks",
                                EP_RANKS_MAX);
        *count *= size[d];
    }
    return 0;
}

int ep_ranks_init(struct ep_ranks *k, struct ep_span order,
                  const struct ep_ranks_sizes *sizes, struct ep_error *err)
{
    static const char standard[] = "tp-cp-ep-dp-pp";
    const int64_t size[DIMS] = {sizes->tp, sizes->cp, 1, sizes->dp, sizes->pp};
    const char *at = order.ptr ? order.ptr : standard;
    const char *end = at + (order.ptr ? order.len : sizeof standard - 1);
    int64_t count, stride = 1, below = 1;
    bool seen[DIMS] = {false};
    char shown[40];
    int rc = check_sizes(size, &count, err);

    if (rc < 0)
        return rc;
    for (bool more = true; more;) {
        const char *dash = memchr(at, '-', (size_t)(end - at));
        size_t n = (size_t)((dash ? dash : end) - at);
        int d = find((struct ep_span){at, n});

        if (d == DIMS || seen[d])
            return ep_error_set(err, EP_EFORMAT, "order has '%s'%s",
                                ep_escape(shown, sizeof shown, at, n),
                                d == DIMS ? ", which is no dimension"
                                          : " twice");
        seen[d] = true;
        if (d == DP)
            stride = below;
        below *= size[d];
        more = dash != NULL;
        at += n + more;
    }
    for (int d = 0; d < DIMS; d++)
        if (!seen[d] && size[d] > 1)
            return ep_error_set(err, EP_EFORMAT, "order lacks %s", names[d]);
    *k = (struct ep_ranks){
        .count = count, .stride = stride, .groups = sizes->dp};
    return 0;
}

int64_t ep_ranks_group(const struct ep_ranks *k, int64_t rank)
{
    if (rank < 0 || rank >= k->count)
        return -1;
    return rank / k->stride % k->groups;
}

int ep_ranks_find(const struct ep_ranks *k, int64_t rank, int64_t dp,
                  int64_t *group, struct ep_error *err)
{
    *group = ep_ranks_group(k, rank);
    if (rank >= 0 && *group < 0)
        return ep_error_set(err, EP_EDOM,
                            "rank is %" PRId64 ", the layout has %" PRId64
                            " ranks",
                            rank, k->count);
    if (dp >= k->groups)
        return ep_error_set(err, EP_EDOM,
                            "dp is %" PRId64 ", the layout has %" PRId64
                            " groups",
                            dp, k->groups);
    if (dp >= 0)
        *group = dp;
    return 0;
}

/* A whole number that is all of the text. */
static int read_number(struct ep_span text, int64_t *value,
                       struct ep_error *err)
{
    char s[24];

    if (text.len >= sizeof s || memchr(text.ptr, '\0', text.len))
        return ep_error_set(err, EP_EFORMAT, "not a number");
    memcpy(s, text.ptr, text.len);
    s[text.len] = '\0';
    return ep_num_int(s, 0, INT64_MAX, value, err);
}

/* The number behind "key=" among the pairs of id; -1: no such key. */
static int find_pair(struct ep_span id, const char *key, int64_t *value,
                     struct ep_error *err)
{
    size_t n = strlen(key), at = 0;

    *value = -1;
    while (at < id.len) {
        const char *pair = id.ptr + at;
        const char *comma = memchr(pair, ',', id.len - at);
        size_t len = comma ? (size_t)(comma - pair) : id.len - at;

        if (len > n && memcmp(pair, key, n) == 0 && pair[n] == '=') {
            const struct ep_span text = {pair + n + 1, len - n - 1};

            if (read_number(text, value, err) < 0)
                return ep_error_prefix(err, "id: %s", key);
            return 0;
        }
        at += len + 1;
    }
    return 0;
}

int ep_ranks_parse(struct ep_span id, int64_t *rank, int64_t *dp,
                   struct ep_error *err)
{
    int rc = find_pair(id, "rank", rank, err);

    return rc < 0 ? rc : find_pair(id, "dp", dp, err);
}
