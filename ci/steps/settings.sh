# shellcheck shell=bash disable=SC2034
# Settings of the steps, from environment variables; each step sources this file.
#
#   KDECLARE_PROJECT            the project file, from the top of the checkout (default: kdeclare.yaml)
#   KDECLARE_ENV                the environment (default: the project's own default)
#   KDECLARE_PLAN_ARGUMENTS     with plan and apply, additional options of "kdeclare plan", one per line
#   KDECLARE_CLIENT_PROPERTIES  Kafka client properties: the text of a secret; or, in _FILE, the path of a file
#   KDECLARE_STATE_BRANCH       the git branch that stores the state (default: none, the project file defines the location)
#   KDECLARE_SIGNING_KEY        with plan, the text of an Ed25519 private key that signs the plan (default: no signature)
#   KDECLARE_OUT                the folder for all files that the steps write (default: .kdeclare)
#   KDECLARE_PLAN_FILE          the saved plan (default: kdeclare.plan.json in that folder)
#   KDECLARE_ISSUES_BY          with audit and a fleet, "team" for one issue per team (default: one issue)
#   KDECLARE_NOTIFY             with audit and a fleet, "true" to send the messages of the fleet file (default: no messages)
#   KDECLARE_BASE               the target branch of a pull request; see base.sh

project=${KDECLARE_PROJECT:-kdeclare.yaml}
environment=${KDECLARE_ENV:-}
out=${KDECLARE_OUT:-.kdeclare}
plan=${KDECLARE_PLAN_FILE:-$out/kdeclare.plan.json}
state=$out/state.git
trusted=$out/trusted.yaml
mkdir -p "$out"

# The log contains text from manifests and pull requests. GitHub runs log lines such as "::add-mask::" as commands,
# except between stop-commands and a random word. Standard error is redirected to standard output, because only the
# lines of a single stream have a defined order.
fence=
if [ "${GITHUB_ACTIONS:-}" = true ] && [ -z "${KDECLARE_FENCED:-}" ]; then
  exec 2>&1
  fence=$(python3 -IS -c 'import secrets; print(secrets.token_hex(16))')
  export KDECLARE_FENCED=1
  printf '::stop-commands::%s\n' "$fence"
fi

# Azure Pipelines runs log lines with "##vso[…]" as commands, and has no way to turn them off.
filter=
if [ "${TF_BUILD:-}" = True ] && [ -z "${KDECLARE_FENCED:-}" ]; then
  export KDECLARE_FENCED=1
  exec > >(sed -u 's/##/# #/g') 2>&1
  filter=$!
fi
written=
finish() {
  [ -z "$written" ] || rm -f "$written"
  [ -z "$fence" ] || printf '\n::%s::\n' "$fence"
  [ -z "$filter" ] || { exec >&- 2>&- && wait "$filter"; }
}
trap finish EXIT

# Run kdeclare without the credentials of the job, which only the steps need, and without the files with which a step
# controls the runner, because manifests can refer to environment variables. A step that sets "writes_state=true" passes
# the login for the state, because kdeclare pushes every change of the state at once.
kdeclare() {
  local name settings=(CI=true) without=()
  for name in GH_TOKEN GH_ENTERPRISE_TOKEN GITHUB_TOKEN GITHUB_ENV GITHUB_OUTPUT GITHUB_PATH GITHUB_STATE \
    GITHUB_STEP_SUMMARY ACTIONS_RUNTIME_TOKEN ACTIONS_ID_TOKEN_REQUEST_TOKEN ACTIONS_ID_TOKEN_REQUEST_URL \
    CI_JOB_TOKEN CI_JOB_JWT CI_JOB_JWT_V1 CI_JOB_JWT_V2 CI_REPOSITORY_URL CI_REGISTRY_PASSWORD \
    CI_DEPLOY_PASSWORD CI_DEPENDENCY_PROXY_PASSWORD KDECLARE_GITLAB_TOKEN KDECLARE_STATE_TOKEN \
    SYSTEM_ACCESSTOKEN KDECLARE_AZURE_TOKEN KDECLARE_PLANS_TOKEN KDECLARE_BASE_TOKEN KDECLARE_CLIENT_PROPERTIES KDECLARE_CLIENT_PROPERTIES_FILE; do
    [ "$name" = "$login" ] || without+=(-u "$name")
  done
  [ -z "${KDECLARE_BASE:-}" ] || settings+=("KDECLARE_TRUSTED_PROJECT=$trusted")
  env "${without[@]}" "${settings[@]}" kdeclare "$@"
}

# Configure git's login: log_in_to_git USER TOKEN. Uses the environment, because every user can read command lines.
log_in_to_git() {
  local basic
  [ -n "$2" ] || return 0
  basic=$(printf '%s:%s' "$1" "$2" | base64 | tr -d '\n')
  export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=http.extraHeader
  export GIT_CONFIG_VALUE_0="Authorization: Basic $basic"
}

steps=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

# Join several texts into one unambiguous word, for markers and names of artifacts.
word() { python3 -IS "$steps/word.py" "$@"; }

# A word for this project and environment, and the words for the subject of an audit.
which=$(word "${project%kdeclare.yaml}" "${environment:-default}")
audited=$which
[ -z "${KDECLARE_FLEET:-}" ] || audited="fleet $(word "$KDECLARE_FLEET")"

setting=(--project "$project")
[ -z "$environment" ] || setting+=(--env "$environment")

# Print the location of a state on a branch: locate_state REPOSITORY BRANCH, with a URL, a path, or USER@HOST:PATH
locate_state() {
  case $1 in
    *://*) printf 'git+%s?branch=%s' "$1" "$2" ;;
    /*) printf 'git+file://%s?branch=%s' "$1" "$2" ;;
    *:*) printf 'git+ssh://%s/%s?branch=%s' "${1%%:*}" "${1#*:}" "$2" ;;
    *) printf 'git+file://%s/%s?branch=%s' "$PWD" "$1" "$2" ;;
  esac
}

# The options for all commands that connect to the cluster.
login=
reach=("${setting[@]}")
if [ -n "${KDECLARE_STATE_BRANCH:-}" ] && [ "${writes_state:-}" = true ]; then
  login=KDECLARE_STATE_TOKEN
  stored=${KDECLARE_STATE_REMOTE:?is not set; set it to the repository that stores the state}
  reach+=(--state "$(locate_state "$stored" "$KDECLARE_STATE_BRANCH")")
elif [ -n "${KDECLARE_STATE_BRANCH:-}" ]; then
  reach+=(--state "$(locate_state "$state" "$KDECLARE_STATE_BRANCH")")  # the copy that state.sh made
fi
properties=${KDECLARE_CLIENT_PROPERTIES_FILE:-}
if [ -n "${KDECLARE_CLIENT_PROPERTIES:-}" ]; then
  properties=$(mktemp)  # readable only by its owner
  written=$properties
  printf '%s\n' "$KDECLARE_CLIENT_PROPERTIES" > "$properties"
fi
[ -z "$properties" ] || reach+=(--command-config "$properties")

mapfile -t arguments < <(grep -v '^[[:space:]]*$' <<< "${KDECLARE_PLAN_ARGUMENTS:-}" || true)

# Extract values from an API response with answer.py: pick ANSWER QUESTION [VALUE …]
pick() { python3 -IS "$steps/answer.py" "${@:2}" <<< "$1"; }

# Decide about the issues of an audit with issues.py: plan_issues SERVICE AUTHOR, with the open issues on stdin.
plan_issues() {
  python3 -IS "$steps/issues.py" "$1" "$out" "kdeclare audit $audited" \
    "Kafka differs from its manifests: ${KDECLARE_FLEET:-$which}" "$2"
}

# The effect of a merge on the plan, for the end of a comment: a failed job leaves no plan to apply.
promise() {
  if [ "$(cat "$out/exit-code")" = 0 ]; then
    echo "if you merge, exactly this plan is applied"
  else
    echo "nothing is applied until this check passes"
  fi
}

# Set an output for other steps, on GitHub: tell NAME VALUE
tell() {
  case $2 in
    *$'\n'* | *$'\r'*)
      echo "The value of $1 must not have more than one line." >&2
      exit 64
      ;;
  esac
  printf '%s=%s\n' "$1" "$2" >> "${GITHUB_OUTPUT:-/dev/null}"
}

# Show a file on the page of the run.
summary() { cat -- "$1" >> "${GITHUB_STEP_SUMMARY:-/dev/null}"; }

# Set the output for code scanning; after a usage error there are no findings.
findings() {
  if [ -s "$out/kdeclare.sarif" ]; then
    tell sarif "$out/kdeclare.sarif"
  else
    rm -f "$out/kdeclare.sarif"
  fi
}
