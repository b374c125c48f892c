/* SPDX-License-Identifier: Apache-2.0 */
/* import_fr_entry.c - see import_fr.h. */
#include "config.h"

#include "record/import_fr.h"

#include "record/import_chrome_nccl.h"

#include <string.h>

#define NAME(text)                                                             \
    {                                                                          \
        text, sizeof(text) - 1                                                 \
    }

static const struct ep_span field_name[EP_FR_FIELDS] = {
    NAME("pg_id"),
    NAME("process_group"),
    NAME("collective_seq_id"),
    NAME("p2p_seq_id"),
    NAME("is_p2p"),
    NAME("profiling_name"),
    NAME("time_created_ns"),
    NAME("time_discovered_started_ns"),
    NAME("time_discovered_completed_ns"),
    NAME("duration_ms"),
    NAME("state"),
};

static const struct ep_span list_name[EP_FR_LISTS] = {
    NAME("input_sizes"),
    NAME("output_sizes"),
    NAME("input_dtypes"),
    NAME("output_dtypes"),
};

static bool same(struct ep_span a, struct ep_span b)
{
    return a.len == b.len && memcmp(a.ptr, b.ptr, a.len) == 0;
}

/* ["0", "default_pg"]: the name; older ones have the name alone. */
static int take_group(struct ep_fr_entry *e, struct ep_json *j,
                      const struct ep_json_value *v)
{
    struct ep_json_value first, more;
    int rc;

    e->field[EP_FR_GROUP] = *v;
    if (v->kind != EP_JSON_ARRAY)
        return 0;
    ep_json_enter(j);
    rc = ep_json_next(j, NULL, &first);
    if (rc > 0)
        e->field[EP_FR_GROUP] = first;
    while (rc > 0)
        rc = ep_json_next(j, NULL, &more);
    return rc;
}

static int take_field(struct ep_fr_entry *e, struct ep_json *j,
                      const struct ep_json_value *key,
                      const struct ep_json_value *v)
{
    for (int i = 0; i < EP_FR_FIELDS; i++)
        if (same(key->raw, field_name[i])) {
            if (i == EP_FR_GROUP)
                return take_group(e, j, v);
            e->field[i] = *v;
            return 0;
        }
    for (int i = 0; v->kind == EP_JSON_ARRAY && i < EP_FR_LISTS; i++)
        if (same(key->raw, list_name[i]))
            return ep_json_skip(j, &e->list[i]);
    return 0;
}

int ep_fr_entry_take(struct ep_fr_entry *e, struct ep_json *j,
                     const struct ep_json_value *root)
{
    struct ep_json_value key, v;
    int rc;

    memset(e->field, 0, sizeof e->field);
    memset(e->list, 0, sizeof e->list);
    if (root->kind != EP_JSON_OBJECT)
        return ep_error_set(j->err, EP_EFORMAT, "entry is not an object");
    ep_json_enter(j);
    while ((rc = ep_json_next(j, &key, &v)) > 0) {
        rc = take_field(e, j, &key, &v);
        if (rc < 0)
            return rc;
    }
    return rc;
}

/* Elements in [4, 1024]; -1 if that is no array of sizes, or too many. */
static int64_t elements(struct ep_json *j)
{
    struct ep_json_value v;
    int64_t n = 1, x;
    int rc;

    ep_json_enter(j);
    while ((rc = ep_json_next(j, NULL, &v)) > 0) {
        if (ep_json_int(&v, &x) < 0 || x < 0 ||
            (x && n > (INT64_C(1) << 53) / x))
            n = -1;
        else if (n >= 0)
            n *= x;
        if (n < 0)
            x = 0;
    }
    return rc < 0 ? -1 : n;
}

/* There are no such lists. */
#define ABSENT (-2)

/* Bytes of all tensors of [[4, 1024], [8]] and ["Float", "Half"]; -1 if that
 * cannot be told. */
static int64_t tensor_bytes(struct ep_span sizes, struct ep_span dtypes)
{
    struct ep_json js, jd;
    struct ep_json_value s, d;
    int64_t total = 0;
    int more;

    if (!sizes.ptr || !dtypes.ptr)
        return ABSENT;
    if (ep_json_begin(&js, sizes.ptr, sizes.len, &s, NULL) < 0 ||
        ep_json_begin(&jd, dtypes.ptr, dtypes.len, &d, NULL) < 0)
        return -1;
    ep_json_enter(&js);
    ep_json_enter(&jd);
    while ((more = ep_json_next(&js, NULL, &s)) > 0) {
        int64_t each = 0, n;

        if (s.kind != EP_JSON_ARRAY)
            return -1;
        n = elements(&js);
        if (ep_json_next(&jd, NULL, &d) > 0 && d.kind == EP_JSON_STRING)
            each = ep_chrome_nccl_dtype_bytes(d.raw);
        if (n < 0 || each == 0 || n > (INT64_C(1) << 52) / each)
            return -1;
        total += n * each;
        if (total > INT64_C(1) << 52)
            return -1;
    }
    return more < 0 ? -1 : total;
}

int64_t ep_fr_entry_bytes(const struct ep_fr_entry *e)
{
    int64_t in =
        tensor_bytes(e->list[EP_FR_IN_SIZES], e->list[EP_FR_IN_DTYPES]);
    int64_t out =
        tensor_bytes(e->list[EP_FR_OUT_SIZES], e->list[EP_FR_OUT_DTYPES]);

    if (in == -1 || out == -1 || (in == ABSENT && out == ABSENT))
        return -1;
    return in > out ? in : out;
}
