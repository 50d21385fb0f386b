#!/usr/bin/env bash
# Build or install the load generators to compare with, where they are missing.
#   bench/peers.sh quick    what comes in a minute: wrk, h2load, nginx, valgrind, Locust
#   bench/peers.sh all      everything the package registries serve; needs go and cargo, about 20 minutes of one core
# Into BENCH_CACHE (default: cicada-bench in the user's cache folder), Locust into the tests' environments. What cannot
# be had is said, and left out of the tables.
set -uo pipefail
cd "$(dirname "$0")/.."
cache=${BENCH_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/cicada-bench}
mkdir -p "$cache/bin"

say() {
    printf 'peers: %s\n' "$*" >&2
}

try() {
    local name=$1
    shift
    say "building $name"
    nice "$@" >"$cache/$name.log" 2>&1 </dev/null || say "no $name: see $cache/$name.log, continuing"
}

go_peer() { # program, module with its version
    [ -x "$cache/bin/$1" ] || try "$1" env GOBIN="$cache/bin" go install "$2"
}

oha() {
    [ -x "$cache/bin/oha" ] && return
    try oha cargo install oha@1.16.0 --locked --root "$cache/cargo" && cp "$cache/cargo/bin/oha" "$cache/bin/oha"
}

goose() {
    [ -x "$cache/bin/goose-peer" ] && return
    mkdir -p "$cache/goose"
    cp -r bench/peers/goose/. "$cache/goose"
    try goose cargo build --release --manifest-path "$cache/goose/Cargo.toml"
    cp "$cache/goose/target/release/goose-peer" "$cache/bin/"
}

what=${1:-quick}
test/setup packages bench
test/setup locust 2.47.0
if [ "$what" = all ]; then
    test/setup packages bench-all
    go_peer fortio fortio.org/fortio@v1.63.10
    go_peer vegeta github.com/tsenart/vegeta/v12@v12.13.0
    oha
    goose
fi
exit 0
