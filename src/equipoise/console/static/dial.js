// Moves the dial: all positions come with one fetch, and moving asks nobody. Words are those of the server.
const dial = document.getElementById("dial");
const slider = document.getElementById("slider");
const button = document.getElementById("button");
const stated = document.getElementById("stated");
const rows = [...document.querySelectorAll("#people tr")];
const TEXTS = ["gain", "gain_of", "gain_range", "best", "best_of", "best_now", "cost", "cost_of", "cost_now", "sentence"];
const texts = TEXTS.map((name) => [name, document.getElementById(name)]);
let positions = [], present = 0, view = null;

async function fetchPositions() {
  const answer = await fetch(dial.dataset.positions, { cache: "no-store" });
  if (!answer.ok) throw new Error(String(answer.status));
  ({ positions, present } = await answer.json());
  slider.max = positions.length - 1;
}

function setEnd(line, people) {
  line.setAttribute("x2", 6.1 + 7.2 * (people - 1));
  if (people) line.removeAttribute("display");
  else line.setAttribute("display", "none");
}

function show() {
  const place = Number(slider.value), here = positions[place];
  for (const [name, element] of texts) element.textContent = here[name];
  slider.setAttribute("aria-valuetext", here.spoken);
  here.people.forEach((people, k) => {
    setEnd(rows[k].querySelector(".on"), people);
    rows[k].querySelector(".many").textContent = people;
  });
  for (const link of document.querySelectorAll(".presets a")) {
    if (Number(link.dataset.place) === place) link.setAttribute("aria-current", "true");
    else link.removeAttribute("aria-current");
  }
  if (button !== null) {
    button.textContent = here.button;
    button.disabled = place === present;
    for (const input of stated.querySelectorAll("input")) input.value = here.dial[input.name] ?? "";
  }
  mark(here, place);
}

function mark(here, place) {
  if (view === null) return;
  const there = here.times === null || place === present ? [] : [{ times: here.times, gain: here.gain_per_100 }];
  view.data("here", there).run();
}

async function findChart() {
  const { drawn } = await import("./charts.js");  // resolves when the charts are drawn
  view = drawn.get(document.getElementById("prices"))?.view ?? null;
  show();
}

await fetchPositions();
document.getElementById("look").hidden = true;
slider.hidden = false;
show();
slider.addEventListener("input", show);
for (const link of document.querySelectorAll(".presets a")) {
  link.addEventListener("click", (event) => {
    event.preventDefault();
    slider.value = link.dataset.place;
    show();
  });
}
dial.dataset.ready = "yes";
// New rewards move prices a little: the dial stays where it is looked at, as near as there is a position.
document.addEventListener("equipoise:event", async () => {
  const before = Number(positions[slider.value].number);
  await fetchPositions().catch(() => {});
  const away = (one) => Math.abs(Number(one.number) - before);
  slider.value = positions.reduce((best, one, k) => (away(one) < away(positions[best]) ? k : best), 0);
  show();
});
if (document.getElementById("prices") !== null) findChart().catch(() => {});
