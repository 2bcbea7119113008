// The listed samples: their facts, filters and order.

const find = (id) => document.getElementById(id);
const data = JSON.parse(find("data").textContent);
const matrices = JSON.parse(find("matrices").textContent);
const looks = JSON.parse(find("looks").textContent);
const collator = new Intl.Collator(undefined, { numeric: true });
const number = (value) => value.toLocaleString("en-US");

// Without characters that reverse the text after them.
const classNames = data.classes.map((name) => name.replace(/[\u202a-\u202e\u2066-\u2069]/g, ""));

// Suspects alone, unless there is none.
const defaults = { given: "", suggested: "", sort: "score", text: "", below: !data.suspects };
const state = { ...defaults, page: 0 };
let shown = [];

// Facts about a sample

const isSuspect = (sample) => sample < data.suspects;
const hasSuggestion = (sample) => data.suggested[sample] !== data.given[sample];
const givenName = (sample) => classNames[data.given[sample]];
const suggestedName = (sample) => classNames[data.suggested[sample]];
const SCORE = data.trusted
  ? "the probability that the label is wrong"
  : "no probability: too little was learned";
const scoreWords = (sample) =>
  data.trusted ? percent(data.score[sample]) : `score ${data.score[sample].toFixed(2)}`;
// Nothing is certain: what rounds to 100% is shown as more than 99.9%.
const percent = (score) => (score > 0.999 ? "> 99.9%" : `${(100 * score).toFixed(1)}%`);

function suggestionWords(sample) {
  if (hasSuggestion(sample)) return suggestedName(sample);
  return isSuspect(sample) ? "no other label stands out" : "the same";
}

// Filtering and sorting

function once(compute) {
  let result;
  return () => (result ??= compute());
}

const searchable = once(() =>
  data.names.map((name, sample) =>
    [name, givenName(sample), hasSuggestion(sample) ? suggestedName(sample) : ""]
      .concat(data.kind === "rows" ? (looks[sample]?.[0] ?? []) : [])
      .join("\n")
      .toLowerCase(),
  ),
);

// Names are compared once; sorting then compares numbers.
function ranks(names) {
  const order = names.map((_, index) => index);
  order.sort((first, second) => collator.compare(names[first], names[second]));
  const rank = new Int32Array(names.length);
  order.forEach((index, position) => (rank[index] = position));
  return rank;
}
const classRanks = once(() => ranks(classNames));
const nameRanks = once(() => ranks(data.names));

function isChosen(sample) {
  if (!state.below && !isSuspect(sample)) return false;
  if (state.given !== "" && data.given[sample] !== Number(state.given)) return false;
  if (state.suggested === "none") return !hasSuggestion(sample);
  if (state.suggested === "") return true;
  return hasSuggestion(sample) && data.suggested[sample] === Number(state.suggested);
}

// Samples are listed by score, so that a sample's number is its rank.
const orders = {
  score: (first, second) => first - second,
  least: (first, second) => second - first,
  given: (first, second) => classDifference(data.given, first, second) || first - second,
  suggested: (first, second) => classDifference(data.suggested, first, second) || first - second,
  name: (first, second) => nameRanks()[first] - nameRanks()[second],
};

function classDifference(labels, first, second) {
  return classRanks()[labels[first]] - classRanks()[labels[second]];
}

function choose() {
  const text = state.text.trim().toLowerCase();
  const chosen = [];
  for (let sample = 0; sample < data.names.length; sample += 1) {
    if (isChosen(sample) && (!text || searchable()[sample].includes(text))) chosen.push(sample);
  }
  return state.sort === "score" ? chosen : chosen.sort(orders[state.sort]);
}

// A CSV file of the filtered samples

function csvCell(text) {
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

function csvText() {
  const lines = shown.map((sample) =>
    [data.names[sample], data.classes[data.given[sample]], data.classes[data.suggested[sample]], data.score[sample].toFixed(4)]
      .map(csvCell)
      .join(","),
  );
  return ["sample,given,suggested,score", ...lines, ""].join("\n");
}
