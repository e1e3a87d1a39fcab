/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-bpf/checks/checks.h"

#include <cap-ng.h>
#include <cpuid.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/vfs.h>
#include <unistd.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include "common/base/files/smallfile.h"
#include "common/cell/confine/landlock.h"
#include "common/cell/confine/namespace.h"
#include "common/cell/confine/seccomp.h"
#include "tools/prof-bpf/checks/kernel.h"
#include "tools/prof-bpf/checks/probes.h"
#include "tools/prof-bpf/kernel/kallsyms.h"

#define PROCESSES_LOOKED_AT 1000
#define HIDDEN_SHARE 10 /* a tenth of the processes may be hidden, since a few always are */
#define MEMLOCK_LEAST (16ull << 20)
#define MEMLOCK_WANTED (128ull << 20)

struct look {
	const struct checks_config *config;
	struct utsname uts;
	struct kernel_version version;
	bool version_known, seccomp;
	const char *container; /* "Docker" …; NULL: no container that is known */
	char lockdown[80];     /* contents of the file without the line feed; empty: there is
			        * none */
};

/* --- reading --- */

/* Reads the first line of a small file. Returns false if it cannot be read or is empty. */
static bool read_line(const char *path, char *ret, size_t size)
{
	(void)smallfile_read(AT_FDCWD, path, ret, size);
	ret[strcspn(ret, "\n")] = '\0';
	return ret[0] != '\0';
}

static bool read_number(const char *path, long *ret)
{
	char text[64], *end;

	if (!read_line(path, text, sizeof(text)))
		return false;
	*ret = strtol(text, &end, 10);
	return end != text;
}

static bool has_seccomp(void)
{
	char text[4096];

	(void)smallfile_read(AT_FDCWD, "/proc/self/status", text, sizeof(text));
	const char *at = strstr(text, "\nSeccomp:");

	return at && strtol(at + 9, NULL, 10) != 0;
}

static const char *find_container(void)
{
	static const struct {
		const char *path, *name;
	} marks[] = {
		{ "/var/run/secrets/kubernetes.io", "Kubernetes" },
		{ "/run/.containerenv", "Podman" },
		{ "/.dockerenv", "Docker" },
		{ "/dev/.lxc", "LXC" },
		{ "/run/host/container-manager", "a container" },
	};

	for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]); i++)
		if (access(marks[i].path, F_OK) == 0)
			return marks[i].name;
	return NULL;
}

static bool have_cap(unsigned cap)
{
	return capng_have_capability(CAPNG_EFFECTIVE, cap);
}

/* --- the kernel --- */

/* Returns whether the code of copy_from_user_nofault has the bug: 1 or 0; -errno if it cannot be
 * read. */
static int look_at_code(void)
{
	struct kernel_symbols s = { 0 };
	uint8_t code[PROBE_CODE_MAX];
	char *line = NULL;
	size_t room = 0;
	ssize_t n;
	FILE *f = fopen("/proc/kallsyms", "re");

	if (!f)
		return -errno;
	for (n = getline(&line, &room, f); n > 0 && !strchr(line, '[');
	     n = getline(&line, &room, f)) {
		line[n - 1] = '\0';
		kernel_symbols_line(&s, line);
	}
	free(line);
	fclose(f);
	if (!s.function)
		return -ENOENT;
	const int r = probe_kernel_memory(s.function, sizeof(code), code);

	return r ? r : kernel_code_locks_up(&s, code, sizeof(code));
}

static void check_kernel(struct look *l, struct check *c)
{
	static const char text[] =
		"reading user memory in an interrupt can hang this kernel (Linux 5.18 to 6.3)";

	check_found(c, "Linux %s %s", l->uts.release, l->uts.machine);
	if (strcmp(l->uts.machine, "x86_64") != 0)
		check_fail(c, "profpipe samples only x86-64", "run it on an x86-64 host");
	if (!l->version_known || !kernel_may_lock_up(&l->version))
		return;
	const int code = look_at_code();
	const bool bad = code < 0 ? kernel_locks_up(&l->version) : code > 0;

	if (bad && l->config->ignore_unsafe_kernel)
		check_degrade(c, text, "boot Linux 6.1.36, 6.3.10, 6.4 or later");
	else if (bad)
		check_fail(c, text,
			   "boot Linux 6.1.36, 6.3.10, 6.4 or later, "
			   "or take the risk with --ignore-unsafe-kernel");
}

static void check_virtual(struct look *l, struct check *c)
{
	unsigned a, b, x, d;
	char name[13] = "";

	if (!__get_cpuid(1, &a, &b, &x, &d) || !(x & 1u << 31)) {
		check_found(c, "none");
		return;
	}
	__cpuid(0x40000000, a, b, x, d);
	memcpy(name, &b, 4);
	memcpy(name + 4, &x, 4);
	memcpy(name + 8, &d, 4);
	for (char *p = name; *p; p++)
		if (*p <= ' ' || *p > '~')
			*p = '\0';
	check_found(c, "%s", name[0] ? name : "of an unknown kind");
}

static void check_container(struct look *l, struct check *c)
{
	check_found(c, "%s", l->container ? l->container : "none");
}

/* --- namespaces and /proc --- */

static void check_pid_namespace(struct look *l, struct check *c)
{
	const int first = namespace_is_first(NAMESPACE_PID);

	check_found(c, first == NAMESPACE_FIRST	  ? "the host's"
		       : first == NAMESPACE_OTHER ? "not the host's"
						  : "not known, without /proc");
	if (first == NAMESPACE_OTHER)
		check_degrade(c, "processes outside of it",
			      l->container
				      ? "run it in the host's: docker run --pid=host, hostPID: true"
				      : "nsenter -t PID -p, by a process outside, or run it "
					"outside");
}

static void check_user_namespace(struct look *l, struct check *c)
{
	const int first = namespace_is_first(NAMESPACE_USER);

	check_found(c, first == NAMESPACE_FIRST	  ? "the host's"
		       : first == NAMESPACE_OTHER ? "not the host's"
						  : "not known, without /proc");
	if (first == NAMESPACE_OTHER)
		check_fail(
			c, "its capabilities do not count for sampling",
			"run it outside, as the host's root (rootless containers cannot sample)");
}

/* A time namespace without offsets is as good as the host's. The file is missing on a kernel
 * without time namespaces. */
static void check_time_namespace(struct look *l, struct check *c)
{
	FILE *f = fopen("/proc/self/timens_offsets", "re");
	char line[128];
	bool moved = false;

	while (f && fgets(line, sizeof(line), f)) {
		char *at = line + strcspn(line, " \t");
		const long long s = strtoll(at, &at, 10), ns = strtoll(at, NULL, 10);

		moved |= s || ns;
	}
	if (f)
		fclose(f);
	check_found(c, moved ? "not the host's, with clocks of its own" : "the host's clocks");
	if (moved)
		check_fail(c, "start times of processes differ from those in samples",
			   "nsenter -t 1 -T, by a process outside, or run it outside");
}

/* Counts the processes whose mappings this process may not read, and all processes. Kernel threads
 * have no mappings, and are not counted. */
static unsigned count_hidden(unsigned *ret_all)
{
	DIR *d = opendir("/proc");
	unsigned hidden = 0;

	*ret_all = 0;
	for (struct dirent *e = d ? readdir(d) : NULL; e && *ret_all < PROCESSES_LOOKED_AT;
	     e = readdir(d)) {
		char path[300];

		if (e->d_name[0] < '1' || e->d_name[0] > '9')
			continue;
		snprintf(path, sizeof(path), "/proc/%s/maps", e->d_name);
		const int fd = open(path, O_RDONLY | O_CLOEXEC);

		*ret_all += fd >= 0 || errno == EACCES || errno == EPERM;
		hidden += fd < 0 && (errno == EACCES || errno == EPERM);
		if (fd >= 0)
			close(fd);
	}
	if (d)
		closedir(d);
	return hidden;
}

static void check_proc(struct look *l, struct check *c)
{
	struct statfs fs;
	struct stat st;
	char target[32] = "";
	const ssize_t n = readlink("/proc/self", target, sizeof(target) - 1);

	if (statfs("/proc", &fs) < 0 || fs.f_type != PROC_SUPER_MAGIC || n <= 0) {
		check_found(c, "not mounted");
		check_fail(c, "profpipe cannot follow processes", "mount -t proc proc /proc");
		return;
	}
	if (strtol(target, NULL, 10) != getpid()) {
		check_found(c, "of another pid namespace");
		check_fail(c, "its process ids are those of another namespace",
			   "mount -t proc proc /proc");
		return;
	}
	/* One of init and kthreadd may be hidden from all users. access(2) is not used, since it
	 * would check the rights of a user without capabilities. */
	if (stat("/proc/1", &st) < 0 && errno == ENOENT && stat("/proc/2", &st) < 0) {
		check_found(c, "mounted with hidepid, which hides processes");
		check_fail(c, "profpipe cannot follow hidden processes",
			   "grant CAP_SYS_PTRACE, or mount -o remount,hidepid=0 /proc");
		return;
	}
	if (l->config->part == CHECKS_START) {
		check_found(c, "mounted");
		return;
	}
	unsigned all, hidden = count_hidden(&all);

	check_found(c, "mounted; %u of %u processes can be read", all - hidden, all);
	if (hidden > all / HIDDEN_SHARE)
		check_degrade(c, "the user part of the others' stacks",
			      "grant CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH");
}

/* --- rights --- */

/* If root lacks these rights, the process that started the tool took them away. */
static const char *rights_remedy(const struct look *l)
{
	if (!l->config->by_root)
		return l->config->no_new_privs
			       ? "run it as root, started from outside: no_new_privs is set here, "
				 "so that sudo gives no rights"
			       : "run it as root, by sudo";
	return l->container ? "docker run --cap-add BPF --cap-add PERFMON, "
			      "or capabilities: add: [BPF, PERFMON]"
			    : "run it where root has them";
}

static void check_capabilities(struct look *l, struct check *c)
{
	static const struct {
		unsigned cap;
		const char *name, *lost;
	} wanted[] = {
		{ CAP_SYS_PTRACE, "SYS_PTRACE",
		  "mappings of other users' processes, and names of interpreted frames" },
		{ CAP_DAC_READ_SEARCH, "DAC_READ_SEARCH",
		  "rows and names of files that others may not read" },
		{ CAP_CHECKPOINT_RESTORE, "CHECKPOINT_RESTORE",
		  "rows and names of files that were deleted or replaced" },
		{ CAP_SYSLOG, "SYSLOG", "names of kernel functions before Linux 6.0" },
	};
	char missing[CHECK_TEXT] = "", lost[CHECK_TEXT] = "", remedy[CHECK_TEXT];
	size_t m = 0, n = 0;
	const bool all = have_cap(CAP_SYS_ADMIN), bpf = all || have_cap(CAP_BPF),
		   perfmon = all || have_cap(CAP_PERFMON);

	if (!bpf || !perfmon) {
		check_found(c, "without %s%s%s", bpf ? "" : "CAP_BPF",
			    bpf || perfmon ? "" : " and ", perfmon ? "" : "CAP_PERFMON");
		check_fail(c, "the kernel requires them for sampling", rights_remedy(l));
		return;
	}
	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
		/* CAP_SYS_ADMIN includes this one. */
		if (have_cap(wanted[i].cap) || (all && wanted[i].cap == CAP_CHECKPOINT_RESTORE))
			continue;
		m += (size_t)snprintf(missing + m, sizeof(missing) - m, "%sCAP_%s", m ? " " : "",
				      wanted[i].name);
		n += (size_t)snprintf(lost + n, sizeof(lost) - n, "%s%s", n ? "; " : "",
				      wanted[i].lost);
	}
	check_found(c,
		    m ? "without %s"
		      : "BPF PERFMON SYS_PTRACE CHECKPOINT_RESTORE DAC_READ_SEARCH SYSLOG",
		    missing);
	snprintf(remedy, sizeof(remedy), "grant %s", missing);
	if (m)
		check_degrade(c, lost, remedy);
}

static void check_lockdown(struct look *l, struct check *c)
{
	check_found(c, "%s", l->lockdown[0] ? l->lockdown : "none found");
	if (strstr(l->lockdown, "[confidentiality]"))
		check_fail(c, "BPF may not read kernel memory",
			   "boot with lockdown=integrity, or without the confidentiality mode");
}

static void check_lsm(struct look *l, struct check *c)
{
	char all[CHECK_TEXT / 2], own[CHECK_TEXT / 2 - 20];

	if (!read_line("/sys/kernel/security/lsm", all, sizeof(all)))
		snprintf(all, sizeof(all), "unknown (securityfs is not mounted)");
	if (!read_line("/proc/self/attr/current", own, sizeof(own)))
		snprintf(own, sizeof(own), "none");
	check_found(c, "%s; own label: %s", all, own);
}

static void check_seccomp(struct look *l, struct check *c)
{
	check_found(c, l->seccomp ? "a filter is in place" : "none");
}

/* Checks what confines the tools without rights, besides their users. */
static void check_cells(struct look *l, struct check *c)
{
	const int landlock = landlock_version();
	const bool filters = seccomp_available();

	if (landlock > 0)
		check_found(c, "seccomp %s; Landlock %d", filters ? "filters" : "has no filters",
			    landlock);
	else
		check_found(c, "seccomp %s; no Landlock", filters ? "filters" : "has no filters");
	if (!filters)
		check_degrade(
			c, "a compromised parser can make any system call",
			"boot a kernel with CONFIG_SECCOMP_FILTER=y, or allow seccomp(2) here");
	else if (landlock < 0)
		check_degrade(c, "one of the walls around the parsers; the others stand",
			      "boot Linux 5.13 or later with landlock among lsm=");
}

/* Returns the remedy if a call is refused although its capabilities are there. */
static const char *refused_remedy(const struct look *l)
{
	if (namespace_is_first(NAMESPACE_USER) == NAMESPACE_OTHER)
		return "run it outside of the user namespace";
	if (l->seccomp)
		return l->container ? "docker run --security-opt seccomp=unconfined, "
				      "or seccompProfile: Unconfined"
				    : "run it without the seccomp filter that its parent set";
	return "ask the kernel's log (dmesg) which LSM refuses it, and allow it there";
}

static const char *refused_why(const struct look *l, int r)
{
	if (namespace_is_first(NAMESPACE_USER) == NAMESPACE_OTHER && (r == -EPERM || r == -EACCES))
		return "the kernel requires rights outside of this user namespace";
	if (l->seccomp && (r == -EPERM || r == -EACCES || r == -ENOSYS))
		return "a seccomp filter or an LSM refuses it";
	if (r == -ENOSYS)
		return "the kernel was built without it";
	return "the kernel or an LSM refuses it";
}

static void check_event(struct look *l, struct check *c)
{
	const int r = l->config->clock, cycles = l->config->cycles;
	long paranoid = 0;

	(void)read_number("/proc/sys/kernel/perf_event_paranoid", &paranoid);
	if (!r && !cycles) {
		check_found(c, "hardware cycles");
	} else if (!r) {
		check_found(c, "cpu-clock; no hardware cycles: %s", strerror(-cycles));
		check_degrade(
			c, "code with interrupts off is attributed to where they are enabled again",
			"give the virtual machine a PMU (qemu: -cpu host,pmu=on), "
			"or run it on metal");
	} else {
		check_found(c, "perf_event_open: %s", strerror(-r));
		if ((r == -EACCES || r == -EPERM) && !have_cap(CAP_PERFMON) &&
		    !have_cap(CAP_SYS_ADMIN))
			check_fail(c, "CAP_PERFMON is missing", rights_remedy(l));
		else if ((r == -EACCES || r == -EPERM) && paranoid > 2 && !have_cap(CAP_SYS_ADMIN))
			check_fail(c,
				   "kernel.perf_event_paranoid above 2 requires CAP_SYS_ADMIN here",
				   "sysctl kernel.perf_event_paranoid=2");
		else
			check_fail(c, refused_why(l, r), refused_remedy(l));
	}
}

static void check_bpf(struct look *l, struct check *c)
{
	const int map = probe_map(), r = map ? map : probe_program();

	if (!r) {
		check_found(c, "a ring buffer was made and a program loaded");
		return;
	}
	check_found(c, "%s: %s", map ? "BPF_MAP_CREATE" : "BPF_PROG_LOAD", strerror(-r));
	if ((r == -EPERM || r == -EACCES) && !have_cap(CAP_SYS_ADMIN) &&
	    (!have_cap(CAP_BPF) || !have_cap(CAP_PERFMON)))
		check_fail(c, "CAP_BPF and CAP_PERFMON are needed", rights_remedy(l));
	else if (map == -EINVAL)
		check_fail(c, "the kernel has no ring buffers", "boot Linux 5.10 or later");
	else if (strstr(l->lockdown, "[confidentiality]"))
		check_fail(c, "lockdown refuses programs that read kernel memory",
			   "boot with lockdown=integrity");
	else if (map == -EPERM && l->version_known && kernel_older(&l->version, 5, 11, 0) &&
		 !l->seccomp)
		check_fail(c, "the memlock limit is too low", "ulimit -l unlimited");
	else
		check_fail(c, refused_why(l, r), refused_remedy(l));
}

/* --- what the kernel reports --- */

static void check_btf(struct look *l, struct check *c)
{
	uint16_t magic = 0;
	const int fd = open("/sys/kernel/btf/vmlinux", O_RDONLY | O_CLOEXEC);
	const bool there = fd >= 0 && read(fd, &magic, sizeof(magic)) == sizeof(magic) &&
			   magic == BTF_MAGIC;

	if (fd >= 0)
		close(fd);
	if (there) {
		check_found(c, "/sys/kernel/btf/vmlinux");
		return;
	}
	/* libbpf also looks for BTF elsewhere. */
	struct btf *other = btf__load_vmlinux_btf();

	if (other) {
		check_found(c, "from the kernel's file");
		btf__free(other);
		return;
	}
	check_found(c, "none in /sys/kernel/btf/vmlinux");
	check_fail(c, "the BPF programs cannot be adapted to this kernel",
		   access("/sys/kernel", F_OK) ? "mount -t sysfs sysfs /sys"
					       : "boot a kernel with CONFIG_DEBUG_INFO_BTF=y, "
						 "or make /sys/kernel/btf visible here");
}

static void check_kernel_names(struct look *l, struct check *c)
{
	struct kallsyms *k = NULL;
	struct kallsyms_figures f = { 0 };
	const int r = kallsyms_new(&(struct kallsyms_config){ 0 }, &k);
	long hidden = 0;

	if (!r)
		kallsyms_figures(k, &f);
	if (!r && kallsyms_available(k)) {
		check_found(c, "%zu functions, %s", f.symbols,
			    f.by_iterator ? "by a BPF iterator" : "of /proc/kallsyms");
	} else {
		(void)read_number("/proc/sys/kernel/kptr_restrict", &hidden);
		check_found(c, r ? "/proc/kallsyms: %s" : "/proc/kallsyms shows no addresses",
			    strerror(-r));
		check_degrade(c, "names of kernel functions",
			      hidden > 1 ? "sysctl kernel.kptr_restrict=1"
			      : r	 ? "make /proc/kallsyms readable"
					 : "grant CAP_SYSLOG");
	}
	kallsyms_free(k);
}

static void check_tracefs(struct look *l, struct check *c)
{
	struct statfs fs;
	const bool there =
		(statfs("/sys/kernel/tracing", &fs) == 0 && fs.f_type == TRACEFS_MAGIC) ||
		(statfs("/sys/kernel/debug/tracing", &fs) == 0 && fs.f_type == TRACEFS_MAGIC);

	check_found(c, there ? "mounted; not needed" : "not mounted; not needed");
}

/* --- limits and switches --- */

static void show_sysctl(struct check *c, const char *path, const char *note)
{
	long value;

	if (read_number(path, &value))
		check_found(c, "%ld%s%s", value, note[0] ? "; " : "", note);
	else
		check_found(c, "unknown: %s cannot be read", path);
}

static void check_paranoid(struct look *l, struct check *c)
{
	/* The event at the start may have been opened with more rights. */
	const int r = l->config->clock ? 0 : probe_event(0);
	const bool binds = r == -EACCES || r == -EPERM;

	show_sysctl(c, "/proc/sys/kernel/perf_event_paranoid",
		    binds ? "requires CAP_SYS_ADMIN here" : "does not restrict CAP_PERFMON");
	if (binds)
		check_degrade(c, "samples of cpus that come online later",
			      "sysctl kernel.perf_event_paranoid=2");
}

static void check_kptr(struct look *l, struct check *c)
{
	show_sysctl(c, "/proc/sys/kernel/kptr_restrict", "");
}

static void check_unprivileged(struct look *l, struct check *c)
{
	show_sysctl(c, "/proc/sys/kernel/unprivileged_bpf_disabled", "does not restrict CAP_BPF");
}

static void check_jit(struct look *l, struct check *c)
{
	long value;

	show_sysctl(c, "/proc/sys/net/core/bpf_jit_enable", "");
	if (read_number("/proc/sys/net/core/bpf_jit_enable", &value) && value == 0)
		check_degrade(c, "cpu time: a sample costs several times as much",
			      "sysctl net.core.bpf_jit_enable=1");
}

static void check_memlock(struct look *l, struct check *c)
{
	struct rlimit m;

	if (getrlimit(RLIMIT_MEMLOCK, &m) < 0 || m.rlim_cur == RLIM_INFINITY)
		check_found(c, "unlimited");
	else
		check_found(c, "%llu KiB%s", (unsigned long long)m.rlim_cur >> 10,
			    !l->version_known || kernel_older(&l->version, 5, 11, 0)
				    ? ""
				    : "; does not limit BPF memory since Linux 5.11");
	if (!l->version_known || !kernel_older(&l->version, 5, 11, 0) ||
	    m.rlim_cur >= MEMLOCK_WANTED)
		return;
	if (m.rlim_cur < MEMLOCK_LEAST)
		check_fail(c, "no room for the BPF maps", "ulimit -l unlimited");
	else
		check_degrade(c, "stacks, if unwind tables find no room", "ulimit -l unlimited");
}

/* --- all of them --- */

/* The most obvious reason comes first. */
static const struct {
	const char *name;
	void (*look)(struct look *l, struct check *c);
	bool at_start;
} checks[] = {
	{ "kernel", check_kernel, true },
	{ "virtual machine", check_virtual, false },
	{ "container", check_container, false },
	{ "user namespace", check_user_namespace, true },
	{ "pid namespace", check_pid_namespace, true },
	{ "time namespace", check_time_namespace, true },
	{ "/proc", check_proc, true },
	{ "capabilities", check_capabilities, true },
	{ "lockdown", check_lockdown, true },
	{ "LSM", check_lsm, false },
	{ "seccomp", check_seccomp, false },
	{ "cells", check_cells, false },
	{ "perf_event_paranoid", check_paranoid, false },
	{ "kptr_restrict", check_kptr, false },
	{ "unprivileged_bpf_disabled", check_unprivileged, false },
	{ "bpf_jit_enable", check_jit, false },
	{ "memlock", check_memlock, true },
	{ "tracefs", check_tracefs, false },
	{ "BTF", check_btf, true },
	{ "perf events", check_event, true },
	{ "BPF", check_bpf, true },
	{ "kernel names", check_kernel_names, false },
};

unsigned checks_run(const struct checks_config *config,
		    void (*take)(void *ctx, const struct check *c), void *ctx)
{
	struct look l = { .config = config,
			  .seccomp = has_seccomp(),
			  .container = find_container() };
	unsigned fatal = 0;

	uname(&l.uts);
	l.version_known = kernel_version_parse(l.uts.release, l.uts.version, &l.version);
	(void)read_line("/sys/kernel/security/lockdown", l.lockdown, sizeof(l.lockdown));
	capng_get_caps_process();
	/* Users cannot use libbpf's messages about probes. */
	libbpf_set_print(NULL);
	for (size_t i = 0; i < sizeof(checks) / sizeof(checks[0]); i++) {
		struct check c;

		if (config->part == CHECKS_START && !checks[i].at_start)
			continue;
		check_init(&c, checks[i].name);
		checks[i].look(&l, &c);
		fatal += c.verdict == CHECK_FATAL;
		take(ctx, &c);
	}
	return fatal;
}
