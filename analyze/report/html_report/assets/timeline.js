"use strict";
/* One timeline: zooming, panning, choosing a slice, by mouse, by touch and by keyboard. */
Kinetolint.Timeline = class {
  constructor(figure) {
    this.figure = figure;
    this.data = JSON.parse(figure.querySelector("script").textContent);
    this.lanes = Kinetolint.lanesOf(this.data);
    this.links = new Kinetolint.Links(this.lanes);
    this.canvas = figure.querySelector("canvas");
    this.tip = figure.querySelector(".tip");
    this.details = figure.querySelector(".details");
    this.drawing = new Kinetolint.Drawing(this.canvas, this.data, this.lanes);
    this.whole = { start: 0, end: this.data.dur_us };
    this.view = this.whole;
    this.selected = this.hovered = null;
    this.#listen();
    figure.querySelector(".interactive").hidden = false;
    figure.querySelector(".without-script").hidden = true;
    this.resize();
  }

  #listen() {
    const { canvas } = this;
    canvas.addEventListener("wheel", (event) => this.#wheel(event), { passive: false });
    canvas.addEventListener("pointerdown", (event) => this.#press(event));
    canvas.addEventListener("pointermove", (event) => this.#move(event));
    canvas.addEventListener("pointerup", (event) => this.#release(event));
    canvas.addEventListener("pointercancel", () => { this.pressed = null; });
    canvas.addEventListener("pointerleave", () => this.#hover(null));
    canvas.addEventListener("dblclick", (event) => this.#zoomTo(event));
    canvas.addEventListener("keydown", (event) => this.#key(event));
    for (const button of this.figure.querySelectorAll("button[data-do]")) {
      button.addEventListener("click", () => this.#act(button.dataset.do));
    }
    new ResizeObserver(() => this.resize()).observe(canvas.parentElement);
  }

  resize() {
    if (!this.canvas.clientWidth) return;
    this.drawing.fit();
    this.draw();
  }

  recolor() {
    this.drawing.readColors();
    this.resize();
  }

  draw() {
    this.drawing.draw(this.view, this.selected, this.hovered, this.links);
    this.figure.dataset.viewStart = this.view.start;
    this.figure.dataset.viewEnd = this.view.end;
  }

  show(start, end) {
    const shortest = Math.min(0.05, this.whole.end);
    const length = Math.min(Math.max(end - start, shortest), this.whole.end);
    const from = Math.min(Math.max((start + end - length) / 2, 0), this.whole.end - length);
    this.view = { start: from, end: from + length };
    this.draw();
  }

  zoom(factor, around = (this.view.start + this.view.end) / 2) {
    const { start, end } = this.view;
    this.show(around - (around - start) * factor, around + (end - around) * factor);
  }

  pan(share) {
    const by = (this.view.end - this.view.start) * share;
    const room = Math.min(Math.max(by, -this.view.start), this.whole.end - this.view.end);
    this.show(this.view.start + room, this.view.end + room);
  }

  #act(what) {
    const acts = {
      in: () => this.zoom(0.5),
      out: () => this.zoom(2),
      left: () => this.pan(-0.25),
      right: () => this.pan(0.25),
      whole: () => this.show(this.whole.start, this.whole.end),
      gpu: () => this.#showGpu(),
      previous: () => this.#step(-1),
      next: () => this.#step(1),
    };
    acts[what]();
  }

  /** Show the GPU work of the forward, from first to last. */
  #showGpu() {
    let start = Infinity, end = -Infinity;
    for (const lane of this.lanes) {
      if (lane.kind !== "gpu") continue;
      for (let i = 0; i < lane.count; i++) {
        if (!lane.columns.own[i]) continue;
        start = Math.min(start, lane.start[i]);
        end = Math.max(end, lane.start[i] + lane.dur[i]);
      }
    }
    if (start < end) this.show(start - (end - start) * 0.01, end + (end - start) * 0.01);
  }

  #point(event) {
    const box = this.canvas.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  }

  /* Scrolling the page past a timeline must not zoom it: the wheel does once it has the focus. */
  #wheel(event) {
    if (!event.ctrlKey && document.activeElement !== this.canvas) return;
    event.preventDefault();
    if (Math.abs(event.deltaX) > Math.abs(event.deltaY) || event.shiftKey) {
      this.pan(((event.deltaX || event.deltaY) / this.drawing.width) * 0.8);
      return;
    }
    const time = this.drawing.time(this.view, this.#point(event).x);
    this.zoom(Math.exp(Math.min(Math.max(event.deltaY, -300), 300) * 0.002), time);
  }

  #press(event) {
    if (event.button !== 0) return;
    this.pressed = { ...this.#point(event), view: this.view, dragged: false };
    this.canvas.setPointerCapture(event.pointerId);
  }

  #move(event) {
    const { x, y } = this.#point(event);
    if (!this.pressed) {
      this.#hover(this.drawing.at(this.view, x, y), x, y);
      return;
    }
    if (Math.abs(x - this.pressed.x) > 3) this.pressed.dragged = true;
    if (!this.pressed.dragged) return;
    const by = (this.pressed.x - x) / this.drawing.scale(this.view);
    const { start, end } = this.pressed.view;
    const room = Math.min(Math.max(by, -start), this.whole.end - end);
    this.show(start + room, end + room);
  }

  #release(event) {
    const { x, y } = this.#point(event);
    if (this.pressed && !this.pressed.dragged) this.select(this.drawing.at(this.view, x, y, this.selected));
    this.pressed = null;
  }

  #hover(slice, x = 0, y = 0) {
    const changed = slice?.lane !== this.hovered?.lane || slice?.i !== this.hovered?.i;
    this.hovered = slice;
    if (changed) this.draw();
    this.tip.hidden = !slice;
    if (!slice) return;
    if (changed) {
      const { title, pairs } = Kinetolint.describe(this.data, this.links, slice);
      this.tip.replaceChildren(line("strong", this.#brief(title)), ...pairs.slice(0, 5).map(([label, words]) => line("span", `${label}: ${this.#brief(words)}`)));
    }
    const wide = this.tip.offsetWidth;
    this.tip.style.left = `${Math.max(0, Math.min(x + 14, this.drawing.width - wide - 4))}px`;
    this.tip.style.top = `${y + 18}px`;

    function line(tag, words) {
      const element = document.createElement(tag);
      element.textContent = words;
      return element;
    }
  }

  #brief(words) {
    return words.length > 140 ? `${words.slice(0, 139)}\u2026` : words;
  }

  /** Choose a slice and say what it is; null chooses none. */
  select(slice) {
    this.selected = slice;
    this.details.replaceChildren();
    if (slice) {
      const { title, pairs } = Kinetolint.describe(this.data, this.links, slice);
      const heading = document.createElement("p");
      heading.className = "title";
      heading.textContent = title;
      const list = document.createElement("dl");
      for (const [label, words] of pairs) {
        const term = document.createElement("dt");
        const text = document.createElement("dd");
        term.textContent = label;
        text.textContent = words;
        list.append(term, text);
      }
      this.details.append(heading, list);
    }
    this.draw();
  }

  /* The second click of a double one has chosen what lies beneath. */
  #zoomTo(event) {
    const { x, y } = this.#point(event);
    this.select(this.drawing.at(this.view, x, y));
    this.#zoomToSelected();
  }

  #zoomToSelected() {
    if (!this.selected) return;
    const { lane, i } = this.selected;
    const related = this.links.related(this.selected).filter(({ lane: of }) => of.kind === "gpu" || of.kind === "call");
    const slices = [{ lane, i }, ...related];
    const start = Math.min(...slices.map((slice) => slice.lane.start[slice.i]));
    const end = Math.max(...slices.map((slice) => slice.lane.start[slice.i] + slice.lane.dur[slice.i]));
    const margin = Math.max((end - start) * 0.2, lane.dur[i], 0.5);
    this.show(start - margin, end + margin);
  }

  /** Choose the next slice of the lane by start, or the previous one. */
  #step(by) {
    const lane = this.selected?.lane ?? this.lanes.find(({ kind }) => kind === "gpu") ?? this.lanes[0];
    if (!lane) return;
    const place = this.selected ? lane.byStart.indexOf(this.selected.i) + by : this.#firstInView(lane);
    if (place < 0 || place >= lane.count) return;
    this.select({ lane, i: lane.byStart[place] });
    this.#reveal();
  }

  #firstInView(lane) {
    const found = lane.byStart.findIndex((i) => lane.start[i] + lane.dur[i] >= this.view.start);
    return Math.max(found, 0);
  }

  /** Move the view to the chosen slice where it is not in it. */
  #reveal() {
    const { lane, i } = this.selected;
    const half = (this.view.end - this.view.start) / 2;
    const middle = lane.start[i] + Math.min(lane.dur[i] / 2, half);
    if (middle < this.view.start || middle > this.view.end) this.show(middle - half, middle + half);
  }

  /** Choose the slice of the lane above or below that is nearest in time. */
  #changeLane(by) {
    const from = this.selected ? this.lanes.indexOf(this.selected.lane) + by : 0;
    const lane = this.lanes[from];
    if (!lane) return;
    const time = this.selected ? this.selected.lane.start[this.selected.i] : this.view.start;
    let best = 0;
    for (let i = 1; i < lane.count; i++) {
      if (Math.abs(lane.start[i] - time) < Math.abs(lane.start[best] - time)) best = i;
    }
    this.select({ lane, i: best });
    this.#reveal();
  }

  #key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const keys = {
      "+": () => this.zoom(0.5),
      "=": () => this.zoom(0.5),
      "-": () => this.zoom(2),
      ArrowLeft: () => this.pan(-0.2),
      ArrowRight: () => this.pan(0.2),
      ArrowUp: () => this.#changeLane(-1),
      ArrowDown: () => this.#changeLane(1),
      Home: () => this.#act("whole"),
      n: () => this.#step(1),
      p: () => this.#step(-1),
      Enter: () => this.#zoomToSelected(),
      Escape: () => this.select(null),
    };
    if (!keys[event.key]) return;
    event.preventDefault();
    keys[event.key]();
  }

  /** Show a place of a finding, by the numbers of both on the page: choose its mark. */
  showPlace(finding, place) {
    const lane = this.lanes.find(({ found }) => found?.numbers.includes(finding));
    const i = lane.found.numbers.flatMap((number, mark) => (number === finding ? [mark] : []))[place];
    this.select({ lane, i });
    const start = lane.start[i], dur = lane.dur[i];
    const margin = Math.max(dur * 3, this.whole.end / 50, 1);
    this.show(start - margin, start + dur + margin);
    this.canvas.scrollIntoView({ block: "center" });
    this.canvas.focus({ preventScroll: true });
  }
};
