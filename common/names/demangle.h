/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Demangling: a name of a symbol table or of DWARF to the name that people know. C++ (Itanium ABI),
 * Rust (legacy and v0) and D, through libiberty.
 *
 * The input is a stranger's. libiberty's own limit on recursion stays on (it also refuses names
 * over 1,024 bytes); here, what it may print is bounded too, since a short name can stand for an
 * endless one, by back references that double at each step.
 */
#ifndef PROFPIPE_DEMANGLE_H
#define PROFPIPE_DEMANGLE_H

#include <stdbool.h>
#include <stddef.h>

/* Bytes of a demangled name; longer ones are cut at a character's border. */
#define DEMANGLE_MAX 1024

/*
 * Writes the demangled name to out, NUL-terminated, cut to cap - 1 bytes (cap >= 1), and says how
 * long it is. A name that is not mangled, or in no known way, is copied as it is; a symbol version
 * (`memcpy@@GLIBC_2.14`) is left out. Suffixes of clones (`.cold`, `.part.0`, `.constprop.1`) are
 * kept. Not reentrant.
 */
size_t demangle(const char *name, char *out, size_t cap);

#endif
