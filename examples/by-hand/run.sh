#!/usr/bin/env bash
# Topics and configs by hand, on the same engine as manifests: plan, history, rollback, and the manifest kept in step.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../steps.sh"
begin 'by-hand\..*'

step "A topic is needed now. The flags are those of Kafka's own tool."
run 0 kdeclare topic create by-hand.clicks --partitions 3 --replication-factor 2 --config retention.ms=1000 --yes
says "1 to create" "✓ Topic/by-hand.clicks  created; 3 partitions × 2 replicas"

step "It needs another replica: as few as possible are moved, and no replication factor changes by accident."
run 0 kdeclare topic alter by-hand.clicks --replication-factor 3 --yes
says "2 → 3" "✓ Topic/by-hand.clicks  altered; 3 partitions × 3 replicas"

step "That was too much. Undo it."
run 0 kdeclare rollback --yes
says "Rolled back" "1 reassignment done"

step "Several at once, and one of them is wrong: the others are done."
run 5 kdeclare topic alter by-hand.clicks by-hand.clocks --partitions 4 --yes
says "There is no topic 'by-hand.clocks'." "Did you mean 'by-hand.clicks'?" "✓ Topic/by-hand.clicks  altered"

step "What a manifest declares is applied as ever …"
run 0 kdeclare apply --yes
says "1 topic created"

step "… and whoever changes it by hand is told whose it is."
run 0 kdeclare config alter --topic by-hand.orders --add-config retention.ms=3600000 --yes
says "retention.ms of Topic/by-hand.orders is declared in a manifest" "manifests/orders.yaml:10:"

step "The next apply would take it back."
run 0 kdeclare plan
says "changed outside kdeclare" "3600000 (1 h) → 604800000 (7 d)"

step "Another change, and this time the manifest learns of it. Its comments stay."
run 0 kdeclare config alter --topic by-hand.orders --add-config retention.ms=7200000 --write-manifest --yes
says "-    retention.ms: 604800000   # a week" "+    retention.ms: 7200000   # a week" "Written: manifests/orders.yaml"
run 0 kdeclare plan --detailed-exitcode
says "No changes."

step "The shell runs the same commands, one after the other; a script stops at the first that fails."
printf '%s\n' '# what is there, and what is set' 'topic list "by-hand\..*"' \
  'config alter --topic by-hand.clicks --append-config cleanup.policy=compact --yes' \
  'topic alter by-hand.clicks --partitions 1 --yes' 'topic list' >commands.txt
run 3 kdeclare shell commands.txt
says "2 topics with 6 partitions" "[delete, compact]  +compact" "Kafka cannot remove partitions" "line 4: ended with exit code 3"

step "All of it stands in the history."
run 0 kdeclare history
says "kdeclare topic create by-hand.clicks" "config alter --topic by-hand.clicks --append-config cleanup.policy=compact"

step "It is needed no longer. Nothing brings its records back, and that is said."
run 0 kdeclare topic delete by-hand.clicks --yes
says "Cannot be rolled back:" "✓ Topic/by-hand.clicks  deleted"
