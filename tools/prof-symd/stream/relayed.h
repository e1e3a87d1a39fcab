/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Relayed: definitions of the raw stream that prof-symd only passes on, before the first message
 * that needs them in each named epoch. They are kept as the bytes of their messages.
 *
 * Sources, labels, lists of labels, links and cgroups have ids. Attributes and mappings belong to a
 * process, and end with it. All count towards the limit of struct definitions.
 */
#ifndef PROF_SYMD_STREAM_RELAYED_H
#define PROF_SYMD_STREAM_RELAYED_H

#include "tools/prof-symd/stream/definitions.h"

#define RELAYED_OF_PROCESS 1024 /* limit for one process; further ones are dropped */

/* Whether messages of this kind are relayed. */
bool relayed_has(enum msg_id id);
/* Stores a message; the latest definition is valid. If it does not fit, or names an unknown
 * process, it is dropped. Returns 0 or -ENOMEM. */
int relayed_take(struct definitions *d, const struct msg *m);
/* Returns the definition of this kind with this id; NULL: none. Valid until the next one is
 * stored. */
struct definition_relayed *relayed_find(const struct definitions *d, enum msg_id kind, uint64_t id);
/* Decodes the message. The scratch holds its lists. Returns 0 or -ENOMEM. */
int relayed_decode(const struct definition_relayed *x, struct msg_scratch *scratch,
		   struct msg *ret);

#endif
