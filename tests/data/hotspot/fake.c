/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A library that says of itself what a libjvm says (vmStructs.hpp), in the layout of JDK 17, and
 * nothing else. make.sh makes seeds of it. FAKE_CODE: code stores the offsets, as in real builds;
 * else the file has them. FAKE_OFFSET: what is added to each offset. FAKE_MAJOR: its version.
 */
#include <stddef.h>
#include <stdint.h>

struct field {
	const char *type, *name, *kind;
	int32_t is_static;
	uint64_t offset;
	const void *address;
};

struct type {
	const char *name, *super;
	int32_t flags[3];
	uint64_t size;
};

#define EXPORTED __attribute__((visibility("default")))
#ifndef FAKE_OFFSET
#define FAKE_OFFSET 0
#endif
#ifndef FAKE_MAJOR
#define FAKE_MAJOR 17
#endif
#ifndef FAKE_HEAPS
#define FAKE_HEAPS \
	{ \
		0 \
	}
#endif

uint64_t fake_heaps[64] = FAKE_HEAPS;
static int32_t major = FAKE_MAJOR;

#define FIELDS(F) \
	F("GrowableArrayBase", "_len", "int", 4) \
	F("GrowableArray<int>", "_data", "int*", 8) \
	F("CodeHeap", "_memory", "VirtualSpace", 8) \
	F("CodeHeap", "_segmap", "VirtualSpace", 112) \
	F("CodeHeap", "_log2_segment_size", "int", 256) \
	F("VirtualSpace", "_low_boundary", "char*", 8) \
	F("VirtualSpace", "_low", "char*", 24) \
	F("VirtualSpace", "_high", "char*", 32) \
	F("CodeBlob", "_name", "const char*", 96) \
	F("CodeBlob", "_code_begin", "address", 32) \
	F("CodeBlob", "_frame_complete_offset", "int", 20) \
	F("CodeBlob", "_frame_size", "int", 28) \
	F("CompiledMethod", "_method", "Method*", 112) \
	F("nmethod", "_orig_pc_offset", "int", 300) \
	F("CompiledMethod", "_deopt_handler_begin", "address", 128) \
	F("CompiledMethod", "_deopt_mh_handler_begin", "address", 136) \
	F("nmethod", "_scopes_pcs_offset", "int", 268) \
	F("nmethod", "_dependencies_offset", "int", 272) \
	F("CompiledMethod", "_scopes_data_begin", "address", 120) \
	F("nmethod", "_metadata_offset", "int", 260) \
	F("Method", "_constMethod", "ConstMethod*", 8) \
	F("ConstMethod", "_constants", "ConstantPool*", 8) \
	F("ConstMethod", "_constMethod_size", "int", 24) \
	F("ConstMethod", "_code_size", "u2", 32) \
	F("ConstMethod", "_name_index", "u2", 34) \
	F("ConstMethod", "_signature_index", "u2", 36) \
	F("ConstMethod", "_flags", "u2", 28) \
	F("ConstantPool", "_pool_holder", "InstanceKlass*", 24) \
	F("ConstantPool", "_source_file_name_index", "u2", 54) \
	F("Klass", "_name", "Symbol*", 24) \
	F("Symbol", "_length", "unsigned short", 4) \
	F("Symbol", "_body", "u1", 6)

static struct field fields[] = {
	{ "CodeCache", "_heaps", "GrowableArray<CodeHeap*>*", 1, 0, fake_heaps },
	{ "Abstract_VM_Version", "_vm_major_version", "int", 1, 0, &major },
#ifdef FAKE_CODE
#define F(owner, field_name, its_kind, at) { owner, field_name, its_kind, 0, 0, NULL },
#else
#define F(owner, field_name, its_kind, at) \
	{ owner, field_name, its_kind, 0, (at) + (uint64_t)FAKE_OFFSET, NULL },
#endif
	FIELDS(F)
#undef F
		{ NULL, NULL, NULL, 0, 0, NULL }
};

static struct type types[] = {
	{ "HeapBlock", NULL, { 0 }, 16 },
	{ "ConstMethod", "MetaspaceObj", { 0 }, 48 },
	{ "ConstantPool", "Metadata", { 0 }, 72 },
	{ "nmethod", "CompiledMethod", { 0 }, 352 },
	{ NULL, NULL, { 0 }, 0 },
};

EXPORTED struct field *gHotSpotVMStructs = fields;
EXPORTED struct type *gHotSpotVMTypes = types;

__attribute__((constructor)) static void store_offsets(void)
{
	volatile struct field *f = fields;

	/* All builds have initializers. */
	(f++)->address = fake_heaps;
	(f++)->address = &major;
#ifdef FAKE_CODE
#define F(owner, field_name, its_kind, at) (f++)->offset = (at) + (uint64_t)FAKE_OFFSET;
	FIELDS(F)
#undef F
#endif
}

EXPORTED int JNI_CreateJavaVM(void **vm, void **env, void *args)
{
	(void)vm, (void)env, (void)args;
	return -1;
}
