/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Relayed: definitions of the raw stream that prof-symd only passes on, before the first message
 * that needs them in each named epoch. They are kept as the bytes of their messages.
 *
 * Sources, labels, lists of labels, links and cgroups have ids. Attributes and mappings belong to a
 * process, and end with it. All count in the ceiling of struct definitions.
 */
#ifndef PROF_SYMD_STREAM_RELAYED_H
#define PROF_SYMD_STREAM_RELAYED_H

#include "tools/prof-symd/stream/definitions.h"

#define RELAYED_OF_PROCESS 1024 /* at most; further ones are dropped */

/* Whether it is one of these messages. */
bool relayed_has(enum msg_id id);
/* Stores it; the latest definition holds. One that does not fit, or names an unknown process,
 * is dropped. 0, -ENOMEM. */
int relayed_take(struct definitions *d, const struct msg *m);
/* The one of this kind with this id; NULL: none. Valid until the next one is stored. */
struct definition_relayed *relayed_find(const struct definitions *d, enum msg_id kind, uint64_t id);
/* Its message. The scratch holds its lists. 0, -ENOMEM. */
int relayed_decode(const struct definition_relayed *x, struct msg_scratch *scratch,
		   struct msg *ret);

#endif
