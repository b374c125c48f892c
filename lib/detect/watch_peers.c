/* SPDX-License-Identifier: Apache-2.0 */
/* watch_peers.c - the ranks of a job against each other; see watch.h. */
#include "config.h"

#include "detect/incident.h"

#include "base/mem.h"
#include "base/stats.h"

#include <math.h>
#include <stdlib.h>

/* What the last "window" samples of a series come to. */
struct recent {
    double median, first_ts;
    int64_t first_step;
};

/* false if there are too few, of another kind, or none since the last time. */
static bool recent_of(const struct ep_watch *w, const struct series *s,
                      enum basis basis, struct recent *out)
{
    double v[EP_WATCH_WINDOW_MAX];
    int window = (int)w->config.window;
    const struct sample *first;

    if (s->basis != basis || s->kept < window || s->missed)
        return false;
    for (int i = 0; i < window; i++)
        v[i] = s->ring[i].value;
    first = &s->ring[s->at];
    *out =
        (struct recent){ep_median(v, (size_t)window), first->ts, first->step};
    return true;
}

/* A suspicion: what the comparison says of a rank or worker. */
void ep_watch_suspect_peer(struct ep_watch *w, struct series *s,
                           enum ep_change_kind kind, const struct ep_peer *peer,
                           double median, const char *doubt, double now)
{
    struct suspicion x = {
        .s = s,
        .c = {.kind = kind,
              .since_ts = s->turn_ts,
              .since_step = s->turn_step,
              .factor = peer->factor,
              .before = median / peer->factor,
              .after = median,
              .p = kind == EP_CHANGE_ONSET ? peer->p : 1 - peer->p},
        .excess = peer->factor,
        .now = now,
        .step = -1, /* judged with the step that is being closed */
        .ground = GROUND_PEERS,
        .doubt = doubt,
    };

    s->peer.open = kind == EP_CHANGE_ONSET;
    ep_incident_suspect(w, &x);
}

/* One more verdict of the same kind; the first says when that began. */
static int64_t count_verdict(struct series *s, int64_t *same, int64_t *other,
                             const struct recent *r)
{
    *other = 0;
    if ((*same)++ == 0) {
        s->turn_ts = r->first_ts;
        s->turn_step = r->first_step;
    }
    return *same;
}

/*
 * A rank whose pace has an episode open was found already, by the change: the
 * comparison adds nothing to it.
 */
static void judge(struct ep_watch *w, struct series *s, const struct recent *r,
                  const struct ep_peer *peer,
                  const struct ep_peers_summary *all, double now)
{
    const char *doubt = ep_peers_doubt_text(all->doubt);
    int64_t enough = w->config.persist;

    if (peer->slow) {
        if (count_verdict(s, &s->hits, &s->clean, r) >= enough &&
            !s->peer.open && !s->ep.open)
            ep_watch_suspect_peer(w, s, EP_CHANGE_ONSET, peer, r->median, doubt,
                                  now);
    } else if (s->peer.open &&
               log(peer->factor) >= SHARE * log(ep_incident_effects(s, NULL))) {
        s->clean = 0; /* at the threshold, and not back */
    } else if (count_verdict(s, &s->clean, &s->hits, r) >= enough &&
               s->peer.open) {
        ep_watch_suspect_peer(w, s, EP_CHANGE_RELIEF, peer, r->median, doubt,
                              now);
    }
}

static void compare(struct ep_watch *w, const struct members *m,
                    enum basis basis, double now)
{
    struct recent *recent = ep_calloc(m->n, sizeof *recent);
    struct series **who = ep_calloc(m->n, sizeof(void *));
    struct ep_peer *peers;
    struct ep_peers_input in;
    struct ep_peers_summary all;
    size_t n = 0;

    for (size_t i = 0; i < m->n; i++)
        if (recent_of(w, m->v[i], basis, &recent[n])) {
            who[n] = m->v[i];
            w->work[n] = recent[n].median;
            n++;
        }
    peers = ep_calloc(n, sizeof *peers);
    in = (struct ep_peers_input){w->work, NULL, n, EP_PEERS_LOW};
    /* the values were checked when they came in */
    if (n >= 2 &&
        ep_peers_compare(&in, &w->config.peers, peers, &all, NULL) == 0) {
        for (size_t i = 0; i < n; i++)
            who[i]->peer.factor = peers[i].factor;
        for (size_t i = 0; i < n; i++)
            judge(w, who[i], &recent[i], &peers[i], &all, now);
    }
    free(recent);
    free(who);
    free(peers);
}

void ep_watch_count_step(struct ep_watch *w, struct members *m, int64_t enough,
                         double now)
{
    if (++m->since < enough)
        return;
    m->since = 0;
    if (m->n >= 2) {
        compare(w, m, BASIS_PER_MB, now);
        compare(w, m, BASIS_BUSY, now);
    }
    for (size_t i = 0; i < m->n; i++)
        m->v[i]->missed += m->v[i]->missed < 2;
}
