# cicada: see README.md. Targets: all test check bench fuzz fmt fmt-check lint install uninstall clean help
# Variables: SAN=address,undefined | thread (a build of its own), V=1 (show commands), CC, CFLAGS, LDFLAGS, DESTDIR, PREFIX.

VERSION := $(shell cat VERSION)
PREFIX ?= /usr/local
DESTDIR ?=
CFLAGS ?= -O2 -g

ifeq ($(SAN),)
BUILD ?= build
else
comma := ,
BUILD ?= build/san-$(subst $(comma),-,$(SAN))
SAN_FLAGS := -fsanitize=$(SAN) -fno-sanitize-recover=all
endif

PKGS := libczmq libzmq msgpack libcurl jansson openssl libcares yaml-0.1 libpcre2-8 zlib libmicrohttpd
PKG_CFLAGS := $(shell pkg-config --cflags $(PKGS) 2>/dev/null)
PKG_LIBS := $(shell pkg-config --libs $(PKGS) 2>/dev/null)

WARN := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wold-style-definition \
	-Wpointer-arith -Wwrite-strings -Wcast-qual -Wformat=2 -Wundef -Wvla -Wimplicit-fallthrough \
	-Wdouble-promotion -Wconversion -Wno-sign-conversion
OUR_CFLAGS := -std=gnu11 -D_GNU_SOURCE -I. -DCICADA_VERSION='"$(VERSION)"' $(WARN) -pthread \
	-fstack-protector-strong -fno-omit-frame-pointer -fPIC -fvisibility=hidden $(PKG_CFLAGS) $(SAN_FLAGS)
ifneq ($(findstring -O,$(CFLAGS)),)
ifeq ($(findstring -O0,$(CFLAGS))$(SAN),)
OUR_CFLAGS += -D_FORTIFY_SOURCE=2
endif
endif
ifneq ($(WERROR),)
OUR_CFLAGS += -Werror
endif
# Programs offer the public functions (all else is hidden) to the shared objects that they load.
OUR_LDFLAGS := -pthread $(SAN_FLAGS) -Wl,--export-dynamic -Wl,-u,cicada_version
OUR_LIBS := $(PKG_LIBS) -lm

ifeq ($(V),)
Q := @
say = @printf '  %-8s %s\n' "$(1)" "$(2)"
else
Q :=
say = @:
endif

# --- sources, by room, in the order in which a room may include another (see docs/design.md) -------

SRC_base := \
	base/base64.c \
	base/buf.c \
	base/err.c \
	base/log.c \
	base/num.c \
	base/random.c \
	base/str.c \
	base/utf8.c

SRC_proto_http := \
	proto/http/http.c

SRC_proto_locust := \
	proto/locust/decode.c \
	proto/locust/encode.c \
	proto/locust/link.c \
	proto/locust/pack.c \
	proto/locust/scan.c \
	proto/locust/value.c \
	proto/locust/watch.c

SRC_facts := \
	facts/actors.c \
	facts/credentials.c \
	facts/exec_plugin.c \
	facts/facts.c \
	facts/frontiers.c \
	facts/json.c \
	facts/json_scan.c \
	facts/kubeconfig.c \
	facts/lists.c \
	facts/quantity.c \
	facts/read.c

SRC_telemetry := \
	telemetry/answer.c \
	telemetry/braced.c \
	telemetry/builtin.c \
	telemetry/distribution.c \
	telemetry/harvest.c \
	telemetry/measured.c \
	telemetry/notes.c \
	telemetry/packing.c \
	telemetry/plan.c \
	telemetry/profile.c \
	telemetry/profile_checks.c \
	telemetry/promql.c \
	telemetry/query.c \
	telemetry/summary.c \
	telemetry/window.c

SRC_worker_stats := \
	worker/stats/csv.c \
	worker/stats/details.c \
	worker/stats/entry.c \
	worker/stats/error_key.c \
	worker/stats/histogram.c \
	worker/stats/keyed_errors.c \
	worker/stats/percentile.c \
	worker/stats/pyrepr.c \
	worker/stats/row_index.c \
	worker/stats/seconds.c \
	worker/stats/stats.c \
	worker/stats/trace.c \
	worker/stats/wire.c

SRC_worker_scenario := \
	worker/scenario/arena.c \
	worker/scenario/body.c \
	worker/scenario/bundle.c \
	worker/scenario/csv_table.c \
	worker/scenario/describe.c \
	worker/scenario/describe_shape.c \
	worker/scenario/encode.c \
	worker/scenario/extract.c \
	worker/scenario/feed.c \
	worker/scenario/files.c \
	worker/scenario/keys.c \
	worker/scenario/load.c \
	worker/scenario/load_shape.c \
	worker/scenario/names.c \
	worker/scenario/node.c \
	worker/scenario/node_json.c \
	worker/scenario/node_yaml.c \
	worker/scenario/pattern.c \
	worker/scenario/plan_native.c \
	worker/scenario/request.c \
	worker/scenario/scope.c \
	worker/scenario/shape.c \
	worker/scenario/step.c \
	worker/scenario/task_file.c \
	worker/scenario/template.c \
	worker/scenario/tests.c \
	worker/scenario/threshold.c \
	worker/scenario/url.c \
	worker/scenario/values.c

SRC_worker_locustfile := \
	worker/locustfile/classes.c \
	worker/locustfile/identifiers.c \
	worker/locustfile/locustfile.c \
	worker/locustfile/script.c \
	worker/locustfile/sections.c \
	worker/locustfile/steps.c

SRC_worker_engine := \
	worker/engine/answer.c \
	worker/engine/arrival.c \
	worker/engine/binding.c \
	worker/engine/checks.c \
	worker/engine/content_decoder.c \
	worker/engine/cookie_date.c \
	worker/engine/cookies.c \
	worker/engine/cpus.c \
	worker/engine/crash.c \
	worker/engine/dispatch.c \
	worker/engine/engine.c \
	worker/engine/feeds.c \
	worker/engine/fiber.c \
	worker/engine/http.c \
	worker/engine/http_curl.c \
	worker/engine/http_fast.c \
	worker/engine/http_kept.c \
	worker/engine/http_parser.c \
	worker/engine/http_request.c \
	worker/engine/http_response.c \
	worker/engine/interpreter.c \
	worker/engine/json_tape.c \
	worker/engine/made_call.c \
	worker/engine/native.c \
	worker/engine/native_api.c \
	worker/engine/native_call.c \
	worker/engine/redirect.c \
	worker/engine/requests.c \
	worker/engine/resolver.c \
	worker/engine/run.c \
	worker/engine/shard.c \
	worker/engine/sources.c \
	worker/engine/timers.c \
	worker/engine/tls.c \
	worker/engine/tracer.c \
	worker/engine/user.c \
	worker/engine/user_cookies.c \
	worker/engine/variables.c

SRC_worker_report := \
	worker/report/actors_log.c \
	worker/report/background.c \
	worker/report/cicada_object.c \
	worker/report/generator.c \
	worker/report/history.c \
	worker/report/job.c \
	worker/report/leader.c \
	worker/report/report.c \
	worker/report/sampler.c \
	worker/report/threshold.c

SRC_worker_output := \
	worker/output/chart.c \
	worker/output/csv_files.c \
	worker/output/ending.c \
	worker/output/files.c \
	worker/output/folder.c \
	worker/output/gzip.c \
	worker/output/html.c \
	worker/output/html_style.c \
	worker/output/html_tables.c \
	worker/output/keep.c \
	worker/output/keep_read.c \
	worker/output/live.c \
	worker/output/merge.c \
	worker/output/output.c \
	worker/output/pen.c \
	worker/output/recent.c \
	worker/output/reharvest.c \
	worker/output/results.c \
	worker/output/rows.c \
	worker/output/server.c \
	worker/output/sorted.c \
	worker/output/stats_json.c \
	worker/output/tables.c

SRC_worker_metrics := \
	worker/metrics/render.c \
	worker/metrics/server.c

SRC_worker_runner := \
	worker/runner/calibrate.c \
	worker/runner/capacity.c \
	worker/runner/course.c \
	worker/runner/dispatcher.c \
	worker/runner/fetch.c \
	worker/runner/headless.c \
	worker/runner/keys.c \
	worker/runner/machine.c \
	worker/runner/registration.c \
	worker/runner/pace.c \
	worker/runner/reporter.c \
	worker/runner/inputs.c \
	worker/runner/lines.c \
	worker/runner/samples.c \
	worker/runner/scrape.c \
	worker/runner/signals.c \
	worker/runner/spawn.c \
	worker/runner/survey.c \
	worker/runner/tally.c \
	worker/runner/tasks.c \
	worker/runner/traces.c \
	worker/runner/usage.c \
	worker/runner/worker.c

SRC_worker_cli := \
	worker/cli/calibrate_text.c \
	worker/cli/command_calibrate.c \
	worker/cli/command_check.c \
	worker/cli/command_facts.c \
	worker/cli/command_harvest.c \
	worker/cli/command_listener.c \
	worker/cli/command_locustfile.c \
	worker/cli/command_merge.c \
	worker/cli/commands.c \
	worker/cli/config.c \
	worker/cli/flags.c \
	worker/cli/help.c \
	worker/cli/load_setup.c \
	worker/cli/options.c \
	worker/cli/ratios.c \
	worker/cli/report_setup.c

SRC_worker_library := \
	worker/library/cicada_main.c

ROOMS := base proto_http proto_locust facts telemetry worker_stats worker_scenario worker_locustfile \
	worker_engine worker_report worker_output worker_metrics worker_runner worker_cli worker_library
MAIN := $(wildcard worker/main.c)

LIBS := $(foreach room,$(ROOMS),$(if $(SRC_$(room)),$(BUILD)/lib/lib$(room).a))
objects = $(patsubst %.c,$(BUILD)/%.o,$(1))
LINK_LIBS = -Wl,--start-group $(LIBS) -Wl,--end-group

SONAME := libcicada.so.$(shell sed -n 's/^#define CICADA_ABI *//p' include/cicada.h)

# --- what is built --------------------------------------------------------------------------------

.PHONY: all libs examples test check bench bench-programs fuzz fmt fmt-check lint install uninstall clean help
.DELETE_ON_ERROR:
.SECONDARY:

all: $(BUILD)/cicada $(BUILD)/libcicada.a $(BUILD)/$(SONAME)

libs: $(LIBS)

help:
	@sed -n '1,2s/^# //p' Makefile

$(BUILD)/%.o: %.c VERSION Makefile
	$(call say,CC,$<)
	@mkdir -p $(@D)
	$(Q)$(CC) $(OUR_CFLAGS) $(CFLAGS) -MMD -MP -c -o $@ $<

# Files that the assembler takes in, which -MMD does not see.
$(BUILD)/telemetry/builtin.o: $(wildcard telemetry/profiles/*.json)
$(BUILD)/worker/locustfile/sections.o: $(wildcard worker/locustfile/*.py)

define room_library
$(BUILD)/lib/lib$(1).a: $(call objects,$(SRC_$(1)))
	$$(call say,AR,$$@)
	@mkdir -p $$(@D)
	@rm -f $$@
	$$(Q)$$(AR) rcs $$@ $$^
endef
$(foreach room,$(ROOMS),$(if $(SRC_$(room)),$(eval $(call room_library,$(room)))))

$(BUILD)/cicada: $(call objects,$(MAIN)) $(LIBS)
	$(call say,LD,$@)
	$(Q)$(CC) $(OUR_LDFLAGS) $(LDFLAGS) -o $@ $(call objects,$(MAIN)) $(LINK_LIBS) $(OUR_LIBS)

# --- the library: include/cicada.h and nothing else is seen of it ------------------------------------

$(BUILD)/libcicada.o: $(LIBS)
	$(call say,LD,$@)
	$(Q)$(LD) -r -o $@ --whole-archive $(LIBS) --no-whole-archive
	$(Q)objcopy --localize-hidden $@

$(BUILD)/libcicada.a: $(BUILD)/libcicada.o
	$(call say,AR,$@)
	@rm -f $@
	$(Q)$(AR) rcs $@ $<

$(BUILD)/$(SONAME): $(LIBS) worker/library/cicada.map
	$(call say,LD,$@)
	$(Q)$(CC) -shared -pthread $(SAN_FLAGS) $(LDFLAGS) -Wl,-soname,$(SONAME) -Wl,-Bsymbolic-functions \
		-Wl,--version-script=worker/library/cicada.map -o $@ \
		-Wl,--whole-archive $(LIBS) -Wl,--no-whole-archive $(OUR_LIBS)

# Examples of tasks: shared objects for -f, and programs of their own.
EXAMPLE_TASKS := http_flow tcp_echo
EXAMPLE_PROGRAMS := compress

examples: $(EXAMPLE_TASKS:%=$(BUILD)/examples/%.so) $(EXAMPLE_PROGRAMS:%=$(BUILD)/examples/%)

$(BUILD)/examples/%.so: examples/c/%.c include/cicada.h
	$(call say,CC,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) -std=c11 $(WARN) $(CFLAGS) $(SAN_FLAGS) $(if $(WERROR),-Werror) -shared -fPIC -Iinclude -o $@ $<

$(BUILD)/examples/%: examples/c/%.c include/cicada.h $(BUILD)/libcicada.a
	$(call say,LD,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) -std=c11 $(WARN) $(CFLAGS) $(SAN_FLAGS) $(if $(WERROR),-Werror) -pthread -Iinclude -o $@ $< \
		$(BUILD)/libcicada.a $(OUR_LIBS)

# --- tests ----------------------------------------------------------------------------------------

UNIT_TESTS := $(sort $(shell find test/unit -name 'test_*.c' 2>/dev/null))
# A test that makes the n-th allocation fail defines __wrap_malloc and its kin (test/unit/alloc.h).
ALLOC_WRAP := -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=strdup,--wrap=strndup
FUZZ_TARGETS := $(sort $(shell find test/fuzz -name 'fuzz_*.c' 2>/dev/null))
TEST_BINS := $(patsubst %.c,$(BUILD)/%,$(UNIT_TESTS))
REPLAY_BINS := $(patsubst %.c,$(BUILD)/%,$(FUZZ_TARGETS))
# Helper programs that tests and benchmarks run (not tests themselves).
TOOLS := $(patsubst %.c,$(BUILD)/%,$(sort $(shell find test/tools -name '*.c' 2>/dev/null)))

# A test may stand in for a function of a shared library.
$(BUILD)/test/%.o: OUR_CFLAGS += -fvisibility=default

$(BUILD)/test/unit/%: $(BUILD)/test/unit/%.o $(BUILD)/test/unit/alloc.o $(LIBS)
	$(call say,LD,$@)
	$(Q)$(CC) $(OUR_LDFLAGS) $(LDFLAGS) $(ALLOC_WRAP) -o $@ $< $(BUILD)/test/unit/alloc.o $(LINK_LIBS) \
		$(OUR_LIBS) -lcmocka

$(BUILD)/test/fuzz/%: $(BUILD)/test/fuzz/%.o $(BUILD)/test/fuzz/replay.o $(LIBS)
	$(call say,LD,$@)
	$(Q)$(CC) $(OUR_LDFLAGS) $(LDFLAGS) -o $@ $< $(BUILD)/test/fuzz/replay.o $(LINK_LIBS) $(OUR_LIBS)

$(BUILD)/test/tools/%: $(BUILD)/test/tools/%.o $(LIBS)
	$(call say,LD,$@)
	$(Q)$(CC) $(OUR_LDFLAGS) $(LDFLAGS) -o $@ $< $(LINK_LIBS) $(OUR_LIBS)

# The reference programs and the targets of bench/ (see bench/README.md).
BENCH_PROGRAMS := $(addprefix $(BUILD)/bench/,engines/floor engines/raw engines/curlm target/delayd)

$(BUILD)/bench/%: $(BUILD)/bench/%.o $(BUILD)/bench/engines/common.o $(LIBS)
	$(call say,LD,$@)
	$(Q)$(CC) $(OUR_LDFLAGS) $(LDFLAGS) -o $@ $< $(filter $(BUILD)/bench/engines/common.o,$^) $(LINK_LIBS) $(OUR_LIBS)

BENCH_TASKS := $(patsubst %.c,$(BUILD)/%.so,$(sort $(wildcard bench/tasks/*.c)))

$(BUILD)/bench/tasks/%.so: bench/tasks/%.c include/cicada.h
	$(call say,CC,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) -std=c11 $(WARN) $(CFLAGS) $(SAN_FLAGS) $(if $(WERROR),-Werror) -shared -fPIC -Iinclude -o $@ $<

# Unit tests, then the fuzz targets over their corpora. ONLY=room narrows it to paths that hold it.
test: examples $(TEST_BINS) $(REPLAY_BINS) $(TOOLS) $(BENCH_PROGRAMS) $(BENCH_TASKS) $(if $(MAIN),$(BUILD)/cicada)
	$(Q)python3 test/run_units.py --build $(BUILD) $(if $(ONLY),--only $(ONLY)) $(UNIT_TESTS) $(FUZZ_TARGETS)

# Everything: see test/check. It installs what the tests need (Debian packages as root, Python packages into .venv).
check:
	$(Q)test/check

# Coverage-guided fuzzing with clang, FUZZ_SECONDS for each target.
FUZZ_SECONDS ?= 30
fuzz:
	$(Q)PKGS='$(PKGS)' ONLY='$(ONLY)' test/fuzz/run $(FUZZ_SECONDS) $(FUZZ_TARGETS)

bench-programs: $(BENCH_PROGRAMS) $(BENCH_TASKS) $(BUILD)/test/tools/engine_run $(BUILD)/test/tools/fiber_bench

bench: bench-programs
	$(Q)bench/run

# --- form -----------------------------------------------------------------------------------------

C_FILES = $(shell git ls-files --cached --others --exclude-standard '*.c' '*.h')

fmt:
	$(Q)clang-format -i $(C_FILES)

fmt-check:
	$(Q)clang-format --dry-run --Werror $(C_FILES)

lint:
	$(Q)test/lint

# --- installation ---------------------------------------------------------------------------------

install: all
	install -D -m 755 $(BUILD)/cicada $(DESTDIR)$(PREFIX)/bin/cicada
	install -D -m 644 include/cicada.h $(DESTDIR)$(PREFIX)/include/cicada.h
	install -D -m 644 $(BUILD)/libcicada.a $(DESTDIR)$(PREFIX)/lib/libcicada.a
	install -D -m 755 $(BUILD)/$(SONAME) $(DESTDIR)$(PREFIX)/lib/$(SONAME)
	ln -sf $(SONAME) $(DESTDIR)$(PREFIX)/lib/libcicada.so
	@mkdir -p $(DESTDIR)$(PREFIX)/lib/pkgconfig
	printf '%s\n' 'prefix=$(PREFIX)' 'includedir=$${prefix}/include' 'libdir=$${prefix}/lib' '' \
		'Name: cicada' 'Description: user classes in C for a Locust-compatible load worker' \
		'Version: $(VERSION)' 'Cflags: -I$${includedir}' 'Libs: -L$${libdir} -lcicada' \
		'Libs.private: $(patsubst -lczmq,,$(PKG_LIBS)) -lm -pthread' \
		>$(DESTDIR)$(PREFIX)/lib/pkgconfig/cicada.pc
	install -D -m 644 LICENSE $(DESTDIR)$(PREFIX)/share/doc/cicada/LICENSE
	install -D -m 644 README.md $(DESTDIR)$(PREFIX)/share/doc/cicada/README.md

uninstall:
	rm -f $(DESTDIR)$(PREFIX)/bin/cicada $(DESTDIR)$(PREFIX)/include/cicada.h
	rm -f $(DESTDIR)$(PREFIX)/lib/libcicada.a $(DESTDIR)$(PREFIX)/lib/libcicada.so
	rm -f $(DESTDIR)$(PREFIX)/lib/$(SONAME) $(DESTDIR)$(PREFIX)/lib/pkgconfig/cicada.pc
	rm -rf $(DESTDIR)$(PREFIX)/share/doc/cicada

clean:
	rm -rf build

-include $(shell find $(BUILD) -name '*.d' 2>/dev/null)
