/* SPDX-License-Identifier: Apache-2.0 */
/* watch_peers.c - the ranks of a job against each other; see watch.h. */
#include "config.h"

#include "detect/watch_impl.h"

#include "base/mem.h"
#include "base/num.h"
#include "base/stats.h"

#include <math.h>
#include <stdlib.h>

/* What the last "window" samples of a series come to. */
struct recent {
    double median, first_ts;
    int64_t first_step;
};

/* false if there are too few, or they are not the rank's own. */
static bool recent_of(const struct ep_watch *w, const struct series *s,
                      struct recent *out)
{
    double v[EP_WATCH_WINDOW_MAX];
    int64_t window = w->config.window;
    const struct sample *first;

    if (s->steps < window || s->basis == BASIS_DUR || s->basis == BASIS_NONE)
        return false;
    for (int64_t i = 0; i < window; i++)
        v[i] = s->ring[i].value;
    first = &s->ring[s->steps % window];
    *out =
        (struct recent){ep_median(v, (size_t)window), first->ts, first->step};
    return true;
}

static void report(struct ep_watch *w, struct series *s,
                   enum ep_finding_kind kind, const struct ep_peer *peer,
                   double median, double now)
{
    struct ep_finding f = {
        .kind = kind,
        .ts = now,
        .since = s->hit_ts,
        .step = s->hit_step,
        .factor = peer->factor,
        .p = peer->p,
        .cause = "compute",
        .gpu_hours = (double)NAN,
    };

    ep_buf_adds(&w->text, "busy per micro-batch ");
    ep_num_format_duration(&w->text, median);
    ep_buf_adds(&w->text, ", its peers ");
    ep_num_format_duration(&w->text, median / peer->factor);
    f.evidence = w->text.ptr;
    ep_watch_report(w, s, &s->peer, "peers", &f);
}

/*
 * A rank whose pace has an episode open was reported already, by the change:
 * the comparison adds nothing to it.
 */
static void judge(struct ep_watch *w, struct series *s, const struct recent *r,
                  const struct ep_peer *peer,
                  const struct ep_peers_summary *all, double now)
{
    const char *doubt = ep_peers_doubt_text(all->doubt);

    ep_buf_reset(&w->text);
    if (*doubt) {
        ep_buf_adds(&w->text, doubt);
        ep_buf_adds(&w->text, "; ");
    }
    if (peer->slow) {
        s->clean = 0;
        if (s->hits++ == 0) {
            s->hit_ts = r->first_ts;
            s->hit_step = r->first_step;
        }
        if (s->hits >= w->config.persist && !s->peer.open && !s->ep.open)
            report(w, s, EP_FINDING_ONSET, peer, r->median, now);
        return;
    }
    s->hits = 0;
    s->clean++;
    if (s->peer.open && s->clean >= w->config.persist) {
        s->hit_ts = r->first_ts;
        s->hit_step = r->first_step;
        report(w, s, EP_FINDING_RELIEF, peer, r->median, now);
        s->peer.open = false;
    }
}

void ep_watch_compare_ranks(struct ep_watch *w, struct job *job, double now)
{
    struct recent *recent = ep_calloc(job->nranks, sizeof *recent);
    struct series **who = ep_calloc(job->nranks, sizeof(void *));
    struct ep_peer *peers = ep_calloc(job->nranks, sizeof *peers);
    struct ep_peers_input in;
    struct ep_peers_summary all;
    enum basis basis = BASIS_NONE;
    size_t n = 0;

    for (size_t i = 0; i < job->nranks; i++) {
        struct series *s = job->ranks[i];

        if (!recent_of(w, s, &recent[n]))
            continue;
        if (basis == BASIS_NONE)
            basis = s->basis;
        if (s->basis != basis)
            continue;
        who[n] = s;
        w->work[n] = recent[n].median;
        n++;
    }
    in = (struct ep_peers_input){w->work, NULL, n, EP_PEERS_LOW};
    /* the values were checked when they came in */
    if (n >= 2 &&
        ep_peers_compare(&in, &w->config.peers, peers, &all, NULL) == 0)
        for (size_t i = 0; i < n; i++)
            judge(w, who[i], &recent[i], &peers[i], &all, now);
    free(recent);
    free(who);
    free(peers);
}
