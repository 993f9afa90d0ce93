/* A grid of toggles for inputs that have no more meaning than a bit. */
class Grid {
  constructor(names, onChange) {
    Object.assign(this, { names, onChange });
    this.values = new Uint8Array(names.length);
    this.columns = Math.max(1, Math.ceil(Math.sqrt(names.length)));
    this.rows = Math.ceil(names.length / this.columns);
    this.cursor = 0;
    this.setting = null;
    this.canvas = element("canvas", {
      className: "pad", tabIndex: 0, role: "application",
      "aria-label": `${names.length} input bits. Arrow keys move, space changes a bit, backspace clears all.`,
    });
    this.canvas.style.aspectRatio = `${this.columns} / ${this.rows}`;
    this.status = element("p", { className: "hint", "aria-live": "polite" });
    this.listen();
  }

  listen() {
    const { canvas } = this;
    canvas.addEventListener("pointerdown", (event) => {
      if (event.button > 0) return;
      canvas.setPointerCapture(event.pointerId);
      event.preventDefault();
      canvas.focus({ preventScroll: true });
      const bit = this.place(event);
      this.setting = this.values[bit] ? 0 : 1;
      this.set(bit, this.setting);
    });
    canvas.addEventListener("pointermove", (event) => {
      const bit = this.place(event);
      if (this.setting !== null) this.set(bit, this.setting);
      else this.say(bit);
    });
    for (const end of ["pointerup", "pointercancel"]) canvas.addEventListener(end, () => { this.setting = null; });
    canvas.addEventListener("keydown", (event) => this.key(event));
    for (const change of ["focus", "blur"]) canvas.addEventListener(change, () => this.draw());
  }

  place({ clientX, clientY }) {
    const box = this.canvas.getBoundingClientRect();
    const inside = (part, count) => Math.min(count - 1, Math.max(0, Math.floor(part * count)));
    const row = inside((clientY - box.top) / box.height, this.rows);
    return Math.min(this.names.length - 1, row * this.columns + inside((clientX - box.left) / box.width, this.columns));
  }

  set(bit, value) {
    this.cursor = bit;
    if (this.values[bit] !== value) {
      this.values[bit] = value;
      this.onChange();
    }
    this.say(bit);
  }

  say(bit) {
    this.status.textContent = `${this.names[bit]} is ${this.values[bit]}`;
  }

  key(event) {
    const step = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -this.columns, ArrowDown: this.columns }[event.key];
    if (step) {
      if (this.cursor + step >= 0 && this.cursor + step < this.names.length) this.cursor += step;
      this.say(this.cursor);
    } else if (event.key === " " || event.key === "Enter") {
      this.set(this.cursor, 1 - this.values[this.cursor]);
    } else if (event.key === "Backspace" || event.key === "Delete") {
      this.clear();
    } else {
      return;
    }
    event.preventDefault();
    this.draw();
  }

  clear() {
    this.setValues(new Uint8Array(this.names.length));
  }

  setValues(values) {
    this.values.set(values);
    this.onChange();
  }

  read() {
    return this.values;
  }

  draw() {
    const { width, height, ratio } = fitCanvas(this.canvas);
    const context = this.canvas.getContext("2d");
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, height);
    const cell = width / this.columns, gap = cell > 5 ? Math.max(0.5, cell * 0.06) : 0;
    this.values.forEach((value, bit) => {
      context.fillStyle = css(value ? palette.on : palette.off);
      context.fillRect((bit % this.columns) * cell + gap, Math.floor(bit / this.columns) * cell + gap,
        cell - 2 * gap, cell - 2 * gap);
    });
    if (document.activeElement === this.canvas) {
      context.strokeStyle = css(palette.accent);
      context.lineWidth = 2.5;
      context.strokeRect((this.cursor % this.columns) * cell, Math.floor(this.cursor / this.columns) * cell, cell, cell);
    }
  }
}
