// What the page does beyond links: filter and keys. Everything is readable without it.
// Text of sessions reaches the page in two ways only: written and escaped by Zelda, or as text nodes.

const byId = (id) => document.getElementById(id);
const [overview, find, query, help] = ["overview", "find", "query", "help"].map(byId);
const isSeen = (element) => element.checkVisibility({ contentVisibilityAuto: false });

// A place in a conversation that is left out belongs to the page with whose name its own begins.
function currentPage() {
  for (let name = decodeURIComponent(location.hash.slice(1)); name; name = name.slice(0, Math.max(name.lastIndexOf("-"), 0))) {
    const page = byId(name)?.closest(".page");
    if (page) return page;
  }
  return overview;
}

function arrive() {
  const page = currentPage();
  document.title = `${page.dataset.title} · Zelda CI`;
  byId("crumbs").textContent = page === overview ? "" : page.dataset.title;
  mark(null);
}

let here = null;

function mark(element) {
  here?.classList.remove("here");
  here = element;
  if (!element) return;
  element.classList.add("here");
  for (let fold = element.parentElement.closest("details"); fold; fold = fold.parentElement.closest("details")) fold.open = true;
  element.scrollIntoView({ block: "center" });
  const target = element.matches("a, summary, button") ? element : element.querySelector("a, summary, button");
  target?.focus({ preventScroll: true });
}

function step(selector, direction) {
  const found = [...currentPage().querySelectorAll(selector)].filter((element) => element !== here && isSeen(element));
  const isBehind = (element) => !here || here.compareDocumentPosition(element) & Node.DOCUMENT_POSITION_FOLLOWING;
  const next = direction > 0 ? found.find(isBehind) : found.findLast((element) => !isBehind(element));
  if (next) mark(next);
  return next;
}

// Failures of this page, then the pages of sessions that failed.
function failure(direction) {
  if (step("[data-fail]", direction) || (direction < 0 && !here)) return;
  const page = currentPage();
  const pages = [...document.querySelectorAll(".page")].filter((each) => each === page || "failed" in each.dataset);
  const next = pages[pages.indexOf(page) + direction];
  if (next) location.hash = next.id;
  else byId("status").textContent = "There is no further failure.";
}

function unfold() {
  const folds = [...currentPage().querySelectorAll("details")];
  const isOpening = folds.some((fold) => !fold.open);
  for (const fold of folds) fold.open = isOpening;
}

const keys = {
  "/": ["filter suites", () => query.select()],
  j: ["next item", () => step("[data-stop]", 1)],
  k: ["previous item", () => step("[data-stop]", -1)],
  n: ["next failure", () => failure(1)],
  p: ["previous failure", () => failure(-1)],
  d: ["first difference of two sides", () => currentPage().querySelector("[data-first], a[href^='#sides-']")?.click()],
  u: ["up: from a session to its suite, from a suite to the overview", () => { location.hash = currentPage().dataset.up ?? overview.id; }],
  e: ["unfold everything on this page, or fold it again", unfold],
  "?": ["this list", () => help.togglePopover()],
};
const rows = Object.entries(keys).map(([key, [words]]) => `<div><dt><kbd>${key}</kbd></dt><dd>${words}</dd></div>`);
help.innerHTML = `<dl>${rows.join("")}</dl>`;

addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  if (event.target === query) {
    if (event.key === "Escape") query.blur();
  } else if (Object.hasOwn(keys, event.key)) {
    event.preventDefault();
    keys[event.key][1]();
  }
});

addEventListener("input", (event) => {
  if (event.target === query && currentPage() !== overview) {
    location.hash = overview.id;
    // Going somewhere takes the focus away.
    query.focus();
  }
  const chosen = new FormData(find);
  const words = chosen.get("query").toLowerCase().split(/\s+/);
  const lines = [...document.querySelectorAll("tr[data-suite]")];
  for (const line of lines) {
    const { suite, verdict, tags } = line.dataset;
    line.hidden = !words.every((word) => `${suite}\n${tags}`.toLowerCase().includes(word))
      || ![verdict, ""].includes(chosen.get("verdict"))
      || !chosen.getAll("tag").every((tag) => tags.split("\n").includes(tag));
  }
  const shown = lines.filter((line) => !line.hidden).length;
  byId("no-suite").hidden = shown > 0;
  byId("hits").textContent = shown === lines.length ? "" : `${shown} of ${lines.length}`;
});

// A bar of a time line leads to its turn or call.
addEventListener("click", (event) => {
  const bar = event.target.closest("[data-go]");
  if (bar) location.hash = `${bar.closest("svg").dataset.of}-${bar.dataset.go}`;
});
addEventListener("hashchange", arrive);

find.hidden = false;
byId("filters").hidden = false;
arrive();
