"""The least time of an attention, from its shapes and the device's published peak."""

from typing import Any

import pytest

from analyze.tables.build import Trace
from tests.conftest import MakeTrace
from tests.tables.test_attribution import Event, kernel, launch, op
from tests.tables.test_calls import SDPA, shapes

QUERY = [8, 16, 1024, 64]
FLOP = 4 * 8 * 16 * 1024 * 1024 * 64
A100 = {
    "id": 0, "name": "NVIDIA A100-SXM4-80GB", "totalGlobalMem": 84_987_740_160,
    "computeMajor": 8, "computeMinor": 0, "maxThreadsPerBlock": 1024,
    "maxThreadsPerMultiprocessor": 2048, "regsPerBlock": 65536, "warpSize": 32,
    "sharedMemPerBlock": 49152, "numSms": 108, "regsPerMultiprocessor": 65536,
    "sharedMemPerBlockOptin": 166912, "sharedMemPerMultiprocessor": 167936,
}  # fmt: skip
PEAK = 312e12


def on(device: dict[str, Any], make_trace: MakeTrace, *events: Event) -> Trace:
    work = [launch(1, 40), kernel(1, 60, 100)]
    return make_trace([*events, *work], deviceProperties=[device])


def floors(trace: Trace) -> list[float]:
    known: list[float] = trace.table("ops")["attention_floor_us"].drop_nulls().to_list()
    return known


def written_out(dtype: str, first: list[list[int]], last: list[list[int]]) -> list[Event]:
    """A batched product, a softmax and a batched product."""
    types = {"Input type": [dtype, dtype]}
    return [
        op("aten::bmm", 0, 5, **{"Input Dims": first, **types}),
        op("aten::_softmax", 10, 5),
        op("aten::bmm", 20, 5, **{"Input Dims": last, **types}),
    ]


def test_equally_many_queries_and_keys_may_be_causal(make_trace: MakeTrace) -> None:
    trace = on(A100, make_trace, op(SDPA, 0, 50, **shapes(QUERY, QUERY, QUERY)))
    assert floors(trace) == [pytest.approx(FLOP / 2 / PEAK * 1e6, abs=1e-3)]


def test_other_numbers_of_keys_count_in_full(make_trace: MakeTrace) -> None:
    keys = [8, 16, 512, 64]
    trace = on(A100, make_trace, op(SDPA, 0, 50, **shapes(QUERY, keys, keys)))
    assert floors(trace) == [pytest.approx(FLOP / 2 / PEAK * 1e6, abs=1e-3)]


def test_attention_by_hand_begins_with_its_first_product(make_trace: MakeTrace) -> None:
    queries, keys, scores = [128, 1024, 64], [128, 64, 1024], [128, 1024, 1024]
    products = written_out("c10::BFloat16", [queries, keys], [scores, queries])
    ops = on(A100, make_trace, *products).table("ops")
    floor = pytest.approx(FLOP / 2 / PEAK * 1e6, abs=1e-3)
    assert ops["attention_floor_us"].to_list() == [floor, None, None]


@pytest.mark.parametrize(
    ("device", "dtype", "first"),
    [
        ({**A100, "name": "NVIDIA A100 of a later kind"}, "c10::BFloat16", [128, 1024, 64]),
        ({**A100, "numSms": 42}, "c10::BFloat16", [128, 1024, 64]),
        (A100, "float", [128, 1024, 64]),
        (A100, "c10::BFloat16", [128, 1024]),
    ],
    ids=["unknown device", "a part of a device", "no peak for fp32", "unknown shapes"],
)
def test_what_is_unknown_has_no_floor(
    device: dict[str, Any], dtype: str, first: list[int], make_trace: MakeTrace
) -> None:
    keys, scores = [128, 64, 1024], [128, 1024, 1024]
    products = written_out(dtype, [first, keys], [scores, [128, 1024, 64]])
    assert floors(on(device, make_trace, *products)) == []
