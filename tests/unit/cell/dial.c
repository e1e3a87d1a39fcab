/* SPDX-License-Identifier: Apache-2.0 */
/* How long a dialer waits, and what it logs meanwhile. */
#include "common/cell/dial.h"

#include <criterion/criterion.h>
#include <criterion/redirect.h>
#include <errno.h>
#include "common/base/command/log.h"
#include "common/base/system/clock.h"
#include "tests/unit/run_dir.h"

TestSuite(dial, .init = make_run_dir, .fini = remove_run_dir);

/* Dials prof-bpf, which is not there. */
static int dial_nobody(struct deploy *d, int life_fd, int timeout_ms)
{
	const struct dial bpf = { .deploy = d, .to = DEPLOY_BPF, .timeout_ms = timeout_ms };
	struct peer *peer = NULL;

	deploy_init(d);
	d->run_dir = run_dir;
	d->life_fd = life_fd;
	log_init("prof", LOG_WARNING);
	cr_redirect_stderr();
	const int r = dial_peer(&bpf, (struct peer_config){ .route = BUSROUTE_ROWS }, &peer);

	fflush(stderr);
	cr_assert_null(peer);
	return r;
}

static void assert_said(const char *first, const char *second)
{
	char want[512], *lines[2] = { 0 };

	for (int i = 0; i < 2; i++)
		if ((i ? second : first) &&
		    asprintf(&lines[i], i ? "prof: error: %s: %s\n" : "prof: warning: %s: %s\n",
			     run_dir, i ? second : first) < 0)
			abort();
	snprintf(want, sizeof(want), "%s%s", lines[0] ? lines[0] : "", lines[1] ? lines[1] : "");
	cr_assert_stderr_eq_str(want);
	free(lines[0]);
	free(lines[1]);
}

Test(dial, waiting_for_a_peer_is_logged)
{
	const uint64_t since = clock_mono_ns();
	struct deploy d;

	cr_assert_eq(dial_nobody(&d, -1, 1300), -ETIMEDOUT);
	cr_assert_geq(clock_mono_ns() - since, 1300u * 1000000u);
	assert_said("prof-bpf is not there yet; waiting for it",
		    "cannot reach prof-bpf there: Connection timed out; start it");
}

Test(dial, under_a_launcher_only_giving_up_is_logged)
{
	struct deploy d;

	cr_assert_eq(dial_nobody(&d, 0, 1100), -ETIMEDOUT);
	assert_said(NULL, "cannot reach prof-bpf there: Connection timed out; start it");
}
