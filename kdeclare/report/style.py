"""Colours for a terminal, or none."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Style:
    """How text is marked. Off, every method gives back what it got."""

    on: bool = False

    def bold(self, text: str) -> str:
        """Headlines and names."""
        return self._wrap("1", text)

    def dim(self, text: str) -> str:
        """What is there if one looks for it."""
        return self._wrap("2", text)

    def red(self, text: str) -> str:
        """Errors and deletions."""
        return self._wrap("31", text)

    def green(self, text: str) -> str:
        """Creations and success."""
        return self._wrap("32", text)

    def yellow(self, text: str) -> str:
        """Changes and warnings."""
        return self._wrap("33", text)

    def cyan(self, text: str) -> str:
        """Moves and hints."""
        return self._wrap("36", text)

    def _wrap(self, code: str, text: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self.on and text else text


PLAIN = Style(on=False)
