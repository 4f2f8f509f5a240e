"use strict";
/* The timeline as lanes of slices, and what belongs together. Names come from a trace: they are
   only ever set as text. */
const Kinetolint = {};

/** A number with three digits; one half-way between two goes to the even one, as in the tables. */
Kinetolint.threeDigits = (value) => {
  const size = Math.abs(value);
  const digits = size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2;
  const isHalfWay = (size * 2 ** (digits + 1)) % 2 === 1;
  const rounded = isHalfWay ? (2 * Math.round((value * 10 ** digits) / 2)) / 10 ** digits : Number(value.toFixed(digits));
  return String(rounded || Number(value.toPrecision(3)));
};

/** A time in microseconds with three digits and its unit. */
Kinetolint.duration = (us) => {
  if (us === null || us === undefined) return "unknown";
  const [value, unit] =
    Math.abs(us) < 999.5 ? [us, "us"] : Math.abs(us) < 999.5e3 ? [us * 1e-3, "ms"] : [us * 1e-6, "s"];
  return `${Kinetolint.threeDigits(value)} ${unit}`;
};

/** A number of bytes with three digits, in binary units. */
Kinetolint.size = (bytes) => {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let power = 0;
  while (bytes >= 1023.5 && power < units.length - 1) {
    bytes /= 1024;
    power += 1;
  }
  return `${Kinetolint.threeDigits(bytes)} ${units[power]}`;
};

Kinetolint.counted = (count, noun) =>
  `${count.toLocaleString("en-US")} ${noun}${count === 1 ? "" : "s"}`;

/**
 * Lanes from top to bottom. A lane has a kind, a label, where it is, rows, and slices in columns;
 * every slice has start and dur (microseconds from the start of the window) and a row. Its slices
 * are in two orders: by start, and as they are drawn, so that short ones lie on long ones.
 */
Kinetolint.lanesOf = (data) => {
  const lanes = [];
  for (const found of data.findings) lanes.push(findingLane(found));
  data.threads.forEach((thread, number) => {
    const label = `thread ${thread.tid ?? "unknown"}`;
    const where = `${label} of process ${thread.pid ?? "unknown"}`;
    if (thread.spans.name.length) lanes.push(spanLane(thread.spans, number, label, where));
    const calls = thread.spans.name.length ? "runtime calls" : `${label} calls`;
    if (thread.calls.name.length) lanes.push(callLane(thread.calls, number, calls, where));
  });
  for (const device of data.devices) {
    data.streams.forEach((stream, number) => {
      if (stream.device === device.device) lanes.push(gpuLane(stream, number, data.group[number]));
    });
    if (device.idle.cause.length) lanes.push(idleLane(device));
  }
  return lanes;

  function findingLane(found) {
    const start = found.places.map((place) => place[0]);
    const dur = found.places.map((place) => place[1]);
    return lane("finding", found.code, start, dur, null, { found });
  }
  function spanLane(spans, thread, label, where) {
    return lane("span", label, spans.start_us, spans.dur_us, spans.depth, { columns: spans, thread, where });
  }
  function callLane(calls, thread, label, where) {
    return lane("call", label, calls.start_us, calls.dur_us, null, { columns: calls, thread, where });
  }
  function gpuLane(stream, number, groups) {
    const slices = stream.slices;
    const label = `GPU ${stream.device ?? "?"} stream ${stream.stream ?? "?"}`;
    return lane("gpu", label, slices.start_us, slices.dur_us, slices.row, {
      columns: slices, groups, stream: number, where: label,
    });
  }
  function idleLane(device) {
    const idle = device.idle;
    return lane("idle", `GPU ${device.device ?? "?"} idle`, idle.start_us, idle.dur_us, null, {
      columns: idle,
    });
  }
  function lane(kind, label, start, dur, rows, more) {
    const depth = rows ? rows.reduce((most, row) => Math.max(most, row), 0) + 1 : 1;
    const byStart = [...start.keys()].sort((one, other) => start[one] - start[other]);
    const drawn = [...byStart].sort((one, other) => dur[other] - dur[one]);
    return { kind, label, start, dur, row: rows, rows: depth, count: start.length, byStart, drawn, ...more };
  }
};

/** Which slices a slice belongs together with: a kernel, its launch, the ops around that. */
Kinetolint.Links = class {
  constructor(lanes) {
    this.lanes = lanes;
    this.callLanes = new Map();
    this.launched = new Map();
    for (const lane of lanes) if (lane.kind === "call") this.callLanes.set(lane.thread, lane);
    for (const lane of lanes) if (lane.kind === "gpu") this.#index(lane);
  }

  #index(lane) {
    const { thread, call } = lane.columns;
    for (let i = 0; i < lane.count; i++) {
      if (call[i] === null) continue;
      const key = `${thread[i]} ${call[i]}`;
      if (!this.launched.has(key)) this.launched.set(key, []);
      this.launched.get(key).push({ lane, i });
    }
  }

  /** The call that launched a slice of a GPU lane, or null. */
  launchOf(lane, i) {
    const { thread, call } = lane.columns;
    const callLane = call[i] === null ? undefined : this.callLanes.get(thread[i]);
    return callLane ? { lane: callLane, i: call[i] } : null;
  }

  /** The GPU slices, each for the longest in it, that a slice of a host lane launched. */
  workOf(lane, i) {
    if (lane.kind === "call") return this.launched.get(`${lane.thread} ${i}`) ?? [];
    const from = lane.start[i], to = from + lane.dur[i];
    const work = [];
    for (const gpu of this.lanes) {
      if (gpu.kind !== "gpu") continue;
      const { thread, launch_us } = gpu.columns;
      for (let place = 0; place < gpu.count; place++) {
        if (thread[place] === lane.thread && from <= launch_us[place] && launch_us[place] < to) work.push({ lane: gpu, i: place });
      }
    }
    return work;
  }

  /** The ops and annotations of a thread around a time; what is drawn as one may be beside it. */
  around(thread, start, end = start) {
    const found = [];
    for (const lane of this.lanes) {
      if (lane.kind !== "span" || lane.thread !== thread) continue;
      for (let i = 0; i < lane.count; i++) {
        const until = lane.start[i] + lane.dur[i];
        if (lane.columns.count[i] === 1 && lane.start[i] <= start && start < until && end <= until) found.push({ lane, i });
      }
    }
    return found;
  }

  /** Everything to point out with a slice, itself not included. */
  related({ lane, i }) {
    if (lane.kind === "gpu") {
      const launch = this.launchOf(lane, i);
      return launch ? [launch, ...this.around(launch.lane.thread, lane.columns.launch_us[i])] : [];
    }
    if (lane.kind === "call") {
      const start = lane.start[i];
      const end = lane.columns.count[i] > 1 ? start + lane.dur[i] : start;
      return [...this.workOf(lane, i), ...this.around(lane.thread, start, end)];
    }
    return lane.kind === "span" ? this.workOf(lane, i) : [];
  }
};

/** A share of 0 to 1 in percent; what is neither nothing nor all never reads as that. */
Kinetolint.share = (value) => {
  const percent = value * 100;
  if (percent > 0 && percent < 1) return "<1 %";
  if (percent > 99 && percent < 100) return ">99 %";
  return `${Math.floor(percent + 0.5)} %`;
};

/** A share of an idle time in percent, or nothing where it is not known. */
Kinetolint.shareOfIdle = (times, durations, i) => {
  const time = times[i] ?? null;
  return time === null || !durations[i] ? "" : Kinetolint.share(time / durations[i]);
};

/** What the launching thread did in an idle time that the host is to blame for. */
Kinetolint.meanwhile = (columns, i) => {
  const known = [
    ["outside ops (Python, or idle)", columns.outside_ops_us],
    ["in ops", columns.in_ops_us],
    ["in API calls", columns.in_api_us],
  ].map(([words, times]) => [Kinetolint.shareOfIdle(times, columns.dur_us, i), words]).filter(([share]) => share);
  if (!known.length) return "";
  return `the launching thread was ${known.map((part) => part.join(" ")).join(", ")}`;
};

/** What is said about a slice, as a title and labelled sentences. */
Kinetolint.describe = (data, links, { lane, i }) => {
  const { duration, counted } = Kinetolint;
  const columns = lane.columns;
  const text = (place) => (place === null ? null : data.texts[place]);
  const at = (time) => {
    const after = time - data.cpu_start_us;
    return `${duration(Math.abs(after))} ${after < 0 ? "before" : "after"} the start of the ${data.unit}`;
  };
  const pairs = [];
  const say = (label, sentence) => {
    if (sentence !== null && sentence !== "") pairs.push([label, sentence]);
  };
  const when = () => {
    say("duration", duration(lane.dur[i]));
    say("start", at(lane.start[i]));
  };
  const together = (noun) => {
    if (columns.count[i] === 1) return;
    say("drawn as one", `${counted(columns.count[i], noun)}, ${duration(columns.sum_us[i])} summed; named and coloured after the longest`);
  };
  const longest = (words) => (words !== null && columns.count[i] > 1 ? `${words} (of the longest)` : words);
  const foreign = () => {
    if (!columns.own[i]) say("belongs to", `no ${data.unit}, or another one`);
  };
  const bandwidth = () => {
    const gigabytes = columns.bytes[i] / (lane.dur[i] * 1e3);
    return lane.dur[i] > 0 ? `, ${Number(gigabytes.toPrecision(3))} GB/s` : "";
  };
  const launchedWork = () => {
    const ops = columns.launched[i];
    if (ops) say("launched", `${counted(ops, "GPU op")}, ${duration(columns.launched_us[i])} summed`);
  };
  const launch = () => {
    const start = columns.launch_us[i];
    if (start === null) return "its launch is not in the file";
    const name = text(columns.launch_name[i] ?? null) ?? "a call of unknown name";
    return `${name}, ${at(start)}${links.launchOf(lane, i) ? "" : ", not drawn"}`;
  };
  const kinds = {
    finding() {
      say("observed", lane.found.messages[i]);
      say("saves", lane.found.savings[i]);
      say("place", lane.found.events[i]);
      when();
      return `${lane.found.code} ${lane.found.titles[i]}`;
    },
    span() {
      when();
      together("event");
      launchedWork();
      foreign();
      return `${columns.is_op[i] ? "op" : "annotation"} ${text(columns.name[i])}`;
    },
    call() {
      when();
      together("call");
      say("called by", longest(text(columns.op_chain[i])));
      launchedWork();
      foreign();
      const words = { launch: "launch call", sync: "waiting call", copy: "copying call", other: "call" };
      return `${words[columns.kind[i]]} ${text(columns.name[i])}`;
    },
    gpu() {
      when();
      together("GPU op");
      if (columns.bytes[i] !== null) say("size", Kinetolint.size(columns.bytes[i]) + bandwidth());
      say("family", `${text(columns.family[i]) ?? (columns.kind[i] === "kernel" ? "unknown" : columns.kind[i])} (${data.groups[lane.groups[i]].label})`);
      say("op chain", longest(text(columns.op_chain[i]) ?? "unknown"));
      say("launch", longest(launch()));
      if (columns.queue_us[i] !== null) say("queue delay", longest(`${duration(columns.queue_us[i])} from the return of the call to the start`));
      foreign();
      return `${columns.kind[i]} ${text(columns.name[i])}`;
    },
    idle() {
      when();
      say("cause", data.causes[columns.cause[i] ?? ""]);
      say("meanwhile", Kinetolint.meanwhile(columns, i));
      const inOp = Kinetolint.shareOfIdle(columns.op_us, columns.dur_us, i);
      if (columns.op_chain[i] !== null) say("longest op", text(columns.op_chain[i]) + (inOp && `, ${inOp}`));
      say("ended by", text(columns.next[i]));
      return `${lane.label}: nothing to do`;
    },
  };
  const title = kinds[lane.kind]();
  if (lane.where) say("on", lane.where);
  return { title, pairs };
};
