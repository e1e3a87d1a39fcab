/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of a Python process, as tests/data/python/make.py wrote it down. */
#ifndef TESTS_UNIT_PYCAPTURE_H
#define TESTS_UNIT_PYCAPTURE_H

#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include "common/names/runtime/python/python.h"

#define PIECES 128

struct piece {
	uint64_t address;
	size_t len;
	uint8_t *bytes;
};

struct expected {
	uint64_t address, first;
	char *name, *source, *ranges;
};

/* A file of make.py. */
struct capture {
	unsigned minor;
	uint64_t debug[PYTHON_DEBUG_WORDS];
	struct piece pieces[PIECES];
	size_t count;
	struct expected objects[32];
	size_t object_count;
	struct runtime_build build;
};

static inline size_t unhex(const char *hex, uint8_t **ret)
{
	size_t len = strlen(hex) / 2;
	uint8_t *bytes = malloc(len + 1);

	cr_assert(bytes);
	for (size_t i = 0; i < len; i++) {
		unsigned v = 0;

		cr_assert_eq(sscanf(hex + 2 * i, "%2x", &v), 1);
		bytes[i] = (uint8_t)v;
	}
	bytes[len] = '\0';
	*ret = bytes;
	return len;
}

static inline char *text(const char *hex)
{
	uint8_t *bytes;

	if (strcmp(hex, "-") == 0)
		return strdup("");
	unhex(hex, &bytes);
	return (char *)bytes;
}

static inline struct capture *capture_open(const char *path)
{
	static char a[1 << 16], b[1 << 16], c[1 << 16];
	struct capture *k = calloc(1, sizeof(*k));
	FILE *f = fopen(path, "r");
	struct python_naming n;
	struct python_config config;
	size_t cap = 0;
	char *line = NULL;

	cr_assert(k && f, "%s", path);
	while (getline(&line, &cap, f) > 0) {
		uint64_t address, first;
		uint8_t *bytes;

		if (sscanf(line, "version %u", &k->minor) == 1)
			continue;
		if (sscanf(line, "debug %65535s", a) == 1) {
			size_t len = unhex(a, &bytes);

			memcpy(k->debug, bytes, len < sizeof(k->debug) ? len : sizeof(k->debug));
			free(bytes);
		} else if (sscanf(line, "memory %" SCNu64 " %65535s", &address, a) == 2) {
			cr_assert_lt(k->count, PIECES);
			struct piece *p = &k->pieces[k->count++];

			p->address = address;
			p->len = unhex(a, &p->bytes);
		} else if (sscanf(line, "object %" SCNu64 " %65535s %65535s %" SCNu64 " %65535s",
				  &address, a, b, &first, c) == 5) {
			cr_assert_lt(k->object_count, 32);
			k->objects[k->object_count++] = (struct expected){ .address = address,
									   .first = first,
									   .name = text(a),
									   .source = text(b),
									   .ranges = strdup(c) };
		}
	}
	free(line);
	fclose(f);
	cr_assert(python_layout(k->minor, 0, k->debug, &config, &n), "%s", path);
	k->build.known = true;
	k->build.config.runtime = RUNTIME_PYTHON;
	memcpy(k->build.config.own, &config, sizeof(config));
	memcpy(k->build.naming, &n, sizeof(n));
	return k;
}

static inline void capture_close(struct capture *k)
{
	for (size_t i = 0; i < k->count; i++)
		free(k->pieces[i].bytes);
	for (size_t i = 0; i < k->object_count; i++) {
		free(k->objects[i].name);
		free(k->objects[i].source);
		free(k->objects[i].ranges);
	}
	free(k);
}

/* As much as the capture contains. */
static inline struct span capture_read(const struct capture *k, uint64_t address, size_t n)
{
	for (size_t i = 0; i < k->count; i++) {
		const struct piece *p = &k->pieces[i];

		if (address >= p->address && address - p->address < p->len) {
			size_t skip = address - p->address, left = p->len - skip;

			return (struct span){ .data = p->bytes + skip, .len = left < n ? left : n };
		}
	}
	return (struct span){ 0 };
}

static inline uint64_t check_of(const struct capture *k, uint64_t address)
{
	struct python_naming n;
	struct span code;
	uint64_t name;

	memcpy(&n, k->build.naming, sizeof(n));
	code = capture_read(k, address, n.code_bytes);
	cr_assert_eq(code.len, n.code_bytes);
	memcpy(&name, code.data + (n.code_qualname ? n.code_qualname : n.code_name), sizeof(name));
	return python_sum(&n, code.data, capture_read(k, name, n.text_ascii + 32u));
}

/* Names an object in rounds, like an object of a live process. */
static inline int name_object(const struct capture *k, uint64_t address, uint64_t check,
			      struct runtime_object *o, unsigned *ret_rounds)
{
	struct object_memory m = { 0 };
	unsigned rounds = 0;
	int r;

	for (;;) {
		r = runtime_name(&k->build, address, check, &m, o);
		if (r != RUNTIME_WANTS || rounds == 8)
			break;
		rounds++;
		for (unsigned i = 0; object_memory_next(&m, &i); i++)
			cr_assert_eq(object_memory_put(&m, i,
						       capture_read(k, m.pieces[i].address,
								    m.pieces[i].wanted)),
				     0);
	}
	object_memory_done(&m);
	*ret_rounds = rounds;
	return r;
}

#endif
