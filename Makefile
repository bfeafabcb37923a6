# `make` alone lists the targets. Everything is made in this folder: .venv, .venv-sam, .venv-bench, .venv-tools, .venv-3.12, .aws-sam, dist.
SHELL := /bin/sh
.DEFAULT_GOAL := help
.NOTPARALLEL:
.DELETE_ON_ERROR:
MAKEFLAGS += --no-print-directory

python := .venv/bin/python
# Unit tests are many and small: a worker that has nothing left takes some of the other's. What Python compiles is kept, also
# where the environment says otherwise: each worker would spend a second on it every time. `make clean` takes it away.
unit_options := -q -n 2 --dist worksteal tests/unit
# What checks run in; the last one only where there are two Pythons.
environments = .venv .venv-sam .venv-tools $(if $(shell PYTHON= tools/find-python 3.13 && PYTHON= tools/find-python 3.12),.venv-3.12)
compiled := PYTHONDONTWRITEBYTECODE=
# More workers than cores: most of what the later tests do is waiting.
pytest_waiting := $(python) -m pytest -q -n 4 --dist loadfile
ready := .venv/.ready

# A folder that was copied or moved brings environments that belong elsewhere: make those anew.
.PHONY: $(shell for venv in .venv .venv-sam .venv-bench .venv-screenshots .venv-tools .venv-aws .venv-docs .venv-3.12 .venv-3.13 .venv-3.14; do \
	[ ! -d $$venv ] || [ "$$(cat $$venv/.made-in 2>/dev/null)" = "$(CURDIR)" ] || echo $$venv/.requirements; done)

.PHONY: help
help:
	@echo "make demo     see it work: a stand-in cluster, DynamoDB and Route 53 on this machine"
	@echo "make test     every test that takes seconds, the unit tests first"
	@echo "make check    all that CI runs: style, types and layers beside wheel, sam build and audit; make test; make thorough without soak; the other Python"
	@echo "make thorough every case of what make test samples: mutants, cuts of recordings, faults, whole attacks"
	@echo "make sam      build what is deployed, and run it as Lambda does"
	@echo "make aws      deploy what sam builds on an AWS of another maker, on this machine: its life from deploy to delete"
	@echo "make wheel    build the command as a wheel, and run it in clean environments"
	@echo "make audit    does anyone know a vulnerability of a pinned requirement?"
	@echo "make package  make what a release ships, in dist/: wheel, built template and layers, their parts"
	@echo "make release  the same, for a version with its tag and its section of the changelog"
	@echo "make chaos    simulate whole deployments: kill, pause, two masters, lost answers: within a quarter of an hour"
	@echo "make mutants  take one mechanism out at a time: do the tests notice?"
	@echo "make bench    the figures of the design, measured on this machine; bench-quick: some of them, within three minutes"
	@echo "make proxies  real nginx, HAProxy and Envoy before pods that are deployed anew: no request may fail"
	@echo "make prove    the commit protocol, checked in full as a model (needs spin)"
	@echo "make dns      write docs/names.md anew, from tests/dns/cases.md"
	@echo "make terraform write the module in deploy/terraform anew, from template.yaml; terraform-artifacts: make what it uploads"
	@echo "make docs     build the site of docs/ in build/site, without network; broken links fail"
	@echo "make causes   write the table of causes in docs/runbook.md anew, from those that tests drive"
	@echo "make reference write docs/reference anew, from the code and a run on stand-ins"
	@echo "make invariants list the tests and mutants of each invariant"
	@echo "make screenshots pictures of kubesync ui and of commands on terminals, by the system's Chromium, in build/screenshots"
	@echo "make pictures draw the pictures of docs/ anew, and the way of an event"
	@echo "make lock     compile the requirements anew"
	@echo "make clean    remove all that was made here"

.PHONY: demo
demo: $(ready)
	@.venv/bin/kubesync demo

.PHONY: test
test: $(ready)
	@echo "· unit tests"
	@failed=0; $(compiled) $(python) -m pytest $(unit_options) || failed=1; \
	echo "· contract, integration and end-to-end tests"; \
	$(compiled) $(pytest_waiting) -m "not thorough" tests --ignore=tests/unit || failed=1; exit $$failed

# What takes long and seldom says more than its sample in `make test`. Tests that share a story share a worker (tests/conftest.py).
cases := thorough
.PHONY: thorough
thorough: $(ready)
	@echo "· more cases of what make test samples"
	@$(compiled) $(python) -m pytest -q -n 4 --dist loadgroup --durations 15 -m "$(cases)" tests

# Those that failed last, one after the other: tells a fault from a machine that was too busy.
.PHONY: retest
retest: $(ready)
	@$(python) -m pytest -q --last-failed --last-failed-no-failures none tests

.PHONY: check
check: cases := thorough and not soak
check: $(if $(SKIP_TESTS),,test) side-by-side archive life-beside-thorough
	@echo "· all checks passed"

# Each of the two uses one core. What the first says is shown when both are done. No test may run beside them: what it compiles would
# get into the built layer.
.PHONY: side-by-side
side-by-side: $(ready)
	@said=$$(mktemp); $(MAKE) --keep-going sam audit >"$$said" 2>&1 & built=$$!; failed=0; \
	$(MAKE) --keep-going static docs wheel || failed=1; wait $$built || failed=1; cat "$$said"; rm "$$said"; exit $$failed

# A life of a stack waits for the scheduler most of the time. Only it is in the background: what begins there ignores SIGINT, which tests send.
.PHONY: life-beside-thorough
life-beside-thorough: $(ready)
	@said=$$(mktemp); $(MAKE) aws-life >"$$said" 2>&1 & life=$$!; failed=0; \
	$(MAKE) thorough cases="$(cases)" || failed=1; $(MAKE) other-python || failed=1; \
	wait $$life || failed=1; cat "$$said"; rm "$$said"; exit $$failed

.PHONY: static lint format types layering tree
static: lint format types layering tree

lint: $(ready)
	@.venv/bin/ruff check --quiet .
	@echo "· ruff check: ok"

format: $(ready)
	@.venv/bin/ruff format --quiet --check .
	@echo "· ruff format --check: ok"

types: $(ready)
	@.venv/bin/mypy --no-error-summary
	@echo "· mypy: ok"

layering: $(ready)
	@out=$$(.venv/bin/lint-imports 2>&1) || { echo "$$out"; exit 1; }
	@echo "· lint-imports: ok"

tree: $(ready)
	@$(python) tools/check_tree.py
	@echo "· tracked files: ok"

# Lambda runs 3.13; 3.12 is what many people have, 3.14 what they will have. The unit suite runs on those that .venv is not, without the tests
# of pages and of the repository: these do not depend on it.
.PHONY: other-python
other-python: $(ready)
	@failed=0; for version in $$($(python) -c 'import sys; print("3.12" if sys.version_info >= (3, 13) else "3.13")') 3.14; do \
		if ! PYTHON= tools/find-python $$version >/dev/null 2>&1; then \
			echo "· unit tests on Python $$version: not on this machine, skipped"; \
		else \
			$(MAKE) -s .venv-$$version/.requirements && echo "· unit tests on Python $$version" && \
			$(compiled) .venv-$$version/bin/python -m pytest $(unit_options) --ignore=tests/unit/house || failed=1; \
		fi; \
	done; exit $$failed

.PHONY: sam
sam: .venv-sam/.requirements $(ready)
	@tools/sam-build
	@tools/test-artefact

# The module itself is tracked; what it uploads is made of what is built.
.PHONY: terraform terraform-artifacts
terraform: $(ready)
	@PYTHONPATH=layers/kubesync:local:tests $(python) tools/terraform_module.py

terraform-artifacts: $(ready)
	@$(python) tools/package.py --terraform

.PHONY: aws aws-life
aws: sam aws-life

# Of what is built.
aws-life: $(ready)
	@tools/test-aws

.PHONY: wheel
wheel: $(ready)
	@$(python) tools/package.py --only-wheel
	@for version in 3.13 3.12; do \
		if python=$$(PYTHON= tools/find-python $$version 2>/dev/null); then \
			$(python) tools/test_wheel.py dist/*.whl "$$python" && echo "· wheel on Python $$version: ok" || exit 1; \
		else echo "· wheel on Python $$version: not on this machine, skipped"; fi; \
	done

.PHONY: package archive
package: sam archive

# Of what is built.
archive: .venv-tools/.requirements $(ready)
	@if PYTHON= tools/find-python 3.13 >/dev/null 2>&1; then $(python) tools/package.py; \
	else echo "· package: needs Python 3.13, skipped"; fi

.PHONY: audit
audit: .venv-tools/.requirements $(ready)
	@$(python) tools/audit.py

# The functions are built anew, and the wheel is tried, before anything is called a release.
.PHONY: release
release: $(ready)
	@$(python) tools/release.py check
	@PYTHON= tools/find-python 3.13 >/dev/null
	@$(MAKE) wheel package
	@$(python) tools/release.py notes

.PHONY: bench
bench: .venv-bench/.requirements
	@$(compiled) .venv-bench/bin/python -m bench $(BENCH)

.PHONY: bench-quick
bench-quick: BENCH := command-start planning watch-stream memory hand-over
bench-quick: bench

# ARGS="--deploys 2 --rate 50"
.PHONY: proxies
proxies: $(ready)
	@tools/proxy-packages || { status=$$?; [ $$status -eq 3 ] && exit 0; exit $$status; }; \
	$(python) -m pytest -q -n 0 tests/real_proxies && \
	PYTHONPATH=.:tests:local:layers/kubesync $(python) -m real_proxies.load $(ARGS)

.PHONY: prove
prove:
	@tools/prove

# ARGS="no-inflight" for one of them
.PHONY: mutants
mutants: $(ready)
	@PYTHONPATH=tests:local:layers/kubesync $(python) -m mutation --chaos $(ARGS)

# ARGS="--seed 7", "--section 3", "--case 12", "--short", "--first"
.PHONY: chaos
chaos: $(ready)
	@cd tests && PYTHONPATH=../layers/kubesync:../local:. ../$(python) -m chaos $(ARGS)

.PHONY: dns
dns: $(ready)
	@PYTHONPATH=layers/kubesync:local:tests $(python) -m harness.dns_cases.names_page

.PHONY: docs
docs: .venv-docs/.requirements $(ready)
	@$(python) tools/docs_site.py

.PHONY: causes
causes: $(ready)
	@PYTHONPATH=layers/kubesync:local:tests:tools $(python) -m harness.causes.page
	@PYTHONPATH=layers/kubesync:local:tests:tools $(python) -m chaos.faults.items_page

.PHONY: pictures
pictures: $(ready)
	@PYTHONPATH=layers/kubesync:local:tests $(python) tools/event_way.py && $(python) tools/draw_pictures.py

# ARGS=I4: only this one
.PHONY: invariants
invariants: $(ready)
	@PYTHONPATH=layers/kubesync:local:tests $(python) tools/invariants.py $(ARGS)

.PHONY: reference
reference: $(ready)
	@PYTHONPATH=layers/kubesync:local:tests $(python) tools/reference.py

# ARGS="failing many": only these scenes
.PHONY: screenshots
screenshots: $(ready)
	@command -v chromium >/dev/null || { echo "· screenshots: there is no chromium on this machine, skipped"; exit 0; }; \
	$(MAKE) -s .venv-screenshots/.requirements && \
	PYTHONPATH=layers/kubesync:local:tests:tools KUBESYNC_LOG_LEVEL=ERROR $(python) -m screenshots build/screenshots $(ARGS)

.PHONY: lock
lock: $(ready)
	@tools/lock

.PHONY: clean
clean:
	@rm -rf .venv .venv-sam .venv-bench .venv-screenshots .venv-tools .venv-aws .venv-docs .venv-3.12 .venv-3.13 .venv-3.14 .aws-sam build dist *.egg-info .kubesync
	@rm -rf .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .grimp_cache
	@find . -name __pycache__ -prune -exec rm -rf {} +

.PHONY: setup
setup: $(ready)
	@:

# One pip uses one core.
.PHONY: environments
environments:
	@printf '%s/.requirements\n' $(environments) | xargs -P 2 -n 1 $(MAKE) -s

$(ready): .venv/.requirements pyproject.toml
	@$(python) -m pip install -qq --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

.venv/.requirements: requirements/dev.txt
	@tools/make-venv .venv requirements/dev.txt 3.13 3.12
	@touch $@

.venv-sam/.requirements: requirements/sam.txt
	@tools/make-venv .venv-sam requirements/sam.txt 3.13 3.12
	@touch $@

.venv-screenshots/.requirements: requirements/screenshots.txt
	@tools/make-venv .venv-screenshots requirements/screenshots.txt 3.13 3.12
	@touch $@

.venv-bench/.requirements: requirements/bench.txt
	@tools/make-venv .venv-bench requirements/bench.txt 3.13 3.12
	@touch $@

.venv-tools/.requirements: requirements/tools.txt
	@tools/make-venv .venv-tools requirements/tools.txt 3.13 3.12
	@touch $@

.venv-docs/.requirements: requirements/docs.txt
	@tools/make-venv .venv-docs requirements/docs.txt 3.13 3.12
	@touch $@

.venv-aws/.requirements: requirements/aws.txt
	@tools/make-venv .venv-aws requirements/aws.txt 3.13 3.12
	@touch $@

.venv-3.%/.requirements: requirements/dev.txt
	@PYTHON= tools/make-venv .venv-3.$* requirements/dev.txt 3.$*
	@touch $@
