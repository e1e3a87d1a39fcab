/* SPDX-License-Identifier: Apache-2.0 */
/*
 * uthash with a hash function that nobody can predict. Users choose many keys, such as the inodes
 * of their own file systems. With uthash's own function they could choose keys that all fall into
 * one bucket, and each lookup would walk over all of them.
 */
#ifndef COMMON_BASE_TABLES_HASHTABLE_H
#define COMMON_BASE_TABLES_HASHTABLE_H

#include <stddef.h>
#include <stdint.h>

/* SipHash-1-3 of size bytes (Aumasson and Bernstein, SipHash: a fast short-input PRF, 2012). */
uint64_t hashtable_siphash(const uint64_t key[static 2], const void *at, size_t size);
/* The same, with a random key of this process. */
uint64_t hashtable_hash(const void *at, size_t size);

#define HASH_FUNCTION(keyptr, keylen, hashv) \
	((hashv) = (unsigned)hashtable_hash((keyptr), (size_t)(keylen)))
#include <uthash.h>

#endif
