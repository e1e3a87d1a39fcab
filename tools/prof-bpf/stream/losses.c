/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-bpf/stream/losses.h"

#include "common/base/command/log.h"
#include "common/base/system/clock.h"
#include "tools/prof-bpf/host/host.h"
#include "tools/prof-bpf/kernel/loader.h"
#include "tools/prof-bpf/kernel/sideband.h"
#include "tools/prof-bpf/stream/output.h"

#define LOG_EVERY_NS 60000000000ull
#define REFUSED_EVERY_NS 600000000000ull

void losses_forget(struct losses *l)
{
	struct sideband_figures rings;

	sideband_figures(l->sideband, &rings);
	for (unsigned i = 0, cpu; i < rings.cpus && i < LOSSES_CPUS; i++)
		l->side_band[i] = sideband_lost(l->sideband, i, &cpu);
}

static void send_message(struct losses *l, const struct msg_lost *m)
{
	output_emitted(l->output, emit_lost(l->output->emit, m));
	l->sent[m->reason] += m->count;
}

static void send_loss(struct losses *l, enum lost_reason reason, uint64_t now, uint64_t *sent,
		      uint64_t cpu)
{
	if (now > *sent)
		send_message(l, &(struct msg_lost){
					.reason = reason, .count = now - *sent, .cpu = cpu });
	*sent = now;
}

/* Sends losses of samples whose owner is known. The others are sent without an owner. */
static void send_owners_loss(void *ctx, const struct owner *w, enum owner_loss loss, uint64_t n)
{
	struct losses *l = ctx;
	const struct {
		enum lost_reason reason;
		uint64_t *sent;
	} to[OWNER_LOSSES] = {
		[OWNER_LOST_QUEUE_FULL] = { LOST_QUEUE_FULL, &l->queue_full },
		[OWNER_LOST_CPU_LIMIT] = { LOST_CPU_LIMIT, &l->cpu_limited },
		[OWNER_LOST_LIMIT] = { LOST_LIMIT, &l->unkept },
	};

	send_message(l, &(struct msg_lost){ .reason = to[loss].reason,
					    .count = n,
					    .cpu = MSG_LOST_ANY_CPU,
					    .owner = owner_word(w) + 1 });
	*to[loss].sent += n;
}

static void log_deferred(struct losses *l, uint64_t deferred)
{
	const uint64_t now_ns = clock_mono_ns();

	if (deferred == l->deferred || (l->deferred_ns && now_ns < l->deferred_ns + LOG_EVERY_NS))
		return;
	l->deferred = deferred;
	l->deferred_ns = now_ns;
	log_warning(
		"no descriptor is left to open files with; programs that start now have no rows "
		"and names until there is; raise fs.file-max, or LimitNOFILE= of the service");
}

/* Logs truncations. They are not sent as losses, since the samples themselves have the reason
 * WALK_DEFINITIONS. */
static void log_truncations(struct losses *l)
{
	const struct emit_truncations truncations = emit_truncations(l->output->emit);
	const uint64_t now_ns = clock_mono_ns();

	if (truncations.samples == l->truncations ||
	    (l->truncations_ns && now_ns < l->truncations_ns + LOG_EVERY_NS))
		return;
	l->truncations = truncations.samples;
	l->truncations_ns = now_ns;
	log_warning("programs of user %u have too many different stacks: %llu of their samples "
		    "lost their user frames, so that others keep theirs; raise --memory-limit",
		    truncations.uid, (unsigned long long)truncations.samples);
}

struct refused {
	enum owner_resource thing;
	uint64_t now_ns;
	const struct owner *most; /* the owner that was refused most */
	const struct owner *user; /* the owner that uses most */
	uint64_t used;		  /* how much that is */
};

static uint64_t used_by(const struct owner *w, const struct refused *r)
{
	return w->held[r->thing] + owner_spent(w, r->thing, r->now_ns);
}

static void note_refused(void *ctx, const struct owner *w)
{
	struct refused *r = ctx;
	const uint64_t used = used_by(w, r);

	if (w->refused[r->thing] && (!r->most || w->refused[r->thing] > r->most->refused[r->thing]))
		r->most = w;
	if (used > r->used) {
		r->user = w;
		r->used = used;
	}
}

/* Logs that an owner was refused something. If another uses far more of it, that one has a larger
 * part in this. */
static void say_refused(const struct refused *r, const char *text)
{
	char most[OWNER_TEXT], user[OWNER_TEXT];

	owner_text(r->most, most);
	if (r->user && used_by(r->most, r) < r->used / 2)
		log_warning("%s lacks %s, of which %s uses most; programs of both may lose stacks "
			    "and names",
			    most, text, owner_text(r->user, user));
	else
		log_warning("%s takes more than its share of %s; only its own programs may lose "
			    "stacks and names",
			    most, text);
}

/* Logs for each resource the owner that was refused most, since its programs are affected. */
static void log_refused(struct losses *l)
{
	static const char *const text[] = {
#define OWNER_RESOURCE(NAME, name, text) text,
#include "tools/prof-bpf/owners/resources.def"
#undef OWNER_RESOURCE
	};
	const uint64_t now_ns = clock_mono_ns();

	for (unsigned t = 0; t < OWNER_RESOURCES; t++) {
		struct refused r = { .thing = (enum owner_resource)t, .now_ns = now_ns };

		/* log_truncations logs these. */
		if (t == OWNER_DEFINITIONS)
			continue;
		if (l->refused_ns[t] && now_ns < l->refused_ns[t] + REFUSED_EVERY_NS)
			continue;
		owners_each(host_owners(l->host), note_refused, &r);
		if (!r.most || r.most->refused[t] <= l->refused[t])
			continue;
		l->refused[t] = r.most->refused[t];
		l->refused_ns[t] = now_ns;
		say_refused(&r, text[t]);
	}
}

void losses_send(struct losses *l)
{
	const struct losses_of_samples *s = l->samples;
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
	log_deferred(l, h.deferred);
	log_truncations(l);
	log_refused(l);
	send_loss(l, LOST_SIDEBAND, rings.malformed, &l->undecoded, MSG_LOST_ANY_CPU);
	send_loss(l, LOST_MALFORMED, loader_malformed(l->loader), &l->malformed, MSG_LOST_ANY_CPU);
	send_loss(l, LOST_UNTRACKED, h.limit, &l->untracked, MSG_LOST_ANY_CPU);
	owners_tell_losses(host_owners(l->host), send_owners_loss, l);
	send_loss(l, LOST_LIMIT, s->unkept, &l->unkept, MSG_LOST_ANY_CPU);
	send_loss(l, LOST_QUEUE_FULL, s->queue_full, &l->queue_full, MSG_LOST_ANY_CPU);
	send_loss(l, LOST_CPU_LIMIT, s->cpu_limited, &l->cpu_limited, MSG_LOST_ANY_CPU);
	send_loss(l, LOST_THROTTLED, s->throttled, &l->throttled, MSG_LOST_ANY_CPU);
}
