"""A soak: random plans, applies, rollbacks, kills, faults and changes of other clients on real brokers.

    python -m tests.soak --minutes 30 --seed 7 --store git

Two members of a team use one project with a shared state. After every few steps all faults end, one member
applies the project, and the checker compares the cluster, the state and the journals with what must be true.
"""
