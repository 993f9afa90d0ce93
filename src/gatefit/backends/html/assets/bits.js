/* Typed arrays out of base64, and the circuit on words of 32 samples.
 *
 *   node n < inputs     the n-th input bit
 *   other nodes         x = c0 ^ (ca & a) ^ (cb & b) ^ (cab & a & b)     every c is 0 or -1
 *
 * A truth table g is read as the bits g(0,0) g(0,1) g(1,0) g(1,1), highest first. Lane 0 of every word is what is
 * shown; the other lanes answer "what if" (see why.js).
 */
const LANES = 32;
const TYPES = { u1: Uint8Array, u2: Uint16Array, u4: Uint32Array, f4: Float32Array, f8: Float64Array };

const polynomial = (pick) => Int32Array.from({ length: 16 }, (_, g) =>
  -(pick((g >> 3) & 1, (g >> 2) & 1, (g >> 1) & 1, g & 1) & 1));
const C0 = polynomial((g00) => g00);
const CA = polynomial((g00, g01, g10) => g00 ^ g10);
const CB = polynomial((g00, g01) => g00 ^ g01);
const CAB = polynomial((g00, g01, g10, g11) => g00 ^ g01 ^ g10 ^ g11);

/** The array that was written as {type, data}. */
function decodeArray({ type, data }) {
  const text = atob(data);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  return new TYPES[type](bytes.buffer);
}

class Circuit {
  constructor(model) {
    this.inputs = model.inputs;
    this.gates = decodeArray(model.gates);
    [this.a, this.b] = model.operands.map(decodeArray);
    this.outputs = decodeArray(model.outputs);
    this.nodes = this.inputs + this.gates.length;
    this.kinds = model.kinds;
    this.readout = makeReadout(model.readout, this.outputs, model.classes.length);
    this.level = this.longestPaths();
    this.depth = this.level.reduce((most, level) => Math.max(most, level), 0);
  }

  /** The layer of every node: one more than the later of the two that a gate reads. */
  longestPaths() {
    const level = new Uint32Array(this.nodes);
    for (let i = 0, n = this.inputs; n < this.nodes; i++, n++) {
      level[n] = 1 + Math.max(level[this.a[i]], level[this.b[i]]);
    }
    return level;
  }

  isInput(node) {
    return node < this.inputs;
  }

  kind(node) {
    return this.kinds[this.gates[node - this.inputs]];
  }

  /** The nodes that a gate's value depends on. */
  reads(node) {
    if (node < this.inputs) return [];
    const { a, b } = this.kind(node);
    const i = node - this.inputs;
    return [...(a ? [this.a[i]] : []), ...(b ? [this.b[i]] : [])];
  }

  /** Evaluate every gate; the first `inputs` words must be set. */
  evaluate(words) {
    const { gates, a, b, inputs } = this;
    for (let i = 0; i < gates.length; i++) {
      const g = gates[i], x = words[a[i]], y = words[b[i]];
      words[inputs + i] = C0[g] ^ (CA[g] & x) ^ (CB[g] & y) ^ (CAB[g] & x & y);
    }
  }

  /** Words for one sample: the same bit in all lanes. */
  run(bits, words = new Int32Array(this.nodes)) {
    for (let i = 0; i < this.inputs; i++) words[i] = -bits[i];
    this.evaluate(words);
    return words;
  }
}

/** Counts of ones in 32 lanes at once: counter p holds bit p of every lane's count. */
class LaneCounter {
  constructor(largest) {
    this.planes = new Int32Array(Math.max(1, Math.ceil(Math.log2(largest + 1)) + 1));
  }

  clear() {
    this.planes.fill(0);
  }

  add(word) {
    for (let p = 0; word !== 0; p++) {
      const carry = this.planes[p] & word;
      this.planes[p] ^= word;
      word = carry;
    }
  }

  count(lane) {
    let total = 0;
    for (let p = 0; p < this.planes.length; p++) total += ((this.planes[p] >>> lane) & 1) * 2 ** p;
    return total;
  }
}

/** A readout has lanes(words, scores): scores[lane * classes + k]; and probabilities(scores) if it has classes. */
function makeReadout(spec, outputs, classes) {
  if (spec.kind === "linear") return new LinearReadout(spec, outputs, classes);
  if (spec.kind === "weighted") return new WeightedReadout(spec, outputs, classes);
  return new SumReadout(spec, outputs, classes);
}

class SumReadout {
  constructor(spec, outputs, classes) {
    const affine = spec.kind === "affine";
    Object.assign(this, { spec, outputs, classes, affine });
    this.groups = affine ? new Uint8Array(outputs.length) : decodeArray(spec.groups);
    this.offsets = affine ? [spec.offset] : spec.offsets;
    this.temperature = affine ? 1 : spec.temperature;
    this.sizes = Array(classes).fill(0);
    for (const group of this.groups) this.sizes[group]++;
    this.counters = this.sizes.map((size) => new LaneCounter(size));
  }

  lanes(words, scores, lanes = LANES) {
    for (const counter of this.counters) counter.clear();
    for (let i = 0; i < this.outputs.length; i++) this.counters[this.groups[i]].add(words[this.outputs[i]]);
    for (let lane = 0; lane < lanes; lane++) {
      for (let k = 0; k < this.classes; k++) {
        const sum = this.offsets[k] + this.counters[k].count(lane);
        scores[lane * this.classes + k] = this.affine ? this.spec.intercept + this.spec.scale * sum : sum;
      }
    }
    return scores;
  }

  /** The class that an output counts for. */
  classesOf(i) {
    return [this.groups[i]];
  }
}

/** Whole numbers times outputs: sum k has the terms starts[k] to starts[k + 1] - 1. */
class WeightedReadout {
  constructor(spec, outputs, classes) {
    const { offsets, temperature } = spec;
    Object.assign(this, { spec, outputs, classes, affine: spec.value, offsets, temperature });
    this.starts = decodeArray(spec.starts);
    this.terms = decodeArray(spec.outputs);
    this.readers = Array.from(outputs, () => []);
    for (let k = 0; k < classes; k++) {
      for (let t = this.starts[k]; t < this.starts[k + 1]; t++) this.readers[this.terms[t]].push(k);
    }
  }

  lanes(words, scores, lanes = LANES) {
    const { spec, outputs, classes, starts, terms } = this;
    for (let lane = 0; lane < lanes; lane++) {
      for (let k = 0; k < classes; k++) {
        let sum = spec.offsets[k];
        for (let t = starts[k]; t < starts[k + 1]; t++) {
          if ((words[outputs[terms[t]]] >>> lane) & 1) sum += spec.weights[t];
        }
        scores[lane * classes + k] = spec.intercept + spec.scale * sum;
      }
    }
    return scores;
  }

  classesOf(i) {
    return this.readers[i];
  }
}

/** Sums are rounded to 32-bit floats after every output, bias first: as every other backend does it. */
class LinearReadout {
  constructor(spec, outputs, classes) {
    Object.assign(this, { spec, outputs, classes, affine: false, temperature: 1 });
    this.weights = decodeArray(spec.weights);
    this.bias = decodeArray(spec.bias);
    this.everyClass = Array.from({ length: classes }, (_, k) => k);
  }

  lanes(words, scores, lanes = LANES) {
    const { classes, outputs, weights } = this;
    for (let lane = 0; lane < lanes; lane++) {
      for (let k = 0; k < classes; k++) {
        let sum = this.bias[k];
        for (let i = 0, w = k * outputs.length; i < outputs.length; i++, w++) {
          if ((words[outputs[i]] >>> lane) & 1) sum = Math.fround(sum + weights[w]);
        }
        scores[lane * classes + k] = sum;
      }
    }
    return scores;
  }

  classesOf() {
    return this.everyClass;
  }
}

/** The first class with the largest score. */
function argmax(scores, start = 0, end = scores.length) {
  let best = start;
  for (let k = start + 1; k < end; k++) if (scores[k] > scores[best]) best = k;
  return best - start;
}

/** By how much class `k` leads the best of the others; with one class, its score. */
function margin(scores, k, start = 0, end = scores.length) {
  let best = -Infinity;
  for (let j = start; j < end; j++) if (j !== start + k && scores[j] > best) best = scores[j];
  return best === -Infinity ? scores[start + k] : scores[start + k] - best;
}

/** softmax(scores / temperature). */
function probabilities(scores, temperature) {
  const most = Math.max(...scores);
  const powers = Array.from(scores, (score) => Math.exp((score - most) / temperature));
  const total = powers.reduce((sum, power) => sum + power, 0);
  return powers.map((power) => power / total);
}
