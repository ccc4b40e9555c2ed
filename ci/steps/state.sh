#!/usr/bin/env bash
# Keep the state on a git branch of its own: "state.sh load" before kdeclare runs, "state.sh save" after it.
# Runners forget everything, and a state that is forgotten makes every saved plan stale.
#
#   KDECLARE_STATE_REMOTE  the repository; KDECLARE_STATE_TOKEN and _USER: how to get in, if it asks
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/settings.sh"

branch=${KDECLARE_STATE_BRANCH:-}
[ -n "$branch" ] || exit 0  # the project says where the state is
remote=${KDECLARE_STATE_REMOTE:?is not set: which repository keeps the state}

log_in_to_git "${KDECLARE_STATE_USER:-x-access-token}" "${KDECLARE_STATE_TOKEN:-}"
export GIT_TERMINAL_PROMPT=0

load() {
  rm -rf "$state"
  git init --quiet "$state"
  printf 'lock\n' > "$state/.git/info/exclude"
  local there
  there=$(git ls-remote --heads "$remote" "refs/heads/$branch")  # fails where nobody answers
  if [ -n "$there" ]; then
    git -C "$state" fetch --quiet --depth 1 "$remote" "refs/heads/$branch"
    git -C "$state" checkout --quiet --detach FETCH_HEAD
    git -C "$state" update-ref refs/saved HEAD
  else
    echo "There is no branch $branch yet: this begins with no state."
  fi
}

save() {
  if [ ! -d "$state/.git" ]; then
    echo "No state was loaded, so there is none to save."
    return
  fi
  tell artifact "kdeclare-state-not-saved-$which"
  git -C "$state" add --all
  if ! git -C "$state" diff --cached --quiet; then
    committing commit --quiet --message "State of $which after ${KDECLARE_REVISION:-a run}"
  fi
  if [ "$(at HEAD)" = "$(at refs/saved)" ]; then
    echo "The state is as it was."
    return
  fi
  push || {
    echo "The state could not be saved on $branch of $remote. It is in $state: keep it." >&2
    exit 1
  }
  git -C "$state" update-ref refs/saved HEAD
}

# Never by force: what somebody else has saved meanwhile must not be lost. Jobs for other environments save on
# the same branch, in folders of their own, so this commit goes on top of theirs.
push() {
  local tried
  for tried in 1 2 3 4 5; do
    git -C "$state" push --quiet "$remote" "HEAD:refs/heads/$branch" && return
    [ "$tried" -lt 5 ] || return 1
    git -C "$state" fetch --quiet "$remote" "refs/heads/$branch" || return 1
    # merge.default: two states of one environment put together line by line would be a third, of nothing
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
