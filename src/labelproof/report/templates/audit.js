// The controls of the page: pages of cards, an enlarged sample, pairs of classes, CSV export.

const PAGE_SIZE = 60;
const STRIP = 10;
let current = 0;
let enlarged = 0;

// The page of cards

const cards = () => [...find("gallery").querySelectorAll(".card")];

function listCard(sample, position) {
  const card = cardOf(sample, () => enlarge(position));
  card.tabIndex = -1;
  card.addEventListener("focus", () => setCurrent(position));
  return make("li", {}, card);
}

// The first suspects, above the text.
function showStrip() {
  const samples = [...Array(Math.min(STRIP, data.suspects)).keys()];
  const open = (sample) => () => {
    if (!shown.includes(sample)) reset();
    enlarge(shown.indexOf(sample));
  };
  find("strip")?.append(...samples.map((sample) => make("li", {}, cardOf(sample, open(sample), true))));
}

const firstOfPage = () => state.page * PAGE_SIZE;
const lastPage = () => Math.max(Math.ceil(shown.length / PAGE_SIZE) - 1, 0);

function setCurrent(position) {
  const all = cards();
  all[current - firstOfPage()]?.setAttribute("tabindex", "-1");
  current = position;
  all[current - firstOfPage()]?.setAttribute("tabindex", "0");
}

function showPage(page) {
  state.page = Math.min(Math.max(page, 0), lastPage());
  const start = firstOfPage();
  const samples = shown.slice(start, start + PAGE_SIZE);
  find("gallery").replaceChildren(...samples.map((sample, offset) => listCard(sample, start + offset)));
  setCurrent(start);
  find("pager").hidden = lastPage() === 0;
  find("page").textContent = `Page ${number(state.page + 1)} of ${number(lastPage() + 1)}`;
  find("previous").disabled = state.page === 0;
  find("following").disabled = state.page === lastPage();
  find("status").textContent = statusWords(start, samples.length);
}

function statusWords(start, count) {
  const pair = [
    state.given === "" ? "" : ` labelled ${classNames[Number(state.given)]}`,
    state.suggested === "" || state.suggested === "none"
      ? ""
      : `, suggested ${classNames[Number(state.suggested)]}`,
  ].join("").replace(/^,/, "");
  if (!shown.length) return `No sample${pair} fits.`;
  const what = shown.length === 1 ? "sample" : "samples";
  if (count === shown.length) return `${number(count)} ${what}${pair}.`;
  return `${number(start + 1)} to ${number(start + count)} of ${number(shown.length)} ${what}${pair}.`;
}

function update() {
  shown = choose();
  showPage(0);
  find("export").disabled = shown.length === 0;
  for (const button of document.querySelectorAll(".pair")) {
    const same =
      button.dataset.given === state.given && button.dataset.suggested === state.suggested;
    button.setAttribute("aria-pressed", String(same));
  }
}

function focusCard(position) {
  if (position < 0 || position >= shown.length) return;
  const page = Math.floor(position / PAGE_SIZE);
  if (page !== state.page) showPage(page);
  cards()[position - firstOfPage()].focus();
}

function columns() {
  const all = cards();
  const top = all[0]?.getBoundingClientRect().top;
  const below = all.findIndex((card) => card.getBoundingClientRect().top !== top);
  return below < 0 ? all.length : below;
}

function moveInGallery(event) {
  const steps = {
    ArrowLeft: () => current - 1,
    ArrowRight: () => current + 1,
    ArrowUp: () => current - columns(),
    ArrowDown: () => current + columns(),
    Home: () => firstOfPage(),
    End: () => firstOfPage() + cards().length - 1,
  };
  const step = steps[event.key];
  if (!step || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  focusCard(step());
}

// One sample, enlarged

function enlarge(position) {
  if (position < 0 || position >= shown.length) return;
  const page = Math.floor(position / PAGE_SIZE);
  if (page !== state.page) showPage(page);
  enlarged = position;
  const sample = shown[position];
  find("enlarged-look").replaceChildren(enlargedLook(sample));
  find("enlarged-name").textContent = data.names[sample];
  find("enlarged-facts").replaceChildren(
    ...fact("labelled", givenName(sample)),
    ...fact("suggested", suggestionWords(sample)),
    ...(data.votes[sample] ? fact("votes", data.votes[sample]) : []),
    ...fact("label is wrong", data.trusted ? `${percent(data.score[sample])} probable` : scoreWords(sample)),
    ...fact("likeliest", likelyOf(sample)),
    ...fact("place", `${number(position + 1)} of ${number(shown.length)}`),
  );
  find("enlarged-previous").disabled = position === 0;
  find("enlarged-next").disabled = position === shown.length - 1;
  if (!find("enlarged").open) find("enlarged").showModal();
}

function moveInDialog(event) {
  if (event.key === "ArrowLeft") enlarge(enlarged - 1);
  else if (event.key === "ArrowRight") enlarge(enlarged + 1);
  else return;
  event.preventDefault();
}

// Pairs of classes

function choosePair(given, suggested) {
  Object.assign(state, { given, suggested });
  find("given").value = given;
  find("suggested").value = suggested;
  update();
  find("controls").scrollIntoView({ block: "start" });
}

// A drawn matrix: the cell under the pointer is named below it.

function listenToMatrix(grid) {
  const cells = grid.querySelector(".heat-cells");
  const [words, button] = grid.closest(".matrix").querySelector(".readout").children;
  const heads = [".heat-rows", ".heat-columns"].map((part) => grid.querySelector(part).children);
  const values = matrices[grid.dataset.matrix];
  let at = [0, 0];
  const point = (event) => {
    const box = cells.getBoundingClientRect();
    const side = matrices.order.length;
    const within = (share) => Math.min(Math.max(Math.floor(share * side), 0), side - 1);
    at = [within((event.clientY - box.top) / box.height), within((event.clientX - box.left) / box.width)];
    cells.classList.add("on");
    cells.style.setProperty("--row", at[0]);
    cells.style.setProperty("--column", at[1]);
    heads.forEach((names, axis) => {
      [...names].forEach((name, place) => name.classList.toggle("at", place === at[axis]));
    });
    words.textContent = wordsAt(...at);
    button.hidden = true;
  };
  const wordsAt = (row, column) => {
    const [first, given] = [row, column].map((place) => classNames[matrices.order[place]]);
    const value = values[row][column];
    if (values === matrices.noise) {
      return `${first} labelled ${given}: ${(100 * value).toFixed(1)}% of ${first}.`;
    }
    if (row === column) return `${given}: ${number(value)} labels for which no other is suggested.`;
    return `${first} labelled ${given}: ${number(value)} ${value === 1 ? "suspect" : "suspects"}.`;
  };
  const choose = () => choosePair(...[at[1], at[0]].map((place) => String(matrices.order[place])));
  cells.addEventListener("pointermove", point);
  cells.addEventListener("click", (event) => {
    point(event);
    if (values === matrices.noise || at[0] === at[1] || !values[at[0]][at[1]]) return;
    // A finger hides the cell: the first tap shows its names, the second its samples.
    if (event.pointerType === "touch") button.hidden = false;
    else choose();
  });
  button.addEventListener("click", choose);
}

// The matrix is one stop of the Tab key; arrow keys move to the next number in their direction.
function moveInMatrix(event) {
  const way = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
  const from = event.target.closest(".confusion .pair");
  if (!way || !from) return;
  event.preventDefault();
  const rows = [...from.closest("tbody").rows];
  let [x, y] = [from.parentElement.cellIndex, from.closest("tr").sectionRowIndex];
  for (;;) {
    [x, y] = [x + way[0], y + way[1]];
    const cell = rows[y]?.cells[x];
    if (!cell) return;
    const button = cell.querySelector(".pair");
    if (!button) continue;
    from.tabIndex = -1;
    button.tabIndex = 0;
    button.focus();
    return;
  }
}

// A CSV file of the filtered samples

function save() {
  const address = URL.createObjectURL(new Blob([csvText()], { type: "text/csv" }));
  make("a", { href: address, download: "suspects.csv" }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

// Setting up

function fillClasses(select, labels, isCounted) {
  const counts = new Map();
  labels.forEach((label, sample) => {
    if (isCounted(sample)) counts.set(label, (counts.get(label) ?? 0) + 1);
  });
  const present = [...counts.keys()].sort((first, second) => classRanks()[first] - classRanks()[second]);
  for (const label of present) {
    const name = `${classNames[label]} (${number(counts.get(label))})`;
    select.append(make("option", { value: String(label) }, name));
  }
}

function listen() {
  for (const id of ["given", "suggested", "sort"]) {
    find(id).addEventListener("change", (event) => {
      state[id] = event.target.value;
      update();
    });
  }
  find("text").addEventListener("input", (event) => {
    state.text = event.target.value;
    update();
  });
  find("below")?.addEventListener("change", (event) => {
    state.below = event.target.checked;
    update();
  });
  find("controls").addEventListener("submit", (event) => event.preventDefault());
  find("show-all").addEventListener("click", reset);
  find("export").addEventListener("click", save);
  find("previous").addEventListener("click", () => turnTo(state.page - 1));
  find("following").addEventListener("click", () => turnTo(state.page + 1));
  find("gallery").addEventListener("keydown", moveInGallery);
  find("enlarged").addEventListener("keydown", moveInDialog);
  // The browser would return the focus to the card that was opened first, not last.
  find("enlarged").addEventListener("close", () => focusCard(enlarged));
  find("enlarged-previous").addEventListener("click", () => enlarge(enlarged - 1));
  find("enlarged-next").addEventListener("click", () => enlarge(enlarged + 1));
  find("enlarged-close").addEventListener("click", () => find("enlarged").close());
  document.querySelectorAll(".heat-grid").forEach(listenToMatrix);
  document.querySelector(".confusion")?.addEventListener("keydown", moveInMatrix);
  for (const button of document.querySelectorAll(".pair")) {
    button.addEventListener("click", () => choosePair(button.dataset.given, button.dataset.suggested));
  }
  document.querySelectorAll(".confusion .pair").forEach((button, index) => {
    button.tabIndex = index === 0 ? 0 : -1;
  });
}

function turnTo(page) {
  showPage(page);
  find("controls").scrollIntoView({ block: "start" });
}

function reset() {
  Object.assign(state, defaults);
  find("controls").reset();
  update();
}

fillClasses(find("given"), data.given, () => true);
fillClasses(find("suggested"), data.suggested, hasSuggestion);
if (data.given.some((_, sample) => !hasSuggestion(sample))) {
  find("suggested").append(make("option", { value: "none" }, "no other label"));
}
// A browser that returns to the page may restore the filters, but not the list.
find("controls").reset();
listen();
update();
showStrip();
find("controls").hidden = false;
