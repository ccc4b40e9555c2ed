# shellcheck shell=bash disable=SC2034
# What the steps are told, all of it by the environment; sourced by each of them.
#
#   KDECLARE_PROJECT            the project file, from the top of the checkout (default: kdeclare.yaml)
#   KDECLARE_ENV                the environment (default: the project's own default)
#   KDECLARE_PLAN_ARGUMENTS     with plan and apply, more options of "kdeclare plan", one a line
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

steps=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

# One word for several texts, in which no other texts end up: for markers and names of artifacts.
word() { python3 "$steps/word.py" "$@"; }

# One word for this project in this environment, and the words for what an audit looks at.
which=$(word "${project%kdeclare.yaml}" "${environment:-default}")
audited=$which
[ -z "${KDECLARE_FLEET:-}" ] || audited="fleet $(word "$KDECLARE_FLEET")"

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

mapfile -t arguments < <(grep -v '^[[:space:]]*$' <<< "${KDECLARE_PLAN_ARGUMENTS:-}" || true)

# What answer.py picks from an API's answer: pick ANSWER QUESTION [VALUE …]
pick() { python3 "$steps/answer.py" "${@:2}" <<< "$1"; }

# What merging does with the plan, for the foot of a comment: a job that fails leaves none to be applied.
promise() {
  if [ "$(cat "$out/exit-code")" = 0 ]; then
    echo "merged, exactly this plan is applied"
  else
    echo "nothing is applied until this check passes"
  fi
}

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
