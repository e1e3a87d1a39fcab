/* SPDX-License-Identifier: Apache-2.0 */
/* Containers in paths of cgroups, as engines and systemd write them. */
#include "common/cell/targets/container.h"

#include <criterion/criterion.h>

#define ID "3f4a5b6c7d8e9f00112233445566778899aabbccddeeff000102030405060708"
#define OTHER "ffffffffffffffffffffffffffffffff00000000000000000000000000000000"
#define TASK "0123456789abcdef0123456789abcdef"
#define UID "0a1b2c3d-0011-2233-4455-66778899aabb"
#define UID_UNDERSCORES "0a1b2c3d_0011_2233_4455_66778899aabb"

static void says(const char *path, const char *id, const char *pod, const char *service)
{
	struct container c;

	container_parse(str_from(path), &c);
	cr_expect(!c.name.len, "%s: a name", path);
	cr_expect(str_eq(c.id, str_from(id)), "%s: container %.*s", path, (int)c.id.len,
		  c.id.len ? c.id.data : "");
	cr_expect(str_eq((struct str){ .data = c.pod_uid, .len = c.pod_uid_len }, str_from(pod)),
		  "%s: pod %.*s", path, (int)c.pod_uid_len, c.pod_uid);
	cr_expect(str_eq(c.service, str_from(service)), "%s: service %.*s", path,
		  (int)c.service.len, c.service.len ? c.service.data : "");
}

Test(container, engines_with_either_driver_are_known)
{
	says("/docker/" ID, ID, "", "");
	says("/system.slice/docker-" ID ".scope", ID, "", "");
	says("/default/" ID, ID, "", "");
	says("/system.slice/nerdctl-" ID ".scope", ID, "", "");
	says("/machine.slice/libpod-" ID ".scope", ID, "", "");
	says("/machine.slice/libpod-" ID ".scope/container", ID, "", "");
	says("/libpod_parent/libpod-" ID, ID, "", "");
	says("/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" ID ".scope", ID, "",
	     "");
	says("/actions_job/" ID, ID, "", "");
}

Test(container, pods_with_either_driver_are_known)
{
	says("/kubepods/besteffort/pod" UID "/" ID, ID, UID, "");
	says("/kubepods/pod" UID "/" ID, ID, UID, "");
	says("/kubepods.slice/kubepods-pod" UID_UNDERSCORES ".slice/docker-" ID ".scope", ID, UID,
	     "");
	says("/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" UID_UNDERSCORES
	     ".slice/cri-containerd-" ID ".scope",
	     ID, UID, "");
	says("/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod" UID_UNDERSCORES
	     ".slice/crio-" ID ".scope/container",
	     ID, UID, "");
	says("/system.slice/containerd.service/kubepods-burstable-pod" UID_UNDERSCORES
	     ".slice:cri-containerd:" ID,
	     ID, UID, "");
	/* kind: a node that is itself a container. */
	says("/docker/" OTHER "/kubelet.slice/kubelet-kubepods.slice/pod" UID "/" ID, ID, UID, "");
	/* The cgroup root of kind, and one of two levels. */
	says("/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-besteffort.slice/"
	     "kubelet-kubepods-besteffort-pod" UID_UNDERSCORES ".slice/cri-containerd-" ID ".scope",
	     ID, UID, "");
	says("/a.slice/a-b.slice/a-b-kubepods.slice/a-b-kubepods-pod" UID_UNDERSCORES
	     ".slice/crio-" ID ".scope",
	     ID, UID, "");
	/* A static pod. */
	says("/kubepods/burstable/pod" TASK "/" ID, ID, TASK, "");
}

Test(container, tasks_of_ecs_are_known)
{
	says("/ecs/" TASK "/" ID, ID, "", "");
	says("/ecs/" TASK "/" TASK "-1234567890", TASK "-1234567890", "", "");
	says("/ecs/" UID "/" ID, ID, "", "");
	says("/ecs/" TASK "/" TASK "-12", TASK "-12", "", "");
	says("/ecstasks.slice/ecstasks-" TASK ".slice/docker-" ID ".scope", ID, "", "");
}

Test(container, a_cgroup_namespace_leaves_the_end_of_the_path)
{
	says("/../cri-containerd-" ID ".scope", ID, "", "");
	says("/../../pod" UID "/" ID, ID, UID, "");
	says("/../../../kubepods-besteffort-pod" UID_UNDERSCORES ".slice/crio-" ID ".scope", ID,
	     UID, "");
	says("/", "", "", "");
	says("", "", "", "");
}

static void names(const char *path, const char *name, const char *service)
{
	struct container c;

	container_parse(str_from(path), &c);
	cr_expect(str_eq(c.name, str_from(name)), "%s: %.*s", path, (int)c.name.len,
		  c.name.len ? c.name.data : "");
	cr_expect(str_eq(c.service, str_from(service)), "%s", path);
	cr_expect(!c.id.len, "%s", path);
}

Test(container, machines_have_names_in_place_of_ids)
{
	names("/machine.slice/machine-build\\x2d7.scope", "build\\x2d7", "");
	names("/machine.slice/systemd-nspawn@web.service/payload/system.slice/nginx.service", "web",
	      "nginx");
	names("/lxc/web/init.scope", "web", "");
	names("/lxc.payload.web/system.slice/cron.service", "web", "cron");
	names("/docker/" ID "/lxc/web", "web", "");
	says("/lxc/web/docker/" ID, ID, "", "");
}

Test(container, the_innermost_service_counts)
{
	says("/system.slice/nginx.service", "", "", "nginx");
	says("/system.slice/system-postgresql.slice/postgresql@15-main.service", "", "",
	     "postgresql@15-main");
	says("/user.slice/user-1000.slice/user@1000.service/app.slice/web.service", "", "", "web");
	says("/user.slice/user-1000.slice/user@1000.service/init.scope", "", "", "");
	says("/user.slice/user-1000.slice/session-3.scope", "", "", "");
	says("/docker/" ID "/system.slice/nginx.service", ID, "", "nginx");
	says("/system.slice/web.service/libpod-payload-" ID, ID, "", "web");
	says("/system.slice/docker.service", "", "", "");
	says("/system.slice/containerd.service", "", "", "");
}

Test(container, similar_paths_are_no_containers)
{
	says("/system.slice/libpod-conmon-" ID ".scope", "", "", "");
	says("/machine.slice/crio-conmon-" ID ".scope", "", "", "");
	says("/docker/short", "", "", "");
	says("/docker/" ID "0", "", "", "");
	says("/docker/" TASK "-", "", "", "");
	says("/docker/" TASK "-12x", "", "", "");
	says("/docker/x" ID, "", "", "");
	says("/docker/" ID ".slice", "", "", "");
	says("/docker-" ID "x", "", "", "");
	says("/kubepods/podnot-a-uid", "", "", "");
	says("/kubepods-pod", "", "", "");
	says("/a-kubepods-.slice", "", "", "");
	says("/-kubepods-pod.slice/a-kubepods-kubepods-pod-.slice", "", "", "");
	says("/.scope/.service/:/-/pod/machine-.scope/lxc", "", "", "");
	says("/system.slice/.service", "", "", "");
}

static void finds(const char *name, const char *text, bool is)
{
	cr_expect_eq(container_matches(name, text), is, "%s: %s", name, text);
}

Test(container, a_cgroup_is_known_by_the_beginning_of_its_id)
{
	finds(ID, ID, true);
	finds("docker-" ID ".scope", "3f4a5b6c7d8e", true);
	finds("kubepods-podx.slice:cri-containerd:" ID, "3f4a5b6c7d8e9f", true);
	finds(ID, "4a5b6c7d8e9f", false);
	finds("libpod-conmon-" ID ".scope", ID, false);
	finds("pod11111111-2222-3333-4444-555555555555", "555555555555", false);
	finds("run-u3f4a5b6c7d8e.scope", "3f4a5b6c7d8e", false);
	finds(TASK "-1234567890", TASK, true);
	finds(TASK "-1234567890", TASK "-1234567890", true);
	finds(TASK "-1234567890", TASK "-1234567891", false);
	finds("", ID, false);
}

Test(container, a_name_that_is_too_long_is_no_containers)
{
	char name[512];

	for (size_t prefix = 100; prefix < 400; prefix++) {
		memset(name, 'p', prefix);
		name[prefix] = '-';
		strcpy(name + prefix + 1, ID);
		finds(name, ID, prefix + 1 + 64 <= 238);
	}
}

Test(container, at_least_twelve_digits_are_an_id)
{
	cr_expect(container_is_id("0123456789ab") && container_is_id(ID) &&
		  container_is_id(TASK "-1") && container_is_id(TASK "-"));
	cr_expect(!container_is_id("0123456789a") && !container_is_id("") &&
		  !container_is_id(ID "0") && !container_is_id("0123456789abx") &&
		  !container_is_id(TASK "-x") && !container_is_id("0123456789AB"));
}
