/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-bpf/stream/outbox.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

struct outbox_item {
	struct outbox_item *prev, *next;
	size_t len;
	uint8_t data[];
};

int outbox_put(struct outbox *o, struct span batch)
{
	if (!o->items) {
		int r = bus_send(o->bus, batch);

		if (r != -EAGAIN)
			return r;
	}
	if (o->bytes + batch.len > o->max)
		return -ENOBUFS;
	struct outbox_item *i = malloc(sizeof(*i) + batch.len);
	if (!i)
		return -ENOMEM;
	i->len = batch.len;
	memcpy(i->data, batch.data, batch.len);
	DL_APPEND(o->items, i);
	o->bytes += batch.len;
	return 0;
}

int outbox_run(struct outbox *o)
{
	while (o->items) {
		struct outbox_item *i = o->items;
		int r = bus_send(o->bus, (struct span){ .data = i->data, .len = i->len });

		if (r == -EAGAIN)
			return 0;
		if (r)
			return r;
		DL_DELETE(o->items, i);
		o->bytes -= i->len;
		free(i);
	}
	return 0;
}

bool outbox_pressed(const struct outbox *o)
{
	return o->bytes > o->max / 2;
}

void outbox_reset(struct outbox *o)
{
	struct outbox_item *i, *next;

	DL_FOREACH_SAFE(o->items, i, next) {
		DL_DELETE(o->items, i);
		free(i);
	}
	o->bytes = 0;
}
