/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0 */
/*
 * The names of Java's threads.
 *
 * The stub that enters Java has the JavaThread in its frame. That refers to an object of the class
 * Thread: of the thread itself, or of the virtual thread that it runs. When a walk passes the stub
 * and the thread's number or the reference to its name have changed since the last sample, the name
 * is sent (struct sample_thread). Otherwise a sample costs only a few reads, because the offsets of
 * the fields are cached for each process.
 */
#ifndef BPF_HOTSPOT_HOTSPOT_THREAD_H
#define BPF_HOTSPOT_HOTSPOT_THREAD_H

#include "bpf/hotspot/hotspot_object.h"
#include "bpf/mix.h"

#define HOTSPOT_STUB_THREAD 24 /* bytes above RBP in the stub's frame: the JavaThread */

#ifdef __bpf__
#define HOTSPOT_LAYOUTS 512 /* processes, by hash */
#define HOTSPOT_TITLES 8192 /* threads, by hash */

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, HOTSPOT_LAYOUTS);
	__type(key, __u32);
	__type(value, __u64);
} thread_layouts SEC(".maps");

/* Identifies the name that was last sent for a thread. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, HOTSPOT_TITLES);
	__type(key, __u32);
	__type(value, __u64);
} thread_titles SEC(".maps");

/* A thread_layouts entry: a hash of the process, in the bits above the offsets of two fields, which
 * are in units of 4 bytes, and a bit that tells whether references are coloured. It is one word,
 * since all cpus write it. */
#define HOTSPOT_LAYOUT_TAG 24
#define HOTSPOT_LAYOUT_NAME(v) (((v)&0x3ff) * 4)
#define HOTSPOT_LAYOUT_TID(v) (((v) >> 10 & 0x3ff) * 4)
#define HOTSPOT_LAYOUT_COLOURED (1u << 20)

ENV_INLINE __u64 hotspot_hash(__u64 a, __u64 b)
{
	__u64 h = (a ^ a >> 32) * MIX_GOLDEN;

	h = mix_number(h, b, MIX_FIRST);
	return h ^ h >> 32;
}

/* Returns the layout of the process's class Thread. `object` is an instance of it or of a subclass;
 * 0: it is neither. */
ENV_FUNCTION __u64 hotspot_thread_layout(HOTSPOT_PARAMETER __u64 object)
{
	HOTSPOT_FIND(w, p);
	__u64 class = hotspot_class(HOTSPOT_ARGUMENT(w, p) object), next, top;
	__u32 coloured = 0;

	if (!class) {
		coloured = HOTSPOT_LAYOUT_COLOURED;
		class = hotspot_class(HOTSPOT_ARGUMENT(w, p) hotspot_uncoloured(object));
	}
	if (!class || !runtime_read_bytes(&top, 8, p->base + p->config.object_class))
		return 0;
	for (int i = 0; i < HOTSPOT_SUPERS; i++) {
		if (!runtime_read_bytes(&next, 8, class + p->config.super))
			return 0;
		if (next == top)
			break;
		class = next;
	}
	if (!hotspot_fields(HOTSPOT_ARGUMENT(w, p) class) || !p->field[HOTSPOT_NAME] ||
	    !p->field[HOTSPOT_TID])
		return 0;
	return coloured | (p->field[HOTSPOT_NAME] / 4 & 0x3ff) |
	       (p->field[HOTSPOT_TID] / 4 & 0x3ff) << 10;
}

/* Returns the object that a JavaThread refers to, in the form of the reference; 0: none. */
ENV_INLINE __u64 hotspot_thread_object(struct hotspot_walk *p, __u64 thread, __u16 at)
{
	__u64 v;

	if (!at || !runtime_read_bytes(&v, 8, thread + at) || !v)
		return 0;
	if (p->config.flags & HOTSPOT_THREAD_HANDLES && !runtime_read_bytes(&v, 8, v))
		return 0;
	return v;
}

/* Copies the characters of the String that a field refers to into the record. Returns 0 if it could
 * not be read. */
ENV_FUNCTION __u32 hotspot_copy_title(HOTSPOT_PARAMETER __u64 at)
{
	HOTSPOT_FIND(w, p);
	__u64 string = hotspot_reference(HOTSPOT_ARGUMENT(w, p) at), class, value, n;
	__u32 zero = 0, layout, length = 0, base;
	struct sample_thread *t = (struct sample_thread *)bpf_map_lookup_elem(&objects, &zero);
	__u8 coder = 1;

	if (!t || string == HOTSPOT_NO_OBJECT)
		return 0;
	t->bytes = t->flags = 0;
	if (!string)
		return 1;
	class = hotspot_class(HOTSPOT_ARGUMENT(w, p) string);
	if (!class || !hotspot_fields(HOTSPOT_ARGUMENT(w, p) class) || !p->field[HOTSPOT_VALUE])
		return 0;
	value = hotspot_reference(HOTSPOT_ARGUMENT(w, p) string + p->field[HOTSPOT_VALUE]);
	if (p->field[HOTSPOT_CODER] &&
	    !runtime_read_bytes(&coder, 1, string + p->field[HOTSPOT_CODER]))
		return 0;
	if (!value || value == HOTSPOT_NO_OBJECT)
		return 0;
	class = hotspot_class(HOTSPOT_ARGUMENT(w, p) value);
	if (!class || !runtime_read_bytes(&layout, 4, class + p->config.layout))
		return 0;
	/* This part of an array's layout tells where its elements begin. The length is just before
	 * them, unless the elements were aligned to 8 bytes. */
	base = layout >> 16 & 0xff;
	if (!runtime_read_bytes(&length, 4, value + (base == 24 ? 16 : base - 4)))
		return 0;
	/* Before JDK 9 a String has an array of characters, of two bytes each. */
	n = p->field[HOTSPOT_CODER] ? length : length * 2ull;
	ENV_OPAQUE(n); /* see at_most in shared.bpf.h */
	if (n > SAMPLE_THREAD_BYTES)
		n = SAMPLE_THREAD_BYTES;
	if (n && bpf_probe_read_user(t->text, n, (void *)(value + base)))
		return 0;
	t->bytes = n;
	t->flags = coder ? SAMPLE_THREAD_UTF16 : 0;
	return 1;
}

/* Sends the name of a thread. `at` is the field of its object that refers to the name. */
ENV_FUNCTION __u32 hotspot_send_title(HOTSPOT_PARAMETER __u64 at, __u32 virtual)
{
	HOTSPOT_FIND(w, p);
	__u32 zero = 0;
	struct sample_thread *t = (struct sample_thread *)bpf_map_lookup_elem(&objects, &zero);

	if (!t || !hotspot_copy_title(HOTSPOT_ARGUMENT(w, p) at) || shared_ring_fills())
		return 0;
	t->sample = w->sample;
	t->sample.flags = SAMPLE_THREAD;
	t->sample.kernel_frames = t->sample.items = 0;
	t->sample.user_frames = (sizeof(*t) - sizeof(t->sample)) / 8;
	if (virtual)
		t->flags |= SAMPLE_THREAD_VIRTUAL;
	return shared_send(t, sizeof(*t));
}

/* Sends the name of the thread if it has changed. thread: its JavaThread. */
ENV_FUNCTION __u32 hotspot_thread(HOTSPOT_PARAMETER __u64 thread)
{
	HOTSPOT_FIND(w, p);
	const struct hotspot_config *c = &p->config;
	const __u64 process = hotspot_hash(w->sample.start_ns, w->sample.pid),
		    of = process ^ w->sample.tid;
	__u64 carrier, object, layout, title, tid = 0;
	__u32 i = process & (HOTSPOT_LAYOUTS - 1), name = 0;
	__u64 *known = bpf_map_lookup_elem(&thread_layouts, &i), *sent;

	i = hotspot_hash(of, 0) & (HOTSPOT_TITLES - 1);
	sent = bpf_map_lookup_elem(&thread_titles, &i);
	carrier = hotspot_thread_object(p, thread, c->thread);
	if (!known || !sent || !carrier)
		return 0;
	object = hotspot_thread_object(p, thread, c->thread_virtual);
	if (!object)
		object = carrier;
	layout = *known;
	if ((layout ^ process) >> HOTSPOT_LAYOUT_TAG || !(layout & 0x3ff)) {
		layout = hotspot_thread_layout(HOTSPOT_ARGUMENT(w, p) object);
		if (!layout)
			return 0;
		layout |= process >> HOTSPOT_LAYOUT_TAG << HOTSPOT_LAYOUT_TAG;
		*known = layout;
	}
	if (layout & HOTSPOT_LAYOUT_COLOURED) {
		object = hotspot_uncoloured(object);
		carrier = hotspot_uncoloured(carrier);
	}
	if (!runtime_read_bytes(&tid, 8, object + HOTSPOT_LAYOUT_TID(layout)) ||
	    !runtime_read_bytes(&name, 4, object + HOTSPOT_LAYOUT_NAME(layout)))
		return 0;
	title = hotspot_hash(of ^ tid << 20, name) | 1;
	if (*sent != title) {
		if (!hotspot_send_title(HOTSPOT_ARGUMENT(w, p) object + HOTSPOT_LAYOUT_NAME(layout),
					object != carrier))
			return 0;
		*sent = title;
	}
	w->sample.flags |= SAMPLE_TITLED;
	return 1;
}

/* Runs after the frames of a sample. */
ENV_INLINE void hotspot_end(struct walk *w, struct hotspot_walk *p)
{
	if (p->config.thread && p->config.fields && p->copies.left && w->thread &&
	    !(w->sample.flags & SAMPLE_TITLED))
		hotspot_thread(HOTSPOT_ARGUMENT(w, p) w->thread);
}
#endif

/* Remembers the JavaThread when the walk is at the stub that enters Java. */
ENV_INLINE void hotspot_enters_java(struct walk *w)
{
	__u64 thread;

	if (!w->thread && w->fp - w->sp < HOTSPOT_NEAR &&
	    walk_read(w, w->fp + HOTSPOT_STUB_THREAD, &thread) && !(thread & 7))
		w->thread = thread;
}

#endif
