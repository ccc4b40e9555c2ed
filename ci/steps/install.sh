#!/usr/bin/env bash
# Install kdeclare from the checkout of this file into a virtual environment: install.sh FOLDER
set -euo pipefail
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
folder=$1

python3 -m venv "$folder"
"$folder/bin/python" -m pip install --quiet --disable-pip-version-check -c "$top/constraints.txt" "$top"
"$folder/bin/kdeclare" --version
printf '%s\n' "$folder/bin" >> "${GITHUB_PATH:-/dev/null}"
