#!/usr/bin/env bash
# Install kdeclare from the checkout of this file into a virtual environment: install.sh FOLDER
# KDECLARE_EXTRAS: the extras of kdeclare, such as policies,object-storage. Fleets (KDECLARE_FLEET) also get fleet.
set -euo pipefail
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
folder=$1
extras=${KDECLARE_EXTRAS:-policies}${KDECLARE_FLEET:+,fleet}

python3 -m venv "$folder"
"$folder/bin/python" -m pip install --quiet --disable-pip-version-check -c "$top/constraints.txt" "${top}[$extras]"
"$folder/bin/kdeclare" --version
printf '%s\n' "$folder/bin" >> "${GITHUB_PATH:-/dev/null}"
