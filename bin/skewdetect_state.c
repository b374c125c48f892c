/* SPDX-License-Identifier: Apache-2.0 */
/* skewdetect_state.c - see skewdetect_state.h. */
#include "config.h"

#include "skewdetect_state.h"

#include "base/cli.h"
#include "base/clock.h"

#include <string.h>

/* While the program runs, the state is written so often. */
#define WRITE_EVERY 60.0 /* s */

/* Records between two looks at the clock. */
#define LOOK 4096

static int load(struct memory *m, const char *path, bool verbose,
                struct ep_error *err)
{
    struct ep_buf bytes;
    char shown[160];
    int rc;

    (void)ep_escape(shown, sizeof shown, path, strlen(path));
    ep_buf_init(&bytes);
    rc = ep_statefile_read(m->file, &bytes, err);
    if (rc > 0) {
        rc = ep_state_load(&m->what, (struct ep_span){bytes.ptr, bytes.len},
                           err);
        if (rc < 0)
            (void)ep_error_prefix(err, "cannot read state %s", shown);
        else if (verbose)
            ep_cli_warn("going on with state %s (%zu bytes)", shown, bytes.len);
    } else if (rc == 0 && verbose) {
        ep_cli_warn("beginning anew: there is no state %s yet", shown);
    }
    ep_buf_free(&bytes);
    return rc;
}

int memory_open(struct memory *m, const char *path, bool verbose,
                struct ep_error *err)
{
    int rc;

    if (!path)
        return 0;
    m->file = ep_statefile_open(path, "skewdetect", err);
    if (!m->file)
        return err->code;
    m->written = ep_clock_now(&ep_clock_mono);
    rc = load(m, path, verbose, err);
    if (rc < 0)
        memory_close(m);
    return rc;
}

bool memory_is_due(struct memory *m, bool waits)
{
    m->dirty = m->dirty || !waits;
    if (!m->file || !m->dirty || (!waits && ++m->taken % LOOK))
        return false;
    return ep_clock_now(&ep_clock_mono) - m->written >= WRITE_EVERY;
}

int memory_write(struct memory *m, struct ep_error *err)
{
    struct ep_archive a;
    int rc;

    if (!m->file)
        return 0;
    rc = ep_state_save(&m->what, &a, PACKAGE_VERSION, err);
    if (rc < 0)
        (void)ep_error_prefix(err, "cannot keep the state");
    else
        rc = ep_statefile_write(m->file, (struct ep_span){a.out.ptr, a.out.len},
                                err);
    ep_archive_free(&a);
    m->written = ep_clock_now(&ep_clock_mono);
    m->dirty = false;
    return rc;
}

void memory_close(struct memory *m)
{
    ep_statefile_close(m->file);
    m->file = NULL;
}
