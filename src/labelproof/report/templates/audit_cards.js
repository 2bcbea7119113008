// The look of a sample: on a card, and enlarged.

const CARD_CELLS = 6;
const BRIEF_CELLS = 3;
const EXACT_PIXELS = 64;
const LONG_WORDS = 30;
const isProse = (value) => value.length > LONG_WORDS;
const UNUSUAL = "unusual for the given class";

// Text is only ever set as text: class names and file names may hold anything.
function make(tag, properties, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
}

function lookOf(sample, brief) {
  const look = looks[sample];
  if (look === null) return make("span", { className: "look words" }, goneWords());
  if (look === undefined) return make("span", { className: "look words" }, "no picture in this page");
  if (data.kind === "rows") return cellsOf(look, brief ? BRIEF_CELLS : CARD_CELLS);
  return make("span", { className: "look" }, imageOf(sample));
}

const goneWords = () =>
  data.kind === "rows" ? "the row is not there any more" : "the image cannot be read any more";

function imageOf(sample) {
  const image = make("img", { alt: `sample ${data.names[sample]}`, decoding: "async" });
  image.addEventListener("load", () => {
    const side = Math.max(image.naturalWidth, image.naturalHeight);
    image.classList.toggle("exact", side <= EXACT_PIXELS);
  });
  image.src = looks[sample];
  return image;
}

function valueOf(tag, value, unusual) {
  const names = ["value", isProse(value) ? "prose" : "", unusual ? "unusual" : ""];
  return make(tag, { className: names.filter(Boolean).join(" "), title: unusual ? UNUSUAL : "" }, value);
}

// As many columns as fit, in table order; unusual ones and text are chosen first.
function cellsOf([values, unusual], room) {
  const cells = make("span", { className: "look cells" });
  const weight = (column) => 2 * unusual.includes(column) + isProse(values[column]);
  const columns = [...values.keys()].sort((first, second) => weight(second) - weight(first));
  for (const column of columns.slice(0, room).sort((first, second) => first - second)) {
    cells.append(
      make("span", { className: "column" }, data.columns[column] ?? ""),
      valueOf("span", values[column], unusual.includes(column)),
    );
  }
  const rest = values.length - room;
  if (rest > 0) cells.append(make("span", { className: "column rest" }, `and ${rest} more`));
  return cells;
}

function labelsOf(sample) {
  const labels = make("span", { className: "labels" });
  labels.append(labelLine("given", "labelled", givenName(sample)));
  if (hasSuggestion(sample) || isSuspect(sample)) {
    labels.append(labelLine("suggestion", "suggested", suggestionWords(sample)));
  }
  if (data.votes[sample]) labels.append(labelLine("given", "votes", data.votes[sample]));
  return labels;
}

function labelLine(className, word, name) {
  return make("span", { className, title: name }, make("small", {}, word), ` ${name}`);
}

// The three most probable classes, each with its probability as a bar.
function likelyOf(sample) {
  const list = make("span", { className: "likely" });
  (data.likeliest[sample] ?? []).forEach((label, rank) => {
    const share = data.probability[sample][rank];
    const line = make(
      "span",
      { className: label === data.given[sample] ? "of-given" : "", title: classNames[label] },
      make("span", { className: "class" }, classNames[label]),
      make("span", {}, share < 0.005 ? "< 1%" : share >= 0.995 ? "> 99%" : `${Math.round(100 * share)}%`),
    );
    line.style.setProperty("--share", share);
    list.append(line);
  });
  return list;
}

function scoreOf(sample) {
  const bar = make("span", {});
  bar.style.width = `${100 * data.score[sample]}%`;
  return make(
    "span",
    { className: "score" },
    make("span", { className: "track", ariaHidden: "true" }, bar),
    make("span", { title: SCORE }, scoreWords(sample)),
  );
}

function cardOf(sample, opened, brief = false) {
  const suspect = isSuspect(sample);
  const card = make(
    "button",
    { type: "button", className: suspect ? "card" : "card below" },
    lookOf(sample, brief),
    labelsOf(sample),
    likelyOf(sample),
    scoreOf(sample),
    make("span", { className: "name", title: data.names[sample] }, data.names[sample]),
  );
  if (!suspect) card.append(make("span", { className: "tag" }, "less suspicious"));
  card.addEventListener("click", opened);
  return card;
}

const fact = (name, value) => [make("dt", {}, name), make("dd", {}, value)];

function enlargedLook(sample) {
  const look = looks[sample];
  if (look === null) return make("p", {}, goneWords());
  if (look === undefined) return make("p", {}, "This page holds its name alone.");
  if (data.kind !== "rows") return imageOf(sample);
  const [values, unusual] = look;
  const typical = [data.given[sample], data.suggested[sample]].filter(
    (label, place, both) => data.typical[label] && both.indexOf(label) === place,
  );
  const rows = values.map((value, column) => {
    const cell = valueOf("td", value, unusual.includes(column));
    const others = typical.map((label) => make("td", {}, data.typical[label][column] ?? ""));
    if (isProse(value)) cell.colSpan = 1 + others.splice(0).length;
    return make("tr", {}, make("th", { scope: "row" }, data.columns[column] ?? ""), cell, ...others);
  });
  const heads = ["this row", ...typical.map((label) => `typical ${classNames[label]}`)];
  const head = make("tr", {}, make("td"), ...heads.map((words) => make("th", { scope: "col" }, words)));
  return make("table", {}, make("thead", {}, head), make("tbody", {}, ...rows));
}
