# Functions shared by the scripts of the examples and the demo. Source this file; it needs only bash and coreutils.
#
#   begin REGEX             work on a copy of the example in a temporary folder; existing topics whose
#                           whole name matches are deleted before and after
#   begin_apart             the same for a script that starts its own clusters, and stops them in tidy()
#   step TEXT               print the heading of the next step
#   run CODE COMMAND…       show a command and run it; it must exit with CODE
#   says TEXT…              check that the last output contains each text
#   says_not TEXT…          check that it contains none of the texts
#   in_order TEXT…          check that it contains the texts in this order
#   edit FILE OLD NEW       replace a text in a file
#   kafka-topics, kafka-configs   Kafka's own tools, for changes outside kdeclare
#   kafka-producer-perf-test, kafka-console-consumer   Kafka's own clients
#
# KDECLARE_BOOTSTRAP sets the address of another cluster than the sandbox.

usual_address=127.0.0.1:19092
bootstrap=${KDECLARE_BOOTSTRAP:-$usual_address}
output=

if [[ -t 1 && -z ${NO_COLOR:-} ]]; then bold=$'\e[1;36m' dim=$'\e[1m' plain=$'\e[0m'; else bold= dim= plain=; fi

if ! command -v kdeclare >/dev/null; then # use the environment that "make" created
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
  remove_topics || fail "no cluster responds at $bootstrap. Run: kdeclare sandbox start"
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

# Runs whenever the script ends, and removes everything that the example created. A script whose project has
# more than manifests defines tidy() to remove the rest.
ended() {
  trap - EXIT
  local code=$1
  if declare -F tidy >/dev/null; then tidy || code=1; else empty_project || code=1; fi
  [[ -z $pattern ]] || (( code == 0 )) || remove_topics
  rm -rf "$work"
  (( code )) || printf '\n%sThe example succeeded.%s\n' "$bold" "$plain"
  exit "$code"
}

empty_project() {
  rm -rf manifests && mkdir manifests
  kdeclare apply --yes --quiet --allow-deletes --allow-empty --max-deletes 100% "$@" >"$work/log" || { cat "$work/log" >&2; return 1; }
}

# Delete the topics of the example, whoever created them: import them, adopt them, and remove their manifests.
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
  (( code == expected )) || fail "'$*' exited with $code instead of $expected."
}

says() {
  local text said
  said=$(<"$output")
  for text; do [[ $said == *"$text"* ]] || fail "this text is missing in the output: $text"; done
}

says_not() {
  local text said
  said=$(<"$output")
  for text; do [[ $said != *"$text"* ]] || fail "this text must not be in the output: $text"; done
}

in_order() {
  local text rest
  rest=$(<"$output")
  for text; do
    [[ $rest == *"$text"* ]] || fail "this text is missing, or in the wrong order: $text"
    rest=${rest#*"$text"}
  done
}

edit() {
  local file=$1 old=$2 new=$3 text
  text=$(<"$file")
  [[ $text == *"$old"* ]] || fail "$file does not contain: $old"
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
kafka-producer-perf-test() { kafka_tool org.apache.kafka.tools.ProducerPerformance "$@"; }
kafka-console-consumer() { kafka_tool org.apache.kafka.tools.consumer.ConsoleConsumer "$@"; }

# Uses the jars of the sandbox.
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
