"""The options of ``capture``: what is recorded, and how."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from capture.options import CPU_SHAPE, DTYPES, GPU_SHAPE, LAYOUTS, PHASES, Protocol

Command = TypeVar("Command", bound=Callable[..., Any])

MAX_SEED = (1 << 63) - 3
COUNT, POSITIVE = click.IntRange(min=0), click.IntRange(min=1)


def recording_options(command: Command) -> Command:
    """Add the options of everything that records."""
    default = Protocol()
    options = (
        click.option(
            "-o",
            "--output",
            type=click.Path(path_type=Path, file_okay=False),
            help="Folder for traces and capture.json. Default: captures/<date>-<time>.",
        ),
        click.option("--overwrite", is_flag=True, help="Replace an earlier capture in the folder."),
        click.option(
            "--device", default="auto", show_default=True, help="auto, cpu, cuda or cuda:N."
        ),
        click.option(
            "--benchmark/--no-benchmark",
            default=True,
            help="Measure latency and peak memory with the profiler off.  [default: on]",
        ),
        _number(
            "--warm-ups",
            default.warm_ups,
            COUNT,
            "Calls before the profiler exists, of which it knows nothing.",
        ),
        _number(
            "--wait",
            default.wait,
            COUNT,
            "Steps of the profiler's schedule(wait, warmup, active) that it lets pass.",
        ),
        _number(
            "--warmup",
            default.warmup,
            COUNT,
            "Steps of its schedule, after --wait, that are profiled and thrown away.",
        ),
        _number("--active", default.active, POSITIVE, "Steps of its schedule that are recorded."),
        _number("--repeat", default.repeat, POSITIVE, "Traces to record of each."),
        _switch("record-shapes", default.record_shapes, "Shapes, dtypes, scalar inputs of ops."),
        _switch("profile-memory", default.profile_memory, "Every allocation."),
        _switch("with-stack", default.with_stack, "Python frames; costs the most."),
        _switch("with-modules", default.with_modules, "nn.Module of ops (TorchScript only)."),
        _switch("with-flops", default.with_flops, "FLOPs, in torch's own tables only."),
        _switch("cuda-sync-events", default.cuda_sync_events, "What the host waited for."),
    )
    for option in reversed(options):
        command = option(command)
    return command


def workload_options(command: Command) -> Command:
    """Add the options that describe the attention problem."""
    options = (
        _shape("--batch", "batch", "Batch size."),
        _shape("--heads", "heads", "Query heads."),
        click.option(
            "--kv-heads", type=POSITIVE, help="Key and value heads (GQA); default: --heads."
        ),
        click.option(
            "--seq",
            type=POSITIVE,
            multiple=True,
            help=f"Queries; give it several times for a sweep. {_defaults('seq')}",
        ),
        click.option("--seq-kv", type=POSITIVE, help="Keys; default: as many as queries."),
        _shape("--head-dim", "head_dim", "Features of a head."),
        click.option("--dtype", type=click.Choice(DTYPES), default=DTYPES[0], show_default=True),
        click.option(
            "--causal/--no-causal",
            default=True,
            show_default=True,
            help="Query i sees the keys 0 to i, as torch's is_causal.",
        ),
        click.option(
            "--layout",
            type=click.Choice(LAYOUTS),
            default=LAYOUTS[0],
            show_default=True,
            help="Order in memory; variants always see [batch, heads, seq, head_dim].",
        ),
        click.option(
            "--phase",
            type=click.Choice(PHASES),
            default=PHASES[0],
            show_default=True,
            help="forward: no gradients. backward: both. step: with loss and optimizer.",
        ),
        click.option(
            "--compile", "compiled", is_flag=True, help="Every variant via torch.compile."
        ),
        click.option(
            "--seed",
            type=click.IntRange(0, MAX_SEED),
            default=0,
            show_default=True,
            help="Of the inputs.",
        ),
        click.option(
            "--check/--no-check",
            default=True,
            help="Compare results with a float64 reference.  [default: on]",
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


def _number(name: str, default: int, kind: click.IntRange, text: str) -> Callable[[Any], Any]:
    return click.option(name, type=kind, default=default, show_default=True, help=text)


def _switch(name: str, default: bool, text: str) -> Callable[[Any], Any]:
    state = "on" if default else "off"
    return click.option(
        f"--{name}/--no-{name}", default=default, help=f"{text}  [default: {state}]"
    )


def _shape(name: str, field: str, text: str) -> Callable[[Any], Any]:
    return click.option(name, type=POSITIVE, help=f"{text} {_defaults(field)}")


def _defaults(field: str) -> str:
    return f"Default: {getattr(GPU_SHAPE, field)} on a GPU, {getattr(CPU_SHAPE, field)} on a CPU."
