#!/usr/bin/env bash
# The steps of `make test`:  ci/test.sh rust | doc | examples | python
#
# Two variables tie the sides together:
#   FENCEPOST_PYTHON  a Python with numpy, for Rust tests that run format-spec/reference_reader.py
#   FENCEPOST_BIN     the built command line, for Python tests that need files written by Rust
# CARGO_FLAGS is handed to every cargo command (.ci/run sets --locked).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

flags=()
read -r -a flags <<<"${CARGO_FLAGS:-}"

python_env() {
    if [[ -z ${FENCEPOST_PYTHON:-} ]]; then
        FENCEPOST_PYTHON=$(ci/python_env.sh requirements-test.txt)
    fi
    export FENCEPOST_PYTHON
}

case ${1:-} in
rust)
    python_env
    if cargo nextest --version >/dev/null 2>&1; then
        cargo nextest run ${flags[@]+"${flags[@]}"} --workspace --all-features --no-tests=warn
    else
        cargo test ${flags[@]+"${flags[@]}"} --workspace --all-features --lib --bins --tests
    fi
    ;;
doc)
    # nextest does not run these.
    cargo test ${flags[@]+"${flags[@]}"} --workspace --all-features --doc
    ;;
examples)
    # Every example runs without arguments and cleans up after itself, so that it cannot rot.
    for file in examples/*.rs; do
        [[ -e $file ]] || continue
        name=$(basename "$file" .rs)
        echo "example: $name"
        cargo run ${flags[@]+"${flags[@]}"} --quiet --package fencepost --all-features --example "$name" >/dev/null
    done
    ;;
python)
    if [[ ! -d format-spec/tests ]]; then
        echo "test: format-spec/tests is missing: the reference reader is not tested, so this run is not a pass" >&2
        exit 1
    fi
    python_env
    cargo build ${flags[@]+"${flags[@]}"} --quiet --package fencepost-cli
    target=$(cargo metadata --format-version 1 --no-deps |
        "$FENCEPOST_PYTHON" -c 'import json, sys; print(json.load(sys.stdin)["target_directory"])')
    export FENCEPOST_BIN=$target/debug/fencepost
    "$FENCEPOST_PYTHON" -m pytest -p no:cacheprovider format-spec/tests
    ;;
*)
    echo "usage: ci/test.sh rust | doc | examples | python" >&2
    exit 2
    ;;
esac
