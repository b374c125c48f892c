/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_silence.c - hangs: tables of scenarios whose answer is plain, and random
 * jobs of which one rank stops, or none.
 */
#include "config.h"

#include "silence_job.h"

#include "tap.h"

/* ==== Scenarios ==== */

static void check(struct play *p, const char *what, const char *want,
                  const char *evidence)
{
    bool good = !p->seen.bad && strcmp(p->seen.text, want) == 0 &&
                strstr(p->seen.evidence, evidence);

    if (!tap_ok(good, what, __FILE__, __LINE__))
        printf("# got  %s\n# want %s\n# %s\n# with %s\n", p->seen.text, want,
               p->seen.evidence, evidence);
}

static void test_who_is_behind(void)
{
    static const struct {
        const char *what;
        enum telling telling;
        int who, where;
        bool live;
        const char *want, *evidence;
    } cases[] = {
        {"a rank that does not enter is named, not those that wait", ENTERED, 6,
         2, true, "missing rank=6 hang",
         "last seq 81 of comm tp-4, its 3 peers are at 82; silent for"},
        {"the same in the call of the other group", ENTERED, 9, 4, true,
         "missing rank=9 hang", "of comm dp-1, its 3 peers are at 20"},
        {"calls without seq are counted", COUNTED, 6, 2, true,
         "missing rank=6 hang", "of comm tp-4, its 3 peers are at"},
        {"calls told when over: nobody is behind, the first is said", DONE, 6,
         2, true, "missing job silent", "fell silent first"},
        {"steps alone", STEPS, 6, 2, true, "missing job silent",
         "none of 16 ranks is behind, all are at step 19"},
        {"a file that ends in a hang is no hang: nobody waited", DONE, 6, 2,
         false, "", ""},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct play p;

        begin(&p, 16, cases[i].telling, 60);
        play(&p, 20);
        play_step(&p, cases[i].who, cases[i].where);
        if (cases[i].live)
            rest(&p, 90, true);
        check(&p, cases[i].what, cases[i].want, cases[i].evidence);
        end(&p);
    }
}

static void test_figures(void)
{
    struct play p;

    begin(&p, 8, STEPS, 60);
    play(&p, 50);
    /* rank 5 does not come to the end of a step of which the others are */
    p.mute = 1u << 5;
    play_step(&p, -1, 0);
    rest(&p, 59, true);
    ok(p.seen.n == 0);
    rest(&p, 10, true);
    check(&p, "a minority behind in steps", "missing rank=5 hang",
          "last step 49, 7 of 8 ranks are at 50");
    near(p.seen.since, p.t[5] - 69 - 1, 0.2);
    /* a step is five times the longest of up to 8 draws, and 0.05 s */
    near(p.seen.factor, (p.seen.ts - p.seen.since) / 1.12, 2);
    ok(strcmp(p.seen.eid, "lm/rank=5/missing@49") == 0);
    p.mute = 0;
    play(&p, 3);
    check(&p, "it is back", "missing rank=5 hang; relief rank=5 hang", "");
    ok(strcmp(p.seen.last_eid, p.seen.eid) == 0);
    end(&p);
}

static void test_majority(void)
{
    struct play p;

    begin(&p, 8, STEPS, 60);
    play(&p, 20);
    p.mute = 0xfe; /* one has ended the step, seven have not */
    play_step(&p, -1, 0);
    rest(&p, 90, true);
    check(
        &p, "a majority behind is the job's", "missing job hang",
        "7 ranks, last step 19, 1 of 8 ranks are at 20; a majority is behind");
    end(&p);

    begin(&p, 4, ENTERED, 60);
    play(&p, 20);
    for (int r = 1; r < 4; r++) /* only rank 0 enters tp-0 */
        p.stopped[r] = true;
    play_step(&p, 1, 0);
    rest(&p, 90, true);
    check(&p, "a majority of a communicator", "missing comm=tp-0 hang",
          "3 ranks, last seq 79 of comm tp-0, 1 of its ranks are at 80");
    end(&p);
}

/* The whole group enters, and nothing comes of it. */
static void test_all_entered(void)
{
    struct play p;

    begin(&p, 4, ENTERED, 60);
    play(&p, 20);
    for (int r = 0; r < 4; r++)
        sign(&p, EP_SIGN_ENTERED, r, p.t[r] + 0.1, "tp-0", 80);
    rest(&p, 90, true);
    check(&p, "all have entered: the collective hangs",
          "missing comm=tp-0 hang",
          "all 4 ranks have entered seq 80 of comm tp-0 and none is behind");
    end(&p);
}

static void test_circle(void)
{
    struct play p;

    begin(&p, 4, ENTERED, 60);
    play(&p, 20);
    for (int r = 0; r < 4; r++)
        sign(&p, EP_SIGN_ENTERED, r, p.t[r] + 0.1 * r, r < 2 ? "tp-0" : "xx",
             r < 2 ? 80 : 1);
    for (int r = 0; r < 4; r++)
        sign(&p, EP_SIGN_CALL, r, p.t[r] + 0.5, "xx", 1);
    for (int r = 2; r < 4; r++)
        sign(&p, EP_SIGN_ENTERED, r, p.t[r] + 0.6, "xx", 2);
    rest(&p, 90, true);
    check(&p, "calls in different orders", "missing job hang",
          "calls were made in different orders");
    end(&p);
}

static void test_dead(void)
{
    struct play p;

    /* gauges of all but rank 6 go on: replayed, without any wall clock */
    begin(&p, 16, DONE, 60);
    p.gauges = 10;
    play(&p, 20);
    play_step(&p, 6, 2);
    p.quiet = 1u << 6;
    rest(&p, 150, false);
    check(&p, "dead, by the gauges of the others", "missing rank=6 dead",
          "it and its host tell nothing any more, the others do");
    end(&p);

    begin(&p, 16, ENTERED, 60);
    p.gauges = 10;
    play(&p, 20);
    play_step(&p, 6, 2);
    rest(&p, 150, false);
    check(&p, "stuck, its gauges go on", "missing rank=6 hang",
          "its other records go on");
    end(&p);

    begin(&p, 16, DONE, 60);
    p.gauges = 10;
    play(&p, 20);
    play_step(&p, 6, 2);
    p.quiet = 0xf0; /* ranks 4 to 7 */
    rest(&p, 150, false);
    check(&p, "a host", "missing host=n1 dead",
          "4 ranks, last step 19; they and their hosts tell nothing");
    end(&p);
}

static void test_input(void)
{
    struct play p;

    begin(&p, 16, STEPS, 60);
    play(&p, 50);
    p.mute = 1u << 3;
    play(&p, 100);
    check(&p, "a dead input", "missing rank=3 input",
          "telemetry of rank=3 ended at step 49, its peers go on");
    p.mute = 0;
    play(&p, 2);
    check(&p, "that lives again", "missing rank=3 input; relief rank=3 input",
          "");
    end(&p);

    begin(&p, 16, STEPS, 60);
    play(&p, 50);
    p.mute = 0xf0;
    play(&p, 100);
    check(&p, "the inputs of a host", "missing host=n1 input", "of 4 ranks");
    end(&p);

    begin(&p, 16, STEPS, 300);
    play(&p, 50);
    p.mute = 1u << 3;
    play(&p, 40);
    ok(p.seen.n == 0);
    ep_silence_finish(p.s);
    check(&p, "a file that ends before the others", "missing rank=3 input",
          "ended at step 49");
    ep_silence_free(p.s);

    begin(&p, 16, STEPS, 60);
    play(&p, 50);
    p.mute = 1u << 3;
    play(&p, 20);
    play_step(&p, 6, 2);
    rest(&p, 100, true);
    check(&p, "a dead input is not to blame for a later hang",
          "missing rank=3 input; missing job silent", "none of 15 ranks");
    end(&p);
}

static void test_nothing(void)
{
    struct play p;

    begin(&p, 16, ENTERED, 60);
    play(&p, 20);
    end(&p);
    ok(p.seen.n == 0);

    /* the end of a job, while that of another goes on in the same stream */
    begin(&p, 16, DONE, 60);
    play(&p, 20);
    for (int i = 0; i < 500; i++) {
        struct ep_sign x = {.kind = EP_SIGN_STEP,
                            .job = span("other"),
                            .rank = i % 4,
                            .pid = -1,
                            .seq = -1,
                            .step = i / 4,
                            .nranks = -1,
                            .ts = latest(&p) + i};

        ok(ep_silence_take(p.s, &x, NULL) == 0);
    }
    end(&p);
    ok(p.seen.n == 0);

    /* a checkpoint of 3 minutes, by the default floor; one of 8 minutes is
       learned when it has come twice */
    begin(&p, 16, ENTERED, 300);
    play(&p, 20);
    rest(&p, 180, true);
    play(&p, 20);
    ok(p.seen.n == 0);
    for (int i = 0; i < 2; i++) {
        rest(&p, 480, true);
        play(&p, 20);
    }
    ok(p.seen.n == 4);
    for (int i = 0; i < 5; i++) {
        rest(&p, 480, true);
        play(&p, 20);
    }
    ok(p.seen.n == 4);
    end(&p);

    begin(&p, 16, ENTERED, 0);
    play(&p, 20);
    play_step(&p, 3, 0);
    rest(&p, 900, true);
    end(&p);
    ok(p.seen.n == 0);
}

static void test_restart(void)
{
    struct play p;

    begin(&p, 16, ENTERED, 60);
    play(&p, 20);
    play_step(&p, 6, 2);
    rest(&p, 90, true);
    go_on(&p);
    p.pid = 8;
    for (int r = 0; r < 16; r++)
        p.step[r] = 10;
    play(&p, 11);
    check(&p, "a restart ends it", "missing rank=6 hang; relief rank=6 hang",
          "");
    play_step(&p, 6, 2);
    rest(&p, 90, true);
    check(&p, "and it may come again",
          "missing rank=6 hang; relief rank=6 hang; missing rank=6 hang", "");
    end(&p);

    /* with fewer ranks */
    begin(&p, 16, STEPS, 60);
    play(&p, 20);
    p.mute = 0xff00;
    p.pid = 8;
    for (int r = 0; r < 16; r++)
        p.step[r] = 10;
    play(&p, 300);
    end(&p);
    ok(p.seen.n == 0);
}

static void test_workers(void)
{
    struct ep_silence_config c = EP_SILENCE_DEFAULTS;
    struct seen seen = {.n = 0};
    struct ep_silence *s;

    c.floor_s = 20;
    s = ep_silence_new(&c, on_finding, &seen, NULL);
    for (int i = 0; i < 400; i++)
        for (int w = 0; w < 3; w++) {
            char name[8];
            struct ep_sign x = {.kind = EP_SIGN_STEP,
                                .job = span("lsgd"),
                                .rank = -1,
                                .pid = -1,
                                .seq = -1,
                                .nranks = -1,
                                .step = i / (w + 1),
                                .ts = T0 + i};

            (void)snprintf(name, sizeof name, "w%d", w);
            x.worker = span(name);
            /* w1 stops; w2 is three times as slow as w0 */
            if (i % (w + 1) == 0 && (w != 1 || i < 200))
                ok(ep_silence_take(s, &x, NULL) == 0);
        }
    ep_silence_finish(s);
    ep_silence_free(s);
    ok(strcmp(seen.text, "missing worker=w1 dead") == 0);
    ok(!seen.bad);
}

/* A log that is read again from its beginning tells nothing new. */
static void test_again(void)
{
    for (int telling = STEPS; telling <= COUNTED; telling++) {
        struct play p;

        begin(&p, 16, (enum telling)telling, 60);
        p.gauges = 10;
        play(&p, 100);
        play_step(&p, 6, 2);
        rest(&p, 100, true);
        ok(p.seen.missing == 1 && p.seen.n == 1);
        go_on(&p);
        for (int r = 0; r < 16; r++) {
            p.t[r] = T0;
            p.step[r] = 0;
        }
        ep_rng_seed(&p.rng, 1, 0);
        play(&p, 100);
        ok(p.seen.n == 1);
        end(&p);
    }
}

/* Many at once are one finding: their stage, or else the job. */
static void test_many(void)
{
    for (int placed = 0; placed < 2; placed++) {
        struct seen seen = {.n = 0};
        struct ep_silence *s = ep_silence_new(NULL, on_finding, &seen, NULL);

        for (int i = 0; i < 400; i++)
            for (int r = 0; r < 40; r++) {
                struct ep_sign x = {.kind = EP_SIGN_STEP,
                                    .rank = r,
                                    .job = span("a\nb"),
                                    .pid = -1,
                                    .seq = -1,
                                    .nranks = -1,
                                    .step = i,
                                    .ts = T0 + i};

                x.place = (struct ep_place){placed, r % 4, r / 20, -1};
                if ((i < 50 || r < 20) && ep_silence_take(s, &x, NULL) < 0)
                    seen.bad = true;
            }
        ok(strcmp(seen.text,
                  placed ? "missing pp=1 input" : "missing job input") == 0);
        ok(strncmp(seen.evidence, "telemetry of 20 ranks ended", 27) == 0);
        ok(!seen.bad);
        ep_silence_finish(s);
        ep_silence_free(s);
    }
}

/* Dumps: what was entered and not left, without any time to wait. */
static void test_dump(void)
{
    struct play p;

    begin(&p, 8, ENTERED, 300);
    play(&p, 5);
    play_step(&p, 5, 1);
    ok(p.seen.n == 0);
    ep_silence_finish(p.s);
    check(&p, "at the end of dumps", "missing rank=5 hang",
          "last seq 20 of comm tp-4, its 3 peers are at 21");
    near(p.seen.p, 0.8, 0);
    ep_silence_free(p.s);
}

static void test_bad(void)
{
    struct ep_silence_config c = EP_SILENCE_DEFAULTS;
    struct seen seen = {.n = 0};
    struct ep_silence *s = ep_silence_new(NULL, on_finding, &seen, NULL);
    struct ep_error err;
    struct ep_sign x = {
        .kind = EP_SIGN_STEP, .rank = 1, .ts = (double)INFINITY};

    ok(ep_silence_take(s, &x, &err) == EP_EDOM);
    x.ts = (double)NAN; /* no time is known yet */
    ok(ep_silence_take(s, &x, &err) == 0);
    x.ts = T0;
    x.rank = INT64_MAX;
    ok(ep_silence_take(s, &x, &err) == 0);
    ep_silence_tick(s, (double)NAN);
    ep_silence_finish(s);
    ep_silence_free(s);
    ok(seen.n == 0);
    c.floor_s = -1;
    ok(!ep_silence_new(&c, on_finding, &seen, &err) && err.code == EP_EDOM);
    c.floor_s = (double)NAN;
    ok(!ep_silence_new(&c, on_finding, &seen, &err));
    c.floor_s = 1;
    c.times = 0;
    ok(!ep_silence_new(&c, on_finding, &seen, &err));
}

/* ==== Random jobs ==== */

static int below(struct ep_rng *r, int n)
{
    return (int)(ep_rng_next(r) % (uint64_t)n);
}

/* Steps of 0.1 to 10 s, and a checkpoint now and then, below the floor. */
static void play_random(struct play *p, int steps)
{
    for (int i = 0; i < steps; i++) {
        play_step(p, -1, 0);
        if (below(&p->rng, 20) == 0)
            rest(p, 1 + below(&p->rng, 80), true);
    }
}

static void random_job(uint64_t seed, struct play *p)
{
    struct ep_rng r;

    ep_rng_seed(&r, seed, 1);
    begin(p, WIDE * (1 + below(&r, 4)), below(&r, 2) ? ENTERED : COUNTED, 90);
    p->work = 0.1 * pow(100, ep_rng_uniform(&r));
    p->gauges = below(&r, 2) ? 15 : 0;
    ep_rng_seed(&p->rng, seed, 2);
    play_random(p, 10 + below(&r, 60));
    play(p, 1); /* who dies in a pause is known to be dead later only */
}

static void test_random(void)
{
    int right = 0, wrong = 0, silent = 0, noise = 0;
    const int n = 400;

    for (int i = 0; i < n; i++) {
        struct play p;
        char want[64];
        int who;

        random_job((uint64_t)i, &p);
        noise += p.seen.n > 0;
        who = below(&p.rng, p.ranks);
        play_step(&p, who, below(&p.rng, 5));
        rest(&p, 400, true);
        (void)snprintf(want, sizeof want, "missing rank=%d hang", who);
        right += strcmp(p.seen.text, want) == 0;
        silent += p.seen.n == 0;
        wrong += p.seen.n > 0 && strcmp(p.seen.text, want) != 0;
        if (strcmp(p.seen.text, want) != 0)
            printf("# seed %d, %d ranks, %s: %s: %s\n", i, p.ranks, want,
                   p.seen.text, p.seen.evidence);
        end(&p);
    }
    printf("# %d right, %d wrong, %d silent, %d false of %d (seeds 0..)\n",
           right, wrong, silent, noise, n);
    ok(wrong == 0);
    ok(noise == 0);
    ok(right == n);
}

/*
 * Calls that are told when they are over leave all alike: it takes the gauges to
 * know who is dead. Healthy jobs that end, and those of which one rank's input
 * ends, are among them.
 */
static void test_random_done(void)
{
    int right = 0, wrong = 0;
    const int n = 300;

    for (int i = 0; i < n; i++) {
        const char *cause = i % 3 == 0 ? "dead" : i % 3 == 1 ? "input" : "";
        struct play p;
        char want[64] = "";
        int who;

        random_job((uint64_t)i + 1000, &p);
        p.telling = i & 1 ? DONE : STEPS;
        p.gauges = 15;
        who = below(&p.rng, p.ranks);
        if (*cause)
            (void)snprintf(want, sizeof want, "missing rank=%d %s", who, cause);
        if (i % 3 == 0) {
            play_step(&p, who, below(&p.rng, 5));
            p.quiet = 1u << who;
            rest(&p, 400, false);
        } else if (i % 3 == 1) {
            p.mute = 1u << who;
            play(&p, 20 + below(&p.rng, 200));
        } else {
            play_random(&p, 20);
        }
        ep_silence_finish(p.s);
        right += strcmp(p.seen.text, want) == 0;
        wrong += strcmp(p.seen.text, want) != 0;
        if (strcmp(p.seen.text, want) != 0)
            printf("# seed %d, %d ranks, %s: %s: %s\n", i + 1000, p.ranks, want,
                   p.seen.text, p.seen.evidence);
        ep_silence_free(p.s);
    }
    printf("# %d right, %d wrong of %d (seeds 1000..)\n", right, wrong, n);
    ok(right == n);
}

int main(void)
{
    test_who_is_behind();
    test_figures();
    test_majority();
    test_all_entered();
    test_circle();
    test_dead();
    test_input();
    test_nothing();
    test_restart();
    test_workers();
    test_again();
    test_many();
    test_dump();
    test_bad();
    test_random();
    test_random_done();
    return tap_done();
}
