"""Texts that say nothing of whoever recorded a trace; the rules are data in ``known.yaml``."""

import re
from collections.abc import Mapping
from functools import cache
from typing import Any

from analyze.packaged import read_table

MAX_TEXT = 4096
"""Characters of a text that may be known; longer ones are replaced unseen."""

_CHAIN = re.compile(
    r"(?<![\w:])[A-Za-z_]\w*(?:::~?[A-Za-z_]\w*)*"  # what follows "::" belongs to what is before
    r"|(?<!::)\(anonymous namespace\)(?:::\w+)?|(?<![\w)}>])::"
)
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
"""``vectorized``, ``Vectorized`` and ``CUDA`` are words; digits and underscores part them."""

_NUMBERED_LAMBDA = re.compile(r"#\d+")
_NODE = re.compile(r"(?P<op>[A-Z][A-Za-z0-9]*)Backward\d{1,3}", re.ASCII)
_PLAIN = re.compile(r"[\w\s:<>(){}*&,#~!=+.\[\]-]*", re.ASCII)


Keys = Mapping[str, Any]
"""Of which kinds the texts under each key are: a text, or :data:`Keys` again."""


def keys(place: str) -> Keys:
    """Return the known keys of a place: ``arguments`` or ``metadata``."""
    found: Keys = _rules()[place]
    return found


def is_known(kind: str, text: str) -> bool:
    """Whether a text is one of those that ``known.yaml`` lists under ``kind``, if it lists any."""
    return len(text) <= MAX_TEXT and _pattern(kind).fullmatch(text) is not None


def is_listed(kind: str, word: str) -> bool:
    """Whether a word is in the list ``kind`` of ``known.yaml``."""
    return word in _words(kind)


def is_torch_op(name: str) -> bool:
    """Whether an op is torch's own, an autograd node of torch's, or a public package's."""
    if is_known("op", name):
        return True
    if node := _NODE.fullmatch(name):
        return is_listed("autograd_node", node["op"])
    return is_known("op_of_words", name) and _has_words_of("library_word", name)


def is_api_call(name: str) -> bool:
    """Whether a name is that of a function of CUDA or HIP."""
    return is_known("api_call", name) and _has_words_of("api_word", name)


def is_device(name: str) -> bool:
    """Whether a name is that of a device or of its maker: none that somebody gave a machine."""
    return is_known("device", name) and _has_words_of("device_word", name)


def is_library_kernel(name: str) -> bool:
    """Whether a kernel's name consists of nothing but names of torch, Python and GPU libraries.

    A template argument can be a type of the user's own, so every identifier is looked at: with its
    outermost namespace, or by itself where it has none. Anybody can name a kernel as a library
    does, or put it into a library's namespace, so every word must be one of a library's too.
    """
    text = name.strip()
    if is_known("copy", text):
        return True
    if (
        len(text) > MAX_TEXT
        or not _PLAIN.fullmatch(text)
        or not _has_words_of("library_word", text)
    ):
        return False
    if is_known("kernel", text):
        return True
    chains = _CHAIN.findall(_NUMBERED_LAMBDA.sub("", text))
    return bool(chains) and all(map(_is_known_chain, chains))


def _is_known_chain(chain: str) -> bool:
    root, _, rest = chain.partition("::")
    if is_known("kernel_identifier", root) or is_known("kernel_chain", chain):
        return True
    return bool(rest) and is_listed("kernel_namespace", root)


def _has_words_of(kind: str, text: str) -> bool:
    """Whether all that is longer than a letter is in a list of words of ``known.yaml``."""
    words = (word.lower() for word in _WORD.findall(text))
    return all(len(word) == 1 or is_listed(kind, word) for word in words)


@cache
def _pattern(kind: str) -> re.Pattern[str]:
    """Compile what is known of a kind; of one without a list nothing is."""
    parts = [f"(?:{pattern})" for pattern in _rules().get(kind, [])]
    return re.compile("|".join(parts) if parts else "(?!)", re.ASCII)


@cache
def _words(kind: str) -> frozenset[str]:
    """Return a list of ``known.yaml``; a long one is written as one text."""
    listed = _rules()[kind]
    return frozenset(listed.split() if isinstance(listed, str) else listed)


@cache
def _rules() -> dict[str, Any]:
    rules: dict[str, Any] = read_table("trim/known.yaml")
    return rules
