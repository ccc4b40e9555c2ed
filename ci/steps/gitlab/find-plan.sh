#!/usr/bin/env bash
# Fetch the reviewed plan: the plan of the last pipeline of the merge request that this commit was merged from.
# Without such a plan, nothing is applied. apply.sh checks whether the merged manifests produce it.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../settings.sh"
. "$(dirname "${BASH_SOURCE[0]}")/api.sh"

nothing() {
  echo "$1 Nothing is applied." >&2
  exit 1
}

answer=$(api "repository/commits/$CI_COMMIT_SHA/merge_requests?per_page=100")
merged=$(pick "$answer" gitlab-merged "$CI_COMMIT_BRANCH")
[ -n "$merged" ] || nothing "Commit $CI_COMMIT_SHA was not merged from a merge request, so there is no reviewed plan."

answer=$(api "merge_requests/$merged")
pipeline=$(pick "$answer" gitlab-pipeline "$CI_PROJECT_ID")
[ -n "$pipeline" ] || nothing "The last pipeline of !$merged failed, does not belong to it, or is from a fork."

name=${KDECLARE_PLAN_JOB:-kdeclare-plan}
answer=$(api "pipelines/$pipeline/jobs?scope[]=success&per_page=100" --globoff)
job=$(pick "$answer" gitlab-job "$name")
[ -n "$job" ] || nothing "Pipeline $pipeline of !$merged has no successful job '$name'."

api "jobs/$job/artifacts/$plan" --output "$out/fetched.json" \
  || nothing "Job $job of !$merged does not have the artifact $plan, or it has expired."
mv "$out/fetched.json" "$plan"
# not shown, because every user who can push a branch could have put any text into it
echo "Found the plan of !$merged from job $job."
