/* What is proved: how many changes cannot turn the answer, what forces it, and the nearest input that is answered otherwise.
 *
 *   when the page was made    for its samples, by a prover: model.proofs; a reason also covers all inputs inside it
 *   in this page, just now    for any input: every single change, then every pair, tried one by one
 *
 * Which of the two it was is always said. What was not decided is said to be undecided.
 */
const PAIRS_AT_ONCE = 4e8, PAIRS_AT_ALL = 4e10;
const CONDITIONS_LISTED = 60;
const METHOD_WORDS = {
  bound: "too few outputs are within reach", exhaustive: "every case was tried",
  decomposed: "every output was tried on what it reads, and the results added up", sat: "a solver's refutation, which was checked",
};

class Proofs {
  constructor(root, model, circuit, features, whatIf, onTry) {
    Object.assign(this, { model, circuit, features, whatIf, onTry });
    this.proofs = model.proofs;
    this.stop = () => {};
    this.pictures = [];
    this.badge = element("p", { className: "badge", id: "badge", hidden: true });
    this.basis = element("p", { className: "hint", id: "basis" });
    this.reason = element("div", { className: "proved", id: "reason" });
    this.nearest = element("div", { className: "proved", id: "nearest" });
    this.root = element("div", { className: "proofs", id: "proofs" }, this.badge, this.basis, this.reason, this.nearest);
    root.append(this.root);
    const { input } = model;
    this.isImage = input.kind === "image";
    this.one = this.isImage ? (input.channels === 3 ? "colour value" : "pixel") : input.kind === "bits" ? "bit" : "feature";
    this.key = (bits) => Array.from(bits).join("");
  }

  /** The samples by their bits: what is proved about bits holds however they came about. */
  learn(samples) {
    this.known = new Map();
    const bits = new Uint8Array(this.circuit.inputs);
    samples.forEach((values, i) => {
      this.features.forEach((feature, f) => feature.encode(values[f], bits));
      if (!this.known.has(this.key(bits))) this.known.set(this.key(bits), i);
    });
  }

  clear() {
    this.stop();
    this.state = null;
    this.pictures = [];
    this.offer?.remove();
    this.badge.hidden = true;
    this.basis.textContent = "";
    this.reason.replaceChildren();
    this.nearest.replaceChildren();
  }

  /** A new input: what the page knows of it from the beginning. */
  update(values, bits) {
    this.clear();
    this.values = values;
    const sample = this.proofs ? this.known.get(this.key(bits)) : undefined;
    if (sample !== undefined) {
      this.showSample(this.proofs.samples[sample], bits);
      return true;
    }
    if (this.proofs) this.showInside(bits);
    return false;
  }

  /** What single changes did, tried just now; then pairs, if there are few enough. */
  singles(flipping) {
    if (this.circuit.readout.affine || this.model.classes.length < 2 || this.settled()) return;
    if (flipping || this.whatIf.extremes) return;
    const which = this.model.input.kind === "table" ? "Every value, of those known from training," : "Every value";
    if (!(this.state?.changes >= 1)) this.say(1, `${which} of every ${this.one} was tried in this page just now.`);
    const { pairs, work } = this.whatIf.pairCost(this.values);
    if (!pairs) return;
    if (work <= PAIRS_AT_ONCE) this.tryPairs(pairs);
    else if (work <= PAIRS_AT_ALL) {
      const seconds = Math.max(2, Math.round(work / 3e8));
      const control = button(`Try all ${pairs.toLocaleString("en")} pairs (about ${seconds} s)`, () => {
        control.remove();
        this.tryPairs(pairs);
      }, { id: "pairs" });
      this.basis.after(control);
      this.offer = control;
    }
  }

  /** Whether trying one by one could add nothing to what was proved when the page was made. */
  settled() {
    const { sample, changes = 0, next } = this.state ?? {};
    return sample && (next !== "undecided" || changes >= 2 || this.proofs.unit !== this.one);
  }

  tryPairs(pairs) {
    const known = this.basis.textContent;
    this.basis.textContent = `${known} Trying all ${pairs.toLocaleString("en")} pairs …`;
    this.stop = inSlices(this.whatIf.pairs(this.values), (found) => {
      this.basis.textContent = known;
      this.showPairs(found);
    });
  }

  showPairs({ tried, winner, changes }) {
    if (!changes) {
      this.say(2, `All ${tried.toLocaleString("en")} pairs were tried in this page just now.`);
      return;
    }
    const named = changes.map(({ f, alternative }) => ({
      f: [f], text: `${this.features[f].name}: ${this.features[f].describe(this.values[f])} → ${alternative.label}` }));
    this.showNearest({
      winner, changed: named, values: changes.map(({ f, alternative }) => [f, alternative.value]),
      basis: "Every single change was tried in this page before: none does.",
    });
  }

  /** The badge, with what it rests on. */
  say(changes, basis, unit = this.one) {
    const { affine } = this.circuit.readout;
    const what = affine ? `move this value by more than ${shortNumber(this.proofs.tolerance)}` : "change this";
    this.state = { ...this.state, changes, unit };
    this.badge.hidden = false;
    this.badge.textContent = changes === 1 ? `No single ${unit} can ${what}` : `No ${changes} ${unit}s can ${what}`;
    this.basis.textContent = basis;
  }

  showSample({ answer, robust, reason, nearest }, bits) {
    const { unit, seconds } = this.proofs;
    const given = `${shortNumber(seconds)} s`;
    this.state = { sample: true, next: robust.next };
    const how = robust.method ? `Proved when this page was made: ${METHOD_WORDS[robust.method]}.` : "Proved when this page was made.";
    if (robust.next === null) {
      this.say(robust.changes, how, unit);
      this.badge.textContent = this.circuit.readout.affine ? "Every input has this value, within the tolerance" : "Every input has this answer";
    } else if (robust.changes > 0) {
      const more = robust.next === "undecided" ? ` ${robust.changes + 1} or more: undecided within ${given}.` : "";
      this.say(robust.changes, how + more, unit);
    } else if (robust.next === "undecided") {
      this.basis.textContent = `Undecided within ${given} whether a single ${unit} can change this.`;
    }
    this.showReason(reason, answer, given);
    if (nearest) this.showProvedNearest(nearest, bits);
    else if (robust.next !== null) {
      this.nearest.replaceChildren(element("h3", {}, "Nearest other answer"),
        element("p", {}, `Undecided: none was found within ${given}.`));
    }
  }

  answerName(answer) {
    if (!this.circuit.readout.affine) return this.model.classes[answer];
    return `${shortNumber(answer)} ± ${shortNumber(this.proofs.tolerance)}`;
  }

  showReason(reason, answer, given) {
    const { unit } = this.proofs;
    const title = element("h3", {}, "What forces it");
    if (reason.undecided) {
      this.reason.replaceChildren(title, element("p", {}, `Undecided within ${given}: no reason was proved.`));
      return;
    }
    const { conditions, features, minimal } = reason;
    const number = conditions.length;
    const text = number === 0 ? "Nothing has to: no input is answered otherwise."
      : `${number} of ${features} ${unit}s ${number === 1 ? "forces" : "force"} the answer ${this.answerName(answer)}, whatever the others are.`;
    const parts = [title, element("p", {}, text)];
    if (number) {
      parts.push(element("p", { className: "hint" }, minimal ? "Each of them is needed (proved when this page was made)."
        : `Proved when this page was made; whether each of them is needed is undecided within ${given}.`));
    }
    const lines = conditions.slice(0, CONDITIONS_LISTED).map((each) => element("li", {}, each.text));
    if (number > CONDITIONS_LISTED) lines.push(element("li", {}, `and ${number - CONDITIONS_LISTED} more`));
    const list = element("ul", { className: "conditions" }, ...lines);
    if (this.isImage && number) {
      parts.push(this.reasonPicture(conditions), element("details", {}, element("summary", {}, "In words"), list));
    } else if (number) parts.push(list);
    this.reason.replaceChildren(...parts);
    this.state.forced = conditions.flatMap(({ f }) => f);
  }

  /** Another input, inside what was proved for a sample: the same answer, proved too. */
  showInside(bits) {
    const inside = ({ reason }) => !reason.undecided && reason.conditions.length
      && reason.conditions.every((each) => each.allowed.includes(each.bits.map((bit) => bits[bit]).join("")));
    const sample = this.proofs.samples.findIndex(inside);
    if (sample < 0) return;
    const { answer, reason: { conditions } } = this.proofs.samples[sample];
    this.state = { inside: sample };
    this.reason.replaceChildren(element("h3", {}, "What forces it"),
      element("p", {}, `What was proved for sample ${sample + 1} when this page was made covers this input too: `
        + `${this.answerName(answer)}, because`),
      element("ul", { className: "conditions" }, ...conditions.slice(0, CONDITIONS_LISTED).map((each) => element("li", {}, each.text))));
  }

  showProvedNearest({ answer, fewest, changed, flipped }, bits) {
    const target = Uint8Array.from(bits);
    for (const bit of flipped) target[bit] ^= 1;
    const values = [];
    const trial = new Uint8Array(bits.length);
    let reachable = true;
    this.features.forEach((feature, f) => {
      const own = feature.missing >= 0 ? [...feature.bits, feature.missing] : feature.bits;
      if (own.every((bit) => target[bit] === bits[bit])) return;
      const found = feature.alternatives(this.values[f], false).find(({ value }) => {
        feature.encode(value, trial);
        return own.every((bit) => trial[bit] === target[bit]);
      });
      if (found) values.push([f, found.value]);
      else reachable = false;
    });
    this.showNearest({
      winner: answer, changed, values: reachable ? values : null,
      basis: changed.length < 2 ? "" : fewest ? "Fewer do not (proved when this page was made)." : "Whether fewer do is undecided.",
    });
  }

  showNearest({ winner, changed, values, basis }) {
    const { affine } = this.circuit.readout;
    const becomes = affine ? shortNumber(winner) : this.model.classes[winner];
    const turn = changed.length === 1 ? "1 change turns" : `${changed.length} changes turn`;
    const lines = changed.slice(0, LISTED).map(({ text }) => element("li", {}, text));
    if (changed.length > LISTED) lines.push(element("li", {}, `and ${changed.length - LISTED} more`));
    const parts = [element("h3", {}, "Nearest other answer"),
      element("p", {}, element("strong", {}, `${turn} it into ${becomes}.`), ` ${basis}`)];
    if (this.isImage && values) parts.push(this.besides(changed, values, becomes));
    parts.push(element("ul", { className: "conditions changed" }, ...lines));
    if (values) parts.push(button("Try it", () => this.onTry(values), { id: "try-nearest" }));
    this.nearest.replaceChildren(...parts);
    this.state = { ...this.state, nearest: { winner, changed, values } };
    this.draw();
  }

  /** The input and its nearest counterexample, side by side. */
  besides(changed, values, becomes) {
    const marked = new Set(changed.flatMap(({ f }) => f));
    const now = this.picture("The input", "this input", (f) => this.share(f, this.values[f]), marked);
    const other = new Map(values);
    const then = this.picture(`The nearest input that is answered ${becomes}; ${changed.length} changed`, `answered ${becomes}`,
      (f) => this.share(f, other.has(f) ? other.get(f) : this.values[f]), marked);
    return element("div", { className: "beside" }, now, then);
  }

  reasonPicture(conditions) {
    const forced = new Set(conditions.flatMap(({ f }) => f));
    const figure = this.picture(`The ${forced.size} ${this.proofs.unit}s that force the answer`, null, (f) => this.share(f, this.values[f]), null, forced);
    const shades = this.model.input.levels.length > 1;
    const key = legend([["forced-on", shades ? "must stay about as dark" : "must stay inked"],
      ["forced-off", shades ? "must stay about as light" : "must stay blank"]]);
    return element("div", {}, figure, this.proofs.unit === "pixel" ? key : "");
  }

  share(f, value) {
    const { levels } = this.features[f];
    return levels.length ? this.features[f].passed(value) / levels.length : 0;
  }

  picture(label, caption, share, marked, forced = null) {
    const { rows, columns } = this.model.input;
    const canvas = element("canvas", { className: "picture", role: "img", "aria-label": label });
    canvas.style.aspectRatio = `${columns} / ${rows}`;
    this.pictures.push({ canvas, share, marked, forced });
    return element("figure", { className: forced ? "reason-picture" : "" }, canvas, caption ? element("figcaption", {}, caption) : "");
  }

  draw() {
    for (const picture of this.pictures) if (picture.canvas.isConnected) this.paint(picture);
  }

  paint({ canvas, share, marked, forced }) {
    const { rows, columns, channels } = this.model.input;
    const size = rows * columns;
    const { width, ratio } = fitCanvas(canvas);
    const context = canvas.getContext("2d");
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    const cell = width / columns;
    for (let i = 0; i < size; i++) {
      const own = Array.from({ length: channels }, (_, c) => c * size + i);
      const shares = own.map(share);
      const mean = shares.reduce((sum, value) => sum + value, 0) / channels;
      const ground = channels === 3 ? shares.map((value) => Math.round(255 * value)) : mix(palette.paper, palette.ink, mean);
      const [x, y] = [(i % columns) * cell, Math.floor(i / columns) * cell];
      const part = forced ? own.some((f) => forced.has(f)) : false;
      const colour = !forced ? ground : part ? mix(mix(palette.paper, palette.accent, 0.35), palette.accent, mean) : mix(palette.paper, ground, 0.22);
      context.fillStyle = css(colour);
      context.fillRect(x, y, cell + 0.3, cell + 0.3);
      if (marked && own.some((f) => marked.has(f))) {
        context.strokeStyle = css(palette.warm);
        context.lineWidth = Math.max(1.5, cell * 0.22);
        context.strokeRect(x, y, cell, cell);
      }
    }
  }
}
