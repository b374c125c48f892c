/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_silence_state.c - signs of life that are saved and loaded again and
 * again lead to the very findings of those that are not.
 */
#include "config.h"

#include "silence_job.h"

#include "tap.h"

static struct ep_rng dice;
static int reloads, refused;

/* Into bytes and back, once in so many signs. */
static void reload(struct play *p)
{
    struct ep_silence_config c = EP_SILENCE_DEFAULTS;
    struct ep_archive out, in;
    struct ep_silence *s;
    struct ep_error err;

    if (ep_rng_next(&dice) % 50)
        return;
    c.floor_s = 60;
    s = ep_silence_new(&c, on_finding, &p->seen, NULL);
    ep_archive_save(&out, "test", 1, "1");
    ep_silence_archive(&out, p->s);
    refused += ep_archive_saved(&out, &err) < 0;
    refused +=
        ep_archive_load(&in, out.out.ptr, out.out.len, "test", 1, &err) < 0;
    ep_silence_archive(&in, s);
    refused += ep_archive_loaded(&in, &err) < 0;
    ep_archive_free(&in);
    ep_archive_free(&out);
    ep_silence_free(p->s);
    p->s = s;
    reloads++;
}

static void run(struct play *p, int seed, bool saved)
{
    int who = seed % 8, where = seed % 5;

    begin(p, 8, (enum telling)(seed % 4), 60);
    p->before = saved ? reload : NULL;
    p->gauges = seed % 3 ? 15 : 0;
    ep_rng_seed(&p->rng, (uint64_t)seed, 0);
    play(p, 10);
    rest(p, 50, true);
    play(p, 10);
    p->mute = seed % 2 ? 1u << (who ^ 1) : 0;
    play(p, seed % 2 ? 90 : 3);
    play_step(p, who, where);
    p->quiet = seed % 5 == 0 ? 1u << who : 0;
    rest(p, 100, true);
    p->mute = p->quiet = 0;
    memset(p->stopped, 0, sizeof p->stopped);
    if (seed % 3 == 0) {
        p->pid++;
        for (int r = 0; r < 8; r++)
            p->step[r] = 5;
    }
    play(p, 5);
    ep_silence_finish(p->s);
    ep_silence_free(p->s);
}

/* Bytes that were changed, with a sum that fits: refused, or good to go on. */
static void test_hostile(void)
{
    struct ep_archive out, in;
    struct ep_error err;
    struct play p;
    int loaded = 0;
    const int n = 1000;

    begin(&p, 8, ENTERED, 60);
    p.gauges = 15;
    play(&p, 5);
    play_step(&p, 3, 1);
    rest(&p, 100, true);
    ep_archive_save(&out, "test", 1, "1");
    ep_silence_archive(&out, p.s);
    refused += ep_archive_saved(&out, &err) < 0;
    for (int i = 0; i < n; i++) {
        struct play q = p;
        size_t len = out.out.len, body = len - 4;
        unsigned char *bytes = malloc(len);
        uint32_t sum;

        memcpy(bytes, out.out.ptr, len);
        for (int k = 0; k <= i % 3; k++)
            bytes[32 + ep_rng_next(&dice) % (body - 32)] =
                (unsigned char)ep_rng_next(&dice);
        sum = ep_archive_crc32(bytes, body);
        for (int k = 0; k < 4; k++)
            bytes[body + (size_t)k] = (unsigned char)(sum >> 8 * k);
        q.s = ep_silence_new(NULL, on_finding, &q.seen, NULL);
        q.before = NULL;
        if (ep_archive_load(&in, bytes, len, "test", 1, &err) == 0) {
            ep_silence_archive(&in, q.s);
            if (ep_archive_loaded(&in, &err) == 0) {
                loaded++;
                go_on(&q);
                play(&q, 3);
                rest(&q, 400, true);
                ep_silence_finish(q.s);
            }
        }
        ep_archive_free(&in);
        ep_silence_free(q.s);
        free(bytes);
    }
    printf("# %d of %d loaded\n", loaded, n);
    ok(loaded > 0 && loaded < n);
    ep_archive_free(&out);
    ep_silence_free(p.s);
}

int main(void)
{
    int same = 0, found = 0;
    const int n = 60;

    ep_rng_seed(&dice, 3, 0);
    for (int i = 0; i < n; i++) {
        struct play once, often;

        run(&once, i, false);
        run(&often, i, true);
        same += strcmp(once.seen.text, often.seen.text) == 0 &&
                strcmp(once.seen.evidence, often.seen.evidence) == 0 &&
                strcmp(once.seen.last_eid, often.seen.last_eid) == 0 &&
                once.seen.ts == often.seen.ts;
        found += once.seen.n;
        if (strcmp(once.seen.text, often.seen.text) != 0)
            printf("# %d: %s\n# not %s\n", i, often.seen.text, once.seen.text);
    }
    printf("# saved %d times, %d findings\n", reloads, found);
    ok(same == n);
    ok(refused == 0);
    ok(reloads > 1000);
    ok(found > n);
    test_hostile();
    return tap_done();
}
