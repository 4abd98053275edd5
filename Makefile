# Two commands matter: `make demo` shows Consort at work, `make test` proves it. Both need Rust; the rest they install.

SHELL := bash
.DELETE_ON_ERROR:
SECONDS ?= 600
SEED ?= $(shell date +%s)
ONLY ?=
.PHONY: help demo test test-sbcl soak faults corpus differential bench completion-table build install picture clean

help:
	@echo 'make demo       install sbcl if it is missing, build Consort, and show it at work on examples/'
	@echo 'make test       every test there is; what they need goes to $${CONSORT_TEST_CACHE:-~/.cache/consort-test}'
	@echo 'make test-sbcl  again what asks something of the compiler, on the SBCL of Debian 13'
	@echo 'make soak       random work and faults for SECONDS= from SEED=; a failure names the history to replay'
	@echo 'make faults     fails each open, write, connect, bind, start of a process and copy of the host, one at a time'
	@echo 'make corpus     Debian systems checked whole and file by file, compared with plain SBCL; ONLY=name for one'
	@echo 'make differential  random edits checked by a chain and as a whole, for SECONDS= from SEED=, on SBCL= (docs/diagnostics.md)'
	@echo 'make bench      ratios against plain compile-file and Swank, measured in one run'
	@echo 'make completion-table  how often completion finds the name that was meant, beside Swank (docs/completion.md)'
	@echo 'make build      target/release/consort'
	@echo 'make install    cargo install, into ~/.cargo/bin unless configured otherwise'
	@echo 'make picture    docs/demo.svg again, from what `make demo` prints'

demo:
	@scripts/install-sbcl
	cargo build --profile demo --locked --bin consort --bin consort-demo
	@target/demo/consort-demo

test:
	@scripts/test

test-sbcl:
	@scripts/test second-sbcl

soak:
	@scripts/test-tools sbcl
	cargo build --locked --workspace --lib --bins --tests
	CONSORT_SOAK_SECONDS=$(SECONDS) CONSORT_SOAK_SEED=$(SEED) CONSORT_SOAK_HISTORY=$(CURDIR)/tests/out scripts/isolated tests/support/leaks \
	  cargo test --locked --workspace --test soak -- --nocapture

faults:
	@scripts/test-tools sbcl
	cargo build --locked --workspace --lib --bins --tests
	scripts/isolated tests/support/leaks cargo test --locked --workspace --test injected -- --ignored --nocapture

corpus:
	@scripts/test-tools sbcl
	@ONLY='$(ONLY)' scripts/corpus

differential:
	@scripts/test-tools sbcl
	@FOR_SECONDS='$(SECONDS)' SEED='$(SEED)' scripts/differential $(SBCL)

bench:
	@scripts/test-tools sbcl
	cargo build --release --locked --bin consort --bin consort-bench
	@scripts/isolated target/release/consort-bench

completion-table:
	@scripts/test-tools sbcl
	cargo build --release --locked --bin consort --bin consort-bench
	@scripts/isolated target/release/consort-bench completion

build:
	cargo build --release --locked --bin consort

install:
	cargo install --locked --path server

picture:
	@scripts/install-sbcl
	cargo build --profile demo --locked --bin consort --bin consort-demo
	scripts/isolated scripts/terminal-svg --title 'make demo' --replace '$(CURDIR)/examples=~/examples' \
	  --replace '/tmp/\S*/(consort/\w+\.log)=~/.local/state/\1' docs/demo.svg target/demo/consort-demo

clean:
	cargo clean
	rm -rf tests/out
