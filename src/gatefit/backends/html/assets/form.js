/* Controls for a table's features: a slider and a number, a list to choose from, or a box to tick. */
const MISSING = "missing", NONE = "-1";

class Form {
  constructor(features, onChange) {
    Object.assign(this, { features, onChange });
    this.values = features.map((feature) => feature.initial());
    this.show = [];
    this.root = element("div", { className: "form" }, ...features.map((feature, f) => this.row(feature, f)));
  }

  row(feature, f) {
    const make = { number: "numberRow", choice: "choiceRow", bit: "bitRow" }[feature.kind];
    const row = this[make](feature, f);
    row.dataset.feature = feature.name;
    this.show[f]();
    return row;
  }

  set(f, value) {
    this.values[f] = value;
    this.show[f]();
    this.onChange();
  }

  numberRow(feature, f) {
    const { name, low, high, step, levels } = feature;
    const slider = element("input", { type: "range", min: low, max: high, step, "aria-label": name });
    const number = element("input", { type: "number", step: "any", "aria-label": `${name}, exact value` });
    slider.oninput = () => this.set(f, Number(slider.value));
    number.oninput = () => { if (number.value !== "" && number.checkValidity()) this.set(f, Number(number.value)); };
    const ticks = element("div", { className: "ticks", "aria-hidden": "true" });
    for (const level of levels.length <= 64 ? levels : []) {
      const tick = element("i");
      tick.style.left = `${(100 * (level - low)) / (high - low || 1)}%`;
      ticks.append(tick);
    }
    const missing = this.missingBox(feature, f, () => Number(slider.value));
    this.show[f] = () => {
      const value = this.values[f];
      slider.disabled = number.disabled = value === null;
      if (missing) missing.querySelector("input").checked = value === null;
      if (value === null) return;
      slider.value = value;
      if (Number(number.value) !== value || number.value === "") number.value = Number(value.toPrecision(12));
    };
    return element("div", { className: "row" }, element("span", { className: "name" }, name),
      element("div", { className: "slider" }, slider, ticks), number, ...(missing ? [missing] : []));
  }

  choiceRow(feature, f) {
    const { name, options } = feature;
    const select = element("select", { "aria-label": name },
      ...options.map((text, j) => element("option", { value: String(j) }, text)),
      element("option", { value: NONE }, "(none of these)"),
      ...(feature.missing >= 0 ? [element("option", { value: MISSING }, "(missing)")] : []));
    select.onchange = () => this.set(f, select.value === MISSING ? null : Number(select.value));
    this.show[f] = () => {
      const value = this.values[f];
      select.value = value !== null ? String(value) : feature.missing >= 0 ? MISSING : NONE;
    };
    return element("div", { className: "row" }, element("span", { className: "name" }, name), select);
  }

  bitRow(feature, f) {
    const box = element("input", { type: "checkbox", "aria-label": feature.name });
    box.onchange = () => this.set(f, box.checked ? 1 : 0);
    const missing = this.missingBox(feature, f, () => Number(box.checked));
    this.show[f] = () => {
      box.checked = this.values[f] === 1;
      box.disabled = this.values[f] === null;
      if (missing) missing.querySelector("input").checked = this.values[f] === null;
    };
    return element("div", { className: "row" }, element("span", { className: "name" }, feature.name), box,
      ...(missing ? [missing] : []));
  }

  missingBox(feature, f, value) {
    if (feature.missing < 0) return null;
    const box = element("input", { type: "checkbox", "aria-label": `${feature.name} is missing` });
    box.onchange = () => this.set(f, box.checked ? null : value());
    return labelled("missing", box, "missing");
  }

  setValues(values) {
    this.values = Array.from(values);
    for (const show of this.show) show();
    this.onChange();
  }

  read() {
    return this.values;
  }

  draw() {}
}
