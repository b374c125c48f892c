/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ops.h - what the operations of a training step are to the replay.
 *
 * A trace names its operations; the replay has to know what each one is: its
 * role. The names of [1] are known; names of other schedules are mapped to
 * roles by lines of text. A type is a name, a class what its cost is reported
 * under (send and receive of a direction are one).
 *
 * [1] Lin et al., "Understanding Stragglers in Large Model Training Using
 *     What-if Analysis", OSDI 2025, arXiv 2505.05713.
 */
#ifndef EP_REPLAY_OPS_H
#define EP_REPLAY_OPS_H

#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

enum ep_op_role {
    EP_OP_FORWARD,
    EP_OP_BACKWARD,
    EP_OP_COMPUTE, /* other computation: takes its turn, feeds nobody */
    EP_OP_GC,
    EP_OP_FORWARD_SEND, /* from here on: communication */
    EP_OP_FORWARD_RECV,
    EP_OP_BACKWARD_SEND,
    EP_OP_BACKWARD_RECV,
    EP_OP_PARAMS,    /* parameters gathered over the data-parallel ranks */
    EP_OP_REDUCE,    /* gradients reduced over them */
    EP_OP_LAYERNORM, /* reduced over tensor-parallel ranks: not traced apart */
    EP_OP_EMBEDDING, /* between first and last stage */
    EP_OP_SEPARATE,  /* gradients that are reduced apart, over dp */
    EP_OP_CLIP,      /* over all stages and data-parallel ranks */
    EP_OP_OPTIMIZER, /* the last of a step; computation */
    EP_OP_IGNORE,
    EP_OP_ROLES, /* how many */
};

/* Types and classes, the known ones included. */
#define EP_OPS_MAX 200

struct ep_ops; /* opaque: names, roles, classes */

/* The names of [1]. Free with ep_ops_free (NULL allowed). */
struct ep_ops *ep_ops_new(void);
void ep_ops_free(struct ep_ops *o);

/*
 * Add the names of a text: lines "NAME ROLE [CLASS]", blanks between; empty
 * lines and those that begin with # are passed over. ROLE is a name of [1] or
 * compute or ignore; CLASS is the name in results, by default that of the
 * role. A name given again (or one of [1]) gets the new role.
 * Errors: EP_EFORMAT, EP_ELIMIT with "line N: reason".
 */
int ep_ops_read(struct ep_ops *o, const char *text, size_t len,
                struct ep_error *err) EP_MUST_USE;

/* The type of a name, or -1. Cost: O(types). */
int ep_ops_find(const struct ep_ops *o, struct ep_span name);

size_t ep_ops_types(const struct ep_ops *o);
const char *ep_ops_name(const struct ep_ops *o, size_t type);
enum ep_op_role ep_ops_role(const struct ep_ops *o, size_t type);
size_t ep_ops_class(const struct ep_ops *o, size_t type);
size_t ep_ops_classes(const struct ep_ops *o);
const char *ep_ops_class_name(const struct ep_ops *o, size_t cls);

/* The name of [1] for a role; "compute" and "ignore" for the others. */
const char *ep_op_role_name(enum ep_op_role role);

/* Is it averaged as communication (median), or as computation (mean)? */
static inline bool ep_op_is_comm(enum ep_op_role r)
{
    return r >= EP_OP_FORWARD_SEND && r <= EP_OP_CLIP;
}

#endif
