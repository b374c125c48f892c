/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verdict_cause.c - which of the causes of slow work it is, and how sure.
 *
 * Bayes' rule over a list of causes. The prior is what was found in production
 * [1]: of six fail-slows on one node four were contention for the CPU and two
 * degraded GPUs, of 43 on four nodes 42 congestion; one is added to each cause
 * (Laplace), so that one that was not seen can still be. That is times how
 * often such a cause hits just such a set of ranks: a GPU is one rank, what a
 * host's CPUs and storage do hits all of its ranks, a stage or a replica alone
 * is slow because of its share of the work.
 *
 * Each piece of evidence multiplies the odds of its cause:
 *
 *   DIRECT   50   a sensor moved, and as much as the slowdown needs: the SM
 *                 clock fell by 1 / factor
 *   SIGN     10   a sensor says that something is wrong there, not how much it
 *                 costs: a throttle reason, errors that are counted
 *   HINT      3   the same, of what is often so on healthy nodes
 *   NORMAL  1/10  the sensor that would have moved was read, and did not
 *
 * They are round numbers: readings are taken as independent though they are
 * not, so that p says which answers are safe, not more. Utilisation is no
 * evidence (it falls on all ranks), nor is temperature (70 C is not slow); PCIe
 * generations count under load alone, as they fall when a GPU is idle.
 *
 * [1] FALCON, arXiv 2410.12588.
 */
#include "config.h"

#include "detect/watch_impl.h"

#include "base/num.h"
#include "base/stats.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define DIRECT 50.0
#define SIGN 10.0
#define HINT 3.0
#define NORMAL 0.1

/* Of the slowdown, as a power of it, that a sensor has to explain. */
#define EXPLAINS 0.4

/* A CPU share below this, and this much below its past, is contention. */
#define SHARE_LOW 0.9
#define SHARE_FALL 0.95

/* Standard deviations by which pauses scatter more than steady work. */
#define SCATTER_Z 3.0

enum cause {
    COMPUTE,
    CPU,
    MEMORY,
    STORAGE,
    GC,
    STAGE,
    SEQUENCE,
    LINK,
    NETWORK,
    OTHER,
    CAUSES,
};

static const char *const words[CAUSES] = {
    "compute",         "cpu-contention",     "memory", "storage", "gc",
    "stage-imbalance", "sequence-imbalance", "link",   "network", "unknown",
};

/* Priors, by scope, in the order of the causes. */
static const double priors[][CAUSES] = {
    [EP_SCOPE_JOB] = {1, 1, 0.3, 1, 0.1, 0.1, 1, 0, 0, 1},
    [EP_SCOPE_RANK] = {3, 1, 1, 0.2, 1, 0.1, 0.5, 0.2, 0, 0.3},
    [EP_SCOPE_WORKER] = {3, 2, 1, 0.5, 1, 0, 0.5, 0.2, 0, 0.3},
    [EP_SCOPE_GPU] = {3, 0.2, 1, 0, 0, 0, 0, 0.2, 0, 0.3},
    [EP_SCOPE_HOST] = {1, 5, 0.2, 1, 0.02, 0.1, 0.1, 0.2, 0, 0.3},
    [EP_SCOPE_LINK] = {0, 0, 0, 0, 0, 0, 0, 1, 0, 0},
    [EP_SCOPE_GROUP] = {0.5, 0.5, 0.2, 0.3, 0.1, 0.1, 10, 0.1, 0, 0.3},
    [EP_SCOPE_STAGE] = {0.5, 0.5, 0.2, 0.3, 0.1, 10, 0.3, 0.1, 0, 0.3},
};

/* What was looked at and found normal, for people. */
enum looked { CLOCKS, MEMORY_CLOCK, CPUS, IO, LINKS, TOKENS, LOOKED };

static const char *const looked_texts[LOOKED] = {
    "clocks", "memory", "CPU share", "I/O", "links", "tokens"};

struct note {
    enum cause cause;
    char text[96];
};

struct trial {
    struct senses s;
    double factor;
    bool among;            /* against peers: no healthy past */
    double weight[CAUSES]; /* log of the odds so far */
    bool normal[LOOKED];
    bool fresh; /* a sensor was read since the change */
    struct note notes[EP_SENSORS + 2];
    size_t n;
};

static void weigh(struct trial *t, enum cause c, double times)
{
    t->weight[c] += log(times);
}

/* ==== What a sensor did ==== */

static double since(const struct trial *t, enum ep_sensor k)
{
    return t->s.at[k].since;
}

/* What it should be: its own past, else the peers'; NaN if nobody knows. */
static double reference(const struct trial *t, enum ep_sensor k)
{
    double before = t->s.at[k].before;

    return t->among || isnan(before) ? t->s.peers[k] : before;
}

static void add_value(struct ep_buf *b, enum ep_sensor k, double value)
{
    const char *unit = ep_sensor_kinds[k].unit;

    if (strcmp(unit, "s") == 0)
        ep_num_format_duration(b, value);
    else if (*unit)
        ep_num_format_si(b, value, unit);
    else /* a share, or a number of things */
        ep_buf_addf(b, ep_sensor_kinds[k].band > 0 ? "%.2f" : "%.4g", value);
}

/* "SM clock 1.98 GHz -> 1.41 GHz", "..., its peers 1.98 GHz" */
static void note(struct trial *t, enum cause c, enum ep_sensor k)
{
    bool past = !t->among && !isnan(t->s.at[k].before);
    struct note *n = &t->notes[t->n++];
    struct ep_buf b;

    ep_buf_init(&b);
    ep_buf_adds(&b, ep_sensor_kinds[k].text);
    ep_buf_addc(&b, ' ');
    if (past) {
        add_value(&b, k, t->s.at[k].before);
        ep_buf_adds(&b, " -> ");
    }
    add_value(&b, k, since(t, k));
    if (!past && !isnan(t->s.peers[k])) {
        ep_buf_adds(&b, ", its peers ");
        add_value(&b, k, t->s.peers[k]);
    }
    n->cause = c;
    (void)snprintf(n->text, sizeof n->text, "%s", b.ptr);
    ep_buf_free(&b);
}

/* "3 rows remapped", "hw_slowdown" */
static void note_text(struct trial *t, enum cause c, double count,
                      const char *text)
{
    struct note *n = &t->notes[t->n++];

    n->cause = c;
    if (count > 0)
        (void)snprintf(n->text, sizeof n->text, "%.4g %s", count, text);
    else
        (void)snprintf(n->text, sizeof n->text, "%s", text);
}

/* Share of the slowdown, as a power of it, in a ratio that should be 1. */
static double explained(const struct trial *t, double ratio)
{
    return t->factor > 1 ? log(ratio) / log(t->factor) : 0;
}

/* A pace of the device fell, or not. Returns whether it did. */
static bool judge_pace(struct trial *t, enum cause c, enum ep_sensor k,
                       double is, double should, enum looked group)
{
    double ratio = should / is;

    if (!(ratio > 0) || isinf(ratio))
        return false;
    if (ratio >= 1.03 && explained(t, ratio) >= EXPLAINS) {
        weigh(t, c, DIRECT);
    } else if (ratio >= 1.05) {
        weigh(t, c, HINT);
    } else {
        if (ratio < 1.02) {
            weigh(t, c, NORMAL);
            t->normal[group] = true;
        }
        return false;
    }
    note(t, c, k);
    return true;
}

/* A share or rate grew by at least so much and so many times. */
static bool grew(const struct trial *t, enum ep_sensor k, double by,
                 double times)
{
    double was = reference(t, k), is = since(t, k);

    return is >= by + (isnan(was) ? 0 : was) &&
           (isnan(was) || is >= times * was);
}

/*
 * A pressure, the share of time in which some task waited, grew: by as much as
 * is lost, or by less.
 */
static double pressed(const struct trial *t, enum ep_sensor k)
{
    double was = reference(t, k), by = since(t, k) - (isnan(was) ? 0 : was);

    return by >= 0.5 * (1 - 1 / t->factor) ? DIRECT : SIGN;
}

/* Events were counted since, more than ever before. */
static bool counted(const struct trial *t, enum ep_sensor k, double least)
{
    double before = t->s.at[k].before;

    return since(t, k) >= least && !(since(t, k) <= before);
}

/* ==== Causes ==== */

static bool is_idle(const struct trial *t)
{
    return since(t, EP_SENSOR_IDLE) > 0.5 || since(t, EP_SENSOR_GPU_LOAD) < 0.2;
}

/* Is it known to work? The rest of the time nobody knows. */
static bool is_loaded(const struct trial *t)
{
    return !is_idle(t) && (!isnan(since(t, EP_SENSOR_IDLE)) ||
                           !isnan(since(t, EP_SENSOR_GPU_LOAD)));
}

static void judge_clocks(struct trial *t)
{
    bool fell =
        !is_idle(t) &&
        judge_pace(t, COMPUTE, EP_SENSOR_SM_CLOCK, since(t, EP_SENSOR_SM_CLOCK),
                   reference(t, EP_SENSOR_SM_CLOCK), CLOCKS);
    bool hot = since(t, EP_SENSOR_GPU_TEMPERATURE) >=
               5 + reference(t, EP_SENSOR_GPU_TEMPERATURE);
    bool held = false;

    for (int i = 0; i < EP_SENSOR_FLAGS; i++) {
        enum ep_sensor k = EP_SENSOR_HW_SLOWDOWN + (enum ep_sensor)i;
        double was = reference(t, k);

        if (k == EP_SENSOR_IDLE ||
            !(since(t, k) - (isnan(was) ? 0 : was) >= 0.3))
            continue;
        if (k != EP_SENSOR_POWER_CAP && k != EP_SENSOR_APP_CLOCKS)
            held = true;
        else if (!fell)
            continue; /* as on any busy GPU */
        note_text(t, COMPUTE, 0, ep_sensor_kinds[k].text);
    }
    if (grew(t, EP_SENSOR_THERMAL_LIMIT, 0.1, 1.5)) {
        held = true;
        note(t, COMPUTE, EP_SENSOR_THERMAL_LIMIT);
    }
    if (reference(t, EP_SENSOR_POWER_LIMIT) >=
        1.05 * since(t, EP_SENSOR_POWER_LIMIT)) {
        held = true;
        note(t, COMPUTE, EP_SENSOR_POWER_LIMIT);
    }
    if (held)
        weigh(t, COMPUTE, SIGN);
    if (hot && (held || fell))
        note(t, COMPUTE, EP_SENSOR_GPU_TEMPERATURE);
    if (fell || held)
        t->normal[CLOCKS] = false;
}

static void judge_memory(struct trial *t)
{
    static const struct {
        enum ep_sensor k;
        double least, times;
    } counts[] = {
        {EP_SENSOR_ROWS_REMAPPED, 1, SIGN},
        {EP_SENSOR_ECC_UNCORRECTED, 1, SIGN},
        {EP_SENSOR_ECC_CORRECTED, 10, HINT},
    };
    bool bad = false;

    if (!is_idle(t))
        bad = judge_pace(t, MEMORY, EP_SENSOR_MEMORY_CLOCK,
                         since(t, EP_SENSOR_MEMORY_CLOCK),
                         reference(t, EP_SENSOR_MEMORY_CLOCK), MEMORY_CLOCK);
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
        if (counted(t, counts[i].k, counts[i].least)) {
            weigh(t, MEMORY, counts[i].times);
            note_text(t, MEMORY, since(t, counts[i].k),
                      ep_sensor_kinds[counts[i].k].text);
            bad = true;
        }
    if (grew(t, EP_SENSOR_MEMORY_PRESSURE, 0.05, 2)) {
        weigh(t, MEMORY, SIGN);
        note(t, MEMORY, EP_SENSOR_MEMORY_PRESSURE);
        bad = true;
    }
    if (grew(t, EP_SENSOR_SWAP, 100, 3)) {
        weigh(t, MEMORY, SIGN);
        note(t, MEMORY, EP_SENSOR_SWAP);
        bad = true;
    }
    if (bad)
        t->normal[MEMORY_CLOCK] = false;
}

/* The kernels' own times: is it the device, whatever is wrong with it? */
static void judge_kernels(struct trial *t)
{
    double pace = since(t, EP_SENSOR_KERNEL_PACE);

    if (!(pace > 0) || is_idle(t))
        return;
    if (explained(t, 1 / pace) >= EXPLAINS) {
        weigh(t, COMPUTE, DIRECT);
        weigh(t, MEMORY, DIRECT);
        note(t, COMPUTE, EP_SENSOR_KERNEL_PACE);
    } else if (pace >= 0.97) {
        weigh(t, COMPUTE, NORMAL);
        weigh(t, MEMORY, NORMAL);
    }
}

static void judge_cpu(struct trial *t)
{
    double is = since(t, EP_SENSOR_CPU_SHARE);
    double was = reference(t, EP_SENSOR_CPU_SHARE);
    double peers = t->s.peers[EP_SENSOR_CPU_SHARE];
    bool bad = false;

    if (is < SHARE_LOW && !(is > SHARE_FALL * was)) {
        bool alike = is > SHARE_FALL * peers;

        weigh(t, CPU, alike ? HINT : isnan(was) ? SIGN : DIRECT);
        note(t, CPU, EP_SENSOR_CPU_SHARE);
        bad = true;
    } else if (is >= 0) {
        weigh(t, CPU, NORMAL);
        t->normal[CPUS] = true;
    }
    if (grew(t, EP_SENSOR_CPU_WAIT, 0.05, 2)) {
        weigh(t, CPU, bad ? HINT : SIGN);
        note(t, CPU, EP_SENSOR_CPU_WAIT);
        bad = true;
    }
    if (grew(t, EP_SENSOR_CPU_PRESSURE, 0.1, 2)) {
        weigh(t, CPU, bad ? HINT : pressed(t, EP_SENSOR_CPU_PRESSURE));
        note(t, CPU, EP_SENSOR_CPU_PRESSURE);
        bad = true;
    } else if (!bad && !isnan(since(t, EP_SENSOR_CPU_PRESSURE)) && isnan(is)) {
        weigh(t, CPU, NORMAL);
        t->normal[CPUS] = true;
    }
    if (grew(t, EP_SENSOR_LOAD, 4, 1.5)) {
        weigh(t, CPU, HINT);
        note(t, CPU, EP_SENSOR_LOAD);
        bad = true;
    }
    if (bad)
        t->normal[CPUS] = false;
}

/* longer: by how much each micro-batch takes longer, s. */
static void judge_storage(struct trial *t, double longer)
{
    static const struct {
        enum ep_sensor k;
        double by, times, weight;
    } signs[] = {
        {EP_SENSOR_IO_PRESSURE, 0.05, 2, SIGN},
        {EP_SENSOR_IO_WAIT, 0.5, 2, SIGN},
        {EP_SENSOR_DISK_BUSY, 0.3, 2, HINT},
    };
    double load = since(t, EP_SENSOR_DATA_TIME);
    double usual = reference(t, EP_SENSOR_DATA_TIME);
    bool bad = false, read = false;

    if (load > usual && load - usual >= 0.3 * longer && load >= 1.5 * usual) {
        weigh(t, STORAGE, DIRECT);
        note(t, STORAGE, EP_SENSOR_DATA_TIME);
        bad = true;
    } else if (load >= 0 && usual >= 0) {
        weigh(t, STORAGE, NORMAL);
        t->normal[IO] = true;
    }
    for (size_t i = 0; i < sizeof signs / sizeof signs[0]; i++) {
        if (isnan(since(t, signs[i].k)))
            continue;
        read = true;
        if (!grew(t, signs[i].k, signs[i].by, signs[i].times))
            continue;
        weigh(t, STORAGE,
              signs[i].k == EP_SENSOR_IO_PRESSURE ? pressed(t, signs[i].k)
                                                  : signs[i].weight);
        note(t, STORAGE, signs[i].k);
        bad = true;
    }
    if (read && !bad) {
        weigh(t, STORAGE, NORMAL);
        t->normal[IO] = true;
    }
    if (bad)
        t->normal[IO] = false;
}

static void judge_links(struct trial *t)
{
    static const enum ep_sensor pcie[] = {EP_SENSOR_PCIE_GENERATION,
                                          EP_SENSOR_PCIE_WIDTH};
    static const struct {
        enum ep_sensor k;
        double least;
    } errors[] = {
        {EP_SENSOR_PCIE_REPLAYS, 10},
        {EP_SENSOR_NVLINK_ERRORS, 1},
        {EP_SENSOR_IB_ERRORS, 1},
    };
    bool bad = false, read = false;

    for (size_t i = 0; i < 2 && is_loaded(t); i++) {
        read = read || !isnan(since(t, pcie[i]));
        if (since(t, pcie[i]) < 0.99 * reference(t, pcie[i])) {
            weigh(t, LINK, DIRECT);
            note(t, LINK, pcie[i]);
            bad = true;
        }
    }
    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++) {
        read = read || !isnan(since(t, errors[i].k));
        if (counted(t, errors[i].k, errors[i].least)) {
            weigh(t, LINK, SIGN);
            note_text(t, LINK, since(t, errors[i].k),
                      ep_sensor_kinds[errors[i].k].text);
            bad = true;
        }
    }
    t->normal[LINKS] = read && !bad;
}

static void judge_network(struct trial *t)
{
    if (grew(t, EP_SENSOR_RETRANSMITS, 10, 3)) {
        weigh(t, NETWORK, SIGN);
        note(t, NETWORK, EP_SENSOR_RETRANSMITS);
    }
    if (counted(t, EP_SENSOR_NET_ERRORS, 10)) {
        weigh(t, NETWORK, SIGN);
        note_text(t, NETWORK, since(t, EP_SENSOR_NET_ERRORS),
                  ep_sensor_kinds[EP_SENSOR_NET_ERRORS].text);
    }
}

/* What the driver last complained about (NVIDIA, "XID Errors"). */
static void judge_xid(struct trial *t)
{
    double is = since(t, EP_SENSOR_XID), was = t->s.at[EP_SENSOR_XID].before;
    int xid = is > 0 && is < 1000 ? (int)is : 0;
    enum cause c = OTHER;
    char text[16];

    if (!xid || is == was || (t->among && isnan(was)))
        return;
    if (xid == 48 || xid == 63 || xid == 64 || xid == 94 || xid == 95)
        c = MEMORY;
    else if (xid == 74)
        c = LINK;
    if (c != OTHER)
        weigh(t, c, SIGN);
    (void)snprintf(text, sizeof text, "Xid %d", xid);
    note_text(t, c, 0, text);
}

/* ==== The shape of the samples ==== */

/* The samples of a series from a time on, in order; returns how many. */
static int samples_since(const struct ep_watch *w, const struct series *s,
                         double from, double *v)
{
    int window = (int)w->config.window, n = 0;

    for (int i = 0; i < s->kept; i++) {
        const struct sample *x =
            &s->ring[(s->at + window - s->kept + i) % window];

        if (x->ts >= from)
            v[n++] = x->value;
    }
    return n;
}

/*
 * By how many standard deviations the scatter of samples is above that of noise
 * of this sigma: from the median of their successive differences, which neither
 * a ramp nor a spike in a few of them disturbs. Of normal noise |difference|
 * has the median 0.954 sigma; the log of the median of m has a deviation of
 * about 1.3 / sqrt(m). NaN: too few.
 */
static double scatter_z(const double *v, int n, double sigma)
{
    double d[EP_WATCH_WINDOW_MAX];
    int m = n - 1;

    if (n < 3 || !(sigma > 0))
        return (double)NAN;
    for (int i = 0; i < m; i++)
        d[i] = fabs(log(v[i + 1] / v[i]));
    return log(ep_median(d, (size_t)m) / (0.954 * sigma)) * sqrt(m) / 1.3;
}

/* Lowest and highest tenth of the excess over the usual level, in per cent. */
static void note_pauses(struct trial *t, enum cause c, double *v, int n)
{
    double usual = ep_median(v, (size_t)n) / t->factor;
    double low = ep_quantile(v, (size_t)n, 0.1) / usual - 1;
    double high = ep_quantile(v, (size_t)n, 0.9) / usual - 1;

    (void)snprintf(t->notes[t->n].text, sizeof t->notes[0].text,
                   "pauses: excess %.0f to %.0f %%", 100 * fmax(0, low),
                   100 * high);
    t->notes[t->n++].cause = c;
}

/*
 * The noise that a rank should have: its own, or where it was slow for long or
 * always, so that its own is that of the pauses, not more than twice what the
 * others have.
 */
static double usual_noise(const struct series *s)
{
    const struct members *m = ep_watch_members(s);
    double v[SENSED], own = ep_changepoint_noise(s->pace);
    size_t k = 0;

    for (size_t i = 0; i < m->n && k < SENSED; i++) {
        const struct series *r = m->v[i];

        if (r == s || !r->pace || r->ep.open || r->peer.open)
            continue;
        v[k] = ep_changepoint_noise(r->pace);
        k += !isnan(v[k]);
    }
    return fmin(own, 2 * ep_median(v, k)); /* NaN is no value to fmin */
}

/* Pauses: steps that are longer by something else each time. */
static void judge_scatter(struct ep_watch *w, struct trial *t,
                          struct series *const *ranks, size_t n, double from)
{
    double v[EP_WATCH_WINDOW_MAX], sum = 0;
    size_t k = 0;
    int have, least = EP_WATCH_WINDOW_MAX;

    for (size_t i = 0; i < n && i < SENSED; i++) {
        const struct series *s = ranks[i];
        double z;

        if (!s->pace)
            continue;
        have = samples_since(w, s, from, v);
        z = scatter_z(v, have, usual_noise(s));
        if (isnan(z))
            continue;
        sum += z;
        k++;
        least = have < least ? have : least;
    }
    if (!k)
        return;
    if (sum / sqrt((double)k) < SCATTER_Z) {
        weigh(t, GC, least >= 8 ? NORMAL : 0.3);
        weigh(t, STORAGE, 0.5);
        return;
    }
    weigh(t, GC, DIRECT);
    weigh(t, STORAGE, SIGN);
    have = ranks[0]->pace ? samples_since(w, ranks[0], from, v) : 0;
    if (have > 0)
        note_pauses(t, k > 1 ? STORAGE : GC, v, have);
}

static void judge_work(struct ep_watch *w, struct trial *t,
                       struct series *const *ranks, size_t n,
                       const struct ep_change *c)
{
    double v[SENSED], f;
    bool over = false;
    size_t k = 0;
    char text[64];

    for (size_t i = 0; i < n && i < SENSED; i++) {
        f = t->among ? (double)NAN : ep_watch_work_factor_since(ranks[i], c);
        if (isnan(f)) { /* it was too long ago */
            f = ep_watch_work_over_peers(w, ranks[i], c->since_ts);
            over = true;
        }
        if (!isnan(f))
            v[k++] = f;
    }
    f = ep_median(v, k);
    if (f >= 1.03 && explained(t, f) >= EXPLAINS) {
        weigh(t, SEQUENCE, 2 * DIRECT);
        (void)snprintf(text, sizeof text, "tokens per micro-batch %.2fx%s", f,
                       over ? " its peers'" : "");
        note_text(t, SEQUENCE, 0, text);
    } else if (!isnan(f)) {
        weigh(t, SEQUENCE, NORMAL / 5);
        t->normal[TOKENS] = true;
    }
}

/* ==== The answer ==== */

static void add_notes(struct ep_buf *b, const struct trial *t, enum cause best)
{
    size_t shown = 0, normal = 0;

    for (int others = 0; others < 2; others++)
        for (size_t i = 0; i < t->n && shown < 5; i++)
            if ((t->notes[i].cause != best) == others) {
                ep_buf_addf(b, ", %s", t->notes[i].text);
                shown++;
            }
    for (int i = 0; i < LOOKED; i++)
        if (t->normal[i])
            ep_buf_addf(b, "%s%s", normal++ ? ", " : "; ", looked_texts[i]);
    if (normal)
        ep_buf_adds(b, " normal");
}

static enum cause most_likely(const struct trial *t, enum ep_scope scope,
                              double *p)
{
    double sum = 0, most = -1;
    enum cause best = OTHER;

    for (int c = 0; c < CAUSES; c++) {
        double x = priors[scope][c] * exp(t->weight[c]);

        sum += x;
        if (x > most) {
            most = x;
            best = (enum cause)c;
        }
    }
    *p = most / sum;
    return best;
}

/* Did anything of this set of ranks communicate slower, and work as before? */
static bool works_as_before(const struct ep_watch *w,
                            struct series *const *ranks, size_t n,
                            const struct ep_change *c)
{
    double v[SENSED];
    size_t k = 0;

    for (size_t i = 0; i < n && i < SENSED; i++)
        if (ranks[i]->basis != BASIS_DUR) {
            double f = ep_watch_factor_since(ranks[i], c);

            if (!isnan(f))
                v[k++] = f;
        }
    return k && ep_median(v, k) < 1 + w->config.pace.min_change / 2;
}

static enum cause judge_communication(struct trial *t, enum ep_scope scope,
                                      double *p)
{
    double link, network;

    judge_links(t);
    judge_network(t);
    /* congestion is many links', a bad one is a link's own */
    link = (scope == EP_SCOPE_LINK ? 9 : 1) * exp(t->weight[LINK]);
    network = (scope == EP_SCOPE_LINK ? 1 : 9) * exp(t->weight[NETWORK]);
    *p = fmax(link, network) / (link + network);
    return link > network ? LINK : NETWORK;
}

static enum cause judge_all(struct ep_watch *w, struct trial *t,
                            enum ep_scope scope, struct series *const *ranks,
                            size_t n, const struct ep_change *c, double *p)
{
    bool busy =
        ranks[0]->basis == BASIS_BUSY || ranks[0]->basis == BASIS_PER_MB;
    double longer = t->among ? 0 : c->after - c->before;

    judge_clocks(t);
    judge_memory(t);
    judge_kernels(t);
    judge_cpu(t);
    judge_storage(t, busy ? longer : 0);
    judge_links(t);
    judge_xid(t);
    if (scope != EP_SCOPE_JOB)
        judge_scatter(w, t, ranks, n, c->since_ts);
    judge_work(w, t, ranks, n, c);
    return most_likely(t, scope, p);
}

static const char *decide(struct ep_watch *w, enum ep_scope scope,
                          struct series *const *ranks, size_t n,
                          const struct ep_change *c, double healthy, bool among,
                          double *p_cause)
{
    struct trial t = {.factor = c->factor, .among = among};
    bool known = false;
    enum cause best;
    double p;

    ep_watch_sense(w, ranks, n, healthy, c->since_ts, &t.s);
    for (int k = 0; k < EP_SENSORS; k++) {
        known = known || t.s.read[k];
        t.fresh = t.fresh || !isnan(t.s.at[k].since);
    }
    if (scope == EP_SCOPE_LINK ||
        (!among && scope != EP_SCOPE_RANK && scope != EP_SCOPE_STAGE &&
         works_as_before(w, ranks, n, c)))
        best = judge_communication(&t, scope, &p);
    else
        best = judge_all(w, &t, scope, ranks, n, c, &p);
    add_notes(&w->text, &t, best);
    if (known && !t.fresh)
        ep_buf_adds(&w->text, "; no sensor read since");
    if (p_cause)
        *p_cause = p;
    return words[best];
}

const char *ep_verdict_ranks(struct ep_watch *w, enum ep_scope scope,
                             struct series *const *ranks, size_t n,
                             const struct ep_change *c, double *p_cause)
{
    double healthy = c->since_ts;

    /* what got worse is held against the time before it began */
    for (size_t i = 0; i < n; i++)
        if (ranks[i]->ep.open)
            healthy = fmin(healthy, ranks[i]->ep.since);
    return decide(w, scope, ranks, n, c, healthy, false, p_cause);
}

const char *ep_verdict_among(struct ep_watch *w, enum ep_scope scope,
                             struct series *const *ranks, size_t n,
                             double since_ts, double factor, double *p_cause)
{
    struct ep_change c = {
        .kind = EP_CHANGE_ONSET,
        .since_ts = since_ts,
        .since_step = -1,
        .factor = factor,
    };

    return decide(w, scope, ranks, n, &c, (double)-INFINITY, true, p_cause);
}
