"""The attention calls of one trace as text: a line of numbers for each group, details below it."""

from collections.abc import Iterator, Mapping
from typing import Any

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from analyze.report.console import buffer_console, print_pairs, rendered
from analyze.report.kernels_text import in_columns, print_details
from analyze.report.latency_words import UNSTEADY
from analyze.report.summary_text import print_opening
from analyze.tables.flash_obstacles import CHECKED_OP
from analyze.words import counted, duration, printable, share, unitless

DEFAULT_LIMIT = 10

_NO_ATTENTION = (
    "no attention was found: no attention op, none written out as batched product, softmax and"
    " batched product, and no attention kernel"
)
_COLUMNS = ("calls", "GPU busy", "CPU", "kernels", "GPU/call", "CPU/call", "TFLOP/s", "of peak")
_SHOWN_KERNELS, _SHOWN_SOURCES, _SHOWN_OUTSIDE = 3, 2, 5

_IMPLEMENTATIONS = {
    "mla": "latent attention (MLA)",
    "trtllm": "TensorRT-LLM",
    "flash4": "FlashAttention 4",
    "flash3": "FlashAttention 3",
    "flash2": "FlashAttention 2",
    "flash1": "FlashAttention 1",
    "cudnn": "cuDNN",
    "efficient": "memory-efficient (CUTLASS)",
    "flex": "FlexAttention",
    "flashinfer": "FlashInfer",
    "sage": "SageAttention",
    "aiter": "AITER",
    "ck": "Composable Kernel",
    "aotriton": "AOTriton",
    "paged": "paged attention",
    "triton": "Triton",
    "unfused": "unfused: products and softmax as kernels of their own",
}

Data = Mapping[str, Any]


def render_calls(report: Data, *, limit: int = DEFAULT_LIMIT, color: bool = False) -> str:
    """Return the text of :func:`analyze.report.calls.calls_report`.

    Args:
        report: the data.
        limit: groups to show.
        color: whether to use colours.
    """
    console = buffer_console(color=color)
    print_opening(console, report)
    print_pairs(console, _totals(report))
    _print_groups(console, report["groups"], limit)
    _print_outside(console, report["kernels_outside_calls"])
    return rendered(console)


def _totals(report: Data) -> Iterator[tuple[str, str]]:
    yield "", ""
    if not report["groups"] and not report["kernels_outside_calls"]:
        yield "calls", _NO_ATTENTION
        return
    parts = [counted(report["calls"], "attention call")]
    parts += [f"{report['calls_by_hand']:,} by hand"] if report["calls_by_hand"] else []
    yield "calls", ", ".join(parts)
    if report["groups"] and report["gpu_busy_us"] is not None:
        yield "GPU time", _gpu_time(report)
        yield "peak", _peak(report)


def _gpu_time(report: Data) -> str:
    spent = sum(group["gpu_busy_us"] or 0 for group in report["groups"])
    busy = report["gpu_busy_us"]
    part = share(spent / busy) if busy else "unknown"
    return f"{duration(spent)} busy in calls, {part} of the trace's {duration(busy)} busy"


def _peak(report: Data) -> str:
    if report["peak_tflops"] is None:
        return "not known for this device"
    figures = ", ".join(f"{dtype} {peak:,g}" for dtype, peak in report["peak_tflops"].items())
    return f"{figures} TFLOP/s dense ({report['peak_source']})"


def _print_groups(console: Console, groups: list[Data], limit: int) -> None:
    if not groups:
        return
    shown = groups[:limit]
    of_all = f"{len(shown):,} of " if len(shown) < len(groups) else ""
    title = f"\n{of_all}{counted(len(groups), 'kind')} of call, by GPU time, else CPU time"
    console.print(Text(title, style="bold"))
    console.print(
        Text("GPU busy and CPU are sums; the columns behind are medians of a call", "dim")
    )
    console.print(Text(in_columns(_COLUMNS), style="dim"))
    for group in shown:
        console.print(Text(_title(group), style="bold"), overflow="fold")
        console.print(Text(in_columns(_numbers(group))))
        print_details(console, _details(group))
    if len(groups) > limit:
        rest = sum(group["calls"] for group in groups[limit:])
        more = counted(len(groups) - limit, "more kind")
        console.print(Text(f"and {more}, {counted(rest, 'call')}; --limit shows more"))


def _numbers(group: Data) -> tuple[str, ...]:
    kernels, tflops = group["kernels_per_call"], group["tflops"]
    return (
        f"{group['calls']:,}",
        _or_dash(group["gpu_busy_us"]),
        duration(group["cpu_us"]),
        "-" if kernels is None else f"{kernels:g}",
        _or_dash(group["gpu_busy_per_call_us"]),
        duration(group["cpu_per_call_us"]),
        "-" if tflops is None else unitless(tflops),
        "-" if group["peak_share"] is None else share(group["peak_share"]),
    )


def _or_dash(microseconds: float | None) -> str:
    return "-" if microseconds is None else duration(microseconds)


def _title(group: Data) -> str:
    masks = {True: ", causal", False: ", not causal", None: ""}
    return f"{_what_ran(group)}; {_dtype(group)}{masks[group['causal']]}"


def _dtype(group: Data) -> str:
    if group["dtype"] is None and group["kernel_precision"] is not None:
        return f"{group['kernel_precision']} by its kernel"
    return group["dtype"] or "dtype unknown"


def _what_ran(group: Data) -> str:
    written = group["implementation"]
    ran = " and ".join(_IMPLEMENTATIONS.get(part, part) for part in (written or "").split("|"))
    if group["by_hand"]:
        return f"by hand, {ran}" if written else "by hand"
    backend = group["backend"]
    if written is None:
        return f"backend {backend}" if backend else "backend unknown"
    return f"{ran} (backend {backend})" if backend and backend != written else ran


def _details(group: Data) -> Iterator[tuple[str, str]]:
    yield "shapes", _shapes(group)
    if not group["by_hand"]:
        yield "op", _op(group)
    elif group["region"]:
        yield "in", printable(group["region"])
    apart = "; ".join(_apart(group))
    if apart:
        yield "varies", f"{apart} (shortest to longest call)"
    reason = _why_not_flash(group)
    if reason is not None:
        yield "no flash", reason
    for kernel in group["kernels"][:_SHOWN_KERNELS]:
        name = printable(kernel["short_name"] or "unknown")
        yield "kernel", f"{name} ({kernel['count']:,}, {duration(kernel['total_us'])})"
    for source in group["sources"][:_SHOWN_SOURCES]:
        yield "at", f"{printable(source['source'])} ({source['calls']:,})"


def _apart(group: Data) -> Iterator[str]:
    """Say from when to when the calls took, where a median says little of them."""
    for what, key in (("GPU busy", "gpu_busy"), ("CPU", "cpu")):
        least, most = group[f"{key}_min_us"], group[f"{key}_max_us"]
        if least is not None and most > least and most >= UNSTEADY * least:
            yield f"{what} {duration(least)} to {duration(most)}"


def _shapes(group: Data) -> str:
    if group["shapes"] is None:
        return "unknown"
    query, key, value = (_dimensions(shape) for shape in group["shapes"])
    if query == key == value:
        return f"query, key and value {query}"
    return (
        f"query {query}, key and value {key}"
        if key == value
        else (f"query {query}, key {key}, value {value}")
    )


def _dimensions(shape: list[int]) -> str:
    return "x".join(str(length) for length in shape)


def _op(group: Data) -> str:
    parts = [printable(group["name"])]
    if group["root_op"] not in (None, group["name"]):
        parts.append(f"under {printable(group['root_op'])}")
    if group["region"]:
        parts.append(f"in {printable(group['region'])}")
    return " ".join(parts)


def _why_not_flash(group: Data) -> str | None:
    """Say what kept a call off torch's flash attention; None where the question makes no sense."""
    if group["by_hand"]:
        return "written out as ops; no attention op was called"
    if group["backend"] not in ("math", "efficient"):
        return None
    if group["name"] != CHECKED_OP:
        return f"{printable(group['name'])} was called by its own name"
    if group["pinned_by_capture"]:
        return f"capture pinned this backend (variant sdpa-{group['backend']})"
    if group["flash_obstacles"]:
        return "; ".join(_obstacle(word, group) for word in group["flash_obstacles"])
    return f"the trace does not show why: {_why_not_known(group)}"


def _why_not_known(group: Data) -> str:
    if group["gpu_ops"] == 0:
        return "no GPU work of it is in the file, so it is not known where it ran"
    if group["shapes"] is None and group["dtype"] is None:
        return "input shapes and dtypes were not recorded"
    place = " on a CPU" if group["gpu_ops"] is None else ""
    return (
        "what is recorded of shapes, strides (torch 2.4 or newer), dtype and scalar inputs"
        f" fits{place}; whether a backend was switched off is not recorded"
    )


def _obstacle(word: str, group: Data) -> str:
    heads = ", ".join(str(shape[-1]) for shape in group["shapes"] or ())
    sentences = {
        "dtype": f"it takes fp16 and bf16, not {group['dtype'] or group['kernel_precision']}",
        "mask": "it takes no mask tensor, and one is given",
        "head_size": f"head sizes {heads} are not equal, or too large for it",
        "causal": "it takes causal only with as many queries as keys",
        "compute_capability": "it needs compute capability 8.0",
        "dropout": "no GPU work was recorded, and on a CPU it takes no dropout",
        "dimensions": "it takes inputs of 4 dimensions",
        "heads": "query, key and value differ in batch or number of heads",
        "empty": "there are no queries or no keys",
        "requires_grad": f"on this device it cannot be trained with heads of {heads.split(',')[0]},"
        " and a backward pass follows",
        "layout": "the last dimension of query, key and value must be contiguous (stride 1)",
    }
    return sentences[word]


def _print_outside(console: Console, outside: list[Data]) -> None:
    if not outside:
        return
    console.print(Text("\nAttention kernels that no recorded call launched", style="bold"))
    for kernel in outside[:_SHOWN_OUTSIDE]:
        console.print(Padding(Text(_outside(kernel)), (0, 0, 0, 2)))
    more = len(outside) - _SHOWN_OUTSIDE
    if more > 0:
        console.print(Text(f"  and {counted(more, 'more name')}; --format json has them all"))


def _outside(kernel: Data) -> str:
    kind = {"attn.fwd": "forward", "attn.bwd": "backward"}[kernel["family"]]
    sentence = (
        f"{printable(kernel['short_name'] or 'unknown')}: {kernel['count']:,},"
        f" {duration(kernel['total_us'])} summed, {kind}"
    )
    if kernel["implementation"]:
        implementation = _IMPLEMENTATIONS[kernel["implementation"]]
        sentence += f", {implementation}"
    if kernel["from_graphs"]:
        sentence += f"; {kernel['from_graphs']:,} from graph launches"
    if kernel["unlinked"]:
        sentence += f"; {kernel['unlinked']:,} have no launch in the file"
    return sentence
