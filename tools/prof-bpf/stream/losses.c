/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-bpf/stream/losses.h"

#include "common/base/clock.h"
#include "common/base/log.h"
#include "tools/prof-bpf/host/host.h"
#include "tools/prof-bpf/kernel/loader.h"
#include "tools/prof-bpf/kernel/sideband.h"
#include "tools/prof-bpf/stream/output.h"
#include "tools/prof-bpf/stream/samples.h"

#define PUT_OFF_EVERY_NS 60000000000ull

void losses_forget(struct losses *l)
{
	struct sideband_figures rings;

	sideband_figures(l->sideband, &rings);
	for (unsigned i = 0, cpu; i < rings.cpus && i < LOSSES_CPUS; i++)
		l->side_band[i] = sideband_lost(l->sideband, i, &cpu);
}

static void send_loss(struct losses *l, enum lost_reason reason, uint64_t now, uint64_t *sent,
		      uint64_t cpu)
{
	if (now > *sent)
		output_emitted(l->output, emit_lost(l->output->emit, reason, now - *sent, cpu));
	*sent = now;
}

static void log_put_off(struct losses *l, uint64_t put_off)
{
	const uint64_t now_ns = clock_mono_ns();

	if (put_off == l->put_off || (l->put_off_ns && now_ns < l->put_off_ns + PUT_OFF_EVERY_NS))
		return;
	l->put_off = put_off;
	l->put_off_ns = now_ns;
	log_warning(
		"no descriptor is left to open files with; programs that start now have no rows "
		"and names until there is; raise fs.file-max, or LimitNOFILE= of the service");
}

void losses_send(struct losses *l)
{
	const struct samples *s = l->samples;
	struct loader_figures kernel;
	struct sideband_figures rings;
	struct host_figures h;

	loader_figures(l->loader, &kernel);
	for (unsigned i = 0; i < kernel.cpus && i < LOSSES_CPUS; i++)
		send_loss(l, LOST_RING_FULL, loader_ring_full(l->loader, i), &l->ring_full[i], i);
	sideband_figures(l->sideband, &rings);
	for (unsigned i = 0; i < rings.cpus && i < LOSSES_CPUS; i++) {
		unsigned cpu = i;
		uint64_t lost = sideband_lost(l->sideband, i, &cpu);

		send_loss(l, LOST_SIDEBAND, lost, &l->side_band[i], cpu);
	}
	host_figures(l->host, &h);
	log_put_off(l, h.put_off);
	send_loss(l, LOST_SIDEBAND, rings.malformed, &l->undecoded, LOST_ANY_CPU);
	send_loss(l, LOST_MALFORMED, loader_malformed(l->loader), &l->malformed, LOST_ANY_CPU);
	send_loss(l, LOST_UNTRACKED, h.limit, &l->untracked, LOST_ANY_CPU);
	send_loss(l, LOST_LIMIT, s->unkept, &l->unkept, LOST_ANY_CPU);
	send_loss(l, LOST_QUEUE_FULL, s->queue_full, &l->queue_full, LOST_ANY_CPU);
	send_loss(l, LOST_THROTTLED, s->throttled, &l->throttled, LOST_ANY_CPU);
}
