/* SPDX-License-Identifier: Apache-2.0 */
/* merge_text.c - see merge_text.h; also why a chunk failed, in words. */
#include "config.h"

#include "lsgd/merge_text.h"

#include "base/mem.h"
#include "base/num.h"
#include "base/table.h"
#include "base/tempfile.h"
#include "lsgd/merge_impl.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ==== Settings ==== */

/* Options that only some methods have. */
static int check_methods(const struct ep_merge_settings *s,
                         struct ep_error *err)
{
    bool mix = s->method == EP_MERGE_MIX;
    bool delayed = s->method == EP_MERGE_DELAYED;
    bool momentum = delayed || s->method == EP_MERGE_NESTEROV;
    bool steps = momentum || s->method == EP_MERGE_SGD;
    const struct {
        bool given, fits;
        const char *name;
    } list[] = {
        {!isnan(s->alpha), mix, "alpha"},
        {!isnan(s->lr), steps, "lr"},
        {!isnan(s->beta), momentum, "beta"},
        {s->buffer > 0, delayed, "buffer"},
        {!isnan(s->share), delayed, "momentum-share"},
        {s->state != NULL, momentum, "state"},
        {s->state_out != NULL, momentum, "state-out"},
    };

    for (size_t i = 0; i < sizeof list / sizeof list[0]; i++)
        if (list[i].given && !list[i].fits)
            return ep_error_set(err, EP_EUSAGE,
                                "cannot use --%s: not with this --method",
                                list[i].name);
    return 0;
}

int ep_merge_check_settings(const struct ep_merge_settings *s,
                            struct ep_error *err)
{
    const struct {
        const char *path, *name;
    } list[] = {
        {s->output, "output"},
        {s->state, "state"},
        {s->state_out, "state-out"},
    };

    if (check_methods(s, err) < 0)
        return EP_EUSAGE;
    for (size_t i = 0; i < sizeof list / sizeof list[0]; i++)
        if (list[i].path && !*list[i].path)
            return ep_error_set(err, EP_EUSAGE,
                                "cannot use --%s: the name is empty",
                                list[i].name);
    if (!s->output && !s->dry_run)
        return ep_error_set(err, EP_EUSAGE,
                            "cannot merge: no --output to write to");
    if (s->output && s->state_out &&
        ep_tempfile_same_place(s->output, s->state_out))
        return ep_error_set(err, EP_EUSAGE,
                            "cannot use --state-out: it is --output too");
    return 0;
}

/* No result may take the place of a file that it does not stand for. */
static int check_places(const struct ep_merge_settings *s,
                        const struct ep_merge_files *f, struct ep_error *err)
{
    for (size_t i = 0; s->state_out && i <= f->ninputs; i++)
        if (ep_ckpt_has_file(i ? f->input[i - 1] : f->base, s->state_out))
            return ep_error_set(err, EP_EUSAGE,
                                "cannot use --state-out: it is a file of the "
                                "base or of an input");
    if (s->output && f->state && ep_ckpt_has_file(f->state, s->output))
        return ep_error_set(err, EP_EUSAGE,
                            "cannot use --output: it is --state too");
    return 0;
}

static int read_weights(const char *text, double **list, struct ep_error *err)
{
    size_t cap = 0;
    int n = 0;

    *list = NULL;
    for (;;) {
        size_t len = strcspn(text, ",");
        char *one = ep_strndup(text, len), shown[64];
        double w = 0;
        int rc = ep_num_double(one, 0, 1e300, &w, err);

        if (rc < 0)
            (void)ep_error_prefix(err, "cannot use weight '%s'",
                                  ep_escape(shown, sizeof shown, one, len));
        free(one);
        if (rc < 0)
            return rc;
        *list = ep_grow(*list, &cap, (size_t)n + 1, sizeof **list);
        (*list)[n++] = w;
        if (!text[len])
            return n;
        text += len + 1;
    }
}

/* What was given, else what the state was made with, else the default. */
static double settle(const char *option, double given, double state,
                     double otherwise, struct ep_merge_lines *l)
{
    if (isnan(given))
        return isnan(state) ? otherwise : state;
    if (!isnan(state) && state != given) {
        ep_buf_addf(&l->text, "--%s is %.9g, the state was made with %.9g\n",
                    option, given, state);
        l->n++;
    }
    return given;
}

static int settle_outer(const struct ep_merge_settings *s,
                        const struct ep_ckpt *state, struct ep_outer *o,
                        struct ep_merge_lines *l, struct ep_error *err)
{
    double n = s->buffer ? (double)s->buffer : (double)NAN;
    struct ep_outer was = {
        .lr = (double)NAN, .beta = (double)NAN, .c = (double)NAN};

    if (state) {
        int rc = ep_merge_state_settings(state, &was, err);

        if (rc < 0)
            return rc;
    }
    *o = (struct ep_outer){.n = 1};
    o->lr = settle("lr", s->lr, was.lr, s->method == EP_MERGE_SGD ? 1 : 0.7, l);
    o->beta = settle("beta", s->beta, was.beta, 0.9, l);
    if (s->method != EP_MERGE_DELAYED)
        return 0;
    if (!s->buffer && !was.n)
        return ep_error_set(err, EP_EUSAGE,
                            "cannot use delayed-nesterov: it needs --buffer");
    o->n = (uint64_t)settle("buffer", n, was.n ? (double)was.n : (double)NAN, 1,
                            l);
    o->c = settle("momentum-share", s->share, was.c, 0, l);
    return 0;
}

int ep_merge_settle(const struct ep_merge_settings *s,
                    const struct ep_merge_files *files,
                    struct ep_merge_config *c, double **weights,
                    struct ep_merge_lines *lines, struct ep_error *err)
{
    static const enum ep_merge_kind signs[] = {EP_MERGE_START_END,
                                               EP_MERGE_END_START};
    static const int dtypes[] = {-1,           EP_DT_F32, EP_DT_BF16,
                                 EP_DT_F16,    EP_DT_F64, EP_DT_F8_E4M3,
                                 EP_DT_F8_E5M2};
    int rc = check_places(s, files, err);

    *weights = NULL;
    *c = (struct ep_merge_config){
        .method =
            s->method < 0 ? EP_MERGE_MEAN : (enum ep_merge_method)s->method,
        .alpha = isnan(s->alpha) ? 0.5 : s->alpha,
        .declared = s->sign < 0 ? EP_MERGE_MODEL : signs[s->sign],
        .dtype = s->dtype < 0 ? -1 : dtypes[s->dtype],
        .compute =
            s->compute < 0 ? EP_MERGE_AUTO : (enum ep_merge_compute)s->compute,
        .allow_missing = s->allow_missing,
        .allow_nonfinite = s->allow_nonfinite,
        .keep_state = s->state_out != NULL,
        .shard_bytes = (uint64_t)s->shard_size,
    };
    if (rc == 0)
        rc = settle_outer(s, files->state, &c->outer, lines, err);
    if (rc < 0 || !s->weights)
        return rc;
    c->by_tokens = strcmp(s->weights, "tokens") == 0;
    if (c->by_tokens)
        return 0;
    rc = read_weights(s->weights, weights, err);
    if (rc < 0)
        return rc;
    c->weights = *weights;
    c->nweights = (size_t)rc;
    return 0;
}

/* ==== Remarks ==== */

static void add_missing(const struct ep_merge_totals *t,
                        struct ep_merge_lines *l)
{
    const struct {
        size_t n;
        const char *what;
    } list[] = {
        {t->fewer, "from fewer inputs"},
        {t->none, "the base's alone"},
        {t->zeroed, "without its state"},
        {t->extra, "left out"},
    };
    const char *lead = "not all tensors were there: ";

    for (size_t i = 0; i < sizeof list / sizeof list[0]; i++) {
        if (!list[i].n)
            continue;
        ep_buf_addf(&l->text, "%s%zu %s", lead, list[i].n, list[i].what);
        lead = ", ";
    }
    if (*lead != ',')
        return;
    ep_buf_addc(&l->text, '\n');
    l->n++;
}

void ep_merge_text_remarks(const struct ep_merge *m,
                           const struct ep_merge_settings *s,
                           struct ep_merge_lines *lines)
{
    struct ep_merge_totals t = ep_merge_totals(m);

    if (t.momentum && !s->state_out) {
        ep_buf_adds(&lines->text, "the momentum is not kept: no --state-out\n");
        lines->n++;
    }
    if (t.momentum && !s->state && t.step_from) {
        ep_buf_addf(&lines->text,
                    "the momentum begins at 0: no --state, but the base is of "
                    "outer step %llu\n",
                    (unsigned long long)t.step_from);
        lines->n++;
    }
    add_missing(&t, lines);
}

/* ==== The report ==== */

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

void ep_merge_text_speed(const struct ep_merge *m, bool written, double seconds,
                         struct ep_buf *out)
{
    struct ep_merge_totals t = ep_merge_totals(m);
    double bytes =
        (double)(t.read_bytes + (written ? t.model_bytes + t.state_bytes : 0));

    ep_buf_adds(out, written ? "moved " : "nothing written: read ");
    ep_num_format_size(out, bytes);
    ep_buf_adds(out, " in ");
    ep_num_format_duration(out, seconds);
    if (seconds > 0) {
        ep_buf_adds(out, ", ");
        ep_num_format_si(out, bytes / seconds, "B/s");
    }
}

void ep_merge_text_progress(uint64_t done_bytes, uint64_t all_bytes,
                            struct ep_buf *out)
{
    ep_buf_addf(out, "%3.0f %%, ",
                all_bytes ? 100 * (double)done_bytes / (double)all_bytes : 100);
    ep_num_format_size(out, (double)done_bytes);
    ep_buf_adds(out, " of ");
    ep_num_format_size(out, (double)all_bytes);
}

/* ==== Errors ==== */

/* The first element of chunk c that is finite in t, but not as a float. */
static bool find_huge(const struct ep_tensor *t, const struct merge_chunk *c,
                      uint64_t *at, double *v)
{
    const unsigned char *p = t ? t->data : NULL;

    if (!t || t->dtype != EP_DT_F64)
        return false;
    for (*at = c->at; *at < c->at + c->n; ++*at) {
        memcpy(v, p + *at * sizeof *v, sizeof *v);
        if (isfinite(*v) && !isfinite((float)*v))
            return true;
    }
    return false;
}

/* Was a number of source s (NULL: the base) made infinite by reading it? */
static bool blame_float(const struct ep_merge *m, const struct merge_source *s,
                        const struct merge_chunk *c, struct ep_error *err)
{
    const struct ep_tensor *t =
        s ? ep_merge_find(s, c->tensor) : ep_ckpt_tensor(m->base, c->tensor);
    char path[80], name[80];
    const char *file;
    uint64_t at;
    double v;

    if (!find_huge(t, c, &at, &v))
        return false;
    file = s ? ep_merge_file(s, c->tensor) : ep_ckpt_file(m->base, c->tensor);
    (void)ep_error_set(
        err, EP_EDOM,
        "cannot merge %s: tensor \"%s\", element %llu: %g is too large for "
        "F32, which it is computed in",
        ep_escape(path, sizeof path, file, strlen(file)),
        ep_escape(name, sizeof name, t->name.ptr, t->name.len),
        (unsigned long long)at, v);
    return true;
}

void ep_merge_explain(const struct ep_merge *m, const struct ep_merge_how *how,
                      const struct merge_chunk *c, struct ep_error *err)
{
    static const char verb[] = "cannot write ", object[] = "tensor ";
    const char *rest = err->msg + strlen(verb);
    const char *result = how->result ? how->result : how->out;
    char shown[90], *text;

    if (err->code != EP_EDOM)
        return;
    if (m->config.compute == EP_MERGE_F32 &&
        ep_dtype_is_real(ep_ckpt_tensor(m->base, c->tensor)->dtype)) {
        if (blame_float(m, NULL, c, err))
            return;
        for (size_t k = 0; k < m->nin; k++)
            if (blame_float(m, &m->source[k], c, err))
                return;
        if (blame_float(m, &m->momentum, c, err) ||
            blame_float(m, &m->buffer, c, err))
            return;
    }
    if (strncmp(err->msg, verb, strlen(verb)) != 0 ||
        strncmp(rest, object, strlen(object)) != 0)
        return;
    text = ep_strdup(rest);
    (void)ep_error_set(
        err, EP_EDOM, "%s%s: %s", verb,
        result ? ep_escape(shown, sizeof shown, result, strlen(result))
               : "the result",
        text);
    free(text);
}
