/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-bpf/checks/probes.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <bpf/bpf.h>

/* Instructions, named like the kernel's own macros. */
#define MOVE_IMM(dst, value) \
	{ \
		.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = (dst), .imm = (int32_t)(value) \
	}
#define MOVE(dst, src) \
	{ \
		.code = BPF_ALU64 | BPF_MOV | BPF_X, .dst_reg = (dst), .src_reg = (src) \
	}
#define ADD_IMM(dst, value) \
	{ \
		.code = BPF_ALU64 | BPF_ADD | BPF_K, .dst_reg = (dst), .imm = (value) \
	}
#define CALL(helper) \
	{ \
		.code = BPF_JMP | BPF_CALL, .imm = (helper) \
	}
#define EXIT \
	{ \
		.code = BPF_JMP | BPF_EXIT \
	}
#define LOAD_64(dst, src, low, high) \
	{ .code = BPF_LD | BPF_DW | BPF_IMM, \
	  .dst_reg = (dst), \
	  .src_reg = (src), \
	  .imm = (int32_t)(low) }, \
	{ \
		.imm = (int32_t)(high) \
	}

static int give_back(int fd)
{
	if (fd < 0)
		return fd;
	close(fd);
	return 0;
}

int probe_map(void)
{
	return give_back(bpf_map_create(BPF_MAP_TYPE_RINGBUF, "probe", 0, 0,
					(uint32_t)sysconf(_SC_PAGESIZE), NULL));
}

int probe_program(void)
{
	static const struct bpf_insn code[] = {
		MOVE(BPF_REG_1, BPF_REG_10),	ADD_IMM(BPF_REG_1, -8),
		MOVE_IMM(BPF_REG_2, 8),		MOVE_IMM(BPF_REG_3, 0),
		CALL(BPF_FUNC_probe_read_user), MOVE(BPF_REG_1, BPF_REG_10),
		ADD_IMM(BPF_REG_1, -8),		MOVE_IMM(BPF_REG_2, 8),
		MOVE_IMM(BPF_REG_3, 0),		CALL(BPF_FUNC_probe_read_kernel),
		MOVE_IMM(BPF_REG_0, 0),		EXIT,
	};

	return give_back(bpf_prog_load(BPF_PROG_TYPE_PERF_EVENT, "probe", "GPL", code,
				       sizeof(code) / sizeof(code[0]), NULL));
}

int probe_event(int cycles)
{
	struct perf_event_attr a = {
		.size = sizeof(a),
		.type = cycles ? PERF_TYPE_HARDWARE : PERF_TYPE_SOFTWARE,
		.config = cycles ? (uint64_t)PERF_COUNT_HW_CPU_CYCLES
				 : (uint64_t)PERF_COUNT_SW_CPU_CLOCK,
		.disabled = 1,
	};
	const long cpus = sysconf(_SC_NPROCESSORS_CONF);
	int r = -ENODEV;

	if (cycles) {
		a.freq = 1;
		a.sample_freq = 99;
	} else {
		a.sample_period = 10000000;
	}
	for (int cpu = 0; cpu < cpus && r == -ENODEV; cpu++) {
		const long fd = syscall(SYS_perf_event_open, &a, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);

		r = fd < 0 ? -errno : give_back((int)fd);
	}
	return r;
}

int probe_kernel_memory(uint64_t addr, size_t n, uint8_t *ret)
{
	uint8_t value[PROBE_CODE_MAX];
	const uint32_t zero = 0;
	LIBBPF_OPTS(bpf_test_run_opts, run);

	if (n > sizeof(value))
		return -E2BIG;
	const int map = bpf_map_create(BPF_MAP_TYPE_ARRAY, "probe", sizeof(zero), sizeof(value), 1,
				       NULL);
	if (map < 0)
		return map;
	const struct bpf_insn code[] = {
		LOAD_64(BPF_REG_1, BPF_PSEUDO_MAP_VALUE, map, 0),
		MOVE_IMM(BPF_REG_2, n),
		LOAD_64(BPF_REG_3, 0, addr, addr >> 32),
		CALL(BPF_FUNC_probe_read_kernel),
		EXIT,
	};
	const int program = bpf_prog_load(BPF_PROG_TYPE_RAW_TRACEPOINT, "probe", "GPL", code,
					  sizeof(code) / sizeof(code[0]), NULL);
	int r = program < 0 ? program : bpf_prog_test_run_opts(program, &run);

	if (!r)
		r = (int)run.retval;
	if (!r)
		r = bpf_map_lookup_elem(map, &zero, value);
	for (size_t i = 0; !r && i < n; i++)
		ret[i] = value[i];
	if (program >= 0)
		close(program);
	close(map);
	return r;
}
