/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file contains HotSpot if it exports gHotSpotVMStructs and JNI_CreateJavaVM. Nearly all offsets
 * are those that it exports. Only these depend on the version: whether an interpreter's frame has a
 * word for the class (since 9), how numbers are compressed (since 20), and the flags of fields in a
 * class's table (since 28).
 */
#include "common/names/runtime/hotspot/hotspot.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "common/names/runtime/hotspot/exports.h"

#define OLDEST 8
#define METHOD_BYTES 64
#define SLOTS_8 7 /* words from RBP down to the address of the bytecode */
#define SLOTS_9 8
#define CONT_ENTRY_BYTES_21 64

enum field {
	HEAPS,
	HEAP,
	ARRAY_LENGTH,
	ARRAY_LENGTH_15,
	ARRAY_DATA,
	HEAP_MEMORY,
	HEAP_SEGMENTS,
	HEAP_SHIFT,
	SPACE_START,
	SPACE_LOW,
	SPACE_END,
	BLOB_NAME,
	BLOB_CODE_BEGIN,
	BLOB_CODE_OFFSET,
	BLOB_COMPLETE,
	BLOB_FRAME,
	BLOB_MUTABLE,
	BLOB_RELOCATION,
	BLOB_DATA,
	NM_METHOD,
	NM_METHOD_9,
	NM_ORIG_PC,
	NM_DEOPT_8,
	NM_DEOPT_MH_8,
	NM_DEOPT_9,
	NM_DEOPT_MH_9,
	NM_DEOPT_23,
	NM_DEOPT_MH_23,
	NM_DEOPT_26,
	NM_IMMUTABLE,
	NM_PCS,
	NM_DEPENDENCIES,
	NM_SCOPES,
	NM_SCOPES_9,
	NM_METADATA,
	NM_LEVEL,
	METHOD_CONST,
	CONST_POOL,
	CONST_SIZE,
	CONST_CODE_SIZE,
	CONST_NAME,
	CONST_SIGNATURE,
	CONST_FLAGS,
	CONST_FLAGS_21,
	POOL_HOLDER,
	POOL_SOURCE,
	CLASS_SOURCE,
	CLASS_POOL,
	KLASS_NAME,
	SYMBOL_LENGTH,
	SYMBOL_BODY,
	CONT_ENTRY,
	OBJECT_CLASS,
	OBJECT_CLASS_16,
	CLASS_SUPER,
	CLASS_LAYOUT,
	CLASS_FIELDS,
	CLASS_FIELDS_20,
	CLASS_FIELD_COUNT,
	THREAD_OBJECT,
	THREAD_VIRTUAL,
	OOP_BASE,
	OOP_BASE_21,
	OOP_BASE_12,
	OOP_SHIFT,
	OOP_SHIFT_21,
	OOP_SHIFT_12,
	CLASS_BASE,
	CLASS_BASE_21,
	CLASS_BASE_12,
	CLASS_SHIFT,
	CLASS_SHIFT_21,
	CLASS_SHIFT_12,
	CALL_RETURN,
	VERSION,
	FIELDS,
};

static const struct exports_field wanted[FIELDS] = {
	[HEAPS] = { "CodeCache", "_heaps" },
	[HEAP] = { "CodeCache", "_heap" },
	[ARRAY_LENGTH] = { "GrowableArrayBase", "_len" },
	[ARRAY_LENGTH_15] = { "GenericGrowableArray", "_len" },
	[ARRAY_DATA] = { "GrowableArray<int>", "_data" },
	[HEAP_MEMORY] = { "CodeHeap", "_memory" },
	[HEAP_SEGMENTS] = { "CodeHeap", "_segmap" },
	[HEAP_SHIFT] = { "CodeHeap", "_log2_segment_size" },
	[SPACE_START] = { "VirtualSpace", "_low_boundary" },
	[SPACE_LOW] = { "VirtualSpace", "_low" },
	[SPACE_END] = { "VirtualSpace", "_high" },
	[BLOB_NAME] = { "CodeBlob", "_name" },
	[BLOB_CODE_BEGIN] = { "CodeBlob", "_code_begin" },
	[BLOB_CODE_OFFSET] = { "CodeBlob", "_code_offset" },
	[BLOB_COMPLETE] = { "CodeBlob", "_frame_complete_offset" },
	[BLOB_FRAME] = { "CodeBlob", "_frame_size" },
	[BLOB_MUTABLE] = { "CodeBlob", "_mutable_data" },
	[BLOB_RELOCATION] = { "CodeBlob", "_relocation_size" },
	[BLOB_DATA] = { "CodeBlob", "_data_offset" },
	[NM_METHOD] = { "nmethod", "_method" },
	[NM_METHOD_9] = { "CompiledMethod", "_method" },
	[NM_ORIG_PC] = { "nmethod", "_orig_pc_offset" },
	[NM_DEOPT_8] = { "nmethod", "_deoptimize_offset" },
	[NM_DEOPT_MH_8] = { "nmethod", "_deoptimize_mh_offset" },
	[NM_DEOPT_9] = { "CompiledMethod", "_deopt_handler_begin" },
	[NM_DEOPT_MH_9] = { "CompiledMethod", "_deopt_mh_handler_begin" },
	[NM_DEOPT_23] = { "nmethod", "_deopt_handler_offset" },
	[NM_DEOPT_MH_23] = { "nmethod", "_deopt_mh_handler_offset" },
	[NM_DEOPT_26] = { "nmethod", "_deopt_handler_entry_offset" },
	[NM_IMMUTABLE] = { "nmethod", "_immutable_data" },
	[NM_PCS] = { "nmethod", "_scopes_pcs_offset" },
	[NM_DEPENDENCIES] = { "nmethod", "_dependencies_offset" },
	[NM_SCOPES] = { "nmethod", "_scopes_data_offset" },
	[NM_SCOPES_9] = { "CompiledMethod", "_scopes_data_begin" },
	[NM_METADATA] = { "nmethod", "_metadata_offset" },
	[NM_LEVEL] = { "nmethod", "_comp_level" },
	[METHOD_CONST] = { "Method", "_constMethod" },
	[CONST_POOL] = { "ConstMethod", "_constants" },
	[CONST_SIZE] = { "ConstMethod", "_constMethod_size" },
	[CONST_CODE_SIZE] = { "ConstMethod", "_code_size" },
	[CONST_NAME] = { "ConstMethod", "_name_index" },
	[CONST_SIGNATURE] = { "ConstMethod", "_signature_index" },
	[CONST_FLAGS] = { "ConstMethod", "_flags" },
	[CONST_FLAGS_21] = { "ConstMethod", "_flags._flags" },
	[POOL_HOLDER] = { "ConstantPool", "_pool_holder" },
	[POOL_SOURCE] = { "ConstantPool", "_source_file_name_index" },
	[CLASS_SOURCE] = { "InstanceKlass", "_source_file_name_index" },
	[CLASS_POOL] = { "InstanceKlass", "_constants" },
	[KLASS_NAME] = { "Klass", "_name" },
	[SYMBOL_LENGTH] = { "Symbol", "_length" },
	[SYMBOL_BODY] = { "Symbol", "_body" },
	[CONT_ENTRY] = { "JavaThread", "_cont_entry" },
	[OBJECT_CLASS] = { "vmClasses",
			   "_klasses[static_cast<int>(vmClassID::Object_klass_knum)]" },
	[OBJECT_CLASS_16] = { "SystemDictionary",
			      "_well_known_klasses[SystemDictionary::Object_klass_knum]" },
	[CLASS_FIELDS_20] = { "InstanceKlass", "_fields" },
	[CLASS_FIELD_COUNT] = { "InstanceKlass", "_java_fields_count" },
	[THREAD_OBJECT] = { "JavaThread", "_threadObj" },
	[THREAD_VIRTUAL] = { "JavaThread", "_vthread" },
	[OOP_BASE_12] = { "Universe", "_narrow_oop._base" },
	[OOP_SHIFT_12] = { "Universe", "_narrow_oop._shift" },
	[CLASS_BASE_12] = { "Universe", "_narrow_klass._base" },
	[CLASS_SHIFT_12] = { "Universe", "_narrow_klass._shift" },
	[CLASS_SUPER] = { "Klass", "_super" },
	[CLASS_LAYOUT] = { "Klass", "_layout_helper" },
	[CLASS_FIELDS] = { "InstanceKlass", "_fieldinfo_stream" },
	[OOP_BASE] = { "CompressedOops", "_base" },
	[OOP_BASE_21] = { "CompressedOops", "_narrow_oop._base" },
	[OOP_SHIFT] = { "CompressedOops", "_shift" },
	[OOP_SHIFT_21] = { "CompressedOops", "_narrow_oop._shift" },
	[CLASS_BASE] = { "CompressedKlassPointers", "_base" },
	[CLASS_BASE_21] = { "CompressedKlassPointers", "_narrow_klass._base" },
	[CLASS_SHIFT] = { "CompressedKlassPointers", "_shift" },
	[CLASS_SHIFT_21] = { "CompressedKlassPointers", "_narrow_klass._shift" },
	[CALL_RETURN] = { "StubRoutines", "_call_stub_return_address" },
	[VERSION] = { "Abstract_VM_Version", "_vm_major_version" },
};

enum type { BLOCK_TYPE, CONST_TYPE, POOL_TYPE, CONT_ENTRY_TYPE, TYPES };

/* The exports of a build. `missing` is set if a required field is missing. */
struct exports {
	struct exports_field f[FIELDS];
	struct exports_type t[TYPES];
	bool missing;
};

static bool has(const struct exports *e, enum field f)
{
	return e->f[f].value < UINT16_MAX;
}

/* Returns an offset that is required. */
static uint16_t need(struct exports *e, enum field f)
{
	if (!has(e, f)) {
		e->missing = true;
		return 0;
	}
	return (uint16_t)e->f[f].value;
}

static uint16_t size_of(struct exports *e, enum type t)
{
	if (e->t[t].size > 4096) {
		e->missing = true;
		return 0;
	}
	return (uint16_t)e->t[t].size;
}

static bool is_short(const struct exports *e, enum field f)
{
	return strstr(e->f[f].kind, "16") || strcmp(e->f[f].kind, "u2") == 0;
}

/* Returns the offset in a CodeBlob of a required word, and extends blob_bytes so that the walk
 * reads it. */
static uint16_t of_block(struct exports *e, struct hotspot_config *c, enum field f)
{
	const uint16_t offset = need(e, f), at = (uint16_t)(c->block + offset);

	if (at + 8u > c->blob_bytes)
		c->blob_bytes = (uint16_t)((at + 15u) & ~7u);
	return at;
}

/* Returns a required offset that is 0 in no build. It is 0 if the offsets were not found. */
static uint16_t need_more(struct exports *e, enum field f)
{
	const uint16_t offset = need(e, f);

	e->missing |= !offset;
	return offset;
}

static void describe_heaps(struct exports *e, struct hotspot_config *c)
{
	const uint16_t memory = need(e, HEAP_MEMORY);

	if (e->f[HEAPS].value != EXPORTS_NONE) {
		c->array_length = need(e, has(e, ARRAY_LENGTH) ? ARRAY_LENGTH : ARRAY_LENGTH_15);
		c->array_data = need(e, ARRAY_DATA);
	} else {
		c->flags |= HOTSPOT_ONE_HEAP;
		e->missing |= e->f[HEAP].value == EXPORTS_NONE;
	}
	c->heap_start = memory + need(e, SPACE_START);
	c->heap_end = memory + need(e, SPACE_END);
	c->heap_map = need_more(e, HEAP_SEGMENTS) + need(e, SPACE_LOW);
	c->heap_shift = need_more(e, HEAP_SHIFT);
	c->block = size_of(e, BLOCK_TYPE);
}

/* How a frame is deoptimized. */
static void describe_deopt(struct exports *e, struct hotspot_config *c)
{
	static const enum field forms[][2] = { { NM_DEOPT_9, NM_DEOPT_MH_9 },
					       { NM_DEOPT_23, NM_DEOPT_MH_23 },
					       { NM_DEOPT_26, FIELDS },
					       { NM_DEOPT_8, NM_DEOPT_MH_8 } };

	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		if (!has(e, forms[i][0]))
			continue;
		c->deopt = of_block(e, c, forms[i][0]);
		if (forms[i][1] != FIELDS && has(e, forms[i][1]))
			c->deopt_mh = of_block(e, c, forms[i][1]);
		c->flags |= i ? HOTSPOT_DEOPT_OFFSET : 0;
		break;
	}
	c->orig_pc = of_block(e, c, NM_ORIG_PC);
	e->missing |= !c->deopt;
}

static void describe_blob(struct exports *e, struct hotspot_config *c)
{
	c->blob_name = of_block(e, c, BLOB_NAME);
	c->blob_complete = of_block(e, c, BLOB_COMPLETE);
	c->blob_frame = of_block(e, c, BLOB_FRAME);
	c->flags |= is_short(e, BLOB_COMPLETE) ? HOTSPOT_SHORT_FRAME : 0;
	if (has(e, BLOB_CODE_BEGIN)) {
		c->blob_code = of_block(e, c, BLOB_CODE_BEGIN);
	} else {
		c->blob_code = of_block(e, c, BLOB_CODE_OFFSET);
		c->flags |= HOTSPOT_CODE_OFFSET;
	}
	c->method = of_block(e, c, has(e, NM_METHOD_9) ? NM_METHOD_9 : NM_METHOD);
	c->pcs = of_block(e, c, NM_PCS);
	if (has(e, NM_IMMUTABLE)) {
		c->immutable = of_block(e, c, NM_IMMUTABLE);
		c->pcs_end = c->data = of_block(e, c, NM_SCOPES);
	} else {
		c->pcs_end = of_block(e, c, NM_DEPENDENCIES);
		c->data = of_block(e, c, has(e, NM_SCOPES_9) ? NM_SCOPES_9 : NM_SCOPES);
		c->flags |= has(e, NM_SCOPES_9) ? HOTSPOT_DATA_ADDRESS : 0;
	}
	if (has(e, BLOB_MUTABLE)) {
		c->mutable_data = of_block(e, c, BLOB_MUTABLE);
		c->metadata = of_block(e, c, BLOB_RELOCATION);
	} else {
		c->metadata = of_block(e, c, NM_METADATA);
		if (is_short(e, NM_METADATA)) {
			c->flags |= HOTSPOT_METADATA_IN_DATA;
			c->mutable_data = of_block(e, c, BLOB_DATA);
		}
	}
	describe_deopt(e, c);
	if (has(e, NM_LEVEL))
		c->level = of_block(e, c, NM_LEVEL);
	e->missing |= c->blob_bytes > HOTSPOT_BLOB_BYTES;
}

static void describe_method(struct exports *e, struct hotspot_config *c, struct hotspot_naming *n)
{
	n->method_const = c->method_const = need_more(e, METHOD_CONST);
	/* A Method is larger than this. The same number of bytes is read of a stub's name. */
	n->method_bytes = METHOD_BYTES;
	n->const_bytes = c->const_bytes = size_of(e, CONST_TYPE);
	n->const_pool = c->const_pool = need_more(e, CONST_POOL);
	n->const_size = c->const_size = need(e, CONST_SIZE);
	n->const_code_size = c->const_code_size = need(e, CONST_CODE_SIZE);
	n->const_name = c->const_name = need(e, CONST_NAME);
	n->const_signature = c->const_signature = need(e, CONST_SIGNATURE);
	n->const_flags = need(e, has(e, CONST_FLAGS_21) ? CONST_FLAGS_21 : CONST_FLAGS);
	n->lines = 1; /* _has_linenumber_table */
	n->pool_bytes = size_of(e, POOL_TYPE);
	n->pool_holder = need_more(e, POOL_HOLDER);
	n->klass_name = need_more(e, KLASS_NAME);
	if (has(e, POOL_SOURCE)) {
		n->source = need(e, POOL_SOURCE);
	} else {
		n->source = need(e, CLASS_SOURCE);
		n->source_in_class = need(e, CLASS_POOL);
	}
	n->symbol_length = need(e, SYMBOL_LENGTH);
	n->symbol_text = need(e, SYMBOL_BODY);
}

/* Returns the version of Java. Up to JDK 8, HotSpot's own version was a different one. */
static unsigned find_major(const struct elfview *im, const struct exports *e)
{
	int32_t major = 0;

	if (e->f[HEAPS].value == EXPORTS_NONE)
		return 8;
	if (e->f[VERSION].value == EXPORTS_NONE ||
	    elfview_read(im, e->f[VERSION].value, &major, sizeof(major)) != 0)
		return 0;
	return major > 0 && major < 256 ? (unsigned)major : 0;
}

/* Returns the relative address of the first of these variables that the build has; 0: none. */
static uint64_t variable(const struct exports *e, const enum field *names, uint64_t bias)
{
	for (; *names != FIELDS; names++)
		if (e->f[*names].value != EXPORTS_NONE)
			return e->f[*names].value - bias;
	return 0;
}

/* Describes Java's objects. Before JDK 21 classes describe their fields in another way. */
static void describe_objects(struct exports *e, struct hotspot_config *c, unsigned major,
			     uint64_t bias)
{
	static const enum field object[] = { OBJECT_CLASS, OBJECT_CLASS_16, FIELDS },
				base[] = { OOP_BASE, OOP_BASE_21, OOP_BASE_12, FIELDS },
				shift[] = { OOP_SHIFT, OOP_SHIFT_21, OOP_SHIFT_12, FIELDS },
				class_base[] = { CLASS_BASE, CLASS_BASE_21, CLASS_BASE_12, FIELDS },
				class_shift[] = { CLASS_SHIFT, CLASS_SHIFT_21, CLASS_SHIFT_12,
						  FIELDS };

	c->object_class = variable(e, object, bias);
	c->oop_base = variable(e, base, bias);
	c->oop_shift = variable(e, shift, bias);
	c->class_base = variable(e, class_base, bias);
	c->class_shift = variable(e, class_shift, bias);
	if (!c->object_class || !c->oop_base || !c->oop_shift || !c->class_base ||
	    !c->class_shift || !has(e, CLASS_SUPER) || !has(e, CLASS_LAYOUT) || !has(e, CLASS_POOL))
		return;
	c->super = need_more(e, CLASS_SUPER);
	c->layout = need_more(e, CLASS_LAYOUT);
	c->class_pool = need_more(e, CLASS_POOL);
	c->pool_bytes = size_of(e, POOL_TYPE);
	c->symbol_length = need(e, SYMBOL_LENGTH);
	c->symbol_text = need(e, SYMBOL_BODY);
	c->fields_shift = major >= 28 ? 3 : 0;
	if (has(e, CLASS_FIELDS)) {
		c->fields = need_more(e, CLASS_FIELDS);
	} else if (has(e, CLASS_FIELDS_20) && has(e, CLASS_FIELD_COUNT)) {
		c->fields = need_more(e, CLASS_FIELDS_20);
		c->fields_count = need_more(e, CLASS_FIELD_COUNT);
		c->flags |= HOTSPOT_FIXED_FIELDS;
	}
}

/* Describes threads, including virtual ones. */
static void describe_threads(struct exports *e, struct hotspot_config *c, unsigned major)
{
	if (has(e, CONT_ENTRY) && e->t[CONT_ENTRY_TYPE].size != EXPORTS_NONE) {
		c->cont_entry = need(e, CONT_ENTRY);
		c->cont_entry_bytes = size_of(e, CONT_ENTRY_TYPE);
	} else if (major == 21) {
		c->cont_entry_bytes = CONT_ENTRY_BYTES_21;
	}
	if (!has(e, THREAD_OBJECT))
		return;
	c->thread = need(e, THREAD_OBJECT);
	if (strstr(e->f[THREAD_OBJECT].kind, "Handle"))
		c->flags |= HOTSPOT_THREAD_HANDLES;
	if (has(e, THREAD_VIRTUAL))
		c->thread_virtual = need(e, THREAD_VIRTUAL);
}

/* Fills the config and the naming. Returns false if the build lacks something. */
static bool fill(const struct elfview *im, struct exports *e, uint64_t bias,
		 struct runtime_build *ret)
{
	struct hotspot_config c = { 0 };
	struct hotspot_naming n = { .major = (uint16_t)find_major(im, e) };

	ret->config.version = (uint32_t)n.major << 16;
	describe_heaps(e, &c);
	describe_blob(e, &c);
	describe_method(e, &c, &n);
	c.heaps = e->f[c.flags & HOTSPOT_ONE_HEAP ? HEAP : HEAPS].value - bias;
	if (e->f[CALL_RETURN].value != EXPORTS_NONE)
		c.call_return = e->f[CALL_RETURN].value - bias;
	c.frame_bcp = n.major >= 9 ? SLOTS_9 : SLOTS_8;
	describe_objects(e, &c, n.major, bias);
	describe_threads(e, &c, n.major);
	c.flags |= n.major >= 20 ? HOTSPOT_NO_ZEROS : 0;
	ret->config.takes = RUNTIME_TAKES_GENERATED;
	ret->config.copy = hotspot_copy(&n);
	memcpy(ret->config.own, &c, sizeof(c));
	memcpy(ret->naming, &n, sizeof(n));
	return !e->missing && n.major >= OLDEST && hotspot_is_sane(ret);
}

/* Whether the virtual machine is Zero, which interprets in C++ and has frames of its own. It
 * exports the same descriptions. */
static bool is_zero(const struct elfview *im)
{
	static const char name[] = "-Bit Zero VM (";
	uint64_t at;

	return elfview_find(im, ".rodata",
			    (struct span){ .data = (const uint8_t *)name, .len = strlen(name) }, 0,
			    &at) == 0;
}

static int describe(struct elfview *im, struct runtime_build *ret)
{
	struct exports e = { .t = { { "HeapBlock", 0 },
				    { "ConstMethod", 0 },
				    { "ConstantPool", 0 },
				    { "ContinuationEntry", 0 } } };
	struct elfview_symbol structs, code;
	uint64_t offset, left;

	if (elfview_exported(im, "gHotSpotVMStructs", &structs) != 0 ||
	    elfview_exported(im, "JNI_CreateJavaVM", &code) != 0)
		return RUNTIME_NOT_MINE;

	const bool zero = is_zero(im);
	const char *name = zero ? "HotSpot Zero" : "HotSpot";

	snprintf(ret->name, sizeof(ret->name), "%s", name);
	memcpy(e.f, wanted, sizeof(wanted));

	int r = exports_read(im, e.f, FIELDS, e.t, TYPES);

	if (r == -ENOMEM)
		return r;
	if (r || symfile_offset(im->file, code.value, &offset, &left) != 0)
		return 0;

	const unsigned major = find_major(im, &e);

	if (major)
		snprintf(ret->name, sizeof(ret->name), "%s of JDK %u", name, major);
	ret->known = !zero && fill(im, &e, code.value - offset, ret);
	return 0;
}

static int print(const struct runtime_build *b, struct buf *ret)
{
	struct hotspot_config c;
	struct hotspot_naming n;

	memcpy(&c, b->config.own, sizeof(c));
	memcpy(&n, b->naming, sizeof(n));

	int r = buf_printf(ret,
			   "heaps 0x%" PRIx64 " call_return 0x%" PRIx64
			   " flags %u array length %u data %u\n"
			   "heap start %u end %u map %u shift %u block %u\n"
			   "blob bytes %u name %u code %u complete %u frame %u\n"
			   "nmethod method %u deopt %u deopt_mh %u orig_pc %u immutable %u pcs %u "
			   "end %u data %u metadata %u mutable %u level %u\n",
			   (uint64_t)c.heaps, (uint64_t)c.call_return, c.flags, c.array_length,
			   c.array_data, c.heap_start, c.heap_end, c.heap_map, c.heap_shift,
			   c.block, c.blob_bytes, c.blob_name, c.blob_code, c.blob_complete,
			   c.blob_frame, c.method, c.deopt, c.deopt_mh, c.orig_pc, c.immutable,
			   c.pcs, c.pcs_end, c.data, c.metadata, c.mutable_data, c.level);

	return r ? r
		 : buf_printf(ret,
			      "thread cont_entry %u bytes %u\n"
			      "class super %u layout %u fields %u shift %u object 0x%" PRIx64
			      " base 0x%" PRIx64 " shift 0x%" PRIx64 " oop base 0x%" PRIx64
			      " shift 0x%" PRIx64 "\n"
			      "method const %u const bytes %u pool %u size %u code_size %u name %u "
			      "signature %u flags %u frame_bcp %u\n"
			      "pool bytes %u holder %u class name %u source %u %u "
			      "symbol length %u text %u\n",
			      c.cont_entry, c.cont_entry_bytes, c.super, c.layout, c.fields,
			      c.fields_shift, (uint64_t)c.object_class, (uint64_t)c.class_base,
			      (uint64_t)c.class_shift, (uint64_t)c.oop_base, (uint64_t)c.oop_shift,
			      n.method_const, n.const_bytes, n.const_pool, n.const_size,
			      n.const_code_size, n.const_name, n.const_signature, n.const_flags,
			      c.frame_bcp, n.pool_bytes, n.pool_holder, n.klass_name, n.source,
			      n.source_in_class, n.symbol_length, n.symbol_text);
}

const struct runtime_ops hotspot_runtime = {
	.describe = describe, .name = hotspot_name, .is_sane = hotspot_is_sane, .print = print
};
