# SPDX-License-Identifier: Apache-2.0
# The walker on live processes: that of prof-dump, and that of the kernel's programs.
PROGRAMS += tests/walk-live tests/late tests/step
tests/walk-live_SRCS := tests/walker/walk-live.c tests/walker/process.c
tests/walk-live_USES := prof-dump prof-bpf
tests/late_SRCS      := tests/walker/late.c tests/walker/process.c
tests/late_USES      := prof-dump prof-bpf
tests/step_SRCS      := tests/walker/step.c tests/walker/shadow.c tests/walker/process.c
tests/step_USES      := prof-dump
