/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-bpf/events.h"

#include "tools/prof-bpf/run/prof.h"

int events_open(struct prof *p)
{
	const struct sampling *s = &p->options.sampling;
	const struct loader_config c = { .hz = s->hz,
					 .drain_ms = wakeups_drain_ms(s->hz),
					 .ring_max = p->budget.ring,
					 .only_selected = p->options.follow || s->pid_count,
					 .follow_forks = options_follow_forks(&p->options),
					 .targets = &s->targets,
					 .again = p->options.resume };

	return loader_new(&c, &p->loader);
}
