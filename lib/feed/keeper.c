/* SPDX-License-Identifier: Apache-2.0 */
/* keeper.c - see keeper.h. */
#include "config.h"

#include "feed/keeper.h"

#include "base/clock.h"

#include <string.h>

/* While the program runs, the state is written so often. */
#define WRITE_EVERY 60.0 /* s */

/* Records between two looks at the clock. */
#define LOOK 4096

static int64_t load(struct ep_keeper *k, const char *path, struct ep_error *err)
{
    struct ep_buf bytes;
    char shown[160];
    int64_t rc;

    (void)ep_escape(shown, sizeof shown, path, strlen(path));
    ep_buf_init(&bytes);
    rc = ep_statefile_read(k->file, &bytes, err);
    if (rc > 0) {
        rc = ep_state_load(&k->what, (struct ep_span){bytes.ptr, bytes.len},
                           err);
        if (rc < 0)
            (void)ep_error_prefix(err, "cannot read state %s", shown);
        else
            rc = (int64_t)bytes.len;
    }
    ep_buf_free(&bytes);
    return rc;
}

int64_t ep_keeper_open(struct ep_keeper *k, const char *path,
                       struct ep_error *err)
{
    int64_t rc;

    if (!path)
        return 0;
    k->file = ep_statefile_open(path, "skewdetect", err);
    if (!k->file)
        return err->code;
    k->written = ep_clock_now(&ep_clock_mono);
    rc = load(k, path, err);
    if (rc < 0)
        ep_keeper_close(k);
    return rc;
}

bool ep_keeper_is_due(struct ep_keeper *k, bool waits)
{
    k->dirty = k->dirty || !waits;
    if (!k->file || !k->dirty || (!waits && ++k->taken % LOOK))
        return false;
    return ep_clock_now(&ep_clock_mono) - k->written >= WRITE_EVERY;
}

int ep_keeper_write(struct ep_keeper *k, struct ep_error *err)
{
    struct ep_archive a;
    int rc;

    if (!k->file)
        return 0;
    rc = ep_state_save(&k->what, &a, PACKAGE_VERSION, err);
    if (rc < 0)
        (void)ep_error_prefix(err, "cannot keep the state");
    else
        rc = ep_statefile_write(k->file, (struct ep_span){a.out.ptr, a.out.len},
                                err);
    ep_archive_free(&a);
    k->written = ep_clock_now(&ep_clock_mono);
    k->dirty = false;
    return rc;
}

void ep_keeper_close(struct ep_keeper *k)
{
    ep_statefile_close(k->file);
    k->file = NULL;
}
