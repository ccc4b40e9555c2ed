#!/usr/bin/env bash
# Three teams share one cluster: 100 topics in three environments, shared defaults and policies, and one audit.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../steps.sh"
begin 'three-teams\..*'
teams=(checkout billing search)
if [[ $bootstrap != "$usual_address" ]]; then
  for team in "${teams[@]}"; do edit "$team/kdeclare.yaml" "$usual_address" "$bootstrap"; done
fi

tidy() { remove_topics && empty_project; }

step "The platform team limits the applications of each team."
run 0 kdeclare apply --yes
says "+ ClientQuota/three-teams-checkout" "+ ClientQuota/three-teams-billing" "+ ClientQuota/three-teams-search"

step "Each team applies its own project in three environments: 100 topics."
for env in dev staging production; do
  for team in "${teams[@]}"; do
    run 0 kdeclare apply --yes --quiet --project "$team/kdeclare.yaml" --env "$env"
    says "created"
  done
done

step "All projects match the cluster, and the 100 topics have owners."
run 0 kdeclare fleet audit fleet.yaml --out audits --engine local --fail-on 'severity>=medium'
count=$(cat state/*/*/state.json | grep -c '"Topic/three-teams\.') || true
[[ $count == 100 ]] || fail "the states own $count topics instead of 100."

step "A value comes from the topic, the shared defaults, or the environment."
run 0 kdeclare show-manifest Topic/three-teams.production.orders --project checkout/kdeclare.yaml --env production
says "replicationFactor: 3" "defaults.yaml"

step "A policy of the platform team refuses a topic with too many partitions."
edit search/topics.yaml 'products:         {partitions: 1' 'products:         {partitions: 12'
run 3 kdeclare plan --project search/kdeclare.yaml
says "few-partitions" "Ask the platform team"
edit search/topics.yaml '{partitions: 12' '{partitions: 1'

step "A team cannot take a topic of another team by mistake."
printf '%s\n' 'orders: {partitions: 4, in: [dev, staging, production]}' >>billing/topics.yaml
run 3 kdeclare plan --project billing/kdeclare.yaml --env production
says "Another project owns the resource" "billing/topics.yaml:14" "project 'checkout' in environment 'production'"

step "If the topic should move, transfer it in each environment, and move its line."
for env in dev staging production; do
  run 0 kdeclare state transfer "Topic/three-teams.$env.orders" --yes --project checkout/kdeclare.yaml --env "$env" \
    --to-project billing/kdeclare.yaml --to-env "$env"
done
grep -v '^orders:' checkout/topics.yaml >topics.tmp && mv topics.tmp checkout/topics.yaml
for env in dev staging production; do
  run 0 kdeclare plan --detailed-exitcode --project checkout/kdeclare.yaml --env "$env"
  run 0 kdeclare plan --detailed-exitcode --project billing/kdeclare.yaml --env "$env"
  says "will no longer be protected from deletion"
  run 0 kdeclare apply --yes --project billing/kdeclare.yaml --env "$env"
done

step "Someone changes a topic outside kdeclare. The audit names the project and the team."
run 0 kafka-configs --alter --topic three-teams.production.prices --add-config retention.ms=1000
run 2 kdeclare fleet audit fleet.yaml --out audits --engine local --fail-on 'severity>=high' --by team
says "three-teams.production.prices" "retention.ms" "search"
[[ -s audits/teams/search.md ]] || fail "the report of the team is missing."
run 0 kdeclare apply --yes --project search/kdeclare.yaml --env production
says "retention.ms"
