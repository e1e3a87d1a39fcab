/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-bpf/kernel/kernel_names.h"

#include <string.h>
#include "common/base/command/log.h"

int kernel_names_open(struct kernel_names *n)
{
	const struct kallsyms_config c = { 0 };

	return kallsyms_open(&c, &n->unread);
}

static void *read_names(void *ctx)
{
	struct kernel_names *n = ctx;

	n->result = kallsyms_read(n->unread);
	__atomic_store_n(&n->done, true, __ATOMIC_RELEASE);
	return NULL;
}

/* Logs a failure once, since reading is retried. */
static void log_failure(struct kernel_names *n, int r)
{
	if (r && !n->logged)
		log_warning(
			"/proc/kallsyms: %s; kernel functions have no names until it can be read",
			strerror(-r));
	n->logged |= r != 0;
}

void kernel_names_start(struct kernel_names *n)
{
	if (!n->unread)
		return;
	const int r = pthread_create(&n->thread, NULL, read_names, n);

	n->reading = r == 0;
	/* If the thread cannot be started, the timer reads the names. */
	if (r)
		n->ready = n->unread;
	log_failure(n, -r);
}

void kernel_names_take(struct kernel_names *n, bool wait)
{
	if (!n->reading || !(wait || __atomic_load_n(&n->done, __ATOMIC_ACQUIRE)))
		return;
	pthread_join(n->thread, NULL);
	n->reading = false;
	n->ready = n->unread;
	log_failure(n, n->result);
}

void kernel_names_tick(struct kernel_names *n, uint64_t now_ns)
{
	if (n->ready)
		log_failure(n, kallsyms_tick(n->ready, now_ns));
}

void kernel_names_event(struct kernel_names *n, const struct sideband_event *e)
{
	if (n->ready)
		kallsyms_event(n->ready, e);
}

bool kernel_names_lookup(struct kernel_names *n, uint64_t address, struct str *ret_name,
			 struct str *ret_module, uint64_t *ret_start)
{
	return n->ready && kallsyms_lookup(n->ready, address, ret_name, ret_module, ret_start);
}

uint64_t kernel_names_failures(const struct kernel_names *n)
{
	struct kallsyms_figures f = { 0 };

	if (n->ready)
		kallsyms_figures(n->ready, &f);
	return f.failures;
}

void kernel_names_done(struct kernel_names *n)
{
	kernel_names_take(n, true);
	kallsyms_free(n->unread);
}
