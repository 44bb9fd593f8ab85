// Puts questions on the page and sends answers. Every text goes in as text,
// never as markup; what is on the page already is not moved by what comes.
"use strict";

const LINES_SHOWN = 14;
// So that nobody approves what has just appeared under the pointer or the finger.
const SETTLE_MS = 700;

const open = document.getElementById("open");
const over = document.getElementById("over");
const none = document.getElementById("none");
const status = document.getElementById("status");
const cards = new Map();

function element(name, text, kind) {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  if (kind) made.className = kind;
  return made;
}

function plural(count, word) {
  return `${count.toLocaleString("en")} ${word}${count === 1 ? "" : "s"}`;
}

function field(shown) {
  const box = element("div", undefined, shown.marks.length ? "field marked" : "field");
  const head = element("h3", shown.name);
  const lines = plural(shown.lines.length, "line");
  head.append(element("span", `${lines}, ${plural(shown.bytes, "byte")}, ${shown.digest.slice(0, 19)}…`));
  box.append(head);
  if (shown.marks.length) {
    const marks = element("ul", undefined, "marks");
    marks.append(...shown.marks.map((mark) => element("li", mark)));
    box.append(marks);
  }
  const text = element("div", undefined, "lines");
  const put = (from, to) => text.append(...shown.lines.slice(from, to).map((line) => element("div", line || " ")));
  put(0, LINES_SHOWN);
  box.append(text);
  const hidden = shown.lines.length - LINES_SHOWN;
  if (hidden > 0) {
    const more = element("button", `${plural(hidden, "more line").toUpperCase()} NOT SHOWN: show them`, "more");
    more.type = "button";
    more.addEventListener("click", () => {
      put(LINES_SHOWN, shown.lines.length);
      text.tabIndex = 0;
      text.focus();
      more.remove();
    });
    box.append(more);
  }
  return box;
}

function about(list, question) {
  const row = (name, text) => list.append(element("dt", name), element("dd", text));
  for (const reason of question.reasons) row("why", reason);
  for (const note of question.notes) row("note", note);
  if (question.labels) row("labels", question.labels.length ? question.labels.join(", ") : "none: the run has read nothing that is labelled");
  row("digest", question.digest);
}

function like(card, question) {
  const proposal = question.proposal;
  if (!proposal) return;
  const details = card.querySelector(".like");
  details.hidden = false;
  card.querySelector(".several").hidden = false;
  card.querySelector(".uses").value = proposal.uses_max;
  const equal = proposal.same.length ? proposal.same.join(", ") : "no field";
  details.querySelector("summary").textContent = `like it: ${equal} stays equal (change)`;
  const ticks = details.querySelector(".same");
  for (const shown of question.fields) {
    const label = element("label");
    const tick = element("input");
    tick.type = "checkbox";
    tick.value = shown.pointer;
    tick.checked = proposal.same.some((it) => it === shown.pointer || it.startsWith(`${shown.pointer}/`));
    tick.addEventListener("change", () => { details.dataset.changed = "yes"; });
    label.append(tick, ` ${shown.name} stays as it is here`);
    ticks.append(label);
  }
  details.querySelector(".examples").append(...proposal.examples.map((text) => element("li", text)));
  const scope = card.querySelector(".scope");
  scope.append(...question.scopes.map((word) => {
    const option = element("option", word);
    option.value = word;
    return option;
  }));
}

function terms(card) {
  const said = {
    answer: "allow",
    uses_max: Number(card.querySelector(".uses").value),
    scope: card.querySelector(".scope").value,
  };
  const details = card.querySelector(".like");
  // Left alone, it is the proposal itself that is answered.
  if (details.dataset.changed) {
    said.same = [...details.querySelectorAll("input:checked")].map((tick) => tick.value);
  }
  return said;
}

async function send(card, question, said) {
  const buttons = card.querySelectorAll(".answers button");
  const told = card.querySelector(".said");
  buttons.forEach((button) => { button.disabled = true; });
  told.textContent = "";
  try {
    const response = await fetch("/answer", {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ id: question.id, nonce: question.nonce, ...said }),
    });
    if (response.ok) return;
    const { why } = await response.json();
    told.textContent = `Not accepted: ${why}`;
    if (response.status !== 400) return;
  } catch {
    told.textContent = "Not accepted: airlock does not answer. Nothing was allowed by this.";
  }
  buttons.forEach((button) => { button.disabled = false; });
}

function add(question) {
  const card = document.getElementById("card").content.firstElementChild.cloneNode(true);
  card.id = `question-${question.id}`;
  card.querySelector(".tool").textContent = question.tool;
  const line = question.line ? `, line ${question.line} of the script` : "";
  card.querySelector(".where").textContent = `call ${question.call}${line}`;
  card.querySelector(".prompts").append(...question.prompts.map((text) => element("li", text)));
  about(card.querySelector(".about"), question);
  card.querySelector(".fields").append(...question.fields.map(field));
  like(card, question);
  const on = (kind, said) => card.querySelector(kind).addEventListener("click", () => send(card, question, said()));
  on(".once", () => ({ answer: "allow-once" }));
  on(".no", () => ({ answer: "refuse" }));
  on(".some", () => terms(card));
  card.querySelector("form").addEventListener("submit", (event) => event.preventDefault());
  open.append(card);
  cards.set(question.id, card);
  setTimeout(() => card.querySelectorAll(".answers button").forEach((button) => { button.disabled = false; }), SETTLE_MS);
}

function show(questions) {
  const waiting = new Set(questions.filter((question) => question.state === "open").map((question) => question.id));
  for (const [id, card] of cards) {
    if (waiting.has(id)) continue;
    card.remove();
    cards.delete(id);
  }
  for (const question of questions) {
    if (question.state === "open" && !cards.has(question.id)) add(question);
  }
  const done = questions.filter((question) => question.state !== "open").reverse();
  over.replaceChildren(...done.map((question) => element("p", `call ${question.call} of ${question.tool}: ${question.state}`)));
  none.hidden = waiting.size > 0;
  status.textContent = waiting.size ? `${plural(waiting.size, "question")} open` : "connected";
  document.title = waiting.size ? `(${waiting.size}) airlock: approvals` : "airlock: approvals";
}

async function watch() {
  let seen = "";
  for (;;) {
    try {
      const response = await fetch(`/questions${seen}`, { cache: "no-store" });
      if (!response.ok) break;
      const news = await response.json();
      seen = `?seen=${news.version}`;
      show(news.questions);
    } catch {
      break;
    }
  }
  show([]);
  none.hidden = true;
  status.textContent = "The run is over, or this page was opened again elsewhere. You can close it.";
}

watch();
