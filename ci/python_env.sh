#!/usr/bin/env bash
# Print the path of a Python interpreter that has what is listed in the given requirements files.
#
#   ci/python_env.sh requirements-test.txt [MORE.txt ...]     an environment with these packages
#   ci/python_env.sh --find                                   only a Python that is new enough, no packages
#
# Nothing but the path goes to stdout. PYTHON=... chooses the interpreter that the environment is made from.
# The work is done by ci/python_env.py, which any Python can run; this script only finds one that is new enough.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

# Ask each candidate itself: a name on PATH may be a shim for a version that is not there.
is_new_enough() {
    "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' </dev/null >/dev/null 2>&1
}

python=
if [[ -n ${PYTHON:-} ]]; then
    if ! is_new_enough "$PYTHON"; then
        echo "python_env: PYTHON=$PYTHON does not run, or is older than 3.11" >&2
        exit 2
    fi
    python=$PYTHON
else
    # 3.11 first: it is the oldest that is supported, so what passes there passes later.
    for candidate in python3.11 python3 python3.12 python3.13 python3.14 python; do
        if is_new_enough "$candidate"; then
            python=$candidate
            break
        fi
    done
fi
if [[ -z $python ]]; then
    echo "python_env: no Python 3.11 or newer on PATH: install one, or set PYTHON=/path/to/python3" >&2
    exit 2
fi

if [[ ${1:-} == --find ]]; then
    exec "$python" -c 'import sys; print(sys.executable)'
fi
exec "$python" "$here/python_env.py" "$@"
