/* Where every node is drawn: one block of cells for the inputs, one for each layer of gates, then the classes.
 *
 *   cell (x, y)    whole numbers; a block is filled column by column, at most `rows` cells high
 *   image inputs   one picture for each threshold and colour, below each other
 *   size           cells across one node: pictures are enlarged where the gates fill a high block
 */
class Layout {
  constructor(circuit, model, aspect = 2.4) {
    Object.assign(this, { circuit, aspect });
    const sizes = new Uint32Array(circuit.depth + 1);
    for (const level of circuit.level) sizes[level]++;
    this.sizes = sizes;
    this.picture = model.input.kind === "image" ? model.input : null;
    this.rows = this.bestRows(aspect);
    this.gap = this.gapFor(this.rows);
    this.x = new Uint16Array(circuit.nodes);
    this.y = new Uint16Array(circuit.nodes);
    this.blocks = [];
    this.magnified = this.magnification(this.rows);
    let left = this.placeInputs(circuit, model);
    left = this.placeGates(circuit, left);
    this.classHeight = this.rows / Math.max(1, model.classes.length);
    this.classLeft = left;
    this.classWidth = Math.max(2, this.gap * 0.7);
    this.width = left + this.classWidth;
    this.cells = new Int32Array(this.width > 65535 ? 0 : Math.ceil(this.classLeft) * this.rows).fill(-1);
    for (let n = 0; n < circuit.nodes; n++) {
      for (let i = 0, size = this.size(n); i < size * size; i++) {
        this.cells[(this.x[n] + (i % size)) * this.rows + this.y[n] + Math.floor(i / size)] = n;
      }
    }
  }

  size(node) {
    return node < this.circuit.inputs ? this.magnified : 1;
  }

  /** How much larger than a gate an input is drawn, so that the pictures fill some of the height. */
  magnification(rows) {
    if (!this.picture) return 1;
    const { levels, channels, rows: high } = this.picture;
    return Math.max(1, Math.floor((rows * 0.4) / ((high + 1) * levels.length * channels)));
  }

  gapFor(rows) {
    return Math.max(3, Math.round(rows * Math.min(0.13, 0.065 * this.aspect)));
  }

  inputWidth(rows) {
    if (!this.picture) return Math.ceil(this.sizes[0] / rows);
    const { columns, levels, channels } = this.picture;
    return this.magnification(rows) * (Math.ceil((levels.length * channels) / this.picturesHigh(rows)) * (columns + 1) - 1);
  }

  picturesHigh(rows) {
    return Math.max(1, Math.floor((rows + 1) / (this.picture.rows + 1)));
  }

  /** The height that makes the whole nearest to `aspect` times as wide as high. */
  bestRows(aspect) {
    const least = this.picture ? this.picture.rows : 4;
    let best = least, error = Infinity;
    const most = Math.max(least, 1.6 * Math.sqrt(this.circuit.nodes));
    for (let rows = least; rows <= most; rows = Math.ceil(rows * 1.04 + 0.5)) {
      let width = this.inputWidth(rows) + this.gapFor(rows) * (this.sizes.length + 0.8);
      for (let level = 1; level < this.sizes.length; level++) width += Math.ceil(this.sizes[level] / rows);
      const off = Math.abs(Math.log(width / rows / aspect));
      if (off < error) [best, error] = [rows, off];
    }
    return best;
  }

  placeInputs(circuit, model) {
    const { rows } = this;
    const width = this.inputWidth(rows);
    if (this.picture) {
      const { columns, channels } = this.picture;
      const feature = decodeArray(model.input.feature), level = decodeArray(model.input.level);
      const plane = this.picture.rows * columns, high = this.picturesHigh(rows);
      const pictures = this.picture.levels.length * channels;
      const m = this.magnified;
      const top = Math.floor((rows - m * (Math.min(high, pictures) * (this.picture.rows + 1) - 1)) / 2);
      for (let n = 0; n < circuit.inputs; n++) {
        const place = feature[n] % plane, picture = level[n] * channels + Math.floor(feature[n] / plane);
        this.x[n] = m * (Math.floor(picture / high) * (columns + 1) + (place % columns));
        this.y[n] = top + m * ((picture % high) * (this.picture.rows + 1) + Math.floor(place / columns));
      }
    } else {
      this.fill(Array.from({ length: circuit.inputs }, (_, n) => n), 0);
    }
    this.blocks.push({ level: 0, left: 0, width, title: "inputs", count: circuit.inputs });
    return width + this.gap;
  }

  placeGates(circuit, start) {
    const layers = Array.from(this.sizes, () => []);
    for (let n = circuit.inputs; n < circuit.nodes; n++) layers[circuit.level[n]].push(n);
    let left = start;
    for (let level = 1; level < layers.length; level++) {
      const width = this.fill(layers[level], left);
      this.blocks.push({ level, left, width, title: `layer ${level}`, count: layers[level].length });
      left += width + this.gap;
    }
    return left;
  }

  /** Nodes into a block at `left`, column by column, a short last column in the middle; returns its width. */
  fill(nodes, left) {
    const { rows } = this;
    const width = Math.ceil(nodes.length / rows);
    const high = Math.ceil(nodes.length / Math.max(1, width));
    const top = Math.floor((rows - high) / 2);
    nodes.forEach((n, i) => {
      this.x[n] = left + Math.floor(i / high);
      this.y[n] = top + (i % high);
    });
    return width;
  }

  /** The node in a cell, -1 if there is none. */
  nodeAt(x, y) {
    if (x < 0 || y < 0 || y >= this.rows || x >= this.classLeft) return -1;
    return this.cells[Math.floor(x) * this.rows + Math.floor(y)] ?? -1;
  }

  /** The class drawn at a place, -1 if there is none. */
  classAt(x, y, classes) {
    if (x < this.classLeft || x > this.width || y < 0 || y >= this.rows) return -1;
    return Math.min(classes - 1, Math.floor(y / this.classHeight));
  }
}
