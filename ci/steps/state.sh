#!/usr/bin/env bash
# Store the state on a separate git branch: "state.sh load" before kdeclare runs, "state.sh save" after it.
# Runners are discarded after a job, and without the state every saved plan is stale.
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
  git init --quiet "$state"
  printf 'lock\n' > "$state/.git/info/exclude"
  local there
  there=$(git ls-remote --heads "$remote" "refs/heads/$branch")  # fails if the repository does not respond
  if [ -n "$there" ]; then
    git -C "$state" fetch --quiet --depth 1 "$remote" "refs/heads/$branch"
    git -C "$state" checkout --quiet --detach FETCH_HEAD
    git -C "$state" update-ref refs/saved HEAD
  else
    echo "Branch $branch does not exist yet; starting with an empty state."
  fi
}

save() {
  if [ ! -d "$state/.git" ]; then
    echo "No state was loaded, so no state is saved."
    return
  fi
  tell artifact "kdeclare-state-not-saved-$which"
  git -C "$state" add --all
  if ! git -C "$state" diff --cached --quiet; then
    committing commit --quiet --message "State of $which after ${KDECLARE_REVISION:-a run}"
  fi
  if [ "$(at HEAD)" = "$(at refs/saved)" ]; then
    echo "The state has not changed."
    return
  fi
  push || {
    echo "The state could not be saved on $branch of $remote. Keep its copy in $state." >&2
    exit 1
  }
  git -C "$state" update-ref refs/saved HEAD
}

# Never push with force: a state that another job has saved in the meantime must not be lost. Jobs for other
# environments save to separate folders of the same branch, so this commit is rebased onto theirs.
push() {
  local tried
  for tried in 1 2 3 4 5; do
    git -C "$state" push --quiet "$remote" "HEAD:refs/heads/$branch" && return
    [ "$tried" -lt 5 ] || return 1
    git -C "$state" fetch --quiet "$remote" "refs/heads/$branch" || return 1
    # merge.default: merging two states of one environment line by line would produce an invalid state
    committing -c merge.default=binary -c merge.renames=false rebase --quiet FETCH_HEAD || {
      git -C "$state" rebase --abort
      return 1
    }
    sleep "$((RANDOM % tried)).$((RANDOM % 10))"
  done
}

committing() { git -C "$state" -c user.name=kdeclare -c user.email=kdeclare@localhost "$@"; }

at() { git -C "$state" rev-parse --quiet --verify "$1" || true; }

case ${1:-} in
  load) load ;;
  save) save ;;
  *)
    echo "usage: state.sh load|save" >&2
    exit 64
    ;;
esac
