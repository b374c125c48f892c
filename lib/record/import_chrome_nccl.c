/* SPDX-License-Identifier: Apache-2.0 */
/* import_chrome_nccl.c - see import_chrome_nccl.h. */
#include "config.h"

#include "record/import_chrome_nccl.h"

#include <stddef.h>
#include <string.h>

/* Longest name that is looked at, in letters. */
#define LETTERS 64

struct word {
    const char *letters, *op;
};

/* A name that has several of these is of the first. */
static const struct word words[] = {
    {"reducescatter", "reduce_scatter"},
    {"allreduce", "all_reduce"},
    {"allgather", "all_gather"},
    {"alltoall", "all_to_all"},
    {"broadcast", "broadcast"},
    {"reduce", "reduce"},
    {"gather", "gather"},
    {"scatter", "scatter"},
    {"barrier", "barrier"},
};

/* These would be found in many names: the whole of it has to be one. */
static const struct word p2p_words[] = {
    {"send", "send"},  {"isend", "send"},         {"recv", "recv"},
    {"irecv", "recv"}, {"recvanysource", "recv"},
};

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* The letters of a name up to its '(', in lower case. */
static void letters(struct ep_span name, char out[LETTERS + 1])
{
    size_t n = 0;

    for (size_t i = 0; i < name.len && name.ptr[i] != '(' && n < LETTERS; i++) {
        char c = name.ptr[i];

        if (c >= 'A' && c <= 'Z')
            c = (char)(c | 0x20);
        if (c >= 'a' && c <= 'z')
            out[n++] = c;
    }
    out[n] = '\0';
}

static const char *find(const char *name)
{
    for (size_t i = 0; i < COUNT(words); i++)
        if (strstr(name, words[i].letters))
            return words[i].op;
    return NULL;
}

static const char *find_p2p(const char *name)
{
    for (size_t i = 0; i < COUNT(p2p_words); i++)
        if (strcmp(name, p2p_words[i].letters) == 0)
            return p2p_words[i].op;
    return NULL;
}

struct ep_span ep_chrome_nccl_op(struct ep_span collective,
                                 struct ep_span kernel, bool *p2p)
{
    char name[LETTERS + 1];
    const char *op;

    letters(collective, name);
    op = find_p2p(name);
    *p2p = op != NULL;
    if (!op)
        op = find(name);
    if (!op) {
        letters(kernel, name);
        op = find(name);
        if (!op && strstr(name, "sendrecv")) {
            op = "send_recv";
            *p2p = true;
        }
    }
    if (op)
        return (struct ep_span){op, strlen(op)};
    return collective.ptr ? collective : (struct ep_span){"", 0};
}

int64_t ep_chrome_nccl_dtype_bytes(struct ep_span dtype)
{
    static const struct {
        const char *name;
        int bytes;
    } types[] = {
        {"Float", 4},
        {"BFloat16", 2},
        {"Half", 2},
        {"Double", 8},
        {"Int", 4},
        {"Long", 8},
        {"Byte", 1},
        {"Char", 1},
        {"Bool", 1},
        {"Short", 2},
        {"UInt16", 2},
        {"UInt32", 4},
        {"UInt64", 8},
        {"ComplexHalf", 4},
        {"ComplexFloat", 8},
        {"ComplexDouble", 16},
        {"Float8_e4m3fn", 1},
        {"Float8_e5m2", 1},
        {"Float8_e4m3fnuz", 1},
        {"Float8_e5m2fnuz", 1},
        {"Float8_e8m0fnu", 1},
    };

    for (size_t i = 0; i < COUNT(types); i++)
        if (ep_span_eq(dtype, types[i].name))
            return types[i].bytes;
    return 0;
}

int64_t ep_chrome_nccl_place(const char *list, int64_t rank)
{
    int64_t place = 0;

    if (rank < 0 || *list != '[')
        return -1;
    for (const char *p = list + 1; *p >= '0' && *p <= '9'; place++) {
        int64_t x = 0;

        for (; *p >= '0' && *p <= '9'; p++)
            x = x < INT64_MAX / 100 ? x * 10 + (*p - '0') : x;
        if (x == rank)
            return place;
        p += *p == ',';
        while (*p == ' ')
            p++;
    }
    return -1;
}
