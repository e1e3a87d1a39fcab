/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records of the two rings (bpf/sample.h). The kernel's programs write them from data of processes.
 * So the size of a record is checked here, before any other code reads it.
 */
#ifndef PROF_BPF_KERNEL_RECORD_H
#define PROF_BPF_KERNEL_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include "bpf/deferred.h"
#include "common/wire/msg.h"

/* Return the record, borrowed, or NULL if it is shorter than it claims or larger than allowed. */
const struct sample *record_sample(const void *data, size_t size);
const struct deferred_sample *record_deferred(const void *data, size_t size);

/* The memory that a struct msg_object borrows. */
struct record_object {
	uint64_t addresses[SAMPLE_PIECES], lengths[SAMPLE_PIECES];
	uint8_t bytes[SAMPLE_OBJECT_BYTES];
};
/* Fills all of *ret but its process from a SAMPLE_OBJECT. Lengths are cut to the bytes that exist.
 * Returns false if the record ends before them. */
bool record_object(const struct sample *s, struct record_object *keep, struct msg_object *ret);

/* The name that a program gave a thread (titles.h). */
#define RECORD_TITLE 128 /* bytes in UTF-8; longer names are truncated */
struct record_title {
	uint8_t len;
	bool is_virtual; /* valid only for samples with SAMPLE_TITLED */
	char text[RECORD_TITLE];
};
/* Fills *ret from a SAMPLE_THREAD. Invalid characters become U+FFFD. Returns false if the record is
 * too short. */
bool record_title(const struct sample *s, struct record_title *ret);

#endif
