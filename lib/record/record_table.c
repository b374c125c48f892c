/* SPDX-License-Identifier: Apache-2.0 */
/* record_table.c - the keys and types of evenpace-record(5), as tables. */
#include "config.h"

#include "record/record.h"

#define BIG 9007199254740991.0 /* 2^53 - 1 */
#define ANY 1.7976931348623157e308

/* What is printed before a value; a name that is too long does not compile. */
#define MEMBER(name) (unsigned char)(sizeof(name) + 3), ",\"" name "\":"

#define STR(name)                                                              \
    {                                                                          \
        name, EP_V_STRING, 0, 0, NULL, MEMBER(name)                            \
    }
#define INT(name, min)                                                         \
    {                                                                          \
        name, EP_V_INTEGER, min, BIG, "1", MEMBER(name)                        \
    }
#define NUM(name, min, max, unit)                                              \
    {                                                                          \
        name, EP_V_NUMBER, min, max, unit, MEMBER(name)                        \
    }

const struct ep_key_info ep_key_table[EP_KEYS] = {
    [EP_K_TYPE] = STR("type"),
    [EP_K_TS] = NUM("ts", 0, ANY, "s"),
    [EP_K_JOB] = STR("job"),
    [EP_K_HOST] = STR("host"),
    [EP_K_PID] = INT("pid", 0),
    [EP_K_RANK] = INT("rank", 0),
    [EP_K_GPU] = STR("gpu"),
    [EP_K_GPU_INDEX] = INT("gpu_index", 0),
    [EP_K_DP] = INT("dp", 0),
    [EP_K_PP] = INT("pp", 0),
    [EP_K_TP] = INT("tp", 0),
    [EP_K_REGION] = STR("region"),
    [EP_K_WORKER] = STR("worker"),
    [EP_K_CP] = INT("cp", 1),
    [EP_K_EP] = INT("ep", 1),
    [EP_K_VPP] = INT("vpp", 1),
    [EP_K_ORDER] = STR("order"),
    [EP_K_HOSTS] = {"hosts", EP_V_STRINGS, 0, 0, NULL, MEMBER("hosts")},
    [EP_K_GPUS_PER_HOST] = INT("gpus_per_host", 1),
    [EP_K_MICROBATCHES] = INT("microbatches", 1),
    [EP_K_COST_S2] = NUM("cost_s2", 0, ANY, "s"),
    [EP_K_COST_S3] = NUM("cost_s3", 0, ANY, "s"),
    [EP_K_COST_S4] = NUM("cost_s4", 0, ANY, "s"),
    [EP_K_OP] = STR("op"),
    [EP_K_COMM] = STR("comm"),
    [EP_K_NRANKS] = INT("nranks", 1),
    [EP_K_COMM_RANK] = INT("comm_rank", 0),
    [EP_K_PEER] = INT("peer", 0),
    [EP_K_SEQ] = INT("seq", 0),
    [EP_K_BYTES] = {"bytes", EP_V_INTEGER, 0, BIG, "B", MEMBER("bytes")},
    [EP_K_EID] = STR("eid"),
    [EP_K_KIND] = STR("kind"),
    [EP_K_SCOPE] = STR("scope"),
    [EP_K_ID] = STR("id"),
    [EP_K_SINCE] = NUM("since", 0, ANY, "s"),
    [EP_K_STEP] = INT("step", 0),
    [EP_K_DUR] = NUM("dur", 0, ANY, "s"),
    [EP_K_BUSY] = NUM("busy", 0, ANY, "s"),
    [EP_K_MB] = INT("mb", 0),
    [EP_K_CHUNK] = INT("chunk", 0),
    [EP_K_TOKENS] = INT("tokens", 0),
    [EP_K_FLOPS] = NUM("flops", 0, ANY, "FLOP"),
    [EP_K_NAME] = STR("name"),
    [EP_K_TEST] = STR("test"),
    [EP_K_DTYPE] = STR("dtype"),
    [EP_K_SIZE] = INT("size", 0),
    [EP_K_SRC] = STR("src"),
    [EP_K_DST] = STR("dst"),
    [EP_K_TRANSPORT] = STR("transport"),
    [EP_K_VALUE] = NUM("value", -ANY, ANY, "unit"),
    [EP_K_UNIT] = STR("unit"),
    [EP_K_BETTER] = STR("better"),
    [EP_K_N] = INT("n", 0),
    [EP_K_SPREAD] = NUM("spread", 0, ANY, "1"),
    [EP_K_REF_OWN] = NUM("ref_own", -ANY, ANY, "unit"),
    [EP_K_REF_SPEC] = NUM("ref_spec", -ANY, ANY, "unit"),
    [EP_K_SPLIT] = STR("split"),
    [EP_K_FACTOR] = NUM("factor", 1e-9, ANY, "1"),
    [EP_K_P] = NUM("p", 0, 1, "1"),
    [EP_K_CAUSE] = STR("cause"),
    [EP_K_EVIDENCE] = STR("evidence"),
    [EP_K_GPU_HOURS] = NUM("gpu_hours", 0, ANY, "h"),
    [EP_K_WHAT] = STR("what"),
    [EP_K_SLOWDOWN] = NUM("slowdown", 0, ANY, "1"),
    [EP_K_SHARE] = NUM("share", 0, 1, "1"),
    [EP_K_LEVEL] = STR("level"),
    [EP_K_ACTION] = STR("action"),
    [EP_K_GAIN] = NUM("gain", -1, ANY, "1"),
    [EP_K_COST] = NUM("cost", 0, ANY, "s"),
    [EP_K_FROM] = INT("from", 0),
    [EP_K_TO] = INT("to", 0),
    [EP_K_LOCAL_STEPS] = INT("local_steps", 0),
    [EP_K_TIER] = STR("tier"),
    [EP_K_VERSION] = INT("version", 0),
    [EP_K_BASE] = INT("base", 0),
    [EP_K_STALENESS] = INT("staleness", 0),
    [EP_K_STEPS] = INT("steps", 0),
    [EP_K_NORM] = NUM("norm", 0, ANY, "1"),
};

const struct ep_type_info ep_type_table[EP_TYPES] = {
    [EP_LAYOUT] = {"layout",
                   {EP_K_DP, EP_K_MICROBATCHES},
                   {EP_K_PP, EP_K_TP, EP_K_CP, EP_K_EP, EP_K_VPP, EP_K_ORDER,
                    EP_K_HOSTS, EP_K_GPUS_PER_HOST, EP_K_COST_S2, EP_K_COST_S3,
                    EP_K_COST_S4}},
    [EP_STEP] = {"step",
                 {EP_K_TS, EP_K_STEP, EP_K_DUR},
                 {EP_K_BUSY, EP_K_MB, EP_K_TOKENS, EP_K_FLOPS}},
    [EP_COLL] = {"coll",
                 {EP_K_OP, EP_K_COMM, EP_K_DUR},
                 {EP_K_NRANKS, EP_K_COMM_RANK, EP_K_SEQ, EP_K_BYTES}},
    [EP_P2P] = {"p2p",
                {EP_K_OP, EP_K_COMM, EP_K_DUR},
                {EP_K_COMM_RANK, EP_K_PEER, EP_K_SEQ, EP_K_BYTES}},
    [EP_SPAN] = {"span",
                 {EP_K_TS, EP_K_OP, EP_K_STEP, EP_K_DUR},
                 {EP_K_MB, EP_K_CHUNK, EP_K_SEQ, EP_K_WHAT}},
    [EP_GAUGE] = {"gauge",
                  {EP_K_TS, EP_K_NAME, EP_K_VALUE, EP_K_UNIT},
                  {EP_K_OP, EP_K_COMM, EP_K_NRANKS, EP_K_COMM_RANK, EP_K_PEER,
                   EP_K_SEQ, EP_K_BYTES, EP_K_REF_OWN, EP_K_REF_SPEC,
                   EP_K_EVIDENCE}},
    [EP_PROBE] = {"probe",
                  {EP_K_TS, EP_K_TEST, EP_K_VALUE, EP_K_UNIT, EP_K_BETTER},
                  {EP_K_N, EP_K_SPREAD, EP_K_DTYPE, EP_K_SIZE, EP_K_DUR,
                   EP_K_REF_OWN, EP_K_REF_SPEC}},
    [EP_LINK] = {"link",
                 {EP_K_TS, EP_K_SRC, EP_K_DST, EP_K_VALUE},
                 {EP_K_TRANSPORT, EP_K_BYTES, EP_K_DUR}},
    [EP_LOSS] = {"loss",
                 {EP_K_TS, EP_K_STEP, EP_K_VALUE},
                 {EP_K_TOKENS, EP_K_SPLIT}},
    [EP_EVENT] = {"event",
                  {EP_K_TS, EP_K_EID, EP_K_KIND, EP_K_SCOPE, EP_K_SINCE},
                  {EP_K_ID, EP_K_FACTOR, EP_K_P, EP_K_CAUSE, EP_K_EVIDENCE,
                   EP_K_STEP, EP_K_GPU_HOURS}},
    [EP_WHATIF] = {"whatif", {EP_K_WHAT, EP_K_SLOWDOWN}, {EP_K_ID, EP_K_SHARE}},
    [EP_PLAN] = {"plan",
                 {EP_K_TS, EP_K_LEVEL, EP_K_ACTION, EP_K_GAIN},
                 {EP_K_COST, EP_K_EID, EP_K_FROM, EP_K_TO}},
    [EP_ASSIGN] = {"assign",
                   {EP_K_TS, EP_K_WORKER, EP_K_LOCAL_STEPS},
                   {EP_K_SHARE}},
    [EP_MERGE] = {"merge",
                  {EP_K_TS, EP_K_TIER, EP_K_VERSION},
                  {EP_K_FROM, EP_K_BASE, EP_K_STALENESS, EP_K_STEPS,
                   EP_K_TOKENS, EP_K_NORM}},
};

void ep_key_range(enum ep_type type, enum ep_key key, double *min, double *max)
{
    *min = ep_key_table[key].min;
    *max = ep_key_table[key].max;
    /* what remedies win back may be less than nothing or more than all */
    if (type == EP_WHATIF && key == EP_K_SHARE) {
        *min = -ANY;
        *max = ANY;
    }
}
