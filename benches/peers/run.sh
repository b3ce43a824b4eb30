#!/usr/bin/env bash
# Run the harness in its own environment, with the package built from this checkout:
#
#   benches/peers/run.sh [ARGUMENTS of python -m peers]     measure (--help says what)
#   benches/peers/run.sh --tests [ARGUMENTS of pytest]      test the harness itself
#
# The environment (torch, PyG and all peers, 7 GB) is cached by ci/python_env.sh; the package and what is installed alone lie below the target
# directory.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

flags=()
read -r -a flags <<<"${CARGO_FLAGS:-}"

python=$(ci/python_env.sh benches/peers/requirements.txt)
target=$(cargo metadata ${flags[@]+"${flags[@]}"} --format-version 1 --no-deps |
    "$python" -c 'import json, sys; print(json.load(sys.stdin)["target_directory"])')/peers
pip=("$python" -m pip install --quiet --disable-pip-version-check --no-deps)

rm -rf "$target/wheels" "$target/package"
env PATH="$(dirname "$python"):$PATH" "$python" -m maturin build ${flags[@]+"${flags[@]}"} --quiet --interpreter "$python" --out "$target/wheels" >&2
"${pip[@]}" --no-index --target "$target/package" "$target/wheels"/*.whl >&2

alone=$target/alone-$(cksum <benches/peers/requirements-alone.txt | cut -d ' ' -f 1)
if [[ ! -e $alone/complete ]]; then
    rm -rf "$alone"
    "${pip[@]}" --target "$alone" -r benches/peers/requirements-alone.txt >&2
    touch "$alone/complete"
fi

export PYTHONPATH=$PWD/benches/peers:$target/package:$alone PYTHONDONTWRITEBYTECODE=1 PYTHONWARNINGS=ignore
# Every system gets one thread of numerical libraries; what it starts itself is its own.
export OMP_NUM_THREADS=1
if [[ ${1:-} == --tests ]]; then
    exec "$python" -m pytest -p no:cacheprovider benches/peers/tests "${@:2}"
fi
exec "$python" -m peers "$@"
