#!/usr/bin/env bash
# Run every fuzz target for a while:  ci/fuzz.sh [SECONDS_EACH [TARGET ...]]
#
# FUZZ_TOOLCHAIN   the toolchain (default: nightly, which the sanitizers need)
# FUZZ_SANITIZER   address (default), or none where it does not build
# FUZZ_RECORD      a file that each run appends a line of figures to, libFuzzer's own (default: none)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

seconds=${1:-60}
shift || true
toolchain=+${FUZZ_TOOLCHAIN:-nightly}
sanitizer=${FUZZ_SANITIZER:-address}

if [[ ! -f fuzz/Cargo.toml ]]; then
    echo "fuzz: there is no fuzz/ in this tree" >&2
    exit 2
fi
if ! cargo "$toolchain" fuzz --version >/dev/null 2>&1; then
    echo "fuzz: cargo-fuzz is not there. To install it:" >&2
    echo "    rustup toolchain install nightly && cargo install cargo-fuzz --locked" >&2
    exit 2
fi
targets=("$@")
if ((${#targets[@]} == 0)); then
    mapfile -t targets < <(cargo "$toolchain" fuzz list)
fi

# The seeds are made anew each time, so that a new golden or hostile file is one the day it is there.
seeds=fuzz/seeds
rm -rf "$seeds"
(cd fuzz && cargo "$toolchain" run --quiet --release --example seeds -- seeds)

log=$(mktemp)
trap 'rm -f "$log"' EXIT
failed=()
for target in "${targets[@]}"; do
    echo "fuzz: $target for $seconds s"
    corpus=fuzz/corpus/$target
    mkdir -p "$corpus" "$seeds/$target"
    # More in one piece than a small constant beside the file's length is a find. What is imported may be compressed.
    memory=64
    [[ $target == npy ]] && memory=512
    started=$(date -u +%Y-%m-%dT%H:%M:%SZ)
    status=0
    # Folders after the first are read and never written.
    cargo "$toolchain" fuzz run --sanitizer "$sanitizer" "$target" "$corpus" "$seeds/$target" -- \
        -max_total_time="$seconds" -timeout=20 -malloc_limit_mb="$memory" -rss_limit_mb=2048 \
        -print_final_stats=1 2>&1 | tee "$log" | grep -vE '^#[0-9]+.*(NEW|REDUCE|pulse|RELOAD)' || status=${PIPESTATUS[0]}
    if [[ -n ${FUZZ_RECORD:-} ]]; then
        number() { grep -oE "$1[ 0-9]+" "$log" | grep -oE '[0-9]+$' | tail -n 1 || true; }
        took=$(grep -oE 'Done [0-9]+ runs in [0-9]+ second' "$log" | grep -oE '[0-9]+ second' | grep -oE '[0-9]+' || true)
        printf '{"target":"%s","started":"%s","sanitizer":"%s","executions":%s,"seconds":%s,"corpus":%s,"finds":%s}\n' \
            "$target" "$started" "$sanitizer" "$(number 'stat::number_of_executed_units:')" "${took:-0}" \
            "$(find "$corpus" -type f | wc -l)" "$((status == 0 ? 0 : 1))" >>"$FUZZ_RECORD"
    fi
    ((status == 0)) || failed+=("$target")
done
if ((${#failed[@]})); then
    echo "fuzz: finds in ${failed[*]}: the inputs are in fuzz/artifacts/" >&2
    exit 1
fi
