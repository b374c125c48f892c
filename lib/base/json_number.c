/* SPDX-License-Identifier: Apache-2.0 */
/* json_number.c - from the decimal that the scanner saw to machine numbers. */
#include "config.h"

#include "base/json.h"

int ep_json_int(const struct ep_json_value *v, int64_t *out)
{
    uint64_t m, most;
    int32_t e;

    if (v->kind != EP_JSON_NUMBER)
        return EP_EFORMAT;
    m = v->dec.mant;
    e = v->dec.exp10;
    most = (uint64_t)INT64_MAX + v->dec.neg;
    if (v->dec.cut) /* 20 significant digits: below 1 if the point is left */
        return e > 0 ? EP_ERANGE : EP_EFORMAT;
    if (m == 0)
        e = 0;
    for (; e < 0; e++) {
        if (m % 10 != 0)
            return EP_EFORMAT;
        m /= 10;
    }
    for (; e > 0; e--) {
        if (m > most / 10)
            return EP_ERANGE;
        m *= 10;
    }
    if (m > most)
        return EP_ERANGE;
    *out = v->dec.neg ? (int64_t)(0 - m) : (int64_t)m;
    return 0;
}
