"""What other people's code raised, in one sentence with the place in their code."""

import os
import sysconfig
import traceback
from pathlib import Path

_LIBRARIES = [sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")]
_NOT_THEIRS = ("<", *(f"{folder}{os.sep}" for folder in (*_LIBRARIES, Path(__file__).parents[1])))


def told(raised: BaseException) -> str:
    """``ValueError: too short (policies/naming.py:12)``; without a place where none of the code is theirs."""
    what = f"{type(raised).__name__}: {_message(raised)}".removesuffix(": ")
    where = _where(raised)
    return f"{what} ({where})" if where else what


def _message(raised: BaseException) -> str:
    for said in (_said, repr):
        try:
            return " ".join(str.split(said(raised))).rstrip(".")
        except KeyboardInterrupt:
            raise
        except BaseException:  # noqa: BLE001, S112  even this is their code
            continue
    return ""


def _said(raised: BaseException) -> str:
    return raised.msg if isinstance(raised, SyntaxError) and raised.msg else str(raised)


def _where(raised: BaseException) -> str | None:
    if isinstance(raised, SyntaxError) and raised.filename and raised.lineno:
        return f"{_shown(raised.filename)}:{raised.lineno}"
    theirs = [f for f in traceback.extract_tb(raised.__traceback__) if _is_theirs(f.filename)]
    return f"{_shown(theirs[-1].filename)}:{theirs[-1].lineno}" if theirs else None


def _is_theirs(file: str) -> bool:
    return not file.startswith(_NOT_THEIRS)


def _shown(file: str) -> str:
    path = Path(file)
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else file
