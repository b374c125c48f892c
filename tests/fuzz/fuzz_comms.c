/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_comms.c - any bytes as calls of a few ranks in a few communicators: odd
 * times and numbers, restarts, hosts that change. What is located has to make
 * sense, and to be the same when asked again.
 */
#include "config.h"

#include "detect/comms.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { BYTES = 8, MAX_CALLS = 50000 }; /* an input is to take milliseconds */

static void require(int condition)
{
    if (!condition)
        abort();
}

static const double odd[8] = {
    0, (double)NAN, (double)INFINITY, -5, 1e300, 1e-300, 1e9, 0.5};

static void look(struct ep_comms *c, struct ep_span job, double since)
{
    struct ep_comms_place p, q;
    double level = ep_comms_level(c, job, since);
    char id[256];

    require(isnan(level) || level >= 0);
    if (!ep_comms_locate(c, job, since, &p))
        return;
    require(p.scope == EP_SCOPE_LINK || p.scope == EP_SCOPE_HOST ||
            p.scope == EP_SCOPE_GROUP || p.scope == EP_SCOPE_RANK);
    require(p.id && p.id[0] && strchr(p.id, '=') && p.evidence);
    require(p.p > 0 && p.p <= 1 && p.factor >= 1 && isfinite(p.factor));
    require(p.candidates >= 1 && (p.rank >= 0) == (p.scope == EP_SCOPE_RANK));
    require(strlen(p.id) < sizeof id);
    memcpy(id, p.id, strlen(p.id) + 1);
    require(ep_comms_locate(c, job, since, &q) && strcmp(q.id, id) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char names[] = "abcdefghijklmnop";
    static const char *const ops[] = {"all_reduce", "send", "recv",
                                      "all_to_all"};
    struct ep_comms *c = ep_comms_new(0.10);
    struct ep_comms_summary sum;
    int64_t seq = 0;
    double ts = 1000;
    unsigned n = 0;

    for (size_t i = 0; i + BYTES <= size && n < MAX_CALLS; i += BYTES) {
        const uint8_t *b = data + i;
        unsigned times = 1 + b[0] % 64, ranks = 1 + b[1] % 8;
        const char *op = ops[b[2] % 4];

        for (unsigned k = 0; k < times * ranks; k++, n++) {
            unsigned r = k % ranks;
            struct ep_call x = {
                .job = {names, b[3] & 1},
                .host = {names + (r >> (b[3] >> 1 & 3)), b[3] >> 3 & 1},
                .op = {op, strlen(op)},
                .comm = {names + b[4] % 8, 1 + (b[4] >> 3 & 1)},
                .rank = (int)r + (b[3] >> 4 & 3),
                .pid = b[3] >> 6 & 1 ? b[7] % 4 : -1,
                .nranks = b[3] >> 7 ? (int)ranks : -1,
                .comm_rank = (int)r,
                .peer = b[2] >> 2 & 7,
                .bytes = 1 << (b[4] >> 4),
                .seq = b[2] >> 5 & 1 ? -1 : seq + (b[2] >> 6 == 3 ? k : 0),
                .p2p = b[2] % 4 == 1 || b[2] % 4 == 2,
                .ts = b[5] & 1 && k % 53 == 7 ? odd[b[5] >> 1 & 7] : ts,
                .dur = b[5] & 16 && k % 53 == 9
                           ? odd[b[5] >> 5 & 7]
                           : 0.001 * (1 + b[6]) * (1 + 0.01 * (k * 7 % 10)),
            };

            require(ep_comms_take(c, &x, NULL) == 0);
            if (r + 1 == ranks) {
                ts += 0.01 * (1 + b[7]);
                seq += b[7] == 255 ? INT64_C(1) << 40 : b[7] == 254 ? -3 : 1;
                seq = seq < 0 || seq > INT64_C(1) << 61 ? 0 : seq;
            }
        }
        if (i % 64 == 0)
            look(c, (struct ep_span){names, b[3] & 1}, ts - b[6]);
    }
    look(c, (struct ep_span){names, 0}, ts / 2 + 500);
    look(c, (struct ep_span){names, 1}, (double)NAN);
    look(c, (struct ep_span){names, 2}, ts);
    ep_comms_sum(c, &sum);
    require(sum.calls == n && sum.unused <= n && sum.transfers <= n);
    require(sum.bytes <= EP_COMMS_BYTES);
    ep_comms_free(c);
    return 0;
}
