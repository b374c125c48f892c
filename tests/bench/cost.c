/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cost.c - what a command costs.
 *
 *     cost FILE COMMAND [ARG ...]
 *
 * runs the command and writes to FILE a line with the seconds that passed, the
 * seconds of CPU that it used (of all its threads, user and system), and the
 * most memory that it held, in KiB, as wait4(2) has it. Exits as the command.
 */
#include "config.h"

#include "base/clock.h"

#include <stdio.h>
#include <sys/resource.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

static double seconds(struct timeval t)
{
    return (double)t.tv_sec + 1e-6 * (double)t.tv_usec;
}

int main(int argc, char **argv)
{
    double begun = ep_clock_now(&ep_clock_mono);
    struct rusage use;
    int status;
    pid_t pid;
    FILE *f;

    if (argc < 3) {
        (void)fputs("usage: cost FILE COMMAND [ARG ...]\n", stderr);
        return 2;
    }
    pid = fork();
    if (pid == 0) {
        (void)execvp(argv[2], argv + 2);
        perror(argv[2]);
        _exit(127);
    }
    if (pid < 0 || wait4(pid, &status, 0, &use) != pid) {
        perror("cost");
        return 2;
    }
    f = fopen(argv[1], "w");
    if (!f ||
        fprintf(f, "%.6f %.6f %ld\n", ep_clock_now(&ep_clock_mono) - begun,
                seconds(use.ru_utime) + seconds(use.ru_stime),
                use.ru_maxrss) < 0 ||
        fclose(f) != 0) {
        perror(argv[1]);
        return 2;
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}
