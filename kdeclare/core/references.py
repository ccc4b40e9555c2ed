"""Values that came from outside the manifest, and remember from where."""


class Referenced(str):
    """Text that ``${env.NAME}`` or ``${file.PATH}`` stood for; ``reference`` is the scalar as written.

    Where the field turns out to be sensitive, only the reference and a hash leave the process.
    """

    __slots__ = ("reference",)
    reference: str

    def __new__(cls, value: str, reference: str) -> "Referenced":
        """Text ``value`` that was written as ``reference``."""
        self = super().__new__(cls, value)
        self.reference = reference
        return self

    def __reduce__(self) -> tuple[type["Referenced"], tuple[str, str]]:
        """What copying and pickling make it anew from."""
        return Referenced, (str(self), self.reference)

    def __repr__(self) -> str:
        return f"Referenced({self.reference!r})"
