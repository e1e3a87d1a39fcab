/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-bpf/checks/kernel.h"

#include <stdlib.h>
#include <string.h>
#include "common/base/text/decimal.h"

#define CALL 0xe8
#define JUMP 0xe9

/* Takes up to three digits from *at: no release has more. */
static bool take_number(const char **at, unsigned *ret)
{
	uint64_t n = *ret;
	const size_t digits = decimal_read(*at, 3, &n);

	*at += digits;
	*ret = (unsigned)n;
	return digits;
}

static bool take_dot(const char **at)
{
	return **at == '.' && (*at)++;
}

static bool parse(const char *text, struct kernel_version *ret)
{
	struct kernel_version v = { 0 };

	if (!take_number(&text, &v.major) || !take_dot(&text) || !take_number(&text, &v.minor))
		return false;
	if (take_dot(&text))
		(void)take_number(&text, &v.patch);
	*ret = v;
	return true;
}

bool kernel_version_parse(const char *release, const char *version, struct kernel_version *ret)
{
	struct kernel_version r, d;
	const char *debian = strstr(version, "Debian ");

	if (!parse(release, &r))
		return false;
	*ret = r;
	if (debian && parse(debian + strlen("Debian "), &d) && d.major == r.major &&
	    d.minor == r.minor)
		*ret = d;
	return true;
}

bool kernel_older(const struct kernel_version *v, unsigned major, unsigned minor, unsigned patch)
{
	if (v->major != major)
		return v->major < major;
	if (v->minor != minor)
		return v->minor < minor;
	return v->patch < patch;
}

bool kernel_may_lock_up(const struct kernel_version *v)
{
	return !kernel_older(v, 5, 18, 0) && kernel_older(v, 6, 4, 0);
}

bool kernel_locks_up(const struct kernel_version *v)
{
	if (!kernel_may_lock_up(v))
		return false;
	if (v->major == 6 && v->minor == 1)
		return v->patch < 36;
	return !(v->major == 6 && v->minor == 3 && v->patch >= 10);
}

void kernel_symbols_line(struct kernel_symbols *s, const char *line)
{
	char *end;
	const uint64_t addr = strtoull(line, &end, 16);

	if (!addr || end[0] != ' ' || !end[1] || end[2] != ' ')
		return;
	const char *name = end + 3;

	if (strcmp(name, "copy_from_user_nofault") == 0)
		s->function = addr;
	else if (strcmp(name, "__check_object_size") == 0)
		s->object_size = addr;
	else if (strcmp(name, "nmi_uaccess_okay") == 0)
		s->uaccess_okay = addr;
	/* The kernel's own symbols are sorted, and come before those of modules. */
	if (s->function && !s->function_end && addr > s->function)
		s->function_end = addr;
}

bool kernel_code_locks_up(const struct kernel_symbols *s, const uint8_t *code, size_t n)
{
	bool hardened = false;

	if (s->function_end > s->function && n > s->function_end - s->function)
		n = s->function_end - s->function;
	/* A call is a byte and a distance. If the byte is in the middle of another instruction, the
	 * distance leads to neither function. */
	for (size_t i = 0; i + 5 <= n; i++) {
		int32_t distance;

		if (code[i] != CALL && code[i] != JUMP)
			continue;
		memcpy(&distance, code + i + 1, sizeof(distance));
		const uint64_t to = s->function + i + 5 + (uint64_t)(int64_t)distance;

		if (s->uaccess_okay && to == s->uaccess_okay)
			return false;
		hardened |= s->object_size && to == s->object_size;
	}
	return hardened;
}
