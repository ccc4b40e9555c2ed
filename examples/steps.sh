# What the scripts of the examples and the demo share. To be sourced; needs bash and coreutils only.
#
#   begin REGEX             work on a copy of the example, in a folder that is gone afterwards; topics
#                           whose whole name matches are deleted before, should there be any, and after
#   begin_apart             the same for a script that starts clusters of its own, and ends them in tidy()
#   step TEXT               say what comes next
#   run CODE COMMAND…       show a command and run it; it must exit with CODE
#   says TEXT…              the last command must have said all of this …
#   says_not TEXT…          … and nothing of this
#   in_order TEXT…          … and this in that order
#   edit FILE OLD NEW       replace a text in a file, as one would with an editor
#   kafka-topics, kafka-configs   Kafka's own tools, for what somebody else does by hand
#
# KDECLARE_BOOTSTRAP names another cluster than the sandbox's usual address.

usual_address=127.0.0.1:19092
bootstrap=${KDECLARE_BOOTSTRAP:-$usual_address}
output=

if [[ -t 1 && -z ${NO_COLOR:-} ]]; then bold=$'\e[1;36m' dim=$'\e[1m' plain=$'\e[0m'; else bold= dim= plain=; fi

if ! command -v kdeclare >/dev/null; then # the environment that "make" has made
  PATH=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)/.venv/bin:$PATH
  command -v kdeclare >/dev/null || { echo "kdeclare is not installed, or not on the PATH." >&2; exit 1; }
fi

fail() {
  printf '\nFAILED: %s\n' "$*" >&2
  exit 1
}

begin() {
  pattern=$1
  copy_of "$(dirname "${BASH_SOURCE[1]}")"
  [[ $bootstrap == "$usual_address" ]] || edit kdeclare.yaml "$usual_address" "$bootstrap"
  remove_topics || fail "there is no cluster at $bootstrap to try things on (kdeclare sandbox start)."
  trap 'ended $?' EXIT
}

begin_apart() {
  pattern=
  copy_of "$(dirname "${BASH_SOURCE[1]}")"
  trap 'ended $?' EXIT
}

copy_of() {
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  cp -R "$1" "$work/project"
  rm -rf "$work"/project/{state,.sandbox,plans,snapshots,audits,run.sh}
  cd "$work/project"
}

# Runs however the script ends: what the example made goes again. A script whose project is more than
# manifests says in tidy() how to empty it.
ended() {
  trap - EXIT
  local code=$1
  if declare -F tidy >/dev/null; then tidy || code=1; else empty_project || code=1; fi
  [[ -z $pattern ]] || (( code == 0 )) || remove_topics
  rm -rf "$work"
  (( code )) || printf '\n%sThe example went as it should.%s\n' "$bold" "$plain"
  exit "$code"
}

empty_project() {
  rm -rf manifests && mkdir manifests
  kdeclare apply --yes --quiet --allow-deletes --allow-empty --max-deletes 100% "$@" >"$work/log" || { cat "$work/log" >&2; return 1; }
}

# The example's topics, whoever made them: imported, taken into ownership, and then declared no longer.
remove_topics() (
  rm -rf "$work/remove" && mkdir "$work/remove" && cd "$work/remove"
  printf '%s\n' 'apiVersion: kdeclare/v1' 'kind: Project' 'metadata: {name: remove}' \
    'spec:' '  environments:' "    here: {bootstrapServers: '$bootstrap'}" >kdeclare.yaml
  kdeclare import --match "$pattern" --out manifests --quiet || exit
  [[ -d manifests ]] || exit 0
  kdeclare apply --yes --quiet >log && rm -r manifests &&
    kdeclare apply --yes --quiet --allow-deletes --allow-empty --max-deletes 100% >log ||
    { cat log >&2; exit 1; }
)

step() {
  printf '\n%s▸ %s%s\n' "$bold" "$*" "$plain"
}

run() {
  local expected=$1 code=0
  shift
  printf '%s$%s%s\n' "$dim" "$(typed "$@")" "$plain"
  output=$work/output
  "$@" 2>&1 </dev/null | tee "$output" || code=${PIPESTATUS[0]}
  (( code == expected )) || fail "'$*' exited with $code, and not with $expected."
}

says() {
  local text said
  said=$(<"$output")
  for text; do [[ $said == *"$text"* ]] || fail "this should have been said: $text"; done
}

says_not() {
  local text said
  said=$(<"$output")
  for text; do [[ $said != *"$text"* ]] || fail "this should not have been said: $text"; done
}

in_order() {
  local text rest
  rest=$(<"$output")
  for text; do
    [[ $rest == *"$text"* ]] || fail "this should have come next: $text"
    rest=${rest#*"$text"}
  done
}

edit() {
  local file=$1 old=$2 new=$3 text
  text=$(<"$file")
  [[ $text == *"$old"* ]] || fail "$file does not hold this: $old"
  printf '%s\n' "${text//"$old"/$new}" >"$file"
}

typed() {
  local word
  for word; do
    if [[ $word =~ ^[a-zA-Z0-9_./:=,+-]+$ ]]; then printf ' %s' "$word"; else printf ' %s' "${word@Q}"; fi
  done
}

kafka-topics() { kafka_tool org.apache.kafka.tools.TopicCommand "$@"; }
kafka-configs() { kafka_tool kafka.admin.ConfigCommand "$@"; }

# The jars are those that the sandbox runs with.
kafka_tool() {
  "$(dirname "$(command -v kdeclare)")/python" - "$@" --bootstrap-server "$bootstrap" <<'PYTHON'
import sys

from kdeclare.sandbox import run_kafka_tool

done = run_kafka_tool(*sys.argv[1:])
print(done.stdout, end="")
print(done.stderr, end="", file=sys.stderr)
sys.exit(done.returncode)
PYTHON
}
