"""Examples and exit codes at the end of a command's ``--help``. ``\\b`` makes Click keep the line breaks."""

EXIT_CODE_MEANINGS = {
    0: "done",
    1: "error: bad manifest, unreachable cluster, internal error",
    2: "with --detailed-exitcode: there are changes",
    3: "a policy or a guard denied something",
    4: "the plan is stale; nothing was applied",
    5: "only partly done: errors, conflicts or skipped operations",
    6: "the state is locked by another process",
    64: "usage error",
    130: "interrupted",
}
"""The meaning of each exit code."""


def build_epilog(*examples: str, codes: tuple[int, ...] = ()) -> str:
    """Return the end of a command's help: the examples, and the meanings of the exit codes in ``codes``."""
    blocks = []
    if examples:
        blocks.append("\n".join(["\b", "Examples:", *(f"  {line}" for line in examples)]))
    if codes:
        lines = [f"  {code:<4} {EXIT_CODE_MEANINGS[code]}" for code in codes]
        blocks.append("\n".join(["\b", "Exit codes:", *lines]))
    return "\n\n".join(blocks)
