#!/usr/bin/env bash
# The steps of `make test`:  ci/test.sh rust | doc | examples | python
#
# Two variables tie the sides together:
#   FENCEPOST_PYTHON  a Python with numpy, for Rust tests that run format-spec/reference_reader.py
#   FENCEPOST_BIN     the built command line, for Python tests that need files written by Rust
# FENCEPOST_TORCH_PYTHON is a Python that also has torch and the tools of requirements-convert.txt, for the tests of what stands on them.
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

# Builds the package as users get it, and tests it. It is installed below the target directory, not into the environment, which
# other checkouts share.
python_package() {
    wheels=$target/wheels package=$target/python
    rm -rf "$wheels" "$package"
    env PATH="$(dirname "$FENCEPOST_PYTHON"):$PATH" "$FENCEPOST_PYTHON" -m maturin build ${flags[@]+"${flags[@]}"} --quiet \
        --interpreter "$FENCEPOST_PYTHON" --out "$wheels"
    "$FENCEPOST_PYTHON" -m pip install --quiet --disable-pip-version-check --no-deps --no-index --target "$package" "$wheels"/*.whl
    size=$(wc -c <"$(echo "$wheels"/*.whl)")
    if ((size > 5000000)); then
        echo "test: the wheel has $size bytes, more than 5 MB" >&2
        exit 1
    fi
    export PYTHONPATH=$package PYTHONDONTWRITEBYTECODE=1 FENCEPOST_MYPY_CACHE=$target/mypy
    # numpy alone: what needs torch or other libraries skips itself.
    "$FENCEPOST_PYTHON" -m pytest -p no:cacheprovider python/tests
    if [[ -z ${FENCEPOST_TORCH_PYTHON:-} ]]; then
        FENCEPOST_TORCH_PYTHON=$(ci/python_env.sh requirements-test.txt requirements-torch.txt requirements-convert.txt)
    fi
    local files=(python/tests/pyg python/tests/convert)
    for file in python/tests/test_*.py; do
        # Not a second time what has run above.
        if grep -q 'importorskip(' "$file"; then files+=("$file"); fi
    done
    "$FENCEPOST_TORCH_PYTHON" -m pytest -p no:cacheprovider "${files[@]}"
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
    # The rest of that harness has an environment of its own: `make bench-test`.
    "$FENCEPOST_PYTHON" -m pytest -p no:cacheprovider benches/peers/tests/test_report.py
    python_package
    ;;
*)
    echo "usage: ci/test.sh rust | doc | examples | python" >&2
    exit 2
    ;;
esac
