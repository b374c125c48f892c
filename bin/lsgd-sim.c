/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lsgd-sim - choose a method, H and K on a virtual clock before paying for it.
 *
 * Options and wiring only: lib/lsgd/env.h reads the environment, sim.h runs it,
 * sim_text.h prints what comes out.
 */
#include "config.h"

#include "base/buf.h"
#include "base/cli.h"
#include "base/input.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/outfile.h"
#include "lsgd/env.h"
#include "lsgd/sim.h"
#include "lsgd/sim_text.h"
#include "record/record.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* For completion: the names of ep_method_names. */
#define METHODS "halos|async|diloco|diloco-dynamic|sync"

static struct {
    bool event_only, contention, carry, q4, records, quiet, verbose;
    int format;
    const char *output, *methods, *h, *k, *steps, *max_events;
    int64_t seed;
    /* negative: as the environment says */
    double alpha, scale_links, latency, server_time, mttf, rejoin;
} opt = {
    .format = -1,
    .seed = -1,
    .alpha = -1,
    .scale_links = 1,
    .latency = -1,
    .server_time = -1,
    .mttf = -1,
    .rejoin = -1,
};

static const struct ep_opt options[] = {
    {'f', "format", EP_OPT_CHOICE, &opt.format, EP_CLI_FORMATS,
     "form of the output [text on a terminal]", 0, 0},
    {'H', "local-steps", EP_OPT_STRING, &opt.h, "LIST",
     "local steps of the fastest worker, e.g. 8,16", 0, 0},
    {'K', "merge-every", EP_OPT_STRING, &opt.k, "LIST",
     "worker updates from a merge to the next send", 0, 0},
    {'m', "method", EP_OPT_STRING, &opt.methods, METHODS,
     "which, separated by commas [all]", 0, 0},
    {'o', "output", EP_OPT_STRING, &opt.output, "FILE",
     "write to FILE, whole or not at all", 0, 0},
    {'q', "quiet", EP_OPT_FLAG, &opt.quiet, NULL, "no legend, no remarks", 0,
     0},
    {'s', "seed", EP_OPT_INT, &opt.seed, "N", "seed of the failures [1]", 0,
     9007199254740992},
    {'v', "verbose", EP_OPT_FLAG, &opt.verbose, NULL,
     "also what is known of each region and worker", 0, 0},
    {0, "alpha", EP_OPT_DOUBLE, &opt.alpha, "A",
     "weight of the global parameters in a merge", 0, 1},
    {0, "carry", EP_OPT_FLAG, &opt.carry, NULL,
     "keep for the next delta what a merge would drop", 0, 0},
    {0, "contention", EP_OPT_FLAG, &opt.contention, NULL,
     "transfers that are on a link at once share it", 0, 0},
    {0, "event-only", EP_OPT_FLAG, &opt.event_only, NULL,
     "the clock alone, nothing is trained (needed)", 0, 0},
    {0, "latency", EP_OPT_DURATION, &opt.latency, "TIME", "of each message", 0,
     1e6},
    {0, "max-events", EP_OPT_STRING, &opt.max_events, "N",
     "give a run up after so many events [20000000]", 0, 0},
    {0, "mttf", EP_OPT_DURATION, &opt.mttf, "TIME",
     "mean time to a worker's failure", 0, 1e12},
    {0, "q4", EP_OPT_FLAG, &opt.q4, NULL,
     "4-bit exchanges between the servers of halos", 0, 0},
    {0, "records", EP_OPT_FLAG, &opt.records, NULL,
     "write a merge record per update, no table", 0, 0},
    {0, "rejoin", EP_OPT_DURATION, &opt.rejoin, "TIME",
     "mean time until it is back [0s]", 0, 1e12},
    {0, "scale-links", EP_OPT_DOUBLE, &opt.scale_links, "F",
     "multiply the bandwidth between regions [1]", 1e-6, 1e6},
    {0, "server-time", EP_OPT_DURATION, &opt.server_time, "TIME",
     "a server's for each delta or merge", 0, 1e6},
    {0, "steps", EP_OPT_STRING, &opt.steps, "N", "local steps in all", 0, 0},
};

static const struct ep_program program = {
    .name = "lsgd-sim",
    .operands = "ENV",
    .purpose = "Simulate distributed training methods on a virtual clock",
    .opts = options,
    .nopts = sizeof options / sizeof options[0],
};

enum {
    LIST = 64,            /* values of -H or -K, at most */
    ENV_BYTES = 16 << 20, /* of an environment file */
};

/* Values of -H or -K. */
struct list {
    size_t n;
    uint64_t v[LIST];
};

/* A run that is over. */
struct done {
    enum ep_method method;
    struct ep_env_method settings;
    struct ep_sim_result result;
    char *failed; /* or why there is no result; owned */
};

struct run {
    struct ep_env env;
    struct ep_outfile *file;
    struct ep_buf text;
    struct list h, k;
    size_t nmethods;
    enum ep_method method[EP_METHODS];
    size_t nrows, cap;
    struct done *done; /* [nrows] */
    size_t nfailed;
    struct ep_buf job; /* of merge records: which run */
    bool header;       /* of tab-separated records: is it out */
};

/* ==== Options ==== */

/* The next of a list separated by commas; false at its end. */
static bool next_word(const char **list, char *word, size_t cap)
{
    size_t n;

    if (!*list)
        return false;
    n = strcspn(*list, ",");
    (void)snprintf(word, cap, "%.*s", (int)(n < cap ? n : cap - 1), *list);
    *list = (*list)[n] ? *list + n + 1 : NULL;
    return true;
}

/* A whole number from 1, also with an exponent: 1e6. */
static int parse_whole(const char *word, const char *option, int64_t hi,
                       uint64_t *out, struct ep_error *err)
{
    char shown[64];
    int64_t v = 0;
    double x;
    int rc = ep_num_int(word, 1, hi, &v, err);

    if (rc == EP_EFORMAT &&
        ep_num_double(word, -INFINITY, INFINITY, &x, NULL) == 0 &&
        floor(x) == x) {
        rc = 0;
        if (x >= 1 && x <= (double)hi)
            v = (int64_t)x;
        else
            rc = ep_error_set(err, EP_ERANGE, "not in 1..%lld", (long long)hi);
    }
    if (rc < 0)
        return ep_error_prefix(
            err, "cannot use '%s' for --%s",
            ep_escape(shown, sizeof shown, word, strlen(word)), option);
    *out = (uint64_t)v;
    return 0;
}

static int parse_numbers(const char *text, const char *option,
                         struct list *list, struct ep_error *err)
{
    char word[32];
    int rc = 0;

    list->n = 0;
    while (rc == 0 && next_word(&text, word, sizeof word)) {
        if (list->n == LIST)
            return ep_error_set(err, EP_EUSAGE,
                                "cannot use --%s: more than %d values", option,
                                LIST);
        rc = parse_whole(word, option, 1000000000, &list->v[list->n++], err);
    }
    return rc;
}

static int find_method(const char *name)
{
    for (int m = 0; m < EP_METHODS; m++)
        if (strcmp(name, ep_method_names[m]) == 0)
            return m;
    return -1;
}

/* The methods asked for, each once; all that have settings if none was. */
static int choose_methods(struct run *run, struct ep_error *err)
{
    const char *list = opt.methods;
    char word[32], shown[64];
    bool seen[EP_METHODS] = {false};

    while (next_word(&list, word, sizeof word)) {
        int m = find_method(word);

        (void)ep_escape(shown, sizeof shown, word, strlen(word));
        if (m < 0)
            return ep_error_set(err, EP_EUSAGE,
                                "cannot use '%s' for --method: not one of "
                                "halos, async, diloco, diloco-dynamic, sync",
                                shown);
        if (seen[m])
            return ep_error_set(err, EP_EUSAGE,
                                "cannot use '%s' for --method: given twice",
                                shown);
        if (!run->env.method[m].given)
            return ep_error_set(err, EP_EUSAGE,
                                "cannot simulate %s: the environment has no "
                                "settings for it",
                                shown);
        seen[m] = true;
        run->method[run->nmethods++] = (enum ep_method)m;
    }
    for (int m = 0; !opt.methods && m < EP_METHODS; m++)
        if (run->env.method[m].given)
            run->method[run->nmethods++] = (enum ep_method)m;
    return 0;
}

/* What the command line says instead of the environment. */
static void override(struct ep_env *env)
{
    ep_env_scale_links(env, opt.scale_links);
    if (opt.alpha >= 0)
        env->method[EP_METHOD_HALOS].alpha = opt.alpha;
    if (opt.latency >= 0)
        env->latency = opt.latency;
    if (opt.server_time >= 0)
        env->lps_time = env->gps_time = opt.server_time;
    if (opt.mttf >= 0) {
        env->mttf = opt.mttf;
        env->nfailures = 0;
    }
    if (opt.rejoin >= 0)
        env->rejoin = opt.rejoin;
    if (opt.seed >= 0)
        env->seed = (uint64_t)opt.seed;
    env->contention = env->contention || opt.contention;
    env->carry = env->carry || opt.carry;
    env->q4 = env->q4 || opt.q4;
}

/* Numbers of the command line, to where they belong. */
static int parse_all_numbers(struct run *run, struct ep_error *err)
{
    int rc = parse_numbers(opt.h, "local-steps", &run->h, err);

    if (rc == 0)
        rc = parse_numbers(opt.k, "merge-every", &run->k, err);
    if (rc == 0 && opt.steps)
        rc = parse_whole(opt.steps, "steps", 1000000000000,
                         &run->env.total_steps, err);
    if (rc == 0 && opt.max_events)
        rc = parse_whole(opt.max_events, "max-events", 1000000000000000,
                         &run->env.max_events, err);
    return rc;
}

static bool has_method(const struct run *run, enum ep_method m)
{
    for (size_t i = 0; i < run->nmethods; i++)
        if (run->method[i] == m)
            return true;
    return false;
}

/* An option that would do nothing is a mistake. After override(). */
static int check_effect(const struct run *run, struct ep_error *err)
{
    bool halos = has_method(run, EP_METHOD_HALOS);
    bool servers = halos || has_method(run, EP_METHOD_ASYNC);
    bool only_sync = run->nmethods == 1 && has_method(run, EP_METHOD_SYNC);
    bool no_rate = run->env.mttf <= 0 && opt.mttf < 0;
    const struct {
        bool given, idle;
        const char *option, *reason;
    } check[] = {
        {opt.k != NULL, !halos, "merge-every", "it is for halos"},
        {opt.alpha >= 0, !halos, "alpha", "it is for halos"},
        {opt.carry, !halos, "carry", "it is for halos"},
        {opt.q4, !halos, "q4", "it is for halos"},
        {opt.server_time >= 0, !servers, "server-time",
         "it is for halos and async"},
        {opt.h != NULL, only_sync, "local-steps", "sync has one step"},
        {opt.rejoin >= 0, no_rate, "rejoin", "there is no --mttf"},
    };

    for (size_t i = 0; i < sizeof check / sizeof check[0]; i++)
        if (check[i].given && check[i].idle)
            return ep_error_set(err, EP_EUSAGE,
                                "cannot use --%s: %s, so it would do nothing",
                                check[i].option, check[i].reason);
    return 0;
}

/* ==== Input ==== */

static int read_env(const char *path, struct ep_env *env, struct ep_error *err)
{
    struct ep_input *in = ep_input_open(path, err);
    struct ep_buf text;
    ssize_t n;
    int rc;

    if (!in)
        return err->code;
    ep_buf_init(&text);
    do {
        n = ep_input_read(in, ep_buf_reserve(&text, 65536), 65536, err);
        text.len += n > 0 ? (size_t)n : 0;
    } while (n > 0 && text.len <= ENV_BYTES);
    rc = n < 0 ? (int)n : 0;
    if (n > 0)
        rc = ep_error_set(err, EP_ELIMIT, "cannot read %s: more than 16 MiB",
                          ep_input_name(in));
    if (rc == 0) {
        rc = ep_env_parse(env, text.ptr, text.len, err);
        if (rc < 0)
            (void)ep_error_prefix(err, "cannot use %s", ep_input_name(in));
    }
    ep_buf_free(&text);
    ep_input_close(in);
    return rc;
}

/* ==== Merge records ==== */

static void on_merge(void *ctx, const struct ep_sim_merge *m)
{
    struct run *run = ctx;
    const struct ep_env *env = &run->env;
    struct ep_record r;
    struct ep_buf from;

    ep_buf_init(&from);
    if (m->worker != EP_SIM_NONE)
        ep_sim_worker_name(env, m->worker, &from);
    else
        ep_buf_adds(&from, m->region != EP_SIM_NONE
                               ? env->region[m->region].name
                               : "all");
    ep_record_begin(&r, EP_MERGE);
    ep_record_set_num(&r, EP_K_TS, m->t);
    ep_record_set_str(&r, EP_K_JOB, run->job.ptr);
    if (!m->global)
        ep_record_set_str(&r, EP_K_REGION, env->region[m->region].name);
    ep_record_set_str(&r, EP_K_TIER, m->global ? "gps" : "lps");
    ep_record_set_int(&r, EP_K_VERSION, (int64_t)m->version);
    ep_record_set_str(&r, EP_K_FROM, from.ptr);
    ep_record_set_int(&r, EP_K_BASE, (int64_t)m->base);
    ep_record_set_int(&r, EP_K_STALENESS, (int64_t)m->staleness);
    ep_record_set_int(&r, EP_K_STEPS, (int64_t)m->steps);
    ep_record_set_int(&r, EP_K_TOKENS, (int64_t)m->tokens);
    if (opt.format == EP_CLI_TSV) {
        if (!run->header)
            ep_record_tsv_header(EP_MERGE, &run->text);
        run->header = true;
        ep_record_print_tsv(&r, &run->text);
    } else {
        ep_record_print(&r, &run->text);
    }
    ep_buf_free(&from);
    if (run->text.len >= 65536) {
        (void)fwrite(run->text.ptr, 1, run->text.len,
                     ep_outfile_stream(run->file));
        ep_buf_reset(&run->text);
    }
}

/* ==== Runs ==== */

/* A run that cannot be finished is a row without figures. */
static void simulate(struct run *run, enum ep_method method, uint64_t h,
                     uint64_t k)
{
    struct done d = {.method = method, .settings = run->env.method[method]};
    struct ep_error err;

    d.settings.h = h;
    d.settings.k = k;
    ep_buf_reset(&run->job);
    ep_sim_name(method, &d.settings, &run->job);
    if (ep_sim_run(&run->env, method, &d.settings,
                   opt.records ? on_merge : NULL, run, &d.result, &err) < 0) {
        d.failed = ep_strdup(err.msg);
        run->nfailed++;
        ep_cli_error(&err);
    }
    run->done =
        ep_grow(run->done, &run->cap, run->nrows + 1, sizeof *run->done);
    run->done[run->nrows++] = d;
}

/* One run per combination: of H for all methods but sync, of K for halos. */
static void simulate_all(struct run *run)
{
    for (size_t m = 0; m < run->nmethods; m++) {
        enum ep_method method = run->method[m];
        const struct ep_env_method *s = &run->env.method[method];
        const struct list one_h = {.n = 1, .v = {s->h}},
                          one_k = {.n = 1, .v = {s->k}};
        const struct list *h =
            run->h.n && method != EP_METHOD_SYNC ? &run->h : &one_h;
        const struct list *k =
            run->k.n && method == EP_METHOD_HALOS ? &run->k : &one_k;

        for (size_t i = 0; i < h->n; i++)
            for (size_t j = 0; j < k->n; j++)
                simulate(run, method, h->v[i], k->v[j]);
    }
}

/* Say so if transfers were given more than there is. */
static void remark_load(const struct run *run)
{
    const struct ep_sim_result *most = NULL;
    size_t n = 0, which = 0;
    struct ep_buf b;

    for (size_t i = 0; i < run->nrows; i++) {
        const struct ep_sim_result *o = &run->done[i].result;

        if (run->done[i].failed || o->load <= 1)
            continue;
        n++;
        if (most && o->load <= most->load)
            continue;
        most = o;
        which = i;
    }
    if (!most || run->env.contention)
        return;
    ep_buf_init(&b);
    ep_sim_name(run->done[which].method, &run->done[which].settings, &b);
    ep_buf_addf(&b, most->load < 99.95 ? " puts %.3g" : " puts %.0f",
                most->load);
    ep_buf_adds(&b, " times what it can carry on the link ");
    if (most->load_from == most->load_to)
        ep_buf_adds(&b, "inside");
    else
        ep_buf_addf(&b, "from %s to", run->env.region[most->load_from].name);
    ep_cli_warn("%s %s (such links: in %zu of %zu rows); see --contention",
                b.ptr, run->env.region[most->load_to].name, n, run->nrows);
    ep_buf_free(&b);
}

static void print_rows(struct run *run)
{
    struct ep_sim_row *row = ep_calloc(run->nrows, sizeof *row);
    double slowest = 0;

    for (size_t i = 0; i < run->nrows; i++)
        slowest = fmax(slowest, run->done[i].result.seconds);
    for (size_t i = 0; i < run->nrows; i++) {
        const struct done *d = &run->done[i];

        row[i] = (struct ep_sim_row){.env = &run->env,
                                     .method = d->method,
                                     .settings = &d->settings,
                                     .failed = d->failed};
        if (d->failed)
            continue;
        row[i].result = &d->result;
        row[i].speed = slowest / d->result.seconds;
    }
    if (opt.format == EP_CLI_TEXT)
        ep_sim_text(row, run->nrows, opt.verbose, !opt.quiet, &run->text);
    else if (opt.format == EP_CLI_TSV)
        ep_sim_tsv(row, run->nrows, opt.verbose, &run->text);
    else
        ep_sim_jsonl(row, run->nrows, opt.verbose, &run->text);
    free(row);
}

static int run_all(struct run *run, struct ep_error *err)
{
    int rc = choose_methods(run, err);

    if (rc == 0)
        rc = parse_all_numbers(run, err);
    if (rc < 0)
        return rc;
    override(&run->env);
    rc = check_effect(run, err);
    if (rc < 0)
        return rc;
    run->file = ep_outfile_open(opt.output, err);
    if (!run->file)
        return err->code;
    simulate_all(run);
    if (!opt.records)
        print_rows(run);
    if (!opt.quiet)
        remark_load(run);
    (void)fwrite(run->text.ptr, 1, run->text.len, ep_outfile_stream(run->file));
    return ep_outfile_commit(run->file, err);
}

static int check_usage(int operands, struct ep_error *err)
{
    if (!opt.event_only)
        return ep_error_set(err, EP_EUSAGE,
                            "cannot train on the virtual clock: this version "
                            "has --event-only alone");
    if (operands != 1)
        return ep_error_set(err, EP_EUSAGE,
                            "cannot simulate: give one environment file "
                            "(see --help)");
    if (opt.records && opt.format == EP_CLI_TEXT)
        return ep_error_set(err, EP_EUSAGE,
                            "cannot use --records with --format text: it "
                            "needs jsonl or tsv");
    return 0;
}

int main(int argc, char **argv)
{
    struct ep_error err = {.code = 0};
    struct run run = {.nrows = 0};
    int first = ep_cli_begin(&program, argc, argv);
    int rc = check_usage(argc - first, &err);

    if (opt.format < 0)
        opt.format =
            opt.records ? EP_CLI_JSONL : ep_cli_default_format(opt.output);
    ep_buf_init(&run.text);
    ep_buf_init(&run.job);
    if (rc == 0)
        rc = read_env(argv[first], &run.env, &err);
    if (rc == 0)
        rc = run_all(&run, &err);
    if (rc < 0)
        ep_cli_error(&err);
    for (size_t i = 0; i < run.nrows; i++) {
        ep_sim_result_free(&run.done[i].result);
        free(run.done[i].failed);
    }
    free(run.done);
    ep_buf_free(&run.job);
    ep_buf_free(&run.text);
    ep_env_free(&run.env);
    return ep_cli_end(rc < 0 || run.nfailed ? EP_EXIT_TROUBLE : EP_EXIT_CLEAN);
}
