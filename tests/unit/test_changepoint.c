/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_changepoint.c - the state machine on series made by hand, and the 18
 * labelled onsets and reliefs of a measured run.
 */
#include "config.h"

#include "detect/changepoint.h"

#include "series.h"
#include "tap.h"

#include <stdlib.h>
#include <string.h>

#define EVENTS_MAX 64

/* A tracker, what it reported, and when. */
struct run {
    struct ep_changepoint *cp;
    struct rng rng;
    double cv;
    int t;
    int n;
    int bad;
    struct ep_change e[EVENTS_MAX];
    int at[EVENTS_MAX];
};

static struct run *run_new(double cv)
{
    struct run *r = calloc(1, sizeof *r);

    r->cp = ep_changepoint_new(NULL, NULL);
    r->rng.s = 11;
    r->cv = cv;
    return r;
}

static void run_free(struct run *r)
{
    ep_changepoint_free(r->cp);
    free(r);
}

static void push(struct run *r, double value)
{
    struct ep_change e[EP_CHANGEPOINT_MAX_EVENTS];
    int n = ep_changepoint_push(r->cp, 1000.0 + r->t, r->t, value, e);

    for (int i = 0; i < n && r->n < EVENTS_MAX; i++) {
        r->e[r->n] = e[i];
        r->at[r->n++] = r->t;
    }
    r->bad += n < 0;
    r->t++;
}

/* n samples from level "from" to "to" (geometric), with noise. */
static void ramp(struct run *r, int n, double from, double to)
{
    for (int i = 0; i < n; i++) {
        double x = from * pow(to / from, n > 1 ? i / (n - 1.0) : 1);

        push(r, x * exp(r->cv * rng_normal(&r->rng)));
    }
}

static void flat(struct run *r, int n, double level)
{
    ramp(r, n, level, level);
}

static int count(const struct run *r, enum ep_change_kind kind)
{
    int n = 0;

    for (int i = 0; i < r->n; i++)
        n += r->e[i].kind == kind;
    return n;
}

static void check_life(void)
{
    struct run *r = run_new(0.01);

    ok(isnan(ep_changepoint_healthy(r->cp)));
    ok(isnan(ep_changepoint_level(r->cp)));
    ok(isnan(ep_changepoint_noise(r->cp)));
    flat(r, 50, 2);
    near(ep_changepoint_healthy(r->cp), 2, 0.02);
    near(ep_changepoint_level(r->cp), 2, 0.05);
    near(ep_changepoint_noise(r->cp), 0.01, 0.006);
    ok(ep_changepoint_episode(r->cp) == 0 && r->n == 0);
    flat(r, 40, 3);
    ok(r->n == 1 && r->e[0].kind == EP_CHANGE_ONSET);
    ok(r->e[0].since_step == 50 && r->e[0].since_ts == 1050);
    ok(r->at[0] <= 53);
    near(r->e[0].factor, 1.5, 0.03);
    near(r->e[0].before, 2, 0.03);
    near(r->e[0].after, 3, 0.05);
    ok(r->e[0].p > 0.95 && r->e[0].p <= 1);
    ok(!r->e[0].worsening && !r->e[0].partial && r->e[0].episode == 1);
    ok(ep_changepoint_episode(r->cp) == 1);
    flat(r, 40, 4);
    ok(r->n == 2 && r->e[1].kind == EP_CHANGE_ONSET && r->e[1].worsening);
    ok(r->e[1].since_step == 90 && r->e[1].episode == 1);
    near(r->e[1].factor, 2, 0.04);
    flat(r, 40, 2.6);
    ok(r->n == 3 && r->e[2].kind == EP_CHANGE_RELIEF && r->e[2].partial);
    near(r->e[2].factor, 1.3, 0.03);
    ok(ep_changepoint_episode(r->cp) == 1);
    flat(r, 40, 2);
    ok(r->n == 4 && r->e[3].kind == EP_CHANGE_RELIEF && !r->e[3].partial);
    ok(r->e[3].since_step == 170 && r->e[3].episode == 1);
    near(r->e[3].factor, 1, 0.03);
    ok(ep_changepoint_episode(r->cp) == 0);
    flat(r, 40, 3);
    ok(r->n == 5 && r->e[4].episode == 2 && !r->e[4].worsening);
    run_free(r);
}

/* Ten steps of 3 % each, 12 iterations long: one onset, where it began. */
static void check_ramps(void)
{
    struct run *r = run_new(0.005);

    flat(r, 60, 1);
    for (int i = 1; i <= 10; i++)
        flat(r, 12, pow(1.03, i));
    flat(r, 40, pow(1.03, 10));
    ok(r->n >= 1 && r->e[0].kind == EP_CHANGE_ONSET);
    printf("# ramp from 60: onset since %d, told at %d, %d events\n",
           (int)r->e[0].since_step, r->at[0], r->n);
    ok(llabs(r->e[0].since_step - 72) <= 12); /* 3 % is near, 6 % is not */
    ok(r->at[0] <= 60 + 4 * 12);
    ok(count(r, EP_CHANGE_RELIEF) == 0 && count(r, EP_CHANGE_SPIKE) == 0);
    ok(r->e[r->n - 1].episode == 1);
    ramp(r, 200, pow(1.03, 10), 1);
    flat(r, 40, 1);
    ok(r->e[r->n - 1].kind == EP_CHANGE_RELIEF && !r->e[r->n - 1].partial);
    ok(ep_changepoint_episode(r->cp) == 0);
    run_free(r);

    /* A relief that ends 8 % above the best level is one, too. */
    r = run_new(0.005);
    flat(r, 60, 1);
    flat(r, 60, 1.3);
    ramp(r, 150, 1.3, 1.06);
    flat(r, 80, 1.06);
    ok(r->e[r->n - 1].kind == EP_CHANGE_RELIEF && !r->e[r->n - 1].partial);
    run_free(r);

    /* 1 % in 20 iterations, for ever. */
    r = run_new(0.005);
    flat(r, 40, 1);
    ramp(r, 1000, 1, 1.6);
    printf(
        "# slow ramp from 40: onset since %d, told at %d, factor %.3f, "
        "%d events\n",
        (int)r->e[0].since_step, r->at[0], r->e[0].factor, r->n);
    ok(r->n >= 3 && r->n <= 6 && count(r, EP_CHANGE_ONSET) == r->n);
    ok(r->e[0].since_step >= 40 && r->e[0].since_step <= 120);
    run_free(r);
}

/* The way back ends a little above the best level, and a ramp starts there. */
static void check_ramp_after_relief(void)
{
    struct run *r = run_new(0.005);

    flat(r, 60, 1.0);
    flat(r, 40, 1.5);
    flat(r, 20, 1.05);
    ramp(r, 40, 1.05, 1.25);
    flat(r, 20, 1.25);
    ok(r->n >= 3 && r->e[1].kind == EP_CHANGE_RELIEF && !r->e[1].partial);
    ok(r->n >= 3 && r->e[2].kind == EP_CHANGE_ONSET);
    ok(r->n >= 3 && r->e[2].since_step >= r->e[1].since_step);
    ok(r->n >= 3 && r->e[2].since_ts >= r->e[1].since_ts);
    run_free(r);
}

static void check_warm_up(void)
{
    static const double slow[] = {1, 5, 60, 1000};

    for (size_t i = 0; i < sizeof slow / sizeof *slow; i++)
        for (int n = 1; n <= 50; n += 7) {
            struct run *r = run_new(0.01);

            push(r, 60 * slow[i]);
            ramp(r, n, slow[i], 1);
            flat(r, 100, 1);
            if (!ok(r->n == 0))
                printf("# slow %g, n %d\n", slow[i], n);
            near(ep_changepoint_healthy(r->cp), 1, 0.05);
            flat(r, 20, 1.3);
            ok(r->n == 1 && r->e[0].kind == EP_CHANGE_ONSET);
            run_free(r);
        }
}

static void check_spikes(void)
{
    struct run *r = run_new(0.01);

    /* 1 and 2 slow iterations are a spike, 3 are an onset. */
    for (int len = 1; len <= 3; len++) {
        flat(r, 37 + 5 * len, 1);
        flat(r, len, 4);
    }
    flat(r, 30, 1);
    ok(r->n == 4);
    ok(r->e[0].kind == EP_CHANGE_SPIKE && r->at[0] == 43);
    ok(r->e[0].since_step == 42 && r->e[0].episode == 0);
    near(r->e[0].factor, 4, 0.2);
    near(r->e[0].before, 1, 0.02);
    ok(r->e[1].kind == EP_CHANGE_SPIKE && r->e[1].since_step == 90);
    ok(r->e[2].kind == EP_CHANGE_ONSET && r->e[2].since_step == 144);
    ok(r->e[3].kind == EP_CHANGE_RELIEF && r->e[3].since_step == 147);
    run_free(r);

    /* Every 50 iterations: three reports, then silence; a tall one is news. */
    r = run_new(0.01);
    for (int i = 0; i < 20; i++) {
        flat(r, 49, 1);
        flat(r, 1, i == 15 ? 9 : 3);
    }
    ok(r->n == 4 && count(r, EP_CHANGE_SPIKE) == 4);
    ok(r->e[3].since_step == 15 * 50 + 49);
    /* A change is seen through them. */
    flat(r, 20, 1.2);
    ok(r->n == 5 && r->e[4].kind == EP_CHANGE_ONSET);
    run_free(r);

    /* Two periods at once: few reports of some 120 spikes. */
    r = run_new(0.01);
    for (int i = 1; i <= 3000; i++)
        flat(r, 1, i % 100 == 0 ? 5 : i % 30 == 0 ? 2 : 1);
    printf("# two periods: %d of 120 spikes told\n", r->n);
    ok(r->n <= 12 && count(r, EP_CHANGE_SPIKE) == r->n);
    run_free(r);
}

static void check_constant(void)
{
    static const double levels[] = {1e-9, 1e-3, 1, 1e6, 1e12};

    for (size_t i = 0; i < sizeof levels / sizeof *levels; i++) {
        struct run *r = run_new(0);
        double v = levels[i];

        flat(r, 300, v);
        flat(r, 300, v * 1.001);
        flat(r, 300, v * 0.999);
        flat(r, 300, v * 1.09);
        flat(r, 30, v);
        ok(r->n == 0 && r->bad == 0);
        flat(r, 30, v * 1.12);
        ok(r->n == 1 && r->e[0].kind == EP_CHANGE_ONSET);
        ok(r->e[0].since_step == 1230);
        near(r->e[0].factor, 1.12, 2e-3); /* 0.1 % is no better level */
        run_free(r);
    }
}

static void check_refused(void)
{
    static const double bad[] = {NAN, INFINITY, -INFINITY, 0, -1};
    struct run *a = run_new(0.01);
    struct run *b = run_new(0.01);
    struct ep_change e[EP_CHANGEPOINT_MAX_EVENTS];

    for (int i = 0; i < 200; i++) {
        flat(a, 1, i < 100 ? 1 : 2);
        flat(b, 1, i < 100 ? 1 : 2);
        for (int k = 0; k < 5; k++)
            if (ep_changepoint_push(b->cp, i, i, bad[k], e) != EP_EDOM ||
                ep_changepoint_push(b->cp, NAN, i, 1, e) != EP_EDOM)
                b->bad++;
    }
    ok(b->bad == 0 && a->n == 1 && b->n == 1);
    ok(a->at[0] == b->at[0] && a->e[0].factor == b->e[0].factor);
    ok(a->e[0].since_ts == b->e[0].since_ts && a->e[0].p == b->e[0].p);
    ok(ep_changepoint_level(a->cp) == ep_changepoint_level(b->cp));
    run_free(a);
    run_free(b);
}

/* Whatever comes, events are finite and alternate as they must. */
static void check_hostile(void)
{
    struct rng rng = {99};
    struct ep_changepoint *cp = ep_changepoint_new(NULL, NULL);
    struct ep_change e[EP_CHANGEPOINT_MAX_EVENTS];
    unsigned open = 0;
    long events = 0;
    int sane = 1;

    for (int t = 0; t < 100000; t++) {
        double u = rng_uniform(&rng);
        double v = t / 1000 % 3 ? exp(600 * (u - 0.5))
                                : (u < 0.3   ? 5e-324
                                   : u < 0.6 ? 1.7e308
                                             : 1);
        int n = ep_changepoint_push(cp, t, -1, v, e);

        sane &= n >= 0 && n <= EP_CHANGEPOINT_MAX_EVENTS;
        for (int i = 0; i < n; i++) {
            events++;
            sane &= e[i].p >= 0 && e[i].p <= 1 && e[i].since_step == -1;
            sane &= e[i].since_ts <= t && e[i].since_ts >= 0;
            sane &= e[i].factor > 0 && e[i].before > 0 && e[i].after > 0;
            if (e[i].kind == EP_CHANGE_ONSET)
                sane &= e[i].worsening == (open != 0);
            if (e[i].kind == EP_CHANGE_RELIEF)
                sane &= open != 0 && e[i].episode == open;
        }
        open = ep_changepoint_episode(cp);
    }
    printf("# hostile: %ld events\n", events);
    ok(sane);
    ep_changepoint_free(cp);
}

static void check_config(void)
{
    struct ep_changepoint_config c[14];
    struct ep_error err;

    for (int i = 0; i < 14; i++)
        c[i] = (struct ep_changepoint_config)EP_CHANGEPOINT_DEFAULTS;
    c[0].hazard = 1;
    c[1].propose = 0;
    c[2].min_change = -1;
    c[3].z = NAN;
    c[4].noise_floor = 0;
    c[5].spike_factor = 1;
    c[6].lag = 0;
    c[7].confirm = 0;
    c[8].settle = 3;
    c[9].window = 8;
    c[10].window = 65;
    c[11].settle = 33;
    c[12].confirm = 17;
    c[13].hazard = NAN;
    for (int i = 0; i < 14; i++) {
        err.code = 0;
        ok(!ep_changepoint_new(&c[i], &err) && err.code == EP_EDOM);
    }
}

struct label {
    int at;
    enum ep_change_kind kind;
};

static int read_labels(const char *dir, struct label *labels, int max)
{
    char path[4096];
    char line[256];
    FILE *f;
    int n = 0;

    (void)snprintf(path, sizeof path, "%s/megatron-1f1b.labels.tsv", dir);
    f = fopen(path, "r");
    while (f && n < max && fgets(line, sizeof line, f)) {
        char *end;
        long at = strtol(line, &end, 10);

        if (end == line)
            continue;
        labels[n].at = (int)at;
        if (strncmp(end, "\tonset\t", 7) == 0)
            labels[n++].kind = EP_CHANGE_ONSET;
        else if (strncmp(end, "\trelief\t", 8) == 0)
            labels[n++].kind = EP_CHANGE_RELIEF;
    }
    if (f)
        (void)fclose(f);
    return n;
}

static int replay(const char *dir, struct run *r)
{
    char path[4096];
    char line[256];
    FILE *f;
    int n = 0;

    (void)snprintf(path, sizeof path, "%s/megatron-1f1b.tsv", dir);
    f = fopen(path, "r");
    while (f && fgets(line, sizeof line, f)) {
        char *end;

        r->t = (int)strtol(line, &end, 10);
        if (end == line)
            continue;
        push(r, strtod(end, NULL) / 1e3);
        n++;
    }
    if (f)
        (void)fclose(f);
    return n;
}

static void check_measured(const char *dir)
{
    struct label labels[32];
    struct run *r = run_new(0);
    int n = read_labels(dir, labels, 32);
    int k = 0;

    ok(n == 18);
    ok(replay(dir, r) == 1200);
    for (int i = 0; i < r->n; i++) {
        const struct ep_change *e = &r->e[i];

        if (e->kind == EP_CHANGE_SPIKE) {
            printf("# %4d spike   x %.3f\n", r->at[i], e->factor);
            continue;
        }
        printf("# %4d %s since %d, x %.3f, p %.4f\n", r->at[i],
               e->kind == EP_CHANGE_ONSET ? "onset " : "relief",
               (int)e->since_step, e->factor, e->p);
        if (k < n) {
            ok(e->kind == labels[k].kind && !e->partial && !e->worsening);
            ok(llabs(e->since_step - labels[k].at) <= 3);
            ok(r->at[i] - labels[k].at <= 5 && r->at[i] > labels[k].at);
        }
        k++;
    }
    ok(k == n);
    ok(count(r, EP_CHANGE_SPIKE) == 1); /* the crash */
    ok(ep_changepoint_episode(r->cp) == 0);
    run_free(r);
}

int main(void)
{
    const char *dir = getenv("EVENPACE_TESTDATA");

    check_life();
    check_ramps();
    check_ramp_after_relief();
    check_warm_up();
    check_spikes();
    check_constant();
    check_refused();
    check_hostile();
    check_config();
    if (dir && *dir)
        check_measured(dir);
    else
        printf("ok %d # SKIP EVENPACE_TESTDATA is not set\n", ++tap_n);
    return tap_done();
}
