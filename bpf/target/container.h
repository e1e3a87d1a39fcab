/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0 */
/*
 * Whether a cgroup is a container's, by its name alone. All parts that need this rule share it: the
 * program that compares new cgroups with targets, the search for existing ones, and outputs. So
 * `--container` takes the id that outputs show as container.id.
 *
 *   [PREFIX-]ID[.scope]   ID: 64 hexadecimal digits, of all engines that follow Docker. A colon may
 *                         replace the dash. If the prefix ends in `conmon`, it is no container,
 *                         but the monitor outside of one.
 *   TASK-NUMBER           a container of ECS on Fargate. TASK: 32 hexadecimal digits.
 */
#ifndef BPF_TARGET_CONTAINER_H
#define BPF_TARGET_CONTAINER_H

#include "bpf/walk/env.h"

/* Bytes of a name, filled with zeros; a longer name is not a container's. */
#define CONTAINER_NAME 240
#define CONTAINER_ID 64 /* bytes of an id, at most */
#define CONTAINER_TASK 32

/* The state of the search. It is kept in memory, since the verifier does not track its values
 * there. */
struct container_id {
	__u32 start, count; /* position and length of the id in the name; count 0: not a
			     * container */
	__u32 digits;	    /* digits seen since start */
	__u32 ends;	    /* 1: another character has come since then */
	__u32 task;	    /* 1: the name matches TASK-NUMBER so far */
};

ENV_INLINE char container_char(const char *name, __u64 i)
{
	ENV_OPAQUE(i);
	return i < CONTAINER_NAME ? name[i] : 0;
}

/* Returns 1 if a character is one of n from `first` on, otherwise 0; without a branch, since the
 * verifier would follow both sides. */
ENV_INLINE __u32 container_among(char c, char first, __u32 n)
{
	__u32 from_first = (__u8)(c - first);

	ENV_OPAQUE(from_first);
	return (from_first - n) >> 31;
}

ENV_INLINE __u32 container_is_hex(char c)
{
	return container_among(c, '0', 10) | container_among(c, 'a', 6);
}

/* Whether the word of n bytes is at this position. */
ENV_INLINE bool container_has(const char *name, __u32 at, const char *word, __u32 n)
{
	bool same = true;

	for (__u32 i = 0; i < n; i++)
		same = same && container_char(name, at + i) == word[i];
	return same;
}

ENV_INLINE void container_look_at(struct container_id *id, __u32 i, char c)
{
	const __u32 digit = container_among(c, '0', 10), hex = container_is_hex(c),
		    dash = container_among(c, '-', 1);
	__u32 goes_on = (dash | container_among(c, ':', 1)) ^ 1;

	id->task &= i < CONTAINER_TASK ? hex : i == CONTAINER_TASK ? dash : digit;
	ENV_OPAQUE(goes_on);
	id->start += (i + 1 - id->start) * (goes_on ^ 1);
	id->digits = (id->digits + (hex & ~id->ends)) * goes_on;
	id->ends = (id->ends | (hex ^ 1)) * goes_on;
}

/* Finds the container's id in a name of CONTAINER_NAME bytes, which is filled with zeros. */
ENV_INLINE void container_find(const char *name, struct container_id *id)
{
	__u32 len;

	id->start = id->count = id->digits = id->ends = 0;
	id->task = 1;
	for (len = 0; len < CONTAINER_NAME; len++) {
		ENV_FORGET();
		if (!name[len])
			break;
		container_look_at(id, len, name[len]);
	}
	ENV_FORGET();
	if (len >= CONTAINER_NAME - 1)
		return;
	const __u32 start = id->start, end = start + CONTAINER_ID;

	if (id->task && len > CONTAINER_TASK + 1 && len <= CONTAINER_ID) {
		id->start = 0;
		id->count = len;
	} else if (id->digits == CONTAINER_ID &&
		   (len == end || (len == end + 6 && container_has(name, end, ".scope", 6))) &&
		   !(start >= 7 && container_has(name, start - 7, "conmon", 6))) {
		id->count = CONTAINER_ID;
	}
}

#endif
