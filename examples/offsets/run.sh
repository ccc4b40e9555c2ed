#!/usr/bin/env bash
# Let a consumer group read records again, skip records, and undo both.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../steps.sh"
begin 'offsets\..*'
group=offsets-billing

tidy() {
  if kdeclare group list --format names | grep -qx "$group"; then
    kdeclare group delete "$group" --yes --quiet
  fi
  empty_project
}
consume() { kafka-console-consumer --topic offsets.orders --group "$group" --timeout-ms 15000 --max-messages "$1" "${@:2}"; }

step "Create a topic, produce 100 records, and consume them in a group."
run 0 kdeclare apply --yes
run 0 kafka-producer-perf-test --topic offsets.orders --num-records 100 --record-size 10 --throughput -1
run 0 consume 100 --command-property auto.offset.reset=earliest
run 0 kdeclare group describe "$group"
says "offsets.orders" "lag of 0 records"

step "See what a reset would change. Nothing changes yet."
run 0 kdeclare group reset-offsets "$group" --topic offsets.orders --shift-by -40 --dry-run
says "offsets.offsets.orders-0  100 → 60" "40 records read again"
run 0 kdeclare group describe "$group" --summary
says "lag of 0 records"

step "Save the offsets, and reset them. The group reads 40 records again."
kdeclare group reset-offsets "$group" --all-topics --to-current --export >saved.csv
run 0 cat saved.csv
says "offsets.orders,0,100"
run 0 kdeclare group reset-offsets "$group" --topic offsets.orders --shift-by -40 --yes
run 0 kdeclare group describe "$group" --summary
says "lag of 40 records"
run 0 consume 10
says "Processed a total of 10 messages"

step "A rollback keeps offsets that the group has committed since the reset."
run 5 kdeclare rollback --yes
says "was changed after the run"
run 0 kdeclare group reset-offsets "$group" --topic offsets.orders --to-earliest --yes
run 0 kdeclare rollback --yes
run 0 kdeclare group describe "$group" --summary
says "lag of 30 records"

step "Load the saved offsets."
run 0 kdeclare group reset-offsets "$group" --topic offsets.orders --to-offset 7 --yes
run 0 kdeclare group reset-offsets "$group" --from-file saved.csv --yes
run 0 kdeclare group describe "$group" --summary
says "lag of 0 records"

step "Delete the offsets of the topic, and restore them."
run 0 kdeclare group delete-offsets "$group" --topic offsets.orders --yes
says "auto.offset.reset"
run 0 kdeclare group describe "$group"
says "no committed offsets"
run 0 kdeclare rollback --yes

step "Delete the group, and restore it."
run 0 kdeclare group delete "$group" --yes
run 1 kdeclare group describe "$group"
says "There is no group"
run 0 kdeclare rollback --yes
run 0 kdeclare group describe "$group" --summary
says "lag of 0 records"

step "Mistakes are found before anything changes."
run 1 kdeclare group reset-offsets "$group" --topic offsets.orders:7 --to-earliest --yes
says "has no partition 7"
