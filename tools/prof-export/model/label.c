/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-export/model/label.h"

#include <inttypes.h>
#include "common/base/log.h"

static uint32_t run_length(struct str s, bool plain)
{
	uint32_t n = 0;

	while (n < s.len && (s.data[n] >= ' ' && s.data[n] <= '~') == plain)
		n++;
	return n;
}

int label_escape(struct buf *b, struct str s)
{
	bool plain = true;
	int r = 0;

	/* log_escape doubles backslashes, which names in PHP and systemd contain. So it gets only
	 * what is not printable ASCII. This cuts no UTF-8 sequence. */
	for (; !r && s.len; plain = !plain) {
		const uint32_t n = run_length(s, plain);

		r = plain ? buf_append(b, s.data, n)
			  : log_escape(b, (struct str){ .data = s.data, .len = n }, SIZE_MAX);
		s.data += n;
		s.len -= n;
	}
	return r;
}

static struct str base_name(struct str path)
{
	const char *slash = path.len ? memrchr(path.data, '/', path.len) : NULL;

	if (slash && slash + 1 < path.data + path.len) {
		path.len -= (uint32_t)(slash + 1 - path.data);
		path.data = slash + 1;
	}
	return path;
}

/* Labels a frame by the start of its function, or else by its address. */
static int unnamed(struct buf *b, const struct definitions *d, const struct model_frame *f)
{
	const uint64_t address = f->start ? f->start : f->address ? f->address : f->offset;
	struct str name = STR_LIT("anon");

	if (f->kind == MODEL_KERNEL)
		name = STR_LIT("kernel");
	else if (f->kind == MODEL_INTERPRETED)
		name = STR_LIT("interpreted");
	else if (f->kind != MODEL_NATIVE)
		return buf_printf(b, "[kind-%u+0x%" PRIx64 "]", f->kind, address);
	else if (f->file != MODEL_NONE)
		name = base_name(strings_get(&d->strings, d->files.data[f->file].path));
	if (!name.len)
		name = STR_LIT("file");
	/* [vdso] has brackets already. */
	if (name.len > 2 && name.data[0] == '[' && name.data[name.len - 1] == ']')
		name = (struct str){ .data = name.data + 1, .len = name.len - 2 };
	int r = buf_append(b, "[", 1);

	if (!r)
		r = label_escape(b, name);
	return r ? r : buf_printf(b, "+0x%" PRIx64 "]", address);
}

int label_plain(struct buf *b, const struct definitions *d, const struct model_frame *f, unsigned i)
{
	if (f->kind == MODEL_TRUNCATED)
		return buf_printf(b, "[truncated: %s]", walk_reason_word(f->offset));
	if (f->count) {
		const size_t before = b->len;

		int r = label_escape(
			b, strings_get(&d->strings,
				       d->functions.data[d->numbers.data[f->calls + i]].name));

		if (r || b->len > before)
			return r;
	}
	return unnamed(b, d, f);
}

int label_call(struct buf *b, const struct definitions *d, const struct model_frame *f, unsigned i)
{
	int r = label_plain(b, d, f, i);

	return r || f->kind != MODEL_KERNEL ? r : buf_append_str(b, "_[k]");
}

int label_where(struct buf *b, const struct model_frame *f)
{
	if (!f->start)
		return 0;
	if (f->offset == f->address)
		return buf_printf(b, "at 0x%" PRIx64, f->address);
	return buf_printf(b, "from 0x%" PRIx64 " to 0x%" PRIx64, f->offset, f->address);
}

int label_process(struct buf *b, const struct definitions *d, uint32_t process)
{
	if (process == MODEL_NONE)
		return buf_append_str(b, "[unknown]");
	const struct str comm = strings_get(&d->strings, d->processes.data[process].comm);

	return comm.len ? label_escape(b, comm)
			: buf_printf(b, "pid-%" PRIu64, d->processes.data[process].pid);
}

int label_thread(struct buf *b, const struct definitions *d, uint32_t thread)
{
	if (thread == MODEL_NONE)
		return buf_append_str(b, "[unknown]");
	const struct str comm = strings_get(&d->strings, d->threads.data[thread].comm);

	return comm.len ? label_escape(b, comm)
			: buf_printf(b, "tid-%" PRIu64, d->threads.data[thread].tid);
}

int label_binary(struct buf *b, const struct definitions *d, const struct model_frame *f)
{
	if (f->kind == MODEL_KERNEL) {
		struct str module = { 0 };

		if (f->count)
			module = strings_get(&d->strings,
					     d->functions.data[d->numbers.data[f->calls]].source);
		if (!module.len || str_eq(module, STR_LIT("kernel")) ||
		    str_eq(module, STR_LIT("vmlinux")))
			return buf_append_str(b, "[kernel.kallsyms]");
		/* kallsyms has brackets; other sources have none. */
		const bool bare = module.data[0] != '[';
		int r = bare ? buf_append(b, "[", 1) : 0;

		if (!r)
			r = label_escape(b, module);
		return !r && bare ? buf_append(b, "]", 1) : r;
	}
	if (f->kind == MODEL_INTERPRETED)
		return buf_append_str(b, "[interpreted]");
	if (f->file == MODEL_NONE)
		return buf_append_str(b, f->kind == MODEL_TRUNCATED ? "[truncated]" : "[anon]");
	const struct str path = strings_get(&d->strings, d->files.data[f->file].path);

	return path.len ? label_escape(b, path) : buf_append_str(b, "[file]");
}
