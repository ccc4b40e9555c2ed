#!/usr/bin/env bash
# Three clusters, changed by hand behind our back; one audit finds it all, one plan and one apply mend it.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../steps.sh"
port=${KDECLARE_FLEET_PORT:-29092}
begin_apart
for number in 0 1 2; do
  edit kdeclare.yaml "127.0.0.1:$((29092 + 200 * number))" "127.0.0.1:$((port + 200 * number))"
done
tidy() { kdeclare sandbox reset --yes --quiet; }

# What somebody does by hand on the first, second or third cluster.
on() {
  bootstrap=127.0.0.1:$((port + 200 * ($1 - 1)))
}

step "Three real clusters of one broker each."
run 0 kdeclare sandbox start --clusters 3 --brokers 1 --port "$port"

step "One plan a cluster, from one command."
run 2 kdeclare fleet plan fleet.yaml --out plans --detailed-exitcode
says "eu-1" "eu-2" "lab"

step "Apply them in waves: the canary, then one cluster at a time."
run 0 kdeclare fleet apply fleet.yaml --out plans --yes
in_order "Wave 1" "lab" "Wave 2" "eu-1" "Wave 3" "eu-2"

step "A snapshot, for later."
run 0 kdeclare fleet snapshot fleet.yaml --out snapshots
says "9 topics"

step "Somebody changes a topic on eu-1, deletes one on eu-2, and makes one that is too large on lab."
on 1; run 0 kafka-configs --alter --topic shop.orders --add-config retention.ms=1000
on 2; run 0 kafka-topics --delete --topic shop.payments
on 3; run 0 kafka-topics --create --topic shop.tmp --partitions 20

step "The audit finds all of it, and nothing else; exit code 2 is for the nightly job."
run 2 kdeclare fleet audit fleet.yaml --out audits --fail-on changed,missing
says "shop.orders" "retention.ms" "shop.payments" "shop.tmp" "bounds" "checkout"
[[ -s audits/report.html && -s audits/report.md && -s audits/summary.json ]] || fail "the reports are missing."

step "What became of that topic? Another snapshot, and the two together tell."
run 0 kdeclare fleet snapshot fleet.yaml --out snapshots --quiet
run 0 kdeclare fleet history eu-1 shop.orders --out snapshots
says "retention.ms" "1000"

step "A new plan is for what was changed by hand only; the next apply would put it right."
run 0 kdeclare fleet plan fleet.yaml --out plans
says "2 with changes" "eu-1" "eu-2"
