/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checksums of debug files, as in .gnu_debuglink: the CRC-32 of the whole file. Programs without a
 * build id identify their debug file by it.
 *
 * A user may let many programs name one file, or a file of terabytes. So:
 *
 * - The checksum of a file is cached by its identity (device, inode, ctime, size).
 * - A file of more than FILECRC_SIZE bytes is refused, even if it consists of holes: lseek would
 *   find them, but takes the file's lock, which a user can hold for ever.
 * - For one owner, at most FILECRC_BURST bytes are read at once, and FILECRC_RATE more each second.
 *   The owner is that of the process whose sample needs the name.
 *
 * Each process has one cache, of a few KiB.
 */
#ifndef COMMON_NAMES_ELF_FILECRC_H
#define COMMON_NAMES_ELF_FILECRC_H

#include "common/names/elf/symfile.h"

#define FILECRC_SIZE (256u << 20)
#define FILECRC_BURST (1u << 30)
#define FILECRC_RATE (16u << 20)

/* Computes the checksum. `owner` is charged for the bytes read. Returns 0; SYMFILE_TOO_LARGE: the
 * file is too large, or too much was read for its owner; -errno. */
int filecrc_of(const struct symfile *f, uint64_t owner, uint32_t *ret);

#endif
