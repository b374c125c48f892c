/* SPDX-License-Identifier: Apache-2.0 */
/* identity.c - see identity.h. */
#include "config.h"

#include "base/identity.h"

#include "base/num.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* First of the names that is set and not empty; *name says which. */
static const char *first_of(const char *const *names, size_t n,
                            char *(*lookup)(const char *), const char **name)
{
    for (size_t i = 0; i < n; i++) {
        const char *value = lookup(names[i]);

        if (value && *value) {
            *name = names[i];
            return value;
        }
    }
    return NULL;
}

int ep_identity_get(struct ep_identity *id, char *(*lookup)(const char *name),
                    struct ep_error *err)
{
    static const char *const ranks[] = {"RANK", "OMPI_COMM_WORLD_RANK",
                                        "PMIX_RANK", "PMI_RANK",
                                        "SLURM_PROCID"};
    static const char *const jobs[] = {"SLURM_JOB_ID", "PBS_JOBID",
                                       "LSB_JOBID"};
    const char *name = "", *text;
    char shown[64];

    if (!lookup)
        lookup = getenv;
    if (gethostname(id->host, sizeof id->host) != 0)
        id->host[0] = '\0';
    id->host[sizeof id->host - 1] = '\0';
    id->host[strcspn(id->host, ".")] = '\0';
    text = first_of(jobs, sizeof jobs / sizeof jobs[0], lookup, &name);
    (void)snprintf(id->job, sizeof id->job, "%s", text ? text : "");
    id->rank = -1;
    text = first_of(ranks, sizeof ranks / sizeof ranks[0], lookup, &name);
    if (text && ep_num_int(text, 0, INT32_MAX, &id->rank, err) < 0) {
        (void)ep_error_prefix(
            err, "cannot use %s='%s'", name,
            ep_escape(shown, sizeof shown, text, strlen(text)));
        if (err)
            err->code = EP_EUSAGE;
        return EP_EUSAGE;
    }
    return 0;
}
