/* The page put together: an input changes, the gates are evaluated, everything that shows them is told. */
class App {
  constructor(model) {
    this.model = model;
    this.circuit = new Circuit(model);
    this.features = makeFeatures(model);
    this.names = bitNames(model, this.features);
    this.bits = new Uint8Array(model.inputs);
    this.changed = oncePerFrame(() => this.evaluate());
    this.select = this.select.bind(this);
    this.answer = new Answer(byId("answer"), model, this.circuit, (chosen) => this.select({ chosen }));
    this.reasons = new Reasons(byId("why"), model, this.circuit, this.features, (changes) => this.tryChanges(changes));
    this.view = new CircuitView(byId("drawing"), this.circuit, model, this.select);
    this.view.names = this.names;
    this.inspector = new Inspector(byId("inspector"), model, this.circuit, this.names, this.select);
    this.census = new Census(byId("census"), this.circuit, this.select);
    this.source = this.makeSource(byId("input"));
    this.showText();
  }

  showText() {
    const { circuit, model } = this;
    const facts = [count(circuit.inputs, "input bit"), count(circuit.gates.length, "gate"), count(circuit.depth, "layer")];
    if (!circuit.readout.affine) facts.push(count(model.classes.length, "class").replace("classs", "classes"));
    byId("summary").textContent = facts.join(" · ");
    byId("notes").append(...model.notes.map((note) => element("p", {}, note)));
    const about = Object.entries(model.metadata).map(([name, value]) => `${name}: ${value}`).join(" · ");
    byId("about").textContent = about;
  }

  /** What the inputs are set with: a drawing area, a form or a grid. */
  makeSource(root) {
    const { model } = this;
    const { input } = model;
    if (input.kind === "table") {
      const form = new Form(this.features, this.changed);
      root.append(this.rowPicker(), form.root);
      return form;
    }
    const source = input.kind === "image" ? new Pad(input, this.changed) : new Grid(this.names, this.changed);
    const tools = [button("Clear", () => source.clear(), { id: "clear" })];
    root.append(source.canvas);
    if (input.kind === "bits") {
      root.append(source.status, element("div", { className: "tools" }, ...tools), this.rowPicker());
      return source;
    }
    source.canvas.style.aspectRatio = `${input.columns} / ${input.rows}`;
    const brush = element("input", { type: "range", min: 0.5, max: Math.max(2, input.columns / 6), step: 0.25, value: source.brush });
    brush.oninput = () => { source.brush = Number(brush.value); };
    tools.push(button("Undo", () => source.undo()), toggle("Erase", false, (on) => { source.erasing = on; }), labelled("Brush", brush));
    if (input.channels === 3) {
      const colour = element("input", { type: "color", value: source.colour });
      colour.oninput = () => { source.colour = colour.value; };
      tools.push(labelled("Colour", colour));
    }
    const centre = element("input", { type: "checkbox", checked: source.centring, id: "centre" });
    centre.onchange = () => { source.centring = centre.checked; this.changed(); };
    this.seen = element("canvas", { className: "seen", role: "img", "aria-label": "The picture as the network sees it" });
    this.seen.style.aspectRatio = `${input.columns} / ${input.rows}`;
    const levels = input.levels.length === 1 ? "ink or no ink" : `${input.levels.length + 1} shades`;
    if (input.channels === 1) tools.push(labelled("Centre and scale", centre, "missing"));
    root.append(element("div", { className: "tools" }, ...tools),
      element("div", { className: "seen-row" }, this.seen,
        element("p", { className: "hint" }, `What the network sees: ${input.rows} × ${input.columns} pixels, ${levels}.`)),
      this.thumbnails());
    return source;
  }

  rowPicker() {
    const { samples } = this.model;
    if (!samples) return "";
    const select = element("select", { id: "sample" }, element("option", { value: "" }, "choose a sample …"),
      ...samples.labels.map((label, i) => element("option", { value: String(i) }, `${i + 1}: ${label}`)));
    select.value = "0";
    select.onchange = () => { if (select.value !== "") this.source.setValues(this.sample(Number(select.value))); };
    return labelled("Start from a sample", select);
  }

  sample(i) {
    const { samples } = this.model;
    if (samples.rows) return samples.rows[i];
    this.sampleValues ??= decodeArray(samples.values);
    const size = this.features.length;
    return this.sampleValues.subarray(i * size, (i + 1) * size);
  }

  thumbnails() {
    const { samples } = this.model;
    if (!samples) return "";
    this.thumbs = samples.labels.map((label, i) => {
      const canvas = element("canvas", { className: "thumb" });
      const control = button("", () => this.source.setValues(this.sample(i)), { className: "sample", "aria-label": `Sample ${i + 1}, a ${label}` });
      control.append(canvas);
      return { canvas, control };
    });
    return element("div", { className: "samples", role: "group", "aria-label": "Samples" }, ...this.thumbs.map(({ control }) => control));
  }

  tryChanges(changes) {
    const values = Array.from(this.source.read());
    for (const [f, value] of changes) values[f] = value;
    this.source.setValues(values);
  }

  evaluate() {
    this.values = this.source.read();
    for (let f = 0; f < this.features.length; f++) this.features[f].encode(this.values[f], this.bits);
    this.words = this.circuit.run(this.bits, this.words);
    const empty = Boolean(this.source.empty);
    this.answer.update(this.words, empty);
    this.inspector.update(this.words, this.answer.scores);
    this.census.update(this.words);
    const answer = empty || this.circuit.readout.affine ? -1 : this.answer.answer;
    this.view.update({ words: this.words, scores: this.answer.scores, answer });
    this.source.draw();
    this.drawSeen();
    this.reasons.update(this.values, empty, this.bits);
  }

  drawSeen() {
    if (!this.seen) return;
    const { rows, columns } = this.model.input;
    paintPixels(this.seen, this.model.input, (i, c) => {
      const feature = this.features[c * rows * columns + i];
      return feature.levels.length ? feature.passed(this.values[c * rows * columns + i]) / feature.levels.length : 0;
    });
  }

  drawThumbnails() {
    const { rows, columns, low, high } = this.model.input;
    this.thumbs?.forEach(({ canvas }, i) => {
      const values = this.sample(i);
      paintPixels(canvas, this.model.input, (p, c) => (values[c * rows * columns + p] - low) / (high - low));
    });
  }

  select(choice) {
    const { node, chosen, mask, wires } = this.inspector.select(choice);
    this.answer.select(chosen);
    this.census.select(choice);
    this.view.update({ node, chosen, mask, wires });
  }

  /** Colours or sizes have changed. */
  redraw() {
    this.view.recolour();
    this.source.draw();
    this.drawSeen();
    this.drawThumbnails();
    this.reasons.draw();
  }

  start() {
    if (this.model.proofs) this.reasons.proofs.learn(this.model.samples.labels.map((_, i) => this.sample(i)));
    if (this.model.samples) this.source.setValues(this.sample(0));
    this.evaluate();
    followTheme(byId("theme"), () => this.redraw());
    let resized = 0;
    addEventListener("resize", () => { clearTimeout(resized); resized = setTimeout(() => this.redraw(), 100); });
  }
}

readPalette();
const app = new App(JSON.parse(byId("model").textContent));
app.view.recolour();
app.start();

/** For scripts and tests: the state of the page, up to date. */
window.gatefit = {
  values: () => { app.changed.flush(); return Array.from(app.values); },
  bits: () => { app.changed.flush(); return Array.from(app.bits); },
  scores: () => { app.changed.flush(); return Array.from(app.answer.scores); },
  answer: () => { app.changed.flush(); return app.answer.answer; },
  outputs: () => { app.changed.flush(); return Array.from(app.circuit.outputs, (n) => app.words[n] & 1); },
  set: (values) => { app.source.setValues(values); app.changed.flush(); return app.answer.answer; },
  select: (choice) => app.select(choice),
  findings: () => (app.reasons.ready ? app.reasons.findings : null),
  /** What is proved about the input: how many changes do not matter, what forces the answer, what is nearest. */
  proved: () => app.reasons.proofs.state,
  place: (node) => app.view.screen(node),
  /** The least milliseconds that one evaluation, one "why" and one drawing take. */
  measure: (repeats = 20) => {
    const least = (work) => Math.min(...Array.from({ length: repeats }, () => {
      const start = performance.now();
      work();
      return performance.now() - start;
    }));
    return {
      evaluate: least(() => app.circuit.run(app.bits, app.words)),
      update: least(() => app.evaluate()),
      draw: least(() => { app.view.update(); app.view.paint(); }),
      why: least(() => { for (const _ of app.reasons.whatIf.sweep(app.values)); }),
    };
  },
};
