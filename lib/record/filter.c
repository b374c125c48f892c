/* SPDX-License-Identifier: Apache-2.0 */
/* filter.c - see filter.h. */
#include "config.h"

#include "record/filter.h"

static void complain(void *ctx, const struct ep_error *err)
{
    (void)ctx;
    ep_cli_error(err);
}

/* The input has nothing for us at present: let the reader see what we have. */
static void flush(void *ctx)
{
    const struct ep_filter *f = ctx;

    (void)ep_outfile_ok(f->file, true);
}

int ep_filter_open(struct ep_filter *f, const struct ep_filter_options *opt,
                   const char *const *paths, int n, struct ep_error *err)
{
    struct ep_stream_config how = {.strict = opt->strict,
                                   .complain = complain,
                                   .on_wait = flush,
                                   .ctx = f};

    *f = (struct ep_filter){.opt = opt};
    f->file = ep_outfile_open(opt->output, err);
    if (!f->file)
        return err->code;
    f->out = ep_outfile_stream(f->file);
    ep_buf_init(&f->text);
    f->in = ep_stream_open(paths, n, &how);
    return 0;
}

int ep_filter_next(struct ep_filter *f, const struct ep_record **r,
                   const struct ep_line **line, struct ep_error *err)
{
    if (!ep_outfile_ok(f->file, false))
        return 0;
    return ep_stream_next(f->in, r, line, err);
}

int ep_filter_reject(struct ep_filter *f, const struct ep_error *why,
                     struct ep_error *err)
{
    return ep_stream_reject(f->in, err, "%s", why->msg);
}

void ep_filter_write(struct ep_filter *f, const struct ep_record *r)
{
    ep_buf_reset(&f->text);
    if (f->opt->format == EP_CLI_TSV) {
        if (!(f->headers >> r->type & 1))
            ep_record_tsv_header(r->type, &f->text);
        f->headers |= UINT32_C(1) << r->type;
        ep_record_print_tsv(r, &f->text);
    } else {
        ep_record_print(r, &f->text);
    }
    (void)fwrite(f->text.ptr, 1, f->text.len, f->out);
}

/* What the reading came to. */
static int judge(const struct ep_filter *f, const char *idle, bool found)
{
    uint64_t bad = ep_stream_bad(f->in);

    if (bad > 1 && !f->opt->quiet)
        ep_cli_warn("%llu bad lines in all", (unsigned long long)bad);
    if (ep_stream_failed(f->in) > 1)
        ep_cli_warn("%d inputs could not be read in all",
                    ep_stream_failed(f->in));
    if (ep_stream_failed(f->in) || bad > (uint64_t)f->opt->max_bad)
        return EP_EXIT_TROUBLE;
    if (idle) {
        ep_cli_warn("%s", idle);
        return EP_EXIT_TROUBLE;
    }
    return f->opt->exit_code && found ? EP_EXIT_FINDING : EP_EXIT_CLEAN;
}

int ep_filter_close(struct ep_filter *f, int rc, const char *idle, bool found,
                    struct ep_error *err)
{
    int status = EP_EXIT_TROUBLE;

    if (rc >= 0)
        status = judge(f, idle, found);
    if (rc < 0 || (idle && f->out != stdout))
        ep_outfile_abort(f->file); /* standard output keeps what was found */
    else
        rc = ep_outfile_commit(f->file, err);
    if (rc < 0) {
        ep_cli_error(err);
        status = EP_EXIT_TROUBLE;
    }
    ep_stream_close(f->in);
    ep_buf_free(&f->text);
    return status;
}
