/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The frame of a method in a GraalVM native image. Its code has no call frame information, but all
 * methods begin and end alike:
 *
 * * push rbp                some methods only
 * * mov rbp, rsp            if the image keeps frame pointers
 * * sub rsp, N
 * * ...                     RSP stays as it is
 * * add rsp, N
 * * pop rbp                 if it was pushed
 * * ret                     or jmp
 * * ...                     the slow paths, with the frame
 *
 * A few keep the frame's address in RBP and move RSP. These go on with `mov rbp, rsp`, and end with
 * `lea rsp, [rbp + N]`.
 *
 * Methods begin at multiples of 16, and traps fill the space between them. No register is
 * callee-saved, so a method without the push loses its caller's RBP.
 *
 * Some of the code is reached only through tables: handlers of exceptions. It also has the frame.
 *
 * Source: GraalVM's substratevm, SubstrateAMD64Backend.java (SubstrateAMD64FrameContext). Pure.
 */
#ifndef COMMON_SVM_SVMCODE_H
#define COMMON_SVM_SVMCODE_H

#include <stdbool.h>
#include <stdint.h>
#include "common/base/bytes/span.h"

#define SVMCODE_HEAP ".svm_heap" /* a section that all native images have */
#define SVMCODE_ALIGNMENT 16u
#define SVMCODE_HEAD 11u /* bytes up to the end of the longest `sub` */

struct svmcode_frame {
	uint32_t size;	 /* N, in bytes */
	uint8_t pushed;	 /* offset of the instruction after the push; 0: none */
	uint8_t begins;	 /* offset of the instruction after the `sub` */
	uint8_t based;	 /* offset of the instruction after the `mov` that follows it; 0: none */
	uint8_t add_len; /* bytes of the `add` or `lea`, and the bytes */
	uint8_t add[7];
};

/* Whether a method begins with the code, and its frame. */
bool svmcode_begins(struct span code, struct svmcode_frame *ret);

/* A place where a method ends. Offsets in the code. */
struct svmcode_exit {
	uint32_t popped; /* of the instruction after `add` or `lea` */
	uint32_t ret;	 /* of the ret or jmp, when RBP is the caller's again */
	uint32_t end;	 /* of the instruction after it */
};

/* Finds the first end of the method from an offset on. Returns false if there is none. */
bool svmcode_exit(struct span code, const struct svmcode_frame *f, uint32_t from,
		  struct svmcode_exit *ret);
/* Whether the byte is one that fills the space between methods. */
bool svmcode_is_trap(uint8_t byte);
/* Returns the offset from which on traps pad the code up to the next multiple of 16, or code.len if
 * there are none. The code begins at a multiple of 16. */
uint32_t svmcode_padding(struct span code);

#endif
