"""The ``capture`` command."""

import os
import sys
import warnings
from collections import Counter
from collections.abc import Sequence
from io import TextIOWrapper
from pathlib import Path
from time import strftime
from typing import TYPE_CHECKING, Any

import click

from capture.cli_options import recording_options, workload_options
from capture.completion import complete_variant, completion
from capture.errors import CaptureError, RequestError
from capture.options import CPU_SHAPE, GPU_SHAPE, Protocol, Shape
from capture.words import one_line

if TYPE_CHECKING:
    from capture.devices import Device
    from capture.manifest import Capture
    from capture.variants import Variant
    from capture.workload import Workload

MIN_TORCH = (2, 4)
KINETO_SILENT = "6"
"""Otherwise some builds of torch print a line whenever a profiler starts or stops."""

EXIT_OK, EXIT_FAILED, EXIT_NOTHING = 0, 1, 2
EXIT_INTERRUPTED = 130
"""After Ctrl-C, as shells expect it."""


class CaptureGroup(click.Group):
    """A group whose unknown commands may be variants that lack their ``--variant``."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command of the arguments."""
        if args and args[0].isdecimal():
            raise click.UsageError(
                f"Got the number {args[0]} by itself; an option that takes several is repeated:"
                " --seq 1024 --seq 2048",
                ctx,
            )
        if args and args[0] not in self.commands:
            raise click.UsageError(
                f"No such command {args[0]!r}. A variant is named with --variant, a function of"
                " your own is recorded with: capture run module:function",
                ctx,
            )
        return super().resolve_command(ctx, args)


@click.group(
    cls=CaptureGroup,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.option(
    "--variant",
    "variants",
    multiple=True,
    metavar="NAME",
    shell_complete=complete_variant,
    help="A variant (see --list), or your own as path/to/file.py:function; repeatable."
    " Default: all that this machine can run.",
)
@click.option("--list", "only_list", is_flag=True, help="Show variants, and what can run here.")
@workload_options
@recording_options
@click.version_option(package_name="kinetolint", prog_name="capture")
@click.pass_context
def capture(ctx: click.Context, /, **options: Any) -> None:
    """Record a profiler trace of each attention variant, checked and measured.

    \b
    capture                                    every variant that runs here
    capture --variant naive --variant sdpa-flash --seq 1024 --seq 4096
    capture run train.py:step                  a function of your own

    Traces and a capture.json with latency, memory and numerics go into one folder, which analyze
    reads as a whole. Exit codes: 0 all captured; 1 a variant failed, is wrong, its trace
    incomplete, or it was named and skipped; 2 usage error, or everything was skipped; 3 no such
    device or folder.
    """  # noqa: D301 - \b is click's mark, the backspace itself
    if ctx.invoked_subcommand is not None:
        _refuse_options_before(ctx)
        return
    device = _device(options["device"])
    workloads = [_workload(options, device, seq) for seq in _sequences(options, device)]
    variants = _variants(options["variants"])
    if options["only_list"]:
        _list(workloads[0])
        return
    captures = _capture_all(variants, workloads, device, options)
    ctx.exit(_exit_code(captures, is_chosen=bool(options["variants"])))


@capture.command("run")
@click.argument("function", metavar="MODULE:FUNCTION")
@click.option("--name", help="Of the files and the annotation; default: the function's name.")
@recording_options
@click.pass_context
def run(ctx: click.Context, /, function: str, name: str | None, **options: Any) -> None:
    """Record a step function of your own, which takes no arguments.

    MODULE:FUNCTION is package.module:function or path/to/file.py:function. What the function needs
    (model, data, optimizer) is set up where its module is imported.
    """
    _require_torch()
    from capture.overview import overview  # noqa: PLC0415
    from capture.recording import record  # noqa: PLC0415
    from capture.user_code import explain, file_name, load_step  # noqa: PLC0415

    step = load_step(function)
    folder = options["output"] or _default_folder()
    try:
        with record(
            folder,
            name=name or file_name(function.rpartition(":")[2]),
            device=options["device"],
            benchmark=options["benchmark"],
            overwrite=options["overwrite"],
            **_protocol(options).as_json(),  # type: ignore[arg-type]
        ) as recording:
            recording.run(step)
    except (CaptureError, KeyboardInterrupt):
        raise
    except BaseException as error:  # noqa: BLE001 - the user's function may raise anything
        _say(f"capture: {function}: {explain(error)}")
        ctx.exit(EXIT_FAILED)
    click.echo(overview([recording.capture]), nl=False)
    ctx.exit(_exit_code([recording.capture], is_chosen=True))


@capture.command("schema")
def schema() -> None:
    """Print the JSON Schema of capture.json."""
    from capture.schema import schema_text  # noqa: PLC0415

    click.echo(schema_text(), nl=False)


capture.add_command(completion)


def _refuse_options_before(ctx: click.Context) -> None:
    command = capture.commands[ctx.invoked_subcommand or ""]
    its_own = {option for parameter in command.params for option in parameter.opts}
    for parameter in ctx.command.params:
        source = ctx.get_parameter_source(parameter.name or "")
        if source is click.core.ParameterSource.COMMANDLINE:
            option = parameter.opts[0]
            where = "must come after" if option in its_own else "is no option of"
            raise click.UsageError(f"{option} {where} {ctx.invoked_subcommand!r}", ctx)


def _require_torch() -> None:
    os.environ.setdefault("KINETO_LOG_LEVEL", KINETO_SILENT)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Failed to initialize NumPy")
            import torch  # noqa: PLC0415
    except (ImportError, OSError) as error:
        raise CaptureError(
            f"capture needs torch, which cannot be imported here ({error}); install the torch of"
            " your GPU, or: pip install 'kinetolint[capture]' (in a checkout: '.[capture]')"
        ) from None
    major, minor = (int(part) for part in torch.__version__.split(".")[:2])
    if (major, minor) < MIN_TORCH:
        raise CaptureError(f"torch {torch.__version__} is too old; capture needs 2.4 or newer")


def _device(text: str) -> "Device":
    _require_torch()
    from capture.devices import find_device  # noqa: PLC0415

    device = find_device(text)
    device.select()
    return device


def _sequences(options: dict[str, Any], device: "Device") -> Sequence[int]:
    return list(dict.fromkeys(options["seq"])) or [_default_shape(device).seq]


def _default_shape(device: "Device") -> Shape:
    return GPU_SHAPE if device.is_gpu else CPU_SHAPE


def _workload(options: dict[str, Any], device: "Device", seq: int) -> "Workload":
    from capture.workload import Workload  # noqa: PLC0415

    default = _default_shape(device)
    heads = options["heads"] or default.heads
    return Workload(
        batch=options["batch"] or default.batch,
        heads=heads,
        kv_heads=options["kv_heads"] or heads,
        seq=seq,
        seq_kv=options["seq_kv"] or seq,
        head_dim=options["head_dim"] or default.head_dim,
        dtype=options["dtype"],
        causal=options["causal"],
        layout=options["layout"],
        phase=options["phase"],
        compile=options["compiled"],
        seed=options["seed"],
        device=device.name,
    )


def _variants(names: Sequence[str]) -> "list[Variant]":
    from capture.user_code import is_reference, load_variant  # noqa: PLC0415
    from capture.variants import VARIANTS, find_variant  # noqa: PLC0415

    if not names:
        return [variant for variant in VARIANTS if not variant.only_by_name]
    variants = [
        load_variant(name) if is_reference(name) else find_variant(name)
        for name in dict.fromkeys(names)
    ]
    _refuse_namesakes(variants)
    return variants


def _refuse_namesakes(variants: "Sequence[Variant]") -> None:
    """Refuse variants whose traces would replace each other."""
    counts = Counter(variant.name for variant in variants)
    name, count = counts.most_common(1)[0]
    if count > 1:
        raise RequestError(f"{count} variants are called {name}; rename the file or the function")


def _protocol(options: dict[str, Any]) -> Protocol:
    return Protocol(**{name: options[name] for name in Protocol().as_json()})


def _capture_all(
    variants: "Sequence[Variant]",
    workloads: "Sequence[Workload]",
    device: "Device",
    options: dict[str, Any],
) -> "list[Capture]":
    from capture.files import make_folder  # noqa: PLC0415
    from capture.manifest import Manifest, prepare_folder  # noqa: PLC0415
    from capture.overview import overview  # noqa: PLC0415
    from capture.suite import Suite  # noqa: PLC0415

    folder = options["output"] or _default_folder()
    make_folder(folder)
    prepare_folder(folder, overwrite=options["overwrite"])
    manifest = Manifest(folder, device, _protocol(options))
    suite = Suite(manifest, benchmark=options["benchmark"], check=options["check"], notify=_say)
    try:
        suite.run(variants, workloads)
    except KeyboardInterrupt:
        click.echo(overview(manifest.captures), nl=False)
        raise
    click.echo(overview(manifest.captures), nl=False)
    _say_next(folder, manifest.captures)
    return manifest.captures


def _list(workload: "Workload") -> None:
    from capture.availability import availabilities, availability_table  # noqa: PLC0415

    _say(f"trying each variant once: {workload.label} on {workload.device}")
    click.echo(availability_table(availabilities(workload, _say)), nl=False)


def _exit_code(captures: "Sequence[Capture]", *, is_chosen: bool) -> int:
    """Return the exit code; that a variant cannot run here matters only if it was asked for."""
    statuses = {capture.status for capture in captures}
    if statuses == {"skipped"}:
        return EXIT_NOTHING
    good = {"captured"} if is_chosen else {"captured", "skipped"}
    return EXIT_OK if statuses <= good else EXIT_FAILED


def _default_folder() -> Path:
    return Path("captures") / strftime("%Y%m%d-%H%M%S")


def _say(text: str) -> None:
    click.echo(text, err=True)


def _say_next(folder: Path, captures: "Sequence[Capture]") -> None:
    if any(capture.traces for capture in captures):
        _say(f"\nnext: analyze {folder}")


def main() -> None:
    """Run the command; whatever goes wrong ends in one line and an exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # names hold letters of any alphabet
    try:
        sys.exit(capture(standalone_mode=False) or EXIT_OK)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        _say("capture: interrupted; what was captured before is kept")
        sys.exit(EXIT_INTERRUPTED)
    except CaptureError as error:
        _say(f"capture: {one_line(str(error))}")
        sys.exit(error.exit_code)
