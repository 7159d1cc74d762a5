// What the page does beyond links: unpack conversations, filter, search, keys. Everything is readable without it.
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

// A place in a packed conversation is not there yet: its name begins with that of its page.
function currentPage() {
  for (let name = fragment(); name; name = name.slice(0, Math.max(name.lastIndexOf("-"), 0))) {
    const page = byId(name)?.closest(".page");
    if (page) return page;
  }
  return overview;
}

// --- conversations that are packed ------------------------------------------------------------------------------

const unpacking = new Map();

async function inflated(base64) {
  const bytes = Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).text();
}

// A pause in which the browser shows what is there and hears the reader.
const pause = () => new Promise((resolve) => { setTimeout(resolve, 0); });

async function unpacked(page, packed) {
  const whole = document.createElement("div");
  for (const block of page.querySelectorAll("script[type='application/gzip']")) {
    const part = document.createElement("template");
    // Finished HTML of the report itself, escaped where it was written; the policy of the page holds for it, too.
    part.innerHTML = await inflated(block.textContent.trim());
    block.remove();
    whole.append(part.content);
    if (packed.isConnected) {
      packed.replaceWith(whole);
      arriveAgain(page);
    }
    await pause();
  }
  arriveAgain(page);
}

// The place that the address names may have come only now.
function arriveAgain(page) {
  const target = byId(fragment());
  if (!target || target === page || !page.contains(target)) return;
  if (target.matches(":target")) target.scrollIntoView();
  else location.replace(location.href);
}

function unpack(page) {
  const packed = page.querySelector("[data-packed]");
  if (packed && !unpacking.has(page)) {
    unpacking.set(page, unpacked(page, packed).catch((problem) => {
      say("The conversation cannot be unpacked by this browser; its steps are shown.");
      console.warn(problem);
    }));
  }
  return unpacking.get(page) ?? Promise.resolve();
}

// --- going somewhere --------------------------------------------------------------------------------------------

let here = null;

function arrive() {
  const page = currentPage();
  document.title = `${page.dataset.title} · Zelda CI`;
  document.querySelector("#crumbs").textContent = page === overview ? "" : page.dataset.title;
  query.placeholder = page === overview ? "Filter suites" : "Search this page";
  mark(null);
  if (page !== overview) forget();
  unpack(page);
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
async function failure(direction) {
  await unpack(currentPage());
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

// --- search in a page -------------------------------------------------------------------------------------------

const MAX_HITS = 2000;
let found = [];
let at = -1;

function forget() {
  found = [];
  at = -1;
  if (globalThis.CSS?.highlights) CSS.highlights.clear();
  hits.textContent = "";
}

function rangesOf(root, wanted) {
  const ranges = [];
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node && ranges.length < MAX_HITS; node = walker.nextNode()) {
    if (node.parentElement.closest("script, style")) continue;
    const text = node.data.toLowerCase();
    for (let place = text.indexOf(wanted); place >= 0 && ranges.length < MAX_HITS; place = text.indexOf(wanted, place + wanted.length)) {
      const range = new Range();
      range.setStart(node, place);
      range.setEnd(node, place + wanted.length);
      ranges.push(range);
    }
  }
  return ranges;
}

let searches = 0;

async function search() {
  const wanted = query.value.trim().toLowerCase();
  const mine = ++searches;
  forget();
  if (wanted.length < 2) return;
  const page = currentPage();
  await unpack(page);
  if (mine !== searches) return;
  found = rangesOf(page, wanted);
  if (globalThis.Highlight) CSS.highlights.set("hits", new Highlight(...found));
  hits.textContent = found.length ? `${found.length}${found.length === MAX_HITS ? "+" : ""} ${found.length === 1 ? "hit" : "hits"}` : "no hit";
}

let typing = 0;
let searched = Promise.resolve();

function searchNow() {
  clearTimeout(typing);
  typing = 0;
  searched = search();
}

// Whoever is quick with the Enter key means what stands there now.
async function showHit(direction) {
  if (typing) searchNow();
  await searched;
  if (!found.length) return;
  at = (at + direction + found.length) % found.length;
  const range = found[at];
  const parent = range.startContainer.parentElement;
  for (let fold = parent.closest("details"); fold; fold = fold.parentElement.closest("details")) fold.open = true;
  if (globalThis.Highlight) CSS.highlights.set("hit", new Highlight(range));
  hits.textContent = `${at + 1} of ${found.length}`;
  // What is far away has no size yet: first its entry, then the very line.
  parent.scrollIntoView({ block: "center" });
  requestAnimationFrame(() => {
    const box = range.getBoundingClientRect();
    scrollBy(0, box.top - innerHeight / 2);
  });
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
    if (event.key === "Enter") { event.preventDefault(); showHit(event.shiftKey ? -1 : 1); }
    return;
  }
  if (help.open && event.key !== "?") return;
  if (Object.hasOwn(keys, event.key)) { event.preventDefault(); keys[event.key](); }
});

query.addEventListener("input", () => {
  if (currentPage() === overview) { filter(); return; }
  clearTimeout(typing);
  typing = setTimeout(searchNow, 120);
});
document.querySelector("#find").addEventListener("submit", (event) => event.preventDefault());
document.querySelector("#filters").addEventListener("click", (event) => {
  const chip = event.target.closest(".chip");
  if (chip) choose(chip);
});
// A bar of a picture leads to its turn or call.
document.querySelector("#main").addEventListener("click", (event) => {
  const bar = event.target.closest("[data-go]");
  if (bar) location.hash = `${bar.closest("svg").dataset.of}-${bar.dataset.go}`;
});
document.querySelector("#help-button").addEventListener("click", keys["?"]);
addEventListener("hashchange", () => {
  if (currentPage() !== overview) query.value = "";
  arrive();
});
// Everything folded is printed, and so is what is packed.
addEventListener("beforeprint", () => unpack(currentPage()));

document.querySelector("#find").hidden = false;
document.querySelector("#filters").hidden = false;
document.documentElement.classList.add("scripted");
arrive();
