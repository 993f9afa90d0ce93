/* Features to bits, and the other values that a feature could have.
 *
 *   number   bit_j = value > levels[j]          choice   bit_j = (value is option j)          bit   the bit itself
 *
 * null is a missing value: it sets the bit for missing values, if there is one, and no other.
 * An alternative is {value, label}: another value of one feature, of those that give different bits.
 */
const shortNumber = (value) => String(Number(value.toPrecision(6)));

class NumberFeature {
  constructor(spec) {
    Object.assign(this, { missing: -1 }, spec);
  }

  encode(value, bits) {
    for (let j = 0; j < this.bits.length; j++) bits[this.bits[j]] = value !== null && value > this.levels[j] ? 1 : 0;
    if (this.missing >= 0) bits[this.missing] = value === null ? 1 : 0;
  }

  passed(value) {
    let count = 0;
    while (value !== null && count < this.levels.length && value > this.levels[count]) count++;
    return count;
  }

  /** A value in every interval but the present one; only the outer ones if asked. */
  alternatives(value, extremes) {
    const { levels } = this;
    const now = value === null ? -1 : this.passed(value);
    const last = levels.length;
    const found = [];
    for (let k = 0; k <= last; k++) {
      if (k === now || (extremes && k > 0 && k < last)) continue;
      const low = k === 0 ? Math.min(this.low, levels[0] ?? this.low) : levels[k - 1];
      const high = k === last ? Math.max(this.high, levels[last - 1] ?? this.high) : levels[k];
      const label = this.words?.[k] ?? (k === 0 ? `${shortNumber(levels[0])} or less`
        : k === last ? `more than ${shortNumber(levels[last - 1])}`
          : `${shortNumber(levels[k - 1])} to ${shortNumber(levels[k])}`);
      const middle = k === 0 ? low : k === last ? high : low + (high - low) / 2;
      found.push({ value: k === last && middle <= levels[last - 1] ? levels[last - 1] + 1 : middle, label });
    }
    if (this.missing >= 0 && value !== null) found.push({ value: null, label: "missing" });
    return last === 0 ? found.filter((each) => each.value === null) : found;
  }

  describe(value) {
    return value === null ? "missing" : this.words?.[this.passed(value)] ?? shortNumber(value);
  }

  initial() {
    if (this.levels.length === 0) return this.low;
    const middle = this.levels[this.levels.length >> 1] - this.step;
    return Math.min(this.high, Math.max(this.low, this.low + Math.round((middle - this.low) / this.step) * this.step));
  }
}

class ChoiceFeature {
  constructor(spec) {
    Object.assign(this, { missing: -1 }, spec);
  }

  encode(value, bits) {
    for (let j = 0; j < this.bits.length; j++) bits[this.bits[j]] = j === value ? 1 : 0;
    if (this.missing >= 0) bits[this.missing] = value === null ? 1 : 0;
  }

  alternatives(value) {
    const found = this.options.map((label, j) => ({ value: j, label })).filter((each) => each.value !== value);
    if (this.missing >= 0 && value !== null) found.push({ value: null, label: "missing" });
    return found;
  }

  describe(value) {
    return value === null ? "missing" : this.options[value] ?? "none of them";
  }

  initial() {
    return 0;
  }
}

class BitFeature {
  constructor(spec) {
    Object.assign(this, { missing: -1 }, spec);
  }

  encode(value, bits) {
    bits[this.bits[0]] = value === 1 ? 1 : 0;
    if (this.missing >= 0) bits[this.missing] = value === null ? 1 : 0;
  }

  alternatives(value) {
    const found = [{ value: value === 1 ? 0 : 1, label: value === 1 ? "0" : "1" }];
    if (value === null) found.unshift({ value: 0, label: "0" });
    if (this.missing >= 0 && value !== null) found.push({ value: null, label: "missing" });
    return found;
  }

  describe(value) {
    return value === null ? "missing" : String(value);
  }

  initial() {
    return 0;
  }
}

const FEATURES = { number: NumberFeature, choice: ChoiceFeature, bit: BitFeature };

/** The features of a model's inputs, in the order of the values that the page sets. */
function makeFeatures(model) {
  const { input } = model;
  if (input.kind === "table") return input.features.map((spec) => new FEATURES[spec.kind](spec));
  if (input.kind === "bits") {
    return model.names.map((name, i) => new BitFeature({ kind: "bit", name, bits: [i] }));
  }
  const { rows, columns, channels, low, high, levels } = input;
  const features = Array.from({ length: rows * columns * channels }, (_, i) =>
    new NumberFeature({ name: pixelName(input, i), bits: [], levels: [], low, high, step: (high - low) / 16 }));
  const feature = decodeArray(input.feature), level = decodeArray(input.level);
  const order = Array.from(feature.keys()).sort((i, j) => level[i] - level[j]);
  for (const bit of order) {
    features[feature[bit]].bits.push(bit);
    features[feature[bit]].levels.push(levels[level[bit]]);
  }
  for (const each of features) if (each.levels.length === 1) each.words = ["blank", "ink"];
  return features;
}

/** A pixel by row and column, counted from 1, and by colour if there are three. */
function pixelName({ rows, columns, channels }, feature) {
  const place = feature % (rows * columns);
  const colour = channels === 3 ? ["red ", "green ", "blue "][Math.floor(feature / (rows * columns))] : "";
  return `${colour}pixel (${Math.floor(place / columns) + 1}, ${(place % columns) + 1})`;
}

/** A name for every input bit. */
function bitNames(model, features) {
  if (model.names) return model.names;
  const names = Array(model.inputs);
  for (const { name, bits, levels } of features) {
    bits.forEach((bit, j) => { names[bit] = bits.length === 1 ? `${name} on` : `${name} > ${shortNumber(levels[j])}`; });
  }
  return names;
}
