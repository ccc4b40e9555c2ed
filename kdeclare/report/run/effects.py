"""Render the observed effects of a run next to the predictions of its plan, as text and HTML."""

from collections.abc import Sequence
from html import escape

from kdeclare.core.plans.observed_effect import EffectStatus, ObservedEffect
from kdeclare.report.elements.terminal import PLAIN, Style
from kdeclare.report.elements.values import sanitize_for_terminal, strip_configs_prefix

_MAX_LINES = 20
"""The maximum number of effects in text; the page and the JSON document contain all of them."""
TITLE = "Predicted and observed"


def render_effects_text(effects: Sequence[ObservedEffect], style: Style = PLAIN) -> str:
    """Render effects as text, with two lines for each; empty if there are none."""
    if not effects:
        return ""
    lines = [style.bold("Observed after the run:")]
    for effect in effects[:_MAX_LINES]:
        paint = {EffectStatus.UNEXPECTED: style.red, EffectStatus.UNKNOWN: style.yellow}.get(effect.status)
        observed = sanitize_for_terminal(effect.observed)
        name = _format_subject(effect)
        lines.append(f"  {f'{name}: ' if name else ''}{paint(observed) if paint else observed}")
        if effect.predicted:
            lines.append(style.dim(f"      predicted: {sanitize_for_terminal(effect.predicted)}"))
    if len(effects) > _MAX_LINES:
        lines.append(style.dim(f"  … and {len(effects) - _MAX_LINES:,} more"))
    return "".join(f"{line}\n" for line in lines)


def _format_subject(effect: ObservedEffect) -> str:
    """Return the resource, and the field that the effect is about: ``Topic/orders (retention.ms)``."""
    field = f" ({strip_configs_prefix(effect.path)})" if effect.path else ""
    return sanitize_for_terminal(f"{effect.resource}{field}")


def render_effects_section(effects: Sequence[ObservedEffect]) -> str:
    """Render effects as a section of HTML that needs no scripts; empty if there are no effects."""
    if not effects:
        return ""
    rows = "".join(map(_render_row, effects))
    return (
        '<section class="panel" aria-labelledby="effects-title">\n'
        f'<div class="panel-head"><h2 id="effects-title">{TITLE}</h2>'
        '<p class="note">observed directly after the run</p></div>\n'
        '<div class="effects" tabindex="0" role="group" aria-labelledby="effects-title">\n<table>\n'
        '<thead><tr><th scope="col" class="c-subject">Change</th><th scope="col">Predicted</th>'
        '<th scope="col">Observed</th></tr></thead>\n'
        f"<tbody>\n{rows}</tbody>\n</table>\n</div>\n</section>\n"
    )


def _render_row(effect: ObservedEffect) -> str:
    resource = escape(sanitize_for_terminal(effect.resource))
    field = ""
    if effect.path:
        field = (
            f'<span class="line">{escape(sanitize_for_terminal(strip_configs_prefix(effect.path)))}</span>'
        )
    status = effect.status.value
    return (
        f'<tr><th scope="row">{resource}{field}</th>'
        f'<td data-title="Predicted">{escape(sanitize_for_terminal(effect.predicted))}</td>'
        f'<td data-title="Observed"><span class="tag k-{status}">{status}</span> '
        f"{escape(sanitize_for_terminal(effect.observed))}</td></tr>\n"
    )
