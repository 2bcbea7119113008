// What the page asks of the server. Addresses are relative: the token is in the page's own.

export class Refusal extends Error {}

async function ask(address, options) {
  let answer;
  try {
    answer = await fetch(address, options);
  } catch {
    throw new Refusal(
      "The review cannot be reached: it has ended. Whatever was acknowledged is kept; start it "
        + "again with 'labelproof review' and open the address it prints.",
    );
  }
  if (!answer.ok) throw new Refusal((await answer.text()) || answer.statusText);
  return answer;
}

async function get(address) {
  return (await ask(address)).json();
}

async function post(address, values) {
  const headers = { "Content-Type": "application/json" };
  return (await ask(address, { method: "POST", headers, body: JSON.stringify(values) })).json();
}

export const start = () => get("start");
export const queue = (filters) => get(`queue?${new URLSearchParams(filters)}`);
export const state = (since) => get(`state?since=${since}`);
export const sample = (place) => get(`sample/${place}`);
export const decide = (place, choice, label, since) =>
  post("decide", { place, choice, label, since });
export const acceptAll = (given, suggested, since) => post("accept", { given, suggested, since });
export const undo = (since) => post("undo", { since });
export const pictureAddress = (place) => `picture/${place}`;

// An image that fails tells no reason; asking for it once more does.
export async function whyNoPicture(place) {
  try {
    await ask(pictureAddress(place));
    return "It cannot be shown.";
  } catch (error) {
    return error.message;
  }
}
