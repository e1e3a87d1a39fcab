/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0 */
/*
 * The program of a runtime, made from its walk (bpf/walk/runtime_walk.h), in a file
 * <runtime>.bpf.c:
 *
 *  #include "bpf/<runtime>/<runtime>_walk.h"
 *  #define RUNTIME_WALK <runtime>
 *  #include "bpf/programs/runtime.bpf.h"
 *
 * A runtime that takes over frames of native code also defines RUNTIME_TAKES, and has a second
 * program. With RUNTIME_ENDS, that program calls NAME_end after the frames that it took over.
 *
 * It uses no CO-RE relocation of the kernel's types, since libbpf would then read all of them once
 * more.
 */
#include "bpf/mix.h"
#include "bpf/programs/shared.bpf.h"
#include "bpf/walk/runtime_walk.h"

#define RUNTIME_PASTE(a, b) a##b
#define RUNTIME_GLUE(a, b) RUNTIME_PASTE(a, b)
#define RUNTIME_OF(what) RUNTIME_GLUE(RUNTIME_WALK, what)
#define RUNTIME_ON RUNTIME_GLUE(on_, RUNTIME_WALK)

char LICENSE[] SEC("license") = "GPL";

_Static_assert(sizeof(struct RUNTIME_OF(_walk)) <= RUNTIME_STATE, "it fits");

static __always_inline __u64 env_tls(void)
{
	const struct walk *w = scratch();

	return w ? w->tls : 0;
}

static __always_inline bool env_probed(__u64 *pc, __u64 *sp, bool leaf)
{
	return false;
}

#define RUNTIME_OBJECTS_AT_ONCE 48 /* objects that are copied per sample */

static __always_inline struct RUNTIME_OF(_walk) * state(void)
{
	__u32 zero = 0;

	return (struct RUNTIME_OF(_walk) *)bpf_map_lookup_elem(&states, &zero);
}

/* Reads n bytes, or only those of the first page if the next page is not readable. Returns how many
 * it read. */
static __always_inline __u32 take_bytes(void *to, __u64 at, __u64 n)
{
	if (at < 4096 || at >= WALK_ADDRESS_END)
		return 0;
	if (n > SAMPLE_PIECE_BYTES)
		n = SAMPLE_PIECE_BYTES;
	if (bpf_probe_read_user(to, n, (void *)at) == 0)
		return n;
	__u64 page = 4096 - (at & 4095);
	if (page >= n)
		return 0;
	return bpf_probe_read_user(to, page & (SAMPLE_PIECE_BYTES - 1), (void *)at) ? 0 : page;
}

/* Returns a number in a piece, with a width of `bytes`: 2, 4 or 8; 0: it is not in the piece.
 * Numbers of 8 bytes are aligned to 8, others to their width. */
static __always_inline __u64 piece_number(const struct sample_object *o, __u32 from, __u32 at,
					  __u32 bytes)
{
	const __u32 place = o->offset[from] + at;
	const __u8 *p = o->bytes + (place & (SAMPLE_PIECES_END - 8));

	if (at + bytes > o->len[from] || place >= SAMPLE_PIECES_END)
		return 0;
	return bytes == 8   ? *(const __u64 *)p
	       : bytes == 4 ? *(const __u32 *)(p + (at & 4))
			    : *(const __u16 *)(p + (at & 6));
}

/* Returns the address that a step leads to, before adding `start`; or 0. */
static __always_inline __u64 step_target(const struct sample_object *o,
					 const struct runtime_step *s)
{
	__u32 from = s->from & (RUNTIME_STEPS - 1);
	__u64 to = s->pointer == RUNTIME_ITSELF ? o->at[from]
						: piece_number(o, from, s->pointer, 8);

	if (to && s->index_bytes)
		to += 8 * piece_number(o, from, s->index_at, s->index_bytes);
	return to;
}

/* Returns the size of a piece from the first piece, in which the walk described it. */
static __always_inline __u64 size_told(const struct sample_object *o, const struct runtime_step *s)
{
	__u64 size = *(const __u64 *)(o->bytes + (s->size_at & (SAMPLE_PIECE_BYTES - 8)));

	return size < s->bytes ? size : s->bytes;
}

/* Copies one piece of the current object. A global function: the verifier checks it once. */
__attribute__((noinline)) int take_piece(__u32 i)
{
	__u32 zero = 0;
	struct sample_object *o = bpf_map_lookup_elem(&objects, &zero);
	const struct RUNTIME_OF(_walk) *p = state();
	__u64 at, n, size = 0;

	i &= RUNTIME_STEPS - 1;
	if (!o || !p)
		return 0;
	const struct runtime_step *s = &p->copies.what.step[i];
	__u64 used = o->used;

#ifdef RUNTIME_DESCRIBES
	if (!i) {
		__builtin_memcpy(o->bytes, p->told, sizeof(p->told));
		o->at[0] = o->address;
		o->len[0] = o->used = sizeof(p->told);
		o->offset[0] = 0;
		return 0;
	}
#endif
	at = i ? step_target(o, s) : o->at[0];
	at = at ? at + (__s64)s->start : 0;
	o->at[i] = i ? at : o->address;
	o->len[i] = 0;
	o->offset[i] = used;
	if (used >= SAMPLE_PIECES_END)
		return 0;
	n = s->bytes;
	if (s->size_bytes == RUNTIME_SIZE_TOLD) {
		n = size_told(o, s);
	} else if (s->size_bytes && runtime_read(at + s->size_at, &size)) {
		if (s->size_bytes < 8)
			size &= (1ull << 8 * (s->size_bytes & 7)) - 1;
		if (size < SAMPLE_PIECE_BYTES)
			size = (size << (s->size_shift & 7)) + s->size_add;
		n = size < n ? size : n;
	}
	n = take_bytes(o->bytes + (used & (SAMPLE_PIECES_END - 8)), at, n);
	o->len[i] = n;
	o->used = used + ((n + 7) & ~7ull);
	return 0;
}

/* Copies an object and sends it. Returns false if there is no space. */
static __always_inline bool take_object(const struct walk *w, const struct runtime_copy *c,
					__u64 key, __u64 check, __u64 address)
{
	__u32 zero = 0;
	struct sample_object *o = bpf_map_lookup_elem(&objects, &zero);

	if (!o || shared_ring_fills())
		return false;
	o->sample = w->sample;
	o->sample.flags = SAMPLE_OBJECT;
	o->sample.kernel_frames = o->sample.items = 0;
	o->address = key;
	o->at[0] = address;
	o->check = check;
	o->used = 0;
	o->pieces = c->steps;
	for (__u32 i = 0; i < RUNTIME_STEPS; i++) {
		if (i < c->steps)
			take_piece(i);
	}
	__u64 n = o->used;

	ENV_OPAQUE(n);
	if (n > SAMPLE_OBJECT_BYTES)
		n = SAMPLE_OBJECT_BYTES;
	n += offsetof(struct sample_object, bytes);
	o->sample.user_frames = (n - sizeof(o->sample)) / 8;
	return shared_send(o, n);
}

/* The place for the tag of a copied object. */
struct seen_place {
	__u64 *set;
	__u16 tag;
};

/* Whether the object was not copied yet. Also returns false if there is no table of copied
 * objects. */
static __always_inline bool is_unseen(const struct walk *w, __u64 key, __u64 check,
				      struct seen_place *ret)
{
	__u32 zero = 0;
	struct seen *s = bpf_map_lookup_elem(&seen_objects, &zero);
	__u64 h = (w->sample.start_ns ^ w->sample.pid ^ w->memory << 16) * MIX_GOLDEN;

	if (!s)
		return false;
	h = mix_number(h, key, MIX_FIRST);
	h = mix_number(h, check, MIX_SECOND);
	ret->set = &s->sets[runtime_seen_set(w->sample.pid, key) & (RUNTIME_SEEN_SETS - 1)];
	ret->tag = (h >> 16 & 0xffff) | 1;
	__u64 of = *ret->set;

	return (__u16)of != ret->tag && (__u16)(of >> 16) != ret->tag &&
	       (__u16)(of >> 32) != ret->tag && (__u16)(of >> 48) != ret->tag;
}

ENV_INLINE void env_moving_object(const struct walk *w, struct runtime_copies *c, __u64 key,
				  __u64 check, __u64 address)
{
	struct seen_place place;

	if (!c->left || !is_unseen(w, key, check, &place))
		return;
	c->left--;
	if (take_object(w, &c->what, key, check, address))
		*place.set = *place.set << 16 | place.tag;
}

#ifdef RUNTIME_DESCRIBES
ENV_INLINE bool env_is_new(const struct walk *w, struct runtime_copies *c, __u64 key, __u64 check)
{
	struct seen_place place;

	if (!c->left || !is_unseen(w, key, check, &place))
		return false;
	c->left--;
	return true;
}

/* A global function: the verifier checks it once. */
__attribute__((noinline)) int tell_object(__u64 key, __u64 check)
{
	struct walk *w = scratch();
	struct RUNTIME_OF(_walk) *p = state();
	struct seen_place place;

	if (w && p && take_object(w, &p->copies.what, key, check, 0) &&
	    is_unseen(w, key, check, &place))
		*place.set = *place.set << 16 | place.tag;
	return 0;
}

ENV_INLINE void env_told_object(const struct walk *w, struct runtime_copies *c, const __u64 *told,
				__u64 key, __u64 check)
{
	tell_object(key, check);
}
#endif

ENV_INLINE void env_object(const struct walk *w, struct runtime_copies *c, __u64 address,
			   __u64 check)
{
	env_moving_object(w, c, address, check, address);
}

#define RUNTIME_STEPS_AT_ONCE 32

__attribute__((noinline)) int step(void)
{
	struct walk *w = scratch();
	struct RUNTIME_OF(_walk) *p = state();

	return w && p ? RUNTIME_OF(_step)(w, p) : 1;
}

__attribute__((noinline)) int steps(void)
{
	for (int i = 0; i < RUNTIME_STEPS_AT_ONCE; i++) {
		if (step())
			return 1;
	}
	return 0;
}

/* Prepares the walk's state for the runtime of an entry. */
static __always_inline bool prepare(const struct walk *w, __u32 entry)
{
	const struct runtime_entry *e = runtime_entry(entry);
	struct RUNTIME_OF(_walk) *p = state();

	if (!e || !p)
		return false;
	__u32 position = e->config;
	p->base = e->base;
	const struct slab *s = env_slab(position, RUNTIME_CONFIG_WORDS);
	if (!s)
		return false;
	const struct runtime_config *c = ENV_AT(s, position, struct runtime_config,
						RUNTIME_CONFIG_WORDS);
	__builtin_memcpy(&p->config, c->own, sizeof(p->config));
	p->copies.what = c->copy;
	p->copies.left = c->copy.steps && w->memory ? RUNTIME_OBJECTS_AT_ONCE : 0;
	p->copies.keep = 0;
	return true;
}

static __always_inline bool begin(struct walk *w)
{
	struct RUNTIME_OF(_walk) *p = state();

	return prepare(w, w->runtimes) && p && RUNTIME_OF(_begin)(w, p);
}

SEC("perf_event")
int RUNTIME_ON(void *ctx)
{
	struct walk *w = scratch();

	if (!w)
		return 0;
	if (begin(w)) {
		for (int i = 0; i <= RUNTIME_MAX_ITEMS / RUNTIME_STEPS_AT_ONCE; i++) {
			if (steps())
				break;
		}
	}
	runtime_done(ctx, w);
	return 0;
}

#ifdef RUNTIME_TAKES
#define RUNTIME_FRAMES_AT_ONCE 64

/* Copies the objects of the last frame, for walks that describe their objects. Returns 0 if there
 * was nothing to copy. */
#ifdef RUNTIME_DESCRIBES
__attribute__((noinline)) int tell(void)
{
	struct walk *w = scratch();
	struct RUNTIME_OF(_walk) *p = state();

	return w && p ? RUNTIME_OF(_describe)(w, p) : 0;
}
#else
static __always_inline int tell(void)
{
	return 0;
}
#endif

static __always_inline struct fetched *fetched_here(void)
{
	__u32 cpu = bpf_get_smp_processor_id();

	return bpf_map_lookup_elem(&fetched, &cpu);
}

/* Returns the place for a new line. NULL: the line exists already, or there is no space. */
static __always_inline struct sample_line *new_line(struct fetched *f, __u64 at, __u32 *ret_hash)
{
	__u32 hash = (__u32)((at / SAMPLE_FETCHED_BYTES * MIX_GOLDEN) >> 32) &
		     (SHARED_FETCHED_INDEX - 1);
	__u64 known = f->index[hash], n = f->sent.lines;

	ENV_OPAQUE(n);
	*ret_hash = hash;
	if (known > n)
		known = 0;
	/* The verifier of 5.10 does not deduce this bound from earlier checks. */
	ENV_OPAQUE(known);
	if (n >= SAMPLE_FETCHED_LINES ||
	    (known && known <= SAMPLE_FETCHED_LINES && f->sent.line[known - 1].at == at))
		return NULL;
	return &f->sent.line[n];
}

static __always_inline void add_line(struct fetched *f, struct sample_line *line, __u64 at,
				     __u32 hash)
{
	line->at = at;
	f->index[hash] = ++f->sent.lines;
}

/* Stores the line of memory at an address. A global function: the verifier checks it once. */
__attribute__((noinline)) int keep_line(__u64 at)
{
	struct fetched *f = fetched_here();
	__u32 hash;

	if (!f)
		return 0;
	struct sample_line *line = new_line(f, at, &hash);

	if (line && !bpf_probe_read_user(line->bytes, SAMPLE_FETCHED_BYTES, (void *)at))
		add_line(f, line, at, hash);
	return 0;
}

/* Stores numbers as a line. */
__attribute__((noinline)) int keep_numbers(__u64 at, __u64 a, __u64 b, __u64 c)
{
	struct fetched *f = fetched_here();
	__u32 hash;

	if (!f)
		return 0;
	struct sample_line *line = new_line(f, at, &hash);

	if (!line)
		return 0;
	line->told[0] = a;
	line->told[1] = b;
	line->told[2] = c;
	add_line(f, line, at, hash);
	return 0;
}

ENV_INLINE void env_tell(__u64 key, const __u64 *numbers)
{
	keep_numbers(key, numbers[0], numbers[1], numbers[2]);
}

ENV_INLINE void env_keep(__u64 addr, __u32 size)
{
	__u64 first = addr & ~(SAMPLE_FETCHED_BYTES - 1ull),
	      last = (addr + size - 1) & ~(SAMPLE_FETCHED_BYTES - 1ull);

	keep_line(first);
	if (last - first > SAMPLE_FETCHED_BYTES)
		keep_line(first + SAMPLE_FETCHED_BYTES);
	if (last != first)
		keep_line(last);
}

/* Fetches memory for code at pc, if pc is in a mapping whose frames the runtime takes over, or just
 * after one: the walk is deferred because the mappings are not known yet. */
__attribute__((noinline)) int fetch_for(__u64 pc, __u64 fp)
{
	struct walk *w = scratch();
	struct RUNTIME_OF(_walk) *p = state();

	/* fp must be passed even if the runtime does not use it. */
	ENV_OPAQUE(fp);
	if (!w || !p || pc < 4096 || pc >= WALK_ADDRESS_END)
		return 0;
	__u32 position = w->maps + walk_search_maps(w->maps, w->map_count, pc) * 8;
	const struct slab *s = env_slab(position, 8);

	if (!w->map_count || !s)
		return 0;
	const struct map_entry *m = ENV_AT(s, position, struct map_entry, 8);

	if (pc >= m->start && pc < m->end + WALK_GROWS &&
	    m->takers >> w->taker % TABLES_PROCESS_RUNTIMES_MAX & 1) {
		w->map = *m;
		RUNTIME_OF(_fetch)(w, p, pc, fp);
	}
	return 0;
}

#define RUNTIME_FETCH_WINDOWS (SAMPLE_FETCHED_STACK / WALK_WINDOW)

/* Fetches memory for the words of one window of the stack. below: the word before them. */
__attribute__((noinline)) int fetch_window(__u64 at, __u64 below)
{
	struct walk *w = scratch();

	if (!w || bpf_probe_read_user(w->window, WALK_WINDOW, (void *)at))
		return 1;
	for (int i = 0; i < WALK_WINDOW / 8; i++) {
		fetch_for(w->window[i] - 1, i ? w->window[i - 1] : below);
		/* Copying objects may have overwritten the window. */
		if (tell() && bpf_probe_read_user(w->window, WALK_WINDOW, (void *)at))
			return 1;
	}
	return 0;
}

/* Fetches the memory that a walk over a copy of the stack will need, and sends it first. */
static __always_inline void fetch(struct walk *w)
{
	struct fetched *f = fetched_here();
	struct RUNTIME_OF(_walk) *p = state();
	__u64 sp = w->regs[UNWIND_REG_RSP] & ~7ull, below = 0;

	if (!f || !p)
		return;
	f->sent.lines = 0;
	p->copies.keep = 1;
	fetch_for(w->leaf_exact ? w->leaf_pc : w->leaf_pc - 1, w->regs[UNWIND_REG_RBP]);
	tell();
	for (int i = 0; i < RUNTIME_FETCH_WINDOWS; i++) {
		if (fetch_window(sp + i * WALK_WINDOW, below))
			break;
		below = w->window[WALK_WINDOW / 8 - 1];
	}
	w->window_start = 0;
	__u64 n = f->sent.lines;

	ENV_OPAQUE(n);
	if (!n || n > SAMPLE_FETCHED_LINES || shared_ring_fills())
		return;
	n = sizeof(f->sent) - (SAMPLE_FETCHED_LINES - n) * sizeof(struct sample_line);
	f->sent.sample = w->sample;
	f->sent.sample.flags = SAMPLE_FETCHED;
	f->sent.sample.kernel_frames = f->sent.sample.items = 0;
	f->sent.sample.user_frames = (n - sizeof(f->sent.sample)) / 8;
	ENV_OPAQUE(n);
	if (n <= sizeof(f->sent) && shared_send(&f->sent, n))
		w->sample.flags |= SAMPLE_FETCHES;
}

__attribute__((noinline)) int frame(void)
{
	struct walk *w = scratch();
	struct RUNTIME_OF(_walk) *p = state();

	if (!w || !p)
		return WALK_IS_OVER;
	if (!runtime_has_room(w))
		return walk_stop(w, WALK_DEPTH);
	return runtime_framed(w, RUNTIME_OF(_frame)(w, p));
}

__attribute__((noinline)) int frames(void)
{
	for (int i = 0; i < RUNTIME_FRAMES_AT_ONCE; i++) {
		int next = frame();

		tell();
		if (next)
			return next;
	}
	return WALK_GOES_ON;
}

/* Walks as long as frames are this runtime's, or fetches what a deferred walk will need. Then the
 * native walk continues, or ends the sample. */
SEC("perf_event")
int RUNTIME_GLUE(RUNTIME_ON, _frame)(void *ctx)
{
	struct walk *w = scratch();
	int next = WALK_IS_OVER;

	if (!w)
		return 0;
	if (w->phase == WALK_FETCHES) {
		if (prepare(w, runtime_taker(w)))
			fetch(w);
		walk_next(ctx);
		return 0;
	}
	if (prepare(w, runtime_taker(w))) {
		next = WALK_GOES_ON;
		for (int i = 0; i <= SAMPLE_MAX_USER / RUNTIME_FRAMES_AT_ONCE && !next; i++)
			next = frames();
#ifdef RUNTIME_ENDS
		struct RUNTIME_OF(_walk) *p = state();

		if (p)
			RUNTIME_OF(_end)(w, p);
#endif
	}
	w->phase = next == WALK_IS_OVER ? WALK_ENDS : WALK_WALKS;
	walk_next(ctx);
	return 0;
}
#else
ENV_INLINE void env_keep(__u64 addr, __u32 size)
{
}

ENV_INLINE void env_tell(__u64 key, const __u64 *numbers)
{
}
#endif
