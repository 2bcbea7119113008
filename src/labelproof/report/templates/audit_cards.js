// How a sample looks: on a card, and enlarged.

const CARD_CELLS = 6;
const EXACT_PIXELS = 64;
const LONG_WORDS = 30;
const valueClass = (value) => (value.length > LONG_WORDS ? "value prose" : "value");

// Text is only ever set as text: class names and file names may hold anything.
function make(tag, properties, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
}

function lookOf(sample) {
  const look = looks[sample];
  if (look === null) return make("span", { className: "look words" }, goneWords());
  if (look === undefined) return make("span", { className: "look words" }, "no picture in this page");
  if (data.kind === "rows") return cellsOf(look);
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

function cellsOf(values) {
  const cells = make("span", { className: "look cells" });
  values.slice(0, CARD_CELLS).forEach((value, column) => {
    cells.append(
      make("span", { className: "column" }, data.columns[column] ?? ""),
      make("span", { className: valueClass(value) }, value),
    );
  });
  const rest = values.length - CARD_CELLS;
  if (rest > 0) cells.append(make("span", { className: "column" }, `and ${rest} more`));
  return cells;
}

function labelsOf(sample) {
  const labels = make("span", { className: "labels" });
  labels.append(labelLine("given", "labelled", givenName(sample)));
  if (hasSuggestion(sample) || isSuspect(sample)) {
    labels.append(labelLine("suggestion", "suggested", suggestionWords(sample)));
  }
  return labels;
}

function labelLine(className, word, name) {
  return make("span", { className, title: name }, make("small", {}, word), ` ${name}`);
}

function scoreOf(sample) {
  const bar = make("span", {});
  bar.style.width = `${100 * data.score[sample]}%`;
  return make(
    "span",
    { className: "score" },
    make("span", { className: "track", ariaHidden: "true" }, bar),
    make("span", { title: "the probability that the label is wrong" }, percent(data.score[sample])),
  );
}

function cardOf(sample, position) {
  const suspect = isSuspect(sample);
  const card = make(
    "button",
    { type: "button", className: suspect ? "card" : "card below", tabIndex: -1 },
    lookOf(sample),
    labelsOf(sample),
    scoreOf(sample),
    make("span", { className: "name", title: data.names[sample] }, data.names[sample]),
  );
  if (!suspect) card.append(make("span", { className: "tag" }, "less suspicious"));
  card.addEventListener("click", () => enlarge(position));
  card.addEventListener("focus", () => setCurrent(position));
  return make("li", {}, card);
}

const fact = (name, value) => [make("dt", {}, name), make("dd", {}, value)];

function enlargedLook(sample) {
  const look = looks[sample];
  if (look === null) return make("p", {}, goneWords());
  if (look === undefined) return make("p", {}, "This page holds its name alone.");
  if (data.kind !== "rows") return imageOf(sample);
  const rows = look.map((value, column) =>
    make(
      "tr",
      {},
      make("th", { scope: "row" }, data.columns[column] ?? ""),
      make("td", { className: valueClass(value) }, value),
    ),
  );
  return make("table", {}, make("tbody", {}, ...rows));
}
