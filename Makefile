# `make` alone lists the targets; each says behind ## what it does.
# Tools are pinned in tools/go.mod and tools/lint/go.mod and built into bin/ when a target needs them.

SHELL := /bin/sh
.SHELLFLAGS := -eu -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-builtin-rules --warn-undefined-variables

# Newest govulncheck that builds with the Go version of go.mod.
GOVULNCHECK := golang.org/x/vuln/cmd/govulncheck@v1.9.0

# What proto-breaking compares with. On a branch: make proto-breaking AGAINST=main
AGAINST ?= HEAD~1

# The race detector needs cgo, and with it a C compiler; without one the tests run without it, and say so.
RACE = $(shell command -v "$$(go env CC)" >/dev/null && echo -race)

# Every Go file that git knows or would add and that is there: neither downloads nor ignored build output.
GO_FILES = git ls-files -co --exclude-standard '*.go' | while read -r f; do if [ -f "$$f" ]; then echo "$$f"; fi; done

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^#: ## / { printf "\n%s\n", $$2 } /^[a-z-]+:.*## / { printf "  %-20s %s\n", $$1, $$2 }' Makefile

#: ## Run

.PHONY: demo
demo: ## Run the gateway in front of a scripted agent, all in one process
	go run ./cmd/gateway demo

.PHONY: build
build: ## Build the static binary bin/gateway
	CGO_ENABLED=0 go build -trimpath -o bin/gateway ./cmd/gateway

#: ## Test

.PHONY: test
test: ## Run all tests that need no other program, with the race detector
	@test -n "$(RACE)" || echo "make test: no C compiler found, so WITHOUT the race detector" >&2
	go test $(RACE) ./...

# Which of the random runs: make chaos SEEDS=100000 FIRST=1000000
SEEDS ?= 5000
FIRST ?= 1

.PHONY: chaos
chaos: ## Run 5000 random sessions, faults, clients and restarts in virtual time (SEEDS=, FIRST=)
	go test $(RACE) -count=1 -timeout 30m ./test/chaos -run 'TestChaos$$' -chaos.seeds=$(SEEDS) -chaos.first=$(FIRST)

.PHONY: conformance
conformance: ## Read every scripted session of the conformance kit through the built gateway
	go run ./test/conformance --gateway

.PHONY: test-real
test-real: ## Test against the real agent server; needs npm, Linux on x86-64
	test/realeve/install.sh
	go test $(RACE) -count=1 -tags realeve -v ./test/realeve/...

.PHONY: smoke
smoke: build bin/grpcurl ## Use the built demo as a stranger would, with grpcurl alone
	go test -count=1 -tags smoke -v ./test/smoke/...

# Flags for the program in bench/, such as -time 10m.
BENCH ?=

.PHONY: bench
bench: ## Measure what the gateway costs, as Markdown (BENCH='-time 10m' for more rounds)
	go run ./bench $(BENCH)

#: ## Check

.PHONY: lint
lint: bin/golangci-lint ## Vet and lint the Go code; go.mod says what it needs and no more
	go mod tidy -diff
	go vet ./...
	bin/golangci-lint run ./...

.PHONY: fmt
fmt: ## Format the Go code
	$(GO_FILES) | xargs gofmt -w

.PHONY: fmt-check
fmt-check: ## Fail when Go code is not formatted
	@bad=$$($(GO_FILES) | xargs gofmt -l); test -z "$$bad" || { echo "not formatted, run make fmt:" >&2; echo "$$bad" >&2; exit 1; }

.PHONY: vuln
vuln: ## Look for known vulnerabilities; needs the network for their database
	go run $(GOVULNCHECK) ./...

.PHONY: ci
ci: ## Run everything a change has to pass
	.ci/run

#: ## Protocol

PROTO_TOOLS := bin/buf bin/protoc-gen-go bin/protoc-gen-go-grpc

.PHONY: generate
generate: $(PROTO_TOOLS) ## Format the protos and regenerate gen/
	bin/buf format -w
	bin/buf generate --clean

.PHONY: generate-check
generate-check: $(PROTO_TOOLS) ## Fail when gen/ is not what the protos generate
	rm -rf build/generated
	bin/buf generate -o build/generated
	diff -r build/generated/gen gen || { echo "gen/ differs, run make generate" >&2; exit 1; }

.PHONY: proto-lint
proto-lint: bin/buf ## Lint the protos
	bin/buf lint

.PHONY: proto-format-check
proto-format-check: bin/buf ## Fail when the protos are not formatted
	bin/buf format -d --exit-code

.PHONY: proto-breaking
proto-breaking: bin/buf ## Fail when the protos break clients of the previous commit (AGAINST=...)
	tools/proto-breaking $(AGAINST)

#: ## Tools

# Touched, because go leaves a binary alone that is up to date.
bin/buf: PACKAGE = github.com/bufbuild/buf/cmd/buf
bin/grpcurl: PACKAGE = github.com/fullstorydev/grpcurl/cmd/grpcurl
bin/protoc-gen-go: PACKAGE = google.golang.org/protobuf/cmd/protoc-gen-go
bin/protoc-gen-go-grpc: PACKAGE = google.golang.org/grpc/cmd/protoc-gen-go-grpc
bin/buf bin/grpcurl bin/protoc-gen-go bin/protoc-gen-go-grpc: tools/go.mod tools/go.sum
	go -C tools build -buildvcs=false -o ../$@ $(PACKAGE)
	@touch $@

bin/golangci-lint: tools/lint/go.mod tools/lint/go.sum
	go -C tools/lint build -buildvcs=false -o ../../$@ github.com/golangci/golangci-lint/v2/cmd/golangci-lint
	@touch $@

.PHONY: tools
tools: $(PROTO_TOOLS) bin/grpcurl bin/golangci-lint ## Build all tools into bin/
