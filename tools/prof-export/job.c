/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-export/job.h"

#include <errno.h>
#include <string.h>
#include "common/base/command/exits.h"
#include "common/base/command/log.h"
#include "tools/prof-export/model/owners/shares.h"

#define OWNERS_SAID 16

const char *job_remedy(int r)
{
	return r == -ENOMEM ? "free memory on this host" : "raise --memory-limit, or --memory";
}

int job_begin(struct job *job, const struct options *o, int fd)
{
	const int r = session_init(&job->session, &o->session, fd);

	if (!r)
		return EXITS_GO_ON;
	log_error("the session cannot begin: %s; %s", strerror(-r), job_remedy(r));
	return EXITS_FAILED;
}

static bool ended_well(const struct job *job)
{
	return model_ended_well(job->session.model);
}

void job_status(struct job *job, bool with_top)
{
	model_status(job->session.model, &job->status, with_top);
	job->status.bytes = job->session.output.bytes;
	job->status.held = job->session.output.held;
	job->status.cut = with_top && !ended_well(job);
	turnover_status(&job->turnover, &job->status);
	sending_status(&job->sending, &job->status);
}

/* Warns about the owners whose stacks did not fit into the model. */
static void say_folded(const struct job *job, const struct options *o)
{
	const struct share *w;
	const size_t n = model_shares(job->session.model, &w);
	unsigned said = 0;

	for (size_t i = 0; i < n && said < OWNERS_SAID; i++) {
		if (!w[i].folded && !w[i].lost)
			continue;
		said++;
		log_warning("user %u (container %u) has too many different stacks for %zu MiB: "
			    "%llu of its samples lost their frames, and %llu are lost; raise --%s",
			    (unsigned)w[i].owner, (unsigned)(w[i].owner >> 32),
			    o->session.memory_max >> 20, (unsigned long long)w[i].folded,
			    (unsigned long long)w[i].lost,
			    o->deploy.run_dir ? "memory-limit" : "memory");
	}
}

/* Says why nothing of the stream could be used. */
static void say_unbegun(const struct job *job, int verdict, const char *what)
{
	if (verdict == STREAM_SCHEMA)
		log_error("%s: was made by a profpipe of another schema; "
			  "use prof-export of that version",
			  what);
	else if (verdict == STREAM_MALFORMED)
		log_error("%s: is not a profpipe stream; give it the output of "
			  "prof-symd or prof-bpf",
			  what);
	else if (verdict < 0)
		log_error("%s: cannot be read: %s; %s", what, strerror(-verdict),
			  verdict == -ENOMEM ? "free memory on this host"
					     : "give it the output of prof-symd or prof-bpf");
	else
		log_error("%s: is %s; give it the output of prof-symd or prof-bpf", what,
			  job->session.in.pending.len ? "cut short within its first message"
						      : "empty");
}

/* Warns about samples that no output can contain. The launcher itself reports the losses of a
 * run. */
static void say_malformed(const struct options *o, uint64_t n, const char *what, const char *output)
{
	if (n && !o->deploy.run_dir)
		log_warning("%s: %llu samples or messages are malformed: they name undefined "
			    "threads, stacks or the like, or cannot be decoded; %s lacks them",
			    what, (unsigned long long)n, output);
}

int job_finish(struct job *job, const struct options *o, int verdict, const char *what,
	       const char *output)
{
	if (!job->session.begun) {
		say_unbegun(job, verdict, what);
		return EXITS_FAILED;
	}
	const uint64_t malformed = model_totals(job->session.model)->lost[LOST_MALFORMED];

	/* If the output has failed, it keeps its error. If memory ran out, the session still writes
	 * what it has. */
	if (verdict == STREAM_MALFORMED || verdict == STREAM_SCHEMA)
		model_lose(job->session.model, LOST_MALFORMED, 1);
	model_missing(job->session.model, stream_missing(&job->session.in));
	sending_finish(&job->sending);
	const int r = session_finish(&job->session);

	job_status(job, true);
	if (r) {
		output_say(output, r);
		return EXITS_FAILED;
	}
	say_folded(job, o);
	say_malformed(o, malformed, what, output);
	if (job->status.skipped_messages || job->status.skipped_fields)
		log_warning("%s: is of a newer version; %llu messages and %llu fields are unknown "
			    "to this one and were skipped; use prof-export of that version",
			    what, (unsigned long long)job->status.skipped_messages,
			    (unsigned long long)job->status.skipped_fields);
	if (job->status.left_out)
		log_warning("%s: %llu samples are of other sources than the recording's event; "
			    "%s leaves them out; use -f text or -f otlp to see them",
			    what, (unsigned long long)job->status.left_out, output);
	if (model_totals(job->session.model)->unkept)
		log_warning(
			"%llu samples did not fit into %zu MiB and are counted as lost; raise --%s",
			(unsigned long long)model_totals(job->session.model)->unkept,
			o->session.memory_max >> 20, o->deploy.run_dir ? "memory-limit" : "memory");
	if (verdict == STREAM_MALFORMED || verdict == STREAM_SCHEMA)
		log_error("%s: is damaged; %s holds the part before the damage", what, output);
	else if (!ended_well(job) && o->deploy.run_dir) /* the launcher logs the reason */
		log_warning("%s: has no end message; %s holds the part that arrived", what, output);
	else if (!ended_well(job))
		log_error("%s: was cut short; %s holds the part that arrived", what, output);
	return verdict == STREAM_MALFORMED || verdict == STREAM_SCHEMA || !ended_well(job)
		       ? EXITS_CUT
		       : EXITS_DONE;
}
