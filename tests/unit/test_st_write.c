/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_st_write.c - checkpoints that are written: the bytes of a small one, as
 * the format's README has them, and what the reader finds in random ones.
 */
#include "config.h"

#include "base/buf.h"
#include "base/rng.h"
#include "base/thread.h"
#include "ckpt/ckpt.h"
#include "ckpt/st_layout.h"

#include "ckpt_make.h"

#include <sys/resource.h>

/* ==== Bytes ==== */

static void test_bytes(void)
{
    static const uint64_t two[] = {2}, three[] = {1, 3};
    static const char a[] = "aabb", b[] = "123456789012", c[] = "x";
    /* by type, the largest first, then by name; 8 + 200 bytes of header */
    static const char want[] =
        "{\"__metadata__\":{\"format\":\"pt\"},"
        "\"z\":{\"dtype\":\"F32\",\"shape\":[1,3],\"data_offsets\":[0,12]},"
        "\"a\":{\"dtype\":\"BF16\",\"shape\":[2],\"data_offsets\":[12,16]},"
        "\"m\":{\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[16,17]}}"
        "   123456789012aabbx";
    struct ep_tensor t[] = {
        {.name = SPAN("a"),
         .dtype = EP_DT_BF16,
         .rank = 1,
         .shape = two,
         .data = a},
        {.name = SPAN("m"), .dtype = EP_DT_U8, .data = c},
        {.name = SPAN("z"),
         .dtype = EP_DT_F32,
         .rank = 2,
         .shape = three,
         .data = b},
    };
    struct ep_st_meta meta = {SPAN("format"), SPAN("pt")};
    size_t n = sizeof want - 1 - 17;
    struct ep_buf got;

    make_ckpt("bytes", t, 3, &meta, 1, 0);
    got = slurp("bytes");
    ok(n % 8 == 0);
    ok(got.len == 8 + sizeof want - 1);
    ok(got.len > 8 && (unsigned char)got.ptr[0] == n && !got.ptr[1]);
    ok(got.len > 8 && memcmp(got.ptr + 8, want, got.len - 8) == 0);
    ep_buf_free(&got);

    make_ckpt("none", NULL, 0, NULL, 0, 0);
    got = slurp("none");
    ok(got.len == 16 && memcmp(got.ptr, "\b\0\0\0\0\0\0\0{}      ", 16) == 0);
    ep_buf_free(&got);
    ok(entries(".") == 2);
}

/* Names and metadata with any byte, in one file and in the index. */
static void test_names(void)
{
    static const uint64_t zero[] = {7, 0, 3};
    struct ep_tensor t[] = {
        {.name = SPAN("nul\0in it"), .dtype = EP_DT_I8, .data = "1"},
        {.name = SPAN("quote\" back\\slash"), .dtype = EP_DT_I8, .data = "2"},
        {.name = SPAN("line\nfeed \x7f \x01"), .dtype = EP_DT_I8, .data = "3"},
        {.name = SPAN("\xc3\xa9\xf0\x9f\x98\x80"),
         .dtype = EP_DT_I8,
         .data = "4"},
        {.name = SPAN(""), .dtype = EP_DT_I8, .data = "5"},
        {.name = SPAN("empty"),
         .dtype = EP_DT_F64,
         .rank = 3,
         .shape = zero,
         .data = ""},
    };
    struct ep_st_meta meta[] = {
        {SPAN("k\"\0"), SPAN("v\n\0\xe2\x82\xac")},
        {SPAN("twice"), SPAN("first")},
        {SPAN("twice"), SPAN("second")},
        {SPAN(""), SPAN("")},
    };
    enum { N = sizeof t / sizeof *t };

    for (int shards = 0; shards < 2; shards++) {
        const char *path = shards ? "names.d" : "names";
        struct ep_error err = {0};
        struct ep_ckpt *c;

        make_ckpt(path, t, N, meta, 4, shards ? 1 : 0);
        c = ep_ckpt_open(path, &err);
        if (!ok(c != NULL)) {
            printf("# %s\n", err.msg);
            continue;
        }
        ok(ep_ckpt_count(c) == N);
        for (size_t i = 0; i < N; i++) {
            const struct ep_tensor *x = ep_ckpt_find(c, t[i].name);

            ok(x && x->bytes == t[i].bytes && x->rank == t[i].rank &&
               memcmp(x->data, t[i].data, t[i].bytes) == 0);
        }
        ok(ep_ckpt_meta_count(c) == 3);
        ok(ep_span_eq(ep_ckpt_meta_find(c, "twice"), "first"));
        ok(ep_ckpt_meta(c, 0).value.len == 6 &&
           memcmp(ep_ckpt_meta(c, 0).value.ptr, "v\n\0\xe2\x82\xac", 6) == 0);
        ok(ep_ckpt_files(c) == (shards ? 5 : 1)); /* "empty" takes no room */
        ep_ckpt_close(c);
    }
}

/* Links are followed, modes kept, "folder/" is a folder's name. */
static void test_places(void)
{
    struct ep_tensor t = {.name = SPAN("x"), .dtype = EP_DT_U8, .data = "1"};
    struct stat st;

    put_text("kept", "old");
    ok(chmod("kept", 0640) == 0 && symlink("kept", "link") == 0);
    make_ckpt("link", &t, 1, NULL, 0, 0);
    ok(lstat("link", &st) == 0 && S_ISLNK(st.st_mode));
    ok(stat("kept", &st) == 0 && (st.st_mode & 07777) == 0640 &&
       st.st_size > 16);
    ok(mkdir("inner", 0750) == 0);
    make_ckpt("inner/", &t, 1, NULL, 0, 100);
    ok(stat("inner", &st) == 0 && (st.st_mode & 07777) == 0750);
    ok(entries("inner") == 2);
    (void)umask(027);
    make_ckpt("fresh//", &t, 1, NULL, 0, 100);
    make_ckpt("fresh.file", &t, 1, NULL, 0, 0);
    (void)umask(022);
    ok(stat("fresh", &st) == 0 && (st.st_mode & 07777) == 0750);
    ok(stat("fresh/model-00001-of-00001.safetensors", &st) == 0 &&
       (st.st_mode & 07777) == 0640);
    ok(stat("fresh.file", &st) == 0 && (st.st_mode & 07777) == 0640);
}

/* ==== Shards ==== */

static void test_shards(void)
{
    /* 6 3 | 6 | 20 | 3 3 3 at 10 bytes a shard, in this order */
    static const uint64_t bytes[] = {6, 3, 6, 20, 3, 3, 3};
    static const char *const name[] = {"t1", "t0", "t2", "t3",
                                       "t4", "t5", "t6"};
    static const char data[20];
    struct ep_tensor t[7];

    for (size_t i = 0; i < 7; i++)
        t[i] = (struct ep_tensor){.name = {name[i], 2},
                                  .dtype = EP_DT_U8,
                                  .rank = 1,
                                  .shape = &bytes[i],
                                  .data = data};
    make_ckpt("cut", t, 7, NULL, 0, 10);
    ok(entries("cut") == 5);
    ok(has_text("cut/model.safetensors.index.json",
                "{\"metadata\":{\"total_size\":44},\"weight_map\":{"
                "\"t0\":\"model-00001-of-00004.safetensors\","
                "\"t1\":\"model-00001-of-00004.safetensors\","
                "\"t2\":\"model-00002-of-00004.safetensors\","
                "\"t3\":\"model-00003-of-00004.safetensors\","
                "\"t4\":\"model-00004-of-00004.safetensors\","
                "\"t5\":\"model-00004-of-00004.safetensors\","
                "\"t6\":\"model-00004-of-00004.safetensors\"}}\n"));
    make_ckpt("cut.none", NULL, 0, NULL, 0, 10);
    ok(entries("cut.none") == 2);
}

enum { RANDOM = 150, WRITERS = 3 };

/* Threads that write all tensors in pieces, the piece p by thread p mod 3. */
struct pieces {
    struct ep_st_writer *w;
    struct ep_tensor *t;
    size_t piece;
    int failed[WRITERS];
};

static void write_pieces(int thread, void *ctx)
{
    struct pieces *p = ctx;
    size_t k = 0;

    for (size_t i = RANDOM; i-- > 0;)
        for (uint64_t at = 0; at < p->t[i].bytes; at += p->piece) {
            uint64_t n = p->t[i].bytes - at;

            if (k++ % WRITERS == (size_t)thread)
                p->failed[thread] |= ep_st_writer_write(
                    p->w, i, at, (const char *)p->t[i].data + at,
                    n < p->piece ? n : p->piece, NULL);
        }
}

/* Random types and shapes; the data are some part of the same bytes. */
static void draw(struct ep_tensor *t, struct ep_rng *rng)
{
    static char name[RANDOM][16];
    static uint64_t shape[RANDOM][3];
    static char data[1 << 16];

    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (char)ep_rng_next(rng);
    for (size_t i = 0; i < RANDOM; i++) {
        t[i] = (struct ep_tensor){
            .name = {name[i], (size_t)snprintf(name[i], sizeof name[i], "n%zu",
                                               i * 7919 % 1000)},
            .dtype = (enum ep_dtype)(ep_rng_next(rng) % EP_DTYPES),
            .rank = (unsigned)(ep_rng_next(rng) % 4),
            .shape = shape[i],
            .data = data + ep_rng_next(rng) % 1000,
        };
        for (int d = 0; d < 3; d++)
            shape[i][d] = ep_rng_next(rng) % 5 * 4;
        if (t[i].rank == 0 && ep_dtype_bits(t[i].dtype) < 8)
            t[i].rank = 1;
    }
}

/* Does the reader find what was written? */
static void check_random(const struct ep_tensor *t, uint64_t shard_bytes)
{
    struct ep_error err = {0};
    struct ep_ckpt *c;
    int bad = 0;

    c = ep_ckpt_open("random", &err);
    if (!ok(c != NULL))
        printf("# %s\n", err.msg);
    for (size_t i = 0; c && i < RANDOM; i++) {
        const struct ep_tensor *x = ep_ckpt_find(c, t[i].name);

        bad += !x || x->dtype != t[i].dtype || x->rank != t[i].rank ||
               memcmp(x->shape, t[i].shape, x->rank * sizeof *x->shape) != 0 ||
               memcmp(x->data, t[i].data, t[i].bytes) != 0;
    }
    ok(bad == 0);
    if (shard_bytes == 1)
        ok(c && ep_ckpt_files(c) > 100);
    ep_ckpt_close(c);
}

/* Random tensors: the reader gets back what was written. */
static void round_trip(uint64_t seed, uint64_t shard_bytes, rlim_t files)
{
    struct ep_tensor t[RANDOM];
    struct ep_st_plan plan = {
        .tensor = t, .n = RANDOM, .shard_bytes = shard_bytes};
    struct pieces p = {.t = t};
    struct rlimit old, low;
    struct ep_error err = {0};
    struct ep_rng rng;
    int descriptors;

    printf("# seed %llu\n", (unsigned long long)seed);
    ep_rng_seed(&rng, seed, 0);
    draw(t, &rng);
    set_counts(t, RANDOM);
    p.piece = 1 + ep_rng_next(&rng) % 3000;
    ok(getrlimit(RLIMIT_NOFILE, &old) == 0);
    low = old;
    if (files)
        low.rlim_cur = files;
    ok(setrlimit(RLIMIT_NOFILE, &low) == 0);
    descriptors = entries("/proc/self/fd");
    p.w = ep_st_writer_open("random", &plan, &err);
    descriptors = entries("/proc/self/fd") - descriptors;
    ok(descriptors <= 64);
    if (!ok(p.w != NULL)) {
        printf("# %s\n", err.msg);
        return;
    }
    ok(ep_threads_run(WRITERS, write_pieces, &p, &err) == 0);
    ok(!p.failed[0] && !p.failed[1] && !p.failed[2]);
    if (!ok(ep_st_writer_commit(p.w, seed % 2, &err) == 0))
        printf("# %s\n", err.msg);
    ok(setrlimit(RLIMIT_NOFILE, &old) == 0);
    check_random(t, shard_bytes);
    remove_all("random");
    (void)unlink("random");
}

int main(void)
{
    enter_folder();
    test_bytes();
    test_names();
    test_places();
    test_shards();
    round_trip(1, 0, 0);
    round_trip(2, 1, 0);
    round_trip(3, 1, 24);
    round_trip(4, 4000, 0);
    leave_folder();
    return tap_done();
}
