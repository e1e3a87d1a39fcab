/* SPDX-License-Identifier: Apache-2.0 */
/* FNV-1a of 64 bits. It is fixed forever: names of spooled files and the build of a message schema
 * have it. Strangers can choose texts that collide, so tables use hashtable.h. */
#ifndef COMMON_BASE_HASH_H
#define COMMON_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

#define HASH_START 0xcbf29ce484222325u /* of no bytes */

/* Continues a hash with n bytes. */
static inline uint64_t hash_bytes(uint64_t hash, const void *data, size_t n)
{
	const uint8_t *p = data;

	for (size_t i = 0; i < n; i++)
		hash = (hash ^ p[i]) * 0x100000001b3u;
	return hash;
}

#endif
