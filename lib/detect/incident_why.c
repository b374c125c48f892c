/* SPDX-License-Identifier: Apache-2.0 */
/*
 * incident_why.c - the cause of an incident of ranks, as it is told, and once
 * more when more is known: readings of sensors come seldom, and the shape of
 * the samples needs some. See incident.h.
 */
#include "config.h"

#include "detect/incident.h"

#include "base/mem.h"
#include "base/num.h"
#include "base/stats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Steps after the onset in which it is asked, and how often. */
#define ASK_STEPS 40
#define ASK_EVERY 4

/* A probability of the cause that is more by this is worth telling. */
#define SURER 0.25

/*
 * Another cause that is about as sure as the one told: it rests on more. Much
 * less sure is what comes of samples that have left the rings.
 */
#define ABOUT 0.15

/* So often at most. */
#define AGAIN 2

/* The cause by all ranks of it, with the evidence behind what is in w->text. */
static const char *weigh(struct ep_watch *w, const struct incident *in,
                         const struct ep_change *c, double *p)
{
    struct series **ranks = ep_calloc(in->n, sizeof(void *));
    const char *cause;

    for (size_t i = 0; i < in->n; i++)
        ranks[i] = in->link[i]->s;
    cause = in->ground == GROUND_PEERS
                ? ep_verdict_among(w, in->who.scope, ranks, in->n, c->since_ts,
                                   c->factor, p)
                : ep_verdict_ranks(w, in->who.scope, ranks, in->n, c, p);
    free(ranks);
    return cause;
}

/* The cause, and the evidence into w->text; s: the rank that shows it. */
static const char *why(struct ep_watch *w, const struct incident *in,
                       const struct series *s, const struct ep_change *c,
                       const char *doubt, double *p)
{
    const char *cause;

    *p = 1;
    if (in->ground == GROUND_PEERS) {
        ep_buf_reset(&w->text);
        if (doubt && *doubt)
            ep_buf_addf(&w->text, "%s; ", doubt);
        ep_buf_adds(&w->text, s->basis == BASIS_PER_MB ? "busy per micro-batch "
                                                       : "busy ");
        ep_num_format_duration(&w->text, c->after);
        ep_buf_adds(&w->text, ", its peers ");
        ep_num_format_duration(&w->text, c->before);
        return weigh(w, in, c, p);
    }
    ep_verdict_levels(w, s, c);
    cause = s->basis == BASIS_DUR ? "unknown" : weigh(w, in, c, p);
    if (s->handicap > 1)
        ep_buf_addf(&w->text, ", before that %.2fx its peers", s->handicap);
    return cause;
}

/* The median of the effects on its ranks. */
static double factor_of(struct ep_watch *w, const struct incident *in)
{
    for (size_t i = 0; i < in->n; i++)
        w->work[i] = in->link[i]->effect;
    return ep_median(w->work, in->n);
}

/* "(rank=3), 8 of 8 ranks of host=n1" */
static void add_ranks(struct ep_watch *w, const struct incident *in,
                      const struct series *s, const struct where *where)
{
    const struct members *m = &in->who.job->ranks;
    size_t of = 0;

    if (in->kin == KIN_RANK)
        return;
    for (size_t i = 0; i < m->n; i++)
        of += ep_incident_akin(in->kin, m->v[i], in->like);
    ep_buf_addf(&w->text, " (%s), %zu of %zu ranks of %s", s->id, in->n, of,
                in->who.id);
    if (where && where->also != KIN_RANK) {
        ep_buf_adds(&w->text, ", which is ");
        (void)ep_incident_name(where->also, in->like, &w->text);
    }
}

void ep_incident_tell_ranks(struct ep_watch *w, struct incident *in,
                            const struct suspicion *x,
                            const struct where *where)
{
    const char *cause = why(w, in, x->s, &x->c, x->doubt, &in->p_cause);

    in->change = x->c;
    in->shows = x->s;
    in->again = 0;
    add_ranks(w, in, x->s, where);
    ep_incident_tell(w, in, &x->c, cause, factor_of(w, in), x->now);
}

/* Is what is known now better than what was told? */
static bool is_better(const struct incident *in, const char *cause, double p)
{
    if (strcmp(cause, in->ep.cause) == 0)
        return p >= in->p_cause + SURER;
    return p >= EP_CAUSE_LIKELY && p > in->p_cause - ABOUT;
}

static void ask(struct ep_watch *w, struct incident *in, double now)
{
    double p;
    const char *cause = why(w, in, in->shows, &in->change, NULL, &p);

    if (!is_better(in, cause, p))
        return;
    in->again++;
    in->p_cause = p;
    add_ranks(w, in, in->shows, NULL);
    ep_incident_tell(w, in, &in->change, cause, in->ep.factor, now);
}

void ep_incident_ask(struct ep_watch *w, struct job *job, int64_t step,
                     double now)
{
    struct incidents *all = &job->incidents;

    for (size_t i = 0; i < all->n; i++) {
        struct incident *in = all->v[i];
        int64_t age = step - in->change.since_step;

        /* what it is like, is told for as long as it is as it was */
        if (in->shows && in->n && in->ep.open && !in->resting &&
            in->again < AGAIN && in->turn_step == in->change.since_step &&
            age > 0 && age <= ASK_STEPS && age % ASK_EVERY == 0)
            ask(w, in, now);
    }
}
