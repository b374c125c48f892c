/* SPDX-License-Identifier: Apache-2.0 */
/* compare_pair.h - for tests of ckpt/compare.h: the files a and b, compared. */
#ifndef EP_COMPARE_PAIR_H
#define EP_COMPARE_PAIR_H

#include "ckpt/compare.h"

#include "ckpt_make.h"

static inline struct ep_ckpt *must_open(const char *path)
{
    struct ep_error err = {0};
    struct ep_ckpt *c = ep_ckpt_open(path, &err);

    if (!c) {
        printf("Bail out! %s\n", err.msg);
        exit(1);
    }
    return c;
}

static struct ep_ckpt *opened_a, *opened_b;

/* Compare files a and b, which stay open until close_pair. */
static inline struct ep_compare compare(int threads)
{
    struct ep_compare_options opt = {.threads = threads};
    struct ep_error err = {0};
    struct ep_compare r;

    if (!opened_a) {
        opened_a = must_open("a");
        opened_b = must_open("b");
    }
    if (ep_compare_run(&r, opened_a, opened_b, &opt, &err) != 0) {
        printf("Bail out! %s\n", err.msg);
        exit(1);
    }
    return r;
}

static inline void close_pair(void)
{
    ep_ckpt_close(opened_a);
    ep_ckpt_close(opened_b);
    opened_a = opened_b = NULL;
}

static inline void done(struct ep_compare *r)
{
    ep_compare_free(r);
    close_pair();
}

static inline const struct ep_compared *find(const struct ep_compare *r,
                                             const char *name)
{
    for (size_t i = 0; i < r->n; i++)
        if (ep_span_eq(r->tensor[i].name, name))
            return &r->tensor[i];
    printf("Bail out! no tensor %s\n", name);
    exit(1);
}

static inline int prints(const struct ep_compare *r, enum ep_ckpt_format format,
                         bool all, const char *want)
{
    struct ep_compare_options opt = {.format = format, .all = all};
    struct ep_buf out;
    int same;

    ep_buf_init(&out);
    ep_compare_print(r, &opt, &out);
    same = strcmp(out.ptr, want) == 0;
    if (!same)
        printf("# got:\n%s# want:\n%s", out.ptr, want);
    ep_buf_free(&out);
    return same;
}

static inline int says(const struct ep_compare *r, const char *want)
{
    struct ep_buf out;
    int same;

    ep_buf_init(&out);
    ep_compare_add_verdict(r, &out);
    same = strcmp(out.ptr, want) == 0;
    if (!same)
        printf("# got:  %s\n# want: %s\n", out.ptr, want);
    ep_buf_free(&out);
    return same;
}

#endif
