# SPDX-License-Identifier: Apache-2.0
# The front door; the building itself is CMake's (CMakeLists.txt, CMakePresets.json).
BUILD ?= build/release
JOBS ?= $(shell nproc 2>/dev/null || echo 2)
PREFIX ?= /usr/local
DESTDIR ?=
# Packagers and readers of a release should not fail on the warning of a newer compiler; CI should.
WERROR ?= $(if $(CI),ON,OFF)
SETUP ?= tools/setup.sh
CTEST = ctest --test-dir $(BUILD) -j $(JOBS) --output-on-failure --no-tests=error

.DEFAULT_GOAL := help
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
# cmake --build without the lines that say what was done before
COMPILE = MAKEFLAGS= cmake --build $(BUILD) -j $(JOBS) -- --no-print-directory | sed -u '/Built target/d'
.PHONY: help setup configure build demo test bench install format check ci ci-full coverage fuzz clean

help: ## this text
	@echo "octet: quantized inference engines for vision models, with proof"
	@echo
	@sed -n 's/^\([a-z][a-z-]*\):.*## \(.*\)/    make \1|\2/p' $(MAKEFILE_LIST) | awk -F'|' '{ printf "%-20s %s\n", $$1, $$2 }'
	@echo
	@echo "    variables: BUILD=$(BUILD) JOBS=$(JOBS) PREFIX=$(PREFIX) DESTDIR=$(DESTDIR) WERROR=$(WERROR)"

setup:
	@$(SETUP)

configure: setup
	@mkdir -p $(dir $(BUILD))
	@cmake --preset default -B $(BUILD) -DOCTET_WERROR=$(WERROR) -DCMAKE_INSTALL_PREFIX=$(PREFIX) >$(BUILD).log 2>&1 \
	    || { cat $(BUILD).log; exit 1; }

build: configure ## the library, the command, the tools and the tests, in BUILD
	@$(COMPILE)

demo: configure ## classify, detect, draw, time and judge the small models that come along
	@$(subst -- --no,--target octet_command subjects_draw -- --no,$(COMPILE))
	@tools/demo.sh $(BUILD)/bin

test: build ## every test that takes less than a minute or so
	@$(CTEST) --no-label-summary -LE long

bench: build ## time the small models and every kernel
	@tools/bench.sh $(BUILD)/bin

install: build ## to DESTDIR/PREFIX: libraries, headers, octet.pc, the CMake package, the command
	@DESTDIR=$(DESTDIR) cmake --install $(BUILD) --prefix $(PREFIX)

format: ## the C sources, by .clang-format (version 14)
	@tools/check_format.sh --fix

check: ## rooms, text, format, headers and scripts, without building
	@failed=0; \
	for script in tools/check_rooms.py tools/check_text.py; do $$script --selftest && $$script || failed=1; done; \
	tools/check_format.sh || failed=1; \
	tools/check_headers.sh $(CC) $(firstword $(shell command -v g++ clang++)) || failed=1; \
	if command -v shellcheck >/dev/null; then git ls-files '*.sh' .ci/run | xargs shellcheck --shell=bash --severity=warning || failed=1; fi; \
	exit $$failed

ci: ## all that continuous integration runs: two compilers, sanitizers, fuzzing, the tests
	@.ci/run

ci-full: ## the same with the long tests and long fuzzing
	@.ci/run --full

coverage: ## lines the tests reach, the readers of untrusted files first
	@tools/coverage.sh $(JOBS)

fuzz: ## each fuzz target for OCTET_FUZZ_SECONDS (60)
	@tools/fuzz.sh $(JOBS)

clean: ## removes BUILD
	@rm -rf $(BUILD) $(BUILD).log
