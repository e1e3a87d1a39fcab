/* SPDX-License-Identifier: Apache-2.0 */
#include "common/names/jit/codefile.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include "common/base/system/clock.h"
#include "common/names/jit/jitdump.h"
#include "common/names/jit/perfmap.h"

#define TAIL 64u /* last bytes that were read, to notice that the file was rewritten */

struct codefile {
	int fd;
	enum msg_jit_kind kind;
	size_t max;
	uint64_t offset;
	int over;	  /* the verdict after which reading stopped; 0: it has not stopped */
	struct jitdump d; /* one of these two, depending on the kind */
	struct perfmap m;
	unsigned tail_len;
	uint8_t tail[TAIL];
};

static void begin(struct codefile *f)
{
	f->offset = 0;
	f->tail_len = 0;
	f->over = 0;
	if (f->kind == MSG_JIT_DUMP)
		jitdump_init(&f->d, f->max);
	else
		perfmap_init(&f->m, f->max);
}

static void forget(struct codefile *f)
{
	if (f->kind == MSG_JIT_DUMP)
		jitdump_done(&f->d);
	else
		perfmap_done(&f->m);
}

int codefile_open(int fd, enum msg_jit_kind kind, size_t max, struct codefile **ret)
{
	struct codefile *f = calloc(1, sizeof(*f));

	if (!f) {
		close(fd);
		return -ENOMEM;
	}
	f->fd = fd;
	f->kind = kind;
	f->max = max;
	begin(f);
	*ret = f;
	return 0;
}

void codefile_free(struct codefile *f)
{
	if (!f)
		return;
	forget(f);
	close(f->fd);
	free(f);
}

static struct codemap *code_of(struct codefile *f)
{
	return f->kind == MSG_JIT_DUMP ? &f->d.code : &f->m.code;
}

size_t codefile_bytes(const struct codefile *f)
{
	return sizeof(*f) + (f->kind == MSG_JIT_DUMP
				     ? f->d.pending.cap + f->d.table.cap + codemap_bytes(&f->d.code)
				     : codemap_bytes(&f->m.code));
}

uint64_t codefile_size(const struct codefile *f)
{
	struct stat st;

	return fstat(f->fd, &st) == 0 ? (uint64_t)st.st_size : UINT64_MAX;
}

/* --- reading --- */

/* Whether the last bytes that were read are still in the file. */
static bool same_tail(const struct codefile *f)
{
	uint8_t now[TAIL];

	return !f->tail_len || (pread(f->fd, now, f->tail_len, (off_t)(f->offset - f->tail_len)) ==
					(ssize_t)f->tail_len &&
				memcmp(now, f->tail, f->tail_len) == 0);
}

/* Parses bytes. Returns 0, a verdict after which reading stops, or -ENOMEM. */
static int feed(struct codefile *f, struct span bytes)
{
	uint64_t skip = 0;
	int r;

	f->offset += bytes.len;
	if (f->kind == MSG_JIT_DUMP) {
		r = jitdump_feed(&f->d, bytes, &skip);
		f->offset += skip;
	} else {
		r = perfmap_feed(&f->m, bytes);
		f->tail_len = bytes.len < TAIL ? (unsigned)bytes.len : TAIL;
		memcpy(f->tail, bytes.data + bytes.len - f->tail_len, f->tail_len);
	}
	return r;
}

int codefile_read(struct codefile *f, uint64_t most, uint64_t cpu_ns, struct codefile_progress *ret)
{
	static uint8_t chunk[CODEFILE_CHUNK];
	const uint64_t begun_ns = cpu_ns ? clock_ns(CLOCK_PROCESS_CPUTIME_ID) : 0;
	struct stat st;
	int r = 0;

	*ret = (struct codefile_progress){ 0 };
	if (fstat(f->fd, &st) < 0)
		return 0;
	/* A jitdump may end within its last record, while our offset is already after that record.
	 * So only a perf map that is shorter than the offset was truncated. */
	if (((uint64_t)st.st_size < f->offset && f->kind == MSG_JIT_PERF_MAP) ||
	    ((uint64_t)st.st_size > f->offset && !same_tail(f))) {
		forget(f);
		begin(f);
		ret->anew = true;
	}
	while (!f->over && (uint64_t)st.st_size > f->offset) {
		if (ret->read >= most ||
		    (cpu_ns && ret->read &&
		     clock_ns(CLOCK_PROCESS_CPUTIME_ID) - begun_ns >= cpu_ns)) {
			ret->behind = true;
			break;
		}
		const ssize_t n = pread(f->fd, chunk, sizeof(chunk), (off_t)f->offset);

		if (n <= 0)
			break;
		ret->read += (uint64_t)n;
		r = feed(f, (struct span){ .data = chunk, .len = (size_t)n });
		if (r < 0)
			break;
		f->over = r;
		ret->full = r == CODEMAP_FULL;
		ret->malformed = r && r != CODEMAP_FULL;
	}
	/* An allocation failed within a line or record: read the file again from the beginning. */
	if (r < 0) {
		forget(f);
		begin(f);
		ret->behind = true;
	}
	return r < 0 ? r : 0;
}

int codefile_flush(struct codefile *f)
{
	const int r = f->kind == MSG_JIT_PERF_MAP ? perfmap_flush(&f->m) : 0;

	return r < 0 ? r : 0;
}

/* --- looking up --- */

static void add(struct names *to, const struct codemap_hit *hit)
{
	struct names_call *c = &to->calls[to->count++];
	char name[CODEMAP_NAME + 1];

	*c = (struct names_call){ .line = hit->line };
	memcpy(name, hit->name.data, hit->name.len);
	name[hit->name.len] = '\0';
	names_set(to, c, name);
	if (hit->file.len)
		c->source = names_keep(to, hit->file.data, hit->file.len);
}

int codefile_find(struct codefile *f, uint64_t address, uint64_t time_ns, struct names *ret,
		  struct codefile_answer *ret_answer)
{
	struct codemap_hit hit;
	const int r = codemap_find(code_of(f), address, time_ns, &hit);

	*ret_answer = (struct codefile_answer){ .found = r == 0, .until_ns = UINT64_MAX };
	if (r)
		return r < 0 ? r : 0;
	ret_answer->since_ns = hit.since_ns;
	ret_answer->until_ns = hit.until_ns;
	add(ret, &hit);
	return 0;
}
