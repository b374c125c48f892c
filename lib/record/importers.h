/* SPDX-License-Identifier: Apache-2.0 */
/* importers.h - the rows of the table in import.c, one per import_NAME.c. */
#ifndef EP_RECORD_IMPORTERS_H
#define EP_RECORD_IMPORTERS_H

#include "record/import.h"

extern const struct ep_importer ep_import_records;

#endif
