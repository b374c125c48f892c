/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_merge_plan.c - what a merge refuses, and how completely it says so;
 * missing tensors; states; what is written into the metadata.
 */
#include "config.h"

#include "merge_files.h"
#include "tap.h"

#include <fcntl.h>
#include <sys/stat.h>

static const double ramp[16] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14};
static const double ones[16] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};

static const struct ep_merge_config plain = {.dtype = -1};

/* Run, and free all but what the caller looks at: the code. */
static int code_of(const struct ep_merge_config *c, const struct job *job)
{
    struct outcome o;
    int rc;

    merge_files(&o, c, job);
    rc = o.rc;
    outcome_free(&o);
    return rc;
}

/* Does the run end so, with these words in its message or lines? */
static void refused(const struct ep_merge_config *c, const struct job *job,
                    int code, const char *words)
{
    struct outcome o;

    merge_files(&o, c, job);
    ok(o.rc == code);
    if (!ok(strstr(o.err.msg, words) || strstr(o.lines.text.ptr, words)))
        printf("# wanted: %s\n# got: %s\n# lines: %s", words, o.err.msg,
               o.lines.text.ptr);
    ok(access(in_folder(job->out), F_OK) != 0);
    outcome_free(&o);
}

static void make(const char *name, struct file_tensor t, const char *meta)
{
    const char *const list[] = {meta, NULL};

    make_file(in_folder(name), &t, 1, meta ? list : NULL);
}

static struct job job_of(const char *base, const char *a, const char *b)
{
    struct job job = {.out = "none", .base = base, .input = {a, b}};

    job.ninputs = b ? 2 : 1;
    return job;
}

/* ==== Tensors ==== */

static void make_models(void)
{
    struct file_tensor base[] = {
        {"a", EP_DT_F32, 2, 3, ramp, NULL},
        {"b", EP_DT_BF16, 4, 0, ramp, NULL},
        {"i", EP_DT_I64, 1, 0, NULL, ramp},
        {"z", EP_DT_F32, 3, 0, ramp, NULL},
    };
    struct file_tensor other[] = {
        {"a", EP_DT_F32, 3, 2, ramp, NULL},  /* shape */
        {"aa", EP_DT_F32, 1, 0, ramp, NULL}, /* extra */
        {"b", EP_DT_F16, 4, 0, ramp, NULL},  /* fine */
        {"i", EP_DT_F32, 1, 0, ramp, NULL},  /* type */
        {"zz\n", EP_DT_I64, 1, 0, NULL, ramp},
    };

    make_file(in_folder("base"), base, 4, NULL);
    make_file(in_folder("other"), other, 5, NULL);
    make_file(in_folder("first"), base, 2, NULL);
}

static void test_differences(void)
{
    static const char *const want[] = {
        "other: tensor \"a\": shape [3, 2], the base has [2, 3]\n",
        "other: tensor \"aa\": not in the base\n",
        "other: tensor \"i\": type F32, the base has I64\n",
        "other: tensor \"z\": missing\n",
        "other: tensor \"zz\\x0a\": not in the base\n",
        "first: tensor \"i\": missing\n",
        "first: tensor \"z\": missing\n",
    };
    struct job job = job_of("base", "other", "first");
    struct ep_merge_config c = plain;
    struct outcome o;

    merge_files(&o, &c, &job);
    ok(o.rc == EP_EFORMAT);
    ok(o.lines.n == 7);
    ok(strcmp(o.err.msg, "cannot merge: 7 differences") == 0);
    for (size_t i = 0; i < sizeof want / sizeof want[0]; i++)
        if (!ok(strstr(o.lines.text.ptr, want[i]) != NULL))
            printf("# wanted %s", want[i]);
    outcome_free(&o);
    /* of another shape, or with another kind of type: never */
    c.allow_missing = true;
    merge_files(&o, &c, &job);
    ok(o.rc == EP_EFORMAT && o.lines.n == 2);
    outcome_free(&o);
}

static void test_missing(void)
{
    static const double two[6] = {2, 2, 2, 2, 2, 2};
    struct file_tensor a = {"a", EP_DT_F32, 2, 3, two, NULL};
    struct file_tensor part[] = {
        {"b", EP_DT_F32, 4, 0, ones, NULL},
        {"x", EP_DT_F32, 1, 0, ones, NULL},
    };
    static const double weight[] = {1, 3};
    struct ep_merge_config c = {.dtype = -1, .weights = weight, .nweights = 2};
    struct job job = job_of("base", "only a", "only b");
    double v[6];

    make("only a", a, NULL);
    make_file(in_folder("only b"), part, 2, NULL);
    job.out = "out";
    ok(code_of(&c, &job) == EP_EFORMAT);
    c.allow_missing = true;
    ok(code_of(&c, &job) == 0);
    read_values("out", "a", v, 6); /* the weight of the other does not count */
    ok(v[0] == 2 && v[5] == 2);
    read_values("out", "b", v, 4);
    ok(v[0] == 1 && v[3] == 1);
    read_values("out", "z", v, 3); /* nobody has it: the base's */
    ok(v[0] == 1 && v[2] == 3);
}

/* ==== Values ==== */

static void test_nonfinite(void)
{
    enum { MANY = 300000 };
    static double v[MANY];
    struct file_tensor t = {"w", EP_DT_F32, MANY, 0, v, NULL};
    struct ep_merge_config c = plain;
    struct job job = job_of("finite", "broken", NULL);

    make("finite", t, NULL);
    v[299999] = (double)INFINITY;
    v[150001] = (double)NAN;
    make("broken", t, NULL);
    for (int threads = 1; threads <= 4; threads += 3) {
        job.threads = threads;
        refused(&c, &job, EP_EDOM,
                "broken: tensor \"w\", element 150001: it is nan");
    }
    job.base = "broken";
    job.input[0] = "finite";
    refused(&c, &job, EP_EDOM,
            "broken: tensor \"w\", element 150001: it is nan");
    c.allow_nonfinite = true;
    job.out = "out";
    ok(code_of(&c, &job) == 0);
    job.input[0] = "broken";
    ok(code_of(&c, &job) == 0);
    read_values("out", "w", v, MANY);
    ok(isnan(v[150001]) && isinf(v[299999]) && v[0] == 0);
}

static void test_overflow(void)
{
    static const double edge[] = {65519, 448, 464, 465, -1000};
    struct file_tensor t = {"w", EP_DT_F32, 5, 0, edge, NULL};
    struct ep_merge_config c = {.dtype = EP_DT_F16};
    struct job job = job_of("edge", "edge", NULL);
    struct outcome o;
    double v[5];

    make("edge", t, NULL);
    job.out = "fits";
    ok(code_of(&c, &job) == 0);
    read_values("fits", "w", v, 5);
    ok(v[0] == 65504);
    c.dtype = EP_DT_F8_E4M3; /* 464 is the tie, which goes to 448 */
    job.out = "fits";
    merge_files(&o, &c, &job);
    ok(o.rc == 0 && o.report.saturated == 3);
    outcome_free(&o);
    read_values("fits", "w", v, 5);
    ok(v[0] == 448 && v[1] == 448 && v[2] == 448 && v[4] == -448);
    job.out = "none";
    c.dtype = EP_DT_F8_E5M2;
    refused(&c, &job, EP_EDOM,
            "element 0: the result 65519 is too large for F8_E5M2");
    /* twice the step: 65519 + 65519 */
    t.v = (const double[5]){0};
    make("zero", t, NULL);
    c = (struct ep_merge_config){
        .method = EP_MERGE_SGD, .outer = {.lr = 2, .n = 1}, .dtype = EP_DT_F16};
    job.base = "zero";
    refused(&c, &job, EP_EDOM,
            "element 0: the result 131038 is too large for F16");
}

/* Limits of each type, on both ways of computing: the last number that fits. */
static void test_limits(void)
{
    static const struct {
        enum ep_dtype t;
        double fits, over;
    } list[] = {
        {EP_DT_F16, 65519.99, 65520},
        {EP_DT_F8_E5M2, 61439.99, 61440},
        {EP_DT_BF16, 3.3961e38, 3.3962e38},
    };
    struct job job = job_of("limit", "limit", NULL);

    for (size_t i = 0; i < sizeof list / sizeof list[0]; i++) {
        for (int compute = EP_MERGE_F32; compute <= EP_MERGE_F64; compute++) {
            struct ep_merge_config c = {
                .dtype = list[i].t, .compute = (enum ep_merge_compute)compute};
            double v[9] = {0, 0, 0, 0, 0, 0, 0, 0, -list[i].fits};
            struct file_tensor t = {"w", EP_DT_F64, 9, 0, v, NULL};

            make("limit", t, NULL);
            job.out = "fits";
            ok(code_of(&c, &job) == 0);
            job.out = "none";
            v[8] = -list[i].over;
            make("limit", t, NULL);
            ok(code_of(&c, &job) == EP_EDOM);
        }
    }
}

/* ==== What a file says it is ==== */

static void test_kinds(void)
{
    struct file_tensor t = {"w", EP_DT_F32, 4, 0, ones, NULL};
    const char *const end[] = {"evenpace.kind=delta", "evenpace.sign=end-start",
                               NULL};
    struct ep_merge_config c = plain;

    make("model", t, "evenpace.kind=model");
    make("plain", t, NULL);
    make("delta", t, "evenpace.kind=delta");
    make("state", t, "evenpace.kind=state");
    make_file(in_folder("end"), &t, 1, end);
    refused(
        &c,
        &(struct job){
            .out = "none", .base = "plain", .input = {"delta"}, .ninputs = 1},
        EP_EFORMAT, "delta: a delta that states no sign");
    refused(
        &c,
        &(struct job){
            .out = "none", .base = "plain", .input = {"state"}, .ninputs = 1},
        EP_EFORMAT, "state: it is the state of an optimiser");
    refused(&c,
            &(struct job){
                .out = "none", .base = "end", .input = {"plain"}, .ninputs = 1},
            EP_EFORMAT, "end: it is a delta, the base must be a model");
    c.declared = EP_MERGE_START_END;
    refused(&c,
            &(struct job){.out = "none",
                          .base = "plain",
                          .input = {"end", "model"},
                          .ninputs = 2},
            EP_EFORMAT, "end: its sign is end-start, not start-end");
    refused(&c,
            &(struct job){.out = "none",
                          .base = "plain",
                          .input = {"end", "model"},
                          .ninputs = 2},
            EP_EFORMAT, "model: it says that it is a model, not a delta");
    c.declared = EP_MERGE_END_START;
    ok(code_of(&c, &(struct job){.out = "out",
                                 .base = "plain",
                                 .input = {"end", "delta", "plain"},
                                 .ninputs = 3}) == 0);
}

/* Words that nobody knows are not taken for others. */
static void test_words(void)
{
    static const char *const bad[][3] = {
        {"evenpace.kind=Delta", NULL,
         "odd: its evenpace.kind \"Delta\" is not model, delta or state"},
        {"evenpace.kind=", NULL, "odd: its evenpace.kind \"\" is not model"},
        {"evenpace.sign=start-end", NULL,
         "odd: it has an evenpace.sign, but no evenpace.kind"},
        {"evenpace.sign=start-end", "evenpace.kind=model",
         "odd: it has an evenpace.sign and says that it is a model"},
        {"evenpace.kind=delta", "evenpace.sign=up",
         "odd: its evenpace.sign \"up\" is not start-end or end-start"},
    };
    struct file_tensor t = {"w", EP_DT_F32, 4, 0, ones, NULL};
    struct ep_merge_config c = plain;
    struct job in = job_of("plain", "odd", NULL);
    struct job base = job_of("odd", "plain", NULL);

    make("plain", t, NULL);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        const char *const meta[] = {bad[i][0], bad[i][1], NULL};

        make_file(in_folder("odd"), &t, 1, meta);
        c.declared = EP_MERGE_MODEL;
        refused(&c, &in, EP_EFORMAT, bad[i][2]);
        refused(&c, &base, EP_EFORMAT, bad[i][2]);
        c.declared = EP_MERGE_END_START;
        ok(code_of(&c, &in) == EP_EFORMAT);
    }
    /* a sign is enough if it was declared that it is a delta */
    make("odd", t, "evenpace.sign=start-end");
    refused(&c, &in, EP_EFORMAT, "odd: its sign is start-end, not end-start");
    c.declared = EP_MERGE_START_END;
    in.out = "out";
    ok(code_of(&c, &in) == 0);
}

static void test_settings(void)
{
    static const double negative[] = {1, -1}, none[] = {0, 0};
    static const struct {
        struct ep_merge_config c;
        const char *words;
    } list[] = {
        {{.weights = negative, .nweights = 2}, "weight -1"},
        {{.weights = none, .nweights = 2}, "sum is 0"},
        {{.weights = none, .nweights = 1}, "1 weight: there are 2 inputs"},
        {{.method = EP_MERGE_MIX, .alpha = 1.5}, "alpha 1.5"},
        {{.method = EP_MERGE_SGD, .outer = {.n = 1}}, "lr"},
        {{.method = EP_MERGE_DELAYED,
          .outer = {.lr = 1, .n = 1},
          .by_tokens = true},
         "each input is a step of its own"},
        {{.dtype = EP_DT_I64}, "type I64"},
    };
    struct job job = job_of("plain", "plain", "plain");

    for (size_t i = 0; i < sizeof list / sizeof list[0]; i++) {
        struct ep_merge_config c = list[i].c;

        if (c.dtype == EP_DT_BOOL)
            c.dtype = -1;
        refused(&c, &job, EP_EDOM, list[i].words);
    }
}

static void test_tokens(void)
{
    struct file_tensor t = {"w", EP_DT_F32, 4, 0, ones, NULL};
    struct ep_merge_config c = {.dtype = -1, .by_tokens = true};
    struct job job = job_of("plain", "ten", "thirty");
    double v[4];

    make("ten", t, "evenpace.tokens=10");
    t.v = (const double[]){5, 5, 5, 5};
    make("thirty", t, "evenpace.tokens=30");
    make("odd", t, "evenpace.tokens=1e3");
    job.out = "out";
    ok(code_of(&c, &job) == 0);
    read_values("out", "w", v, 4);
    ok(v[0] == 4);
    job = job_of("plain", "plain", "odd");
    refused(&c, &job, EP_EFORMAT, "plain: evenpace.tokens is missing");
    refused(&c, &job, EP_EFORMAT, "odd: evenpace.tokens is not a number");
}

/* ==== State ==== */

static void test_state(void)
{
    struct file_tensor t = {"w", EP_DT_F32, 4, 0, ones, NULL};
    struct ep_merge_config c = {.method = EP_MERGE_DELAYED,
                                .outer = {.lr = 1, .beta = 0.5, .n = 2},
                                .dtype = -1};
    struct job job = job_of("plain", "ten", NULL);
    struct ep_ckpt *s;

    t.name = "v";
    make("v", t, NULL);
    job.out = "step1";
    job.state_out = "state1";
    ok(code_of(&c, &job) == 0);
    s = must_open(in_folder("state1"));
    ok(ep_ckpt_count(s) == 2);
    ok(ep_span_eq(ep_ckpt_meta_find(s, "evenpace.kind"), "state"));
    ok(ep_span_eq(ep_ckpt_meta_find(s, "evenpace.outer_step"), "1"));
    ok(ep_span_eq(ep_ckpt_meta_find(s, "evenpace.beta"), "0.5"));
    ok(ep_span_eq(ep_ckpt_meta_find(s, "evenpace.buffer"), "2"));
    ep_ckpt_close(s);

    job = job_of("plain", "ten", NULL); /* the base is one step behind */
    job.state_in = "state1";
    refused(&c, &job, EP_EFORMAT,
            "state1: it is of outer step 1, the base of 0");
    job.base = "step1";
    c.outer.n = 3;
    refused(&c, &job, EP_EFORMAT, "its buffer of 2 holds 1");
    c.outer.n = 1;
    refused(&c, &job, EP_EFORMAT, "state1: tensor \"buffer.w\": no use for it");
    c.outer.n = 2;
    job.base = job.input[0] = "v";
    refused(&c, &job, EP_EFORMAT, "tensor \"momentum.v\": missing");
    refused(&c, &job, EP_EFORMAT, "tensor \"momentum.w\": no use for it");
    job.base = "step1";
    job.input[0] = "ten";
    job.state_in = "plain";
    refused(&c, &job, EP_EFORMAT, "plain: it is not the state of an optimiser");
    job.state_in = "state1";
    c.method = EP_MERGE_MEAN;
    refused(&c, &job, EP_EFORMAT, "state1: the method has no state");
}

/* ==== Metadata ==== */

static void test_metadata(void)
{
    struct file_tensor t = {"w", EP_DT_F32, 4, 0, ones, NULL};
    const char *const base[] = {"format=pt", "evenpace.tokens=99",
                                "evenpace.outer_step=4", "note=kept", NULL};
    const char *const in[] = {"evenpace.tokens=10", "evenpace.steps=3", NULL};
    struct ep_merge_config c = plain;
    struct job job = job_of("told", "worked", "ten");
    struct ep_ckpt *o;

    make_file(in_folder("told"), &t, 1, base);
    make_file(in_folder("worked"), &t, 1, in);
    job.out = "out";
    ok(code_of(&c, &job) == 0);
    o = must_open(in_folder("out"));
    ok(ep_span_eq(ep_ckpt_meta_find(o, "format"), "pt"));
    ok(ep_span_eq(ep_ckpt_meta_find(o, "note"), "kept"));
    ok(ep_span_eq(ep_ckpt_meta_find(o, "evenpace.kind"), "model"));
    ok(ep_span_eq(ep_ckpt_meta_find(o, "evenpace.outer_step"), "5"));
    ok(ep_span_eq(ep_ckpt_meta_find(o, "evenpace.tokens"), "20"));
    ok(!ep_ckpt_meta_find(o, "evenpace.steps").ptr); /* one did not tell */
    ep_ckpt_close(o);
    c.method = EP_MERGE_DELTA;
    ok(code_of(&c, &job) == 0);
    o = must_open(in_folder("out"));
    ok(ep_span_eq(ep_ckpt_meta_find(o, "evenpace.kind"), "delta"));
    ok(ep_span_eq(ep_ckpt_meta_find(o, "evenpace.sign"), "start-end"));
    ok(ep_span_eq(ep_ckpt_meta_find(o, "evenpace.outer_step"), "4"));
    ep_ckpt_close(o);
}

/* A tensor that cannot be computed with is the base's, and it is said. */
static void test_carried(void)
{
    static const int64_t a[] = {1, 2}, b[] = {1, 3};
    struct file_tensor t = {"i", EP_DT_I64, 2, 0, NULL, a};
    struct job job = job_of("whole", "whole", "other whole");
    struct outcome o;

    make("whole", t, NULL);
    t.raw = b;
    make("other whole", t, NULL);
    job.out = "out";
    merge_files(&o, &plain, &job);
    ok(o.rc == 0 && o.lines.n == 1);
    ok(strstr(o.lines.text.ptr, "other whole: tensor \"i\": I64 is not") !=
       NULL);
    outcome_free(&o);
}

/* ==== The run and the outside ==== */

static void touch_input(void *ctx, uint64_t done, uint64_t all)
{
    const struct timespec times[2] = {{1, 0}, {1, 0}};

    (void)ctx;
    (void)done;
    (void)all;
    ok(utimensat(AT_FDCWD, in_folder("two"), times, 0) == 0);
}

static int say_no(void *ctx, const struct ep_merge_report *report,
                  struct ep_error *err)
{
    (void)ctx;
    ok(report->norm && report->norm[0] == 2);
    ok(access(in_folder("none"), F_OK) != 0);
    return ep_error_set(err, EP_ESYS, "cannot say it");
}

static void test_outside(void)
{
    static const atomic_int now = 15;
    struct file_tensor t = {"w", EP_DT_F32, 4, 0, ones, NULL};
    struct ep_merge_config c = plain;
    struct job job = job_of("one", "two", NULL);
    double v[4];

    make("one", t, NULL);
    t.v = (const double[]){2, 2, 2, 2};
    make("two", t, NULL);
    job.ready = say_no;
    refused(&c, &job, EP_ESYS, "cannot say it");
    job.ready = NULL;
    job.stop = &now;
    refused(&c, &job, EP_ESYS, "cannot merge: interrupted");
    job.stop = NULL;
    job.progress = touch_input;
    refused(&c, &job, EP_EDOM, "two: it changed while it was read");
    job.progress = NULL;
    job.out = "two";
    ok(code_of(&c, &job) == 0);
    read_values("two", "w", v, 4);
    ok(v[0] == 2);
}

/* A number that is finite in its file is not called infinite. */
static void test_too_large(void)
{
    static const double huge[] = {0, 0, 1e300};
    struct file_tensor t = {"w", EP_DT_F64, 3, 0, huge, NULL};
    struct ep_merge_config c = {.dtype = -1, .compute = EP_MERGE_F32};
    struct job job = job_of("small", "huge", NULL), turned = job;

    make("huge", t, NULL);
    t.v = ramp;
    make("small", t, NULL);
    refused(&c, &job, EP_EDOM,
            "huge: tensor \"w\", element 2: 1e+300 is too large for F32");
    turned.base = "huge";
    turned.input[0] = "small";
    c.method = EP_MERGE_DELTA;
    refused(&c, &turned, EP_EDOM,
            "huge: tensor \"w\", element 2: 1e+300 is too large for F32");
    /* a result in F64 is computed in double */
    t = (struct file_tensor){"w", EP_DT_F32, 1, 0, ramp, NULL};
    make("small", t, NULL);
    t.v = (const double[]){2};
    make("huge", t, NULL);
    c = (struct ep_merge_config){
        .dtype = EP_DT_F64, .method = EP_MERGE_MIX, .alpha = 0.1};
    job.out = "out";
    ok(code_of(&c, &job) == 0);
    {
        double v;

        read_values("out", "w", &v, 1);
        ok(v > 1.1 - 1e-15 && v < 1.1 + 1e-15);
    }
}

int main(void)
{
    begin_folder();
    make_models();
    test_differences();
    test_missing();
    test_nonfinite();
    test_overflow();
    test_limits();
    test_kinds();
    test_words();
    test_outside();
    test_too_large();
    test_settings();
    test_tokens();
    test_state();
    test_metadata();
    test_carried();
    end_folder();
    return tap_done();
}
