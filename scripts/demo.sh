#!/usr/bin/env bash
# A demo on real brokers: plan, apply, drift, a mistake and its rollback; then the brokers are stopped.
#
# It works in build/demo, on a copy of this repository's project, and starts from an empty cluster every time.
#   KDECLARE_DEMO_PORT    the port of the first broker, if 19092 is in use
#   KDECLARE_DEMO_FOLDER  another working folder; must be new or empty
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
port=${KDECLARE_DEMO_PORT:-19092}
KDECLARE_BOOTSTRAP=127.0.0.1:$port
source "$root/examples/steps.sh"

work=${KDECLARE_DEMO_FOLDER:-$root/build/demo}
mkdir -p "$work"
cd "$work"
work=$PWD
# The content of the folder will be deleted, so it must be from an earlier demo.
[[ -e .demo || -z $(ls -A) ]] || fail "$work contains files that are not from a demo."
touch .demo
kdeclare sandbox reset --yes --quiet # remove the cluster of an earlier demo
rm -rf ./{kdeclare.yaml,manifests,overlays,state}
cp -R "$root"/{kdeclare.yaml,manifests} .
[[ ! -d $root/overlays ]] || cp -R "$root/overlays" .
edit kdeclare.yaml "127.0.0.1:19092" "127.0.0.1:$port"

# Stop the brokers, however the demo ends.
ended() {
  local code=$1
  trap - EXIT
  if (( code )); then
    kdeclare sandbox stop --quiet || true
    printf '\nThe demo failed. The brokers are stopped; their logs are in %s/.sandbox.\n' "$work" >&2
  else
    kdeclare sandbox reset --yes --quiet
    printf '\n%sThe demo finished in %s seconds. See kdeclare --help for the next steps.%s\n' "$bold" "$SECONDS" "$plain"
  fi
  exit "$code"
}
trap 'ended $?' EXIT

step "Start three real Kafka brokers on this machine. The first start downloads Kafka."
run 0 kdeclare sandbox start --port "$port"

step "Validate the manifests."
run 0 kdeclare validate
says "Valid:"

step "Show the plan. Exit code 2 means that there are changes."
run 2 kdeclare plan --detailed-exitcode
says "5 to create, 2 to change" "+ Topic/orders" "~ BrokerConfig/cluster-default"

step "Apply it."
run 0 kdeclare apply --yes
says "5 topics created, 2 resources configured"

step "The topics exist now, so two partitions can be moved to their declared brokers."
run 0 kdeclare apply --yes
says "↻ Reassignment/busy-events" "1 reassignment done"

step "Nothing is left to do."
run 0 kdeclare plan --detailed-exitcode
says "No changes."

step "Change a topic outside kdeclare, with Kafka's own tool."
run 0 kafka-configs --alter --topic orders --add-config retention.ms=3600000

step "The next plan shows the drift."
run 2 kdeclare plan --detailed-exitcode
says "~ Topic/orders  changed outside kdeclare" "3600000 (1 h) → 604800000 (7 d)"

step "Apply restores the declared value."
run 0 kdeclare apply --yes
says "1 of 1 operation done"

step "Make a mistake in the project file: three zeros are missing."
edit kdeclare.yaml "retention: 604800000" "retention: 604800"
run 0 kdeclare apply --yes
says "604800000 (7 d) → 604800"

step "Find the run."
run 0 kdeclare history

step "Roll it back; a rollback has its own plan and run."
run 0 kdeclare rollback --yes
says "→ 604800000 (7 d)" "Rolled back"

step "Correct the file as well; nothing is left to do."
edit kdeclare.yaml "retention: 604800" "retention: 604800000"
run 0 kdeclare plan --detailed-exitcode
says "No changes."
run 0 kdeclare status
says "Idle."

step "Stop the brokers."
run 0 kdeclare sandbox stop
says "Stopped."
