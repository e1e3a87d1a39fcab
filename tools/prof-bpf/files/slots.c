/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include "bpf/runtime.h"
#include "common/base/bytes/numbers.h"
#include "tools/prof-bpf/files/files_internal.h"
#include "tools/prof-bpf/owners/owners.h"

#define SLOTS (TABLES_SLOTS - 1 - TABLES_UNASKED)
/* Owners who hold more than their share leave this many slots free. A slot that was taken away
 * becomes free only after a while. */
#define SLOTS_FAIR 512
/* For an owner's own files, only slots of files without samples for this long are taken. */
#define SLOTS_IDLE_NS 10000000000ull
/* Evicted slots are free after this time. */
#define SLOT_RETRY_NS (TABLES_GRACE_NS + FILES_EXPIRE_NS)

struct file *files_by_slot(struct files *f, uint16_t slot)
{
	return slot < TABLES_MAX_FILES ? f->slots[slot] : NULL;
}

/* Whether an owner may take one more slot. */
static bool slots_left(const struct files *f, const struct owner *by)
{
	const uint32_t left = tables_free_slots(f->config.tables);

	return left > SLOTS_FAIR ||
	       (left && by->held[OWNER_SLOTS] < owners_share(f->config.owners, by, OWNER_SLOTS,
							     SLOTS - SLOTS_FAIR));
}

bool files_sampled(struct files *f, struct file *file, struct files_mapper at, uint64_t now_ns)
{
	if (file->pub.slot)
		return true;
	if (now_ns < file->slot_ns)
		return false;
	if (!slots_left(f, at.owner) || tables_file_new(f->config.tables, &file->pub.slot)) {
		file->pub.slot = 0;
		file->slot_ns = now_ns + SLOT_RETRY_NS;
		owner_refuse(at.owner, OWNER_SLOTS, 1);
		f->slots_wanted++;
		f->figures.limit++;
		return false;
	}
	f->slots_taken++;
	f->slots[file->pub.slot] = file;
	file->owner = at.owner;
	owner_hold(f->config.owners, at.owner, OWNER_SLOTS, 1);
	tables_file_charge(f->config.tables, file->pub.slot, at.owner->number);
	file->was_slot = file->pub.slot;
	file->unwanted = false;
	if (file->runtime)
		(void)tables_file_runtime(f->config.tables, file->pub.slot, file->runtime);
	reopening_want_rows(f, file, at);
	return true;
}

void files_used(struct files *f, struct file *file, struct owner *by)
{
	files_led_to(file, by);
	if (!file->pub.slot || file->owner == by ||
	    by->held[OWNER_SLOTS] + 1 >= file->owner->held[OWNER_SLOTS])
		return;
	owner_hold(f->config.owners, by, OWNER_SLOTS, 1);
	tables_file_charge(f->config.tables, file->pub.slot, by->number);
	owner_release(f->config.owners, file->owner, OWNER_SLOTS, 1);
	file->owner = by;
}

/* A file that may lose its slot. */
struct loser {
	struct file *file;
	uint64_t touched_ns;
};

static int by_age(const void *a, const void *b)
{
	const struct loser *l = a, *r = b;

	return l->touched_ns < r->touched_ns ? -1 : l->touched_ns > r->touched_ns;
}

/* Returns the files of owners who hold more slots than `share`, those first that were not sampled
 * for longest. The caller frees the array. NULL: none, or no memory. */
static struct loser *losers_new(const struct files *f, uint64_t share, size_t *ret_count)
{
	struct loser *l = calloc(f->slots_taken ? f->slots_taken : 1, sizeof(*l));
	size_t n = 0;

	for (uint32_t i = 0; l && i < TABLES_MAX_FILES && n < f->slots_taken; i++) {
		struct file *file = f->slots[i];

		if (!file || file->pub.slot != i || (f->vdso && file == f->vdso->file) ||
		    file->owner->held[OWNER_SLOTS] <= share)
			continue;
		l[n++] = (struct loser){ file, tables_file_touched(f->config.tables, (uint16_t)i) };
	}
	if (l)
		qsort(l, n, sizeof(*l), by_age);
	*ret_count = n;
	return l;
}

void slots_take_away(struct files *f, uint64_t now_ns)
{
	const uint64_t wanted = numbers_smaller(f->slots_wanted, SLOTS_FAIR / 2),
		       keep = SLOTS - SLOTS_FAIR;
	const uint64_t over = f->slots_taken > keep ? f->slots_taken - keep : 0;
	size_t n, taken = 0;

	if (!over && !wanted)
		return;
	const uint64_t share = owners_share(f->config.owners, NULL, OWNER_SLOTS, keep - wanted);
	struct loser *l = losers_new(f, share, &n);

	f->slots_wanted = 0;
	for (size_t i = 0; l && i < n && taken < over + wanted; i++) {
		struct file *file = l[i].file;

		if (file->owner->held[OWNER_SLOTS] <= share ||
		    (taken >= over && now_ns < l[i].touched_ns + SLOTS_IDLE_NS))
			continue;
		file_drop_slot(f, file);
		file->lost_slot = true;
		taken++;
	}
	if (taken)
		f->config.unslotted(f->config.ctx);
	for (size_t i = 0; l && i < n; i++)
		l[i].file->lost_slot = false;
	free(l);
}

void slots_want_rows(struct files *f)
{
	const bool any = f->rows_later;

	f->rows_later = false;
	for (uint32_t i = 0; any && i < TABLES_MAX_FILES; i++) {
		struct file *file = f->slots[i];

		if (!file || !file->rows_later || file->pub.slot != i)
			continue;
		file->rows_later = false;
		reopening_want_rows(f, file, (struct files_mapper){ 0 });
	}
}

uint16_t files_slot(const struct file *file, uint64_t now_ns)
{
	/* In a file that gets no slot, the walker uses frame pointers. */
	return file->pub.slot ? file->pub.slot : now_ns < file->slot_ns ? 0 : TABLES_UNASKED;
}

int files_runtime(struct files *f, struct file *file, const struct runtime_config *c)
{
	struct runtime_config *copy = malloc(sizeof(*copy));

	if (!copy)
		return -ENOMEM;
	*copy = *c;
	free(file->runtime);
	file->runtime = copy;
	return file->pub.slot ? tables_file_runtime(f->config.tables, file->pub.slot, c) : 0;
}
