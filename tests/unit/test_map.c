/* SPDX-License-Identifier: Apache-2.0 */
/* test_map.c - mapped files, and what happens when one gets shorter. */
#include "config.h"

#include "base/map.h"
#include "tap.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BIG = 1 << 20 };

static char folder[] = "/tmp/evenpace-map-XXXXXX";
static char path[64];

static void put(size_t n)
{
    FILE *f = fopen(path, "wb");

    for (size_t i = 0; f && i < n; i++)
        (void)fputc((int)('a' + i % 26), f);
    if (!f || fclose(f) != 0)
        exit(99);
}

static int lowest_fd(void)
{
    int fd = dup(0);

    (void)close(fd);
    return fd;
}

static void check_contents(void)
{
    struct ep_error err;
    struct ep_map m, again, none = {.data = NULL};
    int fd = lowest_fd();

    put(5);
    ok(ep_map_open(&m, path, &err) == 0);
    ok(m.len == 5 && memcmp(m.data, "abcde", 5) == 0);
    ok(ep_map_open(&again, path, NULL) == 0 && again.data != m.data);
    ok(lowest_fd() == fd);
    ep_map_close(&m);
    ok(m.data == NULL && m.len == 0);
    ok(again.data[4] == 'e');
    ep_map_close(&again);
    put(0);
    ok(ep_map_open(&m, path, &err) == 0 && m.data == NULL && m.len == 0);
    ep_map_close(&m);
    ep_map_close(&none);
}

static void check_errors(void)
{
    char name[80], want[200];
    struct ep_error err;
    struct ep_map m;
    int fd = lowest_fd();

    (void)snprintf(name, sizeof name, "%s/not\nthere", folder);
    (void)snprintf(want, sizeof want,
                   "cannot open %s/not\\x0athere: No such file or directory",
                   folder);
    ok(ep_map_open(&m, name, &err) == EP_ESYS);
    ok(err.code == EP_ESYS && err.sys_errno == ENOENT);
    ok(strcmp(err.msg, want) == 0);
    ok(ep_map_open(&m, folder, &err) == EP_EFORMAT);
    (void)snprintf(want, sizeof want, "cannot open %s: not a regular file",
                   folder);
    ok(err.code == EP_EFORMAT && strcmp(err.msg, want) == 0);
    /* a pipe that nobody writes to is refused, not waited for */
    (void)snprintf(name, sizeof name, "%s/pipe", folder);
    ok(mkfifo(name, 0600) == 0);
    ok(ep_map_open(&m, name, &err) == EP_EFORMAT);
    ok(ep_map_open(&m, "/dev/null", NULL) == EP_EFORMAT);
    ok(unlink(name) == 0);
    ok(lowest_fd() == fd);
}

/*
 * Run body in a child with its stderr in text [cap]; returns its wait status.
 */
static int in_child(void (*body)(void), char *text, size_t cap)
{
    int ends[2], status = -1;
    size_t n = 0;
    ssize_t got;
    pid_t pid;

    (void)fflush(stdout);
    if (pipe(ends) != 0 || (pid = fork()) < 0)
        exit(99);
    if (pid == 0) {
        (void)dup2(ends[1], STDERR_FILENO);
        body();
        _exit(0);
    }
    (void)close(ends[1]);
    while (n + 1 < cap && (got = read(ends[0], text + n, cap - 1 - n)) > 0)
        n += (size_t)got;
    text[n] = '\0';
    (void)close(ends[0]);
    (void)waitpid(pid, &status, 0);
    return status;
}

static volatile unsigned char sink;

/* The second of three maps loses its end; the third takes a used entry. */
static void lose_end(void)
{
    struct ep_map before, m, closed;

    ep_map_guard("prog");
    if (ep_map_open(&closed, path, NULL) != 0 ||
        ep_map_open(&before, "/proc/self/exe", NULL) != 0)
        _exit(98);
    ep_map_close(&closed);
    if (ep_map_open(&m, path, NULL) != 0 || truncate(path, 4096) != 0)
        _exit(98);
    sink = m.data[4095]; /* still there */
    sink = m.data[BIG - 1];
}

static void lose_end_unguarded(void)
{
    struct ep_map m;

    if (signal(SIGBUS, SIG_DFL) == SIG_ERR ||
        ep_map_open(&m, path, NULL) != 0 || truncate(path, 0) != 0)
        _exit(98);
    sink = m.data[0];
}

static void get_signal(void)
{
    struct ep_map m;

    ep_map_guard("prog");
    if (ep_map_open(&m, path, NULL) != 0)
        _exit(98);
    (void)raise(SIGBUS);
}

/* A bus error in memory that is no map of ours, where one was. */
static void fault_elsewhere(void)
{
    struct ep_map m;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    void *was;
    const unsigned char *p;

    ep_map_guard("prog");
    if (ep_map_open(&m, path, NULL) != 0)
        _exit(98);
    was = (void *)m.data;
    ep_map_close(&m);
    p = mmap(was, BIG, PROT_READ, MAP_SHARED | MAP_FIXED, fd, 0);
    if (p == MAP_FAILED || truncate(path, 0) != 0)
        _exit(98);
    sink = p[0];
}

static void check_guard(void)
{
    char text[600], want[200];
    int status;

    put(BIG);
    status = in_child(lose_end, text, sizeof text);
    (void)snprintf(want, sizeof want,
                   "prog: cannot read %s: it became shorter while it was read, "
                   "or its disk failed\n",
                   path);
    ok(WIFEXITED(status) && WEXITSTATUS(status) == 2);
    if (!ok(strcmp(text, want) == 0))
        printf("# %s\n", text);
    put(BIG);
    status = in_child(lose_end_unguarded, text, sizeof text);
    ok(WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS);
    put(BIG);
    status = in_child(get_signal, text, sizeof text);
    ok(WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS);
    ok(text[0] == '\0');
    put(BIG);
    status = in_child(fault_elsewhere, text, sizeof text);
    ok(WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS);
    ok(text[0] == '\0');
}

/* Another size, another time; another file in its place is no change. */
static void check_changed(void)
{
    const struct timespec times[2] = {{1, 0}, {1, 500}};
    struct ep_map m;

    put(5);
    ok(ep_map_open(&m, path, NULL) == 0);
    ok(ep_map_is(&m, path) && !ep_map_is(&m, folder) &&
       !ep_map_is(&m, "/no/such"));
    ok(!ep_map_changed(&m, path));
    ok(utimensat(AT_FDCWD, path, times, 0) == 0 && ep_map_changed(&m, path));
    ep_map_close(&m);
    ok(ep_map_is(&m, path)); /* it is still known */
    ok(ep_map_open(&m, path, NULL) == 0 && !ep_map_changed(&m, path));
    ok(truncate(path, 6) == 0 && utimensat(AT_FDCWD, path, times, 0) == 0);
    ok(ep_map_changed(&m, path));
    ok(unlink(path) == 0 && !ep_map_changed(&m, path));
    put(7);
    ok(!ep_map_is(&m, path) && !ep_map_changed(&m, path));
    ep_map_close(&m);
}

int main(void)
{
    if (!mkdtemp(folder))
        return 99;
    (void)snprintf(path, sizeof path, "%s/file", folder);
    check_contents();
    check_errors();
    check_guard();
    check_changed();
    (void)unlink(path);
    (void)rmdir(folder);
    return tap_done();
}
