#!/usr/bin/env bash
# Apply a platform team's rules to the topics of two other teams: creations, changes, changes outside kdeclare.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../steps.sh"
begin 'policies\..*'
tidy() { remove_topics; } # some topics hold records by then, and the rules here would deny their deletion
kafka-producer-perf-test() { kafka_tool org.apache.kafka.tools.ProducerPerformance "$@"; }

step "Run the platform team's tests for its rules."
run 0 kdeclare policy test tests

step "Validate the topics of two teams without a cluster."
run 0 kdeclare validate
says "policy 'partitions': policies.search.queries would have 24 partitions; it may have at most 12."

step "The plan judges all policies: one topic is denied, one gets a warning."
run 3 kdeclare plan
says "2 to create, 1 blocked" "denied by policy partitions" "denied by policy factor" \
  "warned by policy compacted-is-keyed"

step "The other topics are created anyway."
run 3 kdeclare apply --yes
says "2 done, 1 denied"

step "The search team corrects its topic."
edit manifests/search.yaml "partitions: 24" "partitions: 6"
edit manifests/search.yaml "replicationFactor: 1" "replicationFactor: 2"
run 0 kdeclare apply --yes
says "1 of 1 operation done"

step "The same policies also deny changes that lead to a forbidden topic."
edit manifests/search.yaml "partitions: 6" "partitions: 24"
edit manifests/search.yaml "replicationFactor: 2" "replicationFactor: 1"
run 3 kdeclare plan
says "6 → 24" "denied by policy partitions" "2 → 1" "denied by policy factor"
edit manifests/search.yaml "partitions: 24" "partitions: 6"
edit manifests/search.yaml "replicationFactor: 1" "replicationFactor: 2"

step "A topic is changed outside kdeclare. Check which topics of the cluster violate a policy."
run 0 kafka-configs --alter --topic policies.search.queries --add-config retention.ms=-1
run 3 kdeclare policy check --live
says "denied by policy retention: policies.search.queries would have retention.ms=-1 (no limit)"

step "The orders topic receives records. Then the checkout team shortens its retention."
run 0 kafka-producer-perf-test --topic policies.checkout.orders --num-records 500 --record-size 100 \
  --throughput -1
edit manifests/checkout.yaml "retention.ms: 604800000" "retention.ms: 86400000"
run 3 kdeclare plan --target Topic/policies.checkout.orders
says "denied by policy keep-records: policies.checkout.orders holds up to 500 records"

step "The owners of the policy agreed: override it with a reason. The override is recorded."
run 0 kdeclare apply --yes --override-policy keep-records --reason "PLAT-341: orders are archived now"
says "overridden policy keep-records" "2 of 2 operations done"
[[ $(<"$output") =~ Run\ ([0-9TZ]+-[0-9a-f]+) ]]
run 0 kdeclare history "${BASH_REMATCH[1]}"
says "Overridden by" "policy keep-records on Topic/policies.checkout.orders: PLAT-341: orders are archived now"
