/* SPDX-License-Identifier: Apache-2.0 */
/* Orders of the launcher, by its life pipe (enum deploy_order). */
#ifndef PROF_BPF_RUN_ORDERS_H
#define PROF_BPF_RUN_ORDERS_H

struct prof;

/* Takes the next order. Without a launcher the run is over. */
void orders_take(struct prof *p);

#endif
