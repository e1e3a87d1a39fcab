/* SPDX-License-Identifier: Apache-2.0 */
/* Charges what the tables hold to the owners of the host (owners.h). */
#ifndef PROF_BPF_HOST_SHARES_LEDGER_H
#define PROF_BPF_HOST_SHARES_LEDGER_H

#include "common/walk/tables/tables.h"

struct host;

/* Returns the callbacks for the tables. Valid as long as the host and its owners. */
struct tables_ledger ledger_of(struct host *h);

#endif
