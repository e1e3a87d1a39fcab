/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the facts that a libjvm exports about its own data (vmStructs.hpp): the offsets of fields,
 * the addresses of static fields, and the sizes of types. The tables gHotSpotVMStructs and
 * gHotSpotVMTypes are made for debuggers. In the file these contain names and addresses, but mostly
 * no offsets: when the library is loaded, its code stores each offset with one instruction. So this
 * reader takes the offsets from that code.
 */
#ifndef COMMON_NAMES_RUNTIME_HOTSPOT_EXPORTS_H
#define COMMON_NAMES_RUNTIME_HOTSPOT_EXPORTS_H

#include "common/names/elf/elfview.h"

#define EXPORTS_FIELDS 4096 /* of a build, at most */
#define EXPORTS_NONE UINT64_MAX

/* A field that is wanted. */
struct exports_field {
	const char *type, *field;
	/* Set by exports_read: the offset, or the address of a static field; EXPORTS_NONE if there
	 * is none. */
	uint64_t value;
	char kind[24]; /* type of the field, truncated */
};

/* A type whose size is wanted. */
struct exports_type {
	const char *type;
	uint64_t size; /* set by exports_read; EXPORTS_NONE if there is none */
};

/* Fills the values of the fields and the sizes of the types. Returns 0; SYMFILE_NONE: the file has
 * no such tables, or malformed ones; -ENOMEM; or -errno. */
int exports_read(struct elfview *im, struct exports_field *fields, size_t field_count,
		 struct exports_type *types, size_t type_count);

#endif
