"""What can be guessed: each quantity with its question and how a rule observes it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from analyze.guess.amounts import Unit

Kind = Literal["amount", "families", "precisions", "order"]


@dataclass(frozen=True)
class Quantity:
    """One thing that can be guessed of a trace.

    Attributes:
        key: of the guess file.
        number: last digits of its code: a quantity has the same one in every guess file.
        title: the quantity in words.
        kind: how a guess of it is written.
        unit: of an amount.
        table: the table that a rule looks at.
        per_trace: it is judged for the whole trace instead of for each forward.
        observed: of an amount: the expression that observes it.
        message: template of what was observed; ``{guessed}`` stands for what was guessed.
        question, explanation: how it is asked for; a quantity without a question is not.
        evidence: columns to show.
        distinct: columns of which evidence shows each combination once.
        about_gpu: it needs GPU work.
        silence: why it is not known although the trace holds what it rests on.
        speaks_of: families of GPU work (``coalesce(family, kind)``) that a guess of it accounts
            for, whatever is guessed.
    """

    key: str
    number: int
    title: str
    kind: Kind
    table: str
    message: str
    unit: Unit | None = None
    per_trace: bool = False
    observed: str = "count()"
    question: str = ""
    explanation: str = ""
    evidence: Sequence[str] = ()
    distinct: Sequence[str] = ()
    about_gpu: bool = True
    silence: str = "it is not known"
    speaks_of: Sequence[str] = field(default=())

    @property
    def is_of_work(self) -> bool:
        """Whether it is known only where the file holds all work that a forward launched."""
        return self.table not in ("trace", "forwards")

    @property
    def code(self) -> str:
        """The code of its rule in the first guess file."""
        return f"GUESS{self.number:03}"


_OPS = ("short_name", "op_chain", "dur_us")

PRODUCTS = ("gemm", "gemm.gemv", "conv", "attn.fwd", "attn.bwd", "triton.template")
"""Families whose precision matters: those that multiply."""

_ALL = (
    Quantity(
        "gpu_ops",
        1,
        "GPU ops",
        "amount",
        "gpu_ops",
        "{observed:int} {observed:GPU op|GPU ops} per {unit}; guessed {guessed}",
        Unit.COUNT,
        question="How many GPU ops does a forward launch?",
        explanation="Kernels, memcpys and memsets: every bar on the GPU's streams.",
        evidence=_OPS,
        distinct=("short_name",),
    ),
    Quantity(
        "kernels",
        2,
        "kernels",
        "amount",
        "kernels",
        "{observed:int} {observed:kernel|kernels} per {unit}; guessed {guessed}",
        Unit.COUNT,
        evidence=_OPS,
        distinct=("short_name",),
    ),
    Quantity(
        "copies",
        3,
        "copies",
        "amount",
        "copies",
        "{observed:int} {observed:copy|copies} per {unit}; guessed {guessed}",
        Unit.COUNT,
        question="How many of them are memory copies?",
        explanation="Memcpy HtoD, DtoH and DtoD; not kernels that copy.",
        evidence=("short_name", "op_chain", "bytes", "dur_us"),
        distinct=("short_name", "op_chain"),
        speaks_of=("memcpy",),
    ),
    Quantity(
        "dominant",
        4,
        "dominant family",
        "families",
        "gpu_ops",
        "{observed} takes most of the GPU time of a {unit}, {observed_share:pct};"
        " guessed {guessed}, which takes {guessed_share:pct}",
        question="What takes the most GPU time?",
        explanation="A family of kernels: gemm, attention, softmax, elementwise, conv, norm, comm,"
        " memcpy, ...; attention also where it is written out as ops.",
        silence="there is no GPU work",
        evidence=("short_name", "kind", "family", "op_chain", "dur_us"),
        distinct=("short_name",),
    ),
    Quantity(
        "precision",
        5,
        "precision",
        "precisions",
        "kernels",
        "mostly {observed} per {unit}; {other_share:pct} of the time of matrix products,"
        " convolutions and attention is in another precision; guessed {guessed}",
        question="Which precision do the matrix products run in?",
        explanation="Of matrix products, convolutions and attention: bf16, fp16, fp32, tf32, fp8.",
        evidence=("short_name", "precision", "op_chain", "dur_us"),
        distinct=("short_name",),
        silence="no name of a kernel that multiplies tells",
        speaks_of=PRODUCTS,
    ),
    Quantity(
        "idle",
        6,
        "idle share",
        "amount",
        "trace",
        "the GPU had nothing to do for {observed:pct} of the time from its first to its last work;"
        " guessed {guessed}",
        Unit.SHARE,
        per_trace=True,
        observed="1 - first(gpu_busy_us) / first(gpu_span_us)",
        question="Which share of the time is the GPU idle?",
        explanation="From its first to its last work in the trace, in percent.",
        evidence=("gpu_busy_us", "gpu_span_us"),
    ),
    Quantity(
        "syncs",
        7,
        "synchronising calls",
        "amount",
        "syncs",
        "{observed:int} synchronising {observed:call|calls} per {unit}; guessed {guessed}",
        Unit.COUNT,
        question="Does the forward synchronise with the GPU?",
        explanation="yes, no, or how often: item(), cpu(), nonzero(), torch.cuda.synchronize().",
        evidence=("name", "op_chain", "source", "dur_us"),
        distinct=("name", "op_chain", "source"),
    ),
    Quantity(
        "gpu_time",
        8,
        "GPU time",
        "amount",
        "gpu_ops",
        "{observed:us} of GPU time per {unit}; guessed {guessed}",
        Unit.TIME,
        observed="forward.gpu_busy_us",
        question="How long is the GPU busy with one forward?",
        explanation="With a unit: 300 us, 2 ms, 1-3 ms. A plain time is taken as +- 20 %.",
        evidence=_OPS,
        distinct=("short_name",),
    ),
    Quantity(
        "cpu_ops",
        9,
        "CPU ops",
        "amount",
        "ops",
        "{observed:int} {observed:CPU op|CPU ops} per {unit}; guessed {guessed}",
        Unit.COUNT,
        question="How many CPU ops does a forward run?",
        explanation="Every aten:: op counts, those inside others as well.",
        evidence=("name", "dur_us"),
        distinct=("name",),
        about_gpu=False,
    ),
    Quantity(
        "cpu_time",
        10,
        "CPU time",
        "amount",
        "forwards",
        "{observed:us} of CPU time per {unit}; guessed {guessed}",
        Unit.TIME,
        observed="sum(cpu_us)",
        question="How long does a forward take on the CPU?",
        explanation="With a unit: 300 us, 2 ms, 1-3 ms. A plain time is taken as +- 20 %.",
        evidence=("cpu_us", "op_self_us"),
        about_gpu=False,
    ),
    Quantity(
        "order",
        11,
        "GPU ops in order",
        "order",
        "gpu_ops",
        "{fit:int} of the {params.expected:int} GPU ops guessed are in their place, of"
        " {observed:int} per {unit}",
        evidence=("position", *_OPS),
    ),
)

QUANTITIES: Mapping[str, Quantity] = {quantity.key: quantity for quantity in _ALL}
"""Everything that can be guessed, by key, in the order of the questions."""
