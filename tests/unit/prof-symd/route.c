/* SPDX-License-Identifier: Apache-2.0 */
/* prof-symd's requests over a real route, whose other end does not read for a while. */
#include "tools/prof-symd/route.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>
#include "tests/unit/peer_fixture.h"
#include "tests/unit/run_dir.h"

#define SECOND 1000000000ull
#define FULL 20		   /* a route without room after so many waits is full */
#define FILLING 1000000ull /* ids from here on are of requests that only fill the route */

static struct peer *bpf;
static struct route route;
static struct filestore files;
static const uint64_t now = 100 * SECOND;

static void connect_both(void)
{
	struct peer_config c = {
		.route = BUSROUTE_FILES, .uid = getuid(), .producer = "a test", .batch_max = 1024
	};
	struct msg m;

	make_run_dir();
	c.run_dir = run_dir;
	cr_assert_eq(peer_listen(&c, &bpf), 0);
	cr_assert_eq(peer_dial(&c, 5000, &route.files), 0);
	cr_assert_eq(hear(bpf, &m), PEER_CAME);
	cr_assert_eq(hear(route.files, &m), PEER_CAME);
}

static void part(void)
{
	peer_free(route.files);
	peer_free(bpf);
	remove_run_dir();
}

TestSuite(route, .init = connect_both, .fini = part, .timeout = 60);

static int ask(uint64_t id)
{
	struct filestore_file f = { .file = 1 };

	return route_ask_file(&route, &(struct filestore_request){ .id = id, .file = &f });
}

/* Fills the route, so that a request stays unsent, and then the batch, so that a request cannot be
 * put. Returns the id after that of the last request that was put. */
static uint64_t fill(uint64_t id, bool batch)
{
	for (int waits = 0; waits < FULL;) {
		const bool full = !batch && peer_has_unsent(route.files) &&
				  peer_flush(route.files) == -EAGAIN;
		const int r = full ? -EAGAIN : ask(id);

		cr_assert(r == 0 || r == -EAGAIN, "%d", r);
		id += r == 0;
		waits = r ? waits + 1 : 0;
		if (r)
			poll(NULL, 0, 10);
	}
	return id;
}

/* Returns the next request that prof-bpf gets; 0: there is none within half a second. */
static uint64_t next_request(void)
{
	for (int i = 0; i < 50; i++) {
		struct msg m;
		const int r = peer_recv(bpf, &m);

		cr_assert(r == 0 || r == PEER_EMPTY);
		if (r == 0) {
			cr_assert_eq(m.id, MSG_FILE_REQUEST);
			return m.file_request.id;
		}
		(void)peer_flush(route.files);
		poll(NULL, 0, 10);
	}
	return 0;
}

Test(route, a_request_arrives_exactly_if_asking_succeeded)
{
	const uint64_t end = fill(fill(1, false), true);

	for (uint64_t id = 1; id < end; id++)
		cr_assert_eq(next_request(), id);
	cr_expect_eq(next_request(), 0);
}

Test(route, a_full_route_costs_no_file_its_names)
{
	struct filestore_file put = { .file = 1 }, waiting = { .file = 2 };
	struct program *p;

	filestore_init(&files, 1u << 30, 1u << 30, route_ask_file, &route);
	files.bare = true;

	uint64_t id = fill(FILLING, false);

	cr_expect_eq(filestore_get(&files, &put, now, &p), FILESTORE_WAIT);
	cr_expect(peer_has_unsent(route.files));
	id = fill(id, true);
	cr_expect_eq(filestore_get(&files, &waiting, now, &p), FILESTORE_WAIT);
	for (int silent = 0; silent < 2;) {
		id = next_request();
		silent += !id;
		if (id && id < FILLING)
			filestore_answer(&files, id, open("/bin/true", O_RDONLY | O_CLOEXEC), now);
		filestore_tick(&files, now);
	}
	cr_expect_eq(filestore_get(&files, &put, now, &p), 0);
	cr_expect_not_null(p);
	cr_expect_eq(filestore_get(&files, &waiting, now, &p), 0);
	cr_expect_not_null(p);
	filestore_drop(&files, &put);
	filestore_drop(&files, &waiting);
}
