// Draws the charts of a page; they are drawn in light colours, and the style sheet exchanges those in the dark.
const OPTIONS = {
  ast: true, renderer: "svg", actions: false, defaultStyle: false, tooltip: { disableDefaultStyle: true },
};
export const drawn = new Map();

export async function draw(place) {
  const address = new URL(place.dataset.chart, document.baseURI);
  address.searchParams.set("width", Math.floor(place.clientWidth / 20) * 20);
  const answer = await fetch(address, { cache: "no-store" });
  if (!answer.ok) throw new Error(String(answer.status));
  const specification = await answer.json();
  await import(new URL(document.body.dataset.vega, document.baseURI));  // not relative to this script
  const canvas = document.createElement("div");
  canvas.className = "canvas";
  canvas.setAttribute("aria-hidden", "true");  // the place is the picture, and the table has its numbers
  place.replaceChildren(canvas);
  const result = await window.vegaEmbed(canvas, specification, OPTIONS);
  drawn.get(place)?.finalize();
  drawn.set(place, result);
  place.dataset.drawn = "yes";
  return result;
}

async function drawOrSay(place) {
  try {
    await draw(place);
  } catch {
    const said = document.createElement("p");
    said.className = "soft small";
    said.textContent = "This chart could not be drawn; the table below has the numbers.";
    place.replaceChildren(said);
    place.dataset.drawn = "no";
  }
}

async function drawAll() {
  // One after the other: the first is on screen sooner.
  for (const place of document.querySelectorAll("[data-chart]")) if (place.isConnected) await drawOrSay(place);
}

await drawAll();
document.addEventListener("equipoise:event", drawAll);
