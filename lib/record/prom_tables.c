/* SPDX-License-Identifier: Apache-2.0 */
/* prom_tables.c - which metrics records of a type become; see prom_impl.h. A
   gauge X and a counter X_total would be one family to OpenMetrics: hence
   step_busy_seconds and step_busy_time_seconds_total. */
#include "config.h"

#include "record/prom_impl.h"

#define PRE "evenpace_"
#define LAST(name, key, help)                                                  \
    {                                                                          \
        PRE name, help, EP_PROM_LAST, key, 1, NULL                             \
    }
#define SUM(name, key, help)                                                   \
    {                                                                          \
        PRE name "_total", help, EP_PROM_SUM, key, 1, NULL                     \
    }
#define COUNT(name, help)                                                      \
    {                                                                          \
        PRE name "_total", help, EP_PROM_COUNT, EP_K_TYPE, 1, NULL             \
    }

const char ep_prom_last_family[] = PRE "last_record_timestamp_seconds";
const char ep_prom_last_help[] = "Latest ts of the records of a type.";

const struct ep_prom_table ep_prom_tables[EP_PROM_SETS] = {
    [EP_LAYOUT] =
        {{EP_K_TYPE},
         {LAST("layout_dp", EP_K_DP, "Data-parallel groups of the job."),
          LAST("layout_pp", EP_K_PP, "Pipeline stages of the job."),
          LAST("layout_tp", EP_K_TP, "Tensor-parallel size of the job."),
          LAST("layout_cp", EP_K_CP, "Context-parallel size of the job."),
          LAST("layout_ep", EP_K_EP, "Expert-parallel size of the job."),
          LAST("layout_vpp", EP_K_VPP, "Model chunks per pipeline stage."),
          LAST("layout_microbatches", EP_K_MICROBATCHES,
               "Micro-batches of a step over all data-parallel groups."),
          LAST("layout_gpus_per_host", EP_K_GPUS_PER_HOST,
               "Devices on each host of the job.")}},
    [EP_STEP] =
        {{EP_K_TYPE},
         {LAST("step", EP_K_STEP, "Number of the last step."),
          LAST("step_duration_seconds", EP_K_DUR, "Duration of the last step."),
          LAST("step_busy_seconds", EP_K_BUSY,
               "Time in the last step not spent waiting for others."),
          LAST("step_microbatches", EP_K_MB, "Micro-batches of the last step."),
          COUNT("steps", "Steps that were done."),
          SUM("step_time_seconds", EP_K_DUR, "Time spent in steps."),
          SUM("step_busy_time_seconds", EP_K_BUSY,
              "Time in steps not spent waiting for others."),
          SUM("step_tokens", EP_K_TOKENS, "Tokens processed in steps."),
          SUM("step_flop", EP_K_FLOPS,
              "Floating-point operations done in steps.")}},
    [EP_COLL] = {{EP_K_OP, EP_K_COMM},
                 {COUNT("colls", "Collective operations."),
                  SUM("coll_seconds", EP_K_DUR,
                      "Time spent in collective operations."),
                  SUM("coll_bytes", EP_K_BYTES,
                      "Sizes of the messages of collective operations.")}},
    [EP_P2P] = {{EP_K_OP, EP_K_COMM},
                {COUNT("p2p_transfers", "Point-to-point operations."),
                 SUM("p2p_seconds", EP_K_DUR,
                     "Time spent in point-to-point operations."),
                 SUM("p2p_bytes", EP_K_BYTES,
                     "Sizes of the messages of point-to-point operations.")}},
    [EP_SPAN] = {{EP_K_OP},
                 {COUNT("spans", "Operations of training steps."),
                  SUM("span_seconds", EP_K_DUR,
                      "Time spent in operations of training steps.")}},
    [EP_GAUGE] = {{EP_K_OP, EP_K_COMM, EP_K_PEER}, {{.family = NULL}}},
    [EP_PROBE] = {{EP_K_TEST, EP_K_DTYPE, EP_K_SIZE}, {{.family = NULL}}},
    [EP_LINK] = {{EP_K_SRC, EP_K_DST, EP_K_TRANSPORT},
                 {LAST("link_bytes_per_second", EP_K_VALUE,
                       "Throughput of the last measured transfer.")}},
    [EP_LOSS] = {{EP_K_SPLIT},
                 {LAST("loss", EP_K_VALUE, "Last loss."),
                  LAST("loss_step", EP_K_STEP, "Step of the last loss."),
                  LAST("loss_tokens", EP_K_TOKENS,
                       "Tokens processed at the last loss.")}},
    [EP_EVENT] = {{EP_K_SCOPE, EP_K_ID, EP_K_CAUSE},
                  {{PRE "event_active",
                    "Open episodes: begun by an onset, no relief yet.",
                    EP_PROM_OTHER, EP_K_TYPE, 1, NULL},
                   LAST("event_slowdown_ratio", EP_K_FACTOR,
                        "How many times slower than healthy."),
                   LAST("event_probability", EP_K_P, "How sure it is."),
                   LAST("event_since_timestamp_seconds", EP_K_SINCE,
                        "When the latest episode began."),
                   {PRE "event_lost_gpu_seconds",
                    "Device time lost in the latest episode.", EP_PROM_LAST,
                    EP_K_GPU_HOURS, 3600, NULL}}},
    [EP_PROM_EVENTS] = {{EP_K_KIND, EP_K_SCOPE, EP_K_ID, EP_K_CAUSE},
                        {COUNT("events",
                               "Events; of one episode its onset and its "
                               "relief count once each.")}},
    [EP_WHATIF] = {{EP_K_WHAT, EP_K_ID},
                   {LAST("whatif_slowdown_ratio", EP_K_SLOWDOWN,
                         "Step time over ideal step time."),
                    LAST("whatif_share_ratio", EP_K_SHARE,
                         "Share of the slowdown.")}},
    [EP_PLAN] = {{EP_K_LEVEL, EP_K_ACTION},
                 {LAST("plan_gain_ratio", EP_K_GAIN,
                       "Predicted throughput over the present one, less 1."),
                  LAST("plan_cost_seconds", EP_K_COST,
                       "Time that the action costs."),
                  LAST("plan_from", EP_K_FROM, "Share before the action."),
                  LAST("plan_to", EP_K_TO, "Share that the action sets."),
                  COUNT("plans", "Actions that were proposed.")}},
    [EP_ASSIGN] = {{EP_K_TYPE},
                   {LAST("assign_local_steps", EP_K_LOCAL_STEPS,
                         "Steps of a worker to its next exchange."),
                    LAST("assign_share_ratio", EP_K_SHARE,
                         "Share of a worker in the work.")}},
    [EP_MERGE] = {{EP_K_TIER, EP_K_FROM},
                  {COUNT("merges", "Updates that a server applied."),
                   LAST("merge_version", EP_K_VERSION,
                        "Version of the model after the last merge."),
                   LAST("merge_staleness", EP_K_STALENESS,
                        "Versions between the last update's base and its "
                        "merge."),
                   LAST("merge_norm", EP_K_NORM, "L2 norm of the last update."),
                   SUM("merge_steps", EP_K_STEPS,
                       "Local steps in the updates."),
                   SUM("merge_tokens", EP_K_TOKENS,
                       "Tokens processed in the updates.")}},
};
