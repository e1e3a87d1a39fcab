/* SPDX-License-Identifier: Apache-2.0 */
#include "common/names/dwarf/dwarfinfo.h"
#include "common/names/dwarf/dwarfwire.h"
#include "common/names/elf/symfile.h"

static struct dwarfwire_text text_of(const struct names *n, struct str s)
{
	return s.len ? (struct dwarfwire_text){ .at = (uint32_t)(s.data - n->text), .len = s.len }
		     : (struct dwarfwire_text){ 0 };
}

size_t dwarfwire_put(int verdict, uint64_t bytes, const struct names *names, uint8_t *into,
		     size_t cap)
{
	const unsigned count = names ? names->count : 0;
	const size_t calls = count * sizeof(struct dwarfwire_call);
	struct dwarfwire_head h = { .verdict = verdict, .count = count, .bytes = bytes };

	if (count && sizeof(h) + calls + names->used > cap) {
		h.verdict = SYMFILE_NONE;
		h.count = 0;
	} else if (count) {
		h.text_len = (uint32_t)names->used;
	}
	memcpy(into, &h, sizeof(h));
	into += sizeof(h);
	for (unsigned i = 0; i < h.count; i++) {
		const struct call *c = &names->calls[i];
		const struct dwarfwire_call w = { .line = c->line,
						  .start_line = c->start_line,
						  .name = text_of(names, c->name),
						  .system_name = text_of(names, c->system_name),
						  .source = text_of(names, c->source),
						  .bare = c->bare };

		memcpy(into, &w, sizeof(w));
		into += sizeof(w);
	}
	if (h.text_len)
		memcpy(into, names->text, h.text_len);
	return sizeof(h) + h.count * sizeof(struct dwarfwire_call) + h.text_len;
}

static bool is_within(struct dwarfwire_text t, uint32_t text_len)
{
	return t.len <= NAMES_TEXT && t.at <= text_len && t.len <= text_len - t.at;
}

static struct str str_of(const struct names *n, struct dwarfwire_text t)
{
	return t.len ? (struct str){ .data = n->text + t.at, .len = t.len } : (struct str){ 0 };
}

static bool is_call(const struct dwarfwire_call *c, uint32_t text_len)
{
	return is_within(c->name, text_len) && is_within(c->system_name, text_len) &&
	       is_within(c->source, text_len) && c->bare <= 1 && !c->zero && c->line <= INT32_MAX &&
	       c->start_line <= INT32_MAX;
}

bool dwarfwire_take(struct span answer, int *ret_verdict, uint64_t *ret_bytes,
		    struct names *ret_names)
{
	struct dwarfwire_head h;
	struct dwarfwire_call calls[NAMES_MAX];

	if (answer.len < sizeof(h))
		return false;
	memcpy(&h, answer.data, sizeof(h));
	answer.data += sizeof(h);
	answer.len -= sizeof(h);
	if (h.zero || h.count > NAMES_MAX ||
	    (h.count && (!ret_names || (h.verdict && h.verdict != DWARFINFO_AGAIN))) ||
	    answer.len < h.count * sizeof(calls[0]))
		return false;
	if (h.count)
		memcpy(calls, answer.data, h.count * sizeof(calls[0]));
	answer.data += h.count * sizeof(calls[0]);
	answer.len -= h.count * sizeof(calls[0]);
	if (answer.len != h.text_len || (h.text_len && !h.count) ||
	    h.text_len > sizeof(ret_names->text) ||
	    (h.text_len && memchr(answer.data, '\0', h.text_len)))
		return false;
	for (unsigned i = 0; i < h.count; i++)
		if (!is_call(&calls[i], h.text_len))
			return false;
	if (ret_names) {
		names_reset(ret_names);
		if (h.text_len)
			memcpy(ret_names->text, answer.data, h.text_len);
		ret_names->used = h.text_len;
		ret_names->count = h.count;
		for (unsigned i = 0; i < h.count; i++)
			ret_names->calls[i] = (struct call){
				.name = str_of(ret_names, calls[i].name),
				.system_name = str_of(ret_names, calls[i].system_name),
				.source = str_of(ret_names, calls[i].source),
				.line = calls[i].line,
				.start_line = calls[i].start_line,
				.bare = calls[i].bare
			};
	}
	*ret_verdict = h.verdict;
	*ret_bytes = h.bytes;
	return true;
}
