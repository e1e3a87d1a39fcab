/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Demangling: turns a name from a symbol table or from DWARF into the name in the source. It
 * supports C++ (Itanium ABI), Rust (legacy and v0) and D, through libiberty.
 *
 * The input is hostile. libiberty limits its recursion, and refuses names over 1,024 bytes. This
 * file also bounds the output: a short name can expand without end, by back references that double
 * it at each step.
 */
#ifndef COMMON_NAMES_DEMANGLE_H
#define COMMON_NAMES_DEMANGLE_H

#include <stdbool.h>
#include <stddef.h>

/* Bytes of a demangled name; longer ones are truncated between two characters. */
#define DEMANGLE_MAX 1024

/*
 * Writes the demangled name to out, NUL-terminated and truncated to cap - 1 bytes (cap >= 1), and
 * returns its length. A name that is not mangled, or in an unknown way, is copied unchanged. A
 * symbol version (`memcpy@@GLIBC_2.14`) is removed; suffixes of clones (`.cold`, `.part.0`,
 * `.constprop.1`) are kept. Not reentrant.
 */
size_t demangle(const char *name, char *out, size_t cap);

#endif
