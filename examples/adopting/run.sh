#!/usr/bin/env bash
# Import an existing cluster as manifests, adopt it, and make the next change.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../steps.sh"
begin 'adopting\..*'

step "Two topics exist already; they were created with Kafka's own tool."
run 0 kafka-topics --create --topic adopting.invoices \
  --partitions 4 --replication-factor 2 --config retention.ms=86400000 --config cleanup.policy=compact,delete
run 0 kafka-topics --create --topic adopting.mails \
  --partitions 1 --replication-factor 3

step "Import them as manifests."
run 0 kdeclare import --match 'adopting\..*' --out manifests
says "Wrote 2 manifests"
run 0 cat manifests/topics/adopting.invoices.yaml
says "partitions: 4" "replicationFactor: 2" "retention.ms: 86400000" "cleanup.policy: [compact, delete]"

step "The manifests match the cluster."
run 0 kdeclare plan --detailed-exitcode
says "No changes." "Apply will take ownership of 2 resources."

step "The first apply changes nothing in the cluster; kdeclare owns the topics from now on."
run 0 kdeclare apply --yes
says "No changes." "2 resources were adopted"
run 0 kdeclare plan --detailed-exitcode
says "2 resources up to date."
says_not "ownership"

step "Make the next change in the manifests."
edit manifests/topics/adopting.invoices.yaml "retention.ms: 86400000" "retention.ms: 172800000"
run 0 kdeclare apply --yes
says "86400000 (1 d) → 172800000 (2 d)" "1 resource configured"

step "An imported key that is no longer declared returns to the broker default."
edit manifests/topics/adopting.invoices.yaml "    retention.ms: 172800000" ""
run 2 kdeclare plan --detailed-exitcode
says "DELETE" "172800000 (2 d) → (unset) (back to the default)"
