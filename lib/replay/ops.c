/* SPDX-License-Identifier: Apache-2.0 */
/* ops.c - see ops.h. */
#include "config.h"

#include "replay/ops.h"

#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

/* In alphabetical order: operations that begin at the same time with the same
   number are put in the order of their types. */
static const struct {
    const char *name, *cls;
    enum ep_op_role role;
} known[] = {
    {"backward-compute", NULL, EP_OP_BACKWARD},
    {"backward-recv", "backward-pp-comm", EP_OP_BACKWARD_RECV},
    {"backward-send", "backward-pp-comm", EP_OP_BACKWARD_SEND},
    {"embedding-grads-all-reduce", NULL, EP_OP_EMBEDDING},
    {"forward-compute", NULL, EP_OP_FORWARD},
    {"forward-recv", "forward-pp-comm", EP_OP_FORWARD_RECV},
    {"forward-send", "forward-pp-comm", EP_OP_FORWARD_SEND},
    {"gc", NULL, EP_OP_GC},
    {"grads-reduce-scatter", NULL, EP_OP_REDUCE},
    {"layernorm-grads-all-reduce", NULL, EP_OP_LAYERNORM},
    {"optimizer", NULL, EP_OP_OPTIMIZER},
    {"optimizer-clip-main-grad", NULL, EP_OP_CLIP},
    {"params-all-gather", NULL, EP_OP_PARAMS},
    {"separate-grads-all-reduce", NULL, EP_OP_SEPARATE},
};

enum { KNOWN = sizeof known / sizeof known[0] };

struct ep_ops {
    size_t types, classes;
    char *name[EP_OPS_MAX];
    enum ep_op_role role[EP_OPS_MAX];
    size_t cls[EP_OPS_MAX];
    char *cls_name[EP_OPS_MAX];
};

const char *ep_op_role_name(enum ep_op_role role)
{
    for (size_t i = 0; i < KNOWN; i++)
        if (known[i].role == role)
            return known[i].name;
    return role == EP_OP_COMPUTE ? "compute" : "ignore";
}

/* The class of a name, new if need be. There are never more than types. */
static size_t add_class(struct ep_ops *o, const char *name, size_t len)
{
    for (size_t i = 0; i < o->classes; i++)
        if (ep_span_eq((struct ep_span){name, len}, o->cls_name[i]))
            return i;
    o->cls_name[o->classes] = ep_strndup(name, len);
    return o->classes++;
}

static void add_type(struct ep_ops *o, struct ep_span name,
                     enum ep_op_role role, struct ep_span cls)
{
    int at = ep_ops_find(o, name);

    if (at < 0) {
        at = (int)o->types++;
        o->name[at] = ep_strndup(name.ptr, name.len);
    }
    o->role[at] = role;
    o->cls[at] = add_class(o, cls.ptr, cls.len);
}

struct ep_ops *ep_ops_new(void)
{
    struct ep_ops *o = ep_calloc(1, sizeof *o);

    for (size_t i = 0; i < KNOWN; i++) {
        const char *cls = known[i].cls ? known[i].cls : known[i].name;

        add_type(o, (struct ep_span){known[i].name, strlen(known[i].name)},
                 known[i].role, (struct ep_span){cls, strlen(cls)});
    }
    return o;
}

void ep_ops_free(struct ep_ops *o)
{
    if (!o)
        return;
    for (size_t i = 0; i < o->types; i++)
        free(o->name[i]);
    for (size_t i = 0; i < o->classes; i++)
        free(o->cls_name[i]);
    free(o);
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

/* Take the next word off a line; empty at its end. */
static struct ep_span take_word(struct ep_span *line)
{
    struct ep_span w;

    while (line->len && is_blank(*line->ptr)) {
        line->ptr++;
        line->len--;
    }
    w = (struct ep_span){line->ptr, 0};
    while (line->len && !is_blank(*line->ptr)) {
        line->ptr++;
        line->len--;
        w.len++;
    }
    return w;
}

static bool find_role(struct ep_span word, enum ep_op_role *role)
{
    for (int r = 0; r < EP_OP_ROLES; r++)
        if (ep_span_eq(word, ep_op_role_name((enum ep_op_role)r))) {
            *role = (enum ep_op_role)r;
            return true;
        }
    return false;
}

/* What a role's operations are reported under if the text does not say. */
static const char *role_class(enum ep_op_role role)
{
    for (size_t i = 0; i < KNOWN; i++)
        if (known[i].role == role && known[i].cls)
            return known[i].cls;
    return ep_op_role_name(role);
}

static int read_line(struct ep_ops *o, struct ep_span line, size_t number,
                     struct ep_error *err)
{
    struct ep_span name = take_word(&line), role = take_word(&line),
                   cls = take_word(&line);
    enum ep_op_role r;
    char shown[64];

    if (!name.len || *name.ptr == '#')
        return 0;
    if (memchr(name.ptr, '\0', name.len) || memchr(cls.ptr, '\0', cls.len))
        return ep_error_set(err, EP_EFORMAT, "line %zu: a NUL byte", number);
    if (!role.len)
        return ep_error_set(err, EP_EFORMAT, "line %zu: no role", number);
    if (!find_role(role, &r))
        return ep_error_set(err, EP_EFORMAT, "line %zu: no such role: %s",
                            number,
                            ep_escape(shown, sizeof shown, role.ptr, role.len));
    if (take_word(&line).len)
        return ep_error_set(err, EP_EFORMAT,
                            "line %zu: more than name, role and class", number);
    if (!cls.len)
        cls = (struct ep_span){role_class(r), strlen(role_class(r))};
    if ((o->types == EP_OPS_MAX && ep_ops_find(o, name) < 0) ||
        o->classes == EP_OPS_MAX)
        return ep_error_set(err, EP_ELIMIT, "line %zu: more than %d names",
                            number, EP_OPS_MAX);
    add_type(o, name, r, cls);
    return 0;
}

int ep_ops_read(struct ep_ops *o, const char *text, size_t len,
                struct ep_error *err)
{
    for (size_t number = 1; len; number++) {
        const char *nl = memchr(text, '\n', len);
        size_t n = nl ? (size_t)(nl - text) : len;
        int rc = read_line(o, (struct ep_span){text, n}, number, err);

        if (rc < 0)
            return rc;
        n += nl != NULL;
        text += n;
        len -= n;
    }
    return 0;
}

int ep_ops_find(const struct ep_ops *o, struct ep_span name)
{
    for (size_t i = 0; i < o->types; i++)
        if (ep_span_eq(name, o->name[i]))
            return (int)i;
    return -1;
}

size_t ep_ops_types(const struct ep_ops *o)
{
    return o->types;
}

const char *ep_ops_name(const struct ep_ops *o, size_t type)
{
    return o->name[type];
}

enum ep_op_role ep_ops_role(const struct ep_ops *o, size_t type)
{
    return o->role[type];
}

size_t ep_ops_class(const struct ep_ops *o, size_t type)
{
    return o->cls[type];
}

size_t ep_ops_classes(const struct ep_ops *o)
{
    return o->classes;
}

const char *ep_ops_class_name(const struct ep_ops *o, size_t cls)
{
    return o->cls_name[cls];
}
