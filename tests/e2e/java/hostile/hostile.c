/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attacks of a Java program on its profiler, from a native method with interpreted callers:
 *  - pit: the methods of its callers lie in memory that blocks its readers forever;
 *  - circle: a caller's frame is its own caller;
 *  - far: methods, code positions and stack pointers of its callers are wild;
 *  - heap: another thread's compiled code goes on while the descriptions of all code change.
 * The frames are restored when the method returns; after `heap` it does not return.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <jni.h>
#include <linux/userfaultfd.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define FRAMES 4
/* An interpreted frame, in words from its frame pointer on: two of these are the method and the
 * sender's stack pointer, the others are what else it holds. */
#define LOWEST (-9)

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void wait_until(double end)
{
	while (now() < end)
		;
}

static uint64_t pit(void)
{
	struct uffdio_api api = { .api = UFFD_API };
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
	struct uffdio_register r = { .mode = UFFDIO_REGISTER_MODE_MISSING };
	void *region = mmap(NULL, 1 << 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			    0);

	r.range.start = (uintptr_t)region;
	r.range.len = 1 << 16;
	if (fd < 0 || region == MAP_FAILED || ioctl(fd, UFFDIO_API, &api) != 0 ||
	    ioctl(fd, UFFDIO_REGISTER, &r) != 0)
		_exit(3);
	return (uintptr_t)region + 4096;
}

static uint64_t wild(void)
{
	static const uint64_t values[] = { 0, 1, INT64_MAX, 1ull << 63, UINT64_MAX, 1ull << 47 };
	int i = rand() % 8;

	return i < 6 ? values[i] : (uint64_t)rand() << (rand() % 48);
}

static void spoil_frames(const char *how, uint64_t *fp, double end)
{
	uint64_t *frames[FRAMES], saved[FRAMES][-LOWEST + 1];
	uint64_t trap = strcmp(how, "pit") == 0 ? pit() : 0;

	for (int i = 0; i < FRAMES; i++) {
		fp = (uint64_t *)*fp;
		frames[i] = fp;
		memcpy(saved[i], fp + LOWEST, sizeof(saved[i]));
	}
	do {
		for (int i = 0; i < FRAMES; i++) {
			if (strcmp(how, "pit") == 0)
				frames[i][-3] = trap;
			else if (strcmp(how, "circle") == 0)
				frames[i][0] = (uintptr_t)frames[i];
			else
				for (int word = LOWEST; word < 0; word++)
					frames[i][word] = wild();
		}
		wait_until(now() + 0.01);
	} while (now() < end);
	for (int i = 0; i < FRAMES; i++)
		memcpy(frames[i] + LOWEST, saved[i], sizeof(saved[i]));
}

static uint64_t number(const char *symbol)
{
	const uint64_t *p = (const uint64_t *)dlsym(RTLD_DEFAULT, symbol);

	if (!p)
		_exit(4);
	return *p;
}

/* An entry of the virtual machine's own tables: an offset, or the address of a static field. */
static uint64_t field(const char *type, const char *name, uint64_t missing)
{
	const char *at = (const char *)number("gHotSpotVMStructs");
	uint64_t stride = number("gHotSpotVMStructEntryArrayStride");

	for (; *(const char *const *)(at + number("gHotSpotVMStructEntryTypeNameOffset"));
	     at += stride) {
		const char *t = *(const char *const *)(at + number("gHotSpotVMStructEntryTypeName"
								   "Offset"));
		const char *f = *(const char *const *)(at + number("gHotSpotVMStructEntryFieldName"
								   "Offset"));

		if (strcmp(t, type) != 0 || strcmp(f, name) != 0)
			continue;
		if (*(const int32_t *)(at + number("gHotSpotVMStructEntryIsStaticOffset")))
			return *(const uint64_t *)(at +
						   number("gHotSpotVMStructEntryAddressOffset"));
		return *(const uint64_t *)(at + number("gHotSpotVMStructEntryOffsetOffset"));
	}
	return missing;
}

static uint64_t word_at(uint64_t address)
{
	return *(const uint64_t *)address;
}

/* Changes the maps of segments, and the description of each piece of code. */
static void spoil_heaps(double end)
{
	uint64_t heaps = word_at(field("CodeCache", "_heaps", 0));
	uint64_t length = field("GrowableArrayBase", "_len", 0);
	uint64_t data = word_at(heaps + field("GrowableArray<int>", "_data", 8));
	int32_t count = *(const int32_t *)(heaps + length);
	uint64_t memory = field("CodeHeap", "_memory", 0), map = field("CodeHeap", "_segmap", 0);
	uint64_t low = field("VirtualSpace", "_low", 0), high = field("VirtualSpace", "_high", 0);

	while (now() < end) {
		uint64_t heap = word_at(data + 8 * ((uint64_t)rand() % (uint64_t)count));
		uint64_t start = word_at(heap + memory + low), stop = word_at(heap + memory + high);
		uint64_t segments = word_at(heap + map + low), last = word_at(heap + map + high);

		if (stop <= start || last <= segments)
			continue;
		*(uint8_t *)(segments + (uint64_t)rand() % (last - segments)) = (uint8_t)rand();
		/* A header is at the start of a segment of 128 bytes; code is left alone. */
		uint64_t at = start + ((uint64_t)rand() % ((stop - start) / 128)) * 128;

		for (int i = 0; i < 20; i++)
			if (word_at(at) < stop - start && word_at(at + 8) <= 1)
				((uint32_t *)at)[4 + rand() % 20] = (uint32_t)wild();
	}
}

JNIEXPORT void JNICALL Java_Hostile_attack(JNIEnv *env, jclass self, jstring how, jdouble seconds)
{
	const char *text = (*env)->GetStringUTFChars(env, how, NULL);
	double end = now() + seconds;

	(void)self;
	if (strcmp(text, "heap") == 0) {
		wait_until(now() + seconds / 4);
		spoil_heaps(end);
		_exit(0);
	}
	spoil_frames(text, __builtin_frame_address(0), end);
}
