/* SPDX-License-Identifier: Apache-2.0 */
/* test_identity.c - rank and job from what launchers set. */
#include "config.h"

#include "base/identity.h"
#include "tap.h"

#include <string.h>

/* The environment of the case at hand: NAME VALUE NAME VALUE ... NULL. */
static const char *const *env;

static char *lookup(const char *name)
{
    for (const char *const *e = env; e[0]; e += 2)
        if (strcmp(e[0], name) == 0)
            return (char *)e[1]; /* never written to */
    return NULL;
}

static const struct {
    const char *env[9];
    int64_t rank;
    const char *job;
} cases[] = {
    {{NULL}, -1, ""},
    {{"SLURM_PROCID", "3", "SLURM_JOB_ID", "77", NULL}, 3, "77"},
    {{"OMPI_COMM_WORLD_RANK", "5", NULL}, 5, ""},
    {{"PMI_RANK", "6", NULL}, 6, ""},
    {{"RANK", "0", "PBS_JOBID", "9.srv", NULL}, 0, "9.srv"},
    /* mpirun in a Slurm allocation: SLURM_PROCID is the daemon's */
    {{"SLURM_PROCID", "0", "OMPI_COMM_WORLD_RANK", "12", NULL}, 12, ""},
    {{"SLURM_PROCID", "1", "RANK", "9", NULL}, 9, ""},
    {{"RANK", "", "SLURM_PROCID", "2", NULL}, 2, ""},
};

int main(void)
{
    static const char *const bad[] = {"RANK", "12x", NULL};
    static const char *const huge[] = {"SLURM_PROCID", "99999999999", NULL};
    struct ep_identity id;
    struct ep_error err;

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        env = cases[i].env;
        ok(ep_identity_get(&id, lookup, &err) == 0);
        ok(id.rank == cases[i].rank);
        ok(strcmp(id.job, cases[i].job) == 0);
        ok(strchr(id.host, '.') == NULL);
    }
    env = bad;
    ok(ep_identity_get(&id, lookup, &err) == EP_EUSAGE);
    ok(strcmp(err.msg, "cannot use RANK='12x': not a number") == 0);
    env = huge;
    ok(ep_identity_get(&id, lookup, &err) == EP_EUSAGE);
    ok(err.code == EP_EUSAGE);
    return tap_done();
}
