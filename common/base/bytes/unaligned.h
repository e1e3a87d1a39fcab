/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers of this machine's byte order in memory, at addresses of any alignment. */
#ifndef COMMON_BASE_BYTES_UNALIGNED_H
#define COMMON_BASE_BYTES_UNALIGNED_H

#include <stdint.h>
#include <string.h>

static inline uint64_t unaligned_u64(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static inline uint32_t unaligned_u32(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static inline uint16_t unaligned_u16(const uint8_t *p)
{
	uint16_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

#endif
