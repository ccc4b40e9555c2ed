#!/usr/bin/env bash
# Fetch the reviewed plan: the plan of the last successful plan run for the head of the pull request that this
# commit was merged from. Without such a plan, nothing is applied. A user who can push a branch can make such a run
# store another plan, so apply.sh checks whether the merged manifests produce it.
#
#   GITHUB_SHA, GITHUB_REF_NAME  the commit and its branch; KDECLARE_PLAN_WORKFLOW  the file of the plan workflow
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../settings.sh"

nothing() {
  echo "$1 Nothing is applied." >&2
  exit 1
}

answer=$(gh api "repos/$GITHUB_REPOSITORY/commits/$GITHUB_SHA/pulls")
mapfile -t pull <<< "$(pick "$answer" github-pull "$GITHUB_REF_NAME")"
[ "${#pull[@]}" -eq 3 ] || nothing "$GITHUB_SHA was not merged from a pull request, so there is no reviewed plan."

workflow=${KDECLARE_PLAN_WORKFLOW:-kdeclare-plan.yml}
query="head_sha=${pull[1]}&event=pull_request&status=success&per_page=100"
answer=$(gh api "repos/$GITHUB_REPOSITORY/actions/workflows/$workflow/runs?$query")
fetched=$(mktemp -d)
artifact="kdeclare-plan-$which-${pull[0]}"
for run in $(pick "$answer" github-runs "$GITHUB_REPOSITORY" "${pull[2]}"); do
  if gh run download "$run" --repo "$GITHUB_REPOSITORY" --name "$artifact" --dir "$fetched"; then
    mkdir -p "$(dirname "$plan")"
    mv "$fetched/$(basename "$plan")" "$plan"
    # not shown, because every user who can push a branch could have put any text into it
    echo "Found the plan of #${pull[0]} from run $run for ${pull[1]}."
    exit 0
  fi
done
nothing "No successful run of $workflow for ${pull[1]}, the head of #${pull[0]}, has the artifact $artifact."
