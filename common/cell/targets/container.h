/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The container in which a process runs, according to the path of its cgroup. Users who can make
 * cgroups choose their names, so these are only labels. The names of containers' cgroups follow one
 * rule (bpf/target/container.h). Pure.
 *
 * The shapes of both cgroup versions, with either driver of kubelet, and as another cgroup
 * namespace shows them:
 *
 *   /docker/ID                                     /system.slice/docker-ID.scope
 *   /machine.slice/libpod-ID.scope/container       /system.slice/web.service/libpod-payload-ID
 *   /kubepods/burstable/podUID/ID                  /ecs/TASK/ID, /ecs/TASK/TASK-NUMBER
 *   /kubepods.slice/…/kubepods-burstable-podUID.slice/cri-containerd-ID.scope, …/crio-ID.scope
 *   /system.slice/containerd.service/kubepods-burstable-podUID.slice:cri-containerd:ID
 *   /machine.slice/machine-NAME.scope              /machine.slice/systemd-nspawn@NAME.service
 *   /lxc/NAME, /lxc.payload.NAME                   /../cri-containerd-ID.scope
 *   /user.slice/user-1000.slice/user@1000.service/app.slice/web.service
 */
#ifndef COMMON_CELL_TARGETS_CONTAINER_H
#define COMMON_CELL_TARGETS_CONTAINER_H

#include "common/base/bytes/str.h"

#define CONTAINER_POD_UID 36

struct container {
	struct str id;	 /* a part of the path; empty: it is in no container with an id */
	struct str name; /* the same for machines of systemd and LXC, which have a name instead */
	/* a UUID with dashes, or 32 hex digits for a static pod; empty: it is in no pod */
	char pod_uid[CONTAINER_POD_UID];
	uint8_t pod_uid_len;
	/* The systemd service that it belongs to: a part of the path, without ".service", with
	 * systemd's escapes. Empty: none, or only that of an engine or of a user's manager. */
	struct str service;
};

void container_parse(struct str cgroup, struct container *ret);

#define CONTAINER_LEAST 12 /* digits that identify a container */

/* Whether this cgroup belongs to the container whose id begins with `text`. name: the last
 * component of the cgroup's path. */
bool container_matches(const char *name, const char *text);
/* Whether this can be the beginning of an id: it must have at least CONTAINER_LEAST digits. */
bool container_is_id(const char *text);

#endif
