// Which samples are looked at, and in what order.

import { make } from "./card.js";

const PAIRS = 1000;

const find = (id) => document.getElementById(id);
const selects = ["scope", "shown", "pair", "order"].map(find);
const PAUSE = 250;

export function read() {
  const [scope, shown, pair, order] = selects.map((select) => select.value);
  const [given = "", suggested = ""] = pair ? pair.split(">") : [];
  return { scope, shown, order, given, suggested, text: find("text").value };
}

export function set(values) {
  for (const [id, value] of Object.entries(values)) find(id).value = value;
}

export const isWhole = () => !find("pair").value && !find("text").value.trim();

// The pairs of classes there are, the commonest first; the one that is chosen stays.
export function drawPairs(pairs, classes) {
  const select = find("pair");
  const chosen = select.value;
  const any = make("option", "any label, any suggestion");
  any.value = "";
  const options = pairs.slice(0, PAIRS).map(([given, suggested, times]) => {
    const option = make("option", `${nameOf(given, suggested, classes)} (${times.toLocaleString("en")})`);
    option.value = `${given}>${suggested}`;
    return option;
  });
  select.replaceChildren(any, ...options);
  select.value = chosen;
  if (select.selectedIndex < 0) select.value = "";
}

// An arrow would leave open which way it points: from what is, or from what should be.
function nameOf(given, suggested, classes) {
  const other = given === suggested ? "nothing else" : classes[suggested];
  return `given ${classes[given]}, suggested ${other}`;
}

// `changed` is called when something else is chosen, `left` when keys should be the page's again.
export function listen(changed, left) {
  for (const select of selects) {
    let byPointer = false;
    select.addEventListener("pointerdown", () => { byPointer = true; });
    select.addEventListener("change", () => {
      changed();
      // Else the next K would be a search in the list. Who uses the arrow keys in it is not done.
      if (byPointer) left();
    });
    select.addEventListener("keydown", (event) => {
      byPointer = false;
      if (event.key === "Escape" || event.key === "Enter") left();
    });
  }
  let waiting = 0;
  find("text").addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(changed, PAUSE);
  });
  find("text").addEventListener("keydown", (event) => {
    if (event.key === "Enter") left();
  });
  find("filters").addEventListener("submit", (event) => event.preventDefault());
  const toggle = find("filter-toggle");
  toggle.addEventListener("click", () => {
    const open = document.body.classList.toggle("filtering");
    toggle.setAttribute("aria-expanded", String(open));
  });
}
