"""What stands below the options in ``--help``: exit codes and examples. ``\\b`` keeps lines as they are."""

EXIT_CODE_MEANINGS = {
    0: "done",
    1: "error: bad manifest, unreachable cluster, internal error",
    2: "with --detailed-exitcode: there are changes",
    3: "a policy or a guard denied something",
    4: "the plan is stale; nothing was applied",
    5: "done only in part: errors, conflicts, things left out",
    6: "the state is locked by someone else",
    64: "wrong usage",
    130: "interrupted",
}
"""What the exit codes mean to a person."""


def build_epilog(*examples: str, codes: tuple[int, ...] = ()) -> str:
    """The examples, and the exit codes that the command is likely to give."""
    blocks = []
    if examples:
        blocks.append("\n".join(["\b", "Examples:", *(f"  {line}" for line in examples)]))
    if codes:
        lines = [f"  {code:<4} {EXIT_CODE_MEANINGS[code]}" for code in codes]
        blocks.append("\n".join(["\b", "Exit codes:", *lines]))
    return "\n\n".join(blocks)
