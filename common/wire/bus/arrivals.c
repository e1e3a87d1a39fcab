/* SPDX-License-Identifier: Apache-2.0 */
#include "common/wire/bus/arrivals.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define PLACES (ARRIVALS_MESSAGES + ARRIVALS_EVENTS)

static unsigned count(const struct arrivals *a)
{
	return a->messages + a->events;
}

static void show(struct arrivals *a)
{
	const bool any = count(a);
	uint64_t n = 1;

	if (any == a->shown)
		return;
	a->shown = any;
	ssize_t r = any ? write(a->fd, &n, sizeof(n)) : read(a->fd, &n, sizeof(n));

	(void)r; /* neither call blocks; if `shown` is set, there is a byte to read */
}

static struct arrival take(struct arrivals *a)
{
	const struct arrival first = a->ring[a->first];

	a->first = (a->first + 1) % PLACES;
	if (first.event)
		a->events--;
	else
		a->messages--;
	return first;
}

int arrivals_init(struct arrivals *a)
{
	a->shown = false;
	a->first = a->messages = a->events = 0;
	a->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return a->fd < 0 ? -errno : 0;
}

void arrivals_done(struct arrivals *a)
{
	while (count(a))
		free(take(a).message);
	if (a->fd >= 0)
		close(a->fd);
}

void arrivals_put(struct arrivals *a, struct arrival what)
{
	a->ring[(a->first + count(a)) % PLACES] = what;
	if (what.event)
		a->events++;
	else
		a->messages++;
	show(a);
}

const struct arrival *arrivals_next(const struct arrivals *a)
{
	return count(a) ? &a->ring[a->first] : NULL;
}

bool arrivals_take(struct arrivals *a, struct arrival *ret)
{
	if (!count(a))
		return false;
	*ret = take(a);
	show(a);
	return true;
}

void arrivals_forget(struct arrivals *a, uint64_t epoch)
{
	const unsigned all = count(a);
	unsigned kept = 0;

	for (unsigned i = 0; i < all; i++) {
		const struct arrival one = a->ring[(a->first + i) % PLACES];

		if (!one.event && one.epoch == epoch) {
			free(one.message);
			a->messages--;
		} else {
			a->ring[(a->first + kept++) % PLACES] = one;
		}
	}
	show(a);
}

void arrivals_clear(struct arrivals *a)
{
	while (count(a))
		free(take(a).message);
	show(a);
}
