/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sim_text.h - results of simulations as a table, JSON Lines or tab-separated
 * values; lsgd-sim(1) says what the columns and keys are.
 */
#ifndef EP_LSGD_SIM_TEXT_H
#define EP_LSGD_SIM_TEXT_H

#include "base/buf.h"
#include "lsgd/sim.h"

/* One run. Everything is borrowed. */
struct ep_sim_row {
    const struct ep_env *env;
    enum ep_method method;
    const struct ep_env_method *settings;
    const struct ep_sim_result *result; /* NULL: it could not be finished */
    const char *failed;                 /* why, if so */
    double speed; /* relative to the slowest run of the table */
};

/*
 * Append n runs. With detail also what is known of each region and worker: in
 * text below the table, else as lines of their own types after each run.
 * Of a run that could not be finished there are its settings and why, in text
 * without the latter.
 *
 * Text: columns that no row has are left out; widths fit the rows. Failures of
 * workers, if any, are a table of their own below, so that the first one fits
 * a terminal. legend: lines that say what the columns are.
 */
void ep_sim_text(const struct ep_sim_row *rows, size_t n, bool detail,
                 bool legend, struct ep_buf *out);
void ep_sim_jsonl(const struct ep_sim_row *rows, size_t n, bool detail,
                  struct ep_buf *out);
void ep_sim_tsv(const struct ep_sim_row *rows, size_t n, bool detail,
                struct ep_buf *out);

/* Append "REGION/NUMBER", as records name a worker. */
void ep_sim_worker_name(const struct ep_env *env, size_t worker,
                        struct ep_buf *out);

#endif
