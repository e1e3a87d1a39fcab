/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cost of the definitions of one epoch to their receiver, prof-symd: bytes of its tables, at
 * the most. prof-bpf adds these up, and begins a new epoch before they reach prof-symd's ceiling.
 * So prof-symd has room for every definition. A unit test of prof-symd checks these numbers.
 */
#ifndef COMMON_WIRE_EPOCH_H
#define COMMON_WIRE_EPOCH_H

#define EPOCH_PROCESS 320
#define EPOCH_THREAD 224 /* and its title */
#define EPOCH_FILE 768	 /* and its path */
#define EPOCH_FRAME 192
#define EPOCH_EXTRA 192	 /* a cgroup, mapping and the like, and its texts */
#define EPOCH_MAPPING 64 /* bytes of the message */
#define EPOCH_STACK 128
#define EPOCH_NUMBER 16	   /* each frame of a stack */
#define EPOCH_FUNCTION 256 /* of the kernel, and its texts */

/* Beyond this many eighths of the ceiling a new epoch begins. The rest has room for one sample. */
#define EPOCH_EIGHTHS 7u

#endif
