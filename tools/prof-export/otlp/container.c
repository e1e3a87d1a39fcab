/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sources: the documentation of cgroups in systemd (CGROUP_DELEGATION, machined); kubelet's
 * pkg/kubelet/cm/cgroup_manager_linux.go and pod_container_manager_linux.go; the task metadata of
 * ECS; podman's libpod.
 */
#include "tools/prof-export/otlp/container.h"

#define ID_LEN 64  /* hex digits, of all engines that follow Docker */
#define ECS_LEN 32 /* the same of a task of ECS */

static bool is_hex(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

static uint32_t hex_length(struct str s)
{
	uint32_t n = 0;

	while (n < s.len && is_hex(s.data[n]))
		n++;
	return n;
}

static bool cut_head(struct str *s, const char *head)
{
	const uint32_t n = (uint32_t)strlen(head);

	if (s->len <= n || !str_starts(*s, head))
		return false;
	s->data += n;
	s->len -= n;
	return true;
}

static bool cut_tail(struct str *s, const char *tail)
{
	const uint32_t n = (uint32_t)strlen(tail);

	if (s->len <= n || memcmp(s->data + s->len - n, tail, n) != 0)
		return false;
	s->len -= n;
	return true;
}

/* What follows the last `c`; all of s without one. */
static struct str behind_last(struct str s, char c)
{
	const char *at = s.len ? memrchr(s.data, c, s.len) : NULL;

	if (at) {
		s.len -= (uint32_t)(at + 1 - s.data);
		s.data = at + 1;
	}
	return s;
}

/* The next component, without the slashes around it. False behind the last. */
static bool next_part(struct str *path, struct str *ret)
{
	while (path->len && *path->data == '/') {
		path->data++;
		path->len--;
	}
	const char *end = path->len ? memchr(path->data, '/', path->len) : NULL;

	*ret = (struct str){ .data = path->data,
			     .len = end ? (uint32_t)(end - path->data) : path->len };
	path->data += ret->len;
	path->len -= ret->len;
	return ret->len > 0;
}

/* --- pods --- */

/* UID, where dashes may be underscores: a dash in a slice's name is a level of slices. */
static bool take_uid(struct str s, struct container *ret)
{
	if (s.len != CONTAINER_POD_UID && s.len != ECS_LEN)
		return false;
	for (uint32_t i = 0; i < s.len; i++) {
		const bool dash = s.data[i] == '-' || s.data[i] == '_',
			   dash_place = s.len == CONTAINER_POD_UID &&
					(i == 8 || i == 13 || i == 18 || i == 23);

		if (dash_place ? !dash : !is_hex(s.data[i]))
			return false;
	}
	for (uint32_t i = 0; i < s.len; i++)
		ret->pod_uid[i] = s.data[i] == '_' ? '-' : s.data[i];
	ret->pod_uid_len = (uint8_t)s.len;
	return true;
}

/* podUID, or kubepods-CLASS-podUID.slice, maybe with :RUNTIME:ID behind it. */
static void look_for_pod(struct str part, struct container *ret)
{
	const char *colon = memchr(part.data, ':', part.len);

	if (colon)
		part.len = (uint32_t)(colon - part.data);
	cut_tail(&part, ".slice");
	if (cut_head(&part, "kubepods-") && !str_starts(part, "pod")) {
		const char *dash = memchr(part.data, '-', part.len);

		part.len = dash ? part.len - (uint32_t)(dash + 1 - part.data) : 0;
		part.data = dash ? dash + 1 : part.data;
	}
	if (cut_head(&part, "pod"))
		(void)take_uid(part, ret);
}

/* --- containers --- */

/* A task of Fargate: 32 hex digits, a dash and a number. */
static bool is_ecs_id(struct str s)
{
	uint32_t n = ECS_LEN + 1;

	if (s.len <= n || hex_length(s) != ECS_LEN || s.data[ECS_LEN] != '-')
		return false;
	while (n < s.len && s.data[n] >= '0' && s.data[n] <= '9')
		n++;
	return n == s.len;
}

/* The id in PREFIX-ID.scope, ID, or SLICE:RUNTIME:ID. A monitor (conmon) is outside of its
 * container, and has a cgroup called like it. */
static bool find_id(struct str part, bool in_ecs, struct str *ret)
{
	if (memmem(part.data, part.len, "conmon", strlen("conmon")))
		return false;
	cut_tail(&part, ".scope");
	part = behind_last(part, ':');
	if (in_ecs && is_ecs_id(part)) {
		*ret = part;
		return true;
	}
	part = behind_last(part, '-');
	*ret = part;
	return part.len == ID_LEN && hex_length(part) == ID_LEN;
}

/* A machine of systemd or LXC has a name for an id. `in_lxc`: the part before was /lxc. */
static bool find_machine(struct str part, bool in_lxc, struct str *ret)
{
	*ret = part;
	if (cut_head(ret, "lxc.payload."))
		return true;
	if (cut_head(ret, "machine-") && cut_tail(ret, ".scope"))
		return true;
	*ret = part;
	if (cut_head(ret, "systemd-nspawn@") && cut_tail(ret, ".service"))
		return true;
	*ret = part;
	return in_lxc;
}

/* Services that run containers or other services, and say nothing of what these are. */
static bool is_engine(struct str service)
{
	static const char *const engines[] = { "docker",	"containerd",  "crio",
					       "kubelet",	"podman",      "k3s",
					       "k3s-agent",	"rke2-server", "rke2-agent",
					       "k0scontroller", "k0sworker",   "ecs" };

	for (size_t i = 0; i < sizeof(engines) / sizeof(engines[0]); i++)
		if (str_eq(service, str_from(engines[i])))
			return true;
	return str_starts(service, "user@") || str_starts(service, "systemd-nspawn@");
}

void container_parse(struct str cgroup, struct container *ret)
{
	bool in_ecs = false, in_lxc = false;
	struct str part, id;

	*ret = (struct container){ 0 };
	while (next_part(&cgroup, &part)) {
		struct str service = part;

		look_for_pod(part, ret);
		/* The innermost one counts. A service around a container is the container's, as of
		 * podman's quadlets, unless it is the engine. */
		if (find_id(part, in_ecs, &id) || find_machine(part, in_lxc, &id))
			ret->id = id;
		else if (cut_tail(&service, ".service") && !is_engine(service))
			ret->service = service;
		in_ecs = in_ecs || str_eq(part, STR_LIT("ecs"));
		in_lxc = str_eq(part, STR_LIT("lxc"));
	}
}
