"""The names of events: what is kept of each, and what stands for the rest."""

import builtins
import re

from analyze.kernels.display import shorten
from analyze.tables.idle import DATA_LOADING
from analyze.tables.modules import MODULE_PREFIX
from analyze.tables.sources import user_line
from analyze.trim.kernel_names import kernel_name
from analyze.trim.known import (
    MAX_TEXT,
    is_api_call,
    is_device,
    is_known,
    is_library_kernel,
    is_listed,
    is_torch_op,
)
from analyze.trim.placeholders import Placeholders

_FRAME = re.compile(r"(?P<file>.+)\((?P<line>-?\d{1,9})\): (?P<function>.+)", re.DOTALL)
_BUILT_IN = re.compile(
    r"<built-in (?P<kind>function|method) (?P<function>.*?)"
    r"(?: of (?P<owner>\S+) object at (?P<address>0x[0-9a-fA-F]+))?>",
    re.DOTALL,
)
_INSTANCE = re.compile(r"(?P<name>.+?)(?P<number>_\d{1,9})?", re.DOTALL)
_THREAD = re.compile(r"thread (?P<number>-?\d{1,20}) \((?P<name>.*)\)", re.DOTALL)
_OPTIMIZER = re.compile(r"Optimizer\.(?P<call>step|zero_grad)#(?P<name>.+)\.(?P=call)", re.DOTALL)
_EVALUATE = "autograd::engine::evaluate_function: "
_BACKWARD = re.compile(r"(?P<stem>.+?)(?P<suffix>Backward\d{0,4})", re.DOTALL)
_TEMPLATE = re.compile(r"(?P<head>torch::autograd::CppNode)<(?P<argument>.*)>", re.DOTALL)
_TRITON = "triton_"
_PACKAGES = re.compile(r"(?P<before>.*/(?:site|dist)-packages/)(?P<file>torch/.+)", re.DOTALL)
_EXTENSIONS = (".py", ".pyc", ".so", ".json", ".gz", ".zst", ".cu", ".cpp", ".h", ".trace")
_LIBRARY = "/lib/python3"
_BUILT_INS = frozenset(vars(builtins))


class Names:
    """Replaces names; the same name always gets the same one."""

    def __init__(self, keep: frozenset[str]) -> None:
        """Begin with nothing replaced.

        Args:
            keep: names that stay as they are.
        """
        self._keep = keep
        self.placeholders = Placeholders(keep)
        self._instances = Placeholders()
        self._known: dict[tuple[str, str], str] = {}

    def of(self, kind: str, text: str) -> str:
        """Return what stands for a text of a kind; the text itself where it is known or kept.

        Args:
            kind: one of ``known.yaml``, or several of which the last makes the name.
            text: as in the trace.
        """
        if text in self._keep:
            return text
        key = kind, text
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._find(kind, text)
        return found

    def _find(self, kind: str, text: str) -> str:
        special = {
            "variant annotation": self._variant,
            "op": self._op,
            "api_call": self._api_call,
            "annotation": self._annotation,
            "kernel": self._kernel,
            "frame": self._frame,
            "path": self._path,
            "thread": self._thread,
            "frames": self._frames,
            "device": self._device,
        }
        if kind in special:
            return special[kind](text)
        kinds = kind.split()
        if any(is_known(each, text) for each in kinds):
            return text
        return self.placeholders.name(kinds[-1], text)

    def _device(self, name: str) -> str:
        return name if is_device(name) else self.placeholders.name("device", name)

    def _op(self, name: str) -> str:
        if is_torch_op(name) or is_known("annotation", name):
            return name
        if name.startswith(_EVALUATE):
            return _EVALUATE + self._node(name.removeprefix(_EVALUATE))
        if name.startswith(_TRITON):
            return self.of("kernel", name)
        if _OPTIMIZER.fullmatch(name) or re.search(DATA_LOADING, name):
            return self.of("annotation", name)
        return self._node(name)

    def _node(self, name: str) -> str:
        """Return what stands for an op that may be a node of autograd's."""
        if template := _TEMPLATE.fullmatch(name):
            return f"{template['head']}<{self._part(template['argument'])}>"
        backward = _BACKWARD.fullmatch(name)
        if backward and not is_torch_op(name):
            return self._part(backward["stem"]) + backward["suffix"]
        return self._part(name)

    def _part(self, name: str) -> str:
        is_kept = is_torch_op(name) or name in self._keep
        return name if is_kept else self.placeholders.name("op", name)

    def _api_call(self, name: str) -> str:
        return name if is_api_call(name) else self.placeholders.name("api_call", name)

    def _variant(self, name: str) -> str:
        return name if is_known("variant", name) else self.of("annotation", name)

    def _annotation(self, name: str) -> str:
        if is_known("annotation", name):
            return name
        if optimizer := _OPTIMIZER.fullmatch(name):
            call, owner = optimizer["call"], optimizer["name"]
            if not is_listed("optimizer", owner):
                owner = self.placeholders.name("class", owner)
            return f"Optimizer.{call}#{owner}.{call}"
        stands_for = self.placeholders.name("annotation", name)
        return f"{stands_for}_dataloader" if re.search(DATA_LOADING, name) else stands_for

    def _kernel(self, name: str) -> str:
        """Return what stands for a kernel: one number for all instances of a template."""
        if is_library_kernel(name):
            return name
        short = shorten(name[:MAX_TEXT])
        instance = self._instances.number(short, name)
        return kernel_name(self.placeholders.number("kernel", short), instance, name)

    def _frames(self, names: str) -> str:
        """Replace the frames of a call stack as torch before 2.0 wrote them."""
        return ";".join(self.of("frame", name) if name else "" for name in names.split(";"))

    def _frame(self, name: str) -> str:
        if name.startswith(MODULE_PREFIX):
            return MODULE_PREFIX + self._module(name.removeprefix(MODULE_PREFIX))
        if built_in := _BUILT_IN.fullmatch(name):
            return self._built_in(built_in)
        frame = _FRAME.fullmatch(name)
        if frame is None:
            return self._function(name)
        file, line, function = frame["file"], frame["line"], frame["function"]
        if public := self._public_file(file):
            return f"{public}({line}): {self._function(function, is_public=True)}"
        path = self._file(file, is_library=user_line(name) is None)
        return f"{path}({line}): {self._function(function)}"

    def _module(self, name: str) -> str:
        instance = _INSTANCE.fullmatch(name)
        owner, number = (instance["name"], instance["number"] or "") if instance else (name, "")
        if not is_listed("module", owner):
            owner = self.placeholders.name("class", owner)
        return owner + number

    def _built_in(self, found: re.Match[str]) -> str:
        function, owner, address = found["function"], found["owner"], found["address"]
        if owner is None:
            return f"<built-in {found['kind']} {self._function(function)}>"
        is_public = is_known("builtin_owner", owner)
        function = self._function(function, is_public=is_public)
        owner = owner if is_public else self._owner(owner)
        number = self.placeholders.number("address", address)
        return f"<built-in {found['kind']} {function} of {owner} object at {number:#x}>"

    def _owner(self, name: str) -> str:
        """Return the type that a function of unknown name is of."""
        return name if is_known("plain_owner", name) else self.placeholders.name("class", name)

    def _function(self, name: str, *, is_public: bool = False) -> str:
        """Return what stands for a function; a public one stays where it is written as one."""
        is_kept = is_known("function", name) or name in _BUILT_INS
        if is_kept or (is_public and is_known("function_form", name)):
            return name
        return self.placeholders.name("function", name)

    def _path(self, path: str) -> str:
        return self._public_file(path) or self._file(path, is_library=False)

    def _public_file(self, path: str) -> str | None:
        """Return what is shown of a file of torch or of Python; None for any other."""
        if is_known("torch_file", path) or is_known("python_file", path):
            return path
        found = _PACKAGES.fullmatch(path)
        if found is None or not is_known("torch_file", found["file"]):
            return None
        folder = self.placeholders.name("path", found["before"])
        return f"/{folder}/site-packages/{found['file']}"

    def _file(self, path: str, *, is_library: bool) -> str:
        folder, slash, name = path.replace("\\", "/").rpartition("/")
        shown = self._folder(folder, is_library=is_library) if slash or is_library else ""
        extension = next((end for end in _EXTENSIONS if name.endswith(end)), "")
        return f"{shown}{self.placeholders.name('file', path)}{extension}"

    def _folder(self, folder: str, *, is_library: bool) -> str:
        before = f"{_LIBRARY}/" if is_library else "/"
        return f"{before}{self.placeholders.name('path', before + folder)}/"

    def _thread(self, name: str) -> str:
        if is_known("thread", name):
            return name
        if thread := _THREAD.fullmatch(name):
            shown = self.placeholders.name("thread", thread["name"])
            return f"thread {thread['number']} ({shown})"
        return self.placeholders.name("thread", name)
