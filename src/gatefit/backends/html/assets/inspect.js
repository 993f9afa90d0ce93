/* What was chosen: a gate, an input or a class, with its cone and its formula; and how many gates there are of each kind. */
class Inspector {
  constructor(root, model, circuit, names, onSelect) {
    Object.assign(this, { model, circuit, onSelect });
    this.words = new Words(circuit, names);
    this.depth = 2;
    const slider = element("input", { type: "range", min: 1, max: 6, value: this.depth, id: "depth" });
    slider.oninput = () => { this.depth = Number(slider.value); this.refresh(); };
    this.title = element("h3", { id: "chosen" });
    this.facts = element("p", { className: "hint" });
    this.formula = element("div", { className: "formula" });
    this.options = labelled("Written out to a depth of", slider);
    this.back = button("Show everything", () => onSelect({}));
    root.append(this.title, this.facts, this.options, this.formula, this.back);
    this.state = { words: new Int32Array(circuit.nodes) };
    this.select({});
  }

  /** Choose {node}, {chosen: class}, {kind: gate number} or nothing; returns what the drawing needs to know. */
  select({ node = -1, chosen = -1, kind = -1 }) {
    const { circuit } = this;
    this.selection = { node, chosen, kind };
    this.cone = null;
    if (node >= 0) this.cone = cone(circuit, [node]);
    if (chosen >= 0) this.cone = cone(circuit, this.outputsOf(chosen));
    let mask = this.cone?.mask ?? null;
    if (kind >= 0) mask = Uint8Array.from({ length: circuit.nodes }, (_, n) => (n >= circuit.inputs && circuit.gates[n - circuit.inputs] === kind ? 1 : 0));
    this.refresh();
    return { node, chosen, mask, wires: kind >= 0 ? [] : this.cone?.wires ?? null };
  }

  outputsOf(k) {
    const { circuit } = this;
    return Array.from(circuit.outputs).filter((_, i) => circuit.readout.classesOf(i).includes(k));
  }

  update(words, scores) {
    this.state = { words, scores };
    this.refresh();
  }

  refresh() {
    const { node, chosen, kind } = this.selection;
    this.options.hidden = node < 0 && chosen < 0;
    this.back.hidden = node < 0 && chosen < 0 && kind < 0;
    if (node >= 0) this.showNode(node);
    else if (chosen >= 0) this.showClass(chosen);
    else this.showNothing(kind);
  }

  showNothing(kind) {
    this.title.textContent = kind >= 0 ? `Gates of kind ${this.circuit.kinds[kind].name.replaceAll("_", " ")}` : "Nothing chosen";
    this.facts.textContent = kind >= 0 ? "They are shown bright in the drawing."
      : "Choose a gate, an input or a class in the drawing to see what it depends on, and what it says in words.";
    this.formula.replaceChildren();
  }

  showNode(node) {
    const { circuit, words } = this;
    const value = this.state.words[node] & 1;
    if (circuit.isInput(node)) {
      this.title.textContent = words.label(node);
      this.facts.textContent = `An input bit; it is ${value} now.`;
      this.formula.replaceChildren();
      return;
    }
    const { name, formula, kind } = circuit.kind(node);
    this.title.textContent = `Gate ${(node - circuit.inputs).toLocaleString("en")}, layer ${circuit.level[node]}: ${value}`;
    this.facts.textContent = `${name.replaceAll("_", " ")} (${symbolic(formula, "a", "b")}), ${kind}; depends on `
      + `${count(this.cone.gates - 1, "other gate")} and ${count(this.cone.inputs, "input")}.`;
    this.formula.replaceChildren(element("p", { className: "lead" }, value ? "It is true, because this holds:" : "It is false, because this does not hold:"),
      words.sentence(node, this.depth, this.state.words, this.onSelect));
  }

  showClass(k) {
    const { circuit, model } = this;
    const outputs = this.outputsOf(k);
    const on = outputs.filter((n) => this.state.words[n] & 1);
    this.title.textContent = circuit.readout.affine ? "The value" : `Class ${model.classes[k].replace(/^class /, "")}`;
    const offset = circuit.readout.offsets?.[k] ?? 0;
    const fixed = offset ? ` It starts at ${offset}.` : "";
    const how = ["linear", "weighted"].includes(circuit.readout.spec.kind) ? "weighs" : "counts";
    this.facts.textContent = `Its score ${how} ${count(outputs.length, "output")}, ${on.length} of them 1 now.${fixed} `
      + `They depend on ${count(this.cone.gates, "gate")} and ${count(this.cone.inputs, "input")}.`;
    const shown = [...on, ...outputs.filter((n) => !(this.state.words[n] & 1))].slice(0, 5);
    this.formula.replaceChildren(...shown.map((n) => {
      const line = this.words.sentence(n, this.depth, this.state.words, this.onSelect);
      line.prepend(element("b", { className: this.state.words[n] & 1 ? "value on" : "value" }, String(this.state.words[n] & 1)));
      return line;
    }));
    if (outputs.length > shown.length) {
      this.formula.append(element("p", { className: "hint" }, `and ${outputs.length - shown.length} more outputs`));
    }
  }
}

const count = (number, what) => `${number.toLocaleString("en")} ${what}${number === 1 ? "" : "s"}`;

/** How many gates there are of each of the sixteen kinds; a kind can be chosen. */
class Census {
  constructor(root, circuit, onSelect) {
    this.circuit = circuit;
    this.totals = new Uint32Array(16);
    for (const gate of circuit.gates) this.totals[gate]++;
    const order = Array.from(this.totals.keys()).sort((i, j) => this.totals[j] - this.totals[i] || i - j);
    const most = Math.max(1, ...this.totals);
    this.live = [];
    this.rows = [];
    const rows = order.map((gate) => {
      const { name, formula, kind } = circuit.kinds[gate];
      const bar = element("span", { className: `fill ${kind.split(" ")[0]}` });
      bar.style.width = `${(100 * this.totals[gate]) / most}%`;
      this.live[gate] = element("td", { className: "number" });
      this.rows[gate] = toggle(name.replaceAll("_", " "), false, (on) => onSelect(on ? { kind: gate } : {}));
      return element("tr", {}, element("th", { scope: "row" }, this.rows[gate]), element("td", { className: "mono" }, symbolic(formula, "a", "b")),
        element("td", { className: "number" }, this.totals[gate].toLocaleString("en")),
        element("td", { className: "wide" }, element("span", { className: "track" }, bar)), this.live[gate]);
    });
    const head = ["gate", "formula", "gates", "", "1 now"].map((text) => element("th", { scope: "col" }, text));
    root.append(element("div", { className: "scroll" }, element("table", {}, element("thead", {}, element("tr", {}, ...head)), element("tbody", {}, ...rows))),
      legend([["constant", "constant"], ["separable", "one input"], ["weak", "and, or"], ["strong", "exclusive or"]]));
  }

  select({ kind = -1 }) {
    this.rows.forEach((row, gate) => row.setAttribute("aria-pressed", String(gate === kind)));
  }

  update(words) {
    const ones = new Uint32Array(16);
    const { gates, inputs } = this.circuit;
    for (let i = 0; i < gates.length; i++) ones[gates[i]] += words[inputs + i] & 1;
    this.live.forEach((cell, gate) => {
      cell.textContent = this.totals[gate] ? `${Math.round((100 * ones[gate]) / this.totals[gate])} %` : "–";
    });
  }
}
