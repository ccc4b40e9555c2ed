#!/usr/bin/env bash
# Three clusters are changed outside kdeclare; one audit finds all changes, and one plan covers them.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../steps.sh"
port=${KDECLARE_FLEET_PORT:-29092}
begin_apart
for number in 0 1 2; do
  edit kdeclare.yaml "127.0.0.1:$((29092 + 200 * number))" "127.0.0.1:$((port + 200 * number))"
done
tidy() { kdeclare sandbox reset --yes --quiet; }

# Make the following changes with Kafka's tools on cluster 1, 2 or 3.
on() {
  bootstrap=127.0.0.1:$((port + 200 * ($1 - 1)))
}

step "Start three real clusters of one broker each."
run 0 kdeclare sandbox start --clusters 3 --brokers 1 --port "$port"

step "Make one plan per cluster with one command."
run 2 kdeclare fleet plan fleet.yaml --out plans --detailed-exitcode
says "eu-1" "eu-2" "lab"

step "Apply them in waves: the canary, then one cluster at a time."
run 0 kdeclare fleet apply fleet.yaml --out plans --yes
in_order "Wave 1" "lab" "Wave 2" "eu-1" "Wave 3" "eu-2"

step "Take a snapshot."
run 0 kdeclare fleet snapshot fleet.yaml --out snapshots
says "9 topics"

step "Outside kdeclare, change a topic on eu-1, delete one on eu-2, and create one with too many partitions on lab."
on 1; run 0 kafka-configs --alter --topic shop.orders --add-config retention.ms=1000
on 2; run 0 kafka-topics --delete --topic shop.payments
on 3; run 0 kafka-topics --create --topic shop.tmp --partitions 20

step "The audit finds exactly these changes. The nightly job can test for exit code 2."
run 2 kdeclare fleet audit fleet.yaml --out audits --fail-on changed,missing
says "shop.orders" "retention.ms" "shop.payments" "shop.tmp" "bounds" "checkout"
[[ -s audits/report.html && -s audits/report.md && -s audits/summary.json ]] || fail "the reports are missing."

step "The changes of orders and payments are urgent: records are lost."
says "high    - missing" "high    ~ changed" "Severity: 2 high"

step "Show the message that would be sent to Slack. Sending it requires the variable SLACK_URL."
run 0 kdeclare fleet notify fleet.yaml --out audits --dry-run
says "Fleet shop: 3 new findings (2 high, 1 medium)." "Topic/shop.payments"

step "Accept the experiment in the lab. Audits count it, but no longer report it."
edit fleet.yaml "  maxConcurrentClusters: 3" "  maxConcurrentClusters: 3
  acceptedDrift: [accepted]"
run 2 kdeclare fleet audit fleet.yaml --out audits --fail-on 'severity>=high'
says "Accepted drift:" "lab-experiments" "2 findings accepted by platform until 2099-12-31."
grep -q 'kdeclare_accepted_findings{fleet="shop",accepted="lab-experiments"} 2' audits/metrics.prom || fail "the metric is missing."

step "Take another snapshot, and show the history of the topic from both."
run 0 kdeclare fleet snapshot fleet.yaml --out snapshots --quiet
run 0 kdeclare fleet history eu-1 shop.orders --out snapshots
says "retention.ms" "1000"

step "A new plan has only these changes; the next apply would revert them."
run 0 kdeclare fleet plan fleet.yaml --out plans
says "2 with changes" "eu-1" "eu-2"
