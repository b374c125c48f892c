/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_env.c - any bytes as an environment: refused with a reason, or accepted
 * with everything in range, and then every method runs to its end or is given
 * up in order.
 */
#include "config.h"

#include "base/mem.h"
#include "lsgd/env.h"
#include "lsgd/links.h"
#include "lsgd/sim.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int condition)
{
    if (!condition)
        abort();
}

static void check(const struct ep_env *e)
{
    require(e->nregions >= 1 && e->nregions <= EP_LINKS_REGIONS);
    require(e->nworkers >= e->nregions && e->nworkers <= EP_ENV_WORKERS);
    require(e->gps_region < e->nregions && e->step > 0 && e->fastest > 0);
    for (size_t i = 0; i < e->nregions * e->nregions; i++)
        require(e->gbit_s[i] > 0 && isfinite(e->gbit_s[i]));
    for (size_t w = 0; w < e->nworkers; w++)
        require(e->speed[w] > 0 && e->speed[w] <= e->fastest &&
                e->region_of[w] < e->nregions);
    for (size_t i = 0; i < e->nfailures; i++)
        require(e->failure[i].worker < e->nworkers &&
                e->failure[i].down <= e->failure[i].up);
}

static void run(struct ep_env *e)
{
    e->max_events = 2000;
    for (int m = 0; m < EP_METHODS; m++) {
        struct ep_error err = {.code = 0};
        struct ep_sim_result o;
        int rc;

        if (!e->method[m].given)
            continue;
        rc = ep_sim_run(e, (enum ep_method)m, &e->method[m], NULL, NULL, &o,
                        &err);
        if (rc < 0) {
            require(rc == EP_ELIMIT && err.msg[0]);
            continue;
        }
        require(o.seconds >= 0 && o.steps >= e->total_steps &&
                o.unsent + o.pending <= o.worker_updates);
        ep_sim_result_free(&o);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = ep_strndup((const char *)data, size);
    struct ep_error err = {.code = 0};
    struct ep_env e;

    if (ep_env_parse(&e, text, size, &err) < 0) {
        require(err.code < 0 && err.msg[0]);
    } else {
        check(&e);
        run(&e);
        ep_env_free(&e);
    }
    free(text);
    return 0;
}
