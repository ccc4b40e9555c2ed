"""The findings about one resource over all stored audits, as text."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from kdeclare.fleet.history.finding_history import EpisodeStatus, FindingEpisode
from kdeclare.report.elements.terminal import PLAIN, Style
from kdeclare.report.elements.values import (
    format_count,
    format_duration,
    sanitize_for_terminal,
    strip_configs_prefix,
    truncate,
)
from kdeclare.report.fleet.audit_wording import format_values, mask_raw_value
from kdeclare.report.run.history_text import format_time

_INCOMPLETE = (
    "Audits can contain more findings about this object: audits list findings under the names of resources, "
    "and kdeclare does not know which resources refer to the object.\n"
)


def render_finding_history_text(
    episodes: Sequence[FindingEpisode], style: Style = PLAIN, *, is_complete: bool = True
) -> str:
    """Render the findings about an object, the oldest first. For each finding, show how long it was open.

    is_complete: whether kdeclare knows all resources that refer to the object. If not, the text ends with a
        note that audits can contain more findings about the object.
    """
    return f"{_render_episodes(episodes, style)}{'' if is_complete else style.dim(_INCOMPLETE)}"


def _render_episodes(episodes: Sequence[FindingEpisode], style: Style) -> str:
    if not episodes:
        return "No findings in any audit.\n"
    open_count = sum(episode.status is not EpisodeStatus.FIXED for episode in episodes)
    title = f"{format_count(len(episodes), 'finding')} in all audits, {open_count:,} not fixed:"
    lines = ["", style.bold(title), ""]
    for episode in episodes:
        lines += _render_episode(episode, style)
    return "".join(f"{line}\n" for line in lines)


def mask_episode(episode: FindingEpisode) -> FindingEpisode:
    """Return a copy of the finding in which hashes of secrets are masked."""
    return replace(episode, before=mask_raw_value(episode.before), after=mask_raw_value(episode.after))


def _render_episode(episode: FindingEpisode, style: Style) -> Iterator[str]:
    label = f"{episode.severity.value} {episode.finding.value}"
    is_fixed = episode.status is EpisodeStatus.FIXED
    values = format_values(episode.path, episode.op, episode.before, episode.after)
    path = strip_configs_prefix(episode.path) if episode.path else ""
    field = f"  {sanitize_for_terminal(path)}  {truncate(values, 100)}".rstrip() if path else ""
    yield f"  {style.green(label) if is_fixed else style.yellow(label)}{field}"
    yield f"      first seen {format_time(episode.first_seen)}, {_format_end(episode)}"
    if episode.message:
        yield style.dim(f"      {sanitize_for_terminal(episode.message)}")


def _format_end(episode: FindingEpisode) -> str:
    least = _format_period(episode.first_seen, episode.last_seen)
    match episode.status:
        case EpisodeStatus.OPEN:
            is_new = episode.first_seen >= episode.last_seen
            return "still open" if is_new else f"still open after {least}"
        case EpisodeStatus.ACCEPTED:
            return f"accepted by {sanitize_for_terminal(episode.accepted or '')}, open for {least}"
        case EpisodeStatus.UNSEEN:
            return f"last seen {format_time(episode.last_seen)}, and not checked since then"
        case EpisodeStatus.FIXED:
            assert episode.fixed_by is not None
            most = _format_period(episode.first_seen, episode.fixed_by)
            period = f"open for {most}" if least == most else f"open for {least} to {most}"
            seen = format_time(episode.last_seen)
            return f"fixed between {seen} and {format_time(episode.fixed_by)}, {period}"


def _format_period(start: datetime, end: datetime) -> str:
    days = (end - start) / timedelta(days=1)
    if round(days) >= 1:
        return format_count(round(days), "day")
    return format_duration(max(0.0, (end - start).total_seconds()))
