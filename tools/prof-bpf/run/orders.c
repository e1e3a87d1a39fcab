/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-bpf/run/orders.h"

#include <string.h>
#include <unistd.h>
#include "common/base/command/log.h"
#include "tools/prof-bpf/run/ending.h"
#include "tools/prof-bpf/run/prof.h"

/* Pauses or resumes sampling. Events that are opened before sampling begins are disabled. */
static void pause_sampling(struct prof *p, bool paused)
{
	if (p->lifecycle.paused == paused)
		return;
	p->lifecycle.paused = paused;
	if (p->lifecycle.phase != LIFECYCLE_SAMPLING)
		return;
	const int r = paused ? loader_pause(p->loader) : loader_start(p->loader);

	if (r)
		log_warning("sampling cannot be %s: %s; restart profpipe",
			    paused ? "interrupted" : "resumed", strerror(-r));
}

/* Follows an order. Unknown orders come from a newer launcher, and are ignored. */
static void follow(struct prof *p, uint8_t order)
{
	if (order == DEPLOY_STOP) {
		ending_begin(p, MSG_END_KILLED);
	} else if (order == DEPLOY_PAUSE || order == DEPLOY_RESUME) {
		pause_sampling(p, order == DEPLOY_PAUSE);
	} else if (order >= DEPLOY_CPU_LIMIT && order <= DEPLOY_CPU_LIMIT_LAST) {
		throttle_set(&p->throttle, order - DEPLOY_CPU_LIMIT);
		p->samples.thinning = throttle_thinning(&p->throttle);
	}
}

void orders_take(struct prof *p)
{
	uint8_t order;
	const ssize_t n = read(p->options.deploy.life_fd, &order, 1);

	if (n == 1)
		follow(p, order);
	else if (n == 0)
		p->lifecycle.exit_now = true;
}
