"use strict";
/* The page: light or dark, one trace at a time, from a finding to its place in the timeline. */
const root = document.documentElement;
const figures = [...document.querySelectorAll("figure.timeline")];
const timelines = new Map();

/* A timeline is made when it is first shown: a page can hold many. */
function makeTimeline(figure) {
  if (!timelines.has(figure.id)) timelines.set(figure.id, new Kinetolint.Timeline(figure));
  return timelines.get(figure.id);
}

const dark = window.matchMedia("(prefers-color-scheme: dark)");
const isDark = () => (root.dataset.theme ?? (dark.matches ? "dark" : "light")) === "dark";
const themeButton = document.querySelector("#theme");
themeButton.hidden = false;
themeButton.addEventListener("click", () => {
  root.dataset.theme = isDark() ? "light" : "dark";
  recolor();
});
dark.addEventListener("change", recolor);
recolor();

function recolor() {
  themeButton.textContent = isDark() ? "Light theme" : "Dark theme";
  for (const timeline of timelines.values()) timeline.recolor();
}

/* Paper is white; what is drawn must be too, and sharp. */
let themeBefore;
window.addEventListener("beforeprint", () => {
  themeBefore = root.dataset.theme;
  root.dataset.theme = "light";
  printing(true);
});
window.addEventListener("afterprint", () => {
  if (themeBefore === undefined) delete root.dataset.theme;
  else root.dataset.theme = themeBefore;
  printing(false);
});

function printing(is) {
  for (const finding of document.querySelectorAll("details.finding, details.known")) {
    if (is) finding.dataset.wasOpen = finding.open;
    finding.open = is || finding.dataset.wasOpen === "true";
  }
  for (const panel of document.querySelectorAll("[role=tabpanel]")) panel.hidden = !is && panel.id !== shown;
  if (is) figures.forEach(makeTimeline);
  for (const timeline of timelines.values()) {
    timeline.drawing.printing = is;
    timeline.recolor();
  }
}

/* Several traces: tabs, as https://www.w3.org/WAI/ARIA/apg/patterns/tabs/ describes them. */
let shown = null;
const tabs = [...document.querySelectorAll("nav.traces a")];
if (tabs.length) makeTabs();
else figures.forEach(makeTimeline);

function makeTabs() {
  tabs[0].closest("ul").setAttribute("role", "tablist");
  for (const [number, tab] of tabs.entries()) {
    const panel = document.querySelector(tab.hash);
    tab.parentElement.setAttribute("role", "presentation");
    tab.setAttribute("role", "tab");
    tab.setAttribute("aria-controls", panel.id);
    panel.setAttribute("role", "tabpanel");
    panel.setAttribute("aria-labelledby", tab.id);
    tab.addEventListener("click", (event) => {
      event.preventDefault();
      showTrace(panel.id);
    });
    tab.addEventListener("keydown", (event) => {
      const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (by) showTrace(tabs[(number + by + tabs.length) % tabs.length].hash.slice(1), true);
    });
  }
  for (const link of document.querySelectorAll("a.to-trace")) {
    link.addEventListener("click", () => showTrace(link.hash.slice(1)));
  }
  const addressed = () => tabs.find((tab) => tab.hash === (location.hash || tabs[0].hash));
  window.addEventListener("hashchange", () => {
    const tab = addressed();
    if (tab) showTrace(tab.hash.slice(1));
  });
  showTrace((addressed() ?? tabs[0]).hash.slice(1));
}

function showTrace(id, focus = false) {
  shown = id;
  for (const tab of tabs) {
    const isShown = tab.hash === `#${id}`;
    tab.setAttribute("aria-selected", String(isShown));
    tab.tabIndex = isShown ? 0 : -1;
    document.querySelector(tab.hash).hidden = !isShown;
    if (isShown && focus) tab.focus();
  }
  figures.filter((figure) => figure.closest("section").id === id).forEach(makeTimeline);
}

/* From a finding to where it is in the timeline, one place after the other. */
for (const button of document.querySelectorAll("button.jump")) {
  const places = Number(button.dataset.places);
  if (!places) continue;
  let next = 0;
  button.hidden = false;
  const label = () => {
    button.textContent = places > 1 ? `Show ${next + 1} of ${places} in the timeline` : "Show in the timeline";
  };
  label();
  button.addEventListener("click", () => {
    makeTimeline(document.getElementById(button.dataset.timeline)).showPlace(Number(button.dataset.finding), next);
    next = (next + 1) % places;
    label();
  });
}
