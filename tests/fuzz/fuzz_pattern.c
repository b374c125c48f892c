/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_pattern.c - the first line as a regular expression, the others as a log:
 * it is refused with a reason, or its matches are records; and what is found
 * with the literal of the expression is what is found without. The whole as a
 * log through a fixed set of patterns, and as a file of patterns.
 */
#include "config.h"

#include "base/mem.h"
#include "nccl_check.h"
#include "record/importers.h"
#include "record/pattern.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The records of a line, or the first error, as text. */
static void matches(const struct ep_patterns *p, struct ep_span line,
                    struct nccl_check *c)
{
    struct ep_pattern_cursor cursor;
    struct ep_record r;
    struct ep_error err = {.code = 0};
    int rc = 0;

    ep_pattern_cursor_init(&cursor, 1800000000);
    if (ep_pattern_begin(&cursor, p, line)) {
        while ((rc = ep_pattern_next(&cursor, p, &r, &err)) > 0)
            nccl_check_record(&r, c);
        nccl_require(rc == 0 || (rc == err.code && err.msg[0]), "a reason");
    }
    ep_buf_addf(&c->out, "%d\n", rc);
    ep_pattern_cursor_free(&cursor);
}

/* The same expression, in which no literal is found. */
static void check_literal(const char *regex, struct ep_span log)
{
    static const struct ep_pattern_set set[] = {
        {"name", "x"}, {"value", "1"}, {"unit", "1"}};
    struct ep_pattern_spec spec = {
        .name = "fuzz", .type = "gauge", .regex = regex, .set = set, .nset = 3};
    struct ep_patterns *with = ep_patterns_new(), *without = ep_patterns_new();
    struct nccl_check a = {.keep = true}, b = {.keep = true};
    struct ep_error err = {.code = 0};
    struct ep_buf group;

    ep_buf_init(&a.out);
    ep_buf_init(&b.out);
    ep_buf_init(&group);
    ep_buf_addf(&group, "(?:%s)", regex);
    if (ep_patterns_add(with, &spec, &err) < 0) {
        nccl_require(err.code < 0 && err.msg[0], "a reason");
    } else {
        spec.regex = group.ptr;
        /* (*VERB)s and the like are not the same within brackets */
        if (ep_patterns_add(without, &spec, NULL) == 0) {
            matches(with, log, &a);
            matches(without, log, &b);
            nccl_require(strstr(a.out.ptr, "-5\n") ||
                             strstr(b.out.ptr, "-5\n") ||
                             (a.out.len == b.out.len &&
                              memcmp(a.out.ptr, b.out.ptr, a.out.len) == 0),
                         "the literal changes nothing");
        }
    }
    ep_buf_free(&a.out);
    ep_buf_free(&b.out);
    ep_buf_free(&group);
    ep_patterns_free(with);
    ep_patterns_free(without);
}

static const struct ep_patterns *fixed(void)
{
    static struct ep_patterns *p;
    static const char *const text[][2] = {
        {"step (?<step>\\S+) (?:took )?(?<dur>[\\w.]+)", "step"},
        {"(?<value>[-\\d.,]+\\S*)", "gauge,name=x,unit=1"},
        {"^(?<ts>[^|]+)\\|(?<rank>\\d+)\\|(?<host>.*)$",
         "gauge,name=x,unit=1,value=2ms"},
    };
    struct ep_error err;

    if (p)
        return p;
    p = ep_patterns_new();
    for (size_t i = 0; i < sizeof text / sizeof *text; i++) {
        int rc = ep_patterns_add_text(p, text[i][0], text[i][1],
                                      (enum ep_pattern_bars)i, &err);

        nccl_require(rc == 0 || rc == EP_EMISSING, "it compiles");
    }
    return p;
}

static void check_file(const uint8_t *data, size_t size)
{
    struct ep_patterns *p = ep_patterns_new();
    struct ep_error err = {.code = 0};
    int fd = memfd_create("pattern", MFD_CLOEXEC);
    char path[64];
    int rc;

    nccl_require(fd >= 0 && write(fd, data, size) == (ssize_t)size, "memfd");
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    rc = ep_patterns_load(p, path, &err);
    nccl_require(rc == 0 || (rc == err.code && err.msg[0]), "a reason");
    (void)close(fd);
    ep_patterns_free(p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct nccl_check check = {.keep = false};
    const char *text = (const char *)data, *nl = memchr(data, '\n', size);

    if (size >= 2 && data[0] == 0x1f) /* gzip is not what is tested */
        return 0;
    if (nl) {
        char *regex = ep_strndup(text, (size_t)(nl - text));

        check_literal(regex,
                      (struct ep_span){nl + 1, size - (size_t)(nl + 1 - text)});
        free(regex);
    }
    ep_import_pattern_use(fixed());
    nccl_check(&ep_import_pattern, data, size, &check);
    ep_import_pattern_use(NULL);
    check_file(data, size);
    return 0;
}
