# What one does with this repository. `make` alone prints the list; each target is one script or one cargo command.

.DEFAULT_GOAL := help
.PHONY: help build setup test clients linearizability broken crash queues flows takeover fuzz bench bench-log cli churn torture

help: ## this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## the server, optimised: target/release/ferrite-server
	cargo build --release

cli: ## the command line client, optimised: target/release/ferrite-cli
	cargo build --release --package ferrite-cli

setup: ## installs what the tests need beside Rust (redis-server, redis-tools, openssh-server, tmux, prometheus, .venv); as root on Debian, else says what is missing
	@scripts/setup

test: setup ## all that CI runs: format, lints, unit, golden, split, connection, differential, quick client and linearizability tests, instruction counts
	@scripts/test

clients: setup build ## all clients of tests/clients against the optimised server, the slow ones (Java) too
	scripts/guarded tests/clients/run all $${CARGO_TARGET_DIR:-target}/release/ferrite-server

.PHONY: libraries
libraries: setup build ## which well-known libraries work with the optimised server, written into docs/libraries.md and README.md
	scripts/guarded tests/clients/libraries/measure --write

.PHONY: suites
suites: setup build ## the test suites of redis-py and go-redis against the optimised server, written into docs/suites.md
	scripts/guarded scripts/suites --write

linearizability: setup build ## 4500 histories of many clients at once, 2000 of them with kills (HISTORIES=200 of a kind), 1000 of them with scripts
	scripts/guarded tests/linearizability/run long $${CARGO_TARGET_DIR:-target}/release/ferrite-server

broken: setup ## servers that leave locks out, for all or for scripts alone, must be found out by the linearizability check
	scripts/guarded tests/linearizability/run broken

crash: ## kills the server ROUNDS (300) times under appendfsync always, as often under everysec, and as often beside scripts, and looks for what is lost
	scripts/guarded env FERRITE_CRASHES=$${ROUNDS:-300} FERRITE_CRASH_BOUND_MS=1200 cargo test -p ferrite-server --test all -- crash:: durable::versions --nocapture --test-threads 1

queues: ## MESSAGES (10000000) messages through queues with appendfsync always, while an optimised server with DEBUG DISK is killed KILLS (20) times: none lost, none twice, in order
	cargo build --release -p ferrite-server --features faults --target-dir $(or $(CARGO_TARGET_DIR),target)/faults
	scripts/guarded env FERRITE_SERVER=$(abspath $(or $(CARGO_TARGET_DIR),target))/faults/release/ferrite-server FERRITE_QUEUE_MESSAGES=$(or $(MESSAGES),10000000) \
		FERRITE_QUEUE_KILLS=$(or $(KILLS),20) cargo test -p ferrite-server --test all -- queues:: --nocapture --test-threads 1

flows: ## FLOWS (10000) flows of requests from SEED (1) against redis-server, whole, cut, half-closed, read before, between and after
	scripts/guarded env FERRITE_FLOWS=$(or $(FLOWS),10000) FERRITE_SEED=$(or $(SEED),1) cargo test -p ferrite-server --test all -- flows:: --nocapture

takeover: ## DIRECTORIES (200) random directories of redis-server from SEED (1), taken over or refused by place
	scripts/guarded env FERRITE_DIRECTORIES=$(or $(DIRECTORIES),200) FERRITE_SEED=$(or $(SEED),1) cargo test -p ferrite-server --test all -- takeover::random --nocapture

fuzz: ## every fuzz target for FUZZ_SECONDS (600) seconds, on the nightly toolchain
	@scripts/fuzz

bench: ## Ferrite beside redis-server on this machine, written into docs/benchmarks.md; BENCH has more options and servers
	cargo build --release -p ferrite-server -p ferrite-bench
	$${CARGO_TARGET_DIR:-target}/release/ferrite-bench side-by-side --docs docs $(BENCH)

bench-log: ## the same with the log, synced every second
	cargo build --release -p ferrite-server -p ferrite-bench
	$${CARGO_TARGET_DIR:-target}/release/ferrite-bench side-by-side --log --docs docs $(BENCH)

.PHONY: docs deb instructions
docs: ## brings up to date what is made from tables: docs/config.md, the client's commands, manual pages, completions, ferrite.conf
	UPDATE_DOCS=1 cargo test -p ferrite-server --bin ferrite-server docs
	UPDATE_DOCS=1 cargo test -p ferrite-server --test all defaults
	UPDATE_DOCS=1 cargo test -p ferrite-cli --test all commands
	UPDATE_DOCS=1 cargo test -p ferrite-cli -p ferrite-bench --bins manual

deb: ## a Debian package of the three programs and the service: target/debian/ferrite_*.deb; needs cargo-deb
	cargo build --release -p ferrite-server -p ferrite-cli -p ferrite-bench
	cargo deb --no-build -p ferrite-server

instructions: ## instructions per operation beside those of BASE (a commit; the one where this branch left main), both built and counted in one run; fails above TOLERANCE (2) per cent more
	@scripts/instructions --base "$(BASE)" --tolerance $(or $(TOLERANCE),2)

churn: ## whether the limit of memory holds, for CHURN_SECONDS (1800) seconds, on the optimised server; CHURN_GROUP=1: in a cgroup that would kill it
	scripts/guarded env FERRITE_CHURN_GROUP=$${CHURN_GROUP:-} FERRITE_CHURN_SECONDS=$${CHURN_SECONDS:-1800} cargo test --release -p ferrite-server --test all -- memory::churn --nocapture

torture: ## everything at once against a model, for SECONDS (600) seconds from SEED (the clock), on an optimised server with DEBUG DISK (feature `faults`, in a target folder of its own); SCRIPT=file runs a script, SHRINK (300) bounds the seconds that make a find short
	cargo build --release -p ferrite-server --features faults --target-dir $(or $(CARGO_TARGET_DIR),target)/faults
	scripts/guarded env FERRITE_SERVER=$(abspath $(or $(CARGO_TARGET_DIR),target))/faults/release/ferrite-server FERRITE_TORTURE_SECONDS=$(or $(SECONDS),600) \
		FERRITE_SEED=$(or $(SEED),$$(date +%s)) FERRITE_TORTURE_SHRINK=$(or $(SHRINK),$(if $(SCRIPT),0,300)) FERRITE_TORTURE_SCRIPT=$(abspath $(SCRIPT)) \
		cargo test -p ferrite-server --test all -- torture::everything_at_once --nocapture
