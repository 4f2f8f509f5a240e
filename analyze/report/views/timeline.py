"""The timeline of one forward: what the host's threads and the GPUs' streams did, to scale."""

from analyze.report.views.columns import exact_us
from analyze.report.views.forward import drawn_forward
from analyze.report.views.gpu_lanes import gpu_lanes
from analyze.report.views.host_lanes import host_lanes
from analyze.report.views.model import Timeline
from analyze.report.views.texts import Texts, cut
from analyze.tables.build import Trace


def build_timeline(trace: Trace) -> Timeline | None:
    """Return the timeline of the median forward; None where nothing has a time."""
    forward = drawn_forward(trace)
    if forward is None:
        return None
    texts = Texts()
    host = host_lanes(trace, forward, texts)
    gpu = gpu_lanes(trace, forward, host, texts)
    amounts = (forward.amount_ns, forward.least_ns, forward.most_ns)
    amount, least, most = (None if value is None else exact_us(value) for value in amounts)
    return Timeline(
        forward_is=cut(trace.forward_source),
        index=forward.index,
        forwards=forward.forwards,
        chosen_by=forward.chosen_by,
        amount_us=amount,
        least_us=least,
        most_us=most,
        start_us=exact_us(forward.start_ns),
        dur_us=exact_us(forward.length_ns),
        cpu_start_us=exact_us(forward.cpu_start_ns - forward.start_ns),
        cpu_dur_us=exact_us(forward.cpu_end_ns - forward.cpu_start_ns),
        texts=texts.as_list(),
        threads=host.threads,
        streams=gpu.streams,
        devices=gpu.devices,
        threads_left_out=host.left_out,
        streams_left_out=gpu.left_out,
        step=forward.step,
        chosen_of=forward.chosen_of,
    )
