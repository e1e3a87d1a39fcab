/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-bpf/stream/output.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "common/base/command/log.h"
#include "common/base/files/fd.h"

int output_open(struct output *o, const char *path, mode_t mode)
{
	const struct outfile_how how = { .mode = mode, .grows = true };

	o->fd = STDOUT_FILENO;
	if (!path)
		return 0;
	o->path = path;
	int r = outfile_open(&o->file, path, &how);

	if (r) {
		log_error("%s: %s", path, outfile_error(r));
		return r;
	}
	o->fd = o->file.fd;
	r = outfile_hand_over(&o->file);
	if (r)
		log_error("the process that renames the output cannot be started: %s; allow more "
			  "processes (ulimit -u, pids.max)",
			  strerror(-r));
	return r;
}

bool output_close(struct output *o)
{
	int r = 0;

	if (o->file.fd < 0)
		return true;
	if (o->begun)
		r = outfile_end(&o->file, true);
	else
		outfile_drop(&o->file);
	if (r && o->file.hidden[0])
		log_error("%s: cannot be replaced: %s; the recording lies beside it as %s", o->path,
			  strerror(-r), o->file.hidden);
	else if (r)
		log_error("%s: %s", o->path, outfile_error(r));
	return !r;
}

/* Begins to write. An output file keeps its old contents until then. */
static int begin(struct output *o)
{
	struct stat st;

	if (o->begun || !o->path)
		return 0;
	o->begun = true;
	return !fstat(o->fd, &st) && S_ISREG(st.st_mode) && ftruncate(o->fd, 0) ? -errno : 0;
}

int output_batch(void *ctx, struct span batch)
{
	struct output *o = ctx;

	/* The bus may already have another peer than the one that the batch is meant for. */
	charges_flushed(&o->charges, batch.len);
	if (o->bus)
		return o->has_peer ? outbox_put(&o->outbox, batch) : -ENOTCONN;
	int r = begin(o);
	if (!r)
		r = fd_write_all(o->fd, batch.data, batch.len);
	if (r && !o->failed)
		log_error("%s: %s; the part written so far is a usable recording",
			  o->path ? o->path : "standard output", strerror(-r));
	o->failed |= r != 0;
	return 0;
}

void output_emitted(struct output *o, int r)
{
	if (r < 0 && o->bus) {
		o->objects_lost = true;
		o->breaks += o->has_peer;
		outbox_reset(&o->outbox);
		(void)emit_restart(o->emit);
	}
}

bool output_peer_takes(const struct output *o)
{
	return o->has_peer && !outbox_pressed(&o->outbox);
}

bool output_peer_takes_of(struct output *o, const struct owner *w)
{
	charges_sent(&o->charges, &o->outbox);
	return o->has_peer && charges_may(&o->charges, &o->outbox, w);
}

uint64_t output_at(const struct output *o)
{
	return charges_at(&o->charges, emit_packed(o->emit));
}

void output_charge(struct output *o, struct owner *w, uint64_t since)
{
	if (o->bus)
		charges_add(&o->charges, w, since, output_at(o));
}

void output_peer_came(struct output *o)
{
	outbox_reset(&o->outbox);
	o->breaks += o->has_peer;
	o->has_peer = true;
	o->objects_lost = true; /* only the previous peer had them */
	output_emitted(o, emit_restart(o->emit));
}

void output_peer_went(struct output *o)
{
	o->breaks += o->has_peer;
	o->has_peer = false;
	outbox_reset(&o->outbox);
}

bool output_has_receiver(const struct output *o)
{
	return !o->bus || o->has_peer;
}
