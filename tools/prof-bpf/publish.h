/* SPDX-License-Identifier: Apache-2.0 */
/* From what host.c knows of processes to what the tables are told: at most once a process and tick,
 * and a large one less often. */
#ifndef PROFPIPE_PUBLISH_H
#define PROFPIPE_PUBLISH_H

#include <stdint.h>

struct host;

/* Publishes what has changed and can be published now. */
void publish_all(struct host *h, uint64_t now_ns);

#endif
