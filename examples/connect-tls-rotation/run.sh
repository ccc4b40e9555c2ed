#!/usr/bin/env bash
# Rotate the certificates of two running Connect workers: all check them, one change is sent, handshakes show them.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../steps.sh"
port=${KDECLARE_CONNECT_PORT:-29092}
begin_apart
edit kdeclare.yaml "127.0.0.1:29092" "127.0.0.1:$port"
for number in 0 1; do
  edit manifests/workers.yaml "127.0.0.1:$((29142 + number))" "127.0.0.1:$((port + 50 + number))"
done
tidy() { kdeclare sandbox reset --yes --quiet; }

# Create a new key and certificate for a worker, signed by the sandbox's authority, as a certificate service would.
issue() {
  local store=.sandbox/connect/workers/$1/$2.p12
  cp .sandbox/connect/ca.p12 "$store"
  keytool -genkeypair -alias worker -signer ca -keyalg EC -groupname secp256r1 -dname "CN=worker-$1 $2" \
    -ext san=ip:127.0.0.1,dns:localhost -ext eku=serverAuth,clientAuth -validity 90 \
    -keystore "$store" -storepass kdeclare-sandbox
  keytool -delete -alias ca -keystore "$store" -storepass kdeclare-sandbox
}

step "Start a broker and two workers with HTTPS and kdeclare's plug-in."
run 0 kdeclare sandbox start --brokers 1 --connect-workers 2 --port "$port"

step "Show the current certificates."
run 0 kdeclare connect worker-config status
says "CN=worker-1" "CN=worker-2"

step "Change the manifest while only one worker has the new keystore."
run 0 issue 1 next
edit manifests/workers.yaml "  config: {}" '  config:
    listeners.https.ssl.keystore.location: ${env:WORKER_FOLDER}/next.p12'
run 1 kdeclare plan
says "127.0.0.1:$((port + 51))" "next.p12"

step "kdeclare writes nothing while one worker could not follow. Now both have the keystore."
run 0 issue 2 next
run 0 kdeclare plan
says "listeners.https.ssl.keystore.location"

step "Apply one change; kdeclare waits for every worker."
run 0 kdeclare apply --yes
run 0 kdeclare connect worker-config status
says "CN=worker-1 next" "CN=worker-2 next"
run 0 kdeclare plan --detailed-exitcode
says "No changes."

step "Roll back: the workers use their own files again."
run 0 kdeclare rollback --yes
run 0 kdeclare connect worker-config status
says "CN=worker-1" "CN=worker-2"
says_not "next"
