/* SPDX-License-Identifier: Apache-2.0 */
/* importers.h - the rows of the table in import.c, one per import_NAME.c. */
#ifndef EP_RECORD_IMPORTERS_H
#define EP_RECORD_IMPORTERS_H

#include "record/import.h"

extern const struct ep_importer ep_import_deepspeed;
extern const struct ep_importer ep_import_dmon;
extern const struct ep_importer ep_import_fr;
extern const struct ep_importer ep_import_inspector;
extern const struct ep_importer ep_import_kineto;
extern const struct ep_importer ep_import_megatron;
extern const struct ep_importer ep_import_nccl_debug;
extern const struct ep_importer ep_import_nccl_tests;
extern const struct ep_importer ep_import_nvrx;
extern const struct ep_importer ep_import_pattern;
extern const struct ep_importer ep_import_pickle;
extern const struct ep_importer ep_import_prometheus;
extern const struct ep_importer ep_import_ras;
extern const struct ep_importer ep_import_records;
extern const struct ep_importer ep_import_smi;
extern const struct ep_importer ep_import_timeline;

#endif
