/* Painting the circuit: cells from far away as one picture, from near one by one; wires as curves.
 *
 *   raster   one pixel a cell, rewritten at every new input, enlarged by the browser
 *   wires    of the selection, of the gates in view when near, else every so-manieth of all
 */
const NEAR = 7, SYMBOLS_FROM = 24;
const MOST_WIRES = 2400, SAMPLED_WIRES = 900, NEAR_WIRES = 1500;
const GROUPS = ["input", "constant", "separable", "weak", "strong"];

class Painter {
  constructor(circuit, layout, model) {
    Object.assign(this, { circuit, layout, model });
    const width = Math.ceil(layout.classLeft);
    [this.raster, this.context] = offscreen(width, layout.rows);
    this.image = this.context.createImageData(width, layout.rows);
    this.pixels = new Int32Array(this.image.data.buffer);
    this.group = new Uint8Array(circuit.nodes);
    this.pixel = new Uint32Array(circuit.nodes);
    this.width = width;
    for (let n = 0; n < circuit.nodes; n++) {
      this.group[n] = n < circuit.inputs ? 0 : GROUPS.indexOf(circuit.kind(n).kind.split(" ")[0]);
      this.pixel[n] = layout.y[n] * width + layout.x[n];
    }
    this.symbols = circuit.kinds.map(({ formula }) => symbolic(formula, "a", "b"));
    this.sample = this.sampleWires();
  }

  /** Every so-manieth wire of the whole circuit, as pairs of nodes. */
  sampleWires() {
    const { circuit } = this;
    const stride = Math.max(1, Math.ceil((2 * circuit.gates.length) / SAMPLED_WIRES));
    const wires = [];
    for (let i = 0; i < circuit.gates.length; i += stride) {
      const n = circuit.inputs + i;
      for (const from of circuit.reads(n)) wires.push(from, n);
    }
    return wires;
  }

  /** Colours by group, value and whether the node is in the background. */
  readColours(byKind) {
    const colour = (group, value, dim) => {
      const full = byKind && group > 0 ? palette[GROUPS[group]] : palette.on;
      const shown = value ? full : byKind && group > 0 ? mix(palette.card, full, 0.3) : palette.off;
      return dim ? mix(palette.card, shown, 0.16) : shown;
    };
    this.colours = GROUPS.map((_, group) => [0, 1, 2, 3].map((code) => colour(group, code & 1, code >> 1)));
    this.styles = this.colours.map((codes) => codes.map((each) => css(each)));
    this.numbers = this.colours.map((codes) => Int32Array.from(codes, (each) => packed(each)));
  }

  /** Write the raster anew; nodes that are not in `mask`, if there is one, fade. */
  repaint(words, mask) {
    const { pixels, pixel, group, numbers, width } = this;
    const { inputs } = this.circuit;
    const colour = (n) => numbers[group[n]][(words[n] & 1) | (mask !== null && !mask[n] ? 2 : 0)];
    const size = this.layout.magnified;
    for (let n = 0; n < inputs; n++) {
      for (let i = 0; i < size; i++) pixels.fill(colour(n), pixel[n] + i * width, pixel[n] + i * width + size);
    }
    for (let n = inputs; n < words.length; n++) pixels[pixel[n]] = colour(n);
    this.context.putImageData(this.image, 0, 0);
  }

  /** Paint what is in view: `place` is {x, y, scale}, `state` what is selected and the words. */
  paint(context, size, place, state) {
    const { layout } = this;
    const { scale } = place;
    context.clearRect(0, 0, size.width, size.height);
    context.save();
    context.translate(-place.x * scale, -place.y * scale);
    const near = scale >= NEAR;
    const view = { left: place.x, top: place.y, right: place.x + size.width / scale, bottom: place.y + size.height / scale };
    // The wires of all are behind the gates; those of a choice run over all others.
    if (!state.wires) {
      const wires = near ? this.wiresInView(view) : this.sample;
      this.wires(context, scale, wires, state, near ? Math.min(0.7, 0.15 + 90 / wires.length) : 0.28);
    }
    if (near) {
      this.cells(context, scale, view, state, false);
    } else {
      context.imageSmoothingEnabled = scale < 1;
      context.drawImage(this.raster, 0, 0, this.raster.width * scale, this.raster.height * scale);
    }
    if (state.wires) {
      this.wires(context, scale, state.wires, state, Math.min(0.9, 0.22 + 150 / state.wires.length));
      if (near) this.cells(context, scale, view, state, true);
      else this.dots(context, scale, state);
    }
    this.classWires(context, scale, state);
    this.classes(context, scale, state);
    this.titles(context, scale);
    if (state.node >= 0) this.mark(context, scale, state.node, palette.accent, 2.5);
    if (state.hover >= 0 && state.hover !== state.node) this.mark(context, scale, state.hover, palette.text, 1.5);
    context.restore();
    return layout;
  }

  mark(context, scale, node, colour, width) {
    context.strokeStyle = css(colour);
    context.lineWidth = width;
    const grow = scale < 5 ? 3 : 1;
    const side = this.layout.size(node) * scale + 2 * grow;
    context.strokeRect(this.layout.x[node] * scale - grow, this.layout.y[node] * scale - grow, side, side);
  }

  /** From far away, the nodes of a small choice as dots that can be seen. */
  dots(context, scale, { wires, words }) {
    if (wires.length > 800) return;
    for (const n of new Set(wires)) {
      const half = this.layout.size(n) / 2;
      context.beginPath();
      context.arc((this.layout.x[n] + half) * scale, (this.layout.y[n] + half) * scale, 3.2, 0, 2 * Math.PI);
      context.fillStyle = css(words[n] & 1 ? palette.on : palette.muted);
      context.fill();
    }
  }

  wiresInView({ left, top, right, bottom }) {
    const { circuit, layout } = this;
    const wires = [];
    const each = (x, y) => {
      const n = layout.nodeAt(x, y);
      if (n >= circuit.inputs && wires.length < 2 * NEAR_WIRES) for (const from of circuit.reads(n)) wires.push(from, n);
    };
    for (let x = Math.max(0, Math.floor(left)); x < right; x++) {
      for (let y = Math.max(0, Math.floor(top)); y < Math.min(layout.rows, bottom); y++) each(x, y);
    }
    return wires;
  }

  /** Wires that carry 1 over wires that carry 0, each set in one stroke. */
  wires(context, scale, wires, { words }, alpha) {
    const { x, y } = this.layout;
    for (const value of [0, 1]) {
      context.beginPath();
      for (let i = 0; i < wires.length; i += 2) {
        const from = wires[i], to = wires[i + 1];
        if ((words[from] & 1) !== value) continue;
        const size = this.layout.size(from);
        this.curve(context, (x[from] + 0.9 * size) * scale, (y[from] + 0.5 * size) * scale, (x[to] + 0.1) * scale, (y[to] + 0.5) * scale);
      }
      context.strokeStyle = css(value ? palette.on : palette.muted, value ? alpha : alpha * 0.55);
      context.lineWidth = Math.min(2, Math.max(wires.length > 800 ? 0.6 : 1.2, scale * 0.08));
      context.stroke();
    }
  }

  curve(context, x0, y0, x1, y1) {
    const middle = (x0 + x1) / 2;
    context.moveTo(x0, y0);
    context.bezierCurveTo(middle, y0, middle, y1, x1, y1);
  }

  cells(context, scale, { left, top, right, bottom }, { words, mask }, brightOnly) {
    const { layout, circuit } = this;
    const gap = Math.min(2, scale * 0.08);
    const text = scale >= SYMBOLS_FROM;
    context.textAlign = "center";
    context.textBaseline = "middle";
    context.font = `${Math.round(scale * 0.23)}px ui-monospace, monospace`;
    for (let x = Math.max(0, Math.floor(left)); x < right; x++) {
      for (let y = Math.max(0, Math.floor(top)); y < Math.min(layout.rows, bottom); y++) {
        const n = layout.nodeAt(x, y);
        if (n < 0 || layout.x[n] !== x || layout.y[n] !== y || (brightOnly && !mask[n])) continue;
        const size = layout.size(n);
        const code = (words[n] & 1) | (mask !== null && !mask[n] ? 2 : 0);
        context.fillStyle = this.styles[this.group[n]][code];
        context.fillRect(x * scale + gap, y * scale + gap, size * scale - 2 * gap, size * scale - 2 * gap);
        if (text && n >= circuit.inputs) {
          context.fillStyle = readableOn(this.colours[this.group[n]][code]);
          context.fillText(this.symbols[circuit.gates[n - circuit.inputs]], (x + 0.5) * scale, (y + 0.5) * scale);
        }
      }
    }
  }

  /** From outputs to the classes that count them: those of the choice, or some of all. */
  classWires(context, scale, { words, chosen, node: only, mask }) {
    const { circuit, layout } = this;
    if (mask !== null && chosen < 0 && only < 0) return;
    const stride = mask !== null ? 1 : Math.max(1, Math.ceil(circuit.outputs.length / 300));
    for (const value of [0, 1]) {
      context.beginPath();
      for (let i = 0, drawn = 0; i < circuit.outputs.length && drawn < MOST_WIRES; i += stride) {
        const node = circuit.outputs[i];
        if ((words[node] & 1) !== value || (only >= 0 && node !== only)) continue;
        for (const k of circuit.readout.classesOf(i)) {
          if (chosen >= 0 && k !== chosen) continue;
          drawn++;
          this.curve(context, (layout.x[node] + 0.9) * scale, (layout.y[node] + 0.5) * scale,
            layout.classLeft * scale, (k + 0.5) * layout.classHeight * scale);
        }
      }
      context.strokeStyle = css(value ? palette.on : palette.muted, mask !== null ? 0.55 : 0.22);
      context.lineWidth = 0.8;
      context.stroke();
    }
  }

  classes(context, scale, { scores, answer, chosen }) {
    const { layout, model } = this;
    const height = layout.classHeight * scale, width = layout.classWidth * scale, left = layout.classLeft * scale;
    const [low, high] = [Math.min(0, ...scores), Math.max(...scores)];
    context.textAlign = "left";
    context.textBaseline = "middle";
    context.font = `${answer >= 0 ? 600 : 400} ${Math.min(13, Math.max(9, height * 0.42))}px system-ui, sans-serif`;
    model.classes.forEach((name, k) => {
      const y = k * height, share = high > low ? (scores[k] - low) / (high - low) : 0;
      const inset = Math.min(3, height * 0.1);
      context.fillStyle = css(palette.off);
      context.fillRect(left, y + inset, width, height - 2 * inset);
      context.fillStyle = css(k === answer ? palette.on : mix(palette.off, palette.muted, 0.55));
      context.fillRect(left, y + inset, width * share, height - 2 * inset);
      if (k === chosen) {
        context.strokeStyle = css(palette.accent);
        context.lineWidth = 2;
        context.strokeRect(left, y + inset, width, height - 2 * inset);
      }
      if (height < 9) return;
      context.fillStyle = css(palette.text);
      const text = model.readout.kind === "affine" || model.readout.value ? shortNumber(scores[0]) : name;
      context.fillText(text.length > 14 ? `${text.slice(0, 13)}…` : text, left + width + 6, y + height / 2);
    });
  }

  titles(context, scale) {
    context.textAlign = "left";
    context.textBaseline = "alphabetic";
    context.font = "11px system-ui, sans-serif";
    context.fillStyle = css(palette.muted);
    let free = -Infinity;
    for (const { left, title, count, level } of this.layout.blocks) {
      const text = level === 0 ? title : String(level);
      if (left * scale < free) continue;
      const shown = scale * this.layout.gap > 60 ? `${title} (${count.toLocaleString("en")})` : text;
      context.fillText(shown, left * scale, -7);
      free = left * scale + context.measureText(shown).width + 8;
    }
  }
}

/** Black or white, whichever reads better on a colour. */
function readableOn([r, g, b]) {
  return 0.299 * r + 0.587 * g + 0.114 * b > 140 ? "#111111" : "#ffffff";
}

/** A formula in the signs of logic. */
function symbolic(formula, a, b) {
  return formula.replace("{a}", a).replace("{b}", b).replaceAll("&", "∧").replaceAll("|", "∨").replaceAll("^", "⊕")
    .replace("~0", "1").replaceAll("~", "¬").replaceAll(" ", "").replace(/^\((.*)\)$/, "$1");
}
