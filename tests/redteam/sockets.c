/* SPDX-License-Identifier: Apache-2.0 */
#include <linux/filter.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>
#include "tests/redteam/attempts.h"

long connect_inet(void)
{
	struct sockaddr_in a = { .sin_family = AF_INET,
				 .sin_port = htons((uint16_t)takeover_orders->port),
				 .sin_addr.s_addr = 0x0100007f };
	const long fd = CALL(SYS_socket, AF_INET, SOCK_STREAM, 0);

	return fd < 0 ? fd : CALL(SYS_connect, fd, &a, sizeof(a));
}

long make_inet(void)
{
	return CALL(SYS_socket, AF_INET, SOCK_DGRAM, 0);
}

long make_inet6(void)
{
	return CALL(SYS_socket, AF_INET6, SOCK_STREAM, 0);
}

long make_netlink(void)
{
	return CALL(SYS_socket, AF_NETLINK, SOCK_RAW, 0);
}

long make_packet(void)
{
	return CALL(SYS_socket, AF_PACKET, SOCK_RAW, 0);
}

long make_vsock(void)
{
	return CALL(SYS_socket, AF_VSOCK, SOCK_STREAM, 0);
}

long make_alg(void)
{
	return CALL(SYS_socket, AF_ALG, SOCK_SEQPACKET, 0);
}

long make_pair(void)
{
	int fds[2];

	return CALL(SYS_socketpair, AF_UNIX, SOCK_STREAM, 0, fds);
}

static long connect_to(int type, const char *path, bool abstract)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	const long fd = CALL(SYS_socket, AF_UNIX, type, 0);
	size_t i = 0;

	if (fd < 0)
		return fd;
	for (; path[i] && i + abstract < sizeof(a.sun_path) - 1; i++)
		a.sun_path[i + abstract] = path[i];
	return CALL(SYS_connect, fd, &a,
		    offsetof(struct sockaddr_un, sun_path) + abstract + i + !abstract);
}

long connect_server(void)
{
	return connect_to(SOCK_STREAM, takeover_orders->socket, false);
}

long connect_abstract(void)
{
	return connect_to(SOCK_STREAM, takeover_orders->abstract, true);
}

static long connect_route(int type, const char *name)
{
	char path[192];

	append(append(path, takeover_orders->dir), name);
	return connect_to(type, path, false);
}

long connect_rows(void)
{
	return connect_route(SOCK_STREAM, "/bpf/rows.sock");
}

long connect_stream(void)
{
	return connect_route(SOCK_STREAM, "/bpf/stream.sock");
}

long connect_files(void)
{
	return connect_route(SOCK_STREAM, "/bpf/files.sock");
}

long connect_named(void)
{
	return connect_route(SOCK_STREAM, "/export/named.sock");
}

long connect_rows_lane(void)
{
	return connect_route(SOCK_SEQPACKET, "/bpf/rows.fds");
}

long connect_files_lane(void)
{
	return connect_route(SOCK_SEQPACKET, "/bpf/files.fds");
}

AS_CALL(make_bluetooth, SYS_socket, 31 /* AF_BLUETOOTH */, SOCK_RAW, 1)
AS_CALL(make_xdp, SYS_socket, 44 /* AF_XDP */, SOCK_RAW, 0)

long bind_abstract(void)
{
	const struct sockaddr_un a = { .sun_family = AF_UNIX, .sun_path = "\0redteam-is-here" };
	const long fd = CALL(SYS_socket, AF_UNIX, SOCK_STREAM, 0);

	return fd < 0 ? fd : CALL(SYS_bind, fd, &a, sizeof(a));
}

/* --- through its own sockets --- */

int next_socket(int fd)
{
	struct ucred peer;
	unsigned len = sizeof(peer);

	/* Other sockets have no peer. */
	for (; fd < SOCKETS_END; fd++, len = sizeof(peer))
		if (CALL(SYS_getsockopt, fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) == 0 && peer.pid)
			return fd;
	return -1;
}

/* Returns the result on the first socket on which it works, or else on the last. */
static long on_any_socket(long (*try)(int fd))
{
	long r = -9; /* EBADF: there is none */

	for (int fd = next_socket(0); fd >= 0; fd = next_socket(fd + 1)) {
		r = try(fd);
		if (r >= 0)
			break;
	}
	return r;
}

static long elsewhere(int fd)
{
	const struct sockaddr_un a = { .sun_family = AF_UNIX, .sun_path = "\0redteam-datagrams" };

	return CALL(SYS_sendto, fd, "x", 1, MSG_DONTWAIT | MSG_NOSIGNAL, &a,
		    offsetof(struct sockaddr_un, sun_path) + 18);
}

long send_elsewhere(void)
{
	return on_any_socket(elsewhere);
}

/* Out of band: a rarely used part of the kernel's sockets that had holes. */
static long urgent(int fd)
{
	return CALL(SYS_sendto, fd, "x", 1, MSG_OOB | MSG_DONTWAIT | MSG_NOSIGNAL, 0, 0);
}

long send_urgent(void)
{
	return on_any_socket(urgent);
}

static long pidfd(int fd)
{
	int peer = -1;
	unsigned len = sizeof(peer);
	const long r = CALL(SYS_getsockopt, fd, SOL_SOCKET, 77 /* SO_PEERPIDFD */, &peer, &len);

	return r < 0 ? r : peer;
}

long pidfd_of_peer(void)
{
	return on_any_socket(pidfd);
}

long take_descriptor_of_peer(void)
{
	const long fd = on_any_socket(pidfd);

	return fd < 0 ? fd : CALL(SYS_pidfd_getfd, fd, 2, 0);
}

static long filter(int fd)
{
	struct sock_filter pass = { .code = BPF_RET | BPF_K, .k = 0x40000 };
	const struct sock_fprog program = { 1, &pass };

	return CALL(SYS_setsockopt, fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program));
}

long filter_socket(void)
{
	return on_any_socket(filter);
}

static long enlarge(int fd)
{
	const int size = 1 << 30;

	return CALL(SYS_setsockopt, fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
}

long enlarge_socket(void)
{
	return on_any_socket(enlarge);
}

static long path(int fd)
{
	return CALL(SYS_ioctl, fd, 0x89e0 /* SIOCUNIXFILE */, 0);
}

long path_of_socket(void)
{
	return on_any_socket(path);
}
