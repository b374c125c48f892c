/* SPDX-License-Identifier: Apache-2.0 */
/* verdict_sensors.c - what sensors say about a cause; see verdict_cause.c. */
#include "config.h"

#include "detect/verdict_impl.h"

#include "base/num.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* A CPU share below this, and this much below its past, is contention. */
#define SHARE_LOW 0.9
#define SHARE_FALL 0.95

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

void ep_verdict_note(struct trial *t, enum cause c, double count,
                     const char *text)
{
    struct note *n = &t->notes[t->n++];

    n->cause = c;
    if (count > 0)
        (void)snprintf(n->text, sizeof n->text, "%.4g %s", count, text);
    else
        (void)snprintf(n->text, sizeof n->text, "%s", text);
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
        ep_verdict_note(t, COMPUTE, 0, ep_sensor_kinds[k].text);
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
            ep_verdict_note(t, MEMORY, since(t, counts[i].k),
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
            ep_verdict_note(t, LINK, since(t, errors[i].k),
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
        ep_verdict_note(t, NETWORK, since(t, EP_SENSOR_NET_ERRORS),
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
    ep_verdict_note(t, c, 0, text);
}

void ep_verdict_sensors(struct trial *t, double longer)
{
    judge_clocks(t);
    judge_memory(t);
    judge_kernels(t);
    judge_cpu(t);
    judge_storage(t, longer);
    judge_links(t);
    judge_xid(t);
}

void ep_verdict_transport(struct trial *t)
{
    judge_links(t);
    judge_network(t);
}
