#!/usr/bin/env bash
# Create a topic, change it, and see that nothing is left to do.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../steps.sh"
begin 'first-topic\..*'

step "Validate the manifest without a cluster."
run 0 kdeclare validate
says "Valid: 1 resource in 1 file."

step "Show the plan. This changes nothing."
run 2 kdeclare plan --detailed-exitcode
says "+ Topic/first-topic.orders" "1 to create"

step "Apply it."
run 0 kdeclare apply --yes
says "1 topic created"

step "Nothing is left to do."
run 0 kdeclare plan --detailed-exitcode
says "No changes."

step "Change the manifest: a day instead of a week, and twice as many partitions."
edit manifests/orders.yaml "604800000     # a week" "86400000      # a day"
edit manifests/orders.yaml "partitions: 3" "partitions: 6"
run 0 kdeclare apply --yes
says "1 to change" "604800000 (7 d) → 86400000 (1 d)" "Cannot be rolled back:"
run 0 kdeclare plan --detailed-exitcode
says "No changes."

step "A misspelled key is found before a broker is contacted."
edit manifests/orders.yaml "retention.ms" "retention.mss"
run 1 kdeclare validate
says "manifests/orders.yaml:9:5" "Did you mean 'retention.ms'?"
edit manifests/orders.yaml "retention.mss" "retention.ms"

step "Delete the manifest: the topic stays until you allow the deletion."
rm manifests/orders.yaml
run 1 kdeclare plan
says "The project has no manifests" "--allow-empty"
run 0 kdeclare plan --allow-empty --detailed-exitcode
says "No changes." "1 orphan: owned, but no longer declared"
run 0 kdeclare apply --yes --allow-deletes --allow-empty
says "1 topic deleted"
