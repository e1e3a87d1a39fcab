/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HotSpot, the JVM of OpenJDK 8 and later, as a runtime (runtime.h):
 *
 *  - hotspot.c   recognizes a build and describes it
 *  - exports.c   reads what the build exports about its own data
 *  - name.c      names methods, with their lines
 *  - java_text.c writes names as Java does
 */
#ifndef COMMON_NAMES_RUNTIME_HOTSPOT_HOTSPOT_H
#define COMMON_NAMES_RUNTIME_HOTSPOT_HOTSPOT_H

#include "bpf/hotspot/hotspot.h"
#include "common/names/runtime/runtime.h"

/* The facts about a build that naming needs: offsets and sizes in bytes. */
struct hotspot_naming {
	uint16_t major;
	uint16_t method_const, method_bytes;
	/* Of a ConstMethod. lines: the bit of its flags which tells that lines follow its
	 * bytecode. */
	uint16_t const_bytes, const_pool, const_size, const_code_size, const_name, const_signature;
	uint16_t const_flags, lines;
	uint16_t pool_bytes, pool_holder;
	uint16_t klass_name;
	uint16_t source;	  /* index of the source's name: in a ConstantPool, or */
	uint16_t source_in_class; /* in an InstanceKlass, if this is not 0 */
	uint16_t symbol_length, symbol_text;
};
static_assert(sizeof(struct hotspot_naming) <= RUNTIME_OWN_NAMING, "it fits");

/* Returns which parts of a method the kernel program copies, so that it can be named. */
struct runtime_copy hotspot_copy(const struct hotspot_naming *n);

/* Implements is_sane of struct runtime_ops. */
bool hotspot_is_sane(const struct runtime_build *b);
/* Implements name of struct runtime_ops. */
int hotspot_name(const struct runtime_build *b, uint64_t address, uint64_t check,
		 struct object_memory *m, struct runtime_object *ret);

/* Appends a class's name as Java writes it: "java/util/Map" as java.util.Map. Omits the part of a
 * hidden class's name that differs in each run: "A$$Lambda+0x0000000800c03000" is A$$Lambda. */
void hotspot_class_text(struct str name, struct runtime_text *ret);
/* Appends the parameters of a method's descriptor: "(I[Ljava/lang/String;)V" as
 * (int, java.lang.String[]). */
void hotspot_parameters(struct str descriptor, struct runtime_text *ret);
/* Appends the modified UTF-8 of a class file as UTF-8. */
void hotspot_append(struct str text, struct runtime_text *ret);
/* Adds the lines of a method's compressed table (CompressedLineNumberReadStream). zeros: whether
 * compressed numbers may contain zero bytes. *ret_first is the line of the first entry. Returns 0
 * or -ENOMEM. */
int hotspot_lines(struct span table, bool zeros, uint32_t positions, struct runtime_object *ret);

#endif
