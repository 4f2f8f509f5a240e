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
 * Lanes from top to bottom. A lane has a kind, a label, rows, and slices in columns; every slice
 * has start and dur (microseconds from the start of the window) and a row.
 */
Kinetolint.lanesOf = (data) => {
  const lanes = [];
  for (const found of data.findings) lanes.push(findingLane(found));
  data.threads.forEach((thread, number) => {
    const label = `thread ${thread.tid ?? "unknown"}`;
    if (thread.spans.name.length) lanes.push(spanLane(thread.spans, number, label));
    const calls = thread.spans.name.length ? "runtime calls" : `${label} calls`;
    if (thread.calls.name.length) lanes.push(callLane(thread.calls, number, calls));
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
  function spanLane(spans, thread, label) {
    return lane("span", label, spans.start_us, spans.dur_us, spans.depth, { columns: spans, thread });
  }
  function callLane(calls, thread, label) {
    return lane("call", label, calls.start_us, calls.dur_us, null, { columns: calls, thread });
  }
  function gpuLane(stream, number, groups) {
    const slices = stream.slices;
    const label = `GPU ${stream.device ?? "?"} stream ${stream.stream ?? "?"}`;
    return lane("gpu", label, slices.start_us, slices.dur_us, slices.row, {
      columns: slices, groups, stream: number, device: stream.device,
    });
  }
  function idleLane(device) {
    const idle = device.idle;
    return lane("idle", `GPU ${device.device ?? "?"} idle`, idle.start_us, idle.dur_us, null, {
      columns: idle, device: device.device,
    });
  }
  function lane(kind, label, start, dur, rows, more) {
    const depth = rows ? rows.reduce((most, row) => Math.max(most, row), 0) + 1 : 1;
    return { kind, label, start, dur, row: rows, rows: depth, count: start.length, ...more };
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

  /** The GPU work that a slice of a host lane launched. */
  workOf(lane, i) {
    if (lane.kind === "call") return this.launched.get(`${lane.thread} ${i}`) ?? [];
    const calls = this.callLanes.get(lane.thread);
    if (!calls) return [];
    const from = lane.start[i], to = from + lane.dur[i];
    const work = [];
    for (let call = 0; call < calls.count; call++) {
      if (calls.start[call] >= from && calls.start[call] < to) work.push(...this.workOf(calls, call));
    }
    return work;
  }

  /** The ops and annotations of a thread around a time. */
  around(thread, time) {
    const found = [];
    for (const lane of this.lanes) {
      if (lane.kind !== "span" || lane.thread !== thread) continue;
      for (let i = 0; i < lane.count; i++) {
        if (lane.start[i] <= time && time < lane.start[i] + lane.dur[i]) found.push({ lane, i });
      }
    }
    return found;
  }

  /** Everything to point out with a slice, itself not included. */
  related({ lane, i }) {
    if (lane.kind === "gpu") {
      const launch = this.launchOf(lane, i);
      return launch ? [launch, ...this.around(launch.lane.thread, launch.lane.start[launch.i])] : [];
    }
    if (lane.kind === "call") return [...this.workOf(lane, i), ...this.around(lane.thread, lane.start[i])];
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
  const at = (time) => `${duration(time - data.cpu_start_us)} after the start of the ${data.unit}`;
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
  const foreign = () => {
    if (!columns.own[i]) say("belongs to", `no ${data.unit}, or another one`);
  };
  const bandwidth = () => {
    const gigabytes = columns.bytes[i] / (lane.dur[i] * 1e3);
    return lane.dur[i] > 0 ? `, ${Number(gigabytes.toPrecision(3))} GB/s` : "";
  };
  const launchedWork = () => {
    const work = links.workOf(lane, i);
    const sum = work.reduce((total, { lane: of, i: place }) => total + of.columns.sum_us[place], 0);
    const ops = work.reduce((total, { lane: of, i: place }) => total + of.columns.count[place], 0);
    if (ops) say("launched", `${counted(ops, "GPU op")} drawn here, ${duration(sum)} summed`);
  };
  const kinds = {
    finding() {
      say("observed", lane.found.messages[i]);
      say("saves", lane.found.savings[i]);
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
      say("called by", text(columns.op_chain[i]));
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
      say("op chain", text(columns.op_chain[i]) ?? "unknown");
      const launch = links.launchOf(lane, i);
      if (columns.launch_us[i] === null) say("launch", "its launch is not in the file");
      else say("launch", `${launch ? text(launch.lane.columns.name[launch.i]) : "a call that is not drawn"}, ${at(columns.launch_us[i])}`);
      if (columns.queue_us[i] !== null) say("queue delay", `${duration(columns.queue_us[i])} from the return of the call to the start`);
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
  return { title: kinds[lane.kind](), pairs };
};
