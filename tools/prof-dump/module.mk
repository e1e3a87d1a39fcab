# SPDX-License-Identifier: Apache-2.0
# Made of the libraries that prof-bpf, prof-deltas and prof-symd are made of.
TOOLS += prof-dump
prof-dump_USES := names rows walk go cell status wire base
prof-dump_GEN  := $(RUNTIMES_WALK)
