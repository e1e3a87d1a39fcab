/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers of this machine's byte order in memory, at addresses of any alignment. */
#ifndef COMMON_BASE_UNALIGNED_H
#define COMMON_BASE_UNALIGNED_H

#include <stdint.h>
#include <string.h>

static inline uint64_t u64_at(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static inline uint32_t u32_at(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static inline uint16_t u16_at(const uint8_t *p)
{
	uint16_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

#endif
