# SPDX-License-Identifier: Apache-2.0
# The public schema of OTLP's profiles, and its rules, for requests that prof-export's tests make.
otlp_PUBLIC := $(B)/gen/tests/otlp/profiles.pb-c

$(otlp_PUBLIC).c $(otlp_PUBLIC).h &: tests/otlp/profiles.proto
	@mkdir -p $(@D)
	@echo "  PROTOC  $<"
	@protoc-c --c_out=$(B)/gen $<

$(otlp_PUBLIC).o: $(otlp_PUBLIC).h
# protobuf-c writes the oneof of AnyValue without all braces.
$(otlp_PUBLIC).o $(B)/tests/otlp/rules.o: OUR_CFLAGS += -Wno-missing-braces

# For a program that checks requests with rules.h; tests/unit/module.mk also calls it.
define otlp_rules
$(1)_SRCS += tests/otlp/rules.c
$(1)_OBJS += $(otlp_PUBLIC).o
$(1)_GEN  += $(otlp_PUBLIC).h
endef
$(eval $(call otlp_rules,fuzz/prof-export/otlp))
