/* SPDX-License-Identifier: Apache-2.0 */
#include "common/names/program/keptbuiltins.h"

#include <stdbool.h>
#include <string.h>
#include "common/names/runtime/v8/builtins.h"

/* The one that was given last comes first. */
static struct kept {
	struct stat st;
	struct v8_builtins *builtins; /* owned; NULL: none */
} kept[KEPTBUILTINS_MAX];

static bool is_time(struct timespec a, struct timespec b)
{
	return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

static bool is_same(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
	       is_time(a->st_mtim, b->st_mtim) && is_time(a->st_ctim, b->st_ctim);
}

/* Moves the elements before i up by one. The element i is lost. */
static void move_up(unsigned i)
{
	memmove(&kept[1], &kept[0], i * sizeof(kept[0]));
	kept[0] = (struct kept){ 0 };
}

void keptbuiltins_give(const struct stat *st, struct v8_builtins *builtins)
{
	unsigned i = 0;

	if (!builtins)
		return;
	while (i < KEPTBUILTINS_MAX - 1 && kept[i].builtins && !is_same(&kept[i].st, st))
		i++;
	v8_builtins_free(kept[i].builtins);
	move_up(i);
	kept[0] = (struct kept){ .st = *st, .builtins = builtins };
}

struct v8_builtins *keptbuiltins_take(const struct stat *st)
{
	for (unsigned i = 0; i < KEPTBUILTINS_MAX; i++) {
		struct v8_builtins *b = kept[i].builtins;

		if (!b || !is_same(&kept[i].st, st))
			continue;
		kept[i].builtins = NULL;
		return b;
	}
	return NULL;
}
