/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Both neighbours of prof-symd:
 *
 *  - `symd-peer raw [-c] FILE:OFFSET[:FLAGS]...` writes a raw stream to standard output: a sample
 *    for each FILE:OFFSET, all of one process. -c leaves out the end.
 *  - `symd-peer print` prints a stream from standard input as text, one message per line.
 *  - `symd-peer bpf DIR [-c|-s] FILE:OFFSET...` is prof-bpf: it sends the same stream over the bus,
 *    and files on request. -c: it goes without an end. -s: it never answers.
 *  - `symd-peer export DIR` is prof-export: it prints the named stream, and exits at its end.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include "common/base/system/clock.h"
#include "common/wire/bus/bus.h"
#include "common/wire/bus/fdlane.h"
#include "common/wire/stream.h"
#include "tests/msg_print.h"

#define PATIENCE_MS 20000

static struct bus *stream_bus;

static void check(int r, const char *what)
{
	if (r == 0)
		return;
	fprintf(stderr, "symd-peer: %s: %s\n", what, strerror(r < 0 ? -r : EPROTO));
	exit(1);
}

static int to_stdout(void *ctx, struct span batch)
{
	return fwrite(batch.data, 1, batch.len, stdout) == batch.len ? 0 : -EIO;
}

static int to_bus(void *ctx, struct span batch)
{
	return bus_send_wait(stream_bus, batch, PATIENCE_MS);
}

static void put(struct stream_out *out, struct msg m)
{
	check(stream_put(out, &m), "stream_put");
}

struct place {
	char *path;
	uint64_t offset, flags, file;
};

static struct place parse_place(char *arg)
{
	struct place p = { .path = strtok(arg, ":"), .flags = MSG_FRAME_LEAF };
	const char *offset = strtok(NULL, ":"), *flags = strtok(NULL, ":");

	p.offset = offset ? strtoull(offset, NULL, 16) : 0;
	if (flags)
		p.flags = strtoull(flags, NULL, 10);
	return p;
}

static void put_all(struct stream_out *out, struct place *places, int count, bool cut)
{
	uint64_t files = 0;

	put(out, (struct msg){ .id = MSG_HELLO,
			       .hello = { .schema = MSG_SCHEMA,
					  .build = msg_build(),
					  .kind = MSG_STREAM_RAW,
					  .producer = STR_LIT("symd-peer"),
					  .event = STR_LIT("cpu-clock"),
					  .unit = STR_LIT("nanoseconds"),
					  .cpus = 1 } });
	for (int i = 0; i < count; i++) {
		struct stat st;

		for (int k = 0; k < i && !places[i].file; k++)
			if (strcmp(places[k].path, places[i].path) == 0)
				places[i].file = places[k].file;
		if (places[i].file)
			continue;
		places[i].file = ++files;
		memset(&st, 0, sizeof(st));
		stat(places[i].path, &st);
		put(out,
		    (struct msg){
			    .id = MSG_FILE,
			    .file = { .id = files,
				      .dev = (uint64_t)major(st.st_dev) << 32 | minor(st.st_dev),
				      .inode = st.st_ino,
				      .size = (uint64_t)st.st_size,
				      .ctime_ns = (uint64_t)st.st_ctim.tv_sec * 1000000000u +
						  (uint64_t)st.st_ctim.tv_nsec,
				      .path = str_from(places[i].path) } });
	}
	put(out,
	    (struct msg){ .id = MSG_PROCESS,
			  .process = { .id = 1, .pid = 10, .comm = STR_LIT("busy"), .exe = 1 } });
	put(out,
	    (struct msg){ .id = MSG_PROCESS,
			  .process = { .id = 2, .pid = 11, .comm = STR_LIT("idle"), .exe = 1 } });
	put(out, (struct msg){
			 .id = MSG_THREAD,
			 .thread = { .id = 1, .process = 1, .tid = 10, .comm = STR_LIT("busy") } });
	put(out, (struct msg){ .id = MSG_FUNCTION,
			       .function = { .id = 7,
					     .name = STR_LIT("do_syscall_64"),
					     .source = STR_LIT("vmlinux") } });
	put(out, (struct msg){ .id = MSG_FRAME,
			       .frame = { .id = 1,
					  .kind = MSG_FRAME_KERNEL,
					  .offset = 0xffff0000,
					  .functions = { (uint64_t[]){ 7 }, 1 },
					  .lines = { (uint64_t[]){ 0 }, 1 } } });
	for (int i = 0; i < count; i++) {
		uint64_t id = (uint64_t)i + 2;

		put(out, (struct msg){ .id = MSG_FRAME,
				       .frame = { .id = id,
						  .kind = MSG_FRAME_NATIVE,
						  .file = places[i].file,
						  .offset = places[i].offset,
						  .flags = places[i].flags } });
		put(out,
		    (struct msg){ .id = MSG_STACK,
				  .stack = { .id = id, .frames = { (uint64_t[]){ 1, id }, 2 } } });
		put(out,
		    (struct msg){
			    .id = MSG_SAMPLE,
			    .sample = { .stack = id, .thread = 1, .time_ns = id, .value = 1 } });
	}
	put(out, (struct msg){ .id = MSG_SAMPLE, .sample = { .stack = 999, .thread = 1 } });
	put(out, (struct msg){ .id = MSG_PROCESS_END, .process_end = { .id = 2 } });
	if (!cut)
		put(
			out, (struct msg) { .id = MSG_END });
	check(stream_flush(out), "stream_flush");
}

static int print_stream(struct stream_in *in)
{
	struct msg m;
	int r;

	while ((r = stream_next(in, &m)) == 0)
		msg_print(stdout, &m);
	return r;
}

static int print_stdin(void)
{
	static uint8_t chunk[65536];
	struct stream_in in;
	ssize_t n;
	int r = STREAM_AGAIN;

	stream_in_init(&in);
	while (r == STREAM_AGAIN && (n = read(0, chunk, sizeof(chunk))) > 0) {
		check(stream_feed(&in, (struct span){ .data = chunk, .len = (size_t)n }),
		      "stream_feed");
		r = print_stream(&in);
	}
	printf("ended=%d missing=%llu\n", in.ended, (unsigned long long)stream_missing(&in));
	stream_in_done(&in);
	return r == STREAM_AGAIN ? 0 : 1;
}

static int open_debug(const struct msg_debug_request *rq, const char *path)
{
	if (rq->place) {
		errno = ENOENT; /* there is only one */
		return -1;
	}
	char name[4400] = "/usr/lib/debug/.build-id/";
	size_t at = strlen(name);

	for (size_t i = 0; i < rq->build_id.len; i++)
		at += (size_t)snprintf(name + at, sizeof(name) - at, "%02x%s", rq->build_id.data[i],
				       i == 0 ? "/" : "");
	snprintf(name + at, sizeof(name) - at, ".debug");
	if (!rq->build_id.len)
		snprintf(name, sizeof(name), "%.*s/%.*s", (int)(strrchr(path, '/') - path), path,
			 (int)rq->name.len, rq->name.data);
	return open(name, O_RDONLY | O_CLOEXEC);
}

static int to_files(void *ctx, struct span batch)
{
	return bus_send_wait(ctx, batch, PATIENCE_MS);
}

static void answer(struct stream_out *out, struct fdlane *lane, const struct msg *m,
		   const struct place *places, int count)
{
	uint64_t id = m->id == MSG_FILE_REQUEST ? m->file_request.id : m->debug_request.id;
	uint64_t file = m->id == MSG_FILE_REQUEST ? m->file_request.file : m->debug_request.file;
	const char *path = NULL;
	int fd;

	for (int i = 0; i < count; i++)
		if (places[i].file == file)
			path = places[i].path;
	if (!path)
		exit(1);
	fd = m->id == MSG_FILE_REQUEST ? open(path, O_RDONLY | O_CLOEXEC)
				       : open_debug(&m->debug_request, path);
	/* Either half may come first. */
	if (fd >= 0 && id % 2)
		check(fdlane_send(lane, id, fd), "fdlane_send");
	put(out,
	    (struct msg){ .id = MSG_FILE_ANSWER,
			  .file_answer = { .id = id, .status = fd < 0 ? (uint64_t)errno : 0 } });
	check(stream_flush(out), "answer");
	if (fd >= 0 && id % 2 == 0)
		check(fdlane_send(lane, id, fd), "fdlane_send");
	if (fd >= 0)
		close(fd);
}

static int be_bpf(const char *dir, struct place *places, int count, bool cut, bool silent)
{
	struct buf got = BUF_INIT(65536);
	struct stream_out out, answers;
	struct stream_in requests;
	struct bus *files;
	struct fdlane *lane;
	bool sent = false, gone = false;

	check(bus_listen(BUSROUTE_STREAM, dir, getuid(), &stream_bus), "listen");
	check(bus_listen(BUSROUTE_FILES, dir, getuid(), &files), "listen");
	check(fdlane_listen(BUSROUTE_FILES, dir, getuid(), &lane), "listen");
	stream_out_init(&out, 4096, to_bus, NULL);
	stream_out_init(&answers, 1024, to_files, files);
	stream_in_init(&requests);
	put(&answers, (struct msg){ .id = MSG_HELLO,
				    .hello = { .schema = MSG_SCHEMA, .build = msg_build() } });
	for (uint64_t end = clock_mono_ns() + PATIENCE_MS * 1000000ull;
	     !gone && clock_mono_ns() < end;) {
		struct pollfd p[] = { { bus_fd(stream_bus), POLLIN, 0 },
				      { bus_fd(files), POLLIN, 0 },
				      { fdlane_fd(lane), POLLIN, 0 } };
		int r;

		poll(p, 3, 20);
		check(fdlane_poll(lane), "fdlane_poll");
		while ((r = bus_recv(stream_bus, &got)) != BUS_EMPTY)
			gone |= r == BUS_PEER_WENT;
		if (!sent && bus_connected(stream_bus)) {
			put_all(&out, places, count, cut);
			sent = true;
		}
		while ((r = bus_recv(files, &got)) != BUS_EMPTY) {
			struct msg m;

			check(r < 0 ? r : 0, "bus_recv");
			if (r == 0)
				check(stream_feed(&requests, buf_span(&got)), "stream_feed");
			while (r == 0 && stream_next(&requests, &m) == 0)
				if (m.id != MSG_HELLO && !silent)
					answer(&answers, lane, &m, places, count);
		}
		if (cut && sent && clock_mono_ns() + (PATIENCE_MS - 1000) * 1000000ull > end)
			break;
	}
	stream_out_done(&out);
	stream_out_done(&answers);
	stream_in_done(&requests);
	buf_done(&got);
	fdlane_free(lane);
	bus_free(files);
	bus_free(stream_bus);
	return gone || cut ? 0 : 1;
}

static int be_export(const char *dir)
{
	struct buf got = BUF_INIT(0);
	struct stream_in in;
	struct bus *named;

	check(bus_listen(BUSROUTE_NAMED, dir, getuid(), &named), "listen");
	stream_in_init(&in);
	for (uint64_t end = clock_mono_ns() + PATIENCE_MS * 1000000ull;
	     !in.ended && clock_mono_ns() < end;) {
		struct pollfd p = { bus_fd(named), POLLIN, 0 };
		int r;

		poll(&p, 1, 20);
		while ((r = bus_recv(named, &got)) == 0 || r == BUS_PEER_CAME) {
			if (r == 0) {
				check(stream_feed(&in, buf_span(&got)), "stream_feed");
				check(print_stream(&in) == STREAM_AGAIN ? 0 : -EPROTO,
				      "stream_next");
			}
		}
		if (r == BUS_PEER_WENT)
			break;
	}
	printf("ended=%d missing=%llu\n", in.ended, (unsigned long long)stream_missing(&in));
	stream_in_done(&in);
	buf_done(&got);
	bus_free(named);
	return 0;
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";
	bool bpf = strcmp(mode, "bpf") == 0, cut, silent;
	int first = bpf ? 3 : 2, count;
	struct place *places;
	struct stream_out out;

	if (strcmp(mode, "print") == 0)
		return print_stdin();
	if (strcmp(mode, "export") == 0 && argc == 3)
		return be_export(argv[2]);
	if ((!bpf && strcmp(mode, "raw") != 0) || argc <= first)
		return 2;
	cut = strcmp(argv[first], "-c") == 0;
	silent = strcmp(argv[first], "-s") == 0;
	first += cut || silent;
	count = argc - first;
	places = calloc((size_t)count + 1, sizeof(*places));
	if (!places)
		return 1;
	for (int i = 0; i < count; i++)
		places[i] = parse_place(argv[first + i]);
	if (bpf) {
		int r = be_bpf(argv[2], places, count, cut, silent);

		free(places);
		return r;
	}
	stream_out_init(&out, 4096, to_stdout, NULL);
	put_all(&out, places, count, cut);
	stream_out_done(&out);
	free(places);
	return 0;
}
