"use strict";
/* Tables that can be sorted by a column and filtered by text. */
for (const table of document.querySelectorAll("table.sortable")) makeSortable(table);
for (const input of document.querySelectorAll("input[data-filters]")) makeFilter(input);

function makeSortable(table) {
  const body = table.tBodies[0];
  const headings = [...table.tHead.rows[0].cells];
  headings.forEach((heading, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = heading.textContent.trim();
    button.title = heading.title;
    heading.replaceChildren(button);
    button.addEventListener("click", () => sortBy(column));
  });

  function sortBy(column) {
    const heading = headings[column];
    const first = heading.dataset.numeric ? "descending" : "ascending";
    const second = first === "ascending" ? "descending" : "ascending";
    const order = heading.getAttribute("aria-sort") === first ? second : first;
    for (const other of headings) other.removeAttribute("aria-sort");
    heading.setAttribute("aria-sort", order);
    const rows = [...body.rows].map((row) => ({ row, value: row.cells[column].dataset.value }));
    rows.sort((one, other) => compare(one.value, other.value, Boolean(heading.dataset.numeric), order));
    body.append(...rows.map(({ row }) => row));
  }

  /* What is unknown comes last, whichever the order. */
  function compare(one, other, numeric, order) {
    if (one === "" || other === "") return (one === "") - (other === "");
    const difference = numeric ? Number(one) - Number(other) : one.localeCompare(other, "en");
    return order === "ascending" ? difference : -difference;
  }
}

function makeFilter(input) {
  const table = document.getElementById(input.dataset.filters);
  const status = document.getElementById(input.getAttribute("aria-describedby"));
  const rows = [...table.tBodies[0].rows];
  const texts = rows.map(textOf);
  input.closest(".filter").hidden = false;
  input.addEventListener("input", () => {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0, time = null;
    rows.forEach((row, number) => {
      row.hidden = !words.every((word) => texts[number].includes(word));
      if (row.hidden) return;
      shown += 1;
      if (row.dataset.time !== "") time += Number(row.dataset.time);
    });
    const sum = shown ? `, ${Kinetolint.duration(time)} summed` : "";
    status.textContent = words.length ? `${shown} of ${rows.length} names${sum}` : "";
  });

  /* Not the labels of the details, which all rows have. */
  function textOf(row) {
    const parts = [...row.querySelectorAll("summary, dd, td:not(.name)")];
    return parts.map((part) => part.textContent.toLowerCase()).join(" ");
  }
}
