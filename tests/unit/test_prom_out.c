/* SPDX-License-Identifier: Apache-2.0 */
/* test_prom_out.c - when and how the file of metrics is written. */
#include "config.h"

#include "record/prom_out.h"
#include "tap.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static char folder[] = "/tmp/evenpace-prom-XXXXXX", path[64];
static int complaints;
static char said[400];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void complain(void *ctx, const struct ep_error *err)
{
    (void)ctx;
    (void)pthread_mutex_lock(&lock);
    complaints++;
    (void)snprintf(said, sizeof said, "%.390s", err->msg);
    (void)pthread_mutex_unlock(&lock);
}

static int complained(void)
{
    int n;

    (void)pthread_mutex_lock(&lock);
    n = complaints;
    (void)pthread_mutex_unlock(&lock);
    return n;
}

static void add(struct ep_prom_out *o, int step)
{
    struct ep_record r;

    ep_record_begin(&r, EP_STEP);
    ep_record_set_num(&r, EP_K_TS, 100 + step);
    ep_record_set_int(&r, EP_K_STEP, step);
    ep_record_set_num(&r, EP_K_DUR, 1);
    ep_prom_out_add(o, &r);
}

/* The step that the file has; -1: no file, or nothing of it. */
static int step_in_file(void)
{
    FILE *f = fopen(path, "r");
    char line[300];
    int step = -1;

    while (f && fgets(line, sizeof line, f))
        if (strncmp(line, "evenpace_step ", 14) == 0)
            step = (int)strtol(line + 14, NULL, 10);
    if (f)
        (void)fclose(f);
    return step;
}

static double now(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void nap(void)
{
    struct timespec t = {0, 10000000};

    (void)nanosleep(&t, NULL);
}

/* Until the file has the step; false after 20 s. */
static bool comes(int step)
{
    double until = now() + 20;

    while (step_in_file() != step && now() < until)
        nap();
    return step_in_file() == step;
}

static void test_waits(void)
{
    struct ep_error err;
    struct ep_prom_out *o;
    struct stat st;
    double begun;

    (void)umask(077);
    o = ep_prom_out_open(path, complain, NULL, &err);
    ok(o != NULL);
    ok(access(path, F_OK) != 0);
    ep_prom_out_wait(o); /* nothing to write yet */
    ok(access(path, F_OK) != 0);
    add(o, 1);
    ok(access(path, F_OK) != 0);
    begun = now();
    ep_prom_out_wait(o);
    ok(step_in_file() == 1);
    ok(stat(path, &st) == 0 && (st.st_mode & 07777) == 0644);
    /* a second one within a second comes by itself, and not before */
    add(o, 2);
    ep_prom_out_wait(o);
    ok(step_in_file() == 1 || now() - begun >= 1);
    ok(comes(2));
    ok(now() - begun >= 1);
    add(o, 3);
    ep_prom_out_wait(o);
    ep_prom_out_back(o);
    add(o, 4);
    ok(ep_prom_out_refused(o) == 0);
    ok(ep_prom_out_close(o, true, &err) == 0);
    ok(step_in_file() == 4);
    ok(complained() == 0);
    (void)umask(022);
}

/* What is there stays if it cannot be written; then it is tried again. */
static void test_failure(void)
{
    struct ep_error err = {.code = 0};
    struct ep_prom_out *o = ep_prom_out_open(path, complain, NULL, &err);
    char away[80];
    double until = now() + 20;

    (void)snprintf(away, sizeof away, "%s.away", folder);
    ok(chmod(path, 0600) == 0);
    add(o, 5);
    ep_prom_out_wait(o);
    ok(step_in_file() == 5);
    ok(rename(folder, away) == 0);
    add(o, 6);
    ep_prom_out_wait(o);
    while (!complained() && now() < until)
        nap();
    ok(complained() == 1);
    ok(strstr(said, "cannot create ") != NULL);
    for (int i = 0; i < 150; i++)
        nap(); /* it fails again, and is not said again */
    ok(complained() == 1);
    ok(rename(away, folder) == 0);
    ok(comes(6));
    ep_prom_out_back(o);
    ok(rename(folder, away) == 0);
    ok(ep_prom_out_close(o, true, &err) == 0); /* nothing new */
    ok(rename(away, folder) == 0);
    o = ep_prom_out_open(path, complain, NULL, &err);
    add(o, 7);
    ep_prom_out_wait(o);
    add(o, 8);
    ok(rename(folder, away) == 0);
    ok(ep_prom_out_close(o, true, &err) == EP_ESYS);
    ok(strstr(err.msg, "cannot create ") != NULL);
    ok(rename(away, folder) == 0);
    ok(step_in_file() == 7);
}

static void test_not_kept(void)
{
    struct ep_error err;
    struct ep_prom_out *o = ep_prom_out_open(path, complain, NULL, &err);

    add(o, 9);
    ok(ep_prom_out_close(o, false, &err) == 0);
    ok(step_in_file() == 7);
    ok(ep_prom_out_open("/nonexistent/x.prom", complain, NULL, &err) == NULL);
    ok(err.code == EP_ESYS);
    /* what is no file is written once, at the end */
    o = ep_prom_out_open("/dev/full", complain, NULL, &err);
    ok(o && !ep_prom_out_is_stdout(o));
    add(o, 1);
    ep_prom_out_wait(o);
    ok(ep_prom_out_close(o, true, &err) == EP_ESYS);
    ok(strcmp(err.msg, "cannot write /dev/full: No space left on device") == 0);
}

int main(void)
{
    ok(mkdtemp(folder) != NULL);
    (void)snprintf(path, sizeof path, "%s/x.prom", folder);
    test_waits();
    test_failure();
    test_not_kept();
    ok(unlink(path) == 0);
    ok(rmdir(folder) == 0); /* nothing else was left in it */
    return tap_done();
}
