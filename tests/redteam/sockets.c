/* SPDX-License-Identifier: Apache-2.0 */
#include <netinet/in.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>
#include "tests/redteam/attempts.h"

long connect_inet(void)
{
	struct sockaddr_in a = { .sin_family = AF_INET,
				 .sin_port = 0x1600 /* 22 */,
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

static long connect_unix(const char *path)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	const long fd = CALL(SYS_socket, AF_UNIX, SOCK_STREAM, 0);

	if (fd < 0)
		return fd;
	for (size_t i = 0; path[i] && i < sizeof(a.sun_path) - 1; i++)
		a.sun_path[i] = path[i];
	return CALL(SYS_connect, fd, &a, sizeof(a));
}

long connect_server(void)
{
	return connect_unix(takeover_orders->socket);
}

static long connect_route(const char *name)
{
	char path[192];

	append(append(path, takeover_orders->dir), name);
	return connect_unix(path);
}

long connect_rows(void)
{
	return connect_route("/bpf/rows.sock");
}

long connect_stream(void)
{
	return connect_route("/bpf/stream.sock");
}

long connect_files(void)
{
	return connect_route("/bpf/files.sock");
}

long connect_named(void)
{
	return connect_route("/export/named.sock");
}
