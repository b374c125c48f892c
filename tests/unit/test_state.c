/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_state.c - the oracle of what is saved: however an input is cut in two or
 * more runs, with the state saved and loaded in between, it leads to the very
 * findings of one run. A field that is forgotten shows here.
 */
#include "config.h"

#include "base/mem.h"
#include "detect/state.h"
#include "state_input.h"
#include "tap.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const struct ep_state_options options = {0.1,  3, 16,   0,
                                                0.01, 5, 1.25, 300};

/* A detector as skewdetect puts it together, and all that it found. */
struct run {
    struct ep_state what;
    struct ep_buf *seen;
    size_t refused;
};

static void on_finding(void *ctx, const struct ep_finding *f)
{
    struct run *r = ctx;

    ep_buf_addf(r->seen,
                "%d %d %s %s %" PRId64 " %s %s %s %s %.17g %.17g %" PRId64
                " %.17g %.17g %.17g\n",
                f->kind, f->scope, f->job ? f->job : "-",
                f->host ? f->host : "-", f->rank, f->id ? f->id : "-", f->eid,
                f->cause, f->evidence ? f->evidence : "-", f->ts, f->since,
                f->step, f->factor, f->p, f->gpu_hours);
}

/* As lib/feed does it: what was known is no sign of life. */
static void sign(struct run *r, enum ep_sign_kind kind, const struct ep_sign *x)
{
    struct ep_sign s = *x;

    s.kind = kind;
    r->refused += ep_watch_sign(r->what.watch, &s, NULL) < 0;
}

static void on_iteration(void *ctx, const struct ep_calls_step *x)
{
    struct run *r = ctx;
    struct ep_watch_step s = {
        .job = x->job,
        .host = x->host,
        .rank = x->rank,
        .ts = x->ts,
        .step = x->step,
        .dur = x->dur,
        .busy = x->busy,
        .mb = -1,
        .phase = x->phase,
    };

    r->refused += ep_watch_step(r->what.watch, &s, NULL) < 0;
}

static void begin(struct run *r, struct ep_buf *seen)
{
    struct ep_watch_config config = EP_WATCH_DEFAULTS;

    r->seen = seen;
    r->refused = 0;
    r->what.options = &options;
    config.silence.floor_s = 12;
    r->what.watch = ep_watch_new(&config, on_finding, r, NULL);
    r->what.calls = ep_calls_new(on_iteration, r);
    r->what.comms = ep_comms_new(0.1);
    ep_watch_use_comms(r->what.watch, r->what.comms);
}

static void end(struct run *r)
{
    ep_calls_free(r->what.calls);
    ep_watch_free(r->what.watch);
    ep_comms_free(r->what.comms);
}

static int take_call(struct run *r, const struct ep_call *x)
{
    struct ep_calls *c = r->what.calls;
    struct ep_sign s = {.job = x->job,
                        .host = x->host,
                        .worker = {"", 0},
                        .comm = x->comm,
                        .rank = x->rank,
                        .pid = x->pid,
                        .step = -1,
                        .seq = x->seq,
                        .nranks = x->nranks,
                        .ts = x->ts + x->dur};
    int rc = ep_calls_admit(c, x, NULL);

    if (rc <= 0)
        return rc;
    rc = ep_comms_take(r->what.comms, x, NULL);
    if (rc == 0)
        rc = ep_calls_push(c, x, NULL);
    if (rc == 0)
        sign(r, x->p2p ? EP_SIGN_P2P : EP_SIGN_CALL, &s);
    return rc;
}

static int take_step(struct run *r, const struct ep_watch_step *x)
{
    struct ep_watch *w = r->what.watch;
    uint64_t known = ep_watch_known(w);
    struct ep_sign s = {.job = x->job,
                        .host = x->host,
                        .worker = x->worker,
                        .comm = {"", 0},
                        .rank = x->rank,
                        .pid = -1,
                        .step = x->step,
                        .seq = -1,
                        .nranks = -1,
                        .place = x->place,
                        .ts = x->ts + x->dur};
    int rc = ep_watch_step(w, x, NULL);

    if (rc == 0 && ep_watch_known(w) == known)
        sign(r, EP_SIGN_STEP, &s);
    return rc;
}

static void take(struct run *r, const struct input_one *x)
{
    struct ep_watch *w = r->what.watch;
    int rc = 0;

    switch (x->kind) {
    case IN_STEP:
        rc = take_step(r, &x->step);
        break;
    case IN_PROBE:
        rc = ep_watch_probe(w, &x->probe, NULL);
        break;
    case IN_GAUGE:
        rc = ep_watch_gauge(w, &x->gauge, NULL);
        break;
    case IN_LINK:
        rc = ep_watch_link(w, &x->link, NULL);
        break;
    case IN_CALL:
        rc = take_call(r, &x->call);
        break;
    }
    r->refused += rc < 0;
}

static void finish(struct run *r)
{
    ep_calls_finish(r->what.calls);
    ep_watch_finish(r->what.watch);
    ep_buf_adds(r->seen, "open:\n");
    ep_watch_open(r->what.watch, on_finding, r);
}

/* Bytes of the state; the caller frees a. */
static struct ep_span save(struct run *r, struct ep_archive *a)
{
    struct ep_error err = {.msg = ""};

    if (ep_state_save(&r->what, a, "1", &err) < 0)
        printf("# %s\n", err.msg);
    return (struct ep_span){a->out.ptr, a->out.len};
}

static bool same(struct ep_span a, struct ep_span b)
{
    return a.len == b.len && memcmp(a.ptr, b.ptr, a.len) == 0;
}

/* Another detector that goes on: false if its state is not the same. */
static bool hand_over(struct run *r)
{
    struct ep_archive a, again, loaded;
    struct ep_span bytes = save(r, &a);
    struct ep_buf *seen = r->seen;
    struct ep_error err = {.msg = ""};
    bool good = same(save(r, &again), bytes);
    size_t refused = r->refused;

    end(r);
    begin(r, seen);
    r->refused = refused;
    good = ep_state_load(&r->what, bytes, &err) == 0 && good;
    if (*err.msg)
        printf("# %s\n", err.msg);
    good = same(save(r, &loaded), bytes) && good;
    ep_archive_free(&a);
    ep_archive_free(&again);
    ep_archive_free(&loaded);
    return good;
}

/* What a run comes to: its findings, and its state at the end of the input. */
struct outcome {
    struct ep_buf seen;
    struct ep_archive state;
};

static void forget(struct outcome *o)
{
    ep_buf_free(&o->seen);
    ep_archive_free(&o->state);
}

/* All in one run; free with forget. */
static void whole(const struct input *in, struct outcome *out)
{
    struct run r;

    ep_buf_init(&out->seen);
    begin(&r, &out->seen);
    for (size_t i = 0; i < in->n; i++)
        take(&r, &in->v[i]);
    (void)save(&r, &out->state);
    finish(&r);
    end(&r);
}

/*
 * The same in runs that end at the cuts, [n] ascending; again: each reads from
 * the beginning, as of a log that grows.
 */
static bool in_runs(const struct input *in, const size_t *cuts, size_t n,
                    bool again, const struct outcome *want)
{
    struct ep_archive state;
    struct ep_buf seen;
    struct run r;
    size_t at = 0;
    bool good = true;

    ep_buf_init(&seen);
    begin(&r, &seen);
    for (size_t k = 0; k <= n; k++) {
        size_t to = k < n ? cuts[k] : in->n;

        for (size_t i = again ? 0 : at; i < to; i++)
            take(&r, &in->v[i]);
        at = to;
        if (k < n)
            good = hand_over(&r) && good;
    }
    good = good &&
           same(save(&r, &state),
                (struct ep_span){want->state.out.ptr, want->state.out.len});
    ep_archive_free(&state);
    finish(&r);
    good = good && strcmp(seen.ptr, want->seen.ptr) == 0;
    if (!good) {
        size_t i = 0;

        while (seen.ptr[i] && seen.ptr[i] == want->seen.ptr[i])
            i++;
        while (i && seen.ptr[i - 1] != '\n')
            i--;
        printf("# %zu cuts, the first at %zu of %zu, again %d\n", n, cuts[0],
               in->n, again);
        printf("# got  %.200s\n# want %.200s\n", seen.ptr + i,
               want->seen.ptr + i);
    }
    end(&r);
    ep_buf_free(&seen);
    return good;
}

static size_t lines(const struct ep_buf *b)
{
    size_t n = 0;

    for (const char *p = b->ptr; *p; p++)
        n += *p == '\n';
    return n;
}

/* A small input, cut at each 13th place, others each time. */
static void test_any_cut(uint64_t seed, bool again)
{
    struct input in;
    struct outcome want;
    size_t bad = 0;

    input_make(&in, 5, 32, again);
    whole(&in, &want);
    for (size_t cut = seed % 13; cut <= in.n && bad < 3; cut += 13)
        bad += !in_runs(&in, &cut, 1, again, &want);
    ok(bad == 0);
    ok(lines(&want.seen) > 5);
    printf("# cut at %zu places, %zu findings\n", in.n / 13, lines(&want.seen));
    forget(&want);
    free(in.v);
}

static int by_size(const void *a, const void *b)
{
    const size_t *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

static void test_random_cuts(uint64_t seed)
{
    struct rng rng = {seed};
    size_t bad = 0, findings = 0, trials = 0;

    for (; trials < 6 && bad < 3; trials++) {
        size_t cuts[8], n = 3 + trials % 6;
        struct input in;
        struct outcome want;

        /* calls that overlap are told apart only if all is read again */
        input_make(&in, seed + trials, 120 + (int)(60 * rng_uniform(&rng)),
                   trials % 2);
        whole(&in, &want);
        findings += lines(&want.seen);
        for (size_t k = 0; k < n; k++)
            cuts[k] = (size_t)(rng_uniform(&rng) * (double)in.n);
        qsort(cuts, n, sizeof *cuts, by_size);
        bad += !in_runs(&in, cuts, n, trials % 2, &want);
        forget(&want);
        free(in.v);
    }
    ok(bad == 0);
    ok(findings > 10 * trials);
    printf("# seed %llu, %zu inputs, %zu findings\n", (unsigned long long)seed,
           trials, findings);
}

/* What is new and what is not, where the rule has an edge. */
static void test_again(void)
{
    struct ep_buf seen;
    struct run r;
    struct input_one x = {.kind = IN_STEP};

    ep_buf_init(&seen);
    begin(&r, &seen);
    x.step = (struct ep_watch_step){.job = span_of("j"),
                                    .host = span_of(""),
                                    .worker = span_of(""),
                                    .ts = 10,
                                    .step = 5,
                                    .dur = 1,
                                    .busy = (double)NAN,
                                    .mb = -1};
    take(&r, &x);
    x.step.ts = 9; /* in one run time must not run backwards */
    take(&r, &x);
    ok(r.refused == 1);
    ok(hand_over(&r));
    take(&r, &x); /* read again */
    x.step.ts = 10;
    take(&r, &x);
    ok(r.refused == 1);
    x.step.step = 6; /* of the same second, but new */
    take(&r, &x);
    x.step.ts = 12;
    x.step.step = 7;
    take(&r, &x);
    x.step.ts = 11; /* new, and backwards */
    take(&r, &x);
    ok(r.refused == 2);
    x.step.ts = 10;
    x.step.step = 5;
    take(&r, &x);
    ok(r.refused == 2);
    end(&r);
    ep_buf_free(&seen);
}

static void refuse(const struct ep_state_options *o, const char *want)
{
    struct ep_error err = {.msg = ""};
    struct ep_archive a;
    struct ep_span bytes;
    struct ep_buf seen;
    struct run r;

    ep_buf_init(&seen);
    begin(&r, &seen);
    bytes = save(&r, &a);
    end(&r);
    begin(&r, &seen);
    r.what.options = o;
    ok(ep_state_load(&r.what, bytes, &err) == EP_EFORMAT);
    ok(strcmp(err.msg, want) == 0);
    end(&r);
    ep_archive_free(&a);
    ep_buf_free(&seen);
}

static void test_options(void)
{
    struct ep_state_options window = options, change = options,
                            confirm = options, world = options, z = options,
                            spike = options, hazard = options, hang = options;

    window.window = 32;
    change.min_change = 0.2;
    confirm.confirm = 5;
    world.world = 8;
    hazard.hazard = 0.02;
    z.z = 6;
    spike.spike = 2;
    hang.hang = 60;

    refuse(&window, "--window was 16 when it was written, and is 32 now");
    refuse(&change, "--min-change was 0.1 when it was written, and is 0.2 now");
    refuse(&confirm, "--confirm was 3 when it was written, and is 5 now");
    refuse(&world, "--world was 0 when it was written, and is 8 now");
    refuse(&hazard, "--hazard was 0.01 when it was written, and is 0.02 now");
    refuse(&z, "--z was 5 when it was written, and is 6 now");
    refuse(&spike, "--spike was 1.25 when it was written, and is 2 now");
    refuse(&hang, "--hang was 300 when it was written, and is 60 now");
}

/* Any byte changed, and the sum right: nothing may break. */
static void test_hostile(void)
{
    struct input in;
    struct ep_archive a;
    struct ep_span bytes;
    struct ep_buf seen, copy;
    struct run r;
    size_t loaded = 0, refused = 0;

    input_make(&in, 8, 40, true);
    ep_buf_init(&seen);
    ep_buf_init(&copy);
    begin(&r, &seen);
    for (size_t i = 0; i < in.n / 2; i++)
        take(&r, &in.v[i]);
    bytes = save(&r, &a);
    end(&r);
    for (size_t k = 40; k + 4 < bytes.len; k += 1 + k % 61) {
        uint32_t sum;

        ep_buf_reset(&copy);
        ep_buf_add(&copy, bytes.ptr, bytes.len);
        copy.ptr[k] = (char)(copy.ptr[k] ^ 1 << k % 8);
        sum = ep_archive_crc32(copy.ptr, copy.len - 4);
        for (int i = 0; i < 4; i++)
            copy.ptr[copy.len - 4 + (size_t)i] = (char)(sum >> 8 * i);
        begin(&r, &seen);
        if (ep_state_load(&r.what, (struct ep_span){copy.ptr, copy.len},
                          NULL) == 0) {
            loaded++;
            for (size_t i = in.n / 2; k % 5 == 0 && i < in.n; i++)
                take(&r, &in.v[i]);
        } else {
            refused++;
        }
        end(&r);
    }
    ok(refused > 100 && loaded > 100);
    printf("# %zu refused, %zu loaded\n", refused, loaded);
    ep_archive_free(&a);
    ep_buf_free(&seen);
    ep_buf_free(&copy);
    free(in.v);
}

int main(int argc, char **argv)
{
    uint64_t seed =
        argc > 1 ? strtoull(argv[1], NULL, 10) : (uint64_t)time(NULL);

    test_again();
    test_options();
    test_hostile();
    test_any_cut(seed, false);
    test_any_cut(seed, true);
    test_random_cuts(seed);
    return tap_done();
}
