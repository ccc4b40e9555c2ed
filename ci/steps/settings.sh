# shellcheck shell=bash disable=SC2034
# What the steps are told, all of it by the environment; sourced by each of them.
#
#   KDECLARE_PROJECT            the project file, from the top of the checkout (default: kdeclare.yaml)
#   KDECLARE_ENV                the environment (default: the project's own default)
#   KDECLARE_CLIENT_PROPERTIES  Kafka client properties: a secret's text; or, in _FILE, the path of one
#   KDECLARE_STATE_BRANCH       the git branch that keeps the state (default: none, the project says where)
#   KDECLARE_OUT                the folder for all that the steps leave (default: .kdeclare)
#   KDECLARE_PLAN_FILE          the saved plan (default: kdeclare.plan.json in that folder)

project=${KDECLARE_PROJECT:-kdeclare.yaml}
environment=${KDECLARE_ENV:-}
out=${KDECLARE_OUT:-.kdeclare}
plan=${KDECLARE_PLAN_FILE:-$out/kdeclare.plan.json}
state=$out/state
mkdir -p "$out"

# One word for this project in this environment: for the comment's marker and the artifact's name.
which=${project%kdeclare.yaml}${environment:-default}
which=${which//[^A-Za-z0-9._-]/-}

setting=(--project "$project")
[ -z "$environment" ] || setting+=(--env "$environment")

reach=("${setting[@]}")
[ -z "${KDECLARE_STATE_BRANCH:-}" ] || reach+=(--state "$state")
properties=${KDECLARE_CLIENT_PROPERTIES_FILE:-}
if [ -n "${KDECLARE_CLIENT_PROPERTIES:-}" ]; then
  properties=$(mktemp)  # for its owner's eyes only
  trap 'rm -f "$properties"' EXIT
  printf '%s\n' "$KDECLARE_CLIENT_PROPERTIES" > "$properties"
fi
[ -z "$properties" ] || reach+=(--command-config "$properties")

# What answer.py picks from an API's answer: pick ANSWER QUESTION [VALUE …]
steps=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
pick() { python3 "$steps/answer.py" "${@:2}" <<< "$1"; }

# Words for other steps: GitHub's way, where there is one.
tell() { printf '%s=%s\n' "$1" "$2" >> "${GITHUB_OUTPUT:-/dev/null}"; }

# A file that people see on the page of the run.
summary() { cat -- "$1" >> "${GITHUB_STEP_SUMMARY:-/dev/null}"; }

# Name the findings for code scanning; wrong usage leaves none.
findings() {
  if [ -s "$out/kdeclare.sarif" ]; then
    tell sarif "$out/kdeclare.sarif"
  else
    rm -f "$out/kdeclare.sarif"
  fi
}
