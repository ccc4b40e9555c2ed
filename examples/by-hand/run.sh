#!/usr/bin/env bash
# Change topics and configs ad hoc, with plan, history and rollback, and update the manifest of a declared topic.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../steps.sh"
begin 'by-hand\..*'

step "Create a topic without a manifest. The options are those of Kafka's own tool."
run 0 kdeclare topic create by-hand.clicks --partitions 3 --replication-factor 2 --config retention.ms=1000 --yes
says "1 to create" "✓ Topic/by-hand.clicks  created; 3 partitions × 2 replicas"

step "Add a replica: kdeclare moves as few replicas as possible, and no other replication factor changes."
run 0 kdeclare topic alter by-hand.clicks --replication-factor 3 --yes
says "2 → 3" "✓ Topic/by-hand.clicks  altered; 3 partitions × 3 replicas"

step "Roll the change back."
run 0 kdeclare rollback --yes
says "Rolled back" "1 reassignment done"

step "Alter several topics at once. One of them does not exist; the others are altered."
run 5 kdeclare topic alter by-hand.clicks by-hand.clocks --partitions 4 --yes
says "There is no topic 'by-hand.clocks'." "Did you mean 'by-hand.clicks'?" "✓ Topic/by-hand.clicks  altered"

step "Apply a declared topic …"
run 0 kdeclare apply --yes
says "1 topic created"

step "… and change it ad hoc: kdeclare warns that a manifest declares it."
run 0 kdeclare config alter --topic by-hand.orders --add-config retention.ms=3600000 --yes
says "retention.ms of Topic/by-hand.orders is declared in a manifest" "manifests/orders.yaml:10:"

step "The next apply would revert the change."
run 0 kdeclare plan
says "changed outside kdeclare" "3600000 (1 h) → 604800000 (7 d)"

step "Change it again, and write the change to the manifest. Its comments stay."
run 0 kdeclare config alter --topic by-hand.orders --add-config retention.ms=7200000 --write-manifest --yes
says "-    retention.ms: 604800000   # a week" "+    retention.ms: 7200000   # a week" "Written: manifests/orders.yaml"
run 0 kdeclare plan --detailed-exitcode
says "No changes."

step "The shell runs the same commands one after another; a script stops at the first command that fails."
printf '%s\n' '# list the topics, then change one' 'topic list "by-hand\..*"' \
  'config alter --topic by-hand.clicks --append-config cleanup.policy=compact --yes' \
  'topic alter by-hand.clicks --partitions 1 --yes' 'topic list' >commands.txt
run 3 kdeclare shell commands.txt
says "2 topics with 6 partitions" "[delete, compact]  +compact" "Kafka cannot remove partitions" "Line 4 (" ") ended with exit code 3. No later line was run."

step "The history lists all of these runs."
run 0 kdeclare history
says "kdeclare topic create by-hand.clicks" "config alter --topic by-hand.clicks --append-config cleanup.policy=compact"

step "Delete the topic. The plan warns that its records cannot be restored."
run 0 kdeclare topic delete by-hand.clicks --yes
says "Cannot be rolled back:" "✓ Topic/by-hand.clicks  deleted"
