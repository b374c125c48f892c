/* SPDX-License-Identifier: Apache-2.0 */
/*
 * telemetry_logs.c - corpora of text logs, see telemetry.c.
 *
 * Of Megatron, DeepSpeed and a log for a pattern there are two kinds: nearly
 * nothing but the lines that are read, which measures how they are read; and
 * one such line in twenty between what else a job writes, which is what
 * reading a log costs.
 */
#include "config.h"

#include "telemetry.h"

#include <inttypes.h>
#include <time.h>

/* NCCL_DEBUG=INFO, NCCL_DEBUG_SUBSYS=INIT,NET,COLL: calls among the rest. */
void telemetry_nccl_debug(struct corpus *c)
{
    struct ep_buf *b = &c->out;

    while (telemetry_more(c)) {
        int rank = (int)telemetry_below(c, 8);

        ep_buf_adds(b, "[");
        telemetry_time(b, '-', c->n / 5000);
        ep_buf_addf(b, "] n1:%d:%d [%d] NCCL INFO ", 4711 + rank, 4771 + rank,
                    rank);
        if (c->n <= 64)
            ep_buf_addf(b,
                        "ncclCommInitRank comm 0x55d70%d rank %d nranks 8 "
                        "cudaDev %d nvmlDev %d busId %d000 commId 0x5c1f - "
                        "Init COMPLETE\n",
                        rank, rank, rank, rank, rank + 1);
        else if (c->n % 2)
            ep_buf_addf(b,
                        "%s: opCount %" PRIx64
                        " sendbuff 0x7f%06x recvbuff 0x7f%06x count %" PRIu64
                        " datatype 7 op 0 root 0 comm 0x55d70%d [nranks=8] "
                        "stream 0x55d6f0c0\n",
                        telemetry_collective(c), c->n / 8, rank * 4096,
                        rank * 8192, UINT64_C(1024) << telemetry_below(c, 16),
                        rank);
        else if (c->n % 4)
            ep_buf_addf(b,
                        "AllReduce: %d Bytes -> Algo RING proto SIMPLE "
                        "channel{Lo..Hi}={0..23}\n",
                        1024 << telemetry_below(c, 16));
        else
            ep_buf_addf(b,
                        "Channel %02d/0 : %d[%d] -> %d[%d] via P2P/IPC/read\n",
                        (int)telemetry_below(c, 24), rank, rank, (rank + 1) % 8,
                        (rank + 1) % 8);
    }
}

/* Now and then a line of the environment between those of training. */
static void noise(struct corpus *c)
{
    static const char *const lines[] = {
        "WARNING: TransformerEngine: attention backend is FusedAttention\n",
        "  warnings.warn(\"The use of torch.library is deprecated\")\n",
        "/opt/conda/lib/python3.11/site-packages/torch/distributed/c10d.py: "
        "UserWarning: barrier(): using the device under current context.\n",
        "Time to load fused_adam op: 0.0523 seconds\n",
    };

    if (telemetry_below(c, 10) == 0)
        ep_buf_adds(&c->out, lines[telemetry_below(c, 4)]);
}

/* A message of a library that writes when, who and how bad. */
static void add_message(struct corpus *c, uint64_t s)
{
    static const struct {
        const char *before, *after; /* of a number */
    } lines[] = {
        {"transformers.tokenization_utils_base - WARNING - Token indices "
         "sequence length is longer than the specified maximum sequence length "
         "for this model (",
         " > 4096).\n"},
        {"megatron.core.datasets.indexed_dataset - INFO - \tExtract the "
         "sequence lengths of document ",
         "\n"},
        {"urllib3.connectionpool - DEBUG - http://10.0.0.7:4318 \"POST "
         "/v1/metrics HTTP/1.1\" 200 ",
         "\n"},
        {"aiobotocore.credentials - INFO - Found credentials in shared "
         "credentials file: ~/.aws/credentials (try ",
         ")\n"},
        {"webdataset.shards - INFO - opening shard s3://corpus/web/part-",
         ".tar, 2.1 GB, epoch: 0\n"},
    };
    size_t i = telemetry_below(c, sizeof lines / sizeof lines[0]);

    telemetry_time(&c->out, '-', s);
    ep_buf_addf(&c->out, ",%03d - %s%05d%s", (int)telemetry_below(c, 1000),
                lines[i].before, (int)telemetry_below(c, 100000),
                lines[i].after);
}

/* A warning that tells where it comes from, or a traceback. */
static void add_complaint(struct corpus *c)
{
    struct ep_buf *b = &c->out;
    int line = 10 + (int)telemetry_below(c, 2000);

    if (telemetry_below(c, 4)) {
        ep_buf_addf(b,
                    "/opt/conda/lib/python3.11/site-packages/torch/utils/"
                    "checkpoint.py:%d: UserWarning: None of the inputs have "
                    "requires_grad=True. Gradients will be None\n"
                    "  warnings.warn(\n",
                    line);
        return;
    }
    ep_buf_adds(b, "Traceback (most recent call last):\n");
    for (int i = 0; i < 6; i++)
        ep_buf_addf(b,
                    "  File \"/opt/conda/lib/python3.11/site-packages/torch/"
                    "utils/data/_utils/worker_%d.py\", line %d, in "
                    "_worker_loop\n    data = fetcher.fetch(index[%d:])\n",
                    i, line + 7 * i, i);
    ep_buf_addf(b,
                "OSError: [Errno 121] Remote I/O error: '/data/web/part-%05d"
                ".bin', retrying\n",
                line);
}

/* "W1027 03:33:20" */
static void add_glog_time(struct ep_buf *b, uint64_t s)
{
    time_t t = (time_t)(EPOCH + s);
    struct tm tm;

    if (gmtime_r(&t, &tm))
        ep_buf_addf(b, "W%02d%02d %02d:%02d:%02d", tm.tm_mon + 1, tm.tm_mday,
                    tm.tm_hour, tm.tm_min, tm.tm_sec);
}

/* What else is in a log of training between two of its steps, the second of
   which ends s seconds after EPOCH: 19 lines or so that no importer reads. */
static void prose(struct corpus *c, uint64_t s)
{
    struct ep_buf *b = &c->out;

    for (int i = 0; i < 13; i++) {
        int n = (int)telemetry_below(c, 100000);

        switch (telemetry_below(c, 8)) {
        case 0:
            add_complaint(c);
            break;
        case 1:
            ep_buf_addf(b, "[rank%d]:", n % 8);
            add_glog_time(b, s);
            ep_buf_addf(b,
                        ".%06d %d torch/_dynamo/convert_frame.py:844] [%d/8] "
                        "torch._dynamo hit config.cache_size_limit (8)\n",
                        n, 4711 + n % 8, n % 16);
            break;
        case 2:
            ep_buf_addf(b,
                        " > building the shuffle index, %d samples, elapsed "
                        "time in seconds: %.6f\n",
                        n, telemetry_uniform(c, 0, 9));
            break;
        case 3:
            ep_buf_addf(b,
                        "n1:%d:%d [%d] NCCL INFO Channel %02d/0 : %d[%d] -> "
                        "%d[%d] via P2P/IPC/read\n",
                        4711 + n % 8, 4771 + n % 8, n % 8, n % 24, n % 8, n % 8,
                        (n + 1) % 8, (n + 1) % 8);
            break;
        case 4:
            ep_buf_addf(b,
                        "WARNING: could not find the metadata file "
                        "/ckpt/latest_checkpointed_iteration_%d.txt\n",
                        n);
            break;
        default:
            add_message(c, s);
        }
    }
}

static void megatron_line(struct corpus *c)
{
    struct ep_buf *b = &c->out;

    ep_buf_adds(b, " [");
    telemetry_time(b, '-', 13 * c->n);
    ep_buf_addf(
        b,
        ".%06d] iteration %8" PRIu64 "/99999999 | consumed samples: %12" PRIu64
        " | elapsed time per iteration (ms): %.1f | throughput per GPU "
        "(TFLOP/s/GPU): %.1f | learning rate: %.6E | global batch size:  "
        "1024 | lm loss: %.6E | loss scale: 1.0 | grad norm: %.3f | number "
        "of skipped iterations:   0 | number of nan iterations:   0 |\n",
        (int)telemetry_below(c, 1000000), c->n, c->n * 1024,
        telemetry_uniform(c, 12000, 13500), telemetry_uniform(c, 390, 410),
        telemetry_uniform(c, 1e-5, 3e-5), telemetry_uniform(c, 2, 3),
        telemetry_uniform(c, 0.1, 0.4));
}

static void deepspeed_line(struct corpus *c)
{
    struct ep_buf *b = &c->out;

    ep_buf_adds(b, "[");
    telemetry_time(b, '-', 16 * c->n);
    ep_buf_addf(b, ",%03d] [INFO] [logging.py:96:log_dist] [Rank 0] ",
                (int)telemetry_below(c, 1000));
    if (c->n % 2)
        ep_buf_addf(
            b, "step=%" PRIu64 ", skipped=0, lr=[%.17g], mom=[(0.9, 0.999)]\n",
            c->n, telemetry_uniform(c, 1e-6, 1e-5));
    else
        ep_buf_addf(b,
                    "time (ms) | fwd: %.2f | bwd: %.2f | bwd_inner: %.2f | "
                    "bwd_allreduce: %.2f | step: %.2f\n",
                    telemetry_uniform(c, 3000, 4000),
                    telemetry_uniform(c, 10000, 12000),
                    telemetry_uniform(c, 9000, 10000),
                    telemetry_uniform(c, 700, 900),
                    telemetry_uniform(c, 500, 900));
}

/* RETURNN's, for a pattern; every rank writes. */
static void pattern_line(struct corpus *c)
{
    ep_buf_addf(
        &c->out,
        "ep %" PRIu64 " train, step %" PRIu64
        ", ctc %.3f, num_seqs %d, max_size:time %d, mem_usage:cuda:%d "
        "5.2GB, %.3f sec/step, elapsed 0:%02d:05, exp. remaining 0:05:06, "
        "complete %.2f%%\n",
        1 + c->n / 40000, c->n / 4 % 10000, telemetry_uniform(c, 0.5, 1.5),
        4 + (int)telemetry_below(c, 12), 500 + (int)telemetry_below(c, 1500),
        (int)(c->n % 4), telemetry_uniform(c, 0.5, 0.7),
        (int)telemetry_below(c, 60), telemetry_uniform(c, 0, 100));
}

/* Nearly nothing but such lines; and with all that logs have besides. */
void telemetry_megatron(struct corpus *c)
{
    while (telemetry_more(c)) {
        noise(c);
        megatron_line(c);
    }
}

void telemetry_megatron_log(struct corpus *c)
{
    while (telemetry_more(c)) {
        prose(c, 13 * c->n);
        megatron_line(c);
    }
}

void telemetry_deepspeed(struct corpus *c)
{
    while (telemetry_more(c)) {
        noise(c);
        deepspeed_line(c);
    }
}

void telemetry_deepspeed_log(struct corpus *c)
{
    while (telemetry_more(c)) {
        prose(c, 16 * c->n);
        deepspeed_line(c);
    }
}

void telemetry_pattern(struct corpus *c)
{
    while (telemetry_more(c)) {
        noise(c);
        pattern_line(c);
    }
}

void telemetry_pattern_log(struct corpus *c)
{
    while (telemetry_more(c)) {
        prose(c, c->n);
        pattern_line(c);
    }
}
