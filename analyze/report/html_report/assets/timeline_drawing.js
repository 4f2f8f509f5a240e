"use strict";
/* Draws lanes on a canvas, to scale. */
Kinetolint.HEIGHTS = {
  finding: { row: 12, gap: 1 },
  span: { row: 17, gap: 2 },
  call: { row: 14, gap: 14 },
  gpu: { row: 24, gap: 2 },
  idle: { row: 14, gap: 8 },
};
Kinetolint.AXIS = 28;
Kinetolint.NEAREST = 3; /* pixels around a slice that still point to it */

/* Least width in pixels. Narrow slices are drawn as wide as they are, which the canvas shows by how
   strong they are: a row of short kernels with waits between them must not look busy throughout. */
Kinetolint.LEAST = { finding: 3, span: 0.3, call: 0.3, gpu: 0.1, idle: 0.05 };

/** The ink that can be read on a colour, of which a share covers the background; both as #rrggbb.
    By https://www.w3.org/TR/WCAG22/#dfn-contrast-ratio the better of the two is never below 4.5. */
Kinetolint.inkOn = (color, background = color, share = 1) => {
  const [red, green, blue] = [1, 3, 5].map((at) => {
    const [over, under] = [color, background].map((hex) => parseInt(hex.slice(at, at + 2), 16) / 255);
    return (share * over + (1 - share) * under) ** 2.2;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.179 ? "#000000" : "#ffffff";
};

Kinetolint.Drawing = class {
  constructor(canvas, data, lanes) {
    this.canvas = canvas;
    this.data = data;
    this.lanes = lanes;
    this.readColors();
    this.height = this.#place();
  }

  /** Give every lane its place from top to bottom; return the height of all. */
  #place() {
    let y = Kinetolint.AXIS + 4;
    let kind = null;
    for (const lane of this.lanes) {
      const { row, gap } = Kinetolint.HEIGHTS[lane.kind];
      if (kind !== null && kind !== lane.kind && lane.kind === "gpu" && kind !== "idle") y += 26;
      if (kind === "finding" && lane.kind !== "finding") y += 6;
      lane.y = y;
      y += lane.rows * row + gap;
      kind = lane.kind;
    }
    return y + 4;
  }

  readColors() {
    const style = getComputedStyle(document.documentElement);
    const color = (name) => style.getPropertyValue(`--${name}`).trim();
    this.colors = {};
    for (const name of ["bg", "fg", "dim", "line", "panel", "op", "op-edge", "annotation", "launch", "sync", "copying", "other", "idle", "accent", "error", "warning", "info", "benign"]) {
      this.colors[name] = color(name);
    }
    this.groupColors = this.data.groups.map((group) => color(`g-${group.key}`));
    this.inks = this.groupColors.map((fill) => Kinetolint.inkOn(fill));
    const { launch, sync, copying, other } = this.colors;
    this.callColors = { launch, sync, copy: copying, other };
    this.patterns = new Map();
  }

  /* Fit the bitmap to the width that the page gives, in device pixels. Paper gets a picture from
     another canvas: what is drawn on this one while printing is printed stroke by stroke, and then
     narrow slices are as strong as wide ones. */
  fit() {
    const ratio = Math.max(window.devicePixelRatio || 1, this.printing ? 2 : 1);
    const width = Math.max(this.canvas.clientWidth, 200);
    this.canvas.style.height = `${this.height}px`;
    const bitmap = this.printing ? document.createElement("canvas") : this.canvas;
    this.canvas.width = bitmap.width = Math.round(width * ratio);
    this.canvas.height = bitmap.height = Math.round(this.height * ratio);
    this.context = bitmap.getContext("2d");
    this.context.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.width = width;
    this.gutter = width < 560 ? 78 : 136;
  }

  scale(view) {
    return (this.width - this.gutter - 6) / (view.end - view.start);
  }

  x(view, time) {
    return this.gutter + (time - view.start) * this.scale(view);
  }

  time(view, x) {
    return view.start + (x - this.gutter) / this.scale(view);
  }

  draw(view, selected, hovered, links) {
    const { context } = this;
    context.fillStyle = this.colors.bg;
    context.fillRect(0, 0, this.width, this.height);
    context.font = "11px system-ui, sans-serif";
    context.textBaseline = "middle";
    this.#axis(view);
    context.save();
    context.beginPath();
    context.rect(this.gutter, 0, this.width - this.gutter, this.height);
    context.clip();
    this.#edges(view);
    const focus = hovered ?? selected;
    const related = focus ? links.related(focus) : [];
    const pointedOut = new Set(related.map(({ lane, i }) => `${this.lanes.indexOf(lane)} ${i}`));
    this.#faintLinks(view, links);
    this.lanes.forEach((lane, number) => this.#lane(view, lane, number, focus && pointedOut.size ? pointedOut : null, focus));
    if (focus) this.#links(view, focus, links);
    for (const { lane, i } of related) this.#outline(view, lane, i, this.colors.fg, 1);
    if (hovered) this.#outline(view, hovered.lane, hovered.i, this.colors.fg, 1.5);
    if (selected) this.#outline(view, selected.lane, selected.i, this.colors.accent, 2.5);
    context.restore();
    this.#labels();
    if (this.printing) this.canvas.getContext("2d").drawImage(context.canvas, 0, 0);
  }

  #axis(view) {
    const { context, colors } = this;
    context.textAlign = "center";
    for (const { x, label, middle } of this.#ticks(view)) {
      context.strokeStyle = colors.line;
      context.beginPath();
      context.moveTo(x, Kinetolint.AXIS - 8);
      context.lineTo(x, this.height);
      context.stroke();
      context.fillStyle = colors.dim;
      if (middle !== null) context.fillText(label, middle, 10);
    }
  }

  /** Ticks as far apart as their labels are wide, but so many that at least two have one. */
  #ticks(view) {
    const raw = (view.end - view.start) / Math.max(2, Math.floor((this.width - this.gutter) / 90));
    const power = 10 ** Math.floor(Math.log10(raw));
    const steps = [0.2, 0.5, 1, 2, 5, 10].map((factor) => factor * power);
    let place = steps.findIndex((step) => step >= raw);
    let ticks = this.#ticksEvery(view, steps[place]);
    while (place > 0 && ticks.filter(({ middle }) => middle !== null).length < 2) {
      place -= 1;
      ticks = this.#ticksEvery(view, steps[place]);
    }
    return ticks;
  }

  /** Ticks with labels; where two labels would touch, the second has no middle. */
  #ticksEvery(view, step) {
    const zero = this.data.cpu_start_us;
    const far = Math.max(Math.abs(view.start - zero), Math.abs(view.end - zero));
    const [unit, size] = far >= 1e6 ? ["s", 1e6] : far >= 1e3 ? ["ms", 1e3] : ["us", 1];
    const digits = Math.max(0, -Math.floor(Math.log10(step / size) + 1e-9));
    const ticks = [];
    let labelled = this.gutter;
    for (let n = Math.ceil((view.start - zero) / step); n * step <= view.end - zero; n++) {
      const x = Math.round(this.x(view, n * step + zero)) + 0.5;
      const label = `${((n * step) / size).toFixed(digits)} ${unit}`;
      const half = this.context.measureText(label).width / 2;
      const inside = Math.min(Math.max(x, this.gutter + half), this.width - half - 2);
      const hasRoom = inside - half >= labelled;
      if (hasRoom) labelled = inside + half + 6;
      ticks.push({ x, label, middle: hasRoom ? inside : null });
    }
    return ticks;
  }

  /** Where the forward begins and ends on the CPU. */
  #edges(view) {
    const { context, colors, data } = this;
    context.setLineDash([4, 3]);
    context.strokeStyle = colors.accent;
    for (const time of [data.cpu_start_us, data.cpu_start_us + data.cpu_dur_us]) {
      const x = Math.round(this.x(view, time)) + 0.5;
      context.beginPath();
      context.moveTo(x, Kinetolint.AXIS - 8);
      context.lineTo(x, this.height);
      context.stroke();
    }
    context.setLineDash([]);
  }

  #lane(view, lane, number, pointedOut, focus) {
    const { row: rowHeight } = Kinetolint.HEIGHTS[lane.kind];
    const height = rowHeight - 2;
    for (const i of lane.drawn) {
      const box = this.box(view, lane, i);
      if (!box) continue;
      const isFocus = focus && focus.lane === lane && focus.i === i;
      const dim = pointedOut && !isFocus && !pointedOut.has(`${number} ${i}`) && lane.kind !== "idle" && lane.kind !== "finding";
      this.isPale = Boolean(lane.columns?.own) && !lane.columns.own[i];
      this.context.globalAlpha = (dim ? 0.35 : 1) * (this.isPale ? 0.4 : 1);
      this.#slice(lane, i, box.x, box.y, box.width, height);
    }
    this.context.globalAlpha = 1;
  }

  /** The place of a slice on the canvas; null where none of it is in view. */
  box(view, lane, i) {
    const { row: rowHeight } = Kinetolint.HEIGHTS[lane.kind];
    const from = this.x(view, lane.start[i]), to = this.x(view, lane.start[i] + lane.dur[i]);
    if (to < this.gutter || from > this.width) return null;
    const x = Math.max(from, this.gutter - 2);
    const width = Math.max(Math.min(to, this.width + 2) - x, Kinetolint.LEAST[lane.kind]);
    const y = lane.y + (lane.row ? lane.row[i] : 0) * rowHeight + 1;
    return { x, y, width, height: rowHeight - 2 };
  }

  #slice(lane, i, x, y, width, height) {
    const { context, colors } = this;
    const columns = lane.columns;
    const fill = (color) => {
      context.fillStyle = color;
      context.fillRect(x, y, width, height);
    };
    if (lane.kind === "finding") {
      fill(colors[lane.found.level]);
    } else if (lane.kind === "span") {
      this.#fillAsBusy(lane, i, () => fill(columns.is_op[i] ? colors.op : colors.annotation));
      this.#edge(x, y, width, height, colors["op-edge"]);
      if (columns.count[i] > 1) this.#pattern("dots", colors.fg, x, y, width, height);
      this.#name(this.data.texts[columns.name[i]].replace(/^aten::/, ""), colors.fg, x, y, width, height);
    } else if (lane.kind === "call") {
      const kind = columns.kind[i];
      this.#fillAsBusy(lane, i, () => fill(this.callColors[kind]));
      if (kind === "sync") this.#pattern("diagonal", colors.bg, x, y, width, height, 0.35);
      if (columns.count[i] > 1) this.#pattern("dots", colors.fg, x, y, width, height, 0.6);
      this.#name(this.data.texts[columns.name[i]], this.#inkOn(lane, i, this.callColors[kind]), x, y, width, height);
    } else if (lane.kind === "idle") {
      if (width < 3) {
        context.globalAlpha = 0.5; /* as dense as the pattern of the wide ones */
        fill(colors.idle);
        return;
      }
      this.#pattern("diagonal", colors.idle, x, y, width, height);
      this.#edge(x, y, width, height, colors.idle);
      const words = `${this.data.causes[columns.cause[i] ?? ""]} ${Kinetolint.duration(lane.dur[i])}`;
      const size = context.measureText(words).width + 8;
      if (width > size + 8) {
        context.fillStyle = colors.bg;
        context.fillRect(x + (width - size) / 2, y + 1, size, height - 2);
        context.fillStyle = colors.fg;
        context.textAlign = "center";
        context.fillText(words, x + width / 2, y + height / 2 + 0.5);
      }
    } else {
      this.#gpuSlice(lane, i, x, y, width, height, fill);
    }
  }

  #gpuSlice(lane, i, x, y, width, height, fill) {
    const group = lane.groups[i];
    const { letter, pattern } = this.data.groups[group];
    const merged = lane.columns.count[i] > 1;
    this.#fillAsBusy(lane, i, () => fill(this.groupColors[group]));
    if (pattern) this.#pattern(pattern, this.inks[group], x, y, width, height, 0.35);
    this.#edge(x, y, width, height, this.colors.bg);
    if (merged) this.#pattern("dots", this.colors.fg, x, y, width, height, 0.6);
    const place = lane.columns.name[i];
    const name = this.data.short[place] ?? this.data.texts[place];
    const ink = this.#inkOn(lane, i, this.groupColors[group]);
    if (width >= 34) this.#name(merged ? `${lane.columns.count[i]} ops` : name, ink, x, y, width, height);
    else if (width >= 10) this.#centered(letter, ink, x, y, width, height);
  }

  #fillAsBusy(lane, i, fill) {
    const { context } = this;
    const opaque = context.globalAlpha;
    context.globalAlpha = opaque * this.#strength(lane, i);
    fill();
    context.globalAlpha = opaque;
  }

  /** How strong the colour of a slice is: several drawn as one are the fainter, the less there was. */
  #strength({ columns, dur }, i) {
    return columns.count[i] > 1 ? Math.min(Math.max(columns.sum_us[i] / (dur[i] || 1), 0.1), 1) : 1;
  }

  #inkOn(lane, i, fill) {
    return Kinetolint.inkOn(fill, this.colors.bg, this.#strength(lane, i));
  }

  #edge(x, y, width, height, color) {
    if (width < 3) return;
    this.context.fillStyle = color;
    this.context.fillRect(x + width - 1, y, 1, height);
  }

  #name(name, color, x, y, width, height) {
    const { context } = this;
    const left = Math.max(x, this.gutter) + 3;
    const room = x + width - left - 2;
    if (room < 20) return;
    const shown = this.#cut(name, room);
    if (shown.length < 4 && shown.endsWith("\u2026")) return;
    const alpha = context.globalAlpha;
    context.globalAlpha = this.isPale ? 2 * alpha : alpha;
    context.fillStyle = this.isPale ? this.colors.fg : color;
    context.textAlign = "left";
    context.fillText(shown, left, y + height / 2 + 0.5);
    context.globalAlpha = alpha;
  }

  /** As much of a text as there is room for. */
  #cut(text, room) {
    const most = Math.floor(room / 5.6);
    let shown = text.length > most ? text.slice(0, Math.max(most - 1, 1)) + "\u2026" : text;
    while (shown.length > 2 && this.context.measureText(shown).width > room) {
      shown = shown.slice(0, -2) + "\u2026";
    }
    return shown;
  }

  #centered(letter, color, x, y, width, height) {
    this.context.fillStyle = color;
    this.context.textAlign = "center";
    this.context.fillText(letter, x + width / 2, y + height / 2 + 0.5);
  }

  #pattern(kind, color, x, y, width, height, alpha = 0.8) {
    const { context } = this;
    if (width < 3) return;
    const before = context.globalAlpha;
    context.globalAlpha = before * alpha;
    context.fillStyle = this.#tile(kind, color);
    context.fillRect(x, y, width, height);
    context.globalAlpha = before;
  }

  #tile(kind, color) {
    const key = `${kind} ${color}`;
    if (!this.patterns.has(key)) {
      const tile = document.createElement("canvas");
      tile.width = tile.height = 6;
      const pen = tile.getContext("2d");
      pen.strokeStyle = pen.fillStyle = color;
      pen.lineWidth = 1.2;
      pen.beginPath();
      if (kind === "diagonal" || kind === "cross") for (const at of [-6, 0, 6]) { pen.moveTo(at - 1, 7); pen.lineTo(at + 7, -1); }
      if (kind === "back" || kind === "cross") for (const at of [-6, 0, 6]) { pen.moveTo(at - 1, -1); pen.lineTo(at + 7, 7); }
      if (kind === "dots") pen.fillRect(2, 2, 1.6, 1.6);
      pen.stroke();
      this.patterns.set(key, this.context.createPattern(tile, "repeat"));
    }
    return this.patterns.get(key);
  }

  #outline(view, lane, i, color, width) {
    const box = this.box(view, lane, i);
    if (!box) return;
    this.context.strokeStyle = color;
    this.context.lineWidth = width;
    this.context.strokeRect(box.x - 0.5, box.y - 0.5, Math.max(box.width, 3) + 1, box.height + 1);
    this.context.lineWidth = 1;
  }

  #center(view, { lane, i }, edge) {
    const box = this.box(view, lane, i);
    return box && { x: box.x + Math.min(box.width / 2, 4), y: edge === "top" ? box.y : box.y + box.height };
  }

  /** All launches in view, faintly, while they are few enough to follow. */
  #faintLinks(view, links) {
    const lines = [];
    for (const lane of this.lanes) {
      if (lane.kind !== "gpu") continue;
      for (let i = 0; i < lane.count && lines.length <= 120; i++) {
        const launch = links.launchOf(lane, i);
        if (launch && this.box(view, lane, i) && this.box(view, launch.lane, launch.i)) lines.push([launch, { lane, i }]);
      }
    }
    if (lines.length > 120) return;
    this.context.globalAlpha = 0.35;
    for (const [from, to] of lines) this.#line(view, from, to, this.colors.dim, 1);
    this.context.globalAlpha = 1;
  }

  #links(view, focus, links) {
    if (focus.lane.kind === "gpu") {
      const launch = links.launchOf(focus.lane, focus.i);
      if (launch) this.#line(view, launch, focus, this.colors.accent, 2);
    } else if (focus.lane.kind === "call" || focus.lane.kind === "span") {
      for (const work of links.workOf(focus.lane, focus.i).slice(0, 200)) {
        const launch = links.launchOf(work.lane, work.i);
        if (launch) this.#line(view, launch, work, this.colors.accent, 1.2);
      }
    }
  }

  #line(view, from, to, color, width) {
    const start = this.#center(view, from, "bottom");
    const end = this.#center(view, to, "top");
    if (!start || !end) return;
    const { context } = this;
    context.strokeStyle = color;
    context.lineWidth = width;
    context.beginPath();
    context.moveTo(start.x, start.y);
    const middle = (start.y + end.y) / 2;
    context.bezierCurveTo(start.x, middle, end.x, middle, end.x, end.y);
    context.stroke();
    context.lineWidth = 1;
  }

  #labels() {
    const { context, colors } = this;
    context.fillStyle = colors.bg;
    context.fillRect(0, 0, this.gutter - 1, this.height);
    context.textAlign = "left";
    for (const lane of this.lanes) {
      const { row } = Kinetolint.HEIGHTS[lane.kind];
      context.fillStyle = lane.kind === "finding" ? colors[lane.found.level] : lane.kind === "call" || lane.kind === "idle" ? colors.dim : colors.fg;
      context.fillText(this.#cut(lane.label, this.gutter - 6), 2, lane.y + row / 2);
    }
    context.strokeStyle = colors.line;
    context.beginPath();
    context.moveTo(this.gutter - 0.5, 0);
    context.lineTo(this.gutter - 0.5, this.height);
    context.stroke();
  }

  /** The slice on top at a point of the canvas, or that beneath the one given; null for none. */
  at(view, x, y, above = null) {
    const lane = this.lanes.find(({ kind, y: top, rows }) => y >= top && y < top + rows * Kinetolint.HEIGHTS[kind].row);
    if (!lane || x < this.gutter) return null;
    const row = Math.floor((y - lane.y) / Kinetolint.HEIGHTS[lane.kind].row);
    let hits = [], nearest = Kinetolint.NEAREST;
    for (const i of lane.drawn) {
      if (lane.row && lane.row[i] !== row) continue;
      const box = this.box(view, lane, i);
      if (!box) continue;
      const away = Math.max(box.x - x, x - box.x - box.width, 0);
      if (away < nearest) [hits, nearest] = [[], away];
      if (away === nearest) hits.push(i);
    }
    if (!hits.length) return null;
    const under = above?.lane === lane ? hits.indexOf(above.i) : -1;
    return { lane, i: hits.at(under > 0 ? under - 1 : -1) };
  }
};
