// What the page does beyond links: filter and keys. Everything is readable without it.
// Text of sessions reaches the page in two ways only: written and escaped by Zelda, or as text nodes.

const query = document.querySelector("#query");
const hits = document.querySelector("#hits");
const status = document.querySelector("#status");
const pages = [...document.querySelectorAll(".page")];
const overview = document.querySelector("#overview");

const fragment = () => decodeURIComponent(location.hash.slice(1));
const byId = (id) => (id ? document.getElementById(id) : null);
const isSeen = (element) => element.checkVisibility({ contentVisibilityAuto: false });
const say = (text) => { status.textContent = text; };

// A place in a conversation that is left out belongs to the page with whose name its own begins.
function currentPage() {
  for (let name = fragment(); name; name = name.slice(0, Math.max(name.lastIndexOf("-"), 0))) {
    const page = byId(name)?.closest(".page");
    if (page) return page;
  }
  return overview;
}

// --- going somewhere --------------------------------------------------------------------------------------------

let here = null;

function arrive() {
  const page = currentPage();
  document.title = `${page.dataset.title} · Zelda CI`;
  document.querySelector("#crumbs").textContent = page === overview ? "" : page.dataset.title;
  mark(null);
}

function mark(element) {
  here?.classList.remove("here");
  here = element;
  if (!element) return;
  element.classList.add("here");
  for (let fold = element.closest("details"); fold; fold = fold.parentElement.closest("details")) {
    if (fold !== element) fold.open = true;
  }
  element.scrollIntoView({ block: "center" });
  const target = element.matches("a, summary, button") ? element : element.querySelector("a, summary, button");
  target?.focus({ preventScroll: true });
}

function isBehind(element) {
  if (!here?.isConnected) return true;
  return Boolean(here.compareDocumentPosition(element) & Node.DOCUMENT_POSITION_FOLLOWING);
}

function step(selector, direction) {
  const found = [...currentPage().querySelectorAll(selector)].filter(isSeen);
  const ordered = direction > 0 ? found : found.reverse();
  const next = ordered.find((element) => element !== here && isBehind(element) === direction > 0);
  if (next) mark(next);
  return Boolean(next);
}

// Failures of this page, then the pages of sessions that failed.
function failure(direction) {
  if (direction < 0 && !here) return;
  if (step("[data-fail]", direction)) return;
  const failed = pages.filter((page) => page.hasAttribute("data-failed") || page === currentPage());
  const next = failed[failed.indexOf(currentPage()) + direction];
  if (next) location.hash = next.id;
  else say("There is no further failure.");
}

function up() {
  const page = currentPage();
  location.hash = page.dataset.up ?? overview.id;
}

function firstDifference() {
  const link = currentPage().querySelector("[data-first], a[href^='#sides-']");
  if (link) location.hash = link.getAttribute("href");
}

function unfold() {
  const folds = [...currentPage().querySelectorAll("details")];
  const isOpening = folds.some((fold) => !fold.open);
  for (const fold of folds) fold.open = isOpening;
}

// --- the filter of suites ---------------------------------------------------------------------------------------

const chosen = { verdict: "", tags: new Set() };
const lines = [...document.querySelectorAll("tr[data-suite]")].map((line) => ({
  line,
  name: line.dataset.suite.toLowerCase(),
  verdict: line.dataset.verdict,
  tags: line.dataset.tags ? line.dataset.tags.split("\n") : [],
}));

function filter() {
  const words = query.value.toLowerCase().split(/\s+/).filter(Boolean);
  let shown = 0;
  for (const { line, name, verdict, tags } of lines) {
    const fits = words.every((word) => name.includes(word) || tags.some((tag) => tag.toLowerCase().includes(word)))
      && (!chosen.verdict || verdict === chosen.verdict)
      && [...chosen.tags].every((tag) => tags.includes(tag));
    line.hidden = !fits;
    shown += fits;
  }
  document.querySelector("#no-suite").hidden = shown > 0;
  hits.textContent = shown === lines.length ? "" : `${shown} of ${lines.length}`;
}

function choose(chip) {
  if (chip.dataset.tag === undefined) {
    chosen.verdict = chip.dataset.verdict;
    for (const other of document.querySelectorAll(".chip[data-verdict]")) other.setAttribute("aria-pressed", other === chip);
  } else {
    const isOn = chosen.tags.delete(chip.dataset.tag);
    if (!isOn) chosen.tags.add(chip.dataset.tag);
    chip.setAttribute("aria-pressed", !isOn);
  }
  filter();
}

// --- what the reader does ---------------------------------------------------------------------------------------

const help = document.querySelector("#help");
const keys = {
  "/": () => { query.focus(); query.select(); },
  j: () => step("[data-stop]", 1),
  k: () => step("[data-stop]", -1),
  n: () => failure(1),
  p: () => failure(-1),
  d: firstDifference,
  u: up,
  e: unfold,
  "?": () => (help.open ? help.close() : help.showModal()),
};

addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  if (event.target === query) {
    if (event.key === "Escape") query.blur();
    return;
  }
  if (help.open && event.key !== "?") return;
  if (Object.hasOwn(keys, event.key)) { event.preventDefault(); keys[event.key](); }
});

query.addEventListener("input", () => {
  if (currentPage() !== overview) {
    location.hash = overview.id;
    // Going somewhere takes the focus away.
    query.focus();
  }
  filter();
});
document.querySelector("#find").addEventListener("submit", (event) => event.preventDefault());
document.querySelector("#filters").addEventListener("click", (event) => {
  const chip = event.target.closest(".chip");
  if (chip) choose(chip);
});
// A bar of a time line leads to its turn or call.
document.querySelector("#main").addEventListener("click", (event) => {
  const bar = event.target.closest("[data-go]");
  if (bar) location.hash = `${bar.closest("svg").dataset.of}-${bar.dataset.go}`;
});
document.querySelector("#help-button").addEventListener("click", keys["?"]);
addEventListener("hashchange", arrive);

document.querySelector("#find").hidden = false;
document.querySelector("#filters").hidden = false;
arrive();
