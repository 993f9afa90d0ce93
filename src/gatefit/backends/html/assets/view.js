/* The circuit on a canvas: zoom, pan, point and choose, by mouse, finger or keys. */
class CircuitView {
  constructor(root, circuit, model, onSelect) {
    Object.assign(this, { circuit, model, onSelect });
    this.canvas = element("canvas", {
      className: "circuit", tabIndex: 0, role: "application",
      "aria-label": "The circuit, layer by layer. Up and down choose a gate of the layer, left goes to what it reads, "
        + "right to what reads it; plus and minus zoom, zero shows everything, escape ends the choice.",
    });
    this.status = element("p", { className: "hint status", role: "status" }, "Click a gate or a class. Drag to move, "
      + "scroll with Ctrl to zoom (without it once the drawing has the focus).");
    const zoom = (factor) => () => this.zoom(factor, this.canvas.clientWidth / 2, this.canvas.clientHeight / 2);
    root.append(element("div", { className: "tools" },
      button("Zoom in", zoom(1.6)), button("Zoom out", zoom(1 / 1.6)), button("Show all", () => this.fit()),
      toggle("Colour by kind", false, (on) => { this.byKind = on; this.recolour(); }, { id: "by-kind" })),
    this.canvas, this.status);
    const room = this.canvas.clientWidth ? (0.85 * this.canvas.clientWidth) / (this.canvas.clientHeight - 44) : 2;
    this.layout = new Layout(circuit, model, Math.max(0.8, room));
    this.painter = new Painter(circuit, this.layout, model);
    this.state = { words: new Int32Array(circuit.nodes), scores: [0], answer: -1, node: -1, chosen: -1, hover: -1, mask: null, wires: null };
    this.place = { x: 0, y: 0, scale: 1 };
    this.byKind = false;
    this.draw = oncePerFrame(() => this.paint());
    this.pointers = new Map();
    this.listen();
  }

  listen() {
    const { canvas } = this;
    new ResizeObserver(() => this.fit()).observe(canvas);
    canvas.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && document.activeElement !== canvas) return;
      event.preventDefault();
      this.zoom(Math.exp(-event.deltaY * 0.0016), event.offsetX, event.offsetY);
    }, { passive: false });
    canvas.addEventListener("pointerdown", (event) => {
      canvas.setPointerCapture(event.pointerId);
      this.pointers.set(event.pointerId, [event.offsetX, event.offsetY]);
      this.travelled = this.pointers.size > 1 ? Infinity : 0;
    });
    canvas.addEventListener("pointermove", (event) => this.move(event));
    canvas.addEventListener("pointerup", (event) => {
      if (this.pointers.delete(event.pointerId) && this.travelled < 5) this.pick(event.offsetX, event.offsetY);
    });
    canvas.addEventListener("pointercancel", (event) => this.pointers.delete(event.pointerId));
    canvas.addEventListener("pointerleave", () => this.point(-1));
    canvas.addEventListener("keydown", (event) => this.key(event));
  }

  move(event) {
    const { pointers, place } = this;
    const before = pointers.get(event.pointerId);
    if (!before) {
      const [x, y] = this.world(event.offsetX, event.offsetY);
      this.point(this.layout.nodeAt(x, y));
      return;
    }
    const now = [event.offsetX, event.offsetY];
    if (pointers.size === 2) {
      const other = [...pointers].find(([id]) => id !== event.pointerId)[1];
      const apart = ([x, y]) => Math.hypot(x - other[0], y - other[1]) || 1;
      this.zoom(apart(now) / apart(before), (now[0] + other[0]) / 2, (now[1] + other[1]) / 2);
    } else {
      place.x -= (now[0] - before[0]) / place.scale;
      place.y -= (now[1] - before[1]) / place.scale;
      this.travelled += Math.hypot(now[0] - before[0], now[1] - before[1]);
    }
    pointers.set(event.pointerId, now);
    this.draw();
  }

  world(x, y) {
    return [this.place.x + x / this.place.scale, this.place.y + y / this.place.scale];
  }

  point(node) {
    if (node === this.state.hover) return;
    this.state.hover = node;
    if (node >= 0) this.status.textContent = this.describe(node);
    this.draw();
  }

  describe(node) {
    const value = this.state.words[node] & 1;
    if (this.circuit.isInput(node)) return `input ${this.names?.[node] ?? node}: ${value}`;
    const kind = this.circuit.kind(node);
    return `gate ${node - this.circuit.inputs} in layer ${this.circuit.level[node]}: ${symbolic(kind.formula, "a", "b")}, now ${value}`;
  }

  pick(x, y) {
    const [cx, cy] = this.world(x, y);
    const k = this.layout.classAt(cx, cy, this.model.classes.length);
    if (k >= 0) return this.onSelect({ chosen: k });
    // From far away a cell is smaller than a finger: take the nearest node around it.
    const reach = Math.ceil(3 / this.place.scale);
    let node = this.layout.nodeAt(cx, cy);
    for (let d = 1; node < 0 && d <= reach; d++) {
      for (const [i, j] of [[d, 0], [-d, 0], [0, d], [0, -d]]) if (node < 0) node = this.layout.nodeAt(cx + i, cy + j);
    }
    return this.onSelect(node >= 0 ? { node } : {});
  }

  key(event) {
    const zoom = { "+": 1.4, "=": 1.4, "-": 1 / 1.4 }[event.key];
    const { circuit, state } = this;
    if (zoom) {
      const middle = state.node >= 0 ? this.screen(state.node) : [this.canvas.clientWidth / 2, this.canvas.clientHeight / 2];
      this.zoom(zoom, ...middle);
    } else if (event.key === "0") {
      this.fit();
    } else if (event.key === "Escape") {
      this.onSelect({});
    } else if (event.key.startsWith("Arrow")) {
      const next = state.node < 0 ? circuit.nodes - 1 : this.neighbour(event.key);
      if (next >= 0) {
        this.onSelect({ node: next });
        this.bringIntoView(next);
      }
    } else {
      return;
    }
    event.preventDefault();
  }

  neighbour(key) {
    const { circuit, layout, state: { node } } = this;
    if (key === "ArrowLeft") return circuit.reads(node)[0] ?? -1;
    if (key === "ArrowRight") {
      for (let n = Math.max(node + 1, circuit.inputs); n < circuit.nodes; n++) if (circuit.reads(n).includes(node)) return n;
      return -1;
    }
    const step = key === "ArrowUp" ? -1 : 1;
    for (let n = node + step; n >= 0 && n < circuit.nodes; n += step) if (circuit.level[n] === circuit.level[node]) return n;
    return layout.cells.length ? node : -1;
  }

  screen(node) {
    const { x, y, scale } = this.place;
    const half = this.layout.size(node) / 2;
    return [(this.layout.x[node] + half - x) * scale, (this.layout.y[node] + half - y) * scale];
  }

  bringIntoView(node) {
    const [x, y] = this.screen(node);
    const { clientWidth: width, clientHeight: height } = this.canvas;
    if (x > 20 && x < width - 20 && y > 20 && y < height - 20) return;
    this.place.x += (x - width / 2) / this.place.scale;
    this.place.y += (y - height / 2) / this.place.scale;
    this.draw();
  }

  zoom(factor, x, y) {
    const [wx, wy] = this.world(x, y);
    const scale = Math.min(72, Math.max(this.smallest * 0.7, this.place.scale * factor));
    this.place = { scale, x: wx - x / scale, y: wy - y / scale };
    this.draw();
  }

  /** Everything in view, with room for titles and the names of classes. */
  fit() {
    const { width, height } = fitCanvas(this.canvas);
    const room = { left: 16, top: 30, right: Math.min(24 + 8 * Math.min(14, Math.max(...this.model.classes.map((name) => name.length))), width * 0.34), bottom: 14 };
    const scale = Math.min(40, (width - room.left - room.right) / this.layout.width, (height - room.top - room.bottom) / this.layout.rows);
    const spare = (height - room.top - room.bottom) / scale - this.layout.rows;
    const sideways = (width - room.left - room.right) / scale - this.layout.width;
    this.place = { scale, x: -room.left / scale - sideways / 2, y: -room.top / scale - spare / 2 };
    this.smallest = scale;
    this.draw();
  }

  recolour() {
    this.painter.readColours(this.byKind);
    this.update();
  }

  /** New words or scores, or another selection. */
  update(changes = {}) {
    Object.assign(this.state, changes);
    this.painter.repaint(this.state.words, this.state.mask);
    this.draw();
  }

  paint() {
    const size = fitCanvas(this.canvas);
    const context = this.canvas.getContext("2d");
    context.setTransform(size.ratio, 0, 0, size.ratio, 0, 0);
    const start = performance.now();
    this.painter.paint(context, size, this.place, this.state);
    this.paintMs = performance.now() - start;
  }
}
