/* "Why": what is proved, and what single changes would do, as a heat map over the pixels or as a list of features. */
const LISTED = 12;

class Reasons {
  constructor(root, model, circuit, features, onTry) {
    Object.assign(this, { model, circuit, features, onTry });
    this.whatIf = new WhatIf(circuit, features);
    this.stop = () => {};
    this.headline = element("p", { className: "why-headline", id: "why-headline" });
    this.list = element("ol", { className: "reasons" });
    this.found = element("div", { className: "found", "aria-live": "polite" });
    this.isImage = model.input.kind === "image";
    this.proofs = new Proofs(root, model, circuit, features, this.whatIf, onTry);
    root.append(element("h3", {}, "Single changes"), this.headline);
    if (this.isImage) {
      this.map = element("canvas", { className: "map", role: "img", "aria-label": "Heat map of the pixels" });
      this.map.style.aspectRatio = `${model.input.columns} / ${model.input.rows}`;
      root.append(this.map, legend([["warm", "changing it weakens the answer"], ["cool", "changing it strengthens it"]]));
      if (!circuit.readout.affine) root.lastChild.append(element("span", {}, element("i", { className: "flip" }), "flips it"));
    }
    root.append(this.list);
    if (!circuit.readout.affine && model.classes.length > 1) {
      this.seek = button("Find a small change that flips the answer", () => this.search(), { id: "search" });
      root.append(this.seek, this.found);
    }
  }

  /** Ask again about new values; where nothing is drawn there is nothing to ask. */
  update(values, empty, bits) {
    this.stop();
    this.values = Array.from(values);
    this.found.replaceChildren();
    this.ready = false;
    this.empty = empty;
    if (this.seek) this.seek.disabled = empty;
    if (empty) {
      this.proofs.clear();
      this.headline.textContent = "Nothing is drawn yet.";
      this.list.replaceChildren();
      return this.draw();
    }
    this.proofs.update(this.values, bits);
    this.proofs.draw();
    this.stop = inSlices(this.whatIf.sweep(this.values), (result) => this.show(result));
  }

  show({ answer, findings }) {
    this.findings = findings;
    this.answer = answer;
    this.ready = true;
    const flipping = findings.filter(({ flips }) => flips.length).length;
    const one = this.isImage ? "pixel" : this.model.input.kind === "bits" ? "bit" : "feature";
    const many = `${one}s`;
    this.headline.textContent = this.circuit.readout.affine
      ? `What the value would be if one ${one} were different.`
      : flipping === 0 && this.whatIf.extremes ? `Neither the lowest nor the highest value of any ${one} alone changes this answer.`
        : flipping === 0 ? `No single ${one} can change this answer.`
          : `${flipping} of ${findings.length} ${findings.length === 1 ? one : many} can change this answer alone.`;
    this.draw();
    this.fill();
    this.proofs.singles(flipping);
  }

  /** The features that matter most, in words. */
  fill() {
    const weight = ({ flips, drop, gain }) => (flips.length ? 1e9 : 0) + Math.max(drop, this.circuit.readout.affine ? gain : 0);
    const order = this.findings.map((_, f) => f).filter((f) => weight(this.findings[f]) > 0)
      .sort((i, j) => weight(this.findings[j]) - weight(this.findings[i]) || i - j);
    const most = this.largest();
    this.list.replaceChildren(...order.slice(0, this.isImage ? 4 : LISTED).map((f) => this.reason(f, most)));
  }

  largest() {
    return this.findings.reduce((most, { drop, gain }) => Math.max(most, drop, gain), 1e-9);
  }

  reason(f, most) {
    const feature = this.features[f];
    const { drop, gain, worst, best, flips } = this.findings[f];
    const { affine } = this.circuit.readout;
    const rising = affine && gain > drop;
    const alternative = flips.length ? flips[0].alternative : rising ? best : worst;
    const size = rising ? gain : drop;
    const what = flips.length ? `the answer becomes ${this.model.classes[flips[0].winner]}`
      : affine ? `the value ${rising ? "rises" : "falls"} by ${shortNumber(size)}`
        : `the lead shrinks by ${shortNumber(size)}`;
    const meter = element("span", { className: "meter" });
    meter.style.width = `${(100 * size) / most}%`;
    if (rising) meter.classList.add("cool");
    const from = this.isImage ? "" : `${feature.describe(this.values[f])} `;
    const text = `${feature.name}: ${from}→ ${alternative.label}`;
    const control = button("", () => this.onTry([[f, alternative.value]]), { "aria-label": `Try it: ${text}; ${what}` });
    control.append(element("strong", {}, text), element("span", {}, what), meter);
    return element("li", { className: flips.length ? "flips" : "" }, control);
  }

  draw() {
    this.proofs.draw();
    if (!this.map || !(this.ready || this.empty)) return;
    const { rows, columns, channels } = this.model.input;
    const { width, height, ratio } = fitCanvas(this.map);
    const context = this.map.getContext("2d");
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, height);
    if (this.empty) return;
    const most = this.largest();
    const cell = width / columns;
    for (let i = 0; i < rows * columns; i++) {
      let [drop, gain, flips] = [0, 0, 0];
      for (let c = 0; c < channels; c++) {
        const finding = this.findings[c * rows * columns + i];
        drop = Math.max(drop, finding.drop);
        gain = Math.max(gain, finding.gain);
        flips += finding.flips.length;
      }
      const x = (i % columns) * cell, y = Math.floor(i / columns) * cell;
      const share = this.shade(i);
      const strength = Math.max(drop, gain) / most;
      const ground = mix(palette.paper, palette.ink, 0.28 * share);
      context.fillStyle = css(mix(ground, drop >= gain ? palette.warm : palette.cool, strength ** 0.7));
      context.fillRect(x, y, cell + 0.3, cell + 0.3);
      if (flips) {
        context.strokeStyle = css(palette.text);
        context.lineWidth = Math.max(1, cell * 0.12);
        context.strokeRect(x + cell * 0.14, y + cell * 0.14, cell * 0.72, cell * 0.72);
      }
    }
  }

  /** How bright a pixel is, from 0 to 1, as the network sees it. */
  shade(i) {
    const { rows, columns, channels } = this.model.input;
    let [passed, all] = [0, 0];
    for (let c = 0; c < channels; c++) {
      const f = c * rows * columns + i;
      passed += this.features[f].passed(this.values[f]);
      all += this.features[f].levels.length;
    }
    return all ? passed / all : 0;
  }

  search() {
    this.stop();
    this.proofs.stop();
    this.found.replaceChildren(element("p", { className: "hint" }, "searching …"));
    this.stop = inSlices(this.whatIf.counterfactual(this.values), (result) => this.showFound(result));
  }

  showFound(result) {
    if (!result) {
      this.found.replaceChildren(element("p", {}, "Nothing found that flips this answer within 40 changes."));
      return;
    }
    const { changes, winner } = result;
    const turn = changes.length === 1 ? "1 change turns" : `${changes.length} changes turn`;
    const lines = changes.slice(0, LISTED).map(({ f, from, alternative }) =>
      element("li", {}, `${this.features[f].name}: ${this.features[f].describe(from)} → ${alternative.label}`));
    if (changes.length > LISTED) lines.push(element("li", {}, `and ${changes.length - LISTED} more`));
    this.found.replaceChildren(
      element("p", {}, element("strong", {}, `${turn} it into ${this.model.classes[winner]}.`),
        " Found by always taking the change that costs the most lead; there may be fewer."),
      element("ul", {}, ...lines),
      button("Apply", () => this.onTry(changes.map(({ f, alternative }) => [f, alternative.value])), { id: "apply" }));
  }
}

/** A line that says what colours mean. */
function legend(entries) {
  return element("p", { className: "legend" },
    ...entries.map(([colour, text]) => element("span", {}, element("i", { className: `dot ${colour}` }), text)));
}
