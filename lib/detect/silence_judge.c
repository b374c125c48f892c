/* SPDX-License-Identifier: Apache-2.0 */
/* silence_judge.c - who is stuck, and who is to blame; see silence.h. */
#include "config.h"

#include "detect/silence_impl.h"

#include "base/num.h"

#include <math.h>

/* A member with fewer steps or calls has no usual interval. */
#define MOVES_LEAST 3

/* What the peers of a rank do not do without it. */
#define AHEAD_STEPS 4
#define AHEAD_CALLS 64

/* The same at the end of the input, where nobody waits for more. */
#define ENDED_STEPS 16
#define ENDED_CALLS 256

/* Ranks that stopped together cross the limit one after the other. */
#define NEARLY 0.75

/* A communicator that was in use when the job stopped, in its intervals. */
#define IN_USE 3

#define IN_STEPS UINT32_MAX

/* ==== Who is silent ==== */

static double patience(const struct ep_silence *s, double usual,
                       const double pause[2])
{
    double limit = fmax(s->config.floor_s, s->config.pauses * pause[1]);

    return usual > 0 ? fmax(limit, s->config.times * usual) : limit;
}

/* Its latest record that is no progress, of its own or of its host. */
static double other_sign(const struct ep_silence *s, const struct member *m)
{
    return m->host < 0 ? m->other : fmax(m->other, s->host_sign[m->host]);
}

/* Have other records gone on since it, or the job, stopped? */
static bool is_alive(const struct ep_silence *s, const struct member *m,
                     double limit)
{
    double other = other_sign(s, m);

    return other > m->moved && other >= s->now - limit / 2;
}

/* There were other records, and there are none any more. */
static bool fell_quiet(const struct ep_silence *s, const struct member *m,
                       double limit)
{
    double other = other_sign(s, m);

    return isfinite(other) && other < s->now - limit / 2;
}

/* Have the others gone on by so much since the rank stopped? */
static bool is_left_behind(const struct job *job, const struct member *m,
                           int64_t steps, uint64_t calls)
{
    if (m->rank < 0)
        return false;
    if (m->step >= 0 && job->max_step - m->step >= steps)
        return true;
    return !job->steps && job->moves - m->job_moves >= calls * job->n;
}

/* Is the member of this run, and not known to be missing? */
static bool is_of_job(const struct job *job, const struct member *m)
{
    return !m->worker && m->epoch == job->epoch && !m->ep && m->moves;
}

/* ==== Dead inputs, and workers ==== */

static void tell_input(struct ep_silence *s, const struct job *job,
                       struct member *const *v, size_t n)
{
    const struct member *m = v[0];

    ep_buf_adds(&s->text, "telemetry of ");
    if (n > 1)
        ep_buf_addf(&s->text, "%zu ranks", n);
    else
        ep_buf_adds(&s->text, m->id ? m->id : "the job");
    if (m->step >= 0)
        ep_buf_addf(&s->text,
                    " ended at step %lld, its peers go on and are at %lld",
                    (long long)m->step, (long long)job->max_step);
    else
        ep_buf_adds(&s->text, " ended, its peers go on");
    ep_buf_adds(&s->text, n > 1 ? ": the input is dead, not the ranks"
                                : ": the input is dead, not the rank");
}

/* Ranks whose peers go on without them for longer than limit allows. */
static void look_for_inputs(struct ep_silence *s, struct job *job, bool last)
{
    struct report r = {.cause = "input",
                       .p = last ? 0.8 : 0.9,
                       .usual = job->usual,
                       .tell = tell_input};
    bool any = false;
    size_t n = 0;

    for (size_t i = 0; i < job->n; i++) {
        struct member *m = job->v[i];
        double limit = patience(s, m->usual, m->pause);
        double silent = last ? job->moved - m->moved : s->now - m->moved;

        if (last)
            limit = s->config.times * m->usual;
        if (!is_of_job(job, m) || m->moves < MOVES_LEAST ||
            !(silent > NEARLY * limit) ||
            !is_left_behind(job, m, last ? ENDED_STEPS : AHEAD_STEPS,
                            last ? ENDED_CALLS : AHEAD_CALLS))
            continue;
        any |= silent > limit;
        s->set[n++] = m;
    }
    if (any)
        ep_silence_report_each(s, job, s->set, n, &r);
}

static void tell_worker(struct ep_silence *s, const struct job *job,
                        struct member *const *v, size_t n)
{
    (void)job;
    (void)n;
    ep_buf_adds(&s->text, "no more steps");
    if (v[0]->step >= 0)
        ep_buf_addf(&s->text, " after step %lld", (long long)v[0]->step);
    if (other_sign(s, v[0]) > v[0]->moved)
        ep_buf_adds(&s->text, ", its other records go on");
}

static void look_for_workers(struct ep_silence *s, struct job *job)
{
    for (size_t i = 0; i < job->n; i++) {
        struct member *m = job->v[i];
        double limit = patience(s, m->usual, m->pause);
        struct report r = {.p = 0.8, .usual = m->usual, .tell = tell_worker};

        if (!m->worker || m->ep || m->moves < MOVES_LEAST ||
            !(s->now - m->moved > limit))
            continue;
        r.cause = is_alive(s, m, limit) ? "hang" : "dead";
        ep_silence_report_each(s, job, &m, 1, &r);
    }
}

/* ==== A job that is stuck ==== */

/* Who was with the others when the job stopped. Their number. */
static size_t gather(struct job *job)
{
    size_t n = 0;

    for (size_t i = 0; i < job->n; i++) {
        struct member *m = job->v[i];

        m->active = is_of_job(job, m) &&
                    !is_left_behind(job, m, AHEAD_STEPS, AHEAD_CALLS);
        m->behind = m->ahead = m->suspect = false;
        m->why = IN_STEPS;
        n += m->active;
    }
    return n;
}

/* A call of that communicator may be what the job hangs in. */
static bool is_in_use(const struct job *job, const struct comm *c)
{
    double usual = job->usual > 0 ? job->usual : 0;

    return job->moved - c->last <= IN_USE * (c->gap + usual);
}

/* Where the members are in each communicator. */
static void measure(struct job *job)
{
    size_t ncomms = ep_intern_count(job->comm_names);

    for (size_t i = 0; i < ncomms; i++) {
        struct comm *c = &job->comms[i];

        c->n = c->below = c->open = c->blamed = 0;
        c->lo = INT64_MAX;
        c->hi = -1;
    }
    for (size_t i = 0; i < job->n; i++)
        for (uint32_t k = 0; job->v[i]->active && k < job->v[i]->nat; k++) {
            const struct at *at = &job->v[i]->at[k];
            struct comm *c = &job->comms[at->comm];

            if (at->seq < 0)
                continue;
            c->n++;
            c->lo = at->seq < c->lo ? at->seq : c->lo;
            c->hi = at->seq > c->hi ? at->seq : c->hi;
        }
    for (size_t i = 0; i < job->n; i++)
        for (uint32_t k = 0; job->v[i]->active && k < job->v[i]->nat; k++) {
            const struct at *at = &job->v[i]->at[k];
            struct comm *c = &job->comms[at->comm];

            c->below += at->seq >= 0 && at->seq < c->hi;
            c->open += at->seq == c->hi && at->open;
        }
}

/* Who is ahead of somebody waits, who is behind is waited for. */
static void compare_calls(const struct job *job, struct member *m)
{
    int64_t most = 0;

    for (uint32_t k = 0; k < m->nat; k++) {
        const struct at *at = &m->at[k];
        const struct comm *c = &job->comms[at->comm];

        if (at->seq < 0 || !is_in_use(job, c))
            continue;
        m->ahead |= at->seq > c->lo;
        if (c->hi - at->seq > most) {
            most = c->hi - at->seq;
            m->behind = true;
            m->why = at->comm;
        }
    }
}

/*
 * Mark the suspects. Returns how many; *circle if all who are behind wait
 * themselves.
 */
static size_t find_suspects(struct job *job, bool *circle)
{
    size_t behind = 0, free = 0, n = 0;
    int64_t hi = -1;

    measure(job);
    for (size_t i = 0; i < job->n; i++) {
        struct member *m = job->v[i];

        if (!m->active)
            continue;
        compare_calls(job, m);
        behind += m->behind;
        free += m->behind && !m->ahead;
        hi = m->step > hi ? m->step : hi;
    }
    *circle = behind && !free;
    for (size_t i = 0; i < job->n; i++) {
        struct member *m = job->v[i];

        if (!m->active)
            continue;
        m->suspect = behind ? m->behind && (*circle || !m->ahead)
                            : m->step >= 0 && m->step < hi;
        n += m->suspect;
        if (m->suspect && m->why != IN_STEPS)
            job->comms[m->why].blamed++;
    }
    return n;
}

/*
 * Those whose records of any kind have ended, while those of most go on: how
 * many, at most half. Who is not behind, where others are, is not to blame. If
 * there are any they are the suspects.
 */
static size_t find_dead(const struct ep_silence *s, struct job *job, size_t n,
                        size_t suspects, double limit)
{
    size_t alive = 0, dead = 0;

    for (size_t i = 0; i < job->n; i++) {
        const struct member *m = job->v[i];

        alive += m->active && is_alive(s, m, limit);
        dead +=
            m->active && (m->suspect || !suspects) && fell_quiet(s, m, limit);
    }
    if (!dead || 2 * alive < n || 2 * dead > n)
        return 0;
    for (size_t i = 0; i < job->n; i++) {
        struct member *m = job->v[i];

        m->suspect =
            m->active && (m->suspect || !suspects) && fell_quiet(s, m, limit);
    }
    return dead;
}

/* The suspects, or (all) the active members, into the set. */
static size_t collect(struct ep_silence *s, const struct job *job, bool all)
{
    size_t n = 0;

    for (size_t i = 0; i < job->n; i++)
        if (job->v[i]->suspect || (all && job->v[i]->active))
            s->set[n++] = job->v[i];
    return n;
}

static const char *name_of(const struct job *job, uint32_t comm)
{
    return ep_intern_name(job->comm_names, comm);
}

/* "last seq 118 of comm dp-0, its 7 peers are at 119" */
static void tell_behind(struct ep_silence *s, const struct job *job,
                        struct member *const *v, size_t n)
{
    const struct member *m = v[0];
    const struct comm *c;
    size_t above = 0, others = 0;
    int64_t hi = -1, seq = -1;

    if (n > 1)
        ep_buf_addf(&s->text, "%zu ranks, ", n);
    if (m->why == IN_STEPS) {
        for (size_t i = 0; i < job->n; i++) {
            others += job->v[i]->active;
            above += job->v[i]->active && job->v[i]->step > m->step;
            hi = job->v[i]->active && job->v[i]->step > hi ? job->v[i]->step
                                                           : hi;
        }
        ep_buf_addf(&s->text, "last step %lld", (long long)m->step);
        if (above)
            ep_buf_addf(&s->text, ", %zu of %zu ranks are at %lld", above,
                        others, (long long)hi);
        return;
    }
    c = &job->comms[m->why];
    for (uint32_t k = 0; k < m->nat; k++)
        if (m->at[k].comm == m->why)
            seq = m->at[k].seq;
    ep_buf_addf(&s->text, "last seq %lld of comm ", (long long)seq);
    ep_buf_adds(&s->text, name_of(job, m->why));
    above = c->n - c->below;
    if (above + 1 == c->n)
        ep_buf_adds(&s->text, above == 1 ? ", its peer is" : ", its ");
    else
        ep_buf_adds(&s->text, ", ");
    if (above + 1 != c->n || above > 1)
        ep_buf_addf(&s->text,
                    above + 1 == c->n ? "%zu peers are"
                                      : "%zu of its ranks are",
                    above);
    ep_buf_addf(&s->text, " at %lld", (long long)c->hi);
    if (c->nranks > 0 && (size_t)c->nranks > c->n)
        ep_buf_addf(&s->text, "; %lld of its %lld ranks tell nothing",
                    (long long)c->nranks - (long long)c->n,
                    (long long)c->nranks);
}

static void tell_hang(struct ep_silence *s, const struct job *job,
                      struct member *const *v, size_t n)
{
    tell_behind(s, job, v, n);
    if (other_sign(s, v[0]) > v[0]->moved)
        ep_buf_adds(&s->text, "; its other records go on");
}

static void tell_dead(struct ep_silence *s, const struct job *job,
                      struct member *const *v, size_t n)
{
    tell_behind(s, job, v, n);
    ep_buf_adds(&s->text, n > 1 ? "; they and their hosts tell nothing any "
                                  "more, the others do"
                                : "; it and its host tell nothing any more, "
                                  "the others do");
}

static void tell_circle(struct ep_silence *s, const struct job *job,
                        struct member *const *v, size_t n)
{
    tell_behind(s, job, v, n);
    ep_buf_adds(&s->text,
                "; all who are behind wait for others: calls were "
                "made in different orders");
}

static void tell_majority(struct ep_silence *s, const struct job *job,
                          struct member *const *v, size_t n)
{
    tell_behind(s, job, v, n);
    ep_buf_adds(&s->text, "; a majority is behind");
}

/* Nobody is behind. */
static void tell_all(struct ep_silence *s, const struct job *job,
                     struct member *const *v, size_t n)
{
    const struct member *first = v[0], *latest = v[0];

    (void)job;
    ep_buf_addf(&s->text, "none of %zu rank%s is behind", n, n == 1 ? "" : "s");
    if (v[0]->step >= 0)
        ep_buf_addf(&s->text, ", all are at step %lld", (long long)v[0]->step);
    for (size_t i = 1; i < n; i++) {
        first = v[i]->moved < first->moved ? v[i] : first;
        latest = v[i]->moved > latest->moved ? v[i] : latest;
    }
    if (first->id && latest->moved > first->moved) {
        ep_buf_addf(&s->text, "; %s fell silent first, ", first->id);
        ep_num_format_duration(&s->text, latest->moved - first->moved);
        ep_buf_addf(&s->text, " before the last one");
    }
}

/* They have entered the one call that is under way. */
static void tell_entered(struct ep_silence *s, const struct job *job,
                         struct member *const *v, size_t n)
{
    const struct comm *c = job->hung;

    if (!c) {
        tell_all(s, job, v, n);
        return;
    }
    ep_buf_addf(&s->text, "all %zu ranks have entered seq %lld of comm ", c->n,
                (long long)c->hi);
    ep_buf_adds(&s->text, name_of(job, (uint32_t)(c - job->comms)));
    ep_buf_adds(&s->text, " and none is behind: the collective itself hangs");
}

static void tell_silent(struct ep_silence *s, const struct job *job,
                        struct member *const *v, size_t n)
{
    tell_all(s, job, v, n);
    ep_buf_adds(&s->text, "; no other sign of the job: it hangs or has ended");
}

/* The communicator to which most of the suspects are behind, if a majority of
   it is; or NULL. */
static const struct comm *majority(const struct job *job)
{
    const struct comm *most = NULL;

    for (size_t i = 0; i < ep_intern_count(job->comm_names); i++) {
        const struct comm *c = &job->comms[i];

        if (2 * c->blamed > c->n && (!most || c->blamed > most->blamed))
            most = c;
    }
    return most;
}

/* Set job->hung: the one communicator with a call under way on all ranks. How
   many there are. */
static size_t find_hung(struct job *job)
{
    size_t n = 0;

    for (size_t i = 0; i < ep_intern_count(job->comm_names); i++) {
        const struct comm *c = &job->comms[i];

        if (c->n > 1 && c->open == c->n && is_in_use(job, c)) {
            job->hung = c;
            n++;
        }
    }
    if (n != 1)
        job->hung = NULL;
    return n;
}

/* One finding: a communicator, or the job. */
static void report_whole(struct ep_silence *s, struct job *job, size_t n,
                         const struct comm *c, const struct report *r)
{
    struct report whole = *r;
    struct ep_buf id;

    ep_buf_init(&id);
    whole.scope = EP_SCOPE_JOB;
    if (c) {
        ep_buf_adds(&id, "comm=");
        ep_buf_adds(&id, name_of(job, (uint32_t)(c - job->comms)));
        whole.scope = EP_SCOPE_GROUP;
        whole.id = id.ptr;
    }
    ep_silence_report(s, job, s->set, n, &whole);
    ep_buf_free(&id);
}

/* There are suspects, of n. */
static void report_suspects(struct ep_silence *s, struct job *job, size_t n,
                            bool circle, bool last)
{
    size_t k = collect(s, job, false);
    struct report r = {.cause = "hang", .usual = job->usual, .tell = tell_hang};
    const struct comm *c = majority(job);

    r.p = s->set[0]->why == IN_STEPS || last ? 0.8 : 0.95;
    if (circle) {
        r.p = 0.6;
        r.tell = tell_circle;
        report_whole(s, job, k, NULL, &r);
    } else if (c || 2 * k > n) {
        r.p = 0.6;
        r.tell = tell_majority;
        report_whole(s, job, k, c, &r);
    } else {
        ep_silence_report_each(s, job, s->set, k, &r);
    }
}

/* Nobody is behind. */
static void report_all(struct ep_silence *s, struct job *job, double limit,
                       bool live)
{
    struct report r = {.cause = "hang", .usual = job->usual, .p = 0.9};
    size_t open = find_hung(job), alive = 0, n;

    for (size_t i = 0; i < job->n; i++) {
        const struct member *m = job->v[i];

        /* a node goes on telling when the job has ended */
        alive += m->active && m->other > job->moved &&
                 m->other >= s->now - limit / 2;
    }
    r.tell = open ? tell_entered : tell_all;
    if (!open && !alive) {
        if (!live)
            return; /* it has ended */
        r.cause = "silent";
        r.p = 0.5;
        r.tell = tell_silent;
    }
    n = collect(s, job, true);
    report_whole(s, job, n, job->hung, &r);
}

static void judge_stuck(struct ep_silence *s, struct job *job, bool live)
{
    double limit = patience(s, job->usual, job->pause);
    struct report dead = {
        .cause = "dead", .p = 0.9, .usual = job->usual, .tell = tell_dead};
    size_t n, suspects;
    bool circle;

    if (job->stuck || job->moves < MOVES_LEAST ||
        !(s->now - job->moved > limit))
        return;
    n = gather(job);
    if (!n)
        return;
    suspects = find_suspects(job, &circle);
    if (find_dead(s, job, n, suspects, limit))
        ep_silence_report_each(s, job, s->set, collect(s, job, false), &dead);
    else if (suspects)
        report_suspects(s, job, n, circle, false);
    else
        report_all(s, job, limit, live);
    for (size_t i = 0; i < job->n && !job->stuck; i++)
        job->stuck = job->v[i]->active && job->v[i]->ep;
}

void ep_silence_look(struct ep_silence *s, struct job *job, bool live)
{
    look_for_inputs(s, job, false);
    look_for_workers(s, job);
    judge_stuck(s, job, live);
}

/*
 * The end. Calls that were entered and not left, and not by all, are what dumps
 * are written for: no patience is needed.
 */
void ep_silence_look_last(struct ep_silence *s, struct job *job)
{
    bool circle, under_way = false;
    size_t n;

    ep_silence_look(s, job, false);
    look_for_inputs(s, job, true);
    if (job->stuck)
        return;
    n = gather(job);
    for (size_t i = 0; i < job->n; i++)
        for (uint32_t k = 0; job->v[i]->active && k < job->v[i]->nat; k++)
            under_way |= job->v[i]->at[k].open;
    if (under_way && find_suspects(job, &circle))
        report_suspects(s, job, n, circle, true);
}
