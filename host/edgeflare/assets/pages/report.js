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
  const at = Object.fromEntries(data.columns.map((name, place) => [name, place]));
  const findings = data.rows.map((row, position) => ({ row, position, pairs: pairsOf(row), text: textOf(row) }));
  const seeds = new Set(data.rows.map((row) => row[at.seed]));
  const cards = document.getElementById("cards");
  const more = document.getElementById("more");
  const shown = document.getElementById("shown");
  const fields = ["pair", "text", "cause", "device", "status", "state", "l2", "seed", "sort"].filter((name) => form.elements[name]);
  const isReplay = fields.includes("state");
  const severity = data.by_disagreement ? at.disagreement : at.severity;
  const top = isReplay ? "state" : "severest";
  const states = isReplay ? [...form.elements.state.options].map((option) => option.value) : [];
  let matching = [];
  let made = 0;
  let unasked = UNASKED;
  const observer = "IntersectionObserver" in window && new IntersectionObserver((entries) => {
    if (made < unasked && !more.hidden && entries.some((entry) => entry.isIntersecting)) addBatch();
  }, { rootMargin: "0px 0px 800px 0px" });

  function pairsOf(row) {
    const [original, deployed] = [row[at.original], row[at.deployed]];
    if (row[at.detections]?.pairs.length) return row[at.detections].pairs;
    if (row[at.transcripts]?.changes.length) return row[at.transcripts].changes.map((words) => words.join("→"));
    return [original === null || deployed === null ? "none" : `${original}-${deployed}`];
  }

  function whole(parts) {
    return parts.map(([text]) => text).join("");
  }

  function textOf(row) {
    const transcripts = row[at.transcripts];
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
      (cause === "" || row[at.cause] === cause) &&
      (device === "" || row[at.device] === device) &&
      (status === "" || row[at.status] === status) &&
      (state === "" || row[at.replayed][0] === state) &&
      (l2 === "" || (row[at.l2] ?? (row[at.status] === "seed-deviates" ? 0 : Infinity)) <= farthest) &&
      (seed === "" || (exact ? row[at.seed] === seed : row[at.seed].toLowerCase().includes(part)));
  }

  const ORDERS = {
    severest: (one, other) => (other.row[severity] ?? -1) - (one.row[severity] ?? -1),
    state: (one, other) => states.indexOf(one.row[at.replayed][0]) - states.indexOf(other.row[at.replayed][0])
      || ORDERS.severest(one, other),
    clearest: (one, other) => (other.row[at.snr_db] ?? -Infinity) - (one.row[at.snr_db] ?? -Infinity) || 0,
    nearest: (one, other) => (one.row[at.l2] ?? Infinity) - (other.row[at.l2] ?? Infinity) || 0,
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
    const { trigger, seed } = row[at.detections];
    const few = Math.max(...[...trigger, ...(seed ?? [])].map((marks) => marks.filter((one) => one[0]).length)) <= 3;
    const box = element("div", { className: `pictures boxes${few ? " few" : ""}` });
    const models = ["original", "deployed"];
    const put = (place, what, caption, drawn) => models.forEach((model, number) => box.append(
      boxed(place, `${what} with the ${model} model's boxes: ${seenBy(drawn[number])}`, `${caption}, ${model}`, drawn[number])));
    const [, kind] = row[at.replayed] ?? [];
    const itself = row[at.seed_picture] === null;
    if (!itself && seed) put(row[at.seed_picture], `Seed input ${row[at.seed]}`, "seed", seed);
    else if (!itself) box.append(picture(row[at.seed_picture], `Seed input ${row[at.seed]}`, "seed input"));
    const [what, caption] = kind === "seed" ? ["Seed input", "seed"] : kind ? ["Stored trigger", "stored trigger"]
      : ["Triggering input", itself ? "trigger (the seed itself)" : "trigger"];
    put(row[at.trigger_picture], what, caption, trigger);
    if (row[at.difference_picture] !== null) {
      const factor = number(row[at.amplification], 2);
      box.append(picture(row[at.difference_picture], `Difference of seed and trigger, amplified ${factor} times; grey is no change`,
        `difference × ${factor}`));
    }
    return box;
  }

  function differences(row) {
    const detections = row[at.detections];
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
    if (!row[at.maps]) return null;
    const alts = ["Map of the original", "Map of the deployed model", "Where both maps differ"];
    const captions = ["map, original", "map, deployed", "difference"];
    const box = element("div", { className: "pictures maps" });
    row[at.maps].forEach((place, number) => box.append(picture(place, `${alts[number]}: ${row[at.difference]}`, captions[number])));
    return box;
  }

  function elements(row) {
    const rows = row[at.values]?.elements ?? [];
    if (!rows.length) return null;
    const line = (kind, texts) => element("tr", {}, ...texts.map((text, place) =>
      element(kind || !place ? "th" : "td", { scope: kind ? "col" : "row", className: place ? "number" : "", textContent: text })));
    const body = element("tbody", {}, ...rows.map((texts) => line("", texts)));
    return element("table", { className: "elements" },
      element("caption", { textContent: "Elements that differ most" }),
      element("thead", {}, line("head", ["element", "original", "deployed"])), body);
  }

  function pictures(row) {
    if (row[at.detections]?.trigger) return boxPictures(row);
    const box = element("div", { className: data.wide ? "pictures wide" : "pictures" });
    const names = saysOf(row);
    if (row[at.seed_picture] !== null) {
      const label = row[at.label] === null ? "" : `, label ${className(row[at.label])}`;
      box.append(picture(row[at.seed_picture], `Seed input ${row[at.seed]}${label}`, "seed input"));
    }
    const itself = row[at.seed_picture] === null;
    const [, kind] = row[at.replayed] ?? [];
    const [what, caption] = kind === "seed" ? ["Seed input", "seed input"] : kind ? ["Stored trigger", "stored trigger"]
      : ["Triggering input", itself ? "trigger: the seed input itself" : "trigger"];
    box.append(picture(row[at.trigger_picture], `${what}: ${names}`, caption));
    if (row[at.difference_picture] !== null) {
      const factor = number(row[at.amplification], 2);
      box.append(picture(row[at.difference_picture], `Difference of both, amplified ${factor} times; grey is no change`,
        `difference × ${factor}`));
    }
    return box;
  }

  function saysOf(row) {
    const transcripts = row[at.transcripts];
    if (row[at.difference] !== null) return named(row[at.difference]);
    if (transcripts) return `original returns “${whole(transcripts.original)}”, deployed model returns “${whole(transcripts.deployed)}”`;
    return `original says ${className(row[at.original])}, deployed model says ${className(row[at.deployed])}`;
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
    player.src = data.pictures[row[at[`${which}_sound`]]];
    const axes = `${number(row[at.sound_seconds])} s from left to right, 0 to ${number(data.rate / 2000)} kHz upwards`;
    return element("figure", {}, element("figcaption", { textContent: caption }), player,
      spectrogram(row[at[`${which}_picture`]], `Spectrogram of ${what}; ${axes}`, row[at.sound_seconds]));
  }

  function sounds(row) {
    const box = element("div", { className: "sounds" });
    const [, kind] = row[at.replayed] ?? [];
    const itself = row[at.seed_sound] === null;
    if (!itself) box.append(sound(row, "seed", "seed input", `seed input ${row[at.seed]}`));
    const [what, caption] = kind === "seed" ? ["seed input", "seed input"] : kind ? ["stored trigger", "stored trigger"]
      : ["trigger", itself ? "trigger: the seed input itself" : "trigger"];
    box.append(sound(row, "trigger", caption, `${what} from ${row[at.seed]}: ${saysOf(row)}`));
    if (row[at.difference_picture] !== null) {
      box.append(element("figure", {}, element("figcaption", { textContent: "difference: red louder, blue quieter" }),
        spectrogram(row[at.difference_picture], "Spectrogram of the trigger's level less the seed's, in dB", row[at.sound_seconds])));
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
    const transcripts = row[at.transcripts];
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
    if (!row[at.scores].length) return null;
    const head = element("tr", {}, element("th", { scope: "col", textContent: "class" }));
    for (const which of ["original", "deployed"]) {
      head.append(element("th", { scope: "col", className: which },
        element("span", { className: "swatch", "aria-hidden": "true" }), which));
    }
    const body = element("tbody");
    for (const [place, original, deployed] of row[at.scores]) {
      const name = element("span", { className: "name", textContent: className(place), title: className(place) });
      body.append(element("tr", {}, element("th", { scope: "row" }, name),
        bar(original, "original", place === row[at.original]), bar(deployed, "deployed", place === row[at.deployed])));
    }
    return element("table", { className: "bars" },
      element("caption", { className: "visually-hidden", textContent: "Probabilities of both models" }),
      element("thead", {}, head), body);
  }

  function facts(row) {
    const [, search, confirmation] = row[at.queries];
    const [label, device] = [className(row[at.label]), row[at.device] || "–"];
    const transcripts = row[at.transcripts] !== null || row[at.difference] !== null;
    const values = row[at.values];
    const linf = row[at.linf] === null ? "–" : data.rate ? row[at.linf].toLocaleString("en") : counted(row[at.linf], "level");
    const list = [
      [data.rate ? "L2 of samples" : "L2", number(row[at.l2])],
      [data.rate ? "Linf, 16 bits" : "Linf", linf],
      ...(data.rate ? [["SNR", row[at.snr_db] === null ? "–" : `${row[at.snr_db].toFixed(1)} dB`]] : []),
      ...(values ? [["distance", number(row[at.disagreement])]] : data.by_disagreement ? [["scores apart", margin(row[at.disagreement])]] : []),
      ...(values && values.mean_iou !== null ? [["mean IoU", margin(values.mean_iou)]] : []),
      ...(values && values.cosine !== null ? [["cosine", number(values.cosine, 5)]] : []),
      ...(values ? [["shape", values.shape.join(" × ")]]
        : [["margin, original", margin(row[at.original_margin])], ["margin, deployed", margin(row[at.deployed_margin])]]),
      ...(row[at.detections] ? [["detections", row[at.detections].counts.join(" and ")]] : []),
      ["search", counted(search, "query", "queries")],
      ["confirmed", row[at.confirmed] ? `${row[at.confirmed]} of ${confirmation} repeats` : "no"],
      ...(transcripts ? [] : [["label of the seed", label, label.length > 8 ? "whole" : ""]]),
      ["device", device, device.length > 14 ? "whole" : ""],
      ["status", STATUS[row[at.status]] ?? row[at.status], "whole"],
    ].filter(([name, value]) => !isReplay || (value !== "–" && !["search", "status"].includes(name)
      && (name !== "confirmed" || row[at.confirmed])));
    if (row[at.cause] !== "not attributed") list.push(["cause", row[at.cause], "whole"]);
    if (row[at.words]) list.push(["mutations", row[at.words], "whole"]);
    if (row[at.detail]) list.push(["detail", row[at.detail], "whole"]);
    return element("dl", {}, ...list.map(([name, value, kind = ""]) => element("div", { className: kind },
      element("dt", { textContent: name }), element("dd", { textContent: value }))));
  }

  function reproduce(row) {
    const button = element("button", { type: "button", className: "copy", textContent: "Copy" });
    const line = element("div", { className: "command" },
      element("pre", {}, element("code", { textContent: row[at.command] })), button);
    offerCopy(button);
    return element("details", {}, element("summary", { textContent: "How to reproduce" }), line);
  }

  function titleOf(row, [pair]) {
    if (row[at.difference] !== null && row[at.status] !== "nonfinite") return named(row[at.difference]);
    if (pair === "none") return STATUS[row[at.status]] ?? row[at.status];
    if (row[at.transcripts] === null) {
      const [original, deployed] = [className(row[at.original]), className(row[at.deployed])];
      if (!data.by_disagreement) return `${original} → ${deployed}`;
      const answers = original === deployed ? `${original} by both` : `${original} → ${deployed}`;
      return row[at.disagreement] === null ? answers : `${answers}, scores ${margin(row[at.disagreement])} apart`;
    }
    const changes = row[at.transcripts].changes.map((words) => words.map((word) => word ? `“${word}”` : "(nothing)").join(" → "));
    const left = changes.length - CHANGES;
    return changes.slice(0, CHANGES).join(", ") + (left > 0 ? ` and ${counted(left, "more change")}` : "");
  }

  function card({ row, pairs }) {
    const labels = titleOf(row, pairs);
    const [state, kind, seed, became] = row[at.replayed] ?? [];
    const link = element("a", { href: hashOf({ seed: row[at.seed], device: row[at.device] }), textContent: seed ?? row[at.seed] });
    const title = !became ? labels : row[at.difference] !== null ? named(became) : row[at.transcripts]?.changes.length ? `${became.split(":")[0]}: ${labels}` : became;
    const where = kind === "trigger" ? "stored trigger from " : kind === "seed" ? "seed input " : "from ";
    const shown = data.rate ? [sounds(row)] : [pictures(row)];
    if (!data.rate && !(data.wide && !row[at.detections]?.trigger)) shown.push(enlarge(shown[0]));
    const made = element("article", { className: "card panel" },
      element("h3", { textContent: title }), element("p", { className: "where" }, where, link),
      texts(row), ...shown, maps(row), differences(row), elements(row), bars(row),
      facts(row), reproduce(row));
    Object.assign(made.dataset, { seed: row[at.seed], pair: pairs[0], device: row[at.device], status: row[at.status], cause: row[at.cause] });
    if (state) made.dataset.state = state;
    if (row[at.l2] !== null) made.dataset.l2 = row[at.l2];
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
