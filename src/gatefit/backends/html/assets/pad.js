/* A drawing area for image models.
 *
 *   ink       strokes on a fine canvas, white on black
 *   values    what the encoder reads: the mean ink of every pixel, after centring if that is asked for
 *
 * Centring is MNIST's: scale the longer side to the size that the samples have, move the centre of mass to the middle.
 * A sample is shown as it is; its pixels pass through unchanged.
 */
const FINE = 288;
const FAINT = 24;

class Pad {
  constructor(input, onChange) {
    Object.assign(this, { input, onChange });
    const { rows, columns, channels, low } = input;
    this.scale = Math.max(1, Math.round(FINE / Math.max(rows, columns)));
    [this.ink, this.context] = offscreen(columns * this.scale, rows * this.scale);
    [this.moved, this.movedContext] = offscreen(this.ink.width, this.ink.height);
    this.values = new Float64Array(channels * rows * columns).fill(low);
    this.brush = Math.max(1, Math.round(Math.max(rows, columns) * 0.34) / 4);
    this.colour = "#ffffff";
    this.erasing = this.asIs = false;
    this.centring = channels === 1;
    this.cursor = { row: rows >> 1, column: columns >> 1, shown: false };
    this.past = [];
    this.canvas = element("canvas", {
      className: "pad", tabIndex: 0, role: "application",
      "aria-label": `Drawing area, ${rows} by ${columns} pixels. Draw with the mouse or a finger. `
        + "Arrow keys move the cursor, space draws, shift with arrows draws a line, backspace clears.",
    });
    this.listen();
    this.wipe();
  }

  listen() {
    const { canvas } = this;
    canvas.addEventListener("pointerdown", (event) => {
      if (event.button > 0) return;
      canvas.setPointerCapture(event.pointerId);
      this.remember();
      this.last = this.place(event);
      this.stroke(this.last);
      event.preventDefault();
      canvas.focus({ preventScroll: true });
      this.cursor.shown = false;
    });
    canvas.addEventListener("pointermove", (event) => {
      if (!this.last) return;
      const points = event.getCoalescedEvents?.() ?? [];
      for (const point of points.length ? points : [event]) this.stroke(this.place(point));
    });
    for (const end of ["pointerup", "pointercancel"]) canvas.addEventListener(end, () => { this.last = null; });
    canvas.addEventListener("keydown", (event) => this.key(event));
    canvas.addEventListener("blur", () => { this.cursor.shown = false; this.draw(); });
    canvas.addEventListener("focus", () => {
      this.cursor.shown = canvas.matches(":focus-visible");
      this.draw();
    });
  }

  /** Where an event is, in pixels of the ink. */
  place({ clientX, clientY }) {
    const box = this.canvas.getBoundingClientRect();
    return [((clientX - box.left) / box.width) * this.ink.width, ((clientY - box.top) / box.height) * this.ink.height];
  }

  stroke([x, y]) {
    const { context } = this;
    context.strokeStyle = this.erasing ? "#000000" : this.colour;
    context.lineWidth = this.brush * this.scale;
    context.lineCap = context.lineJoin = "round";
    context.beginPath();
    context.moveTo(...(this.last ?? [x, y]));
    context.lineTo(x + 0.01, y);
    context.stroke();
    this.last = this.last && [x, y];
    this.onChange();
  }

  key(event) {
    const step = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[event.key];
    const middle = () => [(this.cursor.column + 0.5) * this.scale, (this.cursor.row + 0.5) * this.scale];
    if (step) {
      const from = middle();
      this.cursor.row = Math.min(this.input.rows - 1, Math.max(0, this.cursor.row + step[0]));
      this.cursor.column = Math.min(this.input.columns - 1, Math.max(0, this.cursor.column + step[1]));
      if (event.shiftKey) {
        this.remember();
        this.last = from;
        this.stroke(middle());
        this.last = null;
      }
    } else if (event.key === " ") {
      this.remember();
      this.stroke(middle());
    } else if (event.key === "Backspace" || event.key === "Delete") {
      this.clear();
    } else if (event.key === "z" && (event.ctrlKey || event.metaKey)) {
      this.undo();
    } else {
      return;
    }
    event.preventDefault();
    this.cursor.shown = true;
    this.draw();
  }

  remember() {
    this.past.push([this.context.getImageData(0, 0, this.ink.width, this.ink.height), this.asIs]);
    if (this.past.length > 20) this.past.shift();
  }

  undo() {
    const before = this.past.pop();
    if (!before) return;
    this.context.putImageData(before[0], 0, 0);
    this.asIs = before[1];
    this.onChange();
  }

  wipe() {
    this.context.fillStyle = "#000000";
    this.context.fillRect(0, 0, this.ink.width, this.ink.height);
    this.asIs = false;
  }

  clear() {
    this.remember();
    this.wipe();
    this.onChange();
  }

  /** Show given pixel values, as they are. */
  setValues(values) {
    this.remember();
    const { rows, columns, channels, low, high } = this.input;
    const image = this.context.createImageData(columns, rows);
    for (let i = 0; i < rows * columns; i++) {
      for (let c = 0; c < 3; c++) {
        const value = values[(channels === 3 ? c : 0) * rows * columns + i];
        image.data[4 * i + c] = Math.round(((value - low) / (high - low)) * 255);
      }
      image.data[4 * i + 3] = 255;
    }
    this.wipe();
    const [small, context] = offscreen(columns, rows);
    context.putImageData(image, 0, 0);
    this.context.imageSmoothingEnabled = false;
    this.context.drawImage(small, 0, 0, this.ink.width, this.ink.height);
    this.asIs = true;
    this.onChange();
  }

  /** Whether the network sees no ink at all. */
  get empty() {
    return this.values.every((value) => value === this.input.low);
  }

  /** Read the values off the ink. */
  read() {
    const { rows, columns, channels, low, high, whole } = this.input;
    const { scale } = this;
    const width = this.ink.width;
    let { data } = this.context.getImageData(0, 0, width, this.ink.height);
    if (this.centring && !this.asIs) data = this.centred(data);
    for (let c = 0, i = 0; c < channels; c++) {
      for (let row = 0; row < rows; row++) {
        for (let column = 0; column < columns; column++, i++) {
          let sum = 0;
          for (let y = row * scale; y < (row + 1) * scale; y++) {
            for (let p = 4 * (y * width + column * scale) + c, end = p + 4 * scale; p < end; p += 4) sum += data[p];
          }
          const value = low + ((high - low) * sum) / (255 * scale * scale);
          this.values[i] = whole ? Math.round(value) : value;
        }
      }
    }
    return this.values;
  }

  /** The ink, scaled and moved to where the network expects it. */
  centred(data) {
    const { width, height } = this.ink;
    let [left, right, top, bottom, mass, mx, my] = [width, -1, height, -1, 0, 0, 0];
    for (let y = 0, p = 0; y < height; y++) {
      for (let x = 0; x < width; x++, p += 4) {
        if (data[p] <= FAINT) continue;
        left = Math.min(left, x); right = Math.max(right, x); top = Math.min(top, y); bottom = Math.max(bottom, y);
        mass += data[p]; mx += data[p] * x; my += data[p] * y;
      }
    }
    if (right < 0) return data;
    const factor = (this.input.fit * Math.max(width, height)) / Math.max(right - left + 1, bottom - top + 1);
    const shift = (centre, low, high, size) =>
      Math.max(-low * factor, Math.min(size - (high + 1) * factor, size / 2 - (centre + 0.5) * factor));
    const context = this.movedContext;
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.fillStyle = "#000000";
    context.fillRect(0, 0, width, height);
    context.setTransform(factor, 0, 0, factor, shift(mx / mass, left, right, width), shift(my / mass, top, bottom, height));
    context.drawImage(this.ink, 0, 0);
    return context.getImageData(0, 0, width, height).data;
  }

  draw() {
    const { canvas, ink, input } = this;
    const { width, height, ratio } = fitCanvas(canvas);
    const context = canvas.getContext("2d");
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.imageSmoothingEnabled = !this.asIs;
    context.drawImage(ink, 0, 0, width, height);
    if (input.channels === 1 && !isDark()) {
      context.globalCompositeOperation = "difference";
      context.fillStyle = "#ffffff";
      context.fillRect(0, 0, width, height);
      context.globalCompositeOperation = "source-over";
    }
    const cell = width / input.columns;
    context.fillStyle = css(palette.muted, 0.22);
    if (cell >= 6) {
      for (let i = 1; i < input.columns; i++) context.fillRect(i * cell - 0.25, 0, 0.5, height);
      for (let i = 1; i < input.rows; i++) context.fillRect(0, i * cell - 0.25, width, 0.5);
    }
    if (this.cursor.shown) {
      context.strokeStyle = css(palette.accent);
      context.lineWidth = 2.5;
      context.strokeRect(this.cursor.column * cell, this.cursor.row * cell, cell, cell);
    }
  }
}

/** Paint pixel values, or any numbers from 0 to 1 given by shade(pixel, channel), as a small picture. */
function paintPixels(canvas, { rows, columns, channels }, shade) {
  const [small, context] = offscreen(columns, rows);
  const image = context.createImageData(columns, rows);
  for (let i = 0; i < rows * columns; i++) {
    const colour = channels === 3 ? [0, 1, 2].map((c) => 255 * shade(i, c)) : mix(palette.paper, palette.ink, shade(i, 0));
    image.data.set([...colour, 255], 4 * i);
  }
  context.putImageData(image, 0, 0);
  const { width, height, ratio } = fitCanvas(canvas);
  const target = canvas.getContext("2d");
  target.setTransform(ratio, 0, 0, ratio, 0, 0);
  target.imageSmoothingEnabled = false;
  target.drawImage(small, 0, 0, width, height);
}
