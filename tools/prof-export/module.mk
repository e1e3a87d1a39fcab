# SPDX-License-Identifier: Apache-2.0
# page/ makes the page from page.html, style.css, the scripts and Debian's d3 (libjs-d3), which is
# never copied here.
export_GEN   := $(B)/gen/tools/prof-export
D3           ?= /usr/share/javascript/d3/d3.min.js

TOOLS += prof-export
prof-export_USES := cell status wire base
prof-export_LIBS := -lprotobuf-c -lz
prof-export_OBJS := $(export_GEN)/output/pprof.pb-c.o $(export_GEN)/otlp/otlp.pb-c.o \
                    $(export_GEN)/page/page.o
prof-export_GEN  := $(export_GEN)/output/pprof.pb-c.h $(export_GEN)/otlp/otlp.pb-c.h

$(export_GEN)/%.pb-c.c $(export_GEN)/%.pb-c.h &: tools/prof-export/%.proto
	@mkdir -p $(@D)
	@echo "  PROTOC  $<"
	@protoc-c --c_out=$(B)/gen $<

$(export_GEN)/output/pprof.pb-c.o: $(export_GEN)/output/pprof.pb-c.h
$(export_GEN)/otlp/otlp.pb-c.o: $(export_GEN)/otlp/otlp.pb-c.h

PAGE_PARTS := $(addprefix tools/prof-export/page/,page.py page.html style.css profile.js \
                 flame.js table.js)
$(export_GEN)/page/page-head.html $(export_GEN)/page/page-tail.html &: \
		$(PAGE_PARTS) $(wildcard $(D3))
	@mkdir -p $(@D)
	@echo "  PAGE    $(@D)"
	@$(PYTHON) tools/prof-export/page/page.py tools/prof-export/page $(D3) $(@D)

$(export_GEN)/page/page.o: tools/prof-export/page/page.S $(export_GEN)/page/page-head.html \
		$(export_GEN)/page/page-tail.html
	@echo "  AS      $<"
	@$(COMPILE) -Wa,-I$(export_GEN)/page -c $< -o $@
