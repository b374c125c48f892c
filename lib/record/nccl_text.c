/* SPDX-License-Identifier: Apache-2.0 */
/* nccl_text.c - see nccl_text.h. */
#include "config.h"

#include "record/nccl_text.h"

#include "base/word.h"

#include <string.h>

bool ep_cursor_find(struct ep_cursor *c, const char *literal)
{
    size_t n = strlen(literal);
    const char *at = find_text(c->p, (size_t)(c->end - c->p), literal, n);

    if (!at)
        return false;
    c->p = at + n;
    return true;
}

struct ep_span ep_cursor_word(struct ep_cursor *c)
{
    const char *from = c->p;

    c->p = find3(from, c->end, ' ', '\t', ' ');
    return (struct ep_span){from, (size_t)(c->p - from)};
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool ep_cursor_hex(struct ep_cursor *c, uint64_t *out)
{
    struct ep_cursor at = *c;
    uint64_t v = 0;
    int n = 0;

    (void)ep_cursor_lit(&at, "0x");
    for (; at.p < at.end && hex_digit(*at.p) >= 0; at.p++, n += v != 0) {
        if (n >= 16)
            return false;
        v = v << 4 | (unsigned)hex_digit(*at.p);
    }
    if (at.p == c->p || hex_digit(at.p[-1]) < 0)
        return false;
    c->p = at.p;
    *out = v;
    return true;
}

/* The names that NCCL has, by how often they occur. */
static const struct name {
    struct ep_span theirs, ours;
} names[] = {
#define NAME(theirs, ours)                                                     \
    {                                                                          \
        {theirs, sizeof(theirs) - 1},                                          \
        {                                                                      \
            ours, sizeof(ours) - 1                                             \
        }                                                                      \
    }
    NAME("AllReduce", "all_reduce"),
    NAME("AllGather", "all_gather"),
    NAME("ReduceScatter", "reduce_scatter"),
    NAME("Send", "send"),
    NAME("Recv", "recv"),
    NAME("SendRecv", "send_recv"),
    NAME("Broadcast", "broadcast"),
    NAME("Reduce", "reduce"),
    NAME("All2All", "all_to_all"),
    NAME("AlltoAll", "all_to_all"),
    NAME("AllToAll", "all_to_all"),
    NAME("AllGatherV", "all_gather_v"),
    NAME("Invalid", ""),
    NAME("Unknown", ""),
};

static bool is_upper(char c)
{
    return c >= 'A' && c <= 'Z';
}

/* AllGatherV to all_gather_v. */
static struct ep_span take_apart(struct ep_span name, char *buf)
{
    size_t n = 0;

    for (size_t i = 0; i < name.len; i++) {
        char c = name.ptr[i];
        bool word = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
                    c == '_' || is_upper(c);

        if (!word || n + 2 > EP_NCCL_OP_MAX)
            return (struct ep_span){"", 0};
        if (i > 0 && is_upper(c) && !is_upper(name.ptr[i - 1]) &&
            buf[n - 1] != '_')
            buf[n++] = '_';
        buf[n++] = (char)(is_upper(c) ? c | 0x20 : c);
    }
    return (struct ep_span){buf, n};
}

struct ep_span ep_nccl_op(struct ep_span name, char buf[EP_NCCL_OP_MAX])
{
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (names[i].theirs.len == name.len &&
            memcmp(names[i].theirs.ptr, name.ptr, name.len) == 0)
            return names[i].ours;
    return take_apart(name, buf);
}

struct ep_span ep_nccl_host(struct ep_span name)
{
    bool address = true;

    if (!name.len || memchr(name.ptr, '\0', name.len) ||
        EP_SPAN_IS(name, "unknown"))
        return (struct ep_span){NULL, 0};
    for (size_t i = 0; i < name.len; i++) {
        char c = name.ptr[i];

        if (c == ':')
            return name; /* IPv6 */
        address &= (c >= '0' && c <= '9') || c == '.';
    }
    if (!address) {
        const char *dot = memchr(name.ptr, '.', name.len);

        if (dot && dot > name.ptr)
            name.len = (size_t)(dot - name.ptr);
    }
    return name;
}

struct ep_span ep_nccl_comm(uint64_t hash, char buf[EP_NCCL_COMM_MAX])
{
    static const char digits[] = "0123456789abcdef";
    size_t n = 2;
    int shift = 60;

    buf[0] = '0';
    buf[1] = 'x';
    while (shift > 0 && !(hash >> shift))
        shift -= 4;
    for (; shift >= 0; shift -= 4)
        buf[n++] = digits[hash >> shift & 15];
    return (struct ep_span){buf, n};
}
