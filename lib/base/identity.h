/* SPDX-License-Identifier: Apache-2.0 */
/*
 * identity.h - which rank of which job this process is, from what launchers
 * put into the environment.
 */
#ifndef EP_BASE_IDENTITY_H
#define EP_BASE_IDENTITY_H

#include "base/err.h"

#include <stdint.h>

struct ep_identity {
    char host[65]; /* up to the first dot */
    char job[65];  /* "" without one */
    int64_t rank;  /* -1 without one */
};

/*
 * rank  the first that is set of RANK (torchrun), OMPI_COMM_WORLD_RANK
 *       (Open MPI), PMIX_RANK, PMI_RANK (MPICH), SLURM_PROCID (srun). The
 *       inner launcher comes first: under mpirun in a Slurm allocation
 *       SLURM_PROCID is the daemon's number, not the rank.
 * job   the first that is set of SLURM_JOB_ID, PBS_JOBID, LSB_JOBID
 *
 * lookup  as getenv(3), which is meant if it is NULL; for tests
 * Errors: EP_EUSAGE for a rank that is no number: "cannot use RANK='x':
 *         not a number".
 */
int ep_identity_get(struct ep_identity *id, char *(*lookup)(const char *name),
                    struct ep_error *err) EP_MUST_USE;

#endif
