"use strict";
(() => {
  const BATCH = 24;
  const CHANGES = 2;
  const UNASKED = 480;  // so many cards come by scrolling alone, so that what is below them can be reached
  const STATUS = {
    "found": "found by the search", "seed-deviates": "the seed input itself", "unstable": "unstable: it did not repeat",
    "nonfinite": "NaN or infinity in an output", "failed": "a model could not answer",
  };

  const element = (tag, properties = {}, ...children) => {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(properties)) {
      if (name in made) made[name] = value; else made.setAttribute(name, value);
    }
    made.append(...children.filter((child) => child !== null && child !== undefined));
    return made;
  };

  async function copy(button, text) {
    let done = true;
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      const area = element("textarea", { value: text, className: "visually-hidden" });
      document.body.append(area);
      area.select();
      done = document.execCommand("copy");
      area.remove();
      button.focus();
    }
    button.textContent = done ? "Copied" : "Select and copy it by hand";
    setTimeout(() => { button.textContent = "Copy"; }, 2000);
  }

  function offerCopy(button) {
    button.hidden = false;
    button.setAttribute("aria-live", "polite");
    button.addEventListener("click", () => copy(button, button.parentElement.querySelector("code").textContent));
  }

  document.querySelectorAll("button.copy").forEach(offerCopy);

  const form = document.getElementById("filters");
  if (!form) return;

  const data = JSON.parse(document.getElementById("data").textContent);
  const names = Object.keys(data.findings);  // each with a list of all findings' values
  const rows = data.findings.seed.map((_, position) => Object.fromEntries(names.map((name) => [name, data.findings[name][position]])));
  const findings = rows.map((row, position) => ({ row, position, pairs: pairsOf(row), text: textOf(row) }));
  const seeds = new Set(data.findings.seed);
  const cards = document.getElementById("cards");
  const more = document.getElementById("more");
  const shown = document.getElementById("shown");
  const fields = ["pair", "text", "cause", "device", "status", "state", "l2", "seed", "sort"].filter((name) => form.elements[name]);
  const isReplay = fields.includes("state");
  const severity = data.by_disagreement ? "disagreement" : "severity";
  const top = isReplay ? "state" : "severest";
  const states = isReplay ? [...form.elements.state.options].map((option) => option.value) : [];
  let matching = [];
  let made = 0;
  let unasked = UNASKED;
  const observer = "IntersectionObserver" in window && new IntersectionObserver((entries) => {
    if (made < unasked && !more.hidden && entries.some((entry) => entry.isIntersecting)) addBatch();
  }, { rootMargin: "0px 0px 800px 0px" });

  function pairsOf(row) {
    const [original, deployed] = [row.original, row.deployed];
    if (row.detections?.pairs.length) return row.detections.pairs;
    if (row.transcripts?.changes.length) return row.transcripts.changes.map((words) => words.join("→"));
    return [original === null || deployed === null ? "none" : `${original}-${deployed}`];
  }

  function whole(parts) {
    return parts.map(([text]) => text).join("");
  }

  function textOf(row) {
    const transcripts = row.transcripts;
    return transcripts ? [transcripts.original, transcripts.deployed].map(whole).join("\n").toLowerCase() : "";
  }

  const className = (number) => number === null ? "–" : data.classes[number] ?? String(number);
  const classWords = (number) => className(number) === String(number) ? `class ${number}` : className(number);
  const named = (text) => text.replace(/\bclass (\d+)\b/g, (_, number) => classWords(Number(number)));
  const number = (value, digits = 3) => value === null ? "–" : String(Number(value.toPrecision(digits)));
  const margin = (value) => value === null ? "–" : value === 0 || value >= 0.01 ? value.toFixed(3) : value.toPrecision(2);
  const counted = (count, one, many = `${one}s`) => `${count.toLocaleString("en")} ${count === 1 ? one : many}`;

  function state() {
    return Object.fromEntries(fields.map((name) => [name, form.elements[name].value.trim()]));
  }

  function hashOf(values) {
    const kept = Object.entries(values).filter(([, value]) => value !== "");
    return kept.length ? `#${new URLSearchParams(kept)}` : "";
  }

  function readHash() {
    const text = location.hash.slice(1);
    if (text && !text.includes("=")) return false;  // an anchor of the page
    const wanted = new URLSearchParams(text);
    for (const name of fields) {
      const field = form.elements[name];
      field.value = wanted.get(name) ?? "";
      if (field.selectedIndex === -1) field.value = "";
    }
    return text !== "";
  }

  function keepHash() {
    try {
      history.replaceState(null, "", hashOf(state()) || location.pathname + location.search);
    } catch { /* a page that may not change its address still filters */ }
  }

  function wantedBy({ pair = "", text = "", cause, device, status = "", state = "", l2, seed }) {
    const farthest = l2 === "" ? Infinity : Number(l2);
    const exact = seeds.has(seed);
    const part = seed.toLowerCase();
    const words = text.toLowerCase();
    return ({ row, pairs, text: own }) =>
      (pair === "" || pairs.includes(pair)) &&
      (words === "" || own.includes(words)) &&
      (cause === "" || row.cause === cause) &&
      (device === "" || row.device === device) &&
      (status === "" || row.status === status) &&
      (state === "" || row.replayed.state === state) &&
      (l2 === "" || (row.l2 ?? (row.status === "seed-deviates" ? 0 : Infinity)) <= farthest) &&
      (seed === "" || (exact ? row.seed === seed : row.seed.toLowerCase().includes(part)));
  }

  const ORDERS = {
    severest: (one, other) => (other.row[severity] ?? -1) - (one.row[severity] ?? -1),
    state: (one, other) => states.indexOf(one.row.replayed.state) - states.indexOf(other.row.replayed.state)
      || ORDERS.severest(one, other),
    clearest: (one, other) => (other.row.snr_db ?? -Infinity) - (one.row.snr_db ?? -Infinity) || 0,
    nearest: (one, other) => (one.row.l2 ?? Infinity) - (other.row.l2 ?? Infinity) || 0,
    seed: () => 0,
  };

  function apply() {
    const values = state();
    const order = ORDERS[values.sort || top];
    matching = findings.filter(wantedBy(values));
    matching.sort((one, other) => order(one, other) || one.position - other.position);
    cards.replaceChildren();
    made = 0;
    unasked = UNASKED;
    const matter = isReplay ? "input" : "finding";
    shown.textContent = matching.length === findings.length
      ? `All ${counted(findings.length, matter)}.`
      : `${matching.length.toLocaleString("en")} of ${counted(findings.length, matter)}.`;
    for (const link of document.querySelectorAll("a[data-pair]")) {
      if (link.dataset.pair === values.pair) link.setAttribute("aria-current", "true");
      else link.removeAttribute("aria-current");
    }
    addBatch();
  }

  function addBatch() {
    const next = matching.slice(made, made + BATCH);
    cards.append(...next.map(card));
    made += next.length;
    more.hidden = made >= matching.length;
    more.textContent = `Show more (${(matching.length - made).toLocaleString("en")} left)`;
    if (!observer) return;
    observer.unobserve(more);  // observed anew it tells at once whether it is still in sight
    observer.observe(more);
  }

  function picture(place, alt, caption) {
    const address = data.pictures[place];
    const exact = address.startsWith("data:image/png") || address.endsWith(".png");
    const image = element("img", { loading: "lazy", decoding: "async", alt, className: exact ? "exact" : "" });
    image.src = address;
    return element("figure", {}, image, element("figcaption", { textContent: caption }));
  }

  const SIGNS = { lost: "−", ghost: "+", class: "≠", shift: "↔" };  // as report.css has them

  function mark([kind, number, label, score, present, left, top, right, bottom]) {
    const percent = (value) => `${(100 * value).toFixed(2)}%`;
    const words = `${classWords(label)}${score === null ? "" : ` ${score.toFixed(2)}`}`;
    const tag = element("span", { className: "tag" }, kind ? `${SIGNS[kind]}${number}` : "",
      element("span", { className: "name", textContent: `${kind ? " " : ""}${words}` }));
    const made = element("span", { className: `mark ${kind || "same"}${present ? "" : " absent"}` }, tag);
    Object.assign(made.style, { left: percent(left), top: percent(top), width: percent(right - left), height: percent(bottom - top) });
    tag.classList.add(top > 0.09 ? "above" : "inside", left + right > 1 ? "at-right" : "at-left");
    return made;
  }

  function boxed(place, alt, caption, marks) {
    const figure = picture(place, alt, caption);
    const overlay = element("div", { className: "overlay", "aria-hidden": "true" }, ...marks.map(mark));
    const frame = element("div", { className: "boxed" });
    figure.prepend(frame);
    frame.append(figure.querySelector("img"), overlay);
    return figure;
  }

  function seenBy(marks) {
    const seen = marks.filter((one) => one[4]).map((one) => classWords(one[2]));
    const counts = seen.reduce((known, one) => known.set(one, (known.get(one) ?? 0) + 1), new Map());
    return [...counts].map(([name, count]) => count > 1 ? `${count} ${name}` : name).join(", ") || "nothing";
  }

  function boxPictures(row) {
    const { trigger, seed } = row.detections;
    const few = Math.max(...[...trigger, ...(seed ?? [])].map((marks) => marks.filter((one) => one[0]).length)) <= 3;
    const box = element("div", { className: `pictures boxes${few ? " few" : ""}` });
    const models = ["original", "deployed"];
    const put = (place, what, caption, drawn) => models.forEach((model, number) => box.append(
      boxed(place, `${what} with the ${model} model's boxes: ${seenBy(drawn[number])}`, `${caption}, ${model}`, drawn[number])));
    const kind = row.replayed?.kind;
    const itself = row.seed_picture === null;
    if (!itself && seed) put(row.seed_picture, `Seed input ${row.seed}`, "seed", seed);
    else if (!itself) box.append(picture(row.seed_picture, `Seed input ${row.seed}`, "seed input"));
    const [what, caption] = kind === "seed" ? ["Seed input", "seed"] : kind ? ["Stored trigger", "stored trigger"]
      : ["Triggering input", itself ? "trigger (the seed itself)" : "trigger"];
    put(row.trigger_picture, what, caption, trigger);
    if (row.difference_picture !== null) {
      const factor = number(row.amplification, 2);
      box.append(picture(row.difference_picture, `Difference of seed and trigger, amplified ${factor} times; grey is no change`,
        `difference × ${factor}`));
    }
    return box;
  }

  function differences(row) {
    const detections = row.detections;
    if (!detections) return null;
    const list = element("ol", { className: "differences" });
    detections.differences.forEach(([kind, label, deployed, figures, ...margins], place) => {
      const what = kind === "class" ? `${classWords(label)} → ${classWords(deployed)}` : classWords(label);
      list.append(element("li", {},
        element("span", { className: `sign ${kind}`, "aria-hidden": "true", textContent: `\u2009${place + 1}` }),
        element("span", {}, element("strong", { textContent: `${data.kinds[kind]} ${what}` }),
          ` ${figures} `, element("span", { className: "muted", textContent: `margins ${margins.map(margin).join(", ")}` }))));
    });
    if (detections.more) list.append(element("li", { className: "muted", textContent: `${detections.more} more` }));
    return list.children.length ? list : null;
  }

  function maps(row) {
    if (!row.maps) return null;
    const alts = ["Map of the original", "Map of the deployed model", "Where both maps differ"];
    const captions = ["map, original", "map, deployed", "difference"];
    const box = element("div", { className: "pictures maps" });
    row.maps.forEach((place, number) => box.append(picture(place, `${alts[number]}: ${row.difference}`, captions[number])));
    return box;
  }

  function elements(row) {
    const rows = row.values?.elements ?? [];
    if (!rows.length) return null;
    const line = (kind, texts) => element("tr", {}, ...texts.map((text, place) =>
      element(kind || !place ? "th" : "td", { scope: kind ? "col" : "row", className: place ? "number" : "", textContent: text })));
    const body = element("tbody", {}, ...rows.map((texts) => line("", texts)));
    return element("table", { className: "elements" },
      element("caption", { textContent: "Elements that differ most" }),
      element("thead", {}, line("head", ["element", "original", "deployed"])), body);
  }

  function pictures(row) {
    if (row.detections?.trigger) return boxPictures(row);
    const box = element("div", { className: data.wide ? "pictures wide" : "pictures" });
    const names = saysOf(row);
    if (row.seed_picture !== null) {
      const label = row.label === null ? "" : `, label ${className(row.label)}`;
      box.append(picture(row.seed_picture, `Seed input ${row.seed}${label}`, "seed input"));
    }
    const itself = row.seed_picture === null;
    const kind = row.replayed?.kind;
    const [what, caption] = kind === "seed" ? ["Seed input", "seed input"] : kind ? ["Stored trigger", "stored trigger"]
      : ["Triggering input", itself ? "trigger: the seed input itself" : "trigger"];
    box.append(picture(row.trigger_picture, `${what}: ${names}`, caption));
    if (row.difference_picture !== null) {
      const factor = number(row.amplification, 2);
      box.append(picture(row.difference_picture, `Difference of both, amplified ${factor} times; grey is no change`,
        `difference × ${factor}`));
    }
    return box;
  }

  function saysOf(row) {
    const transcripts = row.transcripts;
    if (row.difference !== null) return named(row.difference);
    if (transcripts) return `original returns “${whole(transcripts.original)}”, deployed model returns “${whole(transcripts.deployed)}”`;
    return `original says ${className(row.original)}, deployed model says ${className(row.deployed)}`;
  }

  function spectrogram(place, alt, seconds) {
    const image = element("img", { loading: "lazy", decoding: "async", alt });
    image.src = data.pictures[place];
    const labels = (className, texts) => element("span", { className, "aria-hidden": "true" },
      ...texts.map((text) => element("span", { textContent: text })));
    const highest = data.rate / 2000;
    return element("div", { className: "plot" },
      labels("hertz", [`${number(highest)} kHz`, number(highest / 2), "0"]), image,
      labels("seconds", ["0", number(seconds / 2), `${number(seconds)} s`]));
  }

  function sound(row, which, caption, what) {
    const player = element("audio", { controls: true, preload: "none", "aria-label": `${what}, to be heard` });
    player.src = data.pictures[row[`${which}_sound`]];
    const axes = `${number(row.sound_seconds)} s from left to right, 0 to ${number(data.rate / 2000)} kHz upwards`;
    return element("figure", {}, element("figcaption", { textContent: caption }), player,
      spectrogram(row[`${which}_picture`], `Spectrogram of ${what}; ${axes}`, row.sound_seconds));
  }

  function sounds(row) {
    const box = element("div", { className: "sounds" });
    const kind = row.replayed?.kind;
    const itself = row.seed_sound === null;
    if (!itself) box.append(sound(row, "seed", "seed input", `seed input ${row.seed}`));
    const [what, caption] = kind === "seed" ? ["seed input", "seed input"] : kind ? ["stored trigger", "stored trigger"]
      : ["trigger", itself ? "trigger: the seed input itself" : "trigger"];
    box.append(sound(row, "trigger", caption, `${what} from ${row.seed}: ${saysOf(row)}`));
    if (row.difference_picture !== null) {
      box.append(element("figure", {}, element("figcaption", { textContent: "difference: red louder, blue quieter" }),
        spectrogram(row.difference_picture, "Spectrogram of the trigger's level less the seed's, in dB", row.sound_seconds)));
    }
    return box;
  }

  function marked(parts) {
    const text = element("dd");
    if (!parts.length) text.append(element("i", { className: "muted", textContent: "(nothing)" }));
    for (const [part, differs] of parts) text.append(differs ? element("mark", { textContent: part }) : part);
    return text;
  }

  function texts(row) {
    const transcripts = row.transcripts;
    if (!transcripts) return null;
    const lines = [["original", marked(transcripts.original)], ["deployed", marked(transcripts.deployed)]];
    if (transcripts.seed) {
      const [original, deployed] = transcripts.seed;
      const same = original === deployed;
      const plain = (text) => marked(text ? [[text, 0]] : []);
      lines.push([same ? "both, of the seed" : "original, of the seed", plain(original)]);
      if (!same) lines.push(["deployed, of the seed", plain(deployed)]);
    }
    return element("dl", { className: "texts" },
      ...lines.map(([name, text]) => element("div", {}, element("dt", { textContent: name }), text)));
  }

  function enlarge(box) {
    const button = element("button", { type: "button", className: "enlarge", textContent: "Enlarge", "aria-pressed": "false" });
    button.addEventListener("click", () => {
      const large = box.classList.toggle("large");
      button.setAttribute("aria-pressed", String(large));
      button.textContent = large ? "Small pictures" : "Enlarge";
    });
    return button;
  }

  function bar(value, which, isTop) {
    const finite = typeof value === "number";
    const track = element("span", { className: "track" }, element("i"));
    track.firstChild.style.width = `${finite ? Math.max(0, Math.min(100, 100 * value)) : 0}%`;
    const words = finite ? `${(100 * value).toFixed(1)}\u202f%` : value ?? "–";
    const cell = element("span", { className: "bar-cell" }, track, element("span", { className: "value", textContent: words }));
    return element("td", { className: isTop ? `${which} top` : which }, cell);
  }

  function bars(row) {
    if (!row.scores.length) return null;
    const head = element("tr", {}, element("th", { scope: "col", textContent: "class" }));
    for (const which of ["original", "deployed"]) {
      head.append(element("th", { scope: "col", className: which },
        element("span", { className: "swatch", "aria-hidden": "true" }), which));
    }
    const body = element("tbody");
    for (const [place, original, deployed] of row.scores) {
      const name = element("span", { className: "name", textContent: className(place), title: className(place) });
      body.append(element("tr", {}, element("th", { scope: "row" }, name),
        bar(original, "original", place === row.original), bar(deployed, "deployed", place === row.deployed)));
    }
    return element("table", { className: "bars" },
      element("caption", { className: "visually-hidden", textContent: "Probabilities of both models" }),
      element("thead", {}, head), body);
  }

  function facts(row) {
    const [label, device] = [className(row.label), row.device || "–"];
    const transcripts = row.transcripts !== null || row.difference !== null;
    const values = row.values;
    const linf = row.linf === null ? "–" : data.rate ? row.linf.toLocaleString("en") : counted(row.linf, "level");
    const list = [
      [data.rate ? "L2 of samples" : "L2", number(row.l2)],
      [data.rate ? "Linf, 16 bits" : "Linf", linf],
      ...(data.rate ? [["SNR", row.snr_db === null ? "–" : `${row.snr_db.toFixed(1)} dB`]] : []),
      ...(values ? [["distance", number(row.disagreement)]] : data.by_disagreement ? [["scores apart", margin(row.disagreement)]] : []),
      ...(values && values.mean_iou !== null ? [["mean IoU", margin(values.mean_iou)]] : []),
      ...(values && values.cosine !== null ? [["cosine", number(values.cosine, 5)]] : []),
      ...(values ? [["shape", values.shape.join(" × ")]]
        : [["margin, original", margin(row.original_margin)], ["margin, deployed", margin(row.deployed_margin)]]),
      ...(row.detections ? [["detections", row.detections.counts.join(" and ")]] : []),
      ["search", counted(row.search_queries, "query", "queries")],
      ["confirmed", row.confirmed ? `${row.confirmed} of ${row.confirmation_queries} repeats` : "no"],
      ...(transcripts ? [] : [["label of the seed", label, label.length > 8 ? "whole" : ""]]),
      ["device", device, device.length > 14 ? "whole" : ""],
      ["status", STATUS[row.status] ?? row.status, "whole"],
    ].filter(([name, value]) => !isReplay || (value !== "–" && !["search", "status"].includes(name)
      && (name !== "confirmed" || row.confirmed)));
    if (row.cause !== "not attributed") list.push(["cause", row.cause, "whole"]);
    if (row.words) list.push(["mutations", row.words, "whole"]);
    if (row.detail) list.push(["detail", row.detail, "whole"]);
    return element("dl", {}, ...list.map(([name, value, kind = ""]) => element("div", { className: kind },
      element("dt", { textContent: name }), element("dd", { textContent: value }))));
  }

  function reproduce(row) {
    const button = element("button", { type: "button", className: "copy", textContent: "Copy" });
    const line = element("div", { className: "command" },
      element("pre", {}, element("code", { textContent: row.command })), button);
    offerCopy(button);
    return element("details", {}, element("summary", { textContent: "How to reproduce" }), line);
  }

  function titleOf(row, [pair]) {
    if (row.difference !== null && row.status !== "nonfinite") return named(row.difference);
    if (pair === "none") return STATUS[row.status] ?? row.status;
    if (row.transcripts === null) {
      const [original, deployed] = [className(row.original), className(row.deployed)];
      if (!data.by_disagreement) return `${original} → ${deployed}`;
      const answers = original === deployed ? `${original} by both` : `${original} → ${deployed}`;
      return row.disagreement === null ? answers : `${answers}, scores ${margin(row.disagreement)} apart`;
    }
    const changes = row.transcripts.changes.map((words) => words.map((word) => word ? `“${word}”` : "(nothing)").join(" → "));
    const left = changes.length - CHANGES;
    return changes.slice(0, CHANGES).join(", ") + (left > 0 ? ` and ${counted(left, "more change")}` : "");
  }

  function card({ row, pairs }) {
    const labels = titleOf(row, pairs);
    const { state, kind, seed, words: became } = row.replayed ?? {};
    const link = element("a", { href: hashOf({ seed: row.seed, device: row.device }), textContent: seed ?? row.seed });
    const title = !became ? labels : row.difference !== null ? named(became) : row.transcripts?.changes.length ? `${became.split(":")[0]}: ${labels}` : became;
    const where = kind === "trigger" ? "stored trigger from " : kind === "seed" ? "seed input " : "from ";
    const shown = data.rate ? [sounds(row)] : [pictures(row)];
    if (!data.rate && !(data.wide && !row.detections?.trigger)) shown.push(enlarge(shown[0]));
    const made = element("article", { className: "card panel" },
      element("h3", { textContent: title }), element("p", { className: "where" }, where, link),
      texts(row), ...shown, maps(row), differences(row), elements(row), bars(row),
      facts(row), reproduce(row));
    Object.assign(made.dataset, { seed: row.seed, pair: pairs[0], device: row.device, status: row.status, cause: row.cause });
    if (state) made.dataset.state = state;
    if (row.l2 !== null) made.dataset.l2 = row.l2;
    return made;
  }

  function goToGallery() {
    const title = document.getElementById("gallery-title");
    title.focus({ preventScroll: true });
    document.getElementById("gallery").scrollIntoView();
  }

  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("input", () => { keepHash(); apply(); });
  form.addEventListener("reset", () => setTimeout(() => { keepHash(); apply(); }));
  more.addEventListener("click", () => {
    const before = made;
    unasked = made + UNASKED;
    addBatch();
    if (more.hidden) cards.children[before].querySelector("a").focus({ preventScroll: true });
  });
  document.addEventListener("click", (event) => {
    const link = event.target.closest?.("a[data-pair]");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    form.elements.pair.value = link.dataset.pair;
    history.pushState(null, "", hashOf(state()));
    apply();
    goToGallery();
  });
  document.addEventListener("play", ({ target }) => {  // one sound at a time
    for (const player of document.querySelectorAll("audio")) if (player !== target) player.pause();
  }, true);
  addEventListener("hashchange", () => { if (readHash() || !location.hash) apply(); });
  form.hidden = false;
  const filtered = readHash();
  apply();
  if (filtered) goToGallery();
})();
