# The page is made of page.html, style.css, flame.js and Debian's d3 (libjs-d3), which is never copied here.
export_PARTS := model lives hot things label twins table paths folded text pprof html output record session summary profiles journal
export_GEN   := $(B)/gen/tools/prof-export
D3           ?= /usr/share/javascript/d3/d3.min.js

TOOLS += prof-export
prof-export_SRCS := $(patsubst %,tools/prof-export/%.c,main keeping options $(export_PARTS))
prof-export_OBJS := $(export_GEN)/pprof.pb-c.o $(export_GEN)/page.o
prof-export_LIBS := -lprotobuf-c -lz
prof-export_GEN  := $(export_GEN)/pprof.pb-c.h

$(export_GEN)/pprof.pb-c.c $(export_GEN)/pprof.pb-c.h &: tools/prof-export/pprof.proto
	@mkdir -p $(@D)
	@echo "  PROTOC  $<"
	@protoc-c --c_out=$(B)/gen $<

$(export_GEN)/pprof.pb-c.o: $(export_GEN)/pprof.pb-c.h

$(export_GEN)/page-head.html $(export_GEN)/page-tail.html &: $(addprefix tools/prof-export/,page.py page.html style.css flame.js) $(wildcard $(D3))
	@mkdir -p $(@D)
	@echo "  PAGE    $(@D)"
	@$(PYTHON) tools/prof-export/page.py tools/prof-export $(D3) $(@D)

$(export_GEN)/page.o: tools/prof-export/page.S $(export_GEN)/page-head.html $(export_GEN)/page-tail.html
	@echo "  AS      $<"
	@$(CC) -I$(export_GEN) -Wa,-I$(export_GEN) -c $< -o $@
