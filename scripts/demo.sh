#!/usr/bin/env bash
# The whole story on real brokers: plan, apply, drift, a mistake and its rollback; then all is stopped.
#
# It works in build/demo, on a copy of this repository's project, and begins from nothing every time.
#   KDECLARE_DEMO_PORT    where the first broker listens, if 19092 is taken
#   KDECLARE_DEMO_FOLDER  where to work instead; a new or empty folder
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
port=${KDECLARE_DEMO_PORT:-19092}
KDECLARE_BOOTSTRAP=127.0.0.1:$port
source "$root/examples/steps.sh"

work=${KDECLARE_DEMO_FOLDER:-$root/build/demo}
mkdir -p "$work"
cd "$work"
work=$PWD
# What is in the folder will be deleted, so it had better be a demo's.
[[ -e .demo || -z $(ls -A) ]] || fail "$work holds something that is no demo's."
touch .demo
kdeclare sandbox reset --yes --quiet # what an earlier demo may have left
rm -rf ./{kdeclare.yaml,manifests,overlays,state}
cp -R "$root"/{kdeclare.yaml,manifests} .
[[ ! -d $root/overlays ]] || cp -R "$root/overlays" .
edit kdeclare.yaml "127.0.0.1:19092" "127.0.0.1:$port"

# However the demo ends, no broker is left running.
ended() {
  local code=$1
  trap - EXIT
  if (( code )); then
    kdeclare sandbox stop --quiet || true
    printf '\nThe demo failed. The brokers are stopped; their logs are in %s/.sandbox.\n' "$work" >&2
  else
    kdeclare sandbox reset --yes --quiet
    printf '\n%sThat was it, in %s seconds. kdeclare --help says how to go on.%s\n' "$bold" "$SECONDS" "$plain"
  fi
  exit "$code"
}
trap 'ended $?' EXIT

step "Three real Kafka brokers on this machine; the first time, Kafka is downloaded."
run 0 kdeclare sandbox start --port "$port"

step "Are the manifests in order?"
run 0 kdeclare validate
says "Valid:"

step "What would be done? Exit code 2 says that there are changes."
run 2 kdeclare plan --detailed-exitcode
says "5 to create, 2 to change" "+ Topic/orders" "~ BrokerConfig/cluster-default"

step "Do it."
run 0 kdeclare apply --yes
says "5 topics created, 2 resources configured"

step "Now that the topics are there, two partitions can move to where they are wanted."
run 0 kdeclare apply --yes
says "↻ Reassignment/busy-events" "1 reassignment done"

step "Nothing is left to do."
run 0 kdeclare plan --detailed-exitcode
says "No changes."

step "Somebody else changes a topic by hand, with Kafka's own tool."
run 0 kafka-configs --alter --topic orders --add-config retention.ms=3600000

step "The next plan shows it as what it is."
run 2 kdeclare plan --detailed-exitcode
says "~ Topic/orders  changed outside kdeclare" "3600000 (1 h) → 604800000 (7 d)"

step "Apply puts it right."
run 0 kdeclare apply --yes
says "1 of 1 operation done"

step "A mistake, this time in our own files: three zeros too few."
edit kdeclare.yaml "retention: 604800000" "retention: 604800"
run 0 kdeclare apply --yes
says "604800000 (7 d) → 604800"

step "Which run was that?"
run 0 kdeclare history

step "Undo it; a rollback is a plan and a run of its own."
run 0 kdeclare rollback --yes
says "→ 604800000 (7 d)" "Rolled back"

step "The file is put right as well, and all is as it should be."
edit kdeclare.yaml "retention: 604800" "retention: 604800000"
run 0 kdeclare plan --detailed-exitcode
says "No changes."
run 0 kdeclare status
says "All quiet."

step "Stop the brokers."
run 0 kdeclare sandbox stop
says "Stopped."
