/* The answer: the class with the largest score, and all scores as bars; or the value of a regression. */
const MANY_CLASSES = 20;

class Answer {
  constructor(root, model, circuit, onSelect) {
    Object.assign(this, { model, circuit });
    const { readout } = circuit;
    this.scores = new Float64Array(readout.classes);
    this.headline = element("output", { className: "headline", id: "prediction" });
    this.detail = element("p", { className: "hint", id: "detail" });
    this.spoken = element("p", { className: "spoken", role: "status" });
    root.append(element("div", { className: "verdict" }, this.headline, this.detail), this.spoken);
    if (readout.affine) return;
    this.bars = model.classes.map((name, k) => this.bar(name, k, onSelect));
    root.append(element("ol", { className: model.classes.length > MANY_CLASSES ? "bars many" : "bars" },
      ...this.bars.map(({ row }) => row)));
    root.append(element("p", { className: "hint" }, "Choose a class to see the gates behind its score."));
  }

  bar(name, k, onSelect) {
    const fill = element("span", { className: "fill" });
    const score = element("span", { className: "score" });
    const share = element("span", { className: "share" });
    const control = button("", () => onSelect(k), { className: "bar", "aria-pressed": "false" });
    control.append(element("span", { className: "label", title: name }, name),
      element("span", { className: "track" }, fill), score, share);
    return { row: element("li", {}, control), control, fill, score, share };
  }

  select(k) {
    this.bars?.forEach(({ control }, j) => control.setAttribute("aria-pressed", String(j === k)));
  }

  /** The scores of lane 0; of an empty canvas they are no answer. */
  update(words, empty) {
    const { readout } = this.circuit;
    readout.lanes(words, this.scores, 1);
    this.answer = argmax(this.scores);
    if (empty) return this.showNothing();
    if (readout.affine) return this.showValue();
    const { scores } = this;
    const chances = probabilities(scores, readout.temperature);
    const [low, high] = [Math.min(0, ...scores), Math.max(...scores)];
    this.bars.forEach(({ row, control, fill, score, share }, k) => {
      row.classList.toggle("winner", k === this.answer);
      fill.style.width = `${high > low ? (100 * (scores[k] - low)) / (high - low) : 0}%`;
      score.textContent = shortNumber(scores[k]);
      share.textContent = `${(100 * chances[k]).toFixed(chances[k] > 0.0995 ? 0 : 1)} %`;
      control.setAttribute("aria-label", `${this.model.classes[k]}: score ${score.textContent}, ${share.textContent}`);
    });
    const lead = margin(scores, this.answer);
    const tied = scores.length > 1 && lead === 0 ? " (tied: of equal scores the first wins)" : "";
    this.headline.textContent = this.model.classes[this.answer];
    this.detail.textContent = scores.length > 1
      ? `leads by ${shortNumber(lead)}; ${(100 * chances[this.answer]).toFixed(1)} % by the model's own measure${tied}`
      : `score ${shortNumber(scores[0])}`;
    this.say(`Answer: ${this.headline.textContent}`);
  }

  showNothing() {
    this.bars?.forEach(({ row, control, fill, score, share }, k) => {
      row.classList.remove("winner");
      fill.style.width = "0%";
      score.textContent = share.textContent = "–";
      control.setAttribute("aria-label", `${this.model.classes[k]}: no score yet`);
    });
    this.headline.textContent = "–";
    this.detail.textContent = "Nothing is drawn yet: draw something, and the answer follows every stroke.";
    this.say(this.detail.textContent);
  }

  showValue() {
    this.headline.textContent = shortNumber(this.scores[0]);
    const { kind, offset, scale, intercept } = this.circuit.readout.spec;
    if (kind === "weighted") {
      const sum = Math.round((this.scores[0] - intercept) / scale);
      this.detail.textContent = `value = ${shortNumber(intercept)} + ${shortNumber(scale)} × ${sum}, a weighted sum`;
      this.say(`Value: ${this.headline.textContent}`);
      return;
    }
    const count = Math.round((this.scores[0] - intercept) / scale) - offset;
    this.detail.textContent = `value = ${shortNumber(intercept)} + ${shortNumber(scale)} × ones; `
      + `${count} of ${this.circuit.outputs.length} outputs are 1`;
    this.say(`Value: ${this.headline.textContent}`);
  }

  /** Tell screen readers once the input rests. */
  say(text) {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => { if (this.spoken.textContent !== text) this.spoken.textContent = text; }, 500);
  }
}
