/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One self-contained page: page.html with its style, its script and Debian's d3 in it, and the
 * profile as JSON behind it. The page asks no network for anything, and its Content-Security-Policy
 * lets it run nothing but the two scripts it was built with.
 *
 * The JSON (page.html's last element) is
 *   { header: {…}, strings: […], nodes: { up: […], frame: […] }, frames: { name, kind, binary,
 * source, line: […] }, processes: { pid, name }, threads: { process, tid, name }, rows: { node,
 * thread, samples } } nodes is the tree of all stacks in preorder: a node goes up `up` levels from
 * the one before and down one. strings, frames, processes and threads are numbered from 0. A row
 * says that so many samples of a thread (-1: unknown) ended in a node.
 */
#ifndef PROFPIPE_HTML_H
#define PROFPIPE_HTML_H

#include "tools/prof-export/model/model.h"
#include "tools/prof-export/output/output.h"

/* 0, -ENOMEM; errors of the output stay in it. */
int html_write(const struct model *m, struct output *o);

#endif
