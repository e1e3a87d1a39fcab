# SPDX-License-Identifier: Apache-2.0
TOOLS += prof-bpf
prof-bpf_USES := walk cell status wire base
prof-bpf_LIBS := -lmbedcrypto
prof-bpf_GEN  := $(B)/gen/sample.skel.h $(RUNTIMES_SKEL) $(B)/gen/ksyms.skel.h
