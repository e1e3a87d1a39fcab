/* SPDX-License-Identifier: Apache-2.0 */
/* News of the host: the consequences of new files, and of processes and threads that end. These are
 * the callbacks of struct host_config; ctx is the struct prof. */
#ifndef PROF_BPF_RUN_HOST_NEWS_H
#define PROF_BPF_RUN_HOST_NEWS_H

#include <stdbool.h>
#include <stdint.h>

struct host_file;
struct host_process;
struct host_thread;

bool host_news_file_known(void *ctx, struct host_file *f);
void host_news_file_needs_rows(void *ctx, struct host_file *f, int fd);
void host_news_file_gone(void *ctx, struct host_file *f);
void host_news_attributes_known(void *ctx, struct host_process *h);
void host_news_process_gone(void *ctx, struct host_process *h);
void host_news_thread_gone(void *ctx, struct host_thread *t);
bool host_news_is_wanted(void *ctx, uint32_t pid, uint64_t exec_ns);

#endif
