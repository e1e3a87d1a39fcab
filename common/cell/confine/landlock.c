/* SPDX-License-Identifier: Apache-2.0 */
/* Source: the kernel's Documentation/userspace-api/landlock.rst, "Compatibility". The headers of
 * Debian 12 know only version 2, so later constants are here. */
#include "common/cell/confine/landlock.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FS_REFER (1ull << 13)
#define FS_TRUNCATE (1ull << 14)
#define FS_IOCTL_DEV (1ull << 15)
#define FS_FIRST (LANDLOCK_ACCESS_FS_MAKE_SYM * 2 - 1)
#define FS_MOST ((1ull << 24) - 1) /* far more than exist */
#define NET_TCP 3ull		   /* bind and connect */
#define CONNECT_TCP 2ull
#define RULE_NET_PORT 2u
#define SCOPES 3ull /* abstract sockets, signals */
#define SMALL_MOST 255ull
#define ALL_THREADS 8u /* LANDLOCK_RESTRICT_SELF_TSYNC, of version 8 */

struct ruleset {
	uint64_t fs, net, scopes;
};

static int make_ruleset(const struct ruleset *r, int version)
{
	const size_t size = version < 4 ? sizeof(r->fs) : version < 6 ? 2 * 8 : 3 * 8;

	return (int)syscall(SYS_landlock_create_ruleset, r, size, 0);
}

int landlock_version(void)
{
	const long r = syscall(SYS_landlock_create_ruleset, NULL, 0,
			       LANDLOCK_CREATE_RULESET_VERSION);

	return r > 0 ? (int)r : -EOPNOTSUPP;
}

static struct ruleset known_to(int version)
{
	struct ruleset r = { .fs = FS_FIRST };

	if (version >= 2)
		r.fs |= FS_REFER;
	if (version >= 3)
		r.fs |= FS_TRUNCATE;
	if (version >= 4)
		r.net = NET_TCP;
	if (version >= 5)
		r.fs |= FS_IOCTL_DEV;
	if (version >= 6)
		r.scopes = SCOPES;
	return r;
}

static bool is_accepted(const struct ruleset *r, int version)
{
	const int fd = make_ruleset(r, version);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

/* Sets *field to as many low bits, at first `most`, as the kernel accepts: the kernel numbers
 * rights in the order in which it introduces them. */
static void widen(struct ruleset *r, uint64_t *field, uint64_t most, int version)
{
	const uint64_t known = *field;

	for (*field = most; *field > known && !is_accepted(r, version);)
		*field >>= 1;
	if (*field < known)
		*field = known;
}

static uint64_t bits_of(enum landlock_rights rights)
{
	switch (rights) {
	case LANDLOCK_SOCKETS:
		return LANDLOCK_ACCESS_FS_MAKE_SOCK | LANDLOCK_ACCESS_FS_REMOVE_FILE;
	case LANDLOCK_NOTHING:
	case LANDLOCK_NO_FILES:
		break;
	}
	return 0;
}

static int add_place(int ruleset, int fd, uint64_t rights)
{
	const struct landlock_path_beneath_attr below = { .allowed_access = rights,
							  .parent_fd = fd };

	return syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &below, 0)
		       ? -errno
		       : 0;
}

static int grant(int ruleset, enum landlock_rights rights, const char *folder)
{
	const int fd = open(folder, O_PATH | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	const int r = add_place(ruleset, fd, bits_of(rights));

	close(fd);
	return r;
}

/* Enters the domain and closes the ruleset. */
static int enter(int ruleset, int version)
{
	const int r = syscall(SYS_landlock_restrict_self, ruleset, version >= 8 ? ALL_THREADS : 0)
			      ? -errno
			      : 0;

	close(ruleset);
	return r;
}

int landlock_enter(enum landlock_rights rights, const char *folder)
{
	const int version = landlock_version();

	if (version < 0)
		return version;
	struct ruleset rules = known_to(version);

	if (rights == LANDLOCK_NOTHING) {
		widen(&rules, &rules.fs, FS_MOST, version);
		if (version >= 4)
			widen(&rules, &rules.net, SMALL_MOST, version);
		if (version >= 6)
			widen(&rules, &rules.scopes, SMALL_MOST, version);
	}
	const int fd = make_ruleset(&rules, version);
	int r = fd < 0 ? -errno : 0;

	if (!r && folder)
		r = grant(fd, rights, folder);
	if (!r)
		return enter(fd, version);
	if (fd >= 0)
		close(fd);
	return r;
}

/* The rights for a place, as far as this version supports them. A file has none of the rights of a
 * folder. */
static int rights_of(const struct landlock_place *p, uint64_t known, uint64_t *ret)
{
	uint64_t rights = LANDLOCK_ACCESS_FS_READ_FILE;
	struct stat st;

	if (fstat(p->fd, &st))
		return -errno;
	if (S_ISDIR(st.st_mode))
		rights |= LANDLOCK_ACCESS_FS_READ_DIR;
	if (p->use == LANDLOCK_KEEP_FILES)
		rights |= LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_MAKE_REG |
			  LANDLOCK_ACCESS_FS_REMOVE_FILE | FS_TRUNCATE;
	*ret = rights & known;
	return 0;
}

static int add_port(int ruleset, uint16_t port)
{
	const struct {
		uint64_t allowed, port;
	} rule = { CONNECT_TCP, port };

	return syscall(SYS_landlock_add_rule, ruleset, RULE_NET_PORT, &rule, 0) ? -errno : 0;
}

int landlock_enter_allowed(const struct landlock_allowed *a)
{
	const int version = landlock_version();

	if (version < 0)
		return version;
	struct ruleset rules = known_to(version);
	const uint64_t known = rules.fs;

	if (a->newest)
		widen(&rules, &rules.fs, FS_MOST, version);
	const int fd = make_ruleset(&rules, version);
	int r = fd < 0 ? -errno : 0;

	for (size_t i = 0; !r && i < a->place_count; i++) {
		uint64_t rights = 0;

		r = rights_of(&a->places[i], known, &rights);
		if (!r)
			r = add_place(fd, a->places[i].fd, rights);
	}
	for (size_t i = 0; !r && version >= 4 && i < a->port_count; i++)
		r = add_port(fd, a->ports[i]);
	if (!r)
		return enter(fd, version);
	if (fd >= 0)
		close(fd);
	return r;
}
