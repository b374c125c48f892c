/* SPDX-License-Identifier: Apache-2.0 */
/*
 * import_chrome_nccl.h - the words for collectives in PyTorch's traces;
 * private to import_chrome*.c.
 */
#ifndef EP_RECORD_IMPORT_CHROME_NCCL_H
#define EP_RECORD_IMPORT_CHROME_NCCL_H

#include "base/buf.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * What a kernel does: all_reduce, all_gather, reduce_scatter, broadcast,
 * reduce, all_to_all, gather, scatter, barrier, send, recv; send_recv for a
 * kernel of which only the name SendRecv is known (p2p, or an all-to-all made
 * of it).
 *
 * collective  "Collective name" of args: allreduce, _allgather_base, ...;
 *             {NULL, 0} if absent. Decides if it is known
 * kernel      ncclKernel_AllReduce_RING_LL_Sum_float(...) (NCCL up to 2.18),
 *             ncclDevKernel_AllReduce_Sum_f32_RING_LL(...) (from 2.19), also
 *             ncclAllReduceRingLLKernel_sum_f32(...), ncclSymk...
 * *p2p        send, recv or send_recv
 *
 * A collective that is not known, of a kernel whose name says nothing, is
 * returned as it is; empty if there is none.
 */
struct ep_span ep_chrome_nccl_op(struct ep_span collective,
                                 struct ep_span kernel, bool *p2p);

/* Bytes of an element of a c10::ScalarType by name ("Float", "BFloat16"); 0 if
 * it is not known. */
int64_t ep_chrome_nccl_dtype_bytes(struct ep_span dtype);

/*
 * At which place a global rank is in a list "[0, 1, 2, ...]", from 0: its rank
 * in that process group. -1 if it is not in what is written of the list, or
 * rank is below 0.
 */
int64_t ep_chrome_nccl_place(const char *list, int64_t rank);

#endif
