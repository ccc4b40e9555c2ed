#!/usr/bin/env bash
# Exit with kdeclare's exit code, after the comment was written.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/settings.sh"

code=$(cat "$out/exit-code" 2> /dev/null) || {
  echo "kdeclare was not run." >&2
  exit 1
}
[[ "$code" =~ ^[0-9]{1,3}$ ]] || {
  echo "The exit code of kdeclare was not recorded." >&2
  exit 1
}
tell exit-code "$code"
exit "$code"
