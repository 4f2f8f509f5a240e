"""The display form of a GPU kernel name: short, and still telling what the kernel does."""

from __future__ import annotations

import re

MAX_LENGTH = 80
"""Characters of a display name, an ellipsis included."""

_UNNAMED = "(unnamed)"
_ELLIPSIS = "\N{HORIZONTAL ELLIPSIS}"
_MAX_NESTING = 8

_NOISE = re.compile(
    r"\(anonymous namespace\)::|<unnamed>::|_GLOBAL__N__\w+::|at_cuda_detail::|at::native::"
)
# "operator()" and "->" look like brackets and are not.
_TOKEN = re.compile(r"operator\(\)|->|[<>(){},]")
_MANGLED_PART = re.compile(r"\d{1,4}")
_CLOSES = {">": "<", ")": "(", "}": "{"}
_OPENS = frozenset(_CLOSES.values())

# Words in front of a kernel's name in a demangled signature.
_RETURN_WORDS = frozenset({"void", "static", "inline", "__global__"})

# ATen and CUTLASS launch wrappers say how a kernel runs; their template argument says what it does.
_ATEN_WRAPPERS = frozenset(
    {
        "_scatter_gather_elementwise_kernel",
        "elementwise_kernel",
        "elementwise_kernel_manual_unroll",
        "elementwise_kernel_with_index",
        "index_elementwise_kernel",
        "unrolled_elementwise_kernel",
        "unrolled_elementwise_kernel_for_multi_outputs",
        "vectorized_elementwise_kernel",
        "vectorized_templated_elementwise_kernel",
    }
)
_CUTLASS_WRAPPERS = frozenset({"Kernel", "Kernel2", "device_kernel"})
# Wrappers whose own name is worth keeping in front of the functor.
_KEPT_WRAPPERS = frozenset({"multi_tensor_apply_kernel", "reduce_kernel"})
# Functors that only carry another functor.
_CARRIERS = frozenset(
    {
        "AUnaryFunctor",
        "BUnaryFunctor",
        "BinaryFunctor",
        "ReduceOp",
        "enable_sm80_to_sm89",
        "enable_sm90",
        "enable_sm90_or_later",
        "func_wrapper_t",
        "gpu_index_kernel",
        "gpu_kernel_impl",
        "gpu_kernel_impl_nocast",
    }
)
# Template arguments that name a type or a container, not what the kernel does.
_TYPES = frozenset(
    {
        "Array",
        "BFloat16",
        "Half",
        "OpaqueType",
        "TensorListMetadata",
        "TensorListScalarListMetadata",
        "array",
        "bool",
        "char",
        "complex",
        "double",
        "float",
        "int",
        "long",
        "short",
        "signed",
        "unsigned",
    }
)
# Mangled entry points shared by unrelated kernels: the raw name tells more.
_SHARED_ENTRIES = frozenset({"Kernel", "Kernel2", "device_kernel", "kentry"})


def shorten(name: str) -> str:
    """Return the display form of a kernel name: one line, not empty, at most 80 characters.

    The return type, template arguments, parameters and ATen's namespaces go. Of ATen and CUTLASS
    launch wrappers the functor or kernel inside remains. Names that do not parse come back trimmed.
    """
    text = _one_line(name)
    plain = _NOISE.sub("", text)
    label = _mangled_path(plain) if plain.startswith("_Z") else _signature_label(plain)
    return _clip(label or text or _UNNAMED)


def _one_line(name: str) -> str:
    if not name.isprintable():
        name = "".join(char if char.isprintable() else " " for char in name)
    return " ".join(name.split())


def _clip(text: str) -> str:
    return text if len(text) <= MAX_LENGTH else text[: MAX_LENGTH - 1] + _ELLIPSIS


def _signature_label(text: str) -> str:
    path, arguments = _split(text)
    leaf = _leaf(path)
    if leaf in _CUTLASS_WRAPPERS and "cutlass" in path:
        return _functor(arguments) or path
    if leaf in _ATEN_WRAPPERS:
        return _leaf(_functor(arguments)) or leaf
    if leaf in _KEPT_WRAPPERS:
        return f"{leaf} {_leaf(_functor(arguments))}".strip()
    return path


def _functor(arguments: list[str]) -> str:
    """Return the path of the first template argument that names code, looking through carriers."""
    path = ""
    for _ in range(_MAX_NESTING):
        found = next((split for split in map(_split, arguments) if _names_code(split[0])), None)
        if found is None:
            break
        path, arguments = found
        if _leaf(path) not in _CARRIERS:
            break
    return path


def _names_code(path: str) -> bool:
    words = path.split()
    if not words or not (words[0][0].isalpha() or words[0][0] == "_"):
        return False
    return _leaf(words[0]) not in _TYPES and words[0] not in {"true", "false"}


def _leaf(path: str) -> str:
    return path.rpartition("::")[2]


def _split(text: str) -> tuple[str, list[str]]:
    """Split a C++ signature into its qualified name and the template arguments right behind it."""
    scan = _Scan(text)
    for match in _TOKEN.finditer(text):
        bracket = match[0]
        if bracket in _OPENS:
            if scan.open(bracket, match.start()):
                break
        elif bracket in _CLOSES:
            scan.close(bracket, match.start())
        elif bracket == ",":
            scan.comma(match.start())
    else:
        scan.end()
    return _qualified("".join(scan.outside)), scan.arguments


class _Scan:
    """One pass over the brackets of a signature.

    They need not balance: names are cut off, and "<" and ">" can also be comparisons.
    """

    def __init__(self, text: str) -> None:
        self.outside: list[str] = []  # text in no bracket
        self.arguments: list[str] = []  # of the last template argument list
        self._text = text
        self._opened: list[str] = []
        self._from = 0  # start of the current piece of outside, or of the current argument

    def open(self, bracket: str, at: int) -> bool:
        """Open a bracket. Return whether it starts the parameter list, which ends the name."""
        if not self._opened:
            self.outside.append(self._text[self._from : at])
            if bracket == "(" and any(piece.strip() for piece in self.outside):
                return True
            if bracket == "<":
                self.arguments = []
            self._from = at + 1
        self._opened.append(bracket)
        return False

    def close(self, bracket: str, at: int) -> None:
        opener = _CLOSES[bracket]
        if opener not in self._opened or (bracket == ">" and self._opened[-1] != opener):
            return
        while self._opened.pop() != opener:
            pass
        if not self._opened:
            if bracket == ">":
                self.arguments.append(self._text[self._from : at])
            self._from = at + 1

    def comma(self, at: int) -> None:
        if self._opened == ["<"]:
            self.arguments.append(self._text[self._from : at])
            self._from = at + 1

    def end(self) -> None:
        rest = self._text[self._from :]
        if not self._opened:
            self.outside.append(rest)
        elif self._opened[0] == "<":
            self.arguments.append(rest)


def _qualified(path: str) -> str:
    words = path.split()
    while len(words) > 1 and (words[0] in _RETURN_WORDS or words[0].startswith("std::enable_if")):
        del words[0]
    return " ".join(words).removesuffix("::operator()")


def _mangled_path(text: str) -> str:
    """Return the path of an Itanium-mangled name, or "" where the raw name tells more."""
    parts: list[str] = []
    position = 3 if text.startswith("_ZN") else 2
    while match := _MANGLED_PART.match(text, position):
        position = match.end() + int(match[0])
        part = text[match.end() : position]
        if part and not part.startswith("_GLOBAL__N_"):
            parts.append(part)
    if not parts or parts[-1] in _SHARED_ENTRIES:
        return ""
    return "::".join(parts)
