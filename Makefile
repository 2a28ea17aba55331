# Thin wrappers over the CMake presets (CMakePresets.json).
#   make build    the command build/release/fusewise and the library build/release/libfusewise.so
#   make demo     shows what it does on embedded models
#   make check    builds everything and runs all tests, those of rooms under sanitizers, too
#   make sanitize that last part (sanitizers=asan-ubsan, =tsan: one of them)
#   make stress   long runs: many random graphs and schedules (graphs=N regions=N seed=N), all tests under the sanitizers
#   make format   formats the code; make tidy runs clang-tidy (both with version 19)
jobs ?= $(shell nproc)
preset ?= release
graphs ?= 10000
regions ?= 10000
seed ?= 1
sanitizers ?= asan-ubsan tsan

.PHONY: build demo check sanitize stress format tidy packages configure

packages:
	@tools/install_packages

configure: packages
	@cmake --preset $(preset) --log-level=WARNING

build: configure
	@cmake --build --preset $(preset) --target product -j $(jobs)

demo: build
	@tools/demo build/$(preset)/fusewise

check: configure
	@cmake --build --preset $(preset) -j $(jobs)
	@ctest --preset $(preset) --no-tests=error
	@tools/format --check
	@$(MAKE) --no-print-directory sanitize

# $(1): what is built of each sanitizer's preset, $(2): what of it is tested. A preset whose programs cannot run here is
# left out.
define under_sanitizers
@for preset in $(sanitizers); do \
  tools/can_sanitize $$preset; can=$$?; \
  if [ $$can -eq 1 ]; then continue; fi; \
  [ $$can -eq 0 ] && cmake --preset $$preset --log-level=WARNING && \
  cmake --build $(1) -j $(jobs) && ctest $(2) --no-tests=error || exit 1; \
done
endef

sanitize: packages
	$(call under_sanitizers,--preset $$preset,--preset $$preset)

stress: configure
	@cmake --build --preset $(preset) -j $(jobs)
	@build/$(preset)/stress_graphs --count $(graphs) --seed $(seed) --cases build/$(preset)/graphs.case
	@build/$(preset)/stress_regions --count $(regions) --seed $(seed) --cases build/$(preset)/regions.case
	$(call under_sanitizers,build/$$preset,--test-dir build/$$preset --output-on-failure)

format:
	@tools/format

tidy: configure
	@tools/tidy build/$(preset)
