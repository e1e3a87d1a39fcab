/* SPDX-License-Identifier: Apache-2.0 */
/* The words of reasons (bpf/errors.def): why a walk ended, why samples were lost, and why frames
 * have no names. */
#ifndef COMMON_WIRE_REASON_H
#define COMMON_WIRE_REASON_H

#include <stdbool.h>
#include <stdint.h>
#include "bpf/reasons.h"

/* The word and the sentence of a reason; "unknown" for a number outside the table. Static storage.
 */
const char *reason_walk_word(uint64_t reason);
const char *reason_walk_text(uint64_t reason);
const char *reason_lost_word(uint64_t reason);
const char *reason_lost_text(uint64_t reason);
const char *reason_unnamed_word(uint64_t reason);
const char *reason_unnamed_text(uint64_t reason);
/* Whether the reason counts samples rather than other losses. */
bool reason_lost_is_samples(uint64_t reason);
/* The sum of those counts by reason that count samples. */
uint64_t reason_lost_samples(const uint64_t counts[static LOST_REASONS]);

#endif
