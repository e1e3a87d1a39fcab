/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Folded stacks: one line for each distinct stack, `process;root;…;leaf count`, as FlameGraph,
 * speedscope and others read them. Lines are sorted by their bytes. Names are labels (label.h) with
 * `:` instead of `;`.
 *
 * Source: the README of github.com/brendangregg/FlameGraph.
 */
#ifndef PROF_EXPORT_OUTPUT_FOLDED_H
#define PROF_EXPORT_OUTPUT_FOLDED_H

#include "tools/prof-export/model/model.h"
#include "tools/prof-export/output/output.h"

/* threads: the thread's name is the second frame. 0, -ENOMEM; errors of the output stay in it. */
int folded_write(const struct model *m, bool threads, struct output *o);

#endif
