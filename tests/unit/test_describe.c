/* SPDX-License-Identifier: Apache-2.0 */
/* test_describe.c - what is said of a checkpoint, and tables of text. */
#include "config.h"

#include "base/table.h"
#include "ckpt/describe.h"

#include "ckpt_make.h"

#include <fcntl.h>
#include <stdint.h>

static int says(const char *path, enum ep_ckpt_format format, const char *want)
{
    struct ep_error err = {0};
    struct ep_ckpt *c = ep_ckpt_open(path, &err);
    struct ep_buf out;
    int same;

    if (!c) {
        printf("# %s\n", err.msg);
        return 0;
    }
    ep_buf_init(&out);
    ep_ckpt_describe(c, format, &out);
    same = strcmp(out.ptr, want) == 0;
    if (!same)
        printf("# got:\n%s# want:\n%s", out.ptr, want);
    ep_buf_free(&out);
    ep_ckpt_close(c);
    return same;
}

static const uint64_t big[] = {512, 1024}, none[] = {0, 3}, two[] = {2};
static const char data[2 * 512 * 1024];
static struct ep_tensor tensors[] = {
    {.name = SPAN("embed.weight"),
     .dtype = EP_DT_BF16,
     .rank = 2,
     .shape = big,
     .data = data},
    {.name = SPAN("\xc3\xa9\x1b[31m"),
     .dtype = EP_DT_F32,
     .rank = 2,
     .shape = none,
     .data = data},
    {.name = SPAN("step"), .dtype = EP_DT_I64, .data = data},
    {.name = SPAN("tab\t"),
     .dtype = EP_DT_F32,
     .rank = 1,
     .shape = two,
     .data = data},
};

static void test_describe(void)
{
    struct ep_st_meta meta[] = {
        {SPAN("format"), SPAN("pt")},
        {SPAN("long"), SPAN("0123456789012345678901234567890123456789"
                            "01234567890123456789012345678901234567890")},
        {SPAN("odd\r"), SPAN("line\nfeed")},
    };
    struct stat st;
    char want[1500];

    make_ckpt("m", tensors, 4, meta, 3, 0);
    ok(says("m", EP_CKPT_TEXT,
            "m: 4 tensors, 524 k parameters, 1 MiB\n"
            "  BF16   1 tensor  524 k  1 MiB\n"
            "  F32   2 tensors      2    8 B\n"
            "  I64    1 tensor      1    8 B\n"
            "\n"
            "metadata\n"
            "  format   pt\n"
            "  long     0123456789012345678901234567890123456789"
            "01234567890123456789012345678...\n"
            "  odd\\x0d  line\\x0afeed\n"
            "\n"
            "name          type  shape     parameters   size\n"
            "embed.weight  BF16  512x1024       524 k  1 MiB\n"
            "step          I64   scalar             1    8 B\n"
            "tab\\x09       F32   2                  2    8 B\n"
            "\xc3\xa9\\x1b[31m     F32   0x3                0    0 B\n"));
    ok(stat("m", &st) == 0);
    (void)snprintf(
        want, sizeof want,
        "{\"type\":\"checkpoint\",\"path\":\"m\",\"tensors\":4,"
        "\"elements\":524291,\"bytes\":1048592,\"files\":1,"
        "\"file_bytes\":%lld,\"dtypes\":{"
        "\"BF16\":{\"tensors\":1,\"elements\":524288,\"bytes\":1048576},"
        "\"F32\":{\"tensors\":2,\"elements\":2,\"bytes\":8},"
        "\"I64\":{\"tensors\":1,\"elements\":1,\"bytes\":8}},"
        "\"metadata\":{\"format\":\"pt\",\"long\":\"%s\","
        "\"odd\\r\":\"line\\nfeed\"}}\n"
        "{\"type\":\"tensor\",\"name\":\"embed.weight\",\"dtype\":\"BF16\","
        "\"shape\":[512,1024],\"elements\":524288,\"bytes\":1048576,"
        "\"file\":\"m\"}\n"
        "{\"type\":\"tensor\",\"name\":\"step\",\"dtype\":\"I64\","
        "\"shape\":[],\"elements\":1,\"bytes\":8,\"file\":\"m\"}\n"
        "{\"type\":\"tensor\",\"name\":\"tab\\t\",\"dtype\":\"F32\","
        "\"shape\":[2],\"elements\":2,\"bytes\":8,\"file\":\"m\"}\n"
        "{\"type\":\"tensor\",\"name\":\"\xc3\xa9\\u001b[31m\",\"dtype\":"
        "\"F32\",\"shape\":[0,3],\"elements\":0,\"bytes\":0,\"file\":\"m\"}\n",
        (long long)st.st_size, meta[1].value.ptr);
    ok(says("m", EP_CKPT_JSONL, want));
    ok(says("m", EP_CKPT_TSV,
            "name\tdtype\tshape\telements\tbytes\tfile\n"
            "embed.weight\tBF16\t512x1024\t524288\t1048576\tm\n"
            "step\tI64\tscalar\t1\t8\tm\n"
            "tab\\t\tF32\t2\t2\t8\tm\n"
            "\xc3\xa9\\x1b[31m\tF32\t0x3\t0\t0\tm\n"));
}

static int name_is(struct ep_span name, const char *want)
{
    struct ep_buf b;
    int same;

    ep_buf_init(&b);
    ep_tensor_add_name(name, &b);
    same = strcmp(b.ptr, want) == 0;
    if (!same)
        printf("# %s\n", b.ptr);
    ep_buf_free(&b);
    return same;
}

#define TEN "0123456789"
#define AE "\xc3\xa4"
#define AE5 AE AE AE AE AE

/* Long names lose their middle, whole characters and escapes of it. */
static void test_names(void)
{
    struct ep_buf b;

    ok(name_is(SPAN(""), "\"\""));
    ok(name_is(SPAN(TEN TEN TEN TEN TEN TEN), TEN TEN TEN TEN TEN TEN));
    ok(name_is(SPAN(TEN TEN TEN TEN TEN TEN "x"),
               TEN TEN "01234567...3456789" TEN TEN "x"));
    ok(name_is(SPAN(AE5 AE5 AE5 AE5 AE5 AE5 AE5 AE5 AE5 AE5 AE5 AE5),
               AE5 AE5 AE5 AE5 AE5 AE5 AE5 AE5 AE5 AE5 AE5 AE5));
    ok(name_is(SPAN(AE5 AE5 AE5 AE5 AE5 AE5 AE5 AE5 AE5 AE5 AE5 AE5 AE),
               AE5 AE5 AE5 AE5 AE5 AE AE AE
               "..." AE5 AE5 AE5 AE5 AE5 AE AE AE));
    ok(name_is(SPAN(TEN TEN "012345\n" TEN TEN "\n5678" TEN TEN "x"),
               TEN TEN "012345...5678" TEN TEN "x"));
    ep_buf_init(&b);
    ep_ckpt_add_tsv(SPAN("a\tb\nc\\d\x01\r\xc3\xa4\xff"), &b);
    ok(strcmp(b.ptr, "a\\tb\\nc\\\\d\\x01\\x0d\xc3\xa4\\xff") == 0);
    ep_buf_reset(&b);
    ep_ckpt_add_tsv(SPAN(""), &b);
    ok(b.len == 0);
    ep_buf_free(&b);
}

/* Which files a checkpoint is, and whether they are as they were. */
static void test_files(void)
{
    static const char first[] = "s/model-00001-of-00002.safetensors";
    static const char second[] = "s/model-00002-of-00002.safetensors";
    const struct timespec times[2] = {{1, 0}, {1, 0}};
    struct ep_ckpt *c;

    make_ckpt("s", tensors, 4, NULL, 0, 16);
    c = ep_ckpt_open("s", NULL);
    if (!ok(c != NULL))
        return;
    ok(ep_ckpt_has_file(c, first) && ep_ckpt_has_file(c, second));
    ok(ep_ckpt_has_file(c, "s/../s/model.safetensors.index.json"));
    ok(!ep_ckpt_has_file(c, "s") && !ep_ckpt_has_file(c, "s/c"));
    ok(ep_ckpt_changed(c) == NULL);
    ok(utimensat(AT_FDCWD, second, times, 0) == 0);
    ok(ep_ckpt_changed(c) && strcmp(ep_ckpt_changed(c), second) == 0);
    ep_ckpt_close(c);
}

static void test_one(void)
{
    struct ep_tensor t = {.name = SPAN("x"), .dtype = EP_DT_U8, .data = data};

    make_ckpt("one", &t, 1, NULL, 0, 0);
    ok(says("one", EP_CKPT_TEXT,
            "one: 1 tensor, 1 parameter, 1 B\n"
            "  U8  1 tensor  1  1 B\n"
            "\n"
            "name  type  shape   parameters  size\n"
            "x     U8    scalar           1   1 B\n"));
}

static void test_shards(void)
{
    make_ckpt("shards", tensors, 4, NULL, 0, 16);
    ok(says("shards", EP_CKPT_TEXT,
            "shards: 4 tensors, 524 k parameters, 1 MiB in 2 files\n"
            "  BF16   1 tensor  524 k  1 MiB\n"
            "  F32   2 tensors      2    8 B\n"
            "  I64    1 tensor      1    8 B\n"
            "\n"
            "name          type  shape     parameters   size  file\n"
            "embed.weight  BF16  512x1024       524 k  1 MiB  "
            "model-00001-of-00002.safetensors\n"
            "step          I64   scalar             1    8 B  "
            "model-00002-of-00002.safetensors\n"
            "tab\\x09       F32   2                  2    8 B  "
            "model-00002-of-00002.safetensors\n"
            "\xc3\xa9\\x1b[31m     F32   0x3                0    0 B  "
            "model-00002-of-00002.safetensors\n"));
    make_ckpt("none", NULL, 0, NULL, 0, 0);
    ok(says("none", EP_CKPT_TEXT, "none: 0 tensors, 0 parameters, 0 B\n"));
    ok(says("none", EP_CKPT_JSONL,
            "{\"type\":\"checkpoint\",\"path\":\"none\",\"tensors\":0,"
            "\"elements\":0,\"bytes\":0,\"files\":1,\"file_bytes\":16,"
            "\"dtypes\":{},\"metadata\":{}}\n"));
    ok(says("none", EP_CKPT_TSV,
            "name\tdtype\tshape\telements\tbytes\tfile\n"));
}

/* Wider than a column gets. */
#define LONG                                                                   \
    "012345678901234567890123456789012345678901234567890123456789012345"

static void test_table(void)
{
    static const char *const cells[] = {
        "a",    "1",  "x",  "\xc3\xa9\xc3\xa9\xc3\xa9",
        "1000", "",   "bb", "",
        "",     LONG, "77", "y",
        "last",
    };
    struct ep_table t;
    struct ep_buf out;

    ep_buf_init(&out);
    ep_table_init(&t, 3, 1 << 1);
    ep_table_print(&t, "> ", &out);
    ok(out.len == 0);
    for (size_t i = 0; i < sizeof cells / sizeof *cells; i++)
        ep_buf_adds(ep_table_cell(&t), cells[i]);
    ep_table_print(&t, "> ", &out);
    ok(strcmp(out.ptr,
              "> a        1  x\n"
              "> \xc3\xa9\xc3\xa9\xc3\xa9   1000\n"
              "> bb\n"
              "> " LONG "    77  y\n"
              "> last\n") == 0);
    ep_table_free(&t);
    ep_buf_free(&out);
}

int main(void)
{
    enter_folder();
    test_describe();
    test_names();
    test_files();
    test_one();
    test_shards();
    test_table();
    leave_folder();
    return tap_done();
}
