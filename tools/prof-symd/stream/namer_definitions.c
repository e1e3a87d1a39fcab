/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sends definitions without names before their first use in an epoch: files, processes, threads,
 * and definitions that are only passed on.
 *
 * Each function returns 0 if the definition was sent in this epoch; otherwise NAMER_WAIT, enum
 * namer_sending or an error. Pointers into tables stay valid here, since nothing is added to them.
 */
#include "tools/prof-symd/stream/relayed.h"
#include "tools/prof-symd/stream/namer_internal.h"

const struct runtime_build *namer_build_of(const struct namer *n, const struct definition_frame *f)
{
	const struct definition_file *file = definitions_find_file(&n->defs, f->file);
	const struct runtime_build *b = file ? file->build : NULL;

	return b && b->known && b->config.runtime == f->runtime ? b : NULL;
}

int namer_restart(struct namer *n)
{
	int r = stream_flush(n->out);

	if (r)
		return r;
	stream_out_epoch(n->out, ++n->epoch);
	functions_clear(&n->functions);
	n->counts.epochs++;
	return 0;
}

/* Sends a file without the facts that come from its contents. */
int namer_send_file_as_it_is(struct namer *n, struct definition_file *f)
{
	struct msg m = { .id = MSG_FILE, .file = f->def };

	m.file.payer = n->payer;
	const int r = f->sent == n->epoch ? 0 : stream_put(n->out, &m);

	if (r == 0)
		f->told = n->epoch;
	return r;
}

/* Adds what backends need to know about the file. id is borrowed as long as m is used. */
static void identify(const struct fileid *id, struct msg_file *m)
{
	if (id->gnu_len)
		m->build_id = (struct span){ .data = id->gnu, .len = id->gnu_len };
	/* If the sizes differ, this is only the part that a process has mapped. */
	if (id->htlhash_len && id->size == m->size)
		m->htlhash = (struct span){ .data = id->htlhash, .len = id->htlhash_len };
	if (id->go_len)
		m->go_build_id = (struct str){ .data = id->go, .len = id->go_len };
	if (id->segment_count)
		m->segments = (struct msg_list){ .data = id->segments,
						 .len = 3 * id->segment_count };
}

int namer_send_file(struct namer *n, uint64_t id, uint64_t now_ns, struct program **ret_program)
{
	struct definition_file *f = definitions_find_file(&n->defs, id);
	struct msg m = { .id = MSG_FILE };
	struct program *program = NULL;
	int r;

	if (ret_program)
		*ret_program = NULL;
	if (!f)
		return NAMER_UNDEFINED;
	if (namer_was_sent(n, f->sent, f->payers) && !ret_program)
		return 0;
	if (n->lean && !filestore_settled(&f->store)) {
		if (!n->give_up) {
			filestore_want(n->files, &f->store, now_ns);
			return NAMER_ASIDE;
		}
		n->skipped = true;
		return namer_send_file_as_it_is(n, f);
	}
	f->store.owner = n->owner;
	r = filestore_get(n->files, &f->store, now_ns, &program);
	if (r)
		return r == FILESTORE_WAIT ? NAMER_WAIT : r;
	if (ret_program)
		*ret_program = program;
	if (namer_was_sent(n, f->sent, f->payers))
		return 0;
	m.file = f->def;
	m.file.payer = n->payer;
	if (program)
		identify(program_fileid(program), &m.file);
	r = stream_put(n->out, &m);
	if (r)
		return r;
	namer_mark_sent(n, &f->sent, &f->payers);
	f->told = n->epoch;
	return 0;
}

/* --- definitions that are only passed on --- */

/* A list of labels needs its labels to be sent before it. */
static int send_labels(struct namer *n, const struct msg_labels *m);

static int send_extra(struct namer *n, struct definition_relayed *x)
{
	struct msg_scratch scratch = { 0 };
	struct msg m;
	int r;

	if (x->sent == n->epoch)
		return 0;
	r = relayed_decode(x, &scratch, &m);
	if (r == 0 && m.id == MSG_LABELS)
		r = send_labels(n, &m.labels);
	if (r == 0)
		r = stream_put(n->out, &m);
	if (r == 0)
		x->sent = n->epoch;
	msg_scratch_done(&scratch);
	return r;
}

/* Sends the definition with this id. Sets the id to 0 if there is none. */
static int send_extra_of(struct namer *n, enum msg_id kind, uint64_t *id)
{
	struct definition_relayed *x = relayed_find(&n->defs, kind, *id);

	if (!x)
		*id = 0;
	return x ? send_extra(n, x) : 0;
}

static int send_labels(struct namer *n, const struct msg_labels *m)
{
	int r = 0;

	for (uint32_t i = 0; i < m->list.len && r == 0; i++)
		r = send_extra_of(n, MSG_LABEL, &(uint64_t){ m->list.data[i] });
	return r;
}

/* Sends what the sample refers to besides its stack and thread. Clears references without a
 * definition. */
int namer_send_extras(struct namer *n, struct msg_sample *sample)
{
	int r = 0;

	if (sample->source)
		r = send_extra_of(n, MSG_SOURCE, &sample->source);
	if (r == 0 && sample->labels)
		r = send_extra_of(n, MSG_LABELS, &sample->labels);
	if (r == 0 && sample->link)
		r = send_extra_of(n, MSG_LINK, &sample->link);
	return r;
}

/* Sends the file of a mapping first. *ret is false if the file is not known, or not yet. */
static int send_mapped_file(struct namer *n, const struct definition_relayed *x, uint64_t now_ns,
			    bool wait, bool *ret)
{
	struct msg_scratch scratch = { 0 };
	struct msg m;
	int r = relayed_decode(x, &scratch, &m);
	const struct definition_file *f = r ? NULL
					    : definitions_find_file(&n->defs, m.mapping.file);

	*ret = f && (wait || f->sent == n->epoch);
	if (r == 0 && *ret)
		r = namer_send_file(n, m.mapping.file, now_ns, NULL);
	msg_scratch_done(&scratch);
	return r;
}

/* Sends those attributes and mappings of a process that were not sent yet. */
static int send_relayed_of(struct namer *n, struct definition_process *p, uint64_t now_ns,
			   bool wait)
{
	bool all = true;

	if (p->relayed_sent == n->epoch)
		return 0;
	for (uint32_t slot = p->relayed; slot != IDMAP_NONE;) {
		struct definition_relayed *x = idtable_at(&n->defs.relayed, slot);
		bool ready = true;
		int r = 0;

		if (x->id == MSG_MAPPING && x->sent != n->epoch)
			r = send_mapped_file(n, x, now_ns, wait, &ready);
		if (r == 0 && ready)
			r = send_extra(n, x);
		if (r)
			return r;
		all &= ready;
		slot = x->next;
	}
	if (all)
		p->relayed_sent = n->epoch;
	return 0;
}

int namer_send_process(struct namer *n, uint64_t id, uint64_t now_ns, bool wait)
{
	struct definition_process *p = definitions_find_process(&n->defs, id);
	struct msg m = { .id = MSG_PROCESS };
	int r;

	if (!p)
		return NAMER_UNDEFINED;
	if (p->sent == n->epoch)
		return send_relayed_of(n, p, now_ns, wait);
	m.process = p->def;
	m.process.comm.data = p->comm;
	if (p->def.exe) {
		struct definition_file *f = definitions_find_file(&n->defs, p->def.exe);

		if (f && (wait || f->sent == n->epoch)) {
			r = namer_send_file(n, p->def.exe, now_ns, NULL);
			if (r)
				return r;
		} else {
			m.process.exe = 0;
		}
	}
	r = m.process.cgroup ? send_extra_of(n, MSG_CGROUP, &m.process.cgroup) : 0;
	if (r == 0)
		r = stream_put(n->out, &m);
	if (r == 0)
		p->sent = n->epoch;
	return r ? r : send_relayed_of(n, p, now_ns, wait);
}

int namer_send_thread(struct namer *n, uint64_t id, uint64_t now_ns)
{
	struct definition_thread *t = idtable_get(&n->defs.threads, id);
	struct msg m = { .id = MSG_THREAD };
	int r;

	if (!t)
		return NAMER_UNDEFINED;
	/* The process may have changed since the thread was sent. */
	r = namer_send_process(n, t->def.process, now_ns, true);
	if (r || t->sent == n->epoch)
		return r;
	m.thread = t->def;
	m.thread.comm.data = t->comm;
	r = stream_put(n->out, &m);
	if (r == 0)
		t->sent = n->epoch;
	return r;
}
