// Choosing a class by typing: those that begin with the text first, those that contain it next.

import { make } from "./card.js";

const SHOWN = 60;

const find = (id) => document.getElementById(id);

export class Chooser {
  #dialog = find("chooser");
  #input = find("wanted");
  #list = find("found");
  #classes;
  #taken;
  #recent = [];
  #matches = [];
  #active = 0;

  // `taken` is called with the class that was chosen.
  constructor(classes, taken) {
    this.#classes = classes;
    this.#taken = taken;
    this.#input.addEventListener("input", () => this.#search());
    this.#input.addEventListener("keydown", (event) => this.#key(event));
    this.#dialog.addEventListener("click", (event) => {
      if (event.target === this.#dialog) this.#close();
    });
  }

  get isOpen() {
    return this.#dialog.open;
  }

  open() {
    this.#input.value = "";
    this.#search();
    this.#dialog.showModal();
    this.#input.focus();
  }

  #search() {
    const text = this.#input.value.trim().toLowerCase();
    const numbers = [...this.#classes.keys()];
    if (text) {
      const names = this.#classes.map((name) => name.toLowerCase());
      const first = numbers.filter((number) => names[number].startsWith(text));
      const later = numbers.filter((number) => names[number].indexOf(text) > 0);
      this.#matches = [...first, ...later];
    } else {
      const recent = new Set(this.#recent);
      this.#matches = [...recent, ...numbers.filter((number) => !recent.has(number))];
    }
    this.#active = 0;
    this.#draw();
  }

  #draw() {
    const rows = this.#matches.slice(0, SHOWN).map((number, row) => {
      const item = make("li", this.#classes[number]);
      item.id = `class-${row}`;
      item.role = "option";
      item.title = this.#classes[number];
      item.addEventListener("click", () => this.#take(number));
      return item;
    });
    this.#list.replaceChildren(...rows);
    const hidden = this.#matches.length - rows.length;
    find("found-count").textContent = !rows.length
      ? "No class is called so."
      : hidden > 0 ? `and ${hidden.toLocaleString("en")} more; go on typing` : "";
    this.#mark();
  }

  #mark() {
    const rows = [...this.#list.children];
    rows.forEach((row, place) => row.setAttribute("aria-selected", String(place === this.#active)));
    rows[this.#active]?.scrollIntoView({ block: "nearest" });
    if (rows.length) this.#input.setAttribute("aria-activedescendant", `class-${this.#active}`);
    else this.#input.removeAttribute("aria-activedescendant");
  }

  #key(event) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) {
      const rows = this.#list.children.length;
      this.#active = rows ? (this.#active + step + rows) % rows : 0;
      this.#mark();
      event.preventDefault();
    } else if (event.key === "Escape") {
      event.preventDefault();
      this.#close();
    } else if (event.key === "Enter" && !event.isComposing) {
      event.preventDefault();
      if (this.#matches.length && !event.repeat) this.#take(this.#matches[this.#active]);
    }
  }

  #take(number) {
    this.#recent = [number, ...this.#recent.filter((other) => other !== number)].slice(0, 9);
    this.#close();
    this.#taken(number);
  }

  #close() {
    this.#dialog.close();
    // The browser would take the focus back a moment later, and a key right after would be lost.
    this.#input.blur();
  }
}
