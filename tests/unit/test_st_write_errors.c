/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_st_write_errors.c - checkpoints that cannot be written: what is said,
 * and what is left.
 */
#include "config.h"

#include "base/tempfile.h"
#include "ckpt/ckpt.h"

#include "ckpt_make.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

/* ==== Plans that are refused ==== */

static void refused(const char *path, const struct ep_st_plan *plan, int code,
                    const char *message)
{
    struct ep_error err = {0};
    int before = entries(".");
    struct ep_st_writer *w = ep_st_writer_open(path, plan, &err);

    ok(w == NULL);
    ok(err.code == code);
    if (!ok(strcmp(err.msg, message) == 0))
        printf("# got  %s\n# want %s\n", err.msg, message);
    ok(entries(".") == before);
    ep_st_writer_abort(w);
}

static const uint64_t huge[] = {UINT64_C(1) << 40, UINT64_C(1) << 40};
static const uint64_t large[] = {UINT64_C(1) << 61}, three[] = {3};
static const uint64_t many[EP_ST_RANK_MAX + 1];
static const struct {
    struct ep_tensor t;
    int code;
    const char *reason;
} bad[] = {
    {{.name = SPAN("a\xff"), .dtype = EP_DT_U8, .count = 1},
     EP_EFORMAT,
     "tensor \"a\\xff\": its name is not UTF-8"},
    {{.name = SPAN("cut\xc3"), .dtype = EP_DT_U8, .count = 1},
     EP_EFORMAT,
     "tensor \"cut\\xc3\": its name is not UTF-8"},
    {{.name = SPAN("__metadata__"), .dtype = EP_DT_U8, .count = 1},
     EP_EFORMAT,
     "tensor \"__metadata__\": a tensor cannot have that name"},
    {{.name = SPAN("h"), .dtype = EP_DT_U8, .rank = 2, .shape = huge},
     EP_ERANGE,
     "tensor \"h\": too large"},
    {{.name = SPAN("l"),
      .dtype = EP_DT_F64,
      .rank = 1,
      .shape = large,
      .count = UINT64_C(1) << 61},
     EP_ERANGE,
     "tensor \"l\": too large"},
    {{.name = SPAN("l"),
      .dtype = EP_DT_F32,
      .rank = 1,
      .shape = large,
      .count = UINT64_C(1) << 61},
     EP_ERANGE,
     "tensor \"l\": too large"},
    {{.name = SPAN("q"),
      .dtype = EP_DT_F4,
      .rank = 1,
      .shape = three,
      .count = 3},
     EP_EFORMAT,
     "tensor \"q\": 3 elements of 4 bits do not fill whole bytes"},
    {{.name = SPAN("c"),
      .dtype = EP_DT_F32,
      .rank = 1,
      .shape = three,
      .count = 4},
     EP_EDOM,
     "tensor \"c\": 4 elements, but its shape has 3"},
    {{.name = SPAN("r"),
      .dtype = EP_DT_F32,
      .rank = EP_ST_RANK_MAX + 1,
      .shape = many},
     EP_ELIMIT,
     "tensor \"r\": more than 64 dimensions"},
};

static void test_plans(void)
{
    static const uint64_t part = UINT64_C(1) << 60;
    struct ep_tensor eight[8],
        twice[] = {
            {.name = SPAN("x"), .dtype = EP_DT_U8, .count = 1},
            {.name = SPAN("y"), .dtype = EP_DT_U8, .count = 1},
            {.name = SPAN("x"), .dtype = EP_DT_F32, .count = 1},
        };
    struct ep_st_meta meta = {SPAN("k"), SPAN("\xc0\x80")};
    struct ep_st_plan plan = {.tensor = twice, .n = 3};

    refused("out", &plan, EP_EFORMAT,
            "cannot create out: two tensors of name \"x\"");
    plan =
        (struct ep_st_plan){.tensor = twice, .n = 2, .meta = &meta, .nmeta = 1};
    refused("out", &plan, EP_EFORMAT,
            "cannot create out: metadata entry 1 is not UTF-8");
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char message[256];

        plan = (struct ep_st_plan){.tensor = &bad[i].t, .n = 1};
        (void)snprintf(message, sizeof message, "cannot create out: %s",
                       bad[i].reason);
        refused("out", &plan, bad[i].code, message);
    }
    /* eight times 2^60 bytes is more than a file can have */
    for (size_t i = 0; i < 8; i++)
        eight[i] = (struct ep_tensor){.name = {&"12345678"[i], 1},
                                      .dtype = EP_DT_U8,
                                      .rank = 1,
                                      .shape = &part,
                                      .count = part};
    plan = (struct ep_st_plan){.tensor = eight, .n = 8};
    refused("out", &plan, EP_ERANGE,
            "cannot create out: too large: 9223372036854775808 bytes");
}

/* A header beyond the cap of the format. */
static void test_header_limit(void)
{
    size_t n = EP_ST_HEADER_MAX;
    char *text = ep_realloc(NULL, n, 1);
    struct ep_st_meta meta = {SPAN("k"), {text, n}};
    struct ep_st_plan plan = {.meta = &meta, .nmeta = 1};

    memset(text, 'x', n);
    refused("out", &plan, EP_ELIMIT,
            "cannot create out: a header of 100000032 bytes, more than the "
            "100000000 that the format allows");
    free(text);
}

static void test_paths(void)
{
    struct ep_tensor t = {.name = SPAN("x"), .dtype = EP_DT_U8, .count = 1};
    struct ep_st_plan plan = {.tensor = &t, .n = 1};
    struct stat st, proc;

    ok(mkfifo("fifo", 0600) == 0 && mkdir("full", 0700) == 0 &&
       symlink("nowhere", "dangling") == 0);
    put_text("full/file", "text");
    put_text("file", "text");
    refused("-", &plan, EP_EUSAGE, "cannot create -: not a regular file");
    refused("fifo", &plan, EP_EUSAGE, "cannot create fifo: not a regular file");
    refused("/dev/full", &plan, EP_EUSAGE,
            "cannot create /dev/full: not a regular file");
    refused("full", &plan, EP_ESYS, "cannot create full: Is a directory");
    refused("", &plan, EP_EUSAGE, "cannot create \"\": the name is empty");
    refused("no/file", &plan, EP_ESYS,
            "cannot create no/file: No such file or directory");
    refused("dangling", &plan, EP_EUSAGE,
            "cannot create dangling: its link leads nowhere");
    plan.shard_bytes = 10;
    refused("-", &plan, EP_EUSAGE, "cannot create -: not a regular file");
    refused("full", &plan, EP_ESYS, "cannot create full: Directory not empty");
    refused("file", &plan, EP_ESYS, "cannot create file: Not a directory");
    refused("fifo", &plan, EP_ESYS, "cannot create fifo: Not a directory");
    refused("no/folder", &plan, EP_ESYS,
            "cannot create no/folder: No such file or directory");
    if (stat("/", &st) == 0 && stat("/proc", &proc) == 0 &&
        st.st_dev != proc.st_dev) {
        struct ep_error err = {0};

        ok(ep_st_writer_open("/proc", &plan, &err) == NULL &&
           err.code == EP_EUSAGE);
        ok(strcmp(err.msg,
                  "cannot create /proc: a file system is mounted "
                  "there: name a new folder in it") == 0);
    }
    ok(has_text("file", "text") && has_text("full/file", "text"));
    remove_all("full");
    ok(unlink("fifo") == 0 && unlink("file") == 0 && unlink("dangling") == 0);
}

/* ==== What goes wrong later ==== */

static struct ep_st_writer *begin(const char *path, uint64_t shard_bytes)
{
    static const uint64_t n[] = {1000};
    static const struct ep_tensor t[] = {
        {.name = SPAN("first"),
         .dtype = EP_DT_U8,
         .rank = 1,
         .shape = n,
         .count = 1000},
        {.name = SPAN("second"),
         .dtype = EP_DT_U8,
         .rank = 1,
         .shape = n,
         .count = 1000},
    };
    struct ep_st_plan plan = {.tensor = t, .n = 2, .shard_bytes = shard_bytes};
    struct ep_error err = {0};
    struct ep_st_writer *w = ep_st_writer_open(path, &plan, &err);

    if (!w)
        printf("# %s\n", err.msg);
    ok(w != NULL);
    return w;
}

static void test_incomplete(void)
{
    static const char data[1000];

    for (int shards = 0; shards < 2; shards++) {
        const char *path = shards ? "part.d" : "part";
        uint64_t cap = shards ? 1000 : 0;
        int before;
        char message[256];
        struct ep_error err = {0};
        struct ep_st_writer *w;

        if (!shards)
            put_text(path, "old");
        before = entries(".");
        w = begin(path, cap);
        ok(ep_st_writer_write(w, 0, 0, data, 1000, &err) == 0);
        ok(ep_st_writer_write(w, 1, 0, data, 999, &err) == 0);
        ok(ep_st_writer_write(w, 1, 500, data, 0, &err) == 0);
        ok(ep_st_writer_write(w, 2, 0, data, 1, &err) == EP_ERANGE);
        ok(strcmp(err.msg, "cannot write tensor 2: there are 2") == 0);
        ok(ep_st_writer_write(w, 1, 999, data, 2, &err) == EP_ERANGE);
        (void)snprintf(message, sizeof message,
                       "cannot write %s: tensor \"second\": 2 bytes at 999 are "
                       "beyond its end at 1000",
                       path);
        ok(strcmp(err.msg, message) == 0);
        ok(ep_st_writer_write(w, 1, UINT64_MAX, data, 2, &err) == EP_ERANGE);
        ok(shards || has_text(path, "old"));
        ok(ep_st_writer_commit(w, false, &err) == EP_EDOM);
        (void)snprintf(message, sizeof message,
                       "cannot write %s: tensor \"second\": 999 of 1000 bytes "
                       "were written",
                       path);
        if (!ok(strcmp(err.msg, message) == 0))
            printf("# %s\n", err.msg);
        ok(shards || has_text(path, "old"));
        ok(entries(".") == before);

        w = begin(path, cap);
        ok(ep_st_writer_write(w, 0, 0, data, 1000, &err) == 0);
        errno = 77;
        ep_st_writer_abort(w);
        ok(errno == 77);
        ok(shards || has_text(path, "old"));
        ok(entries(".") == before);
    }
    ep_st_writer_abort(NULL);
}

/* The place of a folder is taken while it is being written. */
static void test_taken(void)
{
    static const char data[1000];
    struct ep_error err = {0};
    struct ep_st_writer *w = begin("taken", 1000);

    ok(ep_st_writer_write(w, 0, 0, data, 1000, &err) == 0);
    ok(ep_st_writer_write(w, 1, 0, data, 1000, &err) == 0);
    ok(mkdir("taken", 0700) == 0);
    put_text("taken/mine", "mine");
    {
        int before = entries(".");

        ok(ep_st_writer_commit(w, false, &err) == EP_ESYS);
        ok(strcmp(err.msg, "cannot write taken: Directory not empty") == 0);
        ok(entries(".") == before - 1);
    }
    ok(has_text("taken/mine", "mine"));
    remove_all("taken");
}

/* A full disk, played by a limit of file sizes, before and during the work. */
static void test_full(void)
{
    static const char data[1000];
    struct rlimit old, low;
    struct ep_error err = {0};

    ok(signal(SIGXFSZ, SIG_IGN) != SIG_ERR);
    ok(getrlimit(RLIMIT_FSIZE, &old) == 0);
    low = old;
    for (int shards = 0; shards < 2; shards++) {
        const char *path = shards ? "big.d" : "big";
        const char *file =
            shards ? "big.d/model-00001-of-00002.safetensors" : "big";
        static const uint64_t n[] = {1000};
        struct ep_tensor t[] = {
            {.name = SPAN("first"),
             .dtype = EP_DT_U8,
             .rank = 1,
             .shape = n,
             .count = 1000},
            {.name = SPAN("second"),
             .dtype = EP_DT_U8,
             .rank = 1,
             .shape = n,
             .count = 1000},
        };
        struct ep_st_plan plan = {
            .tensor = t, .n = 2, .shard_bytes = shards ? 1000 : 0};
        int before = entries(".");
        char message[256];
        struct ep_st_writer *w;

        low.rlim_cur = 1000;
        ok(setrlimit(RLIMIT_FSIZE, &low) == 0);
        (void)snprintf(message, sizeof message,
                       "cannot create %s: File too large", file);
        refused(path, &plan, EP_ESYS, message);
        ok(setrlimit(RLIMIT_FSIZE, &old) == 0);

        w = begin(path, plan.shard_bytes);
        low.rlim_cur = 500;
        ok(setrlimit(RLIMIT_FSIZE, &low) == 0);
        (void)snprintf(message, sizeof message,
                       "cannot write %s: File too large", file);
        /* the first call is cut at the limit, the second is refused */
        ok(ep_st_writer_write(w, 0, 0, data, 1000, &err) == EP_ESYS);
        ok(err.sys_errno == EFBIG && strcmp(err.msg, message) == 0);
        ok(setrlimit(RLIMIT_FSIZE, &old) == 0);
        ok(ep_st_writer_write(w, 0, 0, data, 1000, &err) == 0);
        ok(ep_st_writer_write(w, 1, 0, data, 1000, &err) == 0);
        ok(ep_st_writer_commit(w, false, &err) == EP_ESYS);
        ok(err.sys_errno == EFBIG && strcmp(err.msg, message) == 0);
        ok(entries(".") == before);
    }
}

/* What a killed program leaves is nothing, or nothing that can be opened. */
static void test_killed(void)
{
    static const char data[1000];

    for (int shards = 0; shards < 2; shards++) {
        char inner[80];
        DIR *d;
        const struct dirent *e;
        int status = -1;
        pid_t pid;

        ok(mkdir("crash", 0700) == 0);
        (void)fflush(stdout);
        pid = fork();
        if (pid == 0) {
            struct ep_st_writer *w = begin("crash/out", shards ? 1000 : 0);
            struct ep_error err;

            if (ep_st_writer_write(w, 0, 0, data, 1000, &err) != 0 ||
                ep_st_writer_write(w, 1, 0, data, 1000, &err) != 0)
                _exit(1);
            _exit(0);
        }
        ok(waitpid(pid, &status, 0) == pid && status == 0);
        ok(entries("crash/out") == -1 && access("crash/out", F_OK) != 0);
        d = opendir("crash");
        while (d && (e = readdir(d)) != NULL) {
            struct ep_ckpt *c;
            struct ep_error err = {0};

            if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
                continue;
            (void)snprintf(inner, sizeof inner, "crash/%.40s", e->d_name);
            c = ep_ckpt_open(inner, &err);
            ok(c == NULL);
            printf("# %s\n", err.msg);
            ep_ckpt_close(c);
            (void)snprintf(inner, sizeof inner,
                           "crash/%.20s/model-00001-of-00002.safetensors",
                           e->d_name);
            c = ep_ckpt_open(inner, &err);
            ok(c == NULL);
            printf("# %s\n", err.msg);
            ep_ckpt_close(c);
        }
        if (d)
            (void)closedir(d);
        remove_all("crash");
    }
}

/* ==== Several at once ==== */

/* Put a state and a model in place, both finished, after trouble is made. */
static int place_two(const char *model, uint64_t shard_bytes,
                     void (*trouble)(void), struct ep_error *err)
{
    static const char data[1000] = "new";
    struct ep_st_writer *w[] = {begin("state", 0), begin(model, shard_bytes)};

    for (int i = 0; i < 2; i++) {
        ok(ep_st_writer_write(w[i], 0, 0, data, 1000, err) == 0);
        ok(ep_st_writer_write(w[i], 1, 0, data, 1000, err) == 0);
        ok(ep_st_writer_finish(w[i], i, err) == 0);
    }
    if (trouble)
        trouble();
    return ep_st_writer_place(w, 2, true, err);
}

static void make_folder(void)
{
    ok(unlink("model") == 0 && mkdir("model", 0700) == 0);
}

static void move_folder(void)
{
    ok(rename("sub", "sub.gone") == 0);
}

static void test_two(void)
{
    struct ep_error err = {0};
    struct ep_ckpt *c;
    int before;

    put_text("state", "old state");
    put_text("model", "old model");
    before = entries(".");
    /* the model has no place: neither is replaced */
    ok(place_two("model", 0, make_folder, &err) == EP_ESYS);
    ok(strcmp(err.msg, "cannot write model: Is a directory") == 0);
    ok(has_text("state", "old state") && entries(".") == before);
    ok(rmdir("model") == 0);
    ok(mkdir("sub", 0700) == 0);
    ok(place_two("sub/model", 0, move_folder, &err) == EP_ESYS);
    ok(has_text("state", "old state"));
    remove_all("sub.gone");
    ok(entries(".") == before - 1);
    /* only the second rename tells: what was there before is there again */
    ok(unlink("state") == 0);
    ok(place_two("state", 1000, NULL, &err) == EP_ESYS);
    ok(access("state", F_OK) != 0 && entries(".") == before - 2);
    /* and when all is well, both are there and nothing else */
    put_text("state", "old state");
    ok(place_two("model", 0, NULL, &err) == 0);
    ok(entries(".") == before);
    c = ep_ckpt_open("state", &err);
    ok(c && ep_ckpt_count(c) == 2);
    ep_ckpt_close(c);
    ok(unlink("state") == 0 && unlink("model") == 0);
}

/* Replaced, and back; names of temporary files are hidden, and never long. */
static void test_swap(void)
{
    char name[256];

    memset(name, 'n', 255);
    name[255] = '\0';
    for (int k = 0; k < 4; k++) {
        const char *path = k < 2 ? "it" : name;
        bool there = k % 2;
        int before, fd;
        struct ep_tempfile t = {.path = NULL};
        struct stat st;

        if (there)
            put_text(path, "old");
        before = entries(".");
        for (int back = 0; back < 2; back++) {
            ok(ep_tempfile_resolve(&t, path, &st) == 0);
            fd = ep_tempfile_open(&t, 0600);
            ok(fd >= 0 && write(fd, "new", 3) == 3);
            ok(ep_tempfile_name(&t, fd) == 0 && close(fd) == 0);
            ok(strncmp(strrchr(t.temp, '/') ? strrchr(t.temp, '/') + 1 : t.temp,
                       k < 2 ? ".it." : ".nnn", 4) == 0);
            ok(ep_tempfile_swap(&t) == 0 && has_text(path, "new"));
            ok((t.old != NULL) == (there || back));
            ok(!t.old || !there || back || has_text(t.old, "old"));
            if (back == 0) {
                ok(ep_tempfile_restore(&t) == 0);
                ok(there ? has_text(path, "old") : access(path, F_OK) != 0);
                ok(entries(".") == before);
                if (!there)
                    put_text(path, "other");
            } else {
                ep_tempfile_keep(&t);
                ok(has_text(path, "new"));
            }
            ep_tempfile_free(&t);
        }
        ok(entries(".") == before + !there);
        ok(unlink(path) == 0);
    }
    ok(ep_tempfile_same_place("a", "./a") &&
       ep_tempfile_same_place("/a", "//a"));
    ok(!ep_tempfile_same_place("a", "b") && !ep_tempfile_same_place("a", "/a"));
    ok(!ep_tempfile_same_place("no/a", "no/a")); /* no such folder */
}

int main(void)
{
    enter_folder();
    test_plans();
    test_header_limit();
    test_paths();
    test_incomplete();
    test_taken();
    test_full();
    test_killed();
    test_two();
    test_swap();
    leave_folder();
    return tap_done();
}
