/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-export/by_hand.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "common/base/command/exits.h"
#include "common/base/command/log.h"
#include "common/base/files/fd.h"
#include "common/base/files/outfile.h"
#include "common/cell/cell.h"
#include "tools/prof-export/figures.h"
#include "tools/prof-export/interrupts.h"

#define CHUNK (256u << 10)

/* Opens the output, and has the keeper hold its folder. Logs an error. */
static int open_output(struct outfile *f, const struct options *o)
{
	const struct outfile_how how = { .mode = o->mode,
					 .grows = format_streams(o->session.format) };
	struct stat in;
	int r = outfile_open(f, o->output, &how);

	if (r) {
		log_error("%s: %s", o->output, outfile_error(r));
		return EXITS_FAILED;
	}
	if (!fstat(STDIN_FILENO, &in) && S_ISREG(in.st_mode) && in.st_dev == f->dev &&
	    in.st_ino == f->ino) {
		log_error("%s: is the stream itself; name another output with -o", o->output);
		(void)outfile_end(f, false);
		return EXITS_FAILED;
	}
	r = outfile_hand_over(f);
	if (!r)
		return EXITS_GO_ON;
	log_error("%s: the process that renames it cannot be started: %s; allow more processes "
		  "(ulimit -u, pids.max)",
		  o->output, strerror(-r));
	outfile_drop(f);
	return EXITS_FAILED;
}

/* Gives the file its final name if it was written. Returns false after an error, which is
 * logged. */
static bool close_output(const struct job *job, struct outfile *f, bool whole)
{
	int r = 0;

	if (job->session.begun)
		r = outfile_end(f, whole);
	else
		outfile_drop(f);
	if (r && f->hidden[0])
		log_error("%s: cannot be replaced: %s; the new file lies beside it as %s", f->path,
			  strerror(-r), f->hidden);
	else if (r)
		output_say(f->path, r);
	return !r;
}

static int read_stream(struct job *job)
{
	static uint8_t chunk[CHUNK];
	int r = STREAM_AGAIN;

	while (r == STREAM_AGAIN && interrupts_count() < 2) {
		const ssize_t n = read(STDIN_FILENO, chunk, sizeof(chunk));

		if (n < 0 && errno != EINTR) {
			log_error("standard input: %s; give it the output of prof-symd or prof-bpf",
				  strerror(errno));
			break;
		}
		if (!n)
			break;
		if (n > 0)
			r = session_feed(&job->session,
					 (struct span){ .data = chunk, .len = (size_t)n });
	}
	if (!r && job->session.in.pending.len > job->session.in.taken)
		log_warning("standard input: ignored bytes after the end of the stream");
	return r;
}

static void print_stats(const struct job *job)
{
	struct buf b = BUF_INIT(0);

	if (figures_print(&b, &job->status))
		log_error("the figures cannot be made: %s; free memory on this host",
			  strerror(ENOMEM));
	(void)fd_write_all(STDERR_FILENO, b.data, b.len);
	buf_done(&b);
}

int by_hand_run(struct job *job, const struct options *o)
{
	const char *name = o->output ? o->output : "standard output";
	struct outfile file = OUTFILE_NONE;
	int fd = STDOUT_FILENO;

	if (isatty(STDIN_FILENO)) {
		log_error("standard input: is a terminal; "
			  "give it the output of prof-symd or prof-bpf");
		return EXITS_USAGE;
	}
	if (o->output) {
		const int r = open_output(&file, o);

		if (r != EXITS_GO_ON)
			return r;
		fd = file.fd;
	} else if (format_is_binary(o->session.format) && isatty(fd)) {
		log_error("standard output: is a terminal, and %s is binary; name a file with -o",
			  format_names[o->session.format]);
		return EXITS_USAGE;
	} else if ((fcntl(fd, F_GETFL) & O_ACCMODE) == O_RDONLY) {
		log_error("standard output: is closed; name a file with -o");
		return EXITS_FAILED;
	}
	/* Ctrl-C signals all tools of the pipeline. The sender ends on it, and so the stream ends.
	 * A second Ctrl-C ends the wait for the stream, and prof-export writes what it has. */
	interrupts_catch(SIGINT);
	interrupts_catch(SIGTERM);
	signal(SIGPIPE, SIG_IGN);
	int result = cell_by_hand(CELL_WRITES) ? EXITS_FAILED : EXITS_GO_ON;

	if (result == EXITS_GO_ON)
		result = job_begin(job, o, fd);
	if (result != EXITS_GO_ON) {
		outfile_drop(&file);
		return result;
	}
	result = job_finish(job, o, read_stream(job), "standard input", name);
	if (!close_output(job, &file, result != EXITS_FAILED))
		result = EXITS_FAILED;
	if (o->stats && job->session.begun)
		print_stats(job);
	session_done(&job->session);
	return result;
}
