#!/usr/bin/env bash
# Run every fuzz target for a while:  ci/fuzz.sh [SECONDS_EACH]
# FUZZ_TOOLCHAIN names the toolchain (default: nightly, which the sanitizers need).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

seconds=${1:-60}
toolchain=+${FUZZ_TOOLCHAIN:-nightly}

if [[ ! -f fuzz/Cargo.toml ]]; then
    echo "fuzz: there is no fuzz/ in this tree" >&2
    exit 2
fi
if ! cargo "$toolchain" fuzz --version >/dev/null 2>&1; then
    echo "fuzz: cargo-fuzz is not there. To install it:" >&2
    echo "    rustup toolchain install nightly && cargo install cargo-fuzz --locked" >&2
    exit 2
fi
targets=$(cargo "$toolchain" fuzz list)
for target in $targets; do
    echo "fuzz: $target for $seconds s"
    # The golden and hostile files are the seeds: extra corpus folders are read, never written.
    corpus=(fuzz/corpus/"$target")
    mkdir -p "${corpus[0]}"
    for seeds in format-spec/vectors/golden format-spec/vectors/hostile; do
        [[ -d $seeds ]] && corpus+=("$seeds")
    done
    cargo "$toolchain" fuzz run "$target" "${corpus[@]}" -- -max_total_time="$seconds"
done
