/* SPDX-License-Identifier: Apache-2.0 */
/* merge_text.c - see merge_text.h. */
#include "config.h"

#include "lsgd/merge_text.h"

#include "base/num.h"
#include "base/table.h"
#include "lsgd/merge_impl.h"

#include <string.h>

/* A number that may not be known. */
static void add_known(struct ep_table *t, int64_t v)
{
    struct ep_buf *cell = ep_table_cell(t);

    if (v < 0)
        ep_buf_addc(cell, '-');
    else
        ep_buf_addf(cell, "%lld", (long long)v);
}

void ep_merge_text_table(const struct ep_merge *m, const char *const *path,
                         const double *norm, struct ep_buf *out)
{
    static const char *const heads[] = {"weight", "steps", "tokens", "norm",
                                        "input"};
    struct ep_table t;

    ep_table_init(&t, sizeof heads / sizeof heads[0], 0xf);
    for (size_t k = 0; k < sizeof heads / sizeof heads[0]; k++)
        ep_buf_adds(ep_table_cell(&t), heads[k]);
    for (size_t i = 0; i < m->nin; i++) {
        ep_buf_addf(ep_table_cell(&t), "%.6g", m->input[i].weight);
        add_known(&t, m->input[i].steps);
        add_known(&t, m->input[i].tokens);
        ep_buf_addf(ep_table_cell(&t), "%.6g", norm[i]);
        ep_buf_add_escaped(ep_table_cell(&t), path[i], strlen(path[i]));
    }
    ep_table_print(&t, "", out);
    ep_table_free(&t);
}

void ep_merge_text_plan(const struct ep_merge *m, struct ep_buf *out)
{
    struct ep_merge_totals t = ep_merge_totals(m);
    const char *method = EP_MERGE_METHODS;

    for (int i = 0; i < (int)m->config.method; i++)
        method += strcspn(method, "|") + 1;
    ep_buf_add(out, method, strcspn(method, "|"));
    ep_buf_addf(out,
                " of %zu input%s: %zu tensor%s, %zu of them carried, read ",
                m->nin, m->nin == 1 ? "" : "s", t.tensors,
                t.tensors == 1 ? "" : "s", t.carried);
    ep_num_format_size(out, (double)t.read_bytes);
    ep_buf_adds(out, ", write ");
    ep_num_format_size(out, (double)(t.model_bytes + t.state_bytes));
    ep_buf_addf(out, ", outer step %llu", (unsigned long long)t.step_to);
}

void ep_merge_text_speed(const struct ep_merge *m, double seconds,
                         struct ep_buf *out)
{
    struct ep_merge_totals t = ep_merge_totals(m);
    double bytes = (double)(t.read_bytes + t.model_bytes + t.state_bytes);

    ep_num_format_size(out, bytes);
    ep_buf_adds(out, " in ");
    ep_num_format_duration(out, seconds);
    if (seconds > 0) {
        ep_buf_adds(out, ", ");
        ep_num_format_si(out, bytes / seconds, "B/s");
    }
}
