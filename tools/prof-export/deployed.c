/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-export/deployed.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>
#include "common/base/bytes/numbers.h"
#include "common/base/command/exits.h"
#include "common/base/command/log.h"
#include "tools/prof-export/interrupts.h"
#include "tools/prof-export/receiver.h"

#define JOURNAL_TIMES 4 /* the journal's maximum size, in maximum sizes of the model */
#define THREADS 16	/* nng's */
#define MAX_FILES 64

int deployed_run(struct job *job, struct options *o)
{
	struct budget b;
	struct sandbox sandbox = { .caps = SANDBOX_NO_CAPS,
				   .max_files = MAX_FILES,
				   .max_memory = 8ull * o->session.memory_max + (4ull << 30) };
	struct bus *bus = NULL;

	if (deploy_check_fd("output-fd", o->output_fd) ||
	    deploy_check_fd("journal-fd", o->journal_fd) || deploy_check_fd("next-fd", o->next_fd))
		return EXITS_FAILED;
	if (o->journal_fd >= 0) {
		/* The replay of the journal writes the output again from its beginning. The
		 * launcher restarts prof-export only if that is possible. */
		if (!(fcntl(o->output_fd, F_GETFL) & O_APPEND))
			(void)lseek(o->output_fd, 0, SEEK_SET);
	}
	job->turnover.socket = o->next_fd;
	job->turnover.output = o->output_fd;
	job->turnover.journal = o->journal_fd;
	job->turnover.file = o->file;
	/* The launcher handles Ctrl-C of the terminal. */
	signal(SIGINT, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
	receiver_set_watch(o->output_fd);
	deploy_budget(&o->deploy, &b);
	/* While it writes the output at the end, prof-export may use the memory of the tools that
	 * have exited. */
	const uint64_t at_end = b.export + b.bpf + b.deltas;

	sandbox.max_data = budget_fence(numbers_larger(b.export_most, at_end), THREADS);
	if (sandbox.max_data < 2 * o->session.memory_max)
		sandbox.max_data = 2 * o->session.memory_max;
	if (deploy_enter(&o->deploy, DEPLOY_EXPORT, &sandbox))
		return EXITS_FAILED;
	const int sends = o->send ? sending_init(&job->sending, &o->session, o->output_fd >= 0) : 0;

	if (sends) {
		log_error("sending cannot begin: %s; %s", strerror(-sends), job_remedy(sends));
		return EXITS_FAILED;
	}
	if (job_begin(job, o, o->output_fd) != EXITS_GO_ON)
		return EXITS_FAILED;
	struct datagram witness = DATAGRAM_NONE;
	int r = datagram_bind(o->deploy.run_dir, WITNESS_FOLDER, WITNESS_NAME,
			      o->deploy.uid[DEPLOY_BPF], &witness);

	if (!r)
		r = bus_listen(BUSROUTE_NAMED, o->deploy.run_dir, o->deploy.uid[DEPLOY_SYMD], &bus);
	if (!r)
		r = sending_open(&job->sending, o->deploy.run_dir, o->deploy.uid[DEPLOY_SEND]);
	if (r)
		log_error("%s: the sockets cannot be opened: %s; name a folder in --run-dir that "
			  "prof-export can write to",
			  o->deploy.run_dir, strerror(-r));
	else
		r = deploy_seal();
	if (r) {
		deploy_status(&o->deploy, &job->status, STATUS_FAILED);
		return EXITS_FAILED;
	}
	struct receiver receiver = { .job = job,
				     .deploy = &o->deploy,
				     .bus = bus,
				     .witness = witness,
				     .journal = { .fd = o->journal_fd,
						  .max = JOURNAL_TIMES * o->session.memory_max } };

	deploy_status(&o->deploy, &job->status, STATUS_READY);
	interrupts_catch(SIGTERM);
	r = receiver_run(&receiver);
	int result = EXITS_FAILED;

	if (r == -ECANCELED)
		log_error("the launcher is gone; prof-export writes nothing more");
	else
		result = job_finish(job, o, r, "the stream of prof-symd", "the output");
	sending_end(&job->sending, r != -ECANCELED);
	sending_status(&job->sending, &job->status);
	deploy_status(&o->deploy, &job->status,
		      result == EXITS_FAILED ? STATUS_FAILED : STATUS_DONE);
	session_done(&job->session);
	return result;
}
