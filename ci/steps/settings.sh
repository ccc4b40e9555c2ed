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
#   KDECLARE_BASE               the branch that a pull request is to be merged to; see base.sh

project=${KDECLARE_PROJECT:-kdeclare.yaml}
environment=${KDECLARE_ENV:-}
out=${KDECLARE_OUT:-.kdeclare}
plan=${KDECLARE_PLAN_FILE:-$out/kdeclare.plan.json}
state=$out/state
trusted=$out/trusted.yaml
mkdir -p "$out"

# The log holds text from manifests and pull requests. GitHub runs log lines such as "::add-mask::" as commands,
# except between stop-commands and a word that cannot be guessed. Standard error joins standard output, because
# only the lines of one stream have a certain order.
fence=
if [ "${GITHUB_ACTIONS:-}" = true ] && [ -z "${KDECLARE_FENCED:-}" ]; then
  exec 2>&1
  fence=$(python3 -c 'import secrets; print(secrets.token_hex(16))')
  export KDECLARE_FENCED=1
  printf '::stop-commands::%s\n' "$fence"
fi
written=
finish() {
  [ -z "$written" ] || rm -f "$written"
  [ -z "$fence" ] || printf '\n::%s::\n' "$fence"
}
trap finish EXIT

# Run kdeclare without the credentials of the job, which only the steps need, and without the files by which a step
# controls the runner: manifests can refer to environment variables.
kdeclare() {
  local name settings=(CI=true) without=()
  for name in GH_TOKEN GH_ENTERPRISE_TOKEN GITHUB_TOKEN GITHUB_ENV GITHUB_OUTPUT GITHUB_PATH GITHUB_STATE \
    GITHUB_STEP_SUMMARY ACTIONS_RUNTIME_TOKEN ACTIONS_ID_TOKEN_REQUEST_TOKEN ACTIONS_ID_TOKEN_REQUEST_URL \
    CI_JOB_TOKEN CI_JOB_JWT CI_JOB_JWT_V1 CI_JOB_JWT_V2 CI_REPOSITORY_URL CI_REGISTRY_PASSWORD \
    CI_DEPLOY_PASSWORD CI_DEPENDENCY_PROXY_PASSWORD KDECLARE_GITLAB_TOKEN KDECLARE_STATE_TOKEN \
    KDECLARE_BASE_TOKEN KDECLARE_CLIENT_PROPERTIES KDECLARE_CLIENT_PROPERTIES_FILE; do
    without+=(-u "$name")
  done
  [ -z "${KDECLARE_BASE:-}" ] || settings+=("KDECLARE_TRUSTED_PROJECT=$trusted")
  env "${without[@]}" "${settings[@]}" kdeclare "$@"
}

# Have git log in: log_in_to_git USER TOKEN. By the environment, because every user of a machine can read command lines.
log_in_to_git() {
  local basic
  [ -n "$2" ] || return 0
  basic=$(printf '%s:%s' "$1" "$2" | base64 | tr -d '\n')
  export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=http.extraHeader
  export GIT_CONFIG_VALUE_0="Authorization: Basic $basic"
}

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
  written=$properties
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
tell() {
  case $2 in
    *$'\n'* | *$'\r'*)
      echo "The value of $1 has more than one line." >&2
      exit 64
      ;;
  esac
  printf '%s=%s\n' "$1" "$2" >> "${GITHUB_OUTPUT:-/dev/null}"
}

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
