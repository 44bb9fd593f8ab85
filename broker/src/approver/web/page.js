// Shows the open questions, and sends answers.
"use strict";

// After each change, the buttons are disabled for this time, so that nobody approves a question that
// has just appeared or moved under the pointer.
const SETTLE_MS = 700;
const TRIES = 4;
const KEY = "airlock-key";

const open = document.getElementById("open");
const over = document.getElementById("over");
const none = document.getElementById("none");
const notice = document.getElementById("notice");
const status = document.getElementById("status");
// By the id of the question: its card, and when it expires.
const cards = new Map();
let settling;

// The key comes behind the `#` of the page's address, which browsers send to no server.
function key() {
  const fresh = location.hash.slice(1);
  if (fresh) {
    localStorage.setItem(KEY, fresh);
    history.replaceState(null, "", "/");
  }
  return localStorage.getItem(KEY) ?? "";
}
const headers = { "x-airlock-key": key() };

function settle() {
  const set = (disabled) => open.querySelectorAll(".answers button").forEach((it) => { it.disabled = disabled || it.dataset.sent === "yes"; });
  set(true);
  clearTimeout(settling);
  settling = setTimeout(() => set(false), SETTLE_MS);
}

function tell(text) {
  notice.textContent = text;
  notice.hidden = !text;
}

async function send(card, question, said) {
  const buttons = card.querySelectorAll(".answers button");
  const hold = (sent) => buttons.forEach((it) => { it.dataset.sent = sent; it.disabled = sent === "yes"; });
  const told = card.querySelector(".said");
  hold("yes");
  told.textContent = "";
  tell("");
  try {
    const response = await fetch("/answer", {
      method: "POST",
      headers: { ...headers, "content-type": "application/json" },
      body: JSON.stringify({ id: question.id, nonce: question.nonce, ...said }),
    });
    if (response.ok) {
      const word = said.answer === "refuse" ? "refused" : "approved";
      const what = question.outcome_of ? `what became of call ${question.outcome_of}` : `call ${question.call}, is ${word}`;
      tell(`Your answer was received: ${question.tool}, ${what}.`);
      return;
    }
    if (response.status !== 400) {
      const why = response.status === 404 ? "this page may no longer answer, because it was opened again elsewhere" : (await response.json()).why;
      tell(`Your answer about ${question.tool} was not accepted: ${why}.`);
      return;
    }
    told.textContent = `Not accepted: ${(await response.json()).why}`;
  } catch {
    told.textContent = "Not accepted: airlock does not respond. Nothing was allowed.";
  }
  hold("no");
}

function add(question) {
  const card = makeCard(question);
  const on = (kind, said) => card.querySelector(kind).addEventListener("click", () => send(card, question, said()));
  on(".once", () => ({ answer: "allow-once" }));
  on(".declassified", () => ({ answer: "allow-declassified" }));
  on(".no", () => ({ answer: "refuse" }));
  on(".some", () => terms(card));
  on(".happened", () => happened(card));
  on(".not-happened", () => ({ answer: "did-not-happen" }));
  on(".unknown", () => ({ answer: "refuse" }));
  open.append(card);
  cards.set(question.id, { card });
}

function remove(id) {
  const { card } = cards.get(id);
  const next = card.contains(document.activeElement) && (card.nextElementSibling ?? card.previousElementSibling);
  card.remove();
  cards.delete(id);
  // The focus goes to the card, not to a button. A key press that was meant for the removed card then
  // answers nothing.
  if (next) next.focus();
}

function countDown() {
  for (const { card, until } of cards.values()) {
    const told = card.querySelector(".expires");
    if (until === undefined) continue;
    const seconds = Math.max(0, Math.round((until - performance.now()) / 1000));
    const minutes = Math.floor(seconds / 60);
    const text = minutes ? `${minutes} min ${String(seconds % 60).padStart(2, "0")} s` : `${seconds} s`;
    told.textContent = seconds ? `expires in ${text}; then the call is refused` : "expired: the call is refused";
    told.classList.toggle("soon", seconds < 30);
  }
}

function show(questions) {
  const waiting = new Map(questions.filter((it) => it.state === "open").map((it) => [it.id, it]));
  const before = cards.size;
  const gone = [...cards.keys()].filter((id) => !waiting.has(id));
  gone.forEach(remove);
  for (const [id, question] of waiting) {
    if (!cards.has(id)) add(question);
    if (question.suspended) cards.get(id).card.querySelector(".expires").textContent = "waits without a time limit; the run goes on when it is resumed";
    if (question.remaining_ms !== null) cards.get(id).until = performance.now() + question.remaining_ms;
  }
  if (gone.length || cards.size !== before) settle();
  countDown();
  const done = questions.filter((it) => it.state !== "open").reverse();
  over.hidden = !done.length;
  over.querySelector("ul").replaceChildren(...done.map((it) => element("li", `${it.tool}, call ${it.call}: ${it.state}`)));
  none.hidden = waiting.size > 0;
  status.textContent = waiting.size ? `${plural(waiting.size, "question")} open` : "connected, no open questions";
  document.title = waiting.size ? `(${waiting.size}) airlock: approvals` : "airlock: approvals";
}

async function news(seen) {
  for (let tries = 1; ; tries++) {
    try {
      const response = await fetch(`/questions${seen}`, { cache: "no-store", headers });
      return response.ok ? await response.json() : undefined;
    } catch {
      if (tries === TRIES) return undefined;
      await new Promise((wake) => setTimeout(wake, tries * 250));
    }
  }
}

async function watch() {
  let seen = "";
  for (;;) {
    const heard = await news(seen);
    if (!heard) break;
    seen = `?seen=${heard.version}`;
    show(heard.questions);
  }
  [...cards.keys()].forEach(remove);
  none.hidden = true;
  document.title = "airlock: approvals";
  status.textContent = "ended";
  const above = notice.hidden ? "" : `${notice.textContent} `;
  tell(`${above}The run has ended, or the page was opened again elsewhere. You can close this page.`);
}

setInterval(countDown, 500);
watch();
