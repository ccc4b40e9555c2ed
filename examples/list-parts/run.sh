#!/usr/bin/env bash
# Add elements to lists that other clients also write to, and remove only those elements again.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../steps.sh"
begin 'list-parts\..*'

step "The manifest adds 'compact' to the cleanup policy and keeps its other elements."
run 0 kdeclare apply --yes
says "1 topic created"

step "Another client throttles a replica for its own reassignment."
run 0 kafka-configs --alter --topic list-parts.clicks \
  --add-config 'leader.replication.throttled.replicas=[1:2]'

step "kdeclare does not manage that element."
run 0 kdeclare plan --detailed-exitcode
says "No changes."

step "Throttle a replica with the manifest, too: only the declared element is appended."
edit manifests/clicks.yaml "{append: [compact]}" "{append: [compact]}
    leader.replication.throttled.replicas: {append: ['0:1']}"
run 0 kdeclare apply --yes
says "APPEND" "[1:2] → [1:2, 0:1]  +0:1"

step "Remove the declaration: only the declared element is removed."
edit manifests/clicks.yaml "    leader.replication.throttled.replicas: {append: ['0:1']}" ""
run 0 kdeclare apply --yes
says "SUBTRACT" "[1:2, 0:1] → [1:2]  -0:1"
says_not "DELETE"
run 0 kafka-configs --describe --topic list-parts.clicks
says "leader.replication.throttled.replicas=1:2 "

step "Nothing is left to do; the other client's element is shown and stays."
run 0 kdeclare plan --detailed-exitcode
says "No changes." "Unmanaged keys of declared resources (neither declared nor owned, left unchanged):"

step "Only lists accept 'append'; kdeclare reports this before it contacts a broker."
edit manifests/clicks.yaml "cleanup.policy: {append: [compact]}" "compression.type: {append: [zstd]}"
run 1 kdeclare validate
says "manifests/clicks.yaml:10:"
