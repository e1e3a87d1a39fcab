/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Displaced mappings: others took their place, but samples may have been walked with them. The
 * kernel walks with the mappings that were published last. A newer mapping is published only after
 * its record was drained. Until then the kernel applies rows of the old file to the new code.
 */
#ifndef PROF_BPF_HOST_MAPS_DISPLACED_H
#define PROF_BPF_HOST_MAPS_DISPLACED_H

#include "bpf/sample.h"
#include "tools/prof-bpf/host/maps/maps.h"

#define DISPLACED_MAX 16 /* limit per process; the oldest are replaced */

struct displaced;

/* Notes the mappings that `by`, mapped between since_ns and time_ns, displaces. was: the known
 * mappings, including noted ones (borrowed). generation: that of the mappings published last. *d is
 * NULL if nothing was displaced yet.
 *
 * Returns 0, or a generation if space or memory is lacking: samples walked with it or older ones
 * can no longer be judged. */
uint32_t displaced_note(struct displaced **d, const struct maps *was, const struct map *by,
			uint64_t since_ns, uint64_t time_ns, uint32_t generation);
/* Returns how many of the sample's user frames, from the leaf on, come before the first one in a
 * mapping that was displaced by then. d may be NULL. */
unsigned displaced_before(const struct displaced *d, const struct sample *s);
/* Whether a mapping in [start, end), user addresses, displaced another after time_ns. d may be
 * NULL. */
bool displaced_since(const struct displaced *d, uint64_t start, uint64_t end, uint64_t time_ns);
/* Copies d; NULL gives NULL. The caller owns *ret. Returns false without memory. */
bool displaced_copy(const struct displaced *d, struct displaced **ret);
/* Accepts NULL. */
void displaced_free(struct displaced *d);

#endif
