/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mksafetensors - make a small safetensors file, for tests. It shares no code
 * with the writer: the header is put together here.
 *
 *     mksafetensors OUT [KEY=VALUE | NAME:DTYPE:SHAPE:FILL] ...
 *
 *     KEY=VALUE  metadata
 *     SHAPE      2x3, or nothing for a scalar
 *     FILL       1,2.5,nan,... (the last one is repeated)
 *                @random:SEED   uniform in [-1, 1)
 *                @sparse        zeros that take no room on the disk
 *
 *     mksafetensors --print FILE NAME    values of a tensor, one per line
 *
 * Tensors stand in the order given. Types: F64 F32 BF16 F16 (values must be
 * exact in the last two, or they are cut), I64 I32 U8 F8_E4M3 F8_E5M2 (raw
 * bytes as numbers).
 */
#include "config.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void die(const char *what)
{
    (void)fprintf(stderr, "mksafetensors: %s\n", what);
    exit(2);
}

struct type {
    const char *name;
    size_t size;
};

static const struct type types[] = {
    {"F64", 8}, {"F32", 4}, {"BF16", 2}, {"F16", 2},     {"I64", 8},
    {"I32", 4}, {"U8", 1},  {"I8", 1},   {"F8_E4M3", 1}, {"F8_E5M2", 1},
};

static const struct type *find_type(const char *name, size_t len)
{
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (strlen(types[i].name) == len &&
            memcmp(types[i].name, name, len) == 0)
            return &types[i];
    die("unknown type");
    return NULL;
}

static bool is(const struct type *t, const char *name)
{
    return strcmp(t->name, name) == 0;
}

/* ==== Values ==== */

/* Truncating, by way of the exponent: independent of the library's way. */
static uint16_t to_half(double v)
{
    uint16_t sign = signbit(v) ? 0x8000 : 0;
    int e;
    double f = frexp(fabs(v), &e);

    if (isnan(v))
        return sign | 0x7e00;
    if (isinf(v))
        return sign | 0x7c00;
    if (v == 0)
        return sign;
    if (e < -13)
        return (uint16_t)(sign | (unsigned)ldexp(fabs(v), 24));
    return (uint16_t)(sign | (unsigned)(e + 14) << 10 |
                      ((unsigned)(f * 2048) & 0x3ff));
}

static void put(const struct type *t, double v, unsigned char *out)
{
    float f = (float)v;
    uint32_t bits;
    uint16_t half;
    int64_t whole = isfinite(v) && !strchr("FB", t->name[0]) ? (int64_t)v : 0;
    unsigned char byte = (unsigned char)(t->size == 1 ? (int)v : 0);

    if (is(t, "F64")) {
        memcpy(out, &v, sizeof v);
    } else if (is(t, "F32")) {
        memcpy(out, &f, sizeof f);
    } else if (is(t, "BF16")) {
        memcpy(&bits, &f, sizeof bits);
        half = (uint16_t)(bits >> 16);
        memcpy(out, &half, sizeof half);
    } else if (is(t, "F16")) {
        half = to_half(v);
        memcpy(out, &half, sizeof half);
    } else if (t->size == 1) {
        out[0] = byte;
    } else {
        memcpy(out, &whole, t->size);
    }
}

static double get(const struct type *t, const unsigned char *in)
{
    double v = 0;
    float f = 0;
    uint32_t bits = 0;
    uint16_t half = 0;
    int64_t whole = 0;

    if (is(t, "F64")) {
        memcpy(&v, in, sizeof v);
    } else if (is(t, "F32") || is(t, "BF16")) {
        memcpy((char *)&bits + (4 - t->size), in, t->size);
        memcpy(&f, &bits, sizeof f);
        v = (double)f;
    } else if (is(t, "F16")) {
        memcpy(&half, in, sizeof half);
        v = (half & 0x7c00)
                ? ldexp((half & 0x3ff) + 1024, (half >> 10 & 31) - 25)
                : ldexp(half & 0x3ff, -24);
        if ((half & 0x7c00) == 0x7c00)
            v = half & 0x3ff ? (double)NAN : (double)INFINITY;
        v = half & 0x8000 ? -v : v;
    } else {
        memcpy(&whole, in, t->size);
        v = (double)whole;
    }
    return v;
}

/* ==== Making ==== */

struct spec {
    const char *name, *shape, *fill;
    size_t name_len;
    const struct type *type;
    uint64_t count;
};

static struct spec parse(const char *text)
{
    struct spec s = {.name = text, .name_len = strcspn(text, ":"), .count = 1};
    const char *at = text + s.name_len;
    char *end;
    size_t len;

    if (*at++ != ':')
        die("a tensor is NAME:DTYPE:SHAPE:FILL");
    len = strcspn(at, ":");
    s.type = find_type(at, len);
    at += len;
    if (*at++ != ':')
        die("a tensor is NAME:DTYPE:SHAPE:FILL");
    s.shape = at;
    while (*at != ':') {
        s.count *= strtoull(at, &end, 10);
        if (end == at || (*end != 'x' && *end != ':'))
            die("a shape is 2x3");
        at = end + (*end == 'x');
    }
    s.fill = at + 1;
    return s;
}

static uint64_t next(uint64_t *x)
{
    *x += UINT64_C(0x9e3779b97f4a7c15);
    uint64_t z = *x;
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static void fill(FILE *f, const struct spec *s)
{
    const char *at = s->fill;
    bool random = strncmp(at, "@random:", 8) == 0;
    uint64_t seed = random ? strtoull(at + 8, NULL, 10) : 0;
    unsigned char raw[8] = {0};

    if (strcmp(at, "@sparse") == 0) {
        (void)fseeko(f, (off_t)(s->count * s->type->size), SEEK_CUR);
        return;
    }
    for (uint64_t i = 0; i < s->count; i++) {
        if (random) {
            put(s->type, ldexp((double)(next(&seed) >> 11), -52) - 1, raw);
        } else if (*at) {
            char *end;

            put(s->type, strtod(at, &end), raw);
            at = end + (*end == ',');
        }
        if (fwrite(raw, 1, s->type->size, f) != s->type->size)
            die("cannot write");
    }
}

static char *text; /* the header */
static size_t text_len;

static void add(const char *s, size_t n)
{
    text = realloc(text, text_len + n + 1);
    if (!text)
        die("no memory");
    memcpy(text + text_len, s, n);
    text_len += n;
    text[text_len] = '\0';
}

static void adds(const char *s)
{
    add(s, strlen(s));
}

static void add_quoted(const char *s, size_t n)
{
    adds("\"");
    for (size_t i = 0; i < n; i++) {
        char escaped[8];

        (void)snprintf(escaped, sizeof escaped, "\\u%04x",
                       (unsigned)(unsigned char)s[i]);
        if (s[i] == '"' || s[i] == '\\' || (s[i] >= 0 && s[i] < ' '))
            adds(escaped);
        else
            add(s + i, 1);
    }
    adds("\"");
}

static uint64_t add_tensor(const struct spec *s, uint64_t begin)
{
    uint64_t end = begin + s->count * s->type->size;
    char number[64];

    add_quoted(s->name, s->name_len);
    adds(":{\"dtype\":\"");
    adds(s->type->name);
    adds("\",\"shape\":[");
    for (const char *at = s->shape; *at != ':'; at++)
        add(*at == 'x' ? "," : at, 1);
    (void)snprintf(number, sizeof number, "],\"data_offsets\":[%llu,%llu]}",
                   (unsigned long long)begin, (unsigned long long)end);
    adds(number);
    return end;
}

static void make(const char *path, char **arg, int n)
{
    struct spec *spec = calloc((size_t)n + 1, sizeof *spec);
    FILE *f = fopen(path, "wb");
    size_t tensors = 0;
    uint64_t end = 0, len;
    int meta = 0;

    if (!f || !spec)
        die("cannot create the file");
    adds("{");
    for (int i = 0; i < n; i++) {
        size_t key = strcspn(arg[i], "=:");

        if (arg[i][key] != '=') {
            spec[tensors++] = parse(arg[i]);
            continue;
        }
        adds(meta++ ? "," : "\"__metadata__\":{");
        add_quoted(arg[i], key);
        adds(":");
        add_quoted(arg[i] + key + 1, strlen(arg[i] + key + 1));
    }
    adds(meta ? "}" : "");
    for (size_t i = 0; i < tensors; i++) {
        adds(meta || i ? "," : "");
        end = add_tensor(&spec[i], end);
    }
    adds("}");
    len = text_len;
    if (fwrite(&len, 8, 1, f) != 1 || fwrite(text, 1, text_len, f) != text_len)
        die("cannot write");
    for (size_t i = 0; i < tensors; i++)
        fill(f, &spec[i]);
    if (fflush(f) != 0 || ftruncate(fileno(f), (off_t)(8 + len + end)) != 0 ||
        fclose(f) != 0)
        die("cannot write");
    free(spec);
    free(text);
}

/* ==== Printing ==== */

static void print_values(FILE *f, const struct type *t, uint64_t count)
{
    unsigned char raw[8];

    for (uint64_t i = 0; i < count; i++) {
        if (fread(raw, 1, t->size, f) != t->size)
            die("the file is too short");
        (void)printf("%.17g\n", get(t, raw));
    }
}

/* Enough of a reader for the headers that make and the writer make. */
static void print(const char *path, const char *name)
{
    FILE *f = fopen(path, "rb");
    uint64_t len = 0, begin, end;
    char *header, *at, *dtype;
    const struct type *t;

    if (!f || fread(&len, 8, 1, f) != 1 || len > 1 << 24)
        die("cannot read the header");
    header = calloc(1, len + 1);
    if (!header || fread(header, 1, len, f) != len)
        die("cannot read the header");
    text_len = 0;
    add_quoted(name, strlen(name));
    adds(":{");
    at = strstr(header, text);
    dtype = at ? strstr(at, "\"dtype\":\"") : NULL;
    at = at ? strstr(at, "\"data_offsets\":[") : NULL;
    if (!at || !dtype)
        die("no such tensor");
    dtype += strlen("\"dtype\":\"");
    t = find_type(dtype, strcspn(dtype, "\""));
    begin = strtoull(at + strlen("\"data_offsets\":["), &at, 10);
    end = strtoull(at + 1, NULL, 10);
    if (fseeko(f, (off_t)(8 + len + begin), SEEK_SET) != 0)
        die("cannot seek");
    print_values(f, t, (end - begin) / t->size);
    free(header);
    free(text);
    (void)fclose(f);
}

int main(int argc, char **argv)
{
    if (argc == 4 && strcmp(argv[1], "--print") == 0) {
        print(argv[2], argv[3]);
        return fflush(stdout) == 0 ? 0 : 2;
    }
    if (argc < 2)
        die("usage: mksafetensors OUT [KEY=VALUE | NAME:DTYPE:SHAPE:FILL] ...");
    make(argv[1], argv + 2, argc - 2);
    return 0;
}
