/* SPDX-License-Identifier: Apache-2.0 */
/* graph_groups.c - collectives, whose members wait for each other. */
#include "config.h"

#include "replay/graph_impl.h"

static int refuse_member(struct ep_graph_maker *m, uint32_t v)
{
    char text[96];

    return ep_graph_refuse(
        m, "%s has no partner",
        ep_graph_op_text(ep_graph_at(m, v), m->ops, text, sizeof text));
}

/* The k-th of a role of some stages is one group: of all stages, or of one
   stage of all ranks, or of the first and last stage of a rank. */
struct among {
    size_t first, step, n; /* numbers of the stages */
};

static int group_role(struct ep_graph_maker *m, enum ep_op_role r,
                      struct among among, bool sync)
{
    size_t most = 0, with_most = among.first;

    for (size_t i = 0; i < among.n; i++) {
        size_t at = among.first + i * among.step;

        if (m->stage[at].role[r].n > most) {
            most = m->stage[at].role[r].n;
            with_most = at;
        }
    }
    for (size_t k = 0; k < most; k++) {
        ep_graph_begin_group(m, sync);
        for (size_t i = 0; i < among.n; i++) {
            const struct ep_graph_list *l =
                &m->stage[among.first + i * among.step].role[r];

            if (k >= l->n)
                return refuse_member(m, m->stage[with_most].role[r].v[k]);
            ep_graph_join(m, l->v[k]);
        }
    }
    return 0;
}

int ep_graph_group(struct ep_graph_maker *m)
{
    static const enum ep_op_role over_dp[] = {EP_OP_PARAMS, EP_OP_REDUCE,
                                              EP_OP_SEPARATE};
    int rc = 0;

    for (size_t p = 0; p < m->pp; p++)
        for (size_t k = 0; rc == 0 && k < 3; k++)
            rc = group_role(m, over_dp[k], (struct among){p, m->pp, m->dp},
                            true);
    for (size_t d = 0; rc == 0 && d < m->dp; d++)
        rc = group_role(m, EP_OP_EMBEDDING,
                        (struct among){d * m->pp, m->pp > 1 ? m->pp - 1 : 1,
                                       m->pp > 1 ? 2 : 1},
                        false);
    if (rc == 0)
        rc = group_role(m, EP_OP_CLIP, (struct among){0, 1, m->dp * m->pp},
                        true);
    return rc;
}
