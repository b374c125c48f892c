/* SPDX-License-Identifier: Apache-2.0 */
/* explain_text.c - the figures of explain.h as lines for people. */
#include "config.h"

#include "detect/explain.h"

#include "base/num.h"

#include <math.h>

/* Columns of the longest bar. */
enum { BAR = 32 };

static void add_samples(const struct ep_explain *x, int indent,
                        struct ep_buf *b)
{
    size_t first = x->n > EP_EXPLAIN_BARS ? x->n - EP_EXPLAIN_BARS : 0;
    bool marked = false;
    double most = 0;

    for (size_t i = first; i < x->n; i++)
        most = fmax(most, x->sample[i].value);
    ep_buf_addf(b, "%*s%s of the last %zu steps:\n", indent, "", x->what,
                x->n - first);
    for (size_t i = first; i < x->n; i++) {
        const struct ep_explain_sample *v = &x->sample[i];
        int bar = most > 0 ? (int)lround(BAR * v->value / most) : 0;
        struct ep_buf t;

        ep_buf_init(&t);
        ep_num_format_duration(&t, v->value);
        ep_buf_addf(b, "%*s  %8lld  %9s  ", indent, "", (long long)v->step,
                    t.ptr);
        ep_buf_free(&t);
        for (int k = 0; k < bar; k++)
            ep_buf_addc(b, '#');
        if (v->since && !marked)
            ep_buf_adds(b, " <- since");
        marked = marked || v->since;
        ep_buf_addc(b, '\n');
    }
}

static void add_change(const struct ep_explain *x, const struct ep_finding *f,
                       int indent, struct ep_buf *b)
{
    if (!isnan(x->healthy)) {
        ep_buf_addf(b, "%*shealthy ", indent, "");
        ep_num_format_duration(b, x->healthy);
        ep_buf_addf(b, ", noise %.2g %%, now ", 100 * x->noise);
        ep_num_format_duration(b, x->level);
        ep_buf_addf(b, ", %.2fx of that\n", x->level / x->healthy);
    } else {
        ep_buf_addf(b, "%*sit has no healthy past that is known\n", indent, "");
    }
    if (x->nbefore && x->nafter) {
        ep_buf_addf(b, "%*schange: median ", indent, "");
        ep_num_format_duration(b, x->before);
        ep_buf_addf(b, " of %zu before, ", x->nbefore);
        ep_num_format_duration(b, x->after);
        ep_buf_addf(b, " of %zu since: %.2fx", x->nafter, x->after / x->before);
        if (isfinite(x->errors))
            ep_buf_addf(b, ", %.3g standard errors", x->errors);
        ep_buf_addf(b,
                    "\n%*sa change has to be %.2fx, %.3g standard errors and "
                    "%u steps; sure %.2f\n",
                    indent, "", 1 + x->min_change, x->z, x->confirm, f->p);
    }
}

static void add_peers(const struct ep_explain *x, int indent, struct ep_buf *b)
{
    if (!x->peers)
        return;
    ep_buf_addf(b, "%*speers: %zu, median ", indent, "", x->peers);
    ep_num_format_duration(b, x->peers_median);
    if (!isnan(x->factor))
        ep_buf_addf(b, ", this one %.2fx that", x->factor);
    ep_buf_addf(b, "\n%*s  the slowest:", indent, "");
    for (size_t i = 0; i < x->nslowest; i++) {
        ep_buf_adds(b, i ? ", " : " ");
        ep_buf_add_escaped(b, x->slowest[i].id, strlen(x->slowest[i].id));
        ep_buf_addc(b, ' ');
        ep_num_format_duration(b, x->slowest[i].value);
    }
    ep_buf_addc(b, '\n');
    if (isnan(x->alike_factor))
        return;
    ep_buf_addf(b, "%*s  of their own past %.2fx in the median, %zu of them ",
                indent, "", x->alike_factor, x->alike);
    ep_buf_addf(b, "%.2fx or more: %s\n", 1 + x->min_change / 2,
                x->alike_factor >= 1 + x->min_change / 2
                    ? "most changed with it"
                    : "not a change of all");
}

void ep_explain_print(const struct ep_explain *x, const struct ep_finding *f,
                      int indent, struct ep_buf *out)
{
    if (x->n)
        add_samples(x, indent, out);
    if (x->what)
        add_change(x, f, indent, out);
    add_peers(x, indent, out);
    if (f->scope == EP_SCOPE_JOB || isnan(x->job_level))
        return;
    ep_buf_addf(out, "%*sjob: step time ", indent, "");
    ep_num_format_duration(out, x->job_level);
    if (isnan(x->job_healthy)) {
        ep_buf_adds(out, ", no healthy past known\n");
        return;
    }
    ep_buf_addf(out, ", %.2fx of its healthy ", x->job_level / x->job_healthy);
    ep_num_format_duration(out, x->job_healthy);
    ep_buf_addf(out, ", noise %.2g %%\n", 100 * x->job_noise);
}
