// Answers while a plan is written: asks for the page with what is written so far, exchanges the answer, and keeps the
// address, which holds all of it. Without scripts the button does the same.
const form = document.getElementById("plan");
const PAUSE = 250;
let asked = 0, timer = 0;

function written() {
  const query = new URLSearchParams();
  for (const [name, value] of new FormData(form)) if (value.trim() !== "") query.append(name, value);
  return query;
}

async function ask() {
  const mine = ++asked, address = `${form.action.split("#")[0]}?${written()}`;
  const reply = await fetch(address, { cache: "no-store" });
  const fresh = new DOMParser().parseFromString(await reply.text(), "text/html").getElementById("answer");
  if (mine !== asked || fresh === null) return;
  const answer = document.getElementById("answer");
  answer.replaceChildren(...document.importNode(fresh, true).childNodes);
  history.replaceState(null, "", address);
}

form.addEventListener("input", () => {
  clearTimeout(timer);
  timer = setTimeout(() => ask().catch(() => {}), PAUSE);
});
form.dataset.ready = "yes";
