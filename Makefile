# SPDX-License-Identifier: Apache-2.0
# Every rule; a folder only adds its list (module.mk). `make help` says what there is.

VERSION   := 0.1.0
# SAN=asan: AddressSanitizer and UBSan, in a tree of its own. PACKAGER=1: warnings do not stop the build.
SAN       ?=
VARIANT   := $(or $(SAN),release)
B         := build/$(VARIANT)
PREFIX    ?= /usr/local
DESTDIR   ?=
BINDIR    := $(PREFIX)/bin
LIBEXECDIR := $(PREFIX)/libexec/profpipe
MANDIR    := $(PREFIX)/share/man
DOCDIR    := $(PREFIX)/share/doc/profpipe
# Where systemd looks for what packages bring: units and users.
SYSTEMDDIR := $(PREFIX)/lib/systemd/system
SYSUSERSDIR := $(PREFIX)/lib/sysusers.d

CC        := gcc
CLANG     := clang
BPFTOOL   := $(or $(shell command -v bpftool 2>/dev/null),$(wildcard /usr/sbin/bpftool))
PYTHON    := /usr/bin/python3

WARN      := -Wall -Wextra -Wshadow -Wpointer-arith -Wstrict-prototypes -Wmissing-prototypes -Wold-style-definition \
             -Wvla -Wundef -Wwrite-strings -Wformat=2 -Wnull-dereference -Wimplicit-fallthrough -Wno-unused-parameter
ifndef PACKAGER
WARN      += -Werror
endif
CPPFLAGS  := -I. -I$(B)/gen -D_GNU_SOURCE -DPROFPIPE_VERSION='"$(VERSION)"' -DPROFPIPE_LIBEXECDIR='"$(LIBEXECDIR)"'
CFLAGS    := -std=gnu17 -O2 -g -fno-omit-frame-pointer -fstack-protector-strong -fPIE $(WARN)
ifneq ($(SAN),asan)
CPPFLAGS  += -D_FORTIFY_SOURCE=2
endif
LDFLAGS   := -pie -Wl,-z,relro,-z,now -Wl,--as-needed
ifeq ($(SAN),asan)
CFLAGS    += -fsanitize=address,undefined -fno-sanitize-recover=all
LDFLAGS   += -fsanitize=address,undefined
endif

.DEFAULT_GOAL := all
.DELETE_ON_ERROR:
.SECONDEXPANSION:
.PHONY: all help deps demo check check-all check-vm tests lint bench install deb clean fuzz format

TOOLS     :=
GEN       :=
UNITS     :=
FUZZERS   :=
HELPERS   :=

include $(wildcard common/module.mk bpf/module.mk tools/*/module.mk tests/*/module.mk)

UNITFILES := $(notdir $(wildcard packaging/systemd/*.service))

# A tool: $(tool)_SRCS, $(tool)_LIBS, $(tool)_GEN (headers to be made first). All link common.
obj       = $(patsubst %.c,$(B)/%.o,$(1))
COMMON_LIB := $(B)/libcommon.a
PROGS     := $(TOOLS:%=$(B)/%)

all: $(PROGS)

help:
	@echo "make            build into $(B)"
	@echo "make deps       install what is missing, from Debian"
	@echo "make demo       profile this host for some seconds, write flame.html, print the hottest functions"
	@echo "make check      every test"
	@echo "make check-all  that, and the walker by single steps in programs of many languages"
	@echo "make check-vm   what runs on Debian's kernels from 5.10 on, in an emulated machine"
	@echo "make lint       formatting and static checks"
	@echo "make bench      completeness and overhead, beside the peers that are there"
	@echo "make fuzz SECONDS=60   run each fuzz target that long"
	@echo "make install    DESTDIR= PREFIX=/usr/local"
	@echo "make deb        a Debian package, into build/deb"

$(COMMON_LIB): $(call obj,$(COMMON_SRCS))
	@rm -f $@
	@echo "  AR      $@"
	@ar rcs $@ $^

$(B)/%.o: %.c
	@mkdir -p $(@D)
	@echo "  CC      $<"
	@$(CC) $(CPPFLAGS) $(CFLAGS) -MMD -MP -c $< -o $@

$(B)/gen/%.o: $(B)/gen/%.c
	@mkdir -p $(@D)
	@echo "  CC      $<"
	@$(CC) $(CPPFLAGS) $(CFLAGS) -Wno-shadow -Wno-undef -MMD -MP -c $< -o $@

define program
$$(call obj,$$($(1)_SRCS)): $$($(1)_GEN)
$(B)/$(1): $$(call obj,$$($(1)_SRCS)) $$($(1)_OBJS) $$(COMMON_LIB)
	@mkdir -p $$(@D)
	@echo "  LD      $$@"
	@$(CC) $(CFLAGS) $(LDFLAGS) -o $$@ $$(filter-out $$(COMMON_LIB),$$^) $$(COMMON_LIB) $$($(1)_LIBS) $$(COMMON_LIBS)
endef
$(foreach t,$(TOOLS) $(HELPERS) $(UNITS) $(FUZZERS),$(eval $(call program,$(t))))

# BPF objects and their skeletons. Only the kernel types that are used are declared by hand (CO-RE), so no vmlinux.h.
COMPILE_BPF = $(CLANG) -target bpf -mcpu=v3 -O2 -g -Wall -Wextra -Wno-unused-parameter -Werror -I. -D__TARGET_ARCH_x86 -D__x86_64__ \
              -idirafter /usr/include/$(shell $(CC) -print-multiarch) -c $< -o $@.tmp && llvm-strip -g $@.tmp && mv $@.tmp $@

$(B)/gen/%.bpf.o: bpf/%.bpf.c $(wildcard bpf/*.h bpf/*.def)
	@mkdir -p $(@D)
	@echo "  BPF     $<"
	@$(COMPILE_BPF)

$(B)/gen/%.skel.h: $(B)/gen/%.bpf.o
	@echo "  SKEL    $@"
	@$(BPFTOOL) gen skeleton $< name $(subst -,_,$*)_bpf > $@.tmp && mv $@.tmp $@

# Needs that no compiler would name: said once, with the remedy, instead of a page of errors.
NEEDS := $(CLANG) llvm-strip protoc-c
MISSING := $(foreach n,$(NEEDS),$(if $(shell command -v $(n) 2>/dev/null),,$(n))) $(if $(BPFTOOL),,bpftool)
ifneq ($(strip $(MISSING)),)
ifneq ($(filter-out deps demo check check-all check-vm clean help,$(or $(MAKECMDGOALS),all)),)
$(error missing: $(strip $(MISSING)). `make deps` installs everything from Debian)
endif
endif

deps:
	@packaging/deps.sh

TESTS := $(HELPERS) $(UNITS) $(FUZZERS)
tests: $(PROGS) $(TESTS:%=$(B)/%)

# A make of its own for what follows the installation: what is there is looked for when make starts.
check:
	@packaging/deps.sh test
	@$(MAKE) --no-print-directory -j2 tests
	@$(MAKE) --no-print-directory -j2 SAN=asan tests
	@tests/check.sh build/release build/asan -- tests/e2e

# Programs of many languages beside: those that are not installed are listed.
check-all: check
	@PROFPIPE_BUILD=$(B) $(PYTHON) tests/walker/programs.py

check-vm:
	@packaging/deps.sh test
	@$(MAKE) --no-print-directory -j2 tests
	@PROFPIPE_BUILD=$(B) $(PYTHON) -m pytest -q -rP --tb=short tests/e2e/test_vm.py

# A load of its own, so that a quiet machine shows something: this very tree, compiled, and xz over what came of it.
DEMO_SECONDS ?= 5
demo:
	@packaging/deps.sh
	@$(MAKE) --no-print-directory -j2 all
	@setsid sh -c '$(MAKE) -s -B B=build/demo build/demo/prof-deltas; tar c build | xz -T0' >/dev/null 2>&1 & load=$$!; \
	 $(B)/profpipe record -d $(DEMO_SECONDS) -o flame.html; status=$$?; \
	 kill -- -$$load 2>/dev/null; wait $$load 2>/dev/null; rm -rf build/demo; \
	 [ $$status -eq 0 ] && echo "the flame graph is in flame.html: open it in any browser"; exit $$status

install: all
	install -d $(DESTDIR)$(BINDIR) $(DESTDIR)$(LIBEXECDIR) $(DESTDIR)$(MANDIR)/man1 $(DESTDIR)$(DOCDIR)
	install -m 755 $(B)/profpipe $(DESTDIR)$(BINDIR)/
	install -m 755 $(filter-out $(B)/profpipe,$(PROGS)) $(DESTDIR)$(LIBEXECDIR)/
	for t in $(filter-out profpipe,$(TOOLS)); do ln -sf $(LIBEXECDIR)/$$t $(DESTDIR)$(BINDIR)/$$t; done
	install -m 644 $(wildcard docs/*.1) $(DESTDIR)$(MANDIR)/man1/
	install -m 644 README.md HACKING.md LICENSE $(wildcard docs/*.md) $(DESTDIR)$(DOCDIR)/
	install -d $(DESTDIR)$(SYSTEMDDIR) $(DESTDIR)$(SYSUSERSDIR)
	install -m 644 packaging/systemd/profpipe.target packaging/systemd/profpipe.slice $(DESTDIR)$(SYSTEMDDIR)/
	for u in $(UNITFILES); do sed 's,@LIBEXECDIR@,$(LIBEXECDIR),' packaging/systemd/$$u >$(DESTDIR)$(SYSTEMDDIR)/$$u || exit 1; done
	chmod 644 $(UNITFILES:%=$(DESTDIR)$(SYSTEMDDIR)/%)
	install -m 644 packaging/systemd/profpipe.sysusers $(DESTDIR)$(SYSUSERSDIR)/profpipe.conf

# debhelper's folders lie in debian/, which it insists on.
deb: all
	@packaging/deps.sh deb
	rm -rf build/deb && mkdir -p build/deb
	DEB_RULES_REQUIRES_ROOT=no TREE=$(B) debian/rules binary >build/deb/log 2>&1 || { cat build/deb/log; exit 1; }
	DEB_RULES_REQUIRES_ROOT=no debian/rules clean >>build/deb/log 2>&1
	@ls build/deb/*.deb

format:
	clang-format -i $$(git ls-files '*.c' '*.h')

lint:
	@packaging/deps.sh test
	@$(MAKE) --no-print-directory -j2 all
	@tests/lint.sh $(B) $(TOOLS)

bench: all
	@packaging/deps.sh test
	@$(MAKE) --no-print-directory -j2 tests
	@PROFPIPE_BUILD=$(B) $(PYTHON) tests/bench/bench.py
	@PROFPIPE_BUILD=$(B) $(PYTHON) tests/bench/ceiling.py --seconds 8 --scale 0.3 executables mappings shorts deep jit

clean:
	rm -rf build

-include $(shell find $(B) -name '*.d' 2>/dev/null)
