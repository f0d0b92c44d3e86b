// Keeps a page up to date: asks whether there is a new event, and if so exchanges the elements marked with data-live.
const body = document.body;
const hold = document.getElementById("hold");
const asOf = document.getElementById("as-of");
const away = document.getElementById("away");
const FASTEST = 2000, SLOWEST = 30000;
let event = Number(body.dataset.event), wait = FASTEST, held = false, timer = 0, lostAt = null;

const clock = (at) => at.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", second: "2-digit" });

// Times of the server are in UTC; people read their own zone, and find UTC in the title.
export function localTimes(within) {
  for (const time of within.querySelectorAll("time[datetime]")) {
    const at = new Date(time.dateTime);
    if (!Number.isNaN(at.valueOf())) {
      time.textContent = at.toLocaleString([], { dateStyle: "medium", timeStyle: "short" });
    }
  }
}

function isInUse(element) {
  const chosen = document.getSelection();
  return element.contains(document.activeElement) ||
    (chosen !== null && !chosen.isCollapsed && chosen.intersectsNode?.(element)) ||
    (chosen !== null && !chosen.isCollapsed && element.contains(chosen.anchorNode));
}

function exchange(fresh) {
  for (const next of fresh.querySelectorAll("[data-live][id]")) {
    const old = document.getElementById(next.id);
    localTimes(next);
    const isThere = next.dataset.live === "once" && old?.childElementCount > 0;
    if (old !== null && !isThere && !old.isEqualNode(next) && !isInUse(old)) {
      old.replaceWith(document.importNode(next, true));
    }
  }
  document.title = fresh.title;
}

async function look() {
  try {
    const answer = await fetch(`${body.dataset.liveUrl}?after=${event}`, { cache: "no-store" });
    if (answer.status === 200) {
      const page = await fetch(location.href, { cache: "no-store", headers: { "x-equipoise-live": "1" } });
      if (!page.ok || page.redirected) throw new Error(String(page.status));
      const fresh = new DOMParser().parseFromString(await page.text(), "text/html");
      exchange(fresh);
      event = Number(fresh.body.dataset.event);
      wait = FASTEST;
      document.dispatchEvent(new CustomEvent("equipoise:event", { detail: event }));
    } else if (answer.status === 204) {
      wait = Math.min(SLOWEST, wait * 1.5);
    } else {
      throw new Error(String(answer.status));
    }
    asOf.textContent = clock(new Date());
    lostAt = null;
    away.hidden = true;
  } catch {
    lostAt ??= new Date();
    wait = Math.min(SLOWEST, wait * 1.5);
    away.textContent = `No answer since ${clock(lostAt)}; trying again.`;
    away.hidden = false;
  }
}

function later() {
  clearTimeout(timer);
  if (!held && !document.hidden) timer = setTimeout(turn, wait * (0.8 + 0.4 * Math.random()));
}

async function turn() {
  await look();
  later();
}

localTimes(document);
if (!("then" in asOf.dataset)) asOf.textContent = clock(new Date());
if (body.dataset.liveUrl) {
  hold.hidden = false;
  hold.addEventListener("click", () => {
    held = !held;
    hold.setAttribute("aria-pressed", String(held));
    if (held) clearTimeout(timer);
    else turn();
  });
  document.addEventListener("visibilitychange", () => {
    clearTimeout(timer);
    if (!document.hidden && !held) turn();
  });
  later();
}
