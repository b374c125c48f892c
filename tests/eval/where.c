/* SPDX-License-Identifier: Apache-2.0 */
/*
 * where.c - what lib/detect/comms.h says of a job's calls at given times.
 *
 *     where SINCE:AT ... < records
 *
 * Pairs in the order of AT: at the first record from AT on (s), locate what
 * changed since SINCE; one line each: SINCE AT SCOPE ID FACTOR P CANDIDATES
 * EVIDENCE between tabs, "-" for a scope if nothing is known. The onsets are
 * the labels' (tests/eval/where_score): this measures the localisation alone.
 */
#include "config.h"

#include "detect/comms.h"
#include "feed/feed.h"
#include "record/record.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int take(struct ep_comms *c, const struct ep_record *r)
{
    struct ep_call x;

    ep_feed_call(r, &x);
    return ep_comms_take(c, &x, NULL);
}

static void answer(struct ep_comms *c, struct ep_span job, double since,
                   double at)
{
    struct ep_comms_place p;

    if (ep_comms_locate(c, job, since, &p))
        (void)printf("%.6f\t%.6f\t%s\t%s\t%.3f\t%.4f\t%zu\t%s\n", since, at,
                     p.late ? "late" : ep_scope_names[p.scope], p.id, p.factor,
                     p.p, p.candidates, p.evidence);
    else
        (void)printf("%.6f\t%.6f\t-\n", since, at);
}

int main(int argc, char **argv)
{
    struct ep_record_parser *parser = ep_record_parser_new();
    struct ep_comms *c = ep_comms_new(0.10);
    struct ep_record r;
    char *line = NULL, job[256] = "", *end;
    size_t cap = 0;
    ssize_t n;
    int i = 1;

    while (i < argc && (n = getline(&line, &cap, stdin)) > 0) {
        struct ep_span name;

        if (ep_record_parse(parser, line, (size_t)n, &r, NULL) < 0)
            continue;
        while (i < argc) {
            double since = strtod(argv[i], &end), at = strtod(end + 1, NULL);

            if (ep_record_num(&r, EP_K_TS) < at)
                break;
            answer(c, (struct ep_span){job, strlen(job)}, since, at);
            i++;
        }
        if (r.type != EP_COLL && r.type != EP_P2P)
            continue;
        name = ep_record_str(&r, EP_K_JOB);
        if (name.len && name.len < sizeof job) {
            memcpy(job, name.ptr, name.len);
            job[name.len] = 0;
        }
        if (take(c, &r) < 0)
            break;
    }
    free(line);
    ep_comms_free(c);
    ep_record_parser_free(parser);
    return i < argc;
}
