"""Functions of the user's own, named as ``path/to/file.py:function`` or ``module:function``."""

import importlib
import importlib.util
import inspect
import re
import sys
import sysconfig
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from capture.errors import CaptureError, RequestError
from capture.variants import Variant
from capture.words import did_you_mean, one_line

SUFFIX = ".py"
MODULE_PREFIX = "kinetolint_user_"
MAX_NAME = 100
_UNFIT_FOR_FILES = re.compile(r"[^\w.+-]", re.ASCII)


def is_reference(text: str) -> bool:
    """Tell whether a text names a function rather than a variant."""
    return ":" in text


def load_function(reference: str) -> Callable[..., Any]:
    """Import what ``file.py:function`` or ``package.module:function`` names.

    Raises:
        RequestError: there is no such file, module or function, or importing it fails.
    """
    place, _, name = reference.rpartition(":")
    if not place or not name:
        raise RequestError(f"{reference}: write path/to/file.py:function or module:function")
    module = _load_file(Path(place)) if place.endswith(SUFFIX) else _load_module(place)
    function = getattr(module, name, None)
    if function is None:
        known = [key for key, value in vars(module).items() if callable(value)]
        raise RequestError(f"{place}: has no function {name!r}{did_you_mean(name, known)}")
    if not callable(function):
        raise RequestError(f"{reference}: is {type(function).__name__}, not a function")
    return function  # type: ignore[no-any-return]


def load_step(reference: str) -> Callable[[], object]:
    """Return a function that can be called without arguments.

    Raises:
        RequestError: as :func:`load_function`, or it cannot.
    """
    function = load_function(reference)
    if inspect.iscoroutinefunction(function) or inspect.isgeneratorfunction(function):
        raise RequestError(f"{reference}: calling it runs nothing; name a plain function")
    try:
        inspect.signature(function).bind()
    except TypeError as error:
        raise RequestError(f"{reference}: must be callable without arguments: {error}") from None
    except ValueError:  # some built-in functions have no signature
        pass
    return function


def load_variant(reference: str) -> Variant:
    """Return the variant that a reference to a function describes.

    Raises:
        RequestError: as :func:`load_function`.
    """
    function = load_function(reference)
    place, _, name = reference.rpartition(":")
    stem = Path(place).stem if place.endswith(SUFFIX) else place
    lines = str(function.__doc__ or "").strip().splitlines()
    return Variant(file_name(f"{stem}.{name}"), lines[0] if lines else reference, function)


def file_name(text: str) -> str:
    """Return a text as a name that every file system takes, that is not hidden, and not too long.

    The profiler writes only ASCII names of annotations.
    """
    return _UNFIT_FOR_FILES.sub("_", text).lstrip(".")[:MAX_NAME] or "_"


def explain(error: BaseException) -> str:
    """Word an exception in one line, with the innermost line of code outside of packages."""
    text = one_line(f"{type(error).__name__}: {error}")
    frames = [f for f in traceback.extract_tb(error.__traceback__) if _is_user_code(f.filename)]
    return f"{text} ({Path(frames[-1].filename).name}:{frames[-1].lineno})" if frames else text


def _is_user_code(filename: str) -> bool:
    not_theirs = (str(Path(__file__).parent), sysconfig.get_path("stdlib"), "<")
    return "site-packages" not in filename and not filename.startswith(not_theirs)


def _load_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise RequestError(f"{path}: no such file")
    name = f"{MODULE_PREFIX}{path.resolve()}"  # its own name may be that of another module
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise RequestError(f"{path}: is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    with _importing(str(path), path.resolve().parent):
        spec.loader.exec_module(module)
    return module


def _load_module(name: str) -> ModuleType:
    with _importing(name, Path.cwd()):
        return importlib.import_module(name)


@contextmanager
def _importing(what: str, folder: Path) -> Iterator[None]:
    """Let the user's code import its neighbours, and word what goes wrong in it.

    The neighbours are forgotten afterwards: those of another file may have the same names.
    """
    before = set(sys.modules)
    sys.path.insert(0, str(folder))
    try:
        yield
    except CaptureError:
        raise
    except (Exception, SystemExit) as error:  # noqa: BLE001 - the user's module may do anything
        raise RequestError(f"{what}: cannot be imported: {explain(error)}") from None
    finally:
        for name in set(sys.modules) - before:
            file = getattr(sys.modules[name], "__file__", None)
            if file and Path(file).parent == folder and not name.startswith(MODULE_PREFIX):
                del sys.modules[name]
