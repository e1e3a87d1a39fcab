/* SPDX-License-Identifier: Apache-2.0 */
/* Orders of the launcher, through its life pipe (enum deploy_order). */
#ifndef PROF_BPF_RUN_ORDERS_H
#define PROF_BPF_RUN_ORDERS_H

struct prof;

/* Takes the next order. If the launcher is gone, the run is over. */
void orders_take(struct prof *p);

#endif
