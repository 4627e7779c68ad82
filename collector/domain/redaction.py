"""Secrets taken out before anything is stored or shown.

Names decide for structured values (``api_key``, ``HF_TOKEN``); in running text the same names,
``Bearer`` and ``Basic`` credentials, URLs with a user part and the usual forms of access tokens.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

MASK: Final = "***"

_SECRET_NAME = re.compile(
    r"(?:^|[_-])(?:token|secret|password|passwd|passphrase|credential|authorization)s?$"
    r"|(?:[_-]|^api|^access)key$|^(?:pgpassword|auth|bearer)$",
    re.IGNORECASE,
)
# Names that end like a secret and are counts, files of vocabulary or switches.
_HARMLESS_NAME = re.compile(
    r"(?:num|max|min|draft|total|prefill|new|running|special|mask|pad|bos|eos|stop|think|image|verify|accepted|drafted|"
    r"generated|per|chunk|skip|graph)[_-](?:\w+[_-])*tokens?$|^(?:mask|pad|bos|eos|stop|unk)_token$",
    re.IGNORECASE,
)

# name=value, name: value, 'name': 'value', --name value; only names that may tell a secret are looked at
_PAIR = re.compile(
    r"""(?<![\w-])(?P<name>['"]?(?:--)?[\w-]{0,60}(?:key|token|secret|passw|passphrase|credential|auth)[\w-]{0,60}['"]?)"""
    r"""(?P<sep>\s?[=:]\s?|(?:\s|\\\r?\n)+(?=[^\s\\-]))"""
    r"""(?P<value>'(?:[^'\\]|\\.)*'?|"(?:[^"\\]|\\.)*"?|[^\s,;&)}\]'"]+)""",
    re.IGNORECASE,
)
_SCHEME = re.compile(r"\b(Bearer|Basic)(\s+)[\w.~+/=-]{6,}", re.IGNORECASE)
_URL_USER = re.compile(r"\b([a-z][a-z0-9+.-]{1,20}://)[^\s/@:'\"]{0,200}(?::[^\s/@'\"]{0,200})?@", re.IGNORECASE)
_TOKEN_FORM = re.compile(
    r"\b(?:hf_[A-Za-z0-9]{20,}|sk-[A-Za-z0-9_-]{16,}|gh[pousr]_[A-Za-z0-9]{20,}|glpat-[\w-]{16,}|xox[abpr]-[\w-]{10,}|AKIA[A-Z0-9]{16})"
)
_COUNT = re.compile(r"-?[\d.]+")
_EMPTY: Final = {"", "None", "''", '""', "null", "none", "False", "True", "false", "true", "0"}


def is_secret_name(name: str) -> bool:
    """Whether a field, flag or variable of this name holds a secret."""
    plain = name.strip("'\"").lstrip("-")
    return bool(_SECRET_NAME.search(plain)) and not _HARMLESS_NAME.search(plain)


def redact_mapping(values: Mapping[str, Any]) -> dict[str, Any]:
    """The same values; those whose name tells a secret, and secrets inside texts, are masked."""
    return {name: redact_value(name, value) for name, value in values.items()}


def redact_value(name: str, value: Any) -> Any:
    """One value under its name, with secrets masked at any depth."""
    if is_secret_name(name) and isinstance(value, (str, list, tuple, dict)):
        return MASK if value and value != MASK else value
    if isinstance(value, str):
        return redact_text(value)
    if isinstance(value, Mapping):
        return redact_mapping(value)
    if isinstance(value, (list, tuple)):
        return [redact_value("", item) for item in value]
    return value


def redact_text(text: str) -> str:
    """The same text with secrets masked; everything else stays as the user would find it."""
    text = _PAIR.sub(_mask_pair, text)
    if "://" in text:
        text = _URL_USER.sub(rf"\1{MASK}@", text)
    text = _SCHEME.sub(rf"\1\2{MASK}", text)
    return _TOKEN_FORM.sub(MASK, text)


def _mask_pair(match: re.Match[str]) -> str:
    name, separator, value = match["name"], match["sep"], match["value"]
    if not separator.strip("\\ \t\r\n") and not name.startswith("--"):
        return match[0]
    if value in _EMPTY or not is_secret_name(name):
        return match[0]
    if value.lower() in ("bearer", "basic") or (_COUNT.fullmatch(value) and "token" in name.lower()):
        return match[0]
    quote = value[0] if value[0] in "'\"" else ""
    return f"{name}{separator}{quote}{MASK}{quote}"
