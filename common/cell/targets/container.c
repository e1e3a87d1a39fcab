/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sources: the documentation of cgroups in systemd (CGROUP_DELEGATION, machined); kubelet's
 * pkg/kubelet/cm/cgroup_manager_linux.go and pod_container_manager_linux.go; the task metadata of
 * ECS; podman's libpod.
 */
#include "common/cell/targets/container.h"

#include "bpf/target/container.h"

#define SHORT_UID 32 /* hex digits of a static pod's */

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

	if (s->len <= n || !str_ends(*s, tail))
		return false;
	s->len -= n;
	return true;
}

/* Takes the next component, without the slashes around it. Returns false after the last one. */
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

/* Takes a UID. Its dashes may be underscores, because a dash in a slice's name separates levels. */
static bool take_uid(struct str s, struct container *ret)
{
	if (s.len != CONTAINER_POD_UID && s.len != SHORT_UID)
		return false;
	for (uint32_t i = 0; i < s.len; i++) {
		const bool dash = s.data[i] == '-' || s.data[i] == '_',
			   dash_place = s.len == CONTAINER_POD_UID &&
					(i == 8 || i == 13 || i == 18 || i == 23);

		if (dash_place ? !dash : !container_is_hex(s.data[i]))
			return false;
	}
	for (uint32_t i = 0; i < s.len; i++)
		ret->pod_uid[i] = s.data[i] == '_' ? '-' : s.data[i];
	ret->pod_uid_len = (uint8_t)s.len;
	return true;
}

/* Removes the slices above kubepods from a slice's name: a kubelet's cgroup root, as kind sets it.
 * systemd puts the names of all these slices before that of a slice. */
static void cut_root(struct str *part)
{
	static const char name[] = "-kubepods-";
	const size_t n = sizeof(name) - 1;

	for (const char *at = part->data, *end = at + part->len; (size_t)(end - at) >= n; at++)
		if (memcmp(at, name, n) == 0) {
			part->data = at + 1;
			part->len = (uint32_t)(end - at - 1);
			return;
		}
}

/* Looks for podUID, or ROOT-kubepods-CLASS-podUID.slice, possibly followed by :RUNTIME:ID. */
static void look_for_pod(struct str part, struct container *ret)
{
	const char *colon = memchr(part.data, ':', part.len);

	if (colon)
		part.len = (uint32_t)(colon - part.data);
	if (cut_tail(&part, ".slice"))
		cut_root(&part);
	if (cut_head(&part, "kubepods-") && !str_starts(part, "pod")) {
		const char *dash = memchr(part.data, '-', part.len);

		part.len = dash ? part.len - (uint32_t)(dash + 1 - part.data) : 0;
		part.data = dash ? dash + 1 : part.data;
	}
	if (cut_head(&part, "pod"))
		(void)take_uid(part, ret);
}

/* --- containers --- */

/* Finds the id in the name of a cgroup. Returns its length; 0: it is not a container's. */
static uint32_t find_id(struct str name, const char **ret)
{
	char text[CONTAINER_NAME] = "";
	struct container_id id;

	if (name.len >= sizeof(text))
		return 0;
	if (name.len)
		memcpy(text, name.data, name.len);
	container_find(text, &id);
	*ret = name.data + id.start;
	return id.count;
}

bool container_matches(const char *name, const char *text)
{
	const size_t n = strlen(text);
	const char *id;

	return find_id(str_from(name), &id) >= n && memcmp(id, text, n) == 0;
}

bool container_is_id(const char *text)
{
	const size_t n = strlen(text), digits = strspn(text, "0123456789abcdef");

	if (digits == n)
		return n >= CONTAINER_LEAST && n <= CONTAINER_ID;
	return digits == CONTAINER_TASK && text[digits] == '-' && n <= CONTAINER_ID &&
	       strspn(text + digits + 1, "0123456789") == n - digits - 1;
}

/* systemd machines and LXC containers have a name instead of an id. `in_lxc`: the previous
 * component was /lxc. */
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

/* Services that run containers or other services, and so do not describe what runs in them. */
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
	bool in_lxc = false;
	struct str part, name;

	*ret = (struct container){ 0 };
	while (next_part(&cgroup, &part)) {
		struct str service = part;
		const char *id = NULL;
		const uint32_t n = find_id(part, &id);

		look_for_pod(part, ret);
		/* The innermost container counts. A service around a container, as of podman's
		 * quadlets, is the container's, unless it is the engine. */
		if (n) {
			ret->id = (struct str){ .data = id, .len = n };
			ret->name = (struct str){ 0 };
		} else if (find_machine(part, in_lxc, &name)) {
			ret->id = (struct str){ 0 };
			ret->name = name;
		} else if (cut_tail(&service, ".service") && !is_engine(service)) {
			ret->service = service;
		}
		in_lxc = str_eq(part, STR_LIT("lxc"));
	}
}
