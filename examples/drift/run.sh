#!/usr/bin/env bash
# Apply a saved plan after the cluster was changed outside kdeclare.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../steps.sh"
begin 'drift\..*'

step "Create two topics."
run 0 kdeclare apply --yes

step "Plan a change and save the plan for review."
edit manifests/topics.yaml "retention.ms: 604800000" "retention.ms: 86400000"
run 2 kdeclare plan --out it.plan --detailed-exitcode
says "604800000 (7 d) → 86400000 (1 d)" "The plan was saved to it.plan"

step "Meanwhile, the same topic is changed outside kdeclare."
run 0 kafka-configs --alter --topic drift.sessions --add-config retention.ms=3600000

step "The plan is stale. Nothing is applied, not even a part."
run 4 kdeclare apply it.plan --yes
says "drift.sessions" "604800000" "3600000"

step "A new plan shows the change made outside kdeclare; apply restores the declared value."
run 2 kdeclare plan --out it.plan --detailed-exitcode
says "changed outside kdeclare" "3600000 (1 h) → 86400000 (1 d)"

step "A change of the other topic does not affect this plan."
run 0 kafka-configs --alter --topic drift.logins --add-config retention.ms=3600000
run 0 kdeclare apply it.plan --yes
run 0 kdeclare plan --detailed-exitcode
says "No changes." "drift.logins  retention.ms"

step "A plan can be applied only once."
run 4 kdeclare apply it.plan --yes
