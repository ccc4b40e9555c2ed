#!/usr/bin/env bash
# Apply the same manifests in two environments.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../steps.sh"
begin 'environments\..*'

tidy() {
  rm -rf overlays/production/* && empty_project && empty_project --env production
}

step "Staging is the default environment: few partitions and a short retention."
run 0 kdeclare apply --yes
says "+ Topic/environments.staging.orders" "3600000 (1 h)"
says_not "min.insync.replicas"

step "Production has other numbers from variables, and further settings from an overlay."
run 0 kdeclare apply --yes --env production
says "+ Topic/environments.production.orders" "604800000 (7 d)"
in_order "partitions           6" "replicationFactor    3" "min.insync.replicas  2"

step "Neither environment has changes left."
run 0 kdeclare plan --detailed-exitcode
says "No changes. environments/staging"
run 0 kdeclare plan --detailed-exitcode --env production
says "No changes. environments/production"

step "For an unknown environment, kdeclare suggests a similar name."
run 1 kdeclare plan --env prodution
says "Did you mean 'production'?"
