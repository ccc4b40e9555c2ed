#!/usr/bin/env bash
# Keep reviewed plans on a branch of the repository, for CI systems without artifacts that another job can fetch:
# "stored-plan.sh save" after plan.sh, and "stored-plan.sh load" before apply.sh.
#
# A plan is stored under the git tree that it was made from. If a pull request is up to date with its target branch, the
# merge has the same tree, whether it is a merge commit, a squash or a rebase. Every user who can push can store another
# plan, so apply.sh checks whether the merged manifests produce it.
#
#   KDECLARE_PLANS_BRANCH  the branch (default: kdeclare-plans); the last 100 plans of each environment are kept
#   KDECLARE_PLANS_REMOTE  the repository; KDECLARE_PLANS_TOKEN and _USER: the login, if it needs one
#                          (default: those of the state, KDECLARE_STATE_REMOTE and so on)
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/settings.sh"

branch=${KDECLARE_PLANS_BRANCH:-kdeclare-plans}
remote=${KDECLARE_PLANS_REMOTE:-${KDECLARE_STATE_REMOTE:?is not set; set it to the repository that stores the plans}}
tree=$(git rev-parse 'HEAD^{tree}')
log_in_to_git "${KDECLARE_PLANS_USER:-${KDECLARE_STATE_USER:-x-access-token}}" \
  "${KDECLARE_PLANS_TOKEN:-${KDECLARE_STATE_TOKEN:-}}"
export GIT_TERMINAL_PROMPT=0
export GIT_AUTHOR_NAME=kdeclare GIT_AUTHOR_EMAIL=kdeclare@localhost
export GIT_COMMITTER_NAME=kdeclare GIT_COMMITTER_EMAIL=kdeclare@localhost

plans=$out/plans.git
rm -rf "$plans"
git init --quiet --bare "$plans"
store() { git -C "$plans" "$@"; }

# Fetch the branch. Print its commit, or nothing if it does not exist yet.
fetch_branch() {
  local there
  there=$(git ls-remote --heads "$remote" "refs/heads/$branch")  # fails if the repository does not respond
  [ -n "$there" ] || return 0
  store fetch --quiet --depth 1 --no-tags "$remote" "refs/heads/$branch"
  store rev-parse FETCH_HEAD
}

# Commit the plan on top of a commit, without plans that are too old. Print the new commit.
commit_plan() {
  local blob parents=()
  export GIT_INDEX_FILE=kdeclare-index
  set -e  # command substitution turns it off
  if [ -n "$1" ]; then
    parents=(-p "$1")
    store read-tree "$1"
    # mode 0 removes a path
    store ls-tree -r --name-only "$1" -- "$which/" | head -n -99 | sed "s/^/0 $(printf '%040d' 0)\t/" |
      store update-index --index-info
  else
    store read-tree --empty
  fi
  blob=$(store hash-object -w --stdin < "$plan")
  store update-index --add --cacheinfo "100644,$blob,$which/$(date -u +%Y%m%dT%H%M%SZ)-$tree.json"
  store commit-tree "$(store write-tree)" "${parents[@]}" -m "Store the plan of $tree" -m "[skip ci]"
}

save() {
  local attempt base commit
  if [ "$(cat "$out/exit-code")" != 0 ]; then
    echo "The plan has errors or denials, so it is not stored."
    return
  fi
  for attempt in 1 2 3 4 5 6 7 8; do
    base=$(fetch_branch)
    commit=$(commit_plan "$base")
    if store push --quiet "$remote" "$commit:refs/heads/$branch"; then
      echo "Stored the plan of tree $tree on branch $branch."
      return
    fi
    sleep "$attempt"  # another job has pushed
  done
  echo "The plan could not be stored on branch $branch." >&2
  return 1
}

load() {
  local base file=
  base=$(fetch_branch)
  [ -z "$base" ] || file=$(store ls-tree -r --name-only "$base" -- "$which/" | grep -F -- "-$tree.json" | tail -n 1 || true)
  if [ -z "$file" ]; then
    echo "Branch $branch has no plan for $which and tree $tree. The pull request was not planned, its plan failed, or the" \
      "target branch had other commits when it was merged. Nothing is applied." >&2
    return 1
  fi
  mkdir -p "$(dirname "$plan")"
  store show "$base:$file" > "$plan"
  # not shown, because every user who can push could have put any text into it
  echo "Found the plan of tree $tree."
}

case ${1:-} in
  save) save ;;
  load) load ;;
  *)
    echo "usage: stored-plan.sh save|load" >&2
    exit 64
    ;;
esac
