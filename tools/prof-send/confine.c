/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lists of system calls come from strace runs of all protocols with libcurl 7.88 of Debian 12.
 * They also contain the calls of libc's resolver, OpenSSL and nng. Calls that these libraries can
 * do without fail with an error; all others kill the process.
 */
#include "tools/prof-send/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>
#include "common/base/command/log.h"
#include "common/cell/confine/baseline.h"
#include "common/cell/confine/landlock.h"
#include "common/cell/confine/sandbox.h"
#include "common/cell/confine/seccomp.h"

#define DNS_PORT 53
#define TYPES (SOCK_NONBLOCK | SOCK_CLOEXEC)
#define TYPE_MASK (UINT32_MAX & ~(uint32_t)TYPES)
/* Flags that allow more than reading. O_PATH needs no right, so it would reveal which files
 * exist. */
#define NOT_READING (SECCOMP_OPEN_WRITES | O_PATH)
#define OF_SOCKETS (O_APPEND | O_ASYNC | O_DIRECT | O_NOATIME)

/* TCP and UDP over both versions of IP. */
#define INTERNET(family, type) \
	CALL_IF("socket", SECCOMP_IS(0, family), SECCOMP_BITS(1, TYPE_MASK, type))

#define SETTING(level, name) CALL_IF("setsockopt", SECCOMP_IS(1, level), SECCOMP_IS(2, name))

static const struct seccomp_rule internet[] = {
	INTERNET(AF_INET, SOCK_STREAM),
	INTERNET(AF_INET, SOCK_DGRAM),
	INTERNET(AF_INET6, SOCK_STREAM),
	INTERNET(AF_INET6, SOCK_DGRAM),
	/* libc tries to list addresses of interfaces, and to reach a cache of names. */
	CALL_FAILS_IF("socket", EAFNOSUPPORT, SECCOMP_IS(0, AF_NETLINK)),
	CALL_FAILS_IF("socket", EAFNOSUPPORT, SECCOMP_IS(0, AF_UNIX)),
	/* curl uses a pair of sockets to wake itself up. */
	CALL_IF("socketpair", SECCOMP_IS(0, AF_UNIX)),
	CALL("pipe2"),
	CALL("eventfd2"),
	CALL("connect"),
	CALL("getsockname"),
	CALL("getpeername"),
	SETTING(SOL_SOCKET, SO_KEEPALIVE),
	SETTING(IPPROTO_TCP, TCP_NODELAY),
	SETTING(IPPROTO_TCP, TCP_KEEPIDLE),
	SETTING(IPPROTO_TCP, TCP_KEEPINTVL),
	SETTING(IPPROTO_TCP, TCP_KEEPCNT),
	SETTING(IPPROTO_IP, IP_RECVERR),
	SETTING(IPPROTO_IPV6, IPV6_RECVERR),
	/* Tests whether a connection is still alive. */
	CALL_IF("recvfrom", SECCOMP_BITS(3, UINT32_MAX & ~(uint32_t)MSG_DONTWAIT, MSG_PEEK)),
	CALL("sendmmsg"), /* sends two DNS queries at once */
	/* libc's resolver asks for the length of an answer. If this fails, it takes a larger
	 * buffer. */
	CALL_FAILS_IF("ioctl", ENOTTY, SECCOMP_IS(1, FIONREAD)),
	SECCOMP_END,
};

/* Name resolution opens the files that it needs; its other calls may fail. */
static const struct seccomp_rule no_paths[] = {
	CALL_FAILS("open", EACCES),
	CALL_FAILS("access", EACCES),
	CALL_FAILS("faccessat", EACCES),
	CALL_FAILS("faccessat2", EACCES),
	CALL_FAILS("stat", EACCES),
	CALL_FAILS("lstat", EACCES),
	CALL_FAILS("readlink", EACCES),
	CALL_FAILS("readlinkat", EACCES),
	CALL_FAILS_IF("newfstatat", EACCES, SECCOMP_CLEAR(3, AT_EMPTY_PATH)),
	CALL_FAILS("statx", ENOSYS),
	CALL_FAILS("unlink", EACCES),
	CALL("uname"),
	/* No file may be mapped: neither libc's modules nor its locales. */
	CALL_FAILS_IF("mmap", EACCES, SECCOMP_SET(2, PROT_EXEC)),
	CALL_FAILS_IF("mmap", EACCES, SECCOMP_CLEAR(2, PROT_EXEC), SECCOMP_CLEAR(3, MAP_ANONYMOUS)),
	SECCOMP_END,
};

static const struct seccomp_rule living[] = {
	CALL_IF("sched_getaffinity", SECCOMP_IS(0, 0)),
	CALL_IF("fcntl", SECCOMP_IS(1, F_SETFL), SECCOMP_CLEAR(2, OF_SOCKETS)),
	CALL_IF("ioctl", SECCOMP_IS(1, TCGETS)),
	CALL_FAILS("membarrier", ENOSYS),
	CALL_FAILS("futex_waitv", ENOSYS),
	CALL("getuid"),
	CALL("geteuid"),
	CALL("getgid"),
	CALL("getegid"),
	CALL_IF("prctl", SECCOMP_IS(0, PR_GET_DUMPABLE)),
	SECCOMP_END,
};

static const struct seccomp_rule opening_to_read[] = {
	CALL_IF("openat", SECCOMP_CLEAR(2, NOT_READING)),
	CALL_FAILS("unlinkat", EACCES),
	SECCOMP_END,
};

/* Like opening_to_read, plus files in the folder of the spool. seccomp cannot check the name;
 * Landlock confines it to the folder. */
struct keeping {
	struct seccomp_rule rules[6];
};

static struct keeping keeping(int folder)
{
	return (struct keeping){ {
		CALL_IF("openat", SECCOMP_CLEAR(2, NOT_READING)),
		CALL_IF("openat", SECCOMP_IS(0, folder), SECCOMP_SET(2, O_CREAT | O_EXCL)),
		CALL_IF("unlinkat", SECCOMP_IS(0, folder), SECCOMP_IS(2, 0)),
		CALL_IF("renameat", SECCOMP_IS(0, folder), SECCOMP_IS(2, folder)),
		CALL("fsync"),
		SECCOMP_END,
	} };
}

/* A process may signal itself, for abort: otherwise an abort would look like a forbidden system
 * call. */
struct itself {
	struct seccomp_rule rules[2];
};

static struct itself itself(void)
{
	return (struct itself){ { CALL_IF("tgkill", SECCOMP_IS(0, getpid())), SECCOMP_END } };
}

static void add_port(struct confine *c, uint16_t port)
{
	if (port && c->port_count < sizeof(c->ports) / sizeof(c->ports[0]))
		c->ports[c->port_count++] = port;
}

static void add_ports(struct confine *c, const struct options *o)
{
	static const char *const proxies[] = { "http_proxy", "https_proxy", "HTTPS_PROXY",
					       "all_proxy", "ALL_PROXY" };

	add_port(c, DNS_PORT);
	for (size_t i = 0; i < sizeof(proxies) / sizeof(proxies[0]); i++) {
		const char *text = getenv(proxies[i]);

		add_port(c, text && text[0] ? endpoint_proxy_port(text) : 0);
	}
	for (size_t i = 0; i < o->target_count; i++)
		add_port(c, o->targets[i].endpoint.port);
}

/* newest: also give up rights that are newer than this program. Connecting to prof-export may need
 * such a right. */
static int enter_landlock(struct confine *c, bool newest)
{
	static const char *const paths[] = { "/etc/resolv.conf", "/etc/hosts", "/etc/host.conf",
					     "/etc/gai.conf", "/etc/nsswitch.conf" };
	struct landlock_place places[sizeof(paths) / sizeof(paths[0]) + 1];
	const int version = landlock_version();
	size_t n = 0;

	if (version < 0)
		return 0;
	c->landlock = version;
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		const int fd = open(paths[i], O_PATH | O_CLOEXEC);

		if (fd >= 0)
			places[n++] = (struct landlock_place){ .fd = fd, .use = LANDLOCK_READ };
	}
	const size_t opened = n;

	if (c->spool >= 0)
		places[n++] = (struct landlock_place){ .fd = c->spool, .use = LANDLOCK_KEEP_FILES };
	const int r = landlock_enter_allowed(&(struct landlock_allowed){
		.places = places,
		.place_count = n,
		.ports = c->ports,
		.port_count = c->port_count,
		.newest = newest,
	});

	for (size_t i = 0; i < opened; i++)
		close(places[i].fd);
	return r;
}

int confine_enter(struct confine *c, const struct options *o, int spool)
{
	*c = (struct confine){ .spool = spool };
	add_ports(c, o);
	return sandbox_report(NULL, enter_landlock(c, false));
}

int confine_seal(struct confine *c)
{
	const struct itself self = itself();
	const struct keeping keep = keeping(c->spool);
	const struct seccomp_rule *const lists[] = {
		baseline_calls,	  baseline_files, baseline_sockets,
		baseline_threads, self.rules,	  living,
		internet,	  no_paths,	  c->spool >= 0 ? keep.rules : opening_to_read,
	};
	int r = enter_landlock(c, true);

	if (!r) {
		r = seccomp_enter(lists, sizeof(lists) / sizeof(lists[0]), true);
		c->calls = !r;
		r = r == -EOPNOTSUPP ? 0 : r;
	}
	if (!r)
		log_info("network: the host's; Landlock: %d; system calls: %s", c->landlock,
			 c->calls ? "limited" : "all");
	return sandbox_report(NULL, r);
}
