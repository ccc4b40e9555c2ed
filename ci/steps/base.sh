#!/usr/bin/env bash
# Fetch the project file of the target branch of a pull request. Its "references" limit what the manifests of the
# pull request can refer to, whatever the pull request adds to its own project file.
#
#   KDECLARE_BASE         the target branch; if unset, this is not a pull request, and nothing is done
#   KDECLARE_BASE_REMOTE  the repository; KDECLARE_BASE_TOKEN and _USER: the login, if it needs one
#                         (default: those of the state, KDECLARE_STATE_REMOTE and so on)
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/settings.sh"

base=${KDECLARE_BASE:-}
[ -n "$base" ] || exit 0
remote=${KDECLARE_BASE_REMOTE:-${KDECLARE_STATE_REMOTE:?is not set; set it to the repository of the pull request}}
log_in_to_git "${KDECLARE_BASE_USER:-${KDECLARE_STATE_USER:-x-access-token}}" \
  "${KDECLARE_BASE_TOKEN:-${KDECLARE_STATE_TOKEN:-}}"
export GIT_TERMINAL_PROMPT=0

rm -rf "$out/base.git" "$trusted"
git init --quiet --bare "$out/base.git"
if git -C "$out/base.git" fetch --quiet --depth 1 --no-tags "$remote" "refs/heads/$base" &&
  git -C "$out/base.git" show "FETCH_HEAD:${project#./}" > "$trusted"; then
  echo "References are limited to those that the project file on $base allows."
else
  rm -f "$trusted"  # without it, kdeclare resolves none
  echo "The project file on $base cannot be read; no references are resolved." >&2
fi
rm -rf "$out/base.git"
