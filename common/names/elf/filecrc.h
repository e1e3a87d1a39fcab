/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The checksums of debug files, as .gnu_debuglink has them: the CRC-32 of the whole file. Programs
 * without a build id name their debug file by it.
 *
 * Anybody may let many programs name one file, or a file of terabytes. So:
 *
 *  - The checksum of a file is kept by its identity (device, inode, ctime, size).
 *  - Holes are not read. Their zeros cost a logarithm of their size.
 *  - At most FILECRC_DATA bytes of a file are read, at most FILECRC_BURST at once for one owner,
 *    and FILECRC_RATE more each second. It is the owner of the process that needs the name.
 *
 * Each process has one store, of a few KiB.
 */
#ifndef COMMON_NAMES_ELF_FILECRC_H
#define COMMON_NAMES_ELF_FILECRC_H

#include "common/names/elf/symfile.h"

#define FILECRC_DATA (256u << 20)
#define FILECRC_BURST (1u << 30)
#define FILECRC_RATE (16u << 20)

/* 0; SYMFILE_TOO_LARGE: it has too much data, or its owner had too much read; -errno. */
int filecrc_of(const struct symfile *f, uint64_t owner, uint32_t *ret);

#endif
