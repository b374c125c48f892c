/* SPDX-License-Identifier: Apache-2.0 */
/*
 * import_fr.h - one entry of a dump of PyTorch's Flight Recorder; private to
 * import_fr*.c.
 */
#ifndef EP_RECORD_IMPORT_FR_H
#define EP_RECORD_IMPORT_FR_H

#include "base/json.h"

#include <stdint.h>

/* Members of an entry. */
enum ep_fr_field {
    EP_FR_PG_ID,
    EP_FR_GROUP, /* the first of process_group: its name */
    EP_FR_COLL_SEQ,
    EP_FR_P2P_SEQ,
    EP_FR_IS_P2P,
    EP_FR_NAME,
    EP_FR_CREATED,
    EP_FR_STARTED,
    EP_FR_COMPLETED,
    EP_FR_DURATION,
    EP_FR_STATE,
    EP_FR_FIELDS
};

/* Its arrays. */
enum ep_fr_list {
    EP_FR_IN_SIZES,
    EP_FR_OUT_SIZES,
    EP_FR_IN_DTYPES,
    EP_FR_OUT_DTYPES,
    EP_FR_LISTS
};

/* Values and texts as they are in the file; of kind NULL and {NULL, 0} where
 * they are not. Views of what the scanner runs over. */
struct ep_fr_entry {
    struct ep_json_value field[EP_FR_FIELDS];
    struct ep_span list[EP_FR_LISTS];
};

/*
 * Read the entry that j has returned as root, to its end. Errors: the
 * scanner's; EP_EFORMAT "entry is not an object".
 */
int ep_fr_entry_take(struct ep_fr_entry *e, struct ep_json *j,
                     const struct ep_json_value *root) EP_MUST_USE;

/* Bytes of the larger of its inputs and its outputs; -1 if that cannot be told,
 * as of a number format that is not known. */
int64_t ep_fr_entry_bytes(const struct ep_fr_entry *e);

#endif
