/* SPDX-License-Identifier: Apache-2.0 */
/* place.h - where in a hybrid-parallel job a rank is. */
#ifndef EP_DETECT_PLACE_H
#define EP_DETECT_PLACE_H

#include <stdbool.h>
#include <stdint.h>

/* Zeros: not told. Of a known place each index is -1 if that is not told. */
struct ep_place {
    bool known;
    int64_t dp, pp, tp; /* data-parallel replica, stage, tensor-parallel rank */
};

#endif
