#!/usr/bin/env bash
# Validate the manifests without a cluster and without any secret, also for pull requests from forks.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/settings.sh"

code=0
kdeclare validate "${setting[@]}" || code=$?
kdeclare validate "${setting[@]}" --format sarif > "$out/kdeclare.sarif" || true
findings
printf '%s\n' "$code" > "$out/exit-code"
