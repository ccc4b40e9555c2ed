#!/usr/bin/env bash
# Copy the branch that stores the state, so that kdeclare can read the state without the credentials of the job:
# "state.sh load" before kdeclare plans. kdeclare itself writes the state, in apply.sh.
#
#   KDECLARE_STATE_REMOTE  the repository; KDECLARE_STATE_TOKEN and _USER: the login, if it needs one
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/settings.sh"

branch=${KDECLARE_STATE_BRANCH:-}
[ -n "$branch" ] || exit 0  # the project file defines where the state is
remote=${KDECLARE_STATE_REMOTE:?is not set; set it to the repository that stores the state}

log_in_to_git "${KDECLARE_STATE_USER:-x-access-token}" "${KDECLARE_STATE_TOKEN:-}"
export GIT_TERMINAL_PROMPT=0

load() {
  rm -rf "$state"
  git init --quiet --bare "$state"
  local there
  there=$(git ls-remote --heads "$remote" "refs/heads/$branch")  # fails if the repository does not respond
  if [ -n "$there" ]; then
    git -C "$state" fetch --quiet --depth 1 --no-tags "$remote" "refs/heads/$branch:refs/heads/$branch"
  else
    echo "Branch $branch does not exist yet; starting with an empty state."
  fi
}

case ${1:-} in
  load) load ;;
  save) echo "kdeclare has saved the state itself." ;;  # workflows that were copied from version 0.1 call this
  *)
    echo "usage: state.sh load" >&2
    exit 64
    ;;
esac
