# SPDX-License-Identifier: Apache-2.0
# It uses the same libraries as prof-bpf, prof-deltas and prof-symd.
TOOLS += prof-dump
prof-dump_USES := names rows walk go svm cell status wire base
prof-dump_GEN  := $(RUNTIMES_WALK)
