# Sluice. `make` alone lists the targets. `demo`, `test` and `build` need Go and nothing else.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

GO ?= go
CACHE := $(or $(SLUICE_CACHE),$(or $(XDG_CACHE_HOME),$(HOME)/.cache)/sluice)
export SLUICE_CACHE := $(CACHE)

GOLANGCI_VERSION := v2.15.0
GOLANGCI := $(CACHE)/bin/golangci-lint-$(GOLANGCI_VERSION)

FUZZTIME ?= 30s

.PHONY: help
help: ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1	\2/' | expand -t 24

.PHONY: build
build: ## bin/sluice
	$(GO) build -ldflags "-s -w" -o bin/sluice ./cmd/sluice

.PHONY: demo
demo: build ## DMS change files of a MySQL table become a Hudi table, round by round
	@bin/sluice demo

.PHONY: test
test: ## everything that needs Go alone
	$(GO) test ./...

.PHONY: race
race: ## the same under the race detector, as CI runs it
	$(GO) test -race ./...

.PHONY: interop-tools
interop-tools: ## installs Spark, Apache Hudi, DuckDB, PyArrow and hudi-rs into the cache folder
	@./interop/install.sh

.PHONY: interop
interop: ## the same tables through the real peers (installs them first)
	@env="$$(./interop/install.sh)"; eval "$$env"; \
	$(GO) test -tags interop -count=1 -p 1 -timeout 40m ./interop/... $(ARGS)

.PHONY: bench
bench: build ## reading and exporting beside DuckDB, PyArrow, hudi-rs and Spark: a table of rates and memory
	@env="$$(./interop/install.sh)"; eval "$$env"; \
	$(GO) run ./bench $(ARGS)

.PHONY: bench-write
bench-write: build ## writing beside Spark with Apache Hudi and DuckDB's COPY
	@env="$$(./interop/install.sh)"; eval "$$env"; \
	$(GO) run ./bench/write $(ARGS)

.PHONY: lint
lint: $(GOLANGCI) ## gofmt, go vet, golangci-lint; the lower floors without cgo
	@unformatted="$$(gofmt -l $$(git ls-files '*.go'))"; \
	if [ -n "$$unformatted" ]; then echo "gofmt -w is due on:"; echo "$$unformatted"; exit 1; fi
	$(GO) vet ./...
	$(GO) vet -tags interop ./interop/...
	$(GO) vet -tags hdfs ./storage/...
	CGO_ENABLED=0 $(GO) build ./...
	$(GOLANGCI) run ./...
	$(GOLANGCI) run --build-tags interop ./interop/...

$(GOLANGCI):
	@mkdir -p $(CACHE)/bin
	GOFLAGS= GOBIN=$(CACHE)/bin/tmp $(GO) install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_VERSION)
	@mv $(CACHE)/bin/tmp/golangci-lint $@ && rmdir $(CACHE)/bin/tmp

.PHONY: fuzz
fuzz: ## every fuzz target for FUZZTIME (default 30s) each
	@for package in $$($(GO) list ./...); do \
	  for target in $$($(GO) test -list '^Fuzz' $$package | grep '^Fuzz' || true); do \
	    echo "== $$package $$target"; \
	    $(GO) test -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZTIME) $$package; \
	  done; \
	done

.PHONY: clean
clean: ## removes bin/ and what the benchmark wrote; the cache folder stays
	rm -rf bin bench/out
