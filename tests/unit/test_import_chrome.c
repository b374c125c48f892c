/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_import_chrome.c - the parts of the importers of Chrome traces, and both
 * importers over a sample that is cut at every byte. What they make of whole
 * files is in import-chrome.bats.
 */
#include "config.h"

#include "base/mem.h"
#include "record/import_chrome.h"
#include "record/import_chrome_nccl.h"
#include "record/importers.h"
#include "tap.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct ep_span span(const char *s)
{
    return (struct ep_span){s, s ? strlen(s) : 0};
}

static void test_ops(void)
{
    static const struct {
        const char *collective, *kernel, *op;
        bool p2p;
    } cases[] = {
        {NULL, "ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)",
         "all_reduce", false},
        {NULL, "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*)",
         "all_reduce", false},
        {NULL, "ncclAllReduceRingLLKernel_sum_f32(ncclColl)", "all_reduce",
         false},
        {NULL, "ncclDevKernel_ReduceScatter_Sum_f32_RING_LL(x)",
         "reduce_scatter", false},
        {NULL, "ncclDevKernel_Reduce_Sum_f32_RING_LL(x)", "reduce", false},
        {NULL, "ncclKernel_AllGather_RING_LL_Sum_int8_t(AllReduce)",
         "all_gather", false},
        {NULL, "ncclDevKernel_Broadcast_RING_LL(x)", "broadcast", false},
        {NULL, "ncclSymkDevKernel_AllGather_LL(x)", "all_gather", false},
        {NULL, "ncclDevKernel_AlltoAll_RING(x)", "all_to_all", false},
        {NULL, "ncclDevKernel_SendRecv(x)", "send_recv", true},
        {NULL, "ncclDevKernel_Generic(x)", "", false},
        {"allreduce", "ncclDevKernel_Generic(x)", "all_reduce", false},
        {"_allgather_base", "ncclDevKernel_Generic(x)", "all_gather", false},
        {"_reduce_scatter_base", "", "reduce_scatter", false},
        {"reduce_scatter_tensor_coalesced", "", "reduce_scatter", false},
        {"allgather_into_tensor_coalesced", "", "all_gather", false},
        {"all_to_allv", "ncclDevKernel_SendRecv(x)", "all_to_all", false},
        {"alltoall_base", "ncclDevKernel_SendRecv(x)", "all_to_all", false},
        {"_broadcast_oop", "", "broadcast", false},
        {"_reduce_oop", "", "reduce", false},
        {"gather", "ncclDevKernel_SendRecv(x)", "gather", false},
        {"scatter", "ncclDevKernel_SendRecv(x)", "scatter", false},
        {"barrier", "ncclDevKernel_AllReduce(x)", "barrier", false},
        {"send", "ncclDevKernel_SendRecv(x)", "send", true},
        {"recv", "ncclDevKernel_SendRecv(x)", "recv", true},
        {"coalesced", "ncclDevKernel_SendRecv(x)", "send_recv", true},
        {"coalesced", "ncclDevKernel_AllGather(x)", "all_gather", false},
        {"coalesced", "ncclDevKernel_Generic(x)", "coalesced", false},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bool p2p;
        struct ep_span op = ep_chrome_nccl_op(span(cases[i].collective),
                                              span(cases[i].kernel), &p2p);

        if (!ok(ep_span_eq(op, cases[i].op) && p2p == cases[i].p2p))
            printf("# %s: %.*s\n", cases[i].kernel, (int)op.len, op.ptr);
    }
}

static void test_lists(void)
{
    ok(ep_chrome_nccl_dtype_bytes(span("BFloat16")) == 2);
    ok(ep_chrome_nccl_dtype_bytes(span("Float")) == 4);
    ok(ep_chrome_nccl_dtype_bytes(span("float")) == 0);
    ok(ep_chrome_nccl_place("[0, 1]", 1) == 1);
    ok(ep_chrome_nccl_place("[5,13,21]", 21) == 2);
    ok(ep_chrome_nccl_place("[5, 13, ...]", 13) == 1);
    ok(ep_chrome_nccl_place("[5, 13, ...]", 21) == -1);
    ok(ep_chrome_nccl_place("[5, 13]", -1) == -1);
    ok(ep_chrome_nccl_place("[]", 0) == -1);
    ok(ep_chrome_nccl_place("", 0) == -1);
    ok(ep_chrome_nccl_place("[99999999999999999999999, 3]", 3) == 1);
}

/* Microseconds as they are written, and the double nearest to the seconds. */
static void test_seconds(void)
{
    static const struct {
        const char *us;
        double s;
        int code;
    } cases[] = {
        {"2636.669", 0.002636669, 0},
        {"0.1", 1e-7, 0},
        {"1712195495502094.5", 1712195495.5020945, 0},
        {"1669783687384669", 1669783687.384669, 0},
        {"3e6", 3, 0},
        {"-0.0", 0, 0},
        {"1234567890123456789012345", 1234567890123456789.012345, 0},
        {"-0.001", 0, EP_ERANGE},
        {"1e400", 0, EP_ERANGE},
        {"\"5\"", 0, EP_EFORMAT},
        {"null", 0, EP_EFORMAT},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct ep_json_value v;
        struct ep_error err;
        struct ep_json j;
        double s = -1;
        int rc;

        ok(ep_json_begin(&j, cases[i].us, strlen(cases[i].us), &v, &err) == 0);
        rc = ep_chrome_seconds(&v, "dur", &s, &err);
        ok(rc == cases[i].code);
        if (rc == 0 && !ok(s == cases[i].s && !signbit(s)))
            printf("# %s: %.17g\n", cases[i].us, s);
    }
}

/* First in, first out, through the file too. */
static void test_hold(void)
{
    enum { BYTES = 24, ITEMS = 800000 }; /* 19 MB */
    struct ep_chrome_hold *h = ep_chrome_hold_new(BYTES);
    struct ep_error err;
    char item[BYTES] = {0};
    int wrong = 0, n = 0;

    ok(!ep_chrome_hold_any(h));
    for (int i = 0; i < ITEMS; i++) {
        memcpy(item + 3, &i, sizeof i);
        wrong += ep_chrome_hold_add(h, item, &err) != 0;
    }
    ok(ep_chrome_hold_any(h));
    for (int i; ep_chrome_hold_take(h, item, &err) == 1; n++) {
        memcpy(&i, item + 3, sizeof i);
        wrong += i != n;
    }
    ok(n == ITEMS && wrong == 0);
    ep_chrome_hold_free(h);

    h = ep_chrome_hold_new(BYTES);
    ok(ep_chrome_hold_take(h, item, &err) == 0);
    ep_chrome_hold_free(h);
}

/* The rank of the thread (pid, tid) if the threads have these names. */
struct named {
    int pid, tid;
    const char *name;
};

static long rank_of(const struct named *v, int n, int which)
{
    struct ep_chrome_lanes *l = ep_chrome_lanes_new();
    struct ep_error err;
    uint32_t lane = 0, wanted = 0;
    long rank;

    for (int i = 0; i < n; i++) {
        ok(ep_chrome_lane_find(l, v[i].pid, v[i].tid, &lane, &err) == 0);
        if (v[i].name)
            ep_chrome_lane_name(l, lane, span(v[i].name));
        if (i == which)
            wanted = lane;
    }
    ep_chrome_lanes_rank(l);
    rank = (long)ep_chrome_lane(l, wanted)->rank;
    ep_chrome_lanes_free(l);
    return rank;
}

static void test_ranks(void)
{
    const struct named good[] = {
        {0, 6, "PP rank 1, TP rank 0, a"},
        {0, 7, "PP rank 1, TP rank 0, b"},
        {1, 3, "PP rank 0, TP rank 0, b"},
        {1, 2, "PP rank 0, TP rank 0, a"},
        {1, 9, NULL},
    };
    const struct named same_tid[] = {
        {0, 0, "PP rank 0, a"},
        {0, 1, "PP rank 0, b"},
        {1, 0, "PP rank 0, a"},
        {1, 1, "PP rank 0, b"},
    };
    const struct named gap[] = {
        {0, 0, "PP rank 0, a"},
        {0, 1, "PP rank 0, b"},
        {1, 2, "PP rank 0, a"},
        {1, 4, "PP rank 0, b"},
    };
    const struct named odd[] = {
        {0, 1, "PP rank 0, a"},
        {0, 2, "PP rank 0, b"},
    };
    const struct named uneven[] = {
        {0, 0, "PP rank 0, a"},
        {0, 1, "PP rank 0, b"},
        {1, 2, "PP rank 0, a"},
    };
    const struct named single[] = {
        {0, 0, "PP rank 0, a"},
        {1, 1, "PP rank 0, a"},
    };

    ok(rank_of(good, 5, 0) == 3);
    ok(rank_of(good, 5, 2) == 1);
    ok(rank_of(good, 5, 4) == -1);
    ok(rank_of(same_tid, 4, 0) == -1);
    ok(rank_of(gap, 4, 0) == -1);
    ok(rank_of(odd, 2, 0) == -1);
    ok(rank_of(uneven, 3, 0) == -1);
    ok(rank_of(single, 2, 0) == -1);
}

/* ---- whole importers ---- */

static char path[] = "/tmp/evenpace-test-XXXXXX";

struct outcome {
    int records, errors, invalid;
    bool sniffed;
};

static struct outcome import(const char *text, size_t len,
                             const struct ep_importer *from)
{
    struct ep_record_parser *parser = ep_record_parser_new();
    struct outcome o = {0};
    struct ep_source s;
    struct ep_error err;
    struct ep_record r, back;
    struct ep_buf line;
    FILE *f = fopen(path, "w");
    int rc;

    ep_buf_init(&line);
    o.invalid += !f || fwrite(text, 1, len, f) != len;
    o.invalid += !f || fclose(f) != 0;
    o.sniffed = ep_importer_guess(text, len, "x") == from;
    if (ep_source_open(&s, path, from, NULL, NULL, &err) < 0)
        return (struct outcome){.invalid = 1};
    while ((rc = ep_source_next(&s, &r, &err)) > 0 || (rc < 0 && !s.over)) {
        if (rc < 0) {
            o.errors++;
            o.invalid += !err.msg[0] || s.offset > len;
            continue;
        }
        o.records++;
        ep_buf_reset(&line);
        ep_record_print(&r, &line);
        o.invalid +=
            ep_record_parse(parser, line.ptr, line.len - 1, &back, &err) < 0;
    }
    o.errors += rc < 0;
    ep_source_close(&s);
    ep_buf_free(&line);
    ep_record_parser_free(parser);
    return o;
}

static const char timeline[] =
    "[{\"name\":\"forward-send\",\"cat\":\"forward-send\",\"pid\":1,\"tid\":3,"
    "\"ts\":12.5,\"dur\":0.25,\"ph\":\"X\",\"args\":{\"step\":4,"
    "\"model_chunk\":0,\"mb_id\":2,\"seq_id\":1}},\n"
    "{\"name\":\"g\\u00e9\",\"pid\":1,\"tid\":2,\"ts\":1e3,\"dur\":1,"
    "\"ph\":\"X\",\"args\":{\"step\":5,\"mb_id\":-1}},"
    "{\"name\":\"thread_name\",\"pid\":1,\"tid\":3,\"ph\":\"M\","
    "\"args\":{\"name\":\"PP rank 0, TP rank 0, pp-comm\"}}]\n";

static const char kineto[] =
    "{\n  \"schemaVersion\": 1,\n  \"deviceProperties\": [ {\"id\": 0} ],\n"
    "  \"traceEvents\": [\n  {\n    \"ph\": \"X\", \"cat\": \"kernel\", "
    "\"name\": \"ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*)\", "
    "\"pid\": 0, \"tid\": 40,\n    \"ts\": 1.001, \"dur\": 2.002,\n"
    "    \"args\": {\n      \"device\": 0, \"grid\": [24, 1, 1], "
    "\"Collective name\": \"allreduce\", \"In msg nelems\": 5, "
    "\"dtype\": \"Float\", \"Process Group Name\": \"0\", "
    "\"Process Group Ranks\": \"[0, 1, ...]\"\n    }\n  },\n"
    "  {\n    \"ph\": \"X\", \"cat\": \"user_annotation\", "
    "\"name\": \"ProfilerStep#4\", \"pid\": 7, \"tid\": 7, \"ts\": 1.000, "
    "\"dur\": 3.500\n  }\n  ],\n  \"distributedInfo\": {\"rank\": 1},\n"
    "  \"baseTimeNanoseconds\": 1700000000000000000\n}\n";

static void test_cuts(const char *text, const struct ep_importer *from)
{
    size_t len = strlen(text), first_sniffed = 0;
    int invalid = 0, most = 0, silent = 0;
    struct outcome o = import(text, len, from);

    ok(o.records == 2 && o.errors == 0 && o.invalid == 0 && o.sniffed);
    for (size_t cut = 0; cut < len - 1; cut++) {
        o = import(text, cut, from);
        invalid += o.invalid;
        most = o.records > most ? o.records : most;
        silent += *text == '{' && cut > 0 && o.errors == 0;
        if (!first_sniffed && o.sniffed)
            first_sniffed = cut;
        invalid += first_sniffed && !o.sniffed;
    }
    ok(invalid == 0);
    ok(most == 2);
    ok(silent == 0);
    printf("# known as %s from byte %zu on\n", from->name, first_sniffed);
    ok(first_sniffed > 0 && first_sniffed < 300);
}

/* Every byte of the sample replaced by a few others. */
static void test_spoilt(const char *text, const struct ep_importer *from)
{
    static const char other[] = {'"', '{', ']', '\\', '-', '\0', '\n', '9'};
    size_t len = strlen(text);
    char *copy = ep_strndup(text, len);
    int invalid = 0;

    for (size_t i = 0; i < len; i++) {
        copy[i] = other[i % sizeof other];
        invalid += import(copy, len, from).invalid;
        copy[i] = other[(i + 3) % sizeof other];
        invalid += import(copy, len, from).invalid;
        copy[i] = text[i];
    }
    ok(invalid == 0);
    free(copy);
}

static void test_sniff(void)
{
    static const struct {
        const char *head;
        const struct ep_importer *want;
    } cases[] = {
        {"{\"type\":\"step\",\"ph\":1,\"ts\":2}", &ep_import_records},
        {"{\"traceEvents\":[", &ep_import_kineto},
        {"{\n  \"schemaVersion\": 1,\n  \"deviceProperties\": [",
         &ep_import_kineto},
        {"[{\"name\": \"aten::zeros\", \"ph\": \"X\", \"ts\": 182",
         &ep_import_kineto},
        {"{\"traceEvents\":[{\"ph\":\"X\",\"args\":{\"mb_id\":0",
         &ep_import_timeline},
        {"[{\"ph\":\"M\",\"args\":{\"name\":\"PP rank 0, TP rank 0, misc",
         &ep_import_timeline},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        ok(ep_importer_guess(cases[i].head, strlen(cases[i].head), "x.json") ==
           cases[i].want);
    ok(ep_importer_guess("[1, 2]", 6, "x.json") == NULL);
}

int main(void)
{
    int fd = mkstemp(path);

    ok(fd >= 0 && close(fd) == 0);
    test_ops();
    test_lists();
    test_seconds();
    test_hold();
    test_ranks();
    test_sniff();
    test_cuts(timeline, &ep_import_timeline);
    test_cuts(kineto, &ep_import_kineto);
    test_spoilt(timeline, &ep_import_timeline);
    test_spoilt(kineto, &ep_import_kineto);
    ok(unlink(path) == 0);
    return tap_done();
}
