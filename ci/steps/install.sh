#!/usr/bin/env bash
# kdeclare from the checkout that this file is in, in a virtual environment of its own: install.sh FOLDER
set -euo pipefail
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
folder=$1

python3 -m venv "$folder"
"$folder/bin/python" -m pip install --quiet --disable-pip-version-check -c "$top/constraints.txt" "$top"
"$folder/bin/kdeclare" --version
printf '%s\n' "$folder/bin" >> "${GITHUB_PATH:-/dev/null}"
