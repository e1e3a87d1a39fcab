# SPDX-License-Identifier: Apache-2.0
# Every rule; a folder only adds its list (module.mk). `make help` lists the targets.

VERSION   := 0.1.0
# SAN=asan: AddressSanitizer and UBSan, in a tree of its own. SAN=fuzz: the same for libFuzzer.
# PACKAGER=1: warnings do not stop the build.
SAN       ?=
VARIANT   := $(or $(SAN),release)
B         := build/$(VARIANT)
PREFIX    ?= /usr/local
DESTDIR   ?=
BINDIR    := $(PREFIX)/bin
LIBEXECDIR := $(PREFIX)/libexec/profpipe
MANDIR    := $(PREFIX)/share/man
DOCDIR    := $(PREFIX)/share/doc/profpipe
SYSCONFDIR ?= /etc
# The folders where systemd looks for units and groups of packages.
SYSTEMDDIR := $(PREFIX)/lib/systemd/system
SYSUSERSDIR := $(PREFIX)/lib/sysusers.d

# make's own default is cc.
ifeq ($(origin CC),default)
CC        := gcc
endif
CLANG     := clang
BPFTOOL   := $(or $(shell command -v bpftool 2>/dev/null),$(wildcard /usr/sbin/bpftool))
PYTHON    := /usr/bin/python3

WARN      := -Wall -Wextra -Wshadow -Wpointer-arith -Wstrict-prototypes -Wmissing-prototypes \
             -Wold-style-definition -Wvla -Wundef -Wwrite-strings -Wformat=2 -Wnull-dereference \
             -Wimplicit-fallthrough -Wno-unused-parameter
# At other levels of optimization gcc gives false warnings.
ifeq ($(origin CFLAGS)$(PACKAGER),undefined)
WARN      += -Werror
endif

# CFLAGS, CPPFLAGS and LDFLAGS are the packager's. OUR_* are the flags that the code needs. Test
# programs are compiled faster, unless the packager says how.
ifeq ($(origin CFLAGS),undefined)
TEST_CFLAGS := $(if $(SAN),-O0,-Og) -g1
endif
# Compiles the sanitizers' tree in two fifths of the time; its tests take little longer.
ifeq ($(SAN),asan)
CFLAGS    ?= -O0 -g1 -fno-omit-frame-pointer
endif
CFLAGS    ?= -O2 -g -fno-omit-frame-pointer -fstack-protector-strong
LDFLAGS   ?= -Wl,-z,relro,-z,now
OUR_CPPFLAGS := -I. -I$(B)/gen -D_GNU_SOURCE -DPROFPIPE_VERSION='"$(VERSION)"'
OUR_CFLAGS := -std=gnu17 -fPIE $(WARN)
OUR_LDFLAGS := -pie -Wl,--as-needed
SANITIZE  := -fsanitize=address,undefined -fno-sanitize-recover=all
ifeq ($(SAN),)
CPPFLAGS  ?= -D_FORTIFY_SOURCE=2
else
OUR_CFLAGS += $(SANITIZE)
# This tree has 240 programs. gold, if it is installed, links them in a third of the time.
OUR_LDFLAGS += $(SANITIZE) $(if $(shell command -v ld.gold 2>/dev/null),-fuse-ld=gold)
endif
# At this level gcc's warnings about formats and null pointers are often false.
ifeq ($(SAN),asan)
OUR_CFLAGS += -Wno-format-truncation -Wno-null-dereference
endif
ifeq ($(SAN),fuzz)
CC        := $(CLANG)
# clang warns about more than gcc does. gcc also compiles this code, with warnings as errors.
OUR_CFLAGS += -fsanitize=fuzzer-no-link -Wno-unknown-warning-option -Wno-error
endif
COMPILE    = $(CC) $(OUR_CPPFLAGS) $(CPPFLAGS) $(OUR_CFLAGS) $(CFLAGS)
LINK       = $(CC) $(OUR_CFLAGS) $(CFLAGS) $(OUR_LDFLAGS) $(LDFLAGS)

# One command uses all cores. make itself prefers `-j` of the command line.
ifeq ($(MAKELEVEL),0)
MAKEFLAGS += -j$(shell nproc)
endif

# No built-in rules: they would make tests/data/cfi/rare of rare.S, should that be newer.
MAKEFLAGS += -r
.SUFFIXES:
.DEFAULT_GOAL := all
.DELETE_ON_ERROR:
.SECONDEXPANSION:
.PHONY: all help deps demo test check check-all check-vm tests lint bench install deb clean fuzz
.PHONY: format

# A library is a folder of common/ and becomes an archive; a tool's archive holds all but its
# main.c.
#   NAME_SRCS  its sources
#   NAME_USES  the libraries that it may include and link, in the order of linking
#   NAME_LIBS  what it links of the system's libraries
#   NAME_GEN   headers that must exist before its sources are compiled; NAME_OBJS: generated objects
LIBRARIES :=
TOOLS     :=
# Programs for tests: PROGRAM_SRCS, PROGRAM_USES (libraries and tools), PROGRAM_LIBS, PROGRAM_GEN.
PROGRAMS  :=

include $(wildcard common/module.mk bpf/module.mk tools/*/module.mk)
$(foreach l,$(LIBRARIES),$(eval $(l)_SRCS := $(shell find common/$(l) -name '*.c')))
$(foreach t,$(TOOLS),\
	$(eval $(t)_SRCS := $(filter-out %/main.c,$(shell find tools/$(t) -name '*.c'))))
# Link options for functions that a test replaces.
wrap      = $(foreach f,$(1),-Wl,--wrap=$(f))
include $(wildcard tests/*/module.mk)

obj       = $(patsubst %.c,$(B)/%.o,$(1))
archive   = $(B)/lib/lib$(1).a
PROGS     := $(TOOLS:%=$(B)/%)
# The links of a program that uses these: archives, and the system's libraries behind them.
uses      = $(foreach u,$(1),$(u) $($(u)_USES))
archives  = $(foreach u,$(filter $(call uses,$(1)),$(TOOLS) $(LIBRARIES)),$(call archive,$(u)))
libs      = $(foreach u,$(filter $(call uses,$(1)),$(TOOLS) $(LIBRARIES)),$($(u)_LIBS))

all: $(PROGS)

help:
	@echo "make            build into $(B)"
	@echo "make deps       install what is missing, from Debian"
	@echo "make demo       profile this host for some seconds, write flame.html, and print the"
	@echo "                hottest functions"
	@echo "make test       unit tests, replays and tests without live sampling: to run after a"
	@echo "                change"
	@echo "make check      the tests that every change has to pass"
	@echo "make check-all  all tests, and single steps in programs of many languages;"
	@echo "                takes over an hour"
	@echo "make check-vm   what runs on Debian's kernels from 5.10 on, in an emulated machine"
	@echo "make lint       formatting and static checks"
	@echo "make format     format the C code"
	@echo "make bench      completeness and overhead, compared with the installed profilers"
	@echo "make fuzz SECONDS=60   run each fuzz target that long"
	@echo "make install    DESTDIR= PREFIX=/usr/local"
	@echo "make deb        a Debian package, into build/deb"

define library
$$(call archive,$(1)): $$(call obj,$$($(1)_SRCS)) $$($(1)_OBJS)
	@mkdir -p $$(@D)
	@rm -f $$@
	@echo "  AR      $$@"
	@$$(AR) rcs $$@ $$^
$$(call obj,$$($(1)_SRCS)): | $$($(1)_GEN)
endef
$(foreach l,$(LIBRARIES) $(TOOLS),$(eval $(call library,$(l))))

# If the flags or the folder change, the tree is built again.
define made_with
ifneq ($$(file <$(B)/$(1)),$$(MADE_WITH_$(1)))
.PHONY: $(B)/$(1)
endif
$(B)/$(1): export MADE_WITH := $$(MADE_WITH_$(1))
$(B)/$(1):
	@mkdir -p $$(@D)
	@printf %s "$$$$MADE_WITH" >$$@
endef
MADE_WITH_flags := $(COMPILE) $(LINK)
MADE_WITH_folder := $(LIBEXECDIR)
$(eval $(call made_with,flags))
$(eval $(call made_with,folder))

$(B)/%.o: %.c $(B)/flags
	@mkdir -p $(@D)
	@echo "  CC      $<"
	@$(COMPILE) -MMD -MP -c $< -o $@

$(B)/common/base/files/toolpath.o: $(B)/folder
$(B)/common/base/files/toolpath.o: OUR_CPPFLAGS += -DPROFPIPE_LIBEXECDIR='"$(LIBEXECDIR)"'

$(B)/tests/unit/%.o $(B)/tests/fuzz/%.o: OUR_CFLAGS += -Wno-format-truncation -Wno-null-dereference
$(B)/tests/unit/%.o $(B)/tests/fuzz/%.o: CFLAGS += $(TEST_CFLAGS)

$(B)/gen/%.o: $(B)/gen/%.c
	@mkdir -p $(@D)
	@echo "  CC      $<"
	@$(COMPILE) -Wno-shadow -Wno-undef -MMD -MP -c $< -o $@

# The map lists the archive members in a program; `make lint` compares it with its lists.
define program
$$(call obj,$$($(1)_SRCS)): | $$($(1)_GEN) $$(foreach u,$$(call uses,$$($(1)_USES)),$$($$(u)_GEN))
$(B)/$(1): $$(call obj,$$($(1)_SRCS)) $$($(1)_OBJS) $$(call archives,$$($(1)_USES))
	@mkdir -p $$(@D)
	@echo "  LD      $$@"
	@$$(LINK) -o $$@ $$^ $$($(1)_LIBS) $$(call libs,$$($(1)_USES)) -lpthread
endef
$(foreach p,$(PROGRAMS),$(eval $(call program,$(p))))

define tool
$(B)/$(1): $(B)/tools/$(1)/main.o $$(call archives,$(1))
	@echo "  LD      $$@"
	@$$(LINK) -Wl,-Map=$(B)/lib/$(1).map -o $$@ $$^ $$(call libs,$(1)) -lpthread
endef
$(foreach t,$(TOOLS),$(eval $(call tool,$(t))))

# For `make lint`: what each library and tool may include.
.PHONY: uses
uses:
	@$(foreach l,$(LIBRARIES),echo '$(l) common/$(l) $($(l)_USES:%=common/%)';)
	@$(foreach t,$(TOOLS),echo '$(t) tools/$(t) $($(t)_USES:%=common/%)';)

# BPF objects and their skeletons. Only the kernel types that are used are declared by hand (CO-RE),
# so no vmlinux.h.
COMPILE_BPF = $(CLANG) -target bpf -mcpu=v3 -O2 -g -Wall -Wextra -Wno-unused-parameter \
              $(if $(PACKAGER),,-Werror) -I. -D__TARGET_ARCH_x86 -D__x86_64__ \
              -idirafter /usr/include/$(shell $(CC) -print-multiarch) -c $< -o $@.tmp && \
              llvm-strip -g $@.tmp && mv $@.tmp $@

BPF_HEADERS := $(wildcard bpf/*.h bpf/*.def bpf/*/*.h)
$(B)/gen/%.bpf.o: bpf/programs/%.bpf.c $(BPF_HEADERS)
	@mkdir -p $(@D)
	@echo "  BPF     $<"
	@$(COMPILE_BPF)

# The objects are kept: another make would build them again.
.SECONDARY: $(patsubst bpf/programs/%.bpf.c,$(B)/gen/%.bpf.o,$(wildcard bpf/programs/*.bpf.c))

$(B)/gen/%.skel.h: $(B)/gen/%.bpf.o
	@echo "  SKEL    $@"
	@$(BPFTOOL) gen skeleton $< name $(subst -,_,$*)_bpf > $@.tmp && mv $@.tmp $@

# Reports missing tools once, instead of a page of compiler errors.
NEEDS := $(CLANG) llvm-strip protoc-c
MISSING := $(foreach n,$(NEEDS),$(if $(shell command -v $(n) 2>/dev/null),,$(n))) \
           $(if $(BPFTOOL),,bpftool)
ifneq ($(strip $(MISSING)),)
ifneq ($(filter-out deps demo test check check-all check-vm clean help,$(or $(MAKECMDGOALS),all)),)
$(error missing: $(strip $(MISSING)). `make deps` installs everything from Debian)
endif
endif

deps:
	@packaging/deps.sh

# Builds what whole-tool tests run. `units` builds the unit tests and replays.
tests: $(PROGS) $(addprefix $(B)/,$(filter-out $(UNITS) $(FUZZERS),$(PROGRAMS)))

# A unit test or a replay that passed leaves a stamp, and runs again when something that it depends
# on has changed: its program, its corpus, or a folder of tests/data that it names. Its log lies
# beside the stamp.
STAMPS := $(patsubst %,$(B)/passed/%,$(UNITS) $(FUZZERS))
$(B)/passed/unit/%: $(B)/unit/% tests/once.sh
	@tests/once.sh $@ $< -j1
reads = $(B)/passed/$(word 1,$(1)): $(shell find $(word 2,$(1)) -type f)
$(foreach d,$(UNIT_DATA),$(eval $(call reads,$(subst =, ,$(d)))))
$(B)/passed/fuzz/%: $(B)/fuzz/% $$(wildcard tests/fuzz/corpus/$$(notdir $$*)/*) tests/once.sh
	@tests/once.sh $@ $< tests/fuzz/corpus/$(notdir $*)

# Unit tests that depend on the sanitizers: their build has no filter of system calls, for example.
BARE := $(patsubst tests/%.c,$(B)/passed/%,\
          $(shell grep -l __SANITIZE_ADDRESS__ $(UNITS:%=tests/%.c)))
.PHONY: units bare-units
units: $(STAMPS)
bare-units: $(BARE)

# Of the sanitizers' tree, only what its tests run.
.PHONY: sanitized
sanitized: $(B)/prof-dump $(UNITS:%=$(B)/%) $(FUZZERS:%=$(B)/%) \
		$(addprefix $(B)/,tests/step toy/step toy/live toy/toyjit toy/toyjit-loop)

# Runs make again after installing, because make looks for tools when it starts.
test:
	@packaging/deps.sh test
	@$(MAKE) --no-print-directory tests
	@$(MAKE) --no-print-directory SAN=asan sanitized
	@tests/check.sh test

# The build needs fewer packages than the tests, so it starts while the others are installed. Even
# with -n, make runs lines that name $(MAKE); those must not install anything.
INSTALL_FOR_TESTS = $(if $(findstring n,$(firstword -$(MAKEFLAGS))),true,packaging/deps.sh test)
check:
	@packaging/deps.sh
	@$(INSTALL_FOR_TESTS) & installing=$$!; $(MAKE) --no-print-directory tests; built=$$?; \
	 wait $$installing && exit $$built
	@tests/check.sh check

# The tests that take `make check` too long, and programs of many languages by single steps.
check-all: check
	@tests/check.sh check-all
	@PROFPIPE_BUILD=$(B) $(PYTHON) tests/walker/programs.py --steps 100000

check-vm:
	@packaging/deps.sh test
	@$(MAKE) --no-print-directory tests
	@PROFPIPE_BUILD=$(B) $(PYTHON) -m pytest -q -rP --tb=short tests/e2e/test_vm.py

# The load gives a quiet machine something to show: it compiles this tree and then compresses the
# result.
DEMO_SECONDS ?= 5
# Even with -n, make runs lines that name $(MAKE).
LOAD_MAKE := $(MAKE)
demo:
	@packaging/deps.sh
	@$(MAKE) --no-print-directory all
	@setsid sh -c \
		'$(LOAD_MAKE) -s -B B=build/demo build/demo/prof-deltas; tar c build | xz -T0' \
	        >/dev/null 2>&1 & load=$$!; \
	 $(B)/profpipe record -d $(DEMO_SECONDS) -o flame.html; status=$$?; \
	 kill -- -$$load 2>/dev/null; wait $$load 2>/dev/null; rm -rf build/demo; \
	 [ $$status -eq 0 ] && echo "the flame graph is in flame.html: open it in any browser"; \
	 exit $$status

install: all
	install -d $(DESTDIR)$(BINDIR) $(DESTDIR)$(LIBEXECDIR) $(DESTDIR)$(MANDIR)/man1
	install -d $(DESTDIR)$(DOCDIR)/docs
	install -m 755 $(B)/profpipe $(DESTDIR)$(BINDIR)/
	install -m 755 $(filter-out $(B)/profpipe,$(PROGS)) $(DESTDIR)$(LIBEXECDIR)/
	for t in $(filter-out profpipe,$(TOOLS)); do \
	        ln -sf $(LIBEXECDIR)/$$t $(DESTDIR)$(BINDIR)/$$t; \
	done
	install -m 644 $(wildcard docs/*.1) $(DESTDIR)$(MANDIR)/man1/
	install -m 644 README.md HACKING.md LICENSE $(DESTDIR)$(DOCDIR)/
	install -m 644 $(wildcard docs/*.md docs/*.png) $(DESTDIR)$(DOCDIR)/docs/
	install -d $(DESTDIR)$(SYSTEMDDIR) $(DESTDIR)$(SYSUSERSDIR)
	sed 's,@BINDIR@,$(BINDIR),; s,@SYSCONFDIR@,$(SYSCONFDIR),' \
	        packaging/systemd/profpipe.service >$(DESTDIR)$(SYSTEMDDIR)/profpipe.service
	chmod 644 $(DESTDIR)$(SYSTEMDDIR)/profpipe.service
	install -m 644 packaging/systemd/profpipe.sysusers $(DESTDIR)$(SYSUSERSDIR)/profpipe.conf
	install -d $(DESTDIR)$(SYSCONFDIR)/profpipe
	test -e $(DESTDIR)$(SYSCONFDIR)/profpipe/profpipe.conf || \
	        install -m 644 packaging/profpipe.conf $(DESTDIR)$(SYSCONFDIR)/profpipe/

# debhelper's folders lie in debian/, which it insists on.
deb:
	@packaging/deps.sh deb
	rm -rf build/deb && mkdir -p build/deb
	DEB_RULES_REQUIRES_ROOT=no debian/rules binary >build/deb/log 2>&1 || \
	        { cat build/deb/log; exit 1; }
	DEB_RULES_REQUIRES_ROOT=no debian/rules clean >>build/deb/log 2>&1
	@ls build/deb/*.deb

format:
	clang-format -i $$(find bpf common tests tools -name '*.[ch]')

lint:
	@packaging/deps.sh test
	@$(MAKE) --no-print-directory all
	@tests/lint.sh $(B) $(TOOLS)

bench: all
	@packaging/deps.sh test
	@$(MAKE) --no-print-directory tests
	@PROFPIPE_BUILD=$(B) $(PYTHON) tests/bench/bench.py
	@PROFPIPE_BUILD=$(B) $(PYTHON) tests/bench/growth.py
	@PROFPIPE_BUILD=$(B) $(PYTHON) tests/bench/cpus.py
	@PROFPIPE_BUILD=$(B) $(PYTHON) tests/bench/ceiling.py --seconds 8 --scale 0.3 \
	        executables mappings shorts deep jit

clean:
	rm -rf build

-include $(shell find $(B) -name '*.d' 2>/dev/null)
