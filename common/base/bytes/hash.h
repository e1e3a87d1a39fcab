/* SPDX-License-Identifier: Apache-2.0 */
/* FNV-1a with 64 bits. It must never change, because names of spooled files and the build id of the
 * message schema contain it. Untrusted users can choose texts that collide, so tables use
 * hashtable.h instead. */
#ifndef COMMON_BASE_BYTES_HASH_H
#define COMMON_BASE_BYTES_HASH_H

#include <stddef.h>
#include <stdint.h>

#define HASH_START 0xcbf29ce484222325u /* hash of no bytes */

/* Continues a hash with n bytes. */
static inline uint64_t hash_bytes(uint64_t hash, const void *data, size_t n)
{
	const uint8_t *p = data;

	for (size_t i = 0; i < n; i++)
		hash = (hash ^ p[i]) * 0x100000001b3u;
	return hash;
}

#endif
