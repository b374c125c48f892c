/* SPDX-License-Identifier: Apache-2.0 */
/*
 * import_pickle.c - Python pickles, which are recognised and refused.
 *
 * PyTorch's Flight Recorder writes its dumps to disk as pickles. A pickle is a
 * program for a machine that can call any Python function, so reading it is
 * left to Python, to one who trusts the file. What can be done here is to say
 * how.
 */
#include "config.h"

#include "record/importers.h"

#include <string.h>

static bool is_zip(const char *head, size_t len)
{
    return len >= 4 && memcmp(head, "PK\3\4", 4) == 0;
}

/* PROTO 2 to 5 begins a pickle; torch.save packs one into a zip archive. */
static int sniff(const char *head, size_t len, const char *name)
{
    static const char member[] = "data.pkl";

    (void)name;
    if (len >= 2 && head[0] == '\x80' && head[1] >= 2 && head[1] <= 5)
        return 80;
    return is_zip(head, len) &&
                   memmem(head, len, member, sizeof member - 1) != NULL
               ? 80
               : 0;
}

/* The end of a path that is too long to be shown with the hint. */
static const char *tail(const char *path)
{
    size_t n = strlen(path);

    return n > 80 ? path + n - 80 : path;
}

static int next(void *self, struct ep_source *s, struct ep_record *r,
                struct ep_error *err)
{
    const char *load = "pickle.load(open(sys.argv[1],\"rb\"))";
    const char *module = "pickle";
    char head[4];
    long n = ep_source_read(s, head, sizeof head, err);

    (void)self;
    (void)r;
    if (n < 0)
        return (int)n;
    s->over = true;
    if (is_zip(head, (size_t)n)) {
        load = "torch.load(sys.argv[1])";
        module = "torch";
    }
    return ep_error_set(err, EP_EFORMAT,
                        "cannot read %s: a Python pickle; if you trust it: "
                        "python3 -c 'import json,%s,sys;json.dump(%s,"
                        "sys.stdout)' FILE >FILE.json",
                        tail(s->name), module, load);
}

const struct ep_importer ep_import_pickle = {
    .name = "pickle",
    .what = "(Python pickles: refused, with the way to convert them)",
    .sniff = sniff,
    .next = next,
};
