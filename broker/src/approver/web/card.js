// Creates the card of one question. Every text is inserted as text, never as markup.
"use strict";

// Numbers of lines that are shown of a long text: at its beginning and at its end.
const LINES_FIRST = 10;
const LINES_LAST = 3;
// A longer list of names is shown as a number. Each field is listed below anyway.
const NAMES_CHARS_MAX = 80;
// The name of the rows with the questions that rules ask.
const ASKS = "asks";

function element(name, text, kind) {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  if (kind) made.className = kind;
  return made;
}

function plural(count, word) {
  return `${count.toLocaleString("en")} ${word}${count === 1 ? "" : "s"}`;
}

// A piece that continues the line above is in a nested list.
function line(shown, number) {
  const goesOn = Array.isArray(shown);
  const text = goesOn ? shown[0] : shown;
  const made = element("div", text || " ", goesOn ? "goes-on" : undefined);
  made.dataset.number = goesOn ? "↪" : number;
  return made;
}

function lines(shown) {
  let number = 0;
  return shown.map((it) => line(it, Array.isArray(it) ? number : ++number));
}

function field(shown) {
  const box = element("section", undefined, shown.marks.length ? "field marked" : "field");
  const all = lines(shown.lines);
  const head = element("h4", shown.name || "(a field without a name)");
  const size = shown.kind === "text" ? `${plural(shown.lines.filter((it) => !Array.isArray(it)).length, "line")}, ` : "";
  head.append(element("span", `${shown.kind}, ${size}${plural(shown.bytes, "byte")}, ${shown.digest.slice(0, 19)}…`));
  head.lastChild.title = shown.digest;
  box.append(head);
  if (shown.marks.length) {
    const marks = element("ul", undefined, "marks");
    marks.append(...shown.marks.map((mark) => element("li", mark)));
    box.append(marks);
  }
  const text = element("div", undefined, "lines");
  const hidden = all.slice(LINES_FIRST, -LINES_LAST);
  if (all.length <= LINES_FIRST + LINES_LAST + 1) {
    text.append(...all);
  } else {
    const word = hidden.some((it) => it.className === "goes-on") ? "piece" : "line";
    const more = element("button", `${plural(hidden.length, word)} NOT SHOWN HERE: show them`, "more");
    more.type = "button";
    more.addEventListener("click", () => {
      more.replaceWith(...hidden);
      text.classList.add("whole");
      text.tabIndex = 0;
      text.setAttribute("aria-label", `all of ${shown.name}`);
      text.focus();
    });
    text.append(...all.slice(0, LINES_FIRST), more, ...all.slice(-LINES_LAST));
  }
  box.append(text);
  return box;
}

function asks(question) {
  const asker = question.asker;
  const line = question.line ? `, line ${question.line}` : "";
  const run = asker ? ` of run ${asker.run}` : "";
  return [
    "A tool of the server ", element("b", question.server), ", called by the script ",
    element("b", asker ? asker.script : "(unnamed)"), `${line}. Call ${question.call}${run}.`,
  ];
}

function rows(question) {
  const digests = [["arguments", question.digest], ["description of the tool", question.description]];
  if (question.asker) digests.push(["script", question.asker.digest]);
  const all = [
    ...question.rows.filter((it) => it.name !== ASKS).map((it) => [it.name, it.text, it.warns ? "warns" : undefined]),
    ...digests.map(([of, digest]) => ["digests", `${of} ${digest}`, "digests"]),
  ];
  // Consecutive rows with the same name show the name once.
  return all.flatMap(([name, text, kind], at) => [
    element("dt", all[at - 1]?.[0] === name ? "" : name, kind), element("dd", text, kind),
  ]);
}

// A field without a tick that has a folder must stay in it.
function tick(leaf) {
  const label = element("label");
  const box = element("input");
  box.type = "checkbox";
  box.value = leaf.pointer;
  box.checked = leaf.stays;
  label.append(box, " ", element("b", leaf.name), " stays ", element("code", leaf.value || "(empty)"));
  if (leaf.folder) {
    box.dataset.folder = leaf.folder;
    label.append(`; if not ticked, it is ${leaf.folder}`);
  }
  return label;
}

function listed(names) {
  const text = names.join(", ");
  return text.length > NAMES_CHARS_MAX ? plural(names.length, "field") : text;
}

// Describes the other fields that covered calls may have: those of the proposal without a ticked
// field inside.
function besides(question, same) {
  const others = question.proposal.others.filter((other) => !same.some((it) => it.value.startsWith(`${other.pointer}/`)));
  if (others.some((it) => it.pointer === "")) return "The calls may also have any other fields.";
  if (!others.length) return "The calls must not have fields that this call does not have.";
  return `The calls may also have ${listed(others.map((it) => it.name))}, with any value, but no other fields.`;
}

function nameOf(box) {
  return box.parentElement.querySelector("b").textContent;
}

// Describes the fields that must stay in a folder. Long texts are left out: each box names its folder.
function inFolders(boxes) {
  const text = boxes.map((it) => `${nameOf(it)} is ${it.dataset.folder}`).join(" and ");
  if (text.length <= NAMES_CHARS_MAX) return text;
  return `${listed(boxes.map(nameOf))} ${boxes.length === 1 ? "stays in its folder" : "stay in their folders"}`;
}

// Describes the calls that the approval of several calls would cover, as ticked now.
function covers(card, question) {
  const names = (chosen) => listed(chosen.map(nameOf));
  const boxes = [...card.querySelectorAll(".same input")];
  const same = boxes.filter((it) => it.checked);
  const within = boxes.filter((it) => !it.checked && it.dataset.folder);
  const free = boxes.filter((it) => !it.checked && !it.dataset.folder);
  const uses = Number(card.querySelector(".uses").value);
  const scope = question.scopes[card.querySelector(".scope").selectedIndex] ?? question.scopes[0];
  const bound = [];
  if (same.length) bound.push(`${names(same)} ${same.length === 1 ? "stays" : "stay"} equal`);
  if (within.length) bound.push(inFolders(within));
  const equal = bound.length ? `where ${bound.join(" and ")}` : "whatever their arguments are";
  const open = free.length ? ` ${names(free)} may be anything.` : "";
  card.querySelector(".like summary").textContent = `or approve up to ${plural(uses, "call")} ${equal} …`;
  card.querySelector(".some").textContent = "Allow up to";
  card.querySelector(".covers").textContent =
    `This approves calls of ${question.tool} by this script ${equal}.${open} ${besides(question, same)} ` +
    "It no longer applies when the script, the rules or the tool's description change, or when the run has read other kinds of data. " +
    `It ends with the ${scope.word}, and after ${scope.lasts} at the latest.`;
}

function like(card, question) {
  const proposal = question.proposal;
  card.querySelector(".alone").hidden = Boolean(proposal);
  if (!proposal) return;
  const details = card.querySelector(".like");
  details.hidden = false;
  card.querySelector(".uses").value = proposal.uses_max;
  details.querySelector(".same").append(...proposal.fields.map(tick));
  if (proposal.calls > 1) {
    details.querySelector(".examples").append(...proposal.examples.map((text) => element("li", text)));
    details.querySelector(".examples").before(element("p", `${plural(proposal.calls, "similar call")} were asked about so far. The first ones:`, "hint"));
  }
  const scope = card.querySelector(".scope");
  scope.append(...question.scopes.map(({ word }) => {
    const option = element("option", word);
    option.value = word;
    return option;
  }));
  details.addEventListener("input", () => covers(card, question));
  covers(card, question);
}

// Returns the answer that approves several calls, with the ticked fields. If the arguments have too
// many fields to tick, the condition of the proposal applies.
function terms(card) {
  const boxes = [...card.querySelectorAll(".same input")];
  const same = boxes.filter((it) => it.checked).map((it) => it.value);
  return {
    answer: "allow",
    uses_max: Number(card.querySelector(".uses").value),
    scope: card.querySelector(".scope").value,
    ...(boxes.length ? { same } : {}),
  };
}

// The question is what became of an earlier call. No answer allows a call while this is unknown.
function outcome(card, question) {
  card.setAttribute("aria-label", `What became of call ${question.outcome_of} of ${question.tool}?`);
  card.querySelector(".what").textContent = `What became of call ${question.outcome_of} of`;
  for (const kind of [".once", ".declassified", ".no"]) card.querySelector(kind).hidden = true;
  card.querySelector(".outcome").hidden = false;
  // No call of a suspended run waits, so the question simply stays open.
  card.querySelector(".unknown").hidden = question.suspended;
}

// Returns the statement that the call happened, with the result that was typed.
function happened(card) {
  const result = card.querySelector(".result").value.trim();
  return { answer: "happened", ...(result ? { result } : {}) };
}

function makeCard(question) {
  const card = document.getElementById("card").content.firstElementChild.cloneNode(true);
  card.id = `question-${question.id}`;
  card.setAttribute("aria-label", `Allow ${question.tool}?`);
  card.querySelector(".tool").textContent = question.tool;
  card.querySelector(".asker").append(...asks(question));
  card.querySelector(".declassified").hidden = !question.labels.length;
  const prompts = question.rows.filter((it) => it.name === ASKS);
  card.querySelector(".prompts").append(...prompts.map((it) => element("li", it.text)));
  card.querySelector(".size").textContent = `${plural(question.fields.length, "field")}, ${plural(question.bytes, "byte")}`;
  card.querySelector(".fields").append(...question.fields.map(field));
  if (!question.fields.length) card.querySelector(".fields").append(element("p", "The call has no arguments.", "hint"));
  card.querySelector(".rows").append(...rows(question));
  if (question.outcome_of) outcome(card, question);
  else like(card, question);
  card.querySelector("form").addEventListener("submit", (event) => event.preventDefault());
  return card;
}
