/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cost of an epoch's definitions to their receiver, prof-symd: upper bounds of the bytes in its
 * tables. prof-bpf adds them up, and begins a new epoch before they reach prof-symd's ceiling. So
 * prof-symd has room for every definition. A unit test of prof-symd checks these numbers.
 */
#ifndef COMMON_WIRE_EPOCH_H
#define COMMON_WIRE_EPOCH_H

#define EPOCH_PROCESS 320
#define EPOCH_THREAD 224 /* including its title */
#define EPOCH_FILE 768	 /* including its path */
#define EPOCH_FRAME 192
#define EPOCH_EXTRA 192	 /* a cgroup, mapping and the like, including its texts */
#define EPOCH_MAPPING 64 /* bytes of the message */
#define EPOCH_STACK 128
#define EPOCH_NUMBER 16	   /* for each frame of a stack */
#define EPOCH_FUNCTION 256 /* of the kernel, including its texts */

/* Beyond this many eighths of the ceiling a new epoch begins. The rest has room for one sample. */
#define EPOCH_EIGHTHS 7u

#endif
