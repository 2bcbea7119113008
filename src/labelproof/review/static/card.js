// Drawing one sample. Text is only ever set as text: names are the data's, and may be anything.

import { pictureAddress } from "./server.js";

const find = (id) => document.getElementById(id);

const SMALL = 64;
const WIDE = 640;
const LARGE = 1024;
const CLOSEST = 8;

// How much larger than it fits the picture is, and its width where it fits.
let zoom = 1;
let fitted = 0;

export function make(tag, text = "", className = "") {
  const element = document.createElement(tag);
  element.textContent = text;
  if (className) element.className = className;
  return element;
}

export function label(element, text) {
  element.textContent = text;
  element.title = text;
}

function rowOf(cells, scope) {
  const row = make("tr");
  row.append(...cells);
  for (const head of row.querySelectorAll("th")) head.scope = scope;
  return row;
}

function figure(sample, kind, classes) {
  if (sample.image) {
    const { image } = sample;
    image.alt = `Sample ${sample.name}`;
    const largest = Math.max(image.naturalWidth, image.naturalHeight);
    // Few pixels are shown as they are, larger; a filter would invent some.
    image.classList.toggle("pixels", largest <= SMALL);
    image.style.width = `${Math.round(image.naturalWidth * Math.max(1, WIDE / largest))}px`;
    return image;
  }
  if (sample.cells) {
    const table = make("table");
    table.append(make("caption", /^\d+$/.test(sample.name) ? `Row ${sample.name}` : sample.name));
    const names = [sample.given, sample.suggested].map((name) => `typical ${classes[name]}`);
    const heads = ["", "this row", ...(sample.given === sample.suggested ? names.slice(1) : names)];
    table.append(rowOf(heads.map((words) => make("th", words)), "col"));
    for (const [column, cell, unusual, ...typical] of sample.cells) {
      const value = make("td", cell, unusual ? "unusual" : "");
      if (unusual) value.title = "unusual for the given class";
      const others = typical.slice(4 - heads.length).map((words) => make("td", words, "soft"));
      // Prose has no typical value, and is easier to read across the table.
      if (!others.some((other) => other.textContent)) value.colSpan = 1 + others.splice(0).length;
      table.append(rowOf([make("th", column), value, ...others], "row"));
    }
    return table;
  }
  const box = make("div", "", "absent");
  box.append(make("strong", sample.name));
  if (kind === "images") {
    box.append(make("p", "This picture cannot be shown."), make("p", sample.problem, "soft"));
  } else if (kind === "rows") {
    box.append(make("p", "This row is not in the data any more."));
  }
  if (kind !== "unknown") box.append(make("p", "You can still decide about its label.", "soft"));
  return box;
}

export function drawSample(sample, { kind, classes, decision, position, total }) {
  const stage = find("stage");
  stage.replaceChildren(figure(sample, kind, classes));
  zoom = 1;
  stage.classList.remove("zoomed");
  stage.scrollTop = 0;
  stage.dataset.place = sample.place;
  document.body.classList.remove("through");
  label(find("name"), sample.name);
  find("position").textContent = `${(position + 1).toLocaleString("en")} of ${total.toLocaleString("en")}`;
  const [given, suggested] = [classes[sample.given], classes[sample.suggested]];
  label(find("given"), given);
  label(find("suggested"), sample.given === sample.suggested ? "the same" : suggested);
  find("score").textContent = [suspicion(sample), sample.remark].filter(Boolean).join("; ");
  label(find("keep").querySelector("b"), given);
  label(find("accept").querySelector("b"), suggested);
  for (const id of ["accept", "accept-all"]) find(id).disabled = sample.given === sample.suggested;
  drawDecision(decision, classes);
}

// Larger or smaller by a factor, about the point of an event, or the middle.
export function zoomBy(factor, event) {
  const stage = find("stage");
  const image = stage.querySelector("img");
  if (!image) return;
  if (zoom === 1) fitted = image.clientWidth;
  const box = image.getBoundingClientRect();
  const [x, y] = event
    ? [(event.clientX - box.left) / box.width, (event.clientY - box.top) / box.height] : [0.5, 0.5];
  zoom = Math.max(1, zoom * factor);
  if (zoom > CLOSEST) zoom = event ? 1 : CLOSEST;
  stage.classList.toggle("zoomed", zoom > 1);
  image.style.width = `${fitted * zoom}px`;
  stage.scrollTo(x * image.clientWidth - stage.clientWidth / 2, y * image.clientHeight - stage.clientHeight / 2);
  const isReduced = Math.max(image.naturalWidth, image.naturalHeight) === LARGE;
  if (isReduced && !image.src.includes("?")) image.src = `${pictureAddress(stage.dataset.place)}?zoomed`;
}

// A model that has learned too little gives no probabilities.
export function suspicion({ score, trusted }) {
  return trusted ? `${percent(score)} likely to be wrong` : `score ${score.toFixed(2)}, no probability`;
}

export function percent(score) {
  // Never a certainty that is none.
  if (score > 0.99) return "over 99%";
  return score < 0.01 ? "under 1%" : `${Math.round(100 * score)}%`;
}

export function inWords([choice, wanted], classes) {
  if (choice === "unsure") return "Left out as unsure";
  const verb = { keep: "Kept as", accept: "Accepted", another: "Changed to" }[choice];
  return `${verb} ${classes[wanted]}`;
}

export function drawDecision(decision, classes) {
  const line = find("decided");
  line.textContent = decision ? inWords(decision, classes) : "";
  line.className = decision ? decision[0] : "";
  for (const choice of ["keep", "accept", "another", "unsure"]) {
    find(choice).setAttribute("aria-pressed", String(decision?.[0] === choice));
  }
}

// The end of the list: what was done, and what else there is.
export function drawEnd(title, lines, offers) {
  const box = make("div", "", "absent end");
  box.append(make("strong", title), ...lines.map((line) => make("p", line)));
  for (const [text, action] of offers) {
    const button = make("button", text);
    button.type = "button";
    button.addEventListener("click", action);
    box.append(button);
  }
  const stage = find("stage");
  stage.replaceChildren(box);
  stage.dataset.place = "end";
  document.body.classList.add("through");
}

export function drawCounts(counts) {
  const { suspects, seen, changed, unsure, decided } = counts;
  const number = (value) => value.toLocaleString("en");
  const bar = find("progress");
  bar.max = Math.max(suspects, 1);
  bar.value = suspects ? seen : 1;
  const others = decided - seen;
  const parts = [
    `${number(seen)} of ${number(suspects)} suspects`,
    others ? `${number(others)} other${others === 1 ? "" : "s"}` : "",
    `${number(changed)} changed`,
    unsure ? `${number(unsure)} unsure` : "",
  ];
  find("counts").textContent = parts.filter(Boolean).join(", ");
}

export function drawProblem(text) {
  const line = find("problem");
  line.textContent = text;
  line.hidden = !text;
}
