/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/io_uring.h>
#include <linux/perf_event.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/timex.h>
#include <termios.h>
#include <time.h>
#include "tests/redteam/attempts.h"

long load_bpf(void)
{
	const struct bpf_insn insns[] = { { .code = 0xb7 }, { .code = 0x95 } };
	union bpf_attr a = { .prog_type = BPF_PROG_TYPE_SOCKET_FILTER,
			     .insns = (uint64_t)insns,
			     .insn_cnt = 2,
			     .license = (uint64_t) "GPL" };

	return CALL(SYS_bpf, BPF_PROG_LOAD, &a, sizeof(a));
}

long make_bpf_map(void)
{
	union bpf_attr a = {
		.map_type = BPF_MAP_TYPE_ARRAY, .key_size = 4, .value_size = 4, .max_entries = 1
	};

	return CALL(SYS_bpf, BPF_MAP_CREATE, &a, sizeof(a));
}

long next_btf(void)
{
	union bpf_attr a = { 0 };

	return CALL(SYS_bpf, BPF_BTF_GET_NEXT_ID, &a, sizeof(a));
}

long open_event(void)
{
	struct perf_event_attr a = { .type = PERF_TYPE_SOFTWARE,
				     .size = sizeof(a),
				     .config = PERF_COUNT_SW_CPU_CLOCK };

	return CALL(SYS_perf_event_open, &a, 0, -1, -1, 0);
}

long make_ring(void)
{
	struct io_uring_params p = { 0 };

	return CALL(SYS_io_uring_setup, 4, &p);
}

long make_userfaultfd(void)
{
	return CALL(SYS_userfaultfd, 1 /* UFFD_USER_MODE_ONLY */);
}

long make_fanotify(void)
{
	return CALL(SYS_fanotify_init, 0, 0);
}

long add_key(void)
{
	return CALL(SYS_add_key, "user", "redteam", "x", 1, -1 /* the thread's */);
}

long read_keyring(void)
{
	return CALL(SYS_keyctl, 0 /* get id */, -3 /* the session's */, 0);
}

long read_log(void)
{
	return CALL(SYS_syslog, 10 /* its size */, 0, 0);
}

long see_modules_go(void)
{
	return CALL(SYS_delete_module, "redteam_has_no_such_module", O_NONBLOCK);
}

long set_clock(void)
{
	struct timespec t;

	CALL(SYS_clock_gettime, CLOCK_REALTIME, &t);
	return CALL(SYS_clock_settime, CLOCK_REALTIME, &t);
}

long adjust_clock(void)
{
	struct timex t = { .modes = ADJ_TICK, .tick = 10000 };

	return CALL(SYS_adjtimex, &t);
}

long name_host(void)
{
	return CALL(SYS_sethostname, "redteam", 7);
}

long shared_memory(void)
{
	return CALL(SYS_shmget, 0x7265646d, 4096, 0666 | 01000 /* IPC_CREAT */);
}

long message_queue(void)
{
	const long fd = CALL(SYS_mq_open, "redteam", O_CREAT | O_RDWR, 0600, 0);

	/* A queue outlives its process, and the next run has another user. */
	if (fd >= 0)
		(void)CALL(SYS_mq_unlink, "redteam");
	return fd;
}

long io_ports(void)
{
	return CALL(SYS_ioperm, 0x80, 1, 1);
}

AS_CALL(io_level, SYS_iopl, 3)
AS_CALL(semaphores, SYS_semget, 0x7265646d, 1, 0666 | 01000 /* IPC_CREAT */)
AS_CALL(messages, SYS_msgget, 0x7265646d, 0666 | 01000)
AS_CALL(request_key, SYS_request_key, "keyring", "_uid.0", 0, -1)
AS_CALL(name_domain, SYS_setdomainname, "redteam", 7)
AS_CALL(see_quotas, SYS_quotactl, 0x800001 << 8 /* Q_SYNC */, 0, 0, 0)

long set_time_of_day(void)
{
	struct timespec t;

	CALL(SYS_clock_gettime, CLOCK_REALTIME, &t);
	const struct timeval now = { .tv_sec = t.tv_sec, .tv_usec = t.tv_nsec / 1000 };

	return CALL(SYS_settimeofday, &now, 0);
}

long make_aio(void)
{
	uint64_t context = 0;

	return CALL(SYS_io_setup, 1, &context);
}

/* --- the terminal to which its log goes --- */

AS_CALL(push_to_terminal, SYS_ioctl, 2, TIOCSTI, "x")
AS_CALL(see_keyboard, SYS_ioctl, 2, FIONREAD, &(int){ 0 })

long set_terminal(void)
{
	struct termios t;

	if (CALL(SYS_ioctl, 2, TCGETS, &t))
		return -25; /* ENOTTY: there is none */
	return CALL(SYS_ioctl, 2, TCSETS, &t);
}
