/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/profpipe/run/children/target.h"

#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define SCRIPTS 5      /* longest chain of interpreters that the kernel follows */
#define FIRST_LINE 256 /* bytes of the first line that the kernel reads (BINPRM_BUF_SIZE) */
#define BLANKS " \t"

/* Searches for the file as execvp does. */
static bool find(const char *name, char ret[static PATH_MAX])
{
	const char *at = getenv("PATH");

	if (strchr(name, '/'))
		return snprintf(ret, PATH_MAX, "%s", name) < PATH_MAX && access(ret, X_OK) == 0;
	for (at = at ? at : "/bin:/usr/bin"; at; at = strchr(at, ':')) {
		at += *at == ':';
		const int len = (int)strcspn(at, ":");

		if (snprintf(ret, PATH_MAX, "%.*s%s%s", len, at, len ? "/" : "", name) < PATH_MAX &&
		    access(ret, X_OK) == 0)
			return true;
	}
	return false;
}

/* Maps a file and copies the bytes of its first line to ret, which ends with NUL. */
static bool map(const char *path, char ret[static FIRST_LINE + 1])
{
	/* O_NONBLOCK, so that opening a FIFO does not hang. */
	const int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct stat st;
	bool mapped = false;

	if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode)) {
		const ssize_t n = read(fd, ret, FIRST_LINE);

		ret[n > 0 ? n : 0] = '\0';
		mapped = n > 0 &&
			 mmap(NULL, 1, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) != MAP_FAILED;
	}
	if (fd >= 0)
		close(fd);
	return mapped;
}

/* Returns the program that `env` will run. */
static const char *of_env(char **words)
{
	const char *word;

	do
		word = strtok_r(NULL, BLANKS, words);
	while (word && (*word == '-' || strchr(word, '=')));
	return word;
}

void target_map(const char *name)
{
	char path[PATH_MAX], line[FIRST_LINE + 1], *words;

	for (int i = 0; i < SCRIPTS && name && find(name, path) && map(path, line); i++) {
		if (strncmp(line, "#!", 2) != 0)
			return;
		line[strcspn(line, "\n")] = '\0';
		name = strtok_r(line + 2, BLANKS, &words);
		if (!name || !find(name, path))
			return;
		const char *slash = strrchr(name, '/');

		/* Also map env, which runs first. */
		if (strcmp(slash ? slash + 1 : name, "env") == 0) {
			char unused[FIRST_LINE + 1];

			(void)map(path, unused);
			name = of_env(&words);
		}
	}
}
