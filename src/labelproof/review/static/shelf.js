// Samples that are at hand: asked for before they are needed, forgotten a while after.

import { pictureAddress, sample, whyNoPicture } from "./server.js";

const KEPT = 24;

async function fetchPicture(place) {
  const image = new Image();
  image.src = pictureAddress(place);
  try {
    // Decoded before it is shown: a picture appears at once, and whole.
    await image.decode();
    return { image };
  } catch {
    return { problem: await whyNoPicture(place) };
  }
}

async function fetchSample(place, withPicture) {
  const [facts, picture] = await Promise.all([
    sample(place),
    withPicture ? fetchPicture(place) : {},
  ]);
  return { ...facts, ...picture };
}

export class Shelf {
  #withPicture;
  #kept = new Map();

  constructor(withPicture) {
    this.#withPicture = withPicture;
  }

  // The sample, now or once it is here.
  get(place) {
    const found = this.#kept.get(place) ?? fetchSample(place, this.#withPicture);
    this.#kept.delete(place);
    this.#kept.set(place, found);
    // One that failed is asked for anew the next time.
    found.catch(() => this.#kept.delete(place));
    for (const oldest of this.#kept.keys()) {
      if (this.#kept.size <= KEPT) break;
      this.#kept.delete(oldest);
    }
    return found;
  }
}
