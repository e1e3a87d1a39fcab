/* SPDX-License-Identifier: Apache-2.0 */
/* The main of a fuzz target in an ordinary build: replays files and folders of files. Replaying
 * nothing is an error, so that a lost corpus is noticed. */
#include <dirent.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int replay_file(const char *path)
{
	FILE *f = fopen(path, "rb");
	struct stat st;

	if (!f || fstat(fileno(f), &st)) {
		fprintf(stderr, "%s: %s\n", path, strerror(errno));
		exit(1);
	}
	/* Memory of the exact size, so that a sanitizer sees a read beyond it. */
	const size_t size = (size_t)st.st_size;
	uint8_t *data = malloc(size ? size : 1);

	if (!data || fread(data, 1, size, f) != size) {
		fprintf(stderr, "%s: cannot be read completely\n", path);
		exit(1);
	}
	fclose(f);
	const int r = LLVMFuzzerTestOneInput(data, size);

	free(data);
	if (r) {
		fprintf(stderr, "%s: the target returned %d\n", path, r);
		exit(1);
	}
	return 1;
}

static int replay_folder(const char *path)
{
	struct dirent **entries;
	const int n = scandir(path, &entries, NULL, alphasort);
	int count = 0;

	if (n < 0) {
		fprintf(stderr, "%s: %s\n", path, strerror(errno));
		exit(1);
	}
	for (int i = 0; i < n; i++) {
		char *file = NULL;

		if (entries[i]->d_name[0] != '.') {
			if (asprintf(&file, "%s/%s", path, entries[i]->d_name) < 0)
				exit(1);
			count += replay_file(file);
		}
		free(file);
		free(entries[i]);
	}
	free(entries);
	return count;
}

int main(int argc, char **argv)
{
	int count = 0;

	for (int i = 1; i < argc; i++) {
		struct stat st;

		count += stat(argv[i], &st) == 0 && S_ISDIR(st.st_mode) ? replay_folder(argv[i])
									: replay_file(argv[i]);
	}
	if (!count) {
		fprintf(stderr, "%s: no inputs; give the folder of its corpus\n", argv[0]);
		return 1;
	}
	printf("%d inputs\n", count);
	return 0;
}
