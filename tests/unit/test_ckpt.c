/* SPDX-License-Identifier: Apache-2.0 */
/* test_ckpt.c - checkpoints: one file, shards, folders, and what is refused. */
#include "config.h"

#include "base/mem.h"
#include "ckpt/ckpt.h"
#include "ckpt/ckpt_index.h"
#include "ckpt/st_impl.h"
#include "tap.h"

#include <errno.h>
#include <ftw.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The tests run in an empty folder of their own, which is removed. */
static char folder[] = "/tmp/evenpace-ckpt-XXXXXX";

static void put(const char *path, const void *data, size_t n)
{
    FILE *f = fopen(path, "wb");

    if (!f || fwrite(data, 1, n, f) != n || fclose(f) != 0)
        exit(99);
}

static void puts_file(const char *path, const char *text)
{
    put(path, text, strlen(text));
}

/* A safetensors file of that header and n bytes of data 0, 1, 2, ... */
static void put_st(const char *path, const char *header, size_t n)
{
    size_t len = strlen(header);
    unsigned char *b = ep_calloc(8 + len + n, 1);

    for (int i = 0; i < 8; i++)
        b[i] = (unsigned char)((uint64_t)len >> 8 * i);
    for (size_t i = 0; i < len; i++)
        b[8 + i] = (unsigned char)header[i];
    for (size_t i = 0; i < n; i++)
        b[8 + len + i] = (unsigned char)i;
    put(path, b, 8 + len + n);
    free(b);
}

static void make_folder(const char *path)
{
    if (mkdir(path, 0700) != 0)
        exit(99);
}

#define T(name, from, to)                                                      \
    "\"" name "\":{\"dtype\":\"U8\",\"shape\":[" #to                           \
    "],\"data_offsets\":[" #from "," #to "]}"

/* The bytes of a name of the checkpoint. */
static const struct ep_tensor *find(const struct ep_ckpt *c, const char *name)
{
    return ep_ckpt_find(c, (struct ep_span){name, strlen(name)});
}

static bool names_are(const struct ep_ckpt *c, const char *const *name,
                      size_t n)
{
    bool same = ep_ckpt_count(c) == n;

    for (size_t i = 0; same && i < n; i++)
        same = ep_span_eq(ep_ckpt_tensor(c, i)->name, name[i]) &&
               find(c, name[i]) == ep_ckpt_tensor(c, i);
    return same;
}

/* ==== What is read ==== */

static void check_one(void)
{
    static const char *const names[] = {"a", "a.b", "b"};
    static const char header[] = "{\"__metadata__\":{\"k\":\"v\"}," T(
        "b", 0, 2) ",\"a.b\":{\"dtype\":\"U8\",\"shape\":[],"
                   "\"data_offsets\":[2,3]},\"a\":{\"dtype\":\"F16\","
                   "\"shape\":[1],\"data_offsets\":[3,5]}}";
    struct ep_error err;
    const struct ep_tensor *t;
    struct ep_ckpt *c;

    put_st("one.safetensors", header, 5);
    c = ep_ckpt_open("one.safetensors", &err);
    if (!ok(c != NULL))
        return;
    ok(names_are(c, names, 3));
    ok(find(c, "") == NULL && find(c, "a.") == NULL && find(c, "c") == NULL);
    ok(strcmp(ep_ckpt_path(c), "one.safetensors") == 0);
    ok(strcmp(ep_ckpt_file(c, 2), "one.safetensors") == 0);
    ok(ep_ckpt_files(c) == 1 && ep_ckpt_bytes(c) == 8 + strlen(header) + 5);
    ok(ep_ckpt_meta_count(c) == 1 && ep_span_eq(ep_ckpt_meta(c, 0).key, "k"));
    ok(ep_span_eq(ep_ckpt_meta_find(c, "k"), "v"));
    ok(ep_ckpt_meta_find(c, "l").ptr == NULL);
    t = find(c, "a");
    ok(t->bytes == 2 && memcmp(t->data, "\3\4", 2) == 0);
    errno = 0;
    ep_ckpt_will_need(t, 0, 1);
    ep_ckpt_will_need(t, 1, UINT64_MAX);
    ep_ckpt_will_need(t, 2, 1);
    ok(errno == 0);
    ep_ckpt_close(c);
    ep_ckpt_close(NULL);
}

/* A file without tensors; a header whose length begins as a pickle does. */
static void check_odd_files(void)
{
    static const unsigned char zip[] = "PK\3\4\0\0\0\0 ";
    char header[0x280 + 1];
    struct ep_ckpt *c;

    put_st("none.safetensors", "{}", 0);
    c = ep_ckpt_open("none.safetensors", NULL);
    ok(c && ep_ckpt_count(c) == 0 && ep_ckpt_files(c) == 1);
    ok(c && find(c, "a") == NULL && ep_ckpt_meta_count(c) == 0);
    ep_ckpt_close(c);
    memset(header, ' ', sizeof header);
    memcpy(header, "{}", 2);
    header[0x280] = '\0';
    put_st("pickle-like.pt", header, 0); /* 80 02 00 ... */
    c = ep_ckpt_open("pickle-like.pt", NULL);
    ok(c != NULL);
    ep_ckpt_close(c);
    /* and one that begins as a zip archive does would be 67 MB long */
    ok(ep_st_plausible(zip, 9, 67324752 + 8));
    ok(!ep_st_plausible(zip, 9, 67324752 + 7));
    ok(!ep_st_plausible(zip, 8, 67324752 + 8));
    ok(!ep_st_plausible("PK\3\4\0\0\0\0\10", 9, 67324752 + 8));
    ok(!ep_st_plausible(NULL, 0, 0));
}

#define INDEX(map)                                                             \
    "{\"metadata\":{\"total_size\":5},\"weight_map\":{" map "},\"x\":[1]}"

static void check_shards(void)
{
    static const char *const names[] = {"a", "b", "c\n"};
    static const char first[] =
        "{\"__metadata__\":{\"k\":\"1\",\"format\":\"pt\"}," T("b", 0, 2) "}";
    static const char second[] =
        "{\"__metadata__\":{\"l\":\"\",\"k\":\"2\"}," T(
            "a", 0, 1) ",\"c\\n\":{\"dtype\":\"U8\",\"shape\":[2],"
                       "\"data_offsets\":[1,3]}}";
    static const char *const paths[] = {
        "shards", "shards/", "shards/model.safetensors.index.json",
        "../shards/model.safetensors.index.json"};
    struct ep_error err;
    char want[80];

    make_folder("shards");
    put_st("shards/1.st", first, 2);
    put_st("shards/2.st", second, 3);
    puts_file("shards/model.safetensors.index.json",
              INDEX("\"c\\u000a\":\"2.st\",\"b\":\"1.\\u0073t\","
                    "\"a\":\"2.st\""));
    /* the usual name of a single file counts less than the index */
    put_st("shards/model.safetensors", "{}", 0);
    for (size_t i = 0; i < 4; i++) {
        struct ep_ckpt *c;

        if (i == 3 && chdir("shards") != 0)
            exit(99);
        c = ep_ckpt_open(paths[i], &err);
        if (ok(c != NULL)) {
            ok(names_are(c, names, 3));
            ok(ep_ckpt_files(c) == 2);
            ok(ep_ckpt_bytes(c) == 16 + strlen(first) + strlen(second) + 5);
            (void)snprintf(want, sizeof want, "%sshards/2.st",
                           i == 3 ? "../" : "");
            ok(strcmp(ep_ckpt_file(c, 0), want) == 0);
            ok(strstr(ep_ckpt_file(c, 1), "1.st") != NULL);
            ok(memcmp(ep_ckpt_tensor(c, 2)->data, "\1\2", 2) == 0);
            ok(ep_ckpt_meta_count(c) == 3);
            ok(ep_span_eq(ep_ckpt_meta(c, 0).key, "k"));
            ok(ep_span_eq(ep_ckpt_meta(c, 2).key, "l"));
            ok(ep_span_eq(ep_ckpt_meta_find(c, "k"), "1"));
            ep_ckpt_close(c);
        }
    }
    /* without a folder in the path */
    {
        struct ep_ckpt *c = ep_ckpt_open("model.safetensors.index.json", &err);

        ok(c && strcmp(ep_ckpt_file(c, 0), "2.st") == 0);
        ep_ckpt_close(c);
    }
    if (chdir("..") != 0)
        exit(99);
}

static void check_folders(void)
{
    struct ep_error err;
    struct ep_ckpt *c;

    make_folder("f");
    ok(ep_ckpt_open("f", &err) == NULL && err.code == EP_EFORMAT);
    ok(strcmp(err.msg, "cannot read f: no safetensors file in this folder") ==
       0);
    put_st("f/b.safetensors", "{" T("b", 0, 1) "}", 1);
    c = ep_ckpt_open("f", &err);
    ok(c && strcmp(ep_ckpt_file(c, 0), "f/b.safetensors") == 0);
    ok(c && strcmp(ep_ckpt_path(c), "f") == 0);
    ep_ckpt_close(c);
    put_st("f/a.safetensors", "{}", 0);
    ok(ep_ckpt_open("f/", &err) == NULL && err.code == EP_EFORMAT);
    ok(strcmp(err.msg,
              "cannot read f/: 2 safetensors files in this folder, "
              "and no index") == 0);
    put_st("f/model.safetensors", "{" T("m", 0, 1) "}", 1);
    c = ep_ckpt_open("f//", &err);
    ok(c && strcmp(ep_ckpt_file(c, 0), "f/model.safetensors") == 0);
    ep_ckpt_close(c);
}

/* ==== What is refused ==== */

/* Does opening path fail with code and "cannot VERB FILE: reason"? */
static void refuses(const char *path, int code, const char *msg)
{
    struct ep_error err = {.code = 0};
    struct ep_ckpt *c = ep_ckpt_open(path, &err);

    if (!ok(!c && err.code == code && strcmp(err.msg, msg) == 0))
        printf("# %s: %d %s\n# want %s\n", path, err.code, err.msg, msg);
    ep_ckpt_close(c);
    ok(ep_ckpt_open(path, NULL) == NULL);
}

static void check_bad_files(void)
{
    refuses("gone", EP_ESYS, "cannot open gone: No such file or directory");
    refuses("", EP_EUSAGE, "cannot open \"\": the name is empty");
    refuses("/dev/null", EP_EFORMAT,
            "cannot open /dev/null: not a regular file");
    puts_file("short", "1234567");
    refuses("short", EP_ETRUNC,
            "cannot read short: too short for safetensors (7 of 8 bytes)");
    puts_file("empty", "");
    refuses("empty", EP_ETRUNC,
            "cannot read empty: too short for safetensors (0 of 8 bytes)");
    put_st("cut\n", "{" T("a", 0, 4) "}", 3);
    refuses("cut\n", EP_ETRUNC,
            "cannot read cut\\x0a: tensor \"a\": ends at byte 4 of the data, "
            "the file at byte 3");
    puts_file("text", "any text that is long");
    refuses("text", EP_ELIMIT,
            "cannot read text: header length 8392569455040360033, more than "
            "the 100000000 of safetensors: another format?");
    put_st("range", "{\"a\":{\"shape\":[18446744073709551616]}}", 0);
    refuses("range", EP_ERANGE,
            "cannot read range: tensor \"a\": header byte 35: shape: a number "
            "beyond 64 bits");
    put_st("bad", "{\"a\":}", 0);
    refuses("bad", EP_EFORMAT,
            "cannot read bad: header, byte 5: expected a value, found '}'");
}

/* Indexes, as i/x.index.json; i/1 has the tensors a and b, i/2 has c. */
static const struct {
    const char *text;
    int code;
    const char *msg;
} bad_index[] = {
    {"", EP_ETRUNC, "i/x.index.json: byte 0: text ends, expected a value"},
    {"{\"weight_map\":{", EP_ETRUNC,
     "i/x.index.json: byte 15: text ends, expected a key"},
    {"{\"weight_map\":{}} x", EP_EFORMAT,
     "i/x.index.json: byte 18: expected the end of the text, found 'x'"},
    {"[]", EP_EFORMAT, "i/x.index.json: byte 1: not an object"},
    {"{\"metadata\":{}}", EP_EFORMAT,
     "i/x.index.json: no weight_map: not an index"},
    {INDEX(""), EP_EFORMAT, "i/x.index.json: an index without tensors"},
    {"{\"weight_map\":[]}", EP_EFORMAT,
     "i/x.index.json: byte 15: weight_map is not an object"},
    {"{\"weight_map\":{\"a\":\"1\"},\"weight\\u005fmap\":{}}", EP_EFORMAT,
     "i/x.index.json: byte 43: weight_map stands twice"},
    {INDEX("\"a\":1"), EP_EFORMAT,
     "i/x.index.json: byte 48: the file of tensor \"a\" is not a string"},
    {INDEX("\"a\\n\":\"../1\""), EP_EFORMAT,
     "i/x.index.json: byte 55: tensor \"a\\x0a\": \"../1\" is no file "
     "name"},
    {INDEX("\"a\":\"\""), EP_EFORMAT,
     "i/x.index.json: byte 49: tensor \"a\": \"\" is no file name"},
    {INDEX("\"a\":\".\""), EP_EFORMAT,
     "i/x.index.json: byte 50: tensor \"a\": \".\" is no file name"},
    {INDEX("\"a\":\"..\""), EP_EFORMAT,
     "i/x.index.json: byte 51: tensor \"a\": \"..\" is no file name"},
    {INDEX("\"a\":\"1\\u0000\""), EP_EFORMAT,
     "i/x.index.json: byte 56: tensor \"a\": \"1\\x00\" is no file name"},
    {INDEX("\"a\":\"1\",\"b\":\"1\",\"\\u0061\":\"2\""), EP_EFORMAT,
     "i/x.index.json: tensor \"a\" stands twice in weight_map"},
    /* against the files */
    {INDEX("\"a\":\"1\",\"b\":\"1\",\"c\":\"3\""), EP_EMISSING,
     "i/3: the index names it, and it is not there"},
    {INDEX("\"a\":\"1\",\"b\":\"1\",\"c\":\"2\",\"d\":\"2\""), EP_EFORMAT,
     "i/2: tensor \"d\": the index says that it is here, and it is not"},
    {INDEX("\"a\":\"1\",\"0\":\"2\",\"b\":\"1\",\"c\":\"2\""), EP_EFORMAT,
     "i/2: tensor \"0\": the index says that it is here, and it is not"},
    {INDEX("\"a\":\"1\",\"c\":\"2\""), EP_EFORMAT,
     "i/1: tensor \"b\": not in the index"},
    {INDEX("\"a\":\"1\",\"b\":\"2\",\"c\":\"2\""), EP_EFORMAT,
     "i/1: tensor \"b\": the index says that it is in 2"},
    {INDEX("\"a\":\"1\",\"b\":\"bad\""), EP_EFORMAT,
     "i/bad: header, byte 5: expected a value, found '}'"},
};

static void check_bad_indexes(void)
{
    char msg[200];

    make_folder("i");
    put_st("i/1", "{" T("a", 0, 1) "," "\"b\":{\"dtype\":\"U8\",\"shape\":[],"
                  "\"data_offsets\":[1,2]}}", 2);
    put_st("i/2", "{" T("c", 0, 1) "}", 1);
    put_st("i/bad", "{\"a\":}", 0);
    for (size_t i = 0; i < sizeof bad_index / sizeof *bad_index; i++) {
        puts_file("i/x.index.json", bad_index[i].text);
        (void)snprintf(msg, sizeof msg, "cannot read %s", bad_index[i].msg);
        refuses("i/x.index.json", bad_index[i].code, msg);
    }
    /* a tensor in two files */
    put_st("i/2", "{" T("a", 0, 1) "}", 1);
    puts_file("i/x.index.json", INDEX("\"a\":\"1\",\"b\":\"1\",\"c\":\"2\""));
    refuses("i/x.index.json", EP_EFORMAT,
            "cannot read i/2: tensor \"a\": the index says that it is in 1");
    /* larger than a header may be; and nested too deeply */
    puts_file("i/x.index.json", "{");
    if (truncate("i/x.index.json", 100000001) != 0)
        exit(99);
    refuses("i/x.index.json", EP_ELIMIT,
            "cannot read i/x.index.json: an index of 100000001 bytes, more "
            "than 100000000");
    {
        char deep[128];

        memset(deep, '[', sizeof deep);
        put("i/x.index.json", deep, sizeof deep);
        refuses("i/x.index.json", EP_EFORMAT,
                "cannot read i/x.index.json: byte 1: not an object");
        for (size_t i = 0; i < 5; i++)
            deep[i] = "{\"x\":"[i];
        put("i/x.index.json", deep, sizeof deep);
        refuses("i/x.index.json", EP_ELIMIT,
                "cannot read i/x.index.json: byte 68: nested too deeply");
    }
}

/* ==== Pickles ==== */

#define HINT                                                                   \
    "python3 -c 'import torch as t,safetensors.torch as s;"                    \
    "s.save_file(t.load(\"IN\",\"cpu\",weights_only=True),\"OUT\")'"
#define ZIP "a zip archive (PyTorch's pickle?), never loaded; convert: " HINT
#define PICKLE "a pickle, which is never loaded; convert: " HINT
#define DCP                                                                    \
    "a distributed checkpoint of PyTorch (.metadata is a pickle), never "      \
    "loaded; convert: python3 -m torch.distributed.checkpoint.format_utils "   \
    "dcp_to_torch DIR OUT.pt"

static void check_pickles(void)
{
    static const unsigned char zip[] = "PK\3\4\0\0\10\10\0\0\0\0\0\0";
    unsigned char pickle[] = "\x80\2}q\0(X\1\0\0\0aq\1";

    put("z.safetensors", zip, sizeof zip); /* the name does not count */
    refuses("z.safetensors", EP_EFORMAT, "cannot read z.safetensors: " ZIP);
    for (unsigned char protocol = 2; protocol <= 5; protocol++) {
        pickle[1] = protocol;
        put("p.bin", pickle, sizeof pickle);
        refuses("p.bin", EP_EFORMAT, "cannot read p.bin: " PICKLE);
    }
    put("p.bin", pickle, 2);
    refuses("p.bin", EP_EFORMAT, "cannot read p.bin: " PICKLE);
    pickle[1] = 6;
    put("p.bin", pickle, sizeof pickle);
    refuses("p.bin", EP_ELIMIT,
            "cannot read p.bin: header length 96871374357595776, more than "
            "the 100000000 of safetensors: another format?");
    puts_file("lfs", "version https://git-lfs.github.com/spec/v1\noid ...");
    refuses("lfs", EP_EFORMAT,
            "cannot read lfs: a pointer of Git LFS, not the file itself; fetch "
            "it: git lfs pull");
    /* a folder that has nothing better */
    make_folder("torch");
    puts_file("torch/a.bin", "no pickle");
    refuses("torch", EP_EFORMAT,
            "cannot read torch: no safetensors file in this folder");
    put("torch/b.pt", zip, sizeof zip);
    put("torch/Z.pth", zip, sizeof zip);
    put("torch/c.ckpt", zip, sizeof zip);
    refuses("torch", EP_EFORMAT, "cannot read torch/Z.pth: " ZIP);
    puts_file("torch/.metadata", "");
    refuses("torch", EP_EFORMAT, "cannot read torch: " DCP);
    put_st("torch/one.safetensors", "{}", 0);
    {
        struct ep_ckpt *c = ep_ckpt_open("torch", NULL);

        ok(c != NULL);
        ep_ckpt_close(c);
    }
}

static void check_foreign(void)
{
    static const struct {
        const char *magic;
        const char *says;
    } list[] = {
        {"GGUF\3", "a GGUF file of llama.cpp"},
        {"\x89HDF\r\n\x1a\n", "an HDF5 file"},
        {"\x1f\x8b\x08", "compressed by gzip; unpack it: gunzip"},
        {"<!DOCTYPE html>\n<html>", "a page of HTML, not a model"},
        {"\n  <HTML lang", "a page of HTML, not a model"},
    };

    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        char text[64] = "";
        struct ep_error err = {0};

        memcpy(text, list[i].magic, strlen(list[i].magic));
        put("x.safetensors", text, sizeof text);
        ok(ep_ckpt_open("x.safetensors", &err) == NULL);
        if (!ok(err.code == EP_EFORMAT && strstr(err.msg, list[i].says)))
            printf("# %s\n", err.msg);
    }
    puts_file("x.safetensors", "<htm");
    ok(ep_ckpt_open("x.safetensors", NULL) == NULL);
}

/* One shard of several alone in a folder; only its name tells. */
static void check_lone_shard(void)
{
    static const struct {
        const char *name;
        bool shard;
    } list[] = {
        {"model-00001-of-00002.safetensors", true},
        {"a-of-b-3-of-3.safetensors", true},
        {"model-00001-of-00001.safetensors", false},
        {"model-of-2.safetensors", false},
        {"model-x-of-2.safetensors", false},
        {"1-of-2.safetensors", false},
        {"m-1-of-2x.safetensors", false},
        {"best-of-3.safetensors", false},
    };
    char path[80];

    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        struct ep_error err = {0};
        struct ep_ckpt *c;

        make_folder("lone");
        (void)snprintf(path, sizeof path, "lone/%s", list[i].name);
        put_st(path, "{}", 0);
        c = ep_ckpt_open("lone", &err);
        if (!ok((c == NULL) == list[i].shard))
            printf("# %s\n", list[i].name);
        ok(c || err.code == EP_EMISSING);
        ep_ckpt_close(c);
        c = ep_ckpt_open(path, NULL); /* named itself, it is what it is */
        ok(c != NULL);
        ep_ckpt_close(c);
        ok(unlink(path) == 0 && rmdir("lone") == 0);
    }
    make_folder("lone");
    put_st("lone/model-1-of-2.safetensors", "{}", 0);
    refuses("lone", EP_EMISSING,
            "cannot read lone: model-1-of-2.safetensors is one shard of "
            "several, and their index, model.safetensors.index.json, is "
            "missing");
}

/* unit, many times, and end as the path of a zip archive; its message. */
static void refuses_long(const char *unit, const char *shown, const char *end)
{
    static const unsigned char zip[] = "PK\3\4\0\0\10\10";
    struct ep_error err;
    struct ep_buf path, want;

    ep_buf_init(&path);
    ep_buf_init(&want);
    while (path.len < 240)
        ep_buf_adds(&path, unit);
    ep_buf_addf(&want, "%s%s%s: " ZIP, shown, shown, end);
    if (mkdir(path.ptr, 0700) != 0 && errno != EEXIST)
        exit(99);
    ep_buf_adds(&path, end);
    put(path.ptr, zip, sizeof zip);
    ok(ep_ckpt_open(path.ptr, &err) == NULL);
    if (!ok(strncmp(err.msg, "cannot read ...", 15) == 0 &&
            err.msg[15] == shown[0] && strstr(err.msg, want.ptr) != NULL))
        printf("# %s\n", err.msg);
    ok(strlen(err.msg) > 240);
    ep_buf_free(&want);
    ep_buf_free(&path);
}

/*
 * However long the path is, the reason is whole, and the path's end is shown,
 * from a whole character on.
 */
static void check_long_paths(void)
{
    static const char *const units[][2] = {
        {"x", "x"},
        {"\xc3\xa9", "\xc3\xa9"},
        {"\xe2\x82\xac", "\xe2\x82\xac"},
        {"\xf0\x9f\x98\x80", "\xf0\x9f\x98\x80"},
        {"\n", "\\x0a"},
        {"\xff", "\\xff"},
    };
    static const char ends[] = "/end456789abcdef";

    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        for (int n = 4; n <= 16; n++) {
            char end[20];

            (void)snprintf(end, sizeof end, "%.*s", n, ends);
            refuses_long(units[i][0], units[i][1], end);
        }
    {
        /* a length at which the cut would fall into a character */
        char name[200] = "";
        struct ep_error err;

        for (size_t at = 0; at < 192; at += 4)
            memcpy(name + at, "\xf0\x9f\x98\x80", 5);
        memcpy(name + 192, "ee", 3);
        puts_file(name, "");
        ok(ep_ckpt_open(name, &err) == NULL && err.code == EP_ETRUNC);
        ok(strncmp(err.msg, "cannot read ...\xf0\x9f\x98\x80", 19) == 0);
    }
}

/* ==== The index as a table ==== */

static void check_index(void)
{
    static const char text[] =
        INDEX("\"b\":\"2\",\"a\":\"1\",\"\":\"2\",\"a\\u0000\":\"\\u0031\"");
    struct ep_ckpt_index ix;
    const struct ep_ckpt_place *p;

    ok(ep_ckpt_index_parse(&ix, text, strlen(text), NULL) == 0);
    ok(ix.n == 4 && ix.nfiles == 2);
    ok(strcmp(ix.file[0].ptr, "1") == 0 && strcmp(ix.file[1].ptr, "2") == 0);
    ok(ix.place[0].name.len == 0 && ix.place[0].file == 1);
    ok(ep_span_eq(ix.place[1].name, "a") && ix.place[1].file == 0);
    p = ep_ckpt_index_find(&ix, (struct ep_span){"a", 2});
    ok(p == &ix.place[2] && p->file == 0);
    ok(ep_ckpt_index_find(&ix, (struct ep_span){"c", 1}) == NULL);
    ep_ckpt_index_free(&ix);
    ep_ckpt_index_free(&ix);
    ok(ep_ckpt_index_find(&ix, (struct ep_span){"c", 1}) == NULL);
    ok(ep_ckpt_index_parse(&ix, "{\"weight_map\":{}}", 17, NULL) == 0);
    ok(ix.n == 0 && ix.nfiles == 0);
    ep_ckpt_index_free(&ix);
}

static int remove_one(const char *path, const struct stat *st, int type,
                      struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

int main(void)
{
    if (!mkdtemp(folder) || chdir(folder) != 0)
        return 99;
    check_one();
    check_odd_files();
    check_shards();
    check_folders();
    check_bad_files();
    check_bad_indexes();
    check_pickles();
    check_foreign();
    check_lone_shard();
    check_long_paths();
    check_index();
    (void)nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    return tap_done();
}
