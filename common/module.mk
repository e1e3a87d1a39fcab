# SPDX-License-Identifier: Apache-2.0
# The libraries, each above those that it uses; `make lint` holds their includes to these lists.
LIBRARIES := names rows walk go svm cell status wire base

names_USES  := go svm cell status wire base
names_LIBS  := -ldw -lelf -llzma -lz -liberty -lZydis -lmbedcrypto
rows_USES   := go svm wire base
rows_LIBS   := -lelf -lz -lzstd -lZydis
walk_USES   := wire base
walk_LIBS   := -lbpf
walk_GEN     = $(RUNTIMES_WALK)
go_USES     :=
svm_USES    := base
cell_USES   := status wire base
cell_LIBS   := -lcap-ng -lseccomp
status_USES := wire base
wire_USES   := base
wire_LIBS   := -lnng -lmsgpackc
base_USES   :=

# Else gcc keeps the state of a CFI program in vector registers and takes it out of them for each
# instruction.
$(B)/common/rows/cfi/cfi_run.o: OUR_CFLAGS += -fno-tree-slp-vectorize
