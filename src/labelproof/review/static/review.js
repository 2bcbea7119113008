// The review: one sample after the other, each decided with a key and kept before the next is shown.

import * as card from "./card.js";
import { Chooser } from "./chooser.js";
import * as filters from "./filters.js";
import * as server from "./server.js";
import { Shelf } from "./shelf.js";

const AHEAD = 4;
const POLL = 1000;
const PATIENCE = 150;

const find = (id) => document.getElementById(id);

const { kind, classes, samples, ...first } = await server.start().catch((error) => {
  card.drawProblem(error.message);
  throw error;
});
const shelf = new Shelf(kind === "images");
// By place: the choice and the new class; null once taken back.
const decisions = new Map();

let revision = 0;
let counts = first.counts;
let queue = [];
let position = 0;
let turn = 0;
let loads = 0;
// What is on the screen; decisions are about this and nothing else.
let shown = null;
let busy = false;
let reachable = true;

function take(state) {
  ({ revision, counts } = state);
  if (state.all) decisions.clear();
  for (const [place, decision] of state.decided) decisions.set(place, decision);
  card.drawCounts(counts);
  if (shown) card.drawDecision(decisions.get(shown.place), classes);
  return state;
}

function say(text) {
  find("spoken").textContent = text;
}

// Show the sample at a position of the queue, or the end of it.
async function show(wanted, before = "") {
  position = Math.max(0, Math.min(wanted, queue.length));
  const mine = ++turn;
  shown = null;
  find("previous").disabled = position === 0;
  find("next").disabled = position >= queue.length;
  if (position === queue.length) {
    showEnd(before);
    return;
  }
  const waiting = setTimeout(() => document.body.classList.add("waiting"), PATIENCE);
  try {
    const sample = await shelf.get(queue[position]);
    if (mine !== turn) return;
    const total = queue.length;
    card.drawSample(sample, {
      kind, classes, position, total, decision: decisions.get(sample.place),
    });
    shown = sample;
    drawLikeliest(sample);
    say(`${before} ${describe(sample)}`);
    prefetch();
  } catch (error) {
    if (mine === turn) card.drawProblem(error.message);
  } finally {
    clearTimeout(waiting);
    if (mine === turn) document.body.classList.remove("waiting");
  }
}

function describe(sample) {
  const decision = decisions.get(sample.place);
  const suggestion = sample.given === sample.suggested
    ? "" : ` suggested ${classes[sample.suggested]},`;
  return `Sample ${position + 1} of ${queue.length}: ${sample.name}, given ${classes[sample.given]},`
    + `${suggestion} ${card.suspicion(sample)}.`
    + (decision ? ` ${card.inWords(decision, classes)}.` : "");
}

function prefetch() {
  const places = queue.slice(position + 1, position + 1 + AHEAD);
  if (position > 0) places.push(queue[position - 1]);
  for (const place of places) shelf.get(place).catch(() => {});
}

function showEnd(before) {
  const { scope, shown: which } = filters.read();
  const skipped = which === "undecided" ? queue.filter((place) => !decisions.get(place)).length : 0;
  const offers = [];
  let title = queue.length ? "That was the last one of these" : "Nothing to look at here";
  if (counts.seen === counts.suspects) title = "All suspects are decided";
  const lines = [find("counts").textContent];
  if (skipped) {
    offers.push([`Look at the ${skipped.toLocaleString("en")} passed over`, () => load()]);
  }
  if (!filters.isWhole()) {
    offers.push(["Look at all of them", () => lookAt({ pair: "", text: "" })]);
  } else if (scope === "suspects" && samples > counts.suspects) {
    offers.push(["Look at everything", () => lookAt({ scope: "everything", shown: "undecided" })]);
  }
  if (which !== "decided" && counts.decided) {
    offers.push(["Look at the decided ones", () => lookAt({ shown: "decided" })]);
  }
  offers.push(["Export CSV", () => find("export").click()]);
  card.drawEnd(title, lines, offers);
  say(`${before} ${title}.`);
}

function lookAt(values) {
  filters.set(values);
  load();
}

// Read the list anew; what is on the screen stays there if it is in the list.
async function load() {
  const mine = ++loads;
  try {
    const found = await server.queue(filters.read());
    if (mine !== loads) return;
    // Not as it was when the list was asked for: someone may have decided and gone on since.
    const current = queue[position];
    queue = found.places;
    filters.drawPairs(found.pairs, classes);
    card.drawProblem("");
    await show(current === undefined ? 0 : Math.max(0, queue.indexOf(current)));
  } catch (error) {
    card.drawProblem(error.message);
  }
}

// After a decision: the next one that still needs one, where only such are looked at.
function following() {
  let next = position + 1;
  if (filters.read().shown === "undecided") {
    while (next < queue.length && decisions.get(queue[next])) next += 1;
  }
  return next;
}

async function whileBusy(action) {
  if (busy) return;
  busy = true;
  const waiting = setTimeout(() => document.body.classList.add("waiting"), PATIENCE);
  try {
    await action();
    card.drawProblem("");
  } catch (error) {
    card.drawProblem(`Not kept. ${error.message}`);
  } finally {
    clearTimeout(waiting);
    document.body.classList.remove("waiting");
    busy = false;
  }
}

function decide(choice, wanted = null) {
  const sample = shown;
  if (!sample) return;
  if (choice === "accept" && sample.given === sample.suggested) return;
  whileBusy(async () => {
    take(await server.decide(sample.place, choice, wanted, revision));
    const words = card.inWords(decisions.get(sample.place), classes);
    card.label(find("last"), `${words}: ${sample.name}`);
    if (queue[position] === sample.place) await show(following(), `${words}.`);
    else say(`${words}.`);
  });
}

function undo() {
  whileBusy(async () => {
    const { places } = take(await server.undo(revision));
    const place = places.at(-1);
    if (place === undefined) {
      card.label(find("last"), "Nothing to take back");
      say("Nothing to take back.");
      return;
    }
    if (places.length > 1) await load();
    let back = queue.indexOf(place);
    if (back < 0) {
      back = position;
      queue.splice(back, 0, place);
    }
    const words = places.length > 1 ? `Taken back: ${places.length.toLocaleString("en")}` : "Taken back";
    await show(back, `${words}.`);
    card.label(find("last"), words);
  });
}

// All undecided suspects with the given and the suggested class of this one; asked first.
async function offerGroup() {
  const sample = shown;
  if (!sample || sample.given === sample.suggested) return;
  const { given, suggested } = sample;
  const wanted = { scope: "suspects", shown: "undecided", given, suggested };
  const places = await server.queue(wanted).then((found) => found.places, () => []);
  find("group-words").textContent =
    `${places.length.toLocaleString("en")} undecided, given ${classes[given]}: all become ${classes[suggested]}. Z takes it back.`;
  find("group-accept").disabled = !places.length;
  find("group").returnValue = "";
  find("group").showModal();
  find("group-accept").onclick = () => whileBusy(async () => {
    const { places: accepted } = take(await server.acceptAll(given, suggested, revision));
    const words = `Accepted ${accepted.length.toLocaleString("en")} of ${classes[given]} as ${classes[suggested]}`;
    card.label(find("last"), `${words}; Z takes it back`);
    say(`${words}.`);
    await load();
  });
}

function move(step) {
  if (busy) return;
  show(position + step);
}

const chooser = new Chooser(classes, (number) => decide("another", number));
const actions = {
  k: () => decide("keep"),
  a: () => decide("accept"),
  c: () => shown && chooser.open(),
  u: () => decide("unsure"),
  g: offerGroup,
  z: undo,
  "+": () => card.zoomBy(2),
  "-": () => card.zoomBy(0.5),
  "?": () => find("keys").showModal(),
  ArrowLeft: () => move(-1),
  ArrowRight: () => move(1),
};
// Classes that are called by a digit have it as their key: whoever sees a 3 presses 3.
const digits = classes.every((name) => /^[0-9]$/.test(name));
if (digits) classes.forEach((name, number) => { actions[name] = () => decide("another", number); });

function drawLikeliest(sample) {
  find("classes").replaceChildren(...sample.likeliest.map(([number, probability], rank) => {
    const key = digits ? classes[number] : String(rank + 1);
    actions[key] = () => decide("another", number);
    const button = card.make("button");
    button.type = "button";
    button.title = classes[number];
    const words = [card.make("span", classes[number]), card.make("small", card.percent(probability))];
    button.append(card.make("kbd", key), ...words);
    button.addEventListener("click", actions[key]);
    return button;
  }));
}

// The key by what it writes; where a keyboard writes no Latin letters, by where it is.
function keyName(event) {
  const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
  if (Object.hasOwn(actions, key) || event.shiftKey) return key;
  return event.code.replace(/^(Key|Digit)/, "").toLowerCase();
}

document.addEventListener("keydown", (event) => {
  // A key that is held down moves on, and decides once: on a button too.
  if (event.repeat && event.target.closest("#actions, #classes, #undo")) event.preventDefault();
  if (document.querySelector("dialog[open]") || event.target.closest("select, input")) return;
  const key = keyName(event);
  const modified = event.ctrlKey || event.metaKey;
  if (!Object.hasOwn(actions, key) || event.altKey || (modified && key !== "z")) return;
  event.preventDefault();
  if (event.repeat && !key.startsWith("Arrow")) return;
  actions[key]();
});

const buttons = {
  keep: "k", accept: "a", "accept-all": "g", another: "c", unsure: "u", undo: "z", previous: "ArrowLeft",
  next: "ArrowRight", help: "?",
};
for (const [id, key] of Object.entries(buttons)) find(id).addEventListener("click", actions[key]);

find("stage").addEventListener("click", (event) => {
  if (event.target.matches("img")) card.zoomBy(2, event);
});

async function poll() {
  if (busy || document.visibilityState !== "visible") return;
  const asked = revision;
  try {
    const state = await server.state(asked);
    // A decision that was answered meanwhile knows more.
    if (asked === revision && state.revision !== revision) take(state);
    if (!reachable) card.drawProblem("");
    reachable = true;
  } catch (error) {
    card.drawProblem(error.message);
    reachable = false;
  }
}

setInterval(poll, POLL);
document.addEventListener("visibilitychange", poll);
window.addEventListener("focus", poll);
filters.listen(load, () => find("main").focus());
take(first);
await load();
