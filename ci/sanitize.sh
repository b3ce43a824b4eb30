#!/usr/bin/env bash
# The tests under tools that see what a passing test does not:  ci/sanitize.sh thread | address | python | miri [TEST ...]
#
#   thread   ThreadSanitizer: the library's unit tests and those of loaders, batches, locks and storage
#   address  AddressSanitizer: the unit tests and the tests of files and samples, over the resident backing and the others
#   python   the Python package built with AddressSanitizer, under the tests of the package; Python's own allocator is off
#   miri     Miri: the unit tests, which need no map
#
# TEST names Rust test files (or pytest's arguments) to run instead. FENCEPOST_RECORD is a folder for the figures.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

kind=${1:-}
shift || true
toolchain=+${SANITIZE_TOOLCHAIN:-nightly}
host=$(rustc "$toolchain" -vV | sed -n 's/^host: //p')
flags=()
read -r -a flags <<<"${CARGO_FLAGS:-}"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
# Fewer random cases: each is 5 to 100 times slower.
export PROPTEST_CASES=${PROPTEST_CASES:-8}

rust_tests() {
    local names=("$@")
    local tests=(--lib)
    for name in "${names[@]}"; do tests+=(--test "$name"); done
    cargo "$toolchain" test ${flags[@]+"${flags[@]}"} "${build[@]}" --target "$host" --target-dir "target/sanitize/$kind" \
        -p fencepost --all-features --no-fail-fast "${tests[@]}" 2>&1 | tee "$log"
}

build=()
status=0
case $kind in
thread)
    # The standard library has to be built with it as well, or its locks are not seen.
    build=(-Zbuild-std)
    export RUSTFLAGS="-Zsanitizer=thread" TSAN_OPTIONS="halt_on_error=0 exitcode=66"
    names=("$@")
    ((${#names[@]})) || names=(loader_run loader_order batch_collate storage verify)
    rust_tests "${names[@]}" || status=$?
    report='WARNING: ThreadSanitizer'
    ;;
address)
    # A refused allocation is what some tests are about.
    export RUSTFLAGS="-Zsanitizer=address" ASAN_OPTIONS="allocator_may_return_null=1"
    names=("$@")
    ((${#names[@]})) || names=(arrays batch_collate batch_memory bitrot import_csv import_graph6 import_npy import_tu
        export_npy loader_order loader_run narrow places rewrite roundtrip storage truncation vectors verify writer)
    rust_tests "${names[@]}" || status=$?
    report='ERROR: (Address|Leak)Sanitizer'
    ;;
python)
    python=${FENCEPOST_PYTHON:-$(ci/python_env.sh requirements-test.txt)}
    package=$PWD/target/sanitize/package wheels=$PWD/target/sanitize/wheels
    rm -rf "$package" "$wheels"
    cargo build ${flags[@]+"${flags[@]}"} --quiet --package fencepost-cli
    RUSTFLAGS="-Zsanitizer=address" RUSTUP_TOOLCHAIN=${toolchain#+} CARGO_TARGET_DIR=target/sanitize/python \
        env PATH="$(dirname "$python"):$PATH" "$python" -m maturin build ${flags[@]+"${flags[@]}"} --quiet \
        --target "$host" --interpreter "$python" --out "$wheels"
    "$python" -m pip install --quiet --disable-pip-version-check --no-deps --no-index --target "$package" "$wheels"/*.whl
    # Not linked into a library by rustc: it has to come before all else of the process. Rust's own archive is the version that
    # the compiler's checks ask for.
    # A name with asan in it would be taken for a second runtime.
    runtime=$PWD/target/sanitize/runtime.so
    archive=$(rustc "$toolchain" --print sysroot)/lib/rustlib/$host/lib/librustc-nightly_rt.asan.a
    # Without the part that only an executable can have.
    cp "$archive" target/sanitize/libasan.a
    ar d target/sanitize/libasan.a asan_preinit.cpp.o
    cc -shared -o "$runtime" -Wl,--whole-archive target/sanitize/libasan.a -Wl,--no-whole-archive -lpthread -ldl -lm -lrt
    arguments=("$@")
    ((${#arguments[@]})) || arguments=(python/tests)
    # The interpreter leaves memory behind on purpose; its own small pieces are made visible by PYTHONMALLOC.
    watched=(env LD_PRELOAD="$runtime" ASAN_OPTIONS="detect_leaks=0:allocator_may_return_null=1" PYTHONMALLOC=malloc)
    if "${watched[@]}" "$python" -c 'import ctypes; p = bytearray(8); q = (ctypes.c_char * 8).from_buffer(p); ctypes.string_at(q, 64)' 2>/dev/null; then
        echo "sanitize: an overrun was not found, so nothing else would be" >&2
        exit 1
    fi
    "${watched[@]}" \
        PYTHONPATH="$package" PYTHONDONTWRITEBYTECODE=1 FENCEPOST_MYPY_CACHE="$PWD/target/mypy" \
        FENCEPOST_BIN="$PWD/target/debug/fencepost" \
        "$python" -m pytest -p no:cacheprovider "${arguments[@]}" 2>&1 | tee "$log" || status=$?
    report='ERROR: AddressSanitizer'
    ;;
miri)
    # Orders of samples are safe arithmetic, and their tests statistics of many millions of steps. Publishing a file and asking
    # for the kind of a filesystem are system calls that Miri does not have.
    left_out=()
    for module in loader::permutation loader::weighted loader::blocks loader::order plan::filesystem \
        plan::tests::this_machine storage::publish writer::spool; do
        left_out+=(--skip "$module")
    done
    export MIRIFLAGS="-Zmiri-disable-isolation -Zmiri-strict-provenance -Zmiri-symbolic-alignment-check"
    cargo "$toolchain" miri test ${flags[@]+"${flags[@]}"} --target-dir target/sanitize/miri -p fencepost --lib \
        --no-fail-fast -- "${left_out[@]}" "$@" 2>&1 | tee "$log" || status=$?
    report='error: Undefined Behavior'
    ;;
*)
    echo "usage: ci/sanitize.sh thread | address | python | miri [TEST ...]" >&2
    exit 2
    ;;
esac

sum() { (grep -oE "$1" "$log" || true) | (grep -oE '[0-9]+' || true) | awk '{ total += $1 } END { print total + 0 }'; }
passed=$(sum '[0-9]+ passed')
failed=$(sum '[0-9]+ failed')
reports=$(grep -cE "$report" "$log" || true)
echo "sanitize: $kind: $passed tests passed, $failed failed, $reports reports"
if [[ -n ${FENCEPOST_RECORD:-} ]]; then
    mkdir -p "$FENCEPOST_RECORD"
    printf '{"finished": %s, "long": true, "figures": {"tests": %s, "failed": %s, "reports": %s}}\n' \
        "$(date +%s)" "$((passed + failed))" "$failed" "$reports" >"$FENCEPOST_RECORD/sanitize_$kind.json"
fi
if ((status != 0 || failed != 0 || reports != 0 || passed == 0)); then exit 1; fi
