/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The page: one HTML file with its style, its script, Debian's d3, and the profile as JSON at its
 * end. The page makes no network request. Its Content-Security-Policy allows only the two scripts
 * that it was built with.
 *
 * The JSON (the last element of page.html) is
 *
 *   { header: {…}, strings: […],
 *     nodes: { up: […], frame: […] },
 *     frames: { name: […], binary: […], where: […], source: […], line: […], at: […], kind: […] },
 *     processes: { pid: […], name: […] },
 *     threads: { process: […], tid: […], name: […] },
 *     rows: { node: […], thread: […], samples: […] } }
 *
 * nodes is the tree of all stacks in preorder: a node goes up `up` levels from the one before and
 * down one. strings, frames, processes and threads are numbered from 0. A row holds how many
 * samples of a thread (-1: unknown) ended in a node.
 */
#ifndef PROF_EXPORT_PAGE_HTML_H
#define PROF_EXPORT_PAGE_HTML_H

#include "tools/prof-export/model/model.h"
#include "tools/prof-export/output/output.h"

/* Returns 0 or -ENOMEM; errors of writing stay in the output. */
int html_write(const struct model *m, struct output *o);

#endif
