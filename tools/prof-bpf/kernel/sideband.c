/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rings and their merge. Each ring is in order of time, so the next record is the oldest of the
 * rings' first records. A binary heap holds the rings by their first record. A record that wraps
 * around the ring's end is copied into the ring's bounce buffer, since its bytes must stay valid
 * until it is delivered.
 */
#include "tools/prof-bpf/kernel/sideband.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "common/base/system/clock.h"

/* An exec writes at least 300 bytes: its comm, its program, the vDSO. Exits, threads and single
 * mappings wait for more. */
#define WAKEUP_BYTES 256u
#define FILLS_PART 16	      /* part of a ring */
#define SAMPLE_ID_BYTES 24u   /* TID, TIME, CPU: two u32, u64, two u32 */
#define FUTURE_NS 1000000000u /* no record can be this much newer than now */
#define SIDEBAND_MAX_CPUS 8192u

struct ring {
	int fd;
	unsigned cpu;
	struct perf_event_mmap_page *page; /* page 0; data follows */
	uint64_t head, tail;		   /* valid during this drain */
	uint8_t *bounce;		   /* bounce_cap bytes */
	size_t bounce_cap;
	uint64_t lost;
	struct sideband_event next; /* the record at tail, while the ring is in the heap */
	uint32_t next_size;
};

struct sideband {
	struct ring *rings;
	unsigned cpus, room, heap_len; /* number of rings now, and the limit */
	struct ring **heap;
	size_t ring_bytes, page_bytes;
	int epoll_fd;
	bool ksymbols;
	uint64_t now_ns; /* time of the current drain */
	uint64_t records, malformed;
};

static int event_open(int pid, int cpu, bool ksymbols)
{
	struct perf_event_attr a = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(a),
		.config = PERF_COUNT_SW_DUMMY,
		.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU,
		.task = 1,
		.mmap = 1,
		.mmap2 = 1,
		.comm = 1,
		.comm_exec = 1,
		.ksymbol = ksymbols,
		.exclude_kernel = 1, /* no effect, but without it more rights are required */
		.sample_id_all = 1,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
		.watermark = 1,
		.wakeup_watermark = WAKEUP_BYTES,
	};

	int fd = (int)syscall(SYS_perf_event_open, &a, pid, cpu, -1, PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

int sideband_event_open(unsigned cpu, bool ksymbols)
{
	return event_open(-1, (int)cpu, ksymbols);
}

/* Lists the online cpus from /sys/devices/system/cpu/online, such as "0-3,8". Returns their number,
 * or -errno. */
static int online_cpus(unsigned **ret)
{
	FILE *f = fopen("/sys/devices/system/cpu/online", "re");
	unsigned *cpus = NULL, n = 0, first, last;
	int separator = ',';

	if (!f)
		return -errno;
	while (separator == ',' && fscanf(f, "%u", &first) == 1) {
		last = first;
		separator = fgetc(f);
		if (separator == '-') {
			if (fscanf(f, "%u", &last) != 1)
				break;
			separator = fgetc(f);
		}
		if (last < first || last - first >= SIDEBAND_MAX_CPUS - n)
			break;
		unsigned *p = reallocarray(cpus, n + (last - first) + 1, sizeof(*cpus));
		if (!p) {
			free(cpus);
			fclose(f);
			return -ENOMEM;
		}
		cpus = p;
		while (first <= last)
			cpus[n++] = first++;
	}
	fclose(f);
	if (!n) {
		free(cpus);
		return -ENODEV;
	}
	*ret = cpus;
	return (int)n;
}

static void ring_done(struct sideband *s, struct ring *r)
{
	if (r->page)
		munmap(r->page, s->page_bytes + s->ring_bytes);
	if (r->fd >= 0)
		close(r->fd);
	free(r->bounce);
}

/* Maps all rings, of s->ring_bytes each. -EPERM or -ENOMEM: too large for the memlock limit. */
static int rings_map(struct sideband *s)
{
	for (unsigned i = 0; i < s->cpus; i++) {
		void *p = mmap(NULL, s->page_bytes + s->ring_bytes, PROT_READ | PROT_WRITE,
			       MAP_SHARED, s->rings[i].fd, 0);

		if (p == MAP_FAILED) {
			int r = -errno;

			while (i-- > 0) {
				munmap(s->rings[i].page, s->page_bytes + s->ring_bytes);
				s->rings[i].page = NULL;
			}
			return r;
		}
		s->rings[i].page = p;
	}
	return 0;
}

static int sideband_open(struct sideband *s, int pid)
{
	unsigned *cpus = NULL;
	int n = online_cpus(&cpus);

	if (n < 0)
		return n;
	/* More cpus may come online. */
	const long conf = sysconf(_SC_NPROCESSORS_CONF);

	s->room = conf > n && conf <= (long)SIDEBAND_MAX_CPUS ? (unsigned)conf : (unsigned)n;
	s->rings = calloc(s->room, sizeof(*s->rings));
	s->heap = calloc(s->room, sizeof(struct ring *));
	if (!s->rings || !s->heap) {
		free(cpus);
		return -ENOMEM;
	}
	s->ksymbols = true;
	for (int i = 0; i < n; i++) {
		struct ring *r = &s->rings[s->cpus];

		r->cpu = cpus[i];
		r->fd = event_open(pid, (int)cpus[i], s->ksymbols);
		if (r->fd == -EINVAL && s->ksymbols) {
			s->ksymbols = false;
			r->fd = event_open(pid, (int)cpus[i], false);
		}
		/* The cpu went offline meanwhile. */
		if (r->fd == -ENODEV)
			continue;
		if (r->fd < 0) {
			int error = r->fd;

			free(cpus);
			return error;
		}
		s->cpus++;
	}
	free(cpus);
	if (!s->cpus)
		return -ENODEV;

	int r = rings_map(s);
	while ((r == -EPERM || r == -ENOMEM) && s->ring_bytes > s->page_bytes) {
		s->ring_bytes /= 2;
		r = rings_map(s);
	}
	if (r < 0)
		return r;
	s->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (s->epoll_fd < 0)
		return -errno;
	for (unsigned i = 0; i < s->cpus; i++) {
		struct epoll_event e = { .events = EPOLLIN };

		if (epoll_ctl(s->epoll_fd, EPOLL_CTL_ADD, s->rings[i].fd, &e))
			return -errno;
	}
	return 0;
}

int sideband_new(size_t ring_bytes, int pid, struct sideband **ret)
{
	struct sideband *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->epoll_fd = -1;
	s->page_bytes = (size_t)sysconf(_SC_PAGESIZE);
	s->ring_bytes = s->page_bytes;
	while (s->ring_bytes <= ring_bytes / 2)
		s->ring_bytes *= 2;
	int r = sideband_open(s, pid);
	if (r < 0) {
		sideband_free(s);
		return r;
	}
	*ret = s;
	return 0;
}

int sideband_cpu(struct sideband *s, unsigned cpu, int event)
{
	struct epoll_event e = { .events = EPOLLIN };
	unsigned i = 0;

	while (i < s->cpus && s->rings[i].cpu != cpu)
		i++;
	void *page = i == s->room ? MAP_FAILED
				  : mmap(NULL, s->page_bytes + s->ring_bytes,
					 PROT_READ | PROT_WRITE, MAP_SHARED, event, 0);
	int r = i == s->room ? -ENOSPC : page == MAP_FAILED ? -errno : 0;
	if (!r && epoll_ctl(s->epoll_fd, EPOLL_CTL_ADD, event, &e) < 0)
		r = -errno;
	if (r) {
		if (page != MAP_FAILED)
			munmap(page, s->page_bytes + s->ring_bytes);
		close(event);
		return r;
	}
	struct ring *ring = &s->rings[i];
	if (i < s->cpus) {
		munmap(ring->page, s->page_bytes + s->ring_bytes);
		close(ring->fd);
	} else {
		s->cpus++;
	}
	ring->cpu = cpu;
	ring->fd = event;
	ring->page = page;
	ring->head = ring->tail = 0;
	return 0;
}

void sideband_free(struct sideband *s)
{
	if (!s)
		return;
	for (unsigned i = 0; i < s->cpus; i++)
		ring_done(s, &s->rings[i]);
	if (s->epoll_fd >= 0)
		close(s->epoll_fd);
	free(s->heap);
	free(s->rings);
	free(s);
}

int sideband_fd(const struct sideband *s)
{
	return s->epoll_fd;
}

bool sideband_fills(const struct sideband *s)
{
	for (unsigned i = 0; i < s->cpus; i++) {
		const struct perf_event_mmap_page *page = s->rings[i].page;

		if (__atomic_load_n(&page->data_head, __ATOMIC_RELAXED) - page->data_tail >
		    s->ring_bytes / FILLS_PART)
			return true;
	}
	return false;
}

void sideband_heard(struct sideband *s)
{
	struct epoll_event e[16];

	/* Polling clears the readable state. */
	while (epoll_wait(s->epoll_fd, e, 16, 0) == 16)
		;
}

/* Takes a NUL-terminated name, which is the rest of a record's body. */
static bool take_name(struct span *s, struct str *ret)
{
	const uint8_t *end = s->len ? memchr(s->data, 0, s->len) : NULL;

	if (!end)
		return false;
	size_t n = (size_t)(end - s->data);
	*ret = (struct str){ .data = (const char *)s->data,
			     .len = n > SIDEBAND_NAME_MAX ? SIDEBAND_NAME_MAX : (uint32_t)n };
	return true;
}

static bool parse_mmap2(struct span body, struct sideband_event *e)
{
	struct {
		uint32_t pid, tid;
		uint64_t addr, length, offset;
		uint32_t dev_major, dev_minor;
		uint64_t inode, inode_generation;
		uint32_t prot, flags;
	} m;

	if (!span_read(&body, &m, sizeof(m)) || !take_name(&body, &e->name))
		return false;
	e->pid = m.pid;
	e->tid = m.tid;
	e->addr = m.addr;
	e->length = m.length;
	e->offset = m.offset;
	e->dev_major = m.dev_major;
	e->dev_minor = m.dev_minor;
	e->inode = m.inode;
	e->inode_generation = m.inode_generation;
	e->prot = m.prot;
	e->flags = m.flags;
	return m.length && m.addr + m.length > m.addr;
}

/* Works around a bug of the kernel (6.18 and before). It adds the size of the sample id once for
 * each event, and does not subtract it again. So all events but the first get a longer record, with
 * the id directly after the name and garbage after that. body: includes the id. *ret_id: the place
 * of the id. */
static bool parse_ksymbol(struct span body, struct sideband_event *e, struct span *ret_id)
{
	struct span whole = body;
	struct {
		uint64_t addr;
		uint32_t length;
		uint16_t type, flags;
	} k;

	if (!span_read(&body, &k, sizeof(k)) || !take_name(&body, &e->name))
		return false;
	e->addr = k.addr;
	e->length = k.length;
	e->unregister = k.flags & PERF_RECORD_KSYMBOL_FLAGS_UNREGISTER;
	/* Zeros pad the name to 8 bytes. */
	return span_sub(whole, sizeof(k) + ((e->name.len + 8u) & ~7u), SAMPLE_ID_BYTES, ret_id);
}

/* Parses the body of a record of known type. */
static bool parse_body(uint32_t type, uint16_t misc, struct span body, struct sideband_event *e)
{
	struct {
		uint32_t pid, ppid, tid, ptid;
		uint64_t time;
	} task;
	struct {
		uint32_t pid, tid;
	} comm;
	struct {
		uint64_t id, lost;
	} lost;

	switch (type) {
	case PERF_RECORD_MMAP2:
		e->type = SIDEBAND_MMAP;
		return parse_mmap2(body, e);
	case PERF_RECORD_COMM:
		e->type = SIDEBAND_COMM;
		if (!span_read(&body, &comm, sizeof(comm)) || !take_name(&body, &e->name))
			return false;
		e->pid = comm.pid;
		e->tid = comm.tid;
		e->exec = misc & PERF_RECORD_MISC_COMM_EXEC;
		return true;
	case PERF_RECORD_FORK:
	case PERF_RECORD_EXIT:
		e->type = type == PERF_RECORD_FORK ? SIDEBAND_FORK : SIDEBAND_EXIT;
		if (!span_read(&body, &task, sizeof(task)))
			return false;
		e->pid = task.pid;
		e->tid = task.tid;
		e->parent_pid = task.ppid;
		return true;
	case PERF_RECORD_LOST:
		e->type = SIDEBAND_LOST;
		if (!span_read(&body, &lost, sizeof(lost)))
			return false;
		e->count = lost.lost;
		return true;
	default:
		e->type = SIDEBAND_THROTTLE;
		return true;
	}
}

bool sideband_parse(struct span record, struct sideband_event *ret, bool *ret_malformed)
{
	struct perf_event_header h;
	struct span body = record;
	struct {
		uint32_t pid, tid;
		uint64_t time;
		uint32_t cpu, zero;
	} id;

	*ret_malformed = true;
	if (!span_read(&body, &h, sizeof(h)) || h.size != record.len)
		return false;
	switch (h.type) {
	case PERF_RECORD_MMAP2:
	case PERF_RECORD_COMM:
	case PERF_RECORD_FORK:
	case PERF_RECORD_EXIT:
	case PERF_RECORD_LOST:
	case PERF_RECORD_KSYMBOL:
	case PERF_RECORD_THROTTLE:
	case PERF_RECORD_UNTHROTTLE:
		break;
	default:
		*ret_malformed = false;
		return false;
	}
	*ret = (struct sideband_event){ .type = SIDEBAND_KSYMBOL };
	struct span id_at;
	if (h.type == PERF_RECORD_KSYMBOL) {
		if (!parse_ksymbol(body, ret, &id_at))
			return false;
	} else if (body.len < SAMPLE_ID_BYTES ||
		   !span_sub(body, body.len - SAMPLE_ID_BYTES, SAMPLE_ID_BYTES, &id_at)) {
		return false;
	}
	memcpy(&id, id_at.data, sizeof(id));
	ret->time_ns = id.time;
	ret->cpu = id.cpu;
	ret->pid = id.pid;
	ret->tid = id.tid;
	body.len -= SAMPLE_ID_BYTES;
	if (h.type != PERF_RECORD_KSYMBOL && !parse_body(h.type, h.misc, body, ret))
		return false;
	*ret_malformed = false;
	return h.type != PERF_RECORD_UNTHROTTLE &&
	       !(h.type == PERF_RECORD_MMAP2 && !(ret->prot & PROT_EXEC));
}

/* Returns the `size` bytes at tail, contiguous. */
static const uint8_t *ring_bytes(const struct sideband *s, struct ring *r, uint32_t size)
{
	const uint8_t *data = (const uint8_t *)r->page + s->page_bytes;
	size_t at = r->tail & (s->ring_bytes - 1), until_end = s->ring_bytes - at;

	if (size <= until_end)
		return data + at;
	if (r->bounce_cap < size) {
		uint8_t *p = realloc(r->bounce, size);

		if (!p)
			return NULL;
		r->bounce = p;
		r->bounce_cap = size;
	}
	memcpy(r->bounce, data + at, until_end);
	memcpy(r->bounce + until_end, data, size - until_end);
	return r->bounce;
}

static void ring_release(struct ring *r)
{
	__atomic_store_n(&r->page->data_tail, r->tail, __ATOMIC_RELEASE);
}

/* Parses the next record of interest. Returns false if the ring is empty. */
static bool ring_next(struct sideband *s, struct ring *r)
{
	while (r->head - r->tail >= sizeof(struct perf_event_header)) {
		/* Records are 8-byte aligned, so the header never wraps. */
		const uint8_t *at = (const uint8_t *)r->page + s->page_bytes +
				    (r->tail & (s->ring_bytes - 1));
		struct perf_event_header h;

		memcpy(&h, at, sizeof(h));
		if (h.size < sizeof(h) || h.size & 7 || h.size > r->head - r->tail) {
			/* The kernel did not write this, and the next record cannot be found: empty
			 * the ring. */
			s->malformed++;
			r->tail = r->head;
			break;
		}
		const uint8_t *record = ring_bytes(s, r, h.size);
		bool malformed = true;

		if (record && sideband_parse((struct span){ .data = record, .len = h.size },
					     &r->next, &malformed)) {
			r->next_size = h.size;
			r->next.cpu = r->cpu;
			/* A time in the far future would block the ring forever. */
			if (r->next.time_ns > s->now_ns + FUTURE_NS) {
				s->malformed++;
				r->next.time_ns = s->now_ns;
			}
			return true;
		}
		s->malformed += malformed;
		r->tail += h.size;
	}
	return false;
}

static void heap_down(struct sideband *s, unsigned at)
{
	for (;;) {
		unsigned child = at * 2 + 1;

		if (child >= s->heap_len)
			return;
		if (child + 1 < s->heap_len &&
		    s->heap[child + 1]->next.time_ns < s->heap[child]->next.time_ns)
			child++;
		if (s->heap[at]->next.time_ns <= s->heap[child]->next.time_ns)
			return;
		struct ring *r = s->heap[at];
		s->heap[at] = s->heap[child];
		s->heap[child] = r;
		at = child;
	}
}

size_t sideband_drain(struct sideband *s, uint64_t horizon_ns,
		      void (*fn)(void *ctx, const struct sideband_event *e), void *ctx)
{
	size_t delivered = 0;

	s->heap_len = 0;
	s->now_ns = clock_mono_ns();
	for (unsigned i = 0; i < s->cpus; i++) {
		struct ring *r = &s->rings[i];

		r->head = __atomic_load_n(&r->page->data_head, __ATOMIC_ACQUIRE);
		r->tail = r->page->data_tail;
		if (r->head == r->tail)
			continue;
		if (r->head - r->tail > s->ring_bytes) {
			s->malformed++;
			r->tail = r->head;
			ring_release(r);
			continue;
		}
		if (ring_next(s, r))
			s->heap[s->heap_len++] = r;
		else
			ring_release(r);
	}
	for (unsigned i = s->heap_len / 2; i-- > 0;)
		heap_down(s, i);
	while (s->heap_len) {
		struct ring *r = s->heap[0];
		uint64_t last_ns = r->next.time_ns;

		if (last_ns > horizon_ns)
			break;
		if (r->next.type == SIDEBAND_LOST)
			r->lost += r->next.count;
		fn(ctx, &r->next);
		delivered++;
		r->tail += r->next_size;
		if (ring_next(s, r)) {
			/* An interrupt between reading the clock and writing the record can swap
			 * neighbours. */
			if (r->next.time_ns < last_ns)
				r->next.time_ns = last_ns;
		} else {
			ring_release(r);
			s->heap[0] = s->heap[--s->heap_len];
		}
		heap_down(s, 0);
	}
	for (unsigned i = 0; i < s->heap_len; i++)
		ring_release(s->heap[i]);
	s->records += delivered;
	return delivered;
}

void sideband_figures(const struct sideband *s, struct sideband_figures *ret)
{
	*ret = (struct sideband_figures){
		.cpus = s->cpus,
		.ring_bytes = s->ring_bytes,
		.ksymbols = s->ksymbols,
		.records = s->records,
		.malformed = s->malformed,
	};
}

uint64_t sideband_lost(const struct sideband *s, unsigned i, unsigned *ret_cpu)
{
	if (i >= s->cpus)
		return 0;
	*ret_cpu = s->rings[i].cpu;
	return s->rings[i].lost;
}
