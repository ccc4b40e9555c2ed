#!/usr/bin/env bash
# A platform team's rules meet the topics of two other teams: new ones, changes, what is done by hand.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../steps.sh"
begin 'policies\..*'
tidy() { remove_topics; } # some hold records by then, and the rules here would keep those
kafka-producer-perf-test() { kafka_tool org.apache.kafka.tools.ProducerPerformance "$@"; }

step "The platform team has tests for its rules."
run 0 kdeclare policy test tests

step "Two teams have declared topics. Without a cluster, this much can be told."
run 0 kdeclare validate
says "policy 'partitions': policies.search.queries would have 24 partitions; it may have at most 12."

step "At plan time everything can be: one topic is denied, one gets a warning."
run 3 kdeclare plan
says "2 to create, 1 blocked" "denied by policy partitions" "denied by policy factor" \
  "warned by policy compacted-is-keyed"

step "That stops nobody else: the others are created."
run 3 kdeclare apply --yes
says "2 done, 1 denied"

step "The search team mends its topic."
edit manifests/search.yaml "partitions: 24" "partitions: 6"
edit manifests/search.yaml "replicationFactor: 1" "replicationFactor: 2"
run 0 kdeclare apply --yes
says "1 of 1 operation done"

step "What must not be created cannot be reached by changes, either: the same policies deny it."
edit manifests/search.yaml "partitions: 6" "partitions: 24"
edit manifests/search.yaml "replicationFactor: 2" "replicationFactor: 1"
run 3 kdeclare plan
says "6 → 24" "denied by policy partitions" "2 → 1" "denied by policy factor"
edit manifests/search.yaml "partitions: 24" "partitions: 6"
edit manifests/search.yaml "replicationFactor: 1" "replicationFactor: 2"

step "Somebody changes a topic by hand. Which topics of the cluster are not as they should be?"
run 0 kafka-configs --alter --topic policies.search.queries --add-config retention.ms=-1
run 3 kdeclare policy check --live
says "denied by policy retention: policies.search.queries would have retention.ms=-1 (no limit)"

step "Orders come in. Then the checkout team wants to keep them for a shorter time."
run 0 kafka-producer-perf-test --topic policies.checkout.orders --num-records 500 --record-size 100 \
  --throughput -1
edit manifests/checkout.yaml "retention.ms: 604800000" "retention.ms: 86400000"
run 3 kdeclare plan --target Topic/policies.checkout.orders
says "denied by policy keep-records: policies.checkout.orders holds up to 500 records"

step "It has asked, and the answer was yes: an override has a name and a reason, and is recorded."
run 0 kdeclare apply --yes --override-policy keep-records --reason "PLAT-341: orders are archived now"
says "overridden policy keep-records" "2 of 2 operations done"
[[ $(<"$output") =~ Run\ ([0-9TZ]+-[0-9a-f]+) ]]
run 0 kdeclare history "${BASH_REMATCH[1]}"
says "Overridden by" "policy keep-records on Topic/policies.checkout.orders: PLAT-341: orders are archived now"
