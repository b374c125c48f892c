/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_url.c - the text of URLs and of response heads, the pipe, and what goes
 * wrong without a server. `test_url VERB [OPTION...] URL...` talks to a server,
 * for url.bats.
 */
#include "config.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/url.h"
#include "base/url_pipe.h"
#include "base/url_text.h"
#include "tap.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void check_is(void)
{
    ok(ep_url_is("http://n1/") && ep_url_is("HTTPS://n1") &&
       ep_url_is("hTtP://"));
    ok(!ep_url_is("") && !ep_url_is("http:/n1") && !ep_url_is("ftp://n1") &&
       !ep_url_is("httpx://n1") && !ep_url_is("./http://n1") &&
       !ep_url_is(" http://n1"));
}

static void check_shown(void)
{
    static const struct {
        const char *url, *shown, *origin;
    } cases[] = {
        {"http://n1:9100/m?x=1", "http://n1:9100/m?x=1", "http://n1:9100"},
        {"http://u:secret@n1/", "http://***@n1/", "n1"},
        {"https://token@n1:80?a@b", "https://***@n1:80?a@b", "n1:80"},
        {"http://u:a@b@n1/x@y", "http://***@n1/x@y", "n1"},
        {"http://n1/x@y", "http://n1/x@y", "http://n1"},
        {"http://n1#@", "http://n1#@", "http://n1"},
        {"http://[::1]:9/a", "http://[::1]:9/a", "http://[::1]:9"},
        {"HTTP://\x1b[31m/", "HTTP://\\x1b[31m/", "HTTP://\x1b[31m"},
        {"/moved/u@v", "/moved/u@v", "/moved"},
    };
    char shown[64];

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        ok(strcmp(ep_url_shown(shown, sizeof shown, cases[i].url),
                  cases[i].shown) == 0);
        if (ep_url_is(cases[i].url))
            ok(ep_span_eq(ep_url_origin(cases[i].url), cases[i].origin));
    }
    ok(strcmp(ep_url_shown(shown, 16, "http://u:p@n1.example.org/"),
              "http://***@n...") == 0);
}

static struct ep_url_head read_head(const char *text)
{
    struct ep_url_head h = {0};

    while (*text) {
        size_t n = strcspn(text, "\n") + 1;

        ep_url_head_line(&h, text, n);
        text += n;
    }
    return h;
}

static void check_head(void)
{
    struct ep_url_head h = read_head(
        "HTTP/1.1 206 Partial Content\r\n"
        "eTag: \"a b\"\r\n"
        "Last-Modified:  yesterday \r\n"
        "ACCEPT-RANGES:bytes\r\n"
        "Content-Range: bytes 17-99/100\r\n"
        "Location: /x\r\n\r\n");

    ok(h.status == 206 && strcmp(h.reason, "Partial Content") == 0);
    ok(strcmp(h.etag, "\"a b\"") == 0 && strcmp(h.modified, "yesterday") == 0);
    ok(h.ranges && h.from == 17 && strcmp(h.location, "/x") == 0);
    ok(strcmp(ep_url_head_validator(&h), "\"a b\"") == 0);
    ep_url_head_line(&h, "HTTP/1.0 200\r\n", 14); /* begins anew */
    ok(h.status == 200 && !h.reason[0] && !h.etag[0] && !h.ranges);
    ok(h.from == UINT64_MAX && ep_url_head_validator(&h) == NULL);
    h = read_head("HTTP/1.1 200 OK\nETag: W/\"a\"\nAccept-Ranges: bytes\n");
    ok(ep_url_head_validator(&h) == NULL);
    h = read_head(
        "HTTP/1.1 200 OK\nETag: W/\"a\"\nAccept-Ranges: bytes\n"
        "Last-Modified: then\n");
    ok(strcmp(ep_url_head_validator(&h), "then") == 0);
    h = read_head("HTTP/1.1 200 OK\nETag: \"a\"\nAccept-Ranges: none\n");
    ok(ep_url_head_validator(&h) == NULL);
    h = read_head("HTTP/1.1\nContent-Range: bytes */5\nnothing\n:\n");
    ok(h.status == 0 && h.from == UINT64_MAX);
    h = read_head(
        "HTTP/1.1 2x0 OK\nContent-Range: bytes 1234567890123456789-"
        "\n");
    ok(h.status == 2 && h.from == UINT64_MAX);
}

#define PIPE_MAX ((size_t)100 << 10)
#define PIPE_BYTES ((size_t)40 << 20)

struct side {
    struct ep_url_pipe *pipe;
    pthread_mutex_t lock;
    bool room;
};

/* Bytes i % 251 in pieces of any size, spinning where there is no room. */
static void *put_all(void *arg)
{
    struct side *s = arg;
    static unsigned char data[251 * 220];
    size_t at = 0, n = 1;

    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (unsigned char)(i % 251);
    while (at < PIPE_BYTES) {
        n = 1 + (n * 7919 + at) % 50000;
        n = n < PIPE_BYTES - at ? n : PIPE_BYTES - at;
        while (!ep_url_pipe_put(s->pipe, data + at % 251, n)) {
            bool room = false;

            while (!room) {
                (void)pthread_mutex_lock(&s->lock);
                room = s->room;
                s->room = false;
                (void)pthread_mutex_unlock(&s->lock);
            }
        }
        at += n;
    }
    ep_url_pipe_end(s->pipe);
    return NULL;
}

static void check_pipe_threads(void)
{
    static unsigned char dst[70000];
    struct ep_url_pipe pipe;
    struct side s = {&pipe, PTHREAD_MUTEX_INITIALIZER, false};
    pthread_t thread;
    size_t at = 0, bad = 0, cap = 1;
    ssize_t got;
    bool room;

    ep_url_pipe_init(&pipe, PIPE_MAX);
    ok(pthread_create(&thread, NULL, put_all, &s) == 0);
    while ((got = ep_url_pipe_get(&pipe, dst, cap, &room)) != 0) {
        if (got < 0) {
            ep_url_pipe_wait(&pipe);
            continue;
        }
        for (ssize_t i = 0; i < got; i++, at++)
            bad += dst[i] != at % 251;
        if (room) {
            (void)pthread_mutex_lock(&s.lock);
            s.room = true;
            (void)pthread_mutex_unlock(&s.lock);
        }
        cap = 1 + (cap * 7 + at) % sizeof dst;
    }
    ok(pthread_join(thread, NULL) == 0);
    ok(at == PIPE_BYTES && bad == 0 && pipe.cap == PIPE_MAX);
    ep_url_pipe_free(&pipe);
}

static void check_pipe(void)
{
    static char data[PIPE_MAX];
    struct ep_url_pipe p;
    size_t dropped = 0;
    bool room;

    ep_url_pipe_init(&p, PIPE_MAX);
    ok(ep_url_pipe_dry(&p));
    ok(ep_url_pipe_get(&p, data, 1, &room) == -1 && !room);
    ok(ep_url_pipe_put(&p, "abc", 3) && !ep_url_pipe_dry(&p));
    ok(ep_url_pipe_rewind(&p, &dropped) && dropped == 3);
    ok(ep_url_pipe_put(&p, data, PIPE_MAX) && !ep_url_pipe_put(&p, data, 1));
    ok(ep_url_pipe_get(&p, data, PIPE_MAX / 2 - 1, &room) == PIPE_MAX / 2 - 1);
    ok(!room); /* not half empty */
    ok(!ep_url_pipe_rewind(&p, &dropped));
    ok(ep_url_pipe_get(&p, data, 1, &room) == 1 && room);
    ok(ep_url_pipe_get(&p, data, 1, &room) == 1 && !room); /* once */
    ok(ep_url_pipe_put(&p, data, 1));
    ep_url_pipe_end(&p);
    ok(ep_url_pipe_get(&p, data, PIPE_MAX, &room) == PIPE_MAX / 2);
    ok(ep_url_pipe_get(&p, data, 1, &room) == 0 && !ep_url_pipe_dry(&p));
    ep_url_pipe_wait(&p); /* returns */
    ep_url_pipe_free(&p);
}

static void check_missing(void)
{
    struct ep_error err;

    ok(ep_url_start("http://u:p@127.0.0.1/", NULL, &err) == NULL);
    ok(err.code == EP_EMISSING);
    ok(strcmp(err.msg,
              "cannot read http://***@127.0.0.1/: this build has no "
              "libcurl") == 0);
}

static bool refuses(struct ep_url_limits lim)
{
    struct ep_error err = {0};

    return ep_url_start("http://127.0.0.1/", &lim, &err) == NULL &&
           err.code == EP_EUSAGE;
}

/* A port of this host at which nobody listens; *fd keeps it so. */
static int closed_port(int *fd)
{
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof a;

    *fd = socket(AF_INET, SOCK_STREAM, 0);
    if (*fd < 0 || bind(*fd, (struct sockaddr *)&a, sizeof a) != 0 ||
        getsockname(*fd, (struct sockaddr *)&a, &len) != 0)
        exit(99);
    return ntohs(a.sin_port);
}

static void check_errors(void)
{
    struct ep_url_limits lim = EP_URL_LIMITS_READ;
    struct ep_error err = {0};
    struct ep_url *u;
    char url[80], want[200], byte;
    int fd, port = closed_port(&fd);

    ok(ep_url_start("file:///etc/passwd", NULL, &err) == NULL);
    ok(err.code == EP_EUSAGE &&
       strcmp(err.msg,
              "cannot read file:///etc/passwd: neither http:// nor "
              "https://") == 0);
    ok(refuses((struct ep_url_limits){0, 0, 0, 0, 0}));
    ok(refuses((struct ep_url_limits){1, -1, 0, 0, 0}));
    ok(refuses((struct ep_url_limits){1, 0, NAN, 0, 0}));
    ok(refuses((struct ep_url_limits){1, 0, 0, 0, -1}));
    ok(refuses((struct ep_url_limits){1, 0, 0, 0, 31}));
    ep_url_close(NULL);

    lim.retries = 1;
    (void)snprintf(url, sizeof url, "http://u:p@127.0.0.1:%d/", port);
    (void)snprintf(want, sizeof want,
                   "cannot read http://***@127.0.0.1:%d/: Failed to connect to "
                   "127.0.0.1 port %d: %s (2 tries)",
                   port, port, strerror(ECONNREFUSED));
    u = ep_url_start(url, &lim, &err);
    ok(u != NULL);
    ok(u && ep_url_read(u, &byte, 1, &err) == EP_ESYS);
    ok(err.sys_errno == ECONNREFUSED);
    if (!ok(strcmp(err.msg, want) == 0))
        printf("# got %s\n", err.msg);
    ok(u && ep_url_read(u, &byte, 1, NULL) == EP_ESYS); /* is final */
    ok(u && !ep_url_would_wait(u));
    ep_url_close(u);

    u = ep_url_start("http://exa mple:x/", &lim, &err);
    ok(u && ep_url_read(u, &byte, 1, &err) == EP_EUSAGE);
    ep_url_close(u);
    (void)close(fd);
}

/* ---- with a server -------------------------------------------------------- */

struct options {
    struct ep_url_limits lim;
    size_t block;
    bool check;   /* bytes are offset % 251; their number is printed */
    bool reverse; /* the first block of each, from the last URL to the first */
    bool now;     /* never block */
};

static double option_value(const char *s)
{
    double x;

    if (!s || ep_num_double(s, -1e9, 1e9, &x, NULL) != 0)
        exit(98);
    return x;
}

static int parse_options(struct options *o, int argc, char **argv)
{
    int c;

    *o = (struct options){.lim = EP_URL_LIMITS_READ, .block = 65536};
    while ((c = getopt(argc, argv, "+c:t:s:m:r:b:pRn")) != -1) {
        double x = strchr("pRn?", c) ? 0 : option_value(optarg);

        switch (c) {
        case 'c':
            o->lim.connect_s = x;
            break;
        case 't':
            o->lim.total_s = x;
            break;
        case 's':
            o->lim.stall_s = x;
            break;
        case 'm':
            o->lim.max_bytes = (uint64_t)x;
            break;
        case 'r':
            o->lim.retries = (int)x;
            break;
        case 'b':
            o->block = (size_t)x;
            break;
        case 'p':
            o->check = true;
            break;
        case 'R':
            o->reverse = true;
            break;
        case 'n':
            o->now = true;
            break;
        default:
            exit(98);
        }
    }
    return optind;
}

struct reading {
    struct ep_url *u;
    uint64_t at, bad;
    bool ended;
};

static int failed(const struct ep_error *err)
{
    (void)fflush(stdout);
    (void)fprintf(stderr, "%d %d %s\n", err->code, err->sys_errno, err->msg);
    return 2;
}

/* One block of a URL. Returns 0, or 2 after an error. */
static int read_block(struct reading *r, const struct options *o, char *dst)
{
    struct timespec nap = {0, 1000000};
    struct ep_error err = {0};
    ssize_t got;

    if (r->ended)
        return 0;
    if (o->now) {
        while ((got = ep_url_read_now(r->u, dst, o->block, &err)) == EP_EAGAIN)
            (void)nanosleep(&nap, NULL);
    } else {
        got = ep_url_read(r->u, dst, o->block, &err);
    }
    r->ended = got <= 0;
    for (ssize_t i = 0; o->check && i < got; i++)
        r->bad += (unsigned char)dst[i] != (r->at + (uint64_t)i) % 251;
    if (got > 0 && !o->check && fwrite(dst, 1, (size_t)got, stdout) == 0)
        exit(97);
    r->at += got > 0 ? (uint64_t)got : 0;
    return got < 0 ? failed(&err) : 0;
}

/* read URL...: all are started, then read one after the other. */
static int verb_read(const struct options *o, int n, char **urls)
{
    struct reading *r = ep_calloc((size_t)n, sizeof *r);
    char *dst = ep_calloc(o->block, 1);
    struct ep_error err;
    int rc = 0;

    for (int i = 0; i < n; i++) {
        r[i].u = ep_url_start(urls[i], &o->lim, &err);
        if (!r[i].u) {
            rc = failed(&err);
            r[i].ended = true;
        }
    }
    for (int i = n - 1; o->reverse && i >= 0; i--)
        rc |= read_block(&r[i], o, dst);
    for (int i = 0; i < n; i++) {
        while (!r[i].ended)
            rc |= read_block(&r[i], o, dst);
        if (o->check)
            printf("%llu bytes, %llu wrong\n", (unsigned long long)r[i].at,
                   (unsigned long long)r[i].bad);
        ep_url_close(r[i].u);
    }
    free(dst);
    free(r);
    return rc;
}

/* rate URL: reads all, prints MB/s. */
static int verb_rate(const struct options *o, int n, char **urls)
{
    char *dst = ep_calloc(o->block, 1);
    struct ep_error err = {0};
    struct ep_url *u;
    double from = ep_clock_now(&ep_clock_mono), bytes = 0;
    ssize_t got = -1;

    u = n == 1 ? ep_url_start(urls[0], &o->lim, &err) : NULL;
    while (u && (got = ep_url_read(u, dst, o->block, &err)) > 0)
        bytes += (double)got;
    printf("%.0f MB/s\n", bytes * 1e-6 / (ep_clock_now(&ep_clock_mono) - from));
    ep_url_close(u);
    free(dst);
    return got == 0 ? 0 : failed(&err);
}

/* abort URL...: starts all, reads a block of the last and closes them. */
static int verb_abort(const struct options *o, int n, char **urls)
{
    struct reading *r = ep_calloc((size_t)n, sizeof *r);
    char *dst = ep_calloc(o->block, 1);
    struct ep_error err;
    ssize_t got = 0;

    for (int i = 0; i < n; i++)
        r[i].u = ep_url_start(urls[i], &o->lim, &err);
    if (n > 0)
        got = ep_url_read(r[n - 1].u, dst, o->block, &err);
    for (int i = 0; i < n; i++)
        ep_url_close(r[i].u);
    free(dst);
    free(r);
    return got > 0 ? 0 : 2;
}

/* leave URL...: exit() in the middle of it all. */
static int verb_leave(const struct options *o, int n, char **urls)
{
    struct reading *r = ep_calloc((size_t)n, sizeof *r);
    struct ep_error err;
    char byte;

    for (int i = 0; i < n; i++)
        r[i].u = ep_url_start(urls[i], &o->lim, &err);
    exit(n > 0 && ep_url_read(r[0].u, &byte, 1, &err) == 1 ? 7 : 2);
}

/* again N URL: N times open, read all and close, so that the thread starts and
 * stops. */
static int verb_again(const struct options *o, int n, char **args)
{
    int rc = 0;

    for (int i = 0; n > 1 && i < (int)option_value(args[0]); i++)
        rc |= verb_read(o, n - 1, args + 1);
    return rc;
}

/* fork URL: what the parent opened fails in the child, a new one works. */
static int verb_fork(const struct options *o, int n, char **urls)
{
    struct ep_error err;
    struct ep_url *u = ep_url_start(urls[0], &o->lim, &err);
    char byte;
    int status = 0, rc;
    pid_t pid;

    if (!u || ep_url_read(u, &byte, 1, &err) != 1)
        return failed(&err);
    (void)fflush(stdout);
    pid = fork();
    if (pid == 0) {
        (void)alarm(20);
        if (ep_url_read(u, &byte, 1, &err) != EP_ESYS || ep_url_would_wait(u))
            _exit(3);
        (void)puts(err.msg);
        rc = verb_read(o, n, urls);
        (void)fflush(stdout);
        _exit(rc);
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid)
        return 4;
    rc = ep_url_read(u, &byte, 1, &err) == 1 ? 0 : failed(&err);
    ep_url_close(u);
    return rc ? rc : WEXITSTATUS(status);
}

static int run_verb(const char *verb, int argc, char **argv)
{
    struct options o;
    int at = parse_options(&o, argc, argv);

    argc -= at;
    argv += at;
    if (strcmp(verb, "read") == 0)
        return verb_read(&o, argc, argv);
    if (strcmp(verb, "rate") == 0)
        return verb_rate(&o, argc, argv);
    if (strcmp(verb, "abort") == 0)
        return verb_abort(&o, argc, argv);
    if (strcmp(verb, "leave") == 0)
        return verb_leave(&o, argc, argv);
    if (strcmp(verb, "again") == 0)
        return verb_again(&o, argc, argv);
    return strcmp(verb, "fork") == 0 && argc > 0 ? verb_fork(&o, argc, argv)
                                                 : 98;
}

int main(int argc, char **argv)
{
    struct ep_error err;
    struct ep_url *u;

    if (argc > 1)
        return run_verb(argv[1], argc - 1, argv + 1);
    check_is();
    check_shown();
    check_head();
    check_pipe();
    check_pipe_threads();
    u = ep_url_start("http://127.0.0.1:1/", NULL, &err);
    if (u) {
        ep_url_close(u); /* at once */
        check_errors();
    } else {
        check_missing();
    }
    return tap_done();
}
