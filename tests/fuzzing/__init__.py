"""Fuzzers for what kdeclare reads: files, shared states, and answers of brokers, workers and registries.

``python -m tests.fuzzing TARGET --minutes M`` runs one fuzzer, which needs the extra ``fuzz``.
"""
