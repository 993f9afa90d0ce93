/* What if one feature were different? 32 such questions are answered by one pass over the gates.
 *
 *   drop    by how much the answer's lead shrinks at most, over all other values of the feature
 *   gain    by how much it grows at most
 *   flips   the values that change the answer, and to what
 *
 * and what if two were? Every pair is tried the same way, where there are few enough: that is a proof.
 *
 * Work is done in slices of a few milliseconds, so that drawing stays smooth; a new input ends the old questions.
 */
const SLICE_MS = 8;
const MANY_QUESTIONS = 4096;

/** Run a generator a slice at a time; returns a function that ends it early. */
function inSlices(steps, done) {
  let timer = 0;
  const slice = () => {
    const end = performance.now() + SLICE_MS;
    for (;;) {
      const { value, done: finished } = steps.next();
      if (finished) return done(value);
      if (performance.now() > end) break;
    }
    timer = setTimeout(slice, 0);
  };
  timer = setTimeout(slice, 0);
  return () => clearTimeout(timer);
}

class WhatIf {
  constructor(circuit, features) {
    Object.assign(this, { circuit, features });
    this.words = new Int32Array(circuit.nodes);
    this.scores = new Float64Array(LANES * circuit.readout.classes);
    this.before = new Uint8Array(circuit.inputs);
    this.after = new Uint8Array(circuit.inputs);
    const questions = features.reduce((sum, each) => sum + each.bits.length, 0);
    this.extremes = questions > MANY_QUESTIONS;
  }

  /** Answer every question about one sample; yields after each pass, returns one finding per feature. */
  *sweep(values) {
    const { circuit, features, before } = this;
    const { readout } = circuit;
    this.encodeAll(values, before);
    circuit.run(before, this.words);
    const base = Array.from(readout.lanes(this.words, this.scores, 1).subarray(0, readout.classes));
    const answer = argmax(base);
    const lead = readout.affine ? base[0] : margin(base, answer);
    const findings = features.map(() => ({ drop: 0, gain: 0, worst: null, best: null, flips: [] }));
    let batch = [];
    for (let f = 0; f < features.length; f++) {
      for (const alternative of features[f].alternatives(values[f], this.extremes)) {
        batch.push({ f, alternative });
        if (batch.length === LANES) {
          this.ask(batch, answer, lead, findings);
          batch = [];
          yield;
        }
      }
    }
    if (batch.length) this.ask(batch, answer, lead, findings);
    return { answer, lead, findings };
  }

  encodeAll(values, bits) {
    for (let f = 0; f < this.features.length; f++) this.features[f].encode(values[f], bits);
  }

  ask(batch, answer, lead, findings) {
    const { circuit, words, before, after } = this;
    const { classes, affine } = circuit.readout;
    for (let i = 0; i < circuit.inputs; i++) words[i] = -before[i];
    batch.forEach(({ f, alternative }, lane) => {
      const feature = this.features[f];
      feature.encode(alternative.value, after);
      for (const bit of feature.bits) this.setLane(bit, lane, after[bit]);
      if (feature.missing >= 0) this.setLane(feature.missing, lane, after[feature.missing]);
    });
    circuit.evaluate(words);
    circuit.readout.lanes(words, this.scores, batch.length);
    batch.forEach(({ f, alternative }, lane) => {
      const start = lane * classes;
      const change = (affine ? this.scores[start] : margin(this.scores, answer, start, start + classes)) - lead;
      const winner = argmax(this.scores, start, start + classes);
      const finding = findings[f];
      if (winner !== answer) finding.flips.push({ alternative, winner });
      if (-change > finding.drop) Object.assign(finding, { drop: -change, worst: alternative });
      if (change > finding.gain) Object.assign(finding, { gain: change, best: alternative });
    });
  }

  /** For every feature its other values, each with the bits that it changes; those that change none are left out. */
  changesOf(values) {
    const { before, after } = this;
    this.encodeAll(values, before);
    return this.features.map((feature, f) => {
      const bits = feature.missing >= 0 ? [...feature.bits, feature.missing] : feature.bits;
      return feature.alternatives(values[f], false).map((alternative) => {
        feature.encode(alternative.value, after);
        return { f, alternative, bits: bits.filter((bit) => before[bit] !== after[bit]) };
      }).filter((change) => change.bits.length);
    });
  }

  /** How many pairs of changes there are, and about how many gates it takes to try them all. */
  pairCost(values) {
    const counts = this.changesOf(values).map((changes) => changes.length);
    const all = counts.reduce((sum, count) => sum + count, 0);
    const pairs = (all * all - counts.reduce((sum, count) => sum + count * count, 0)) / 2;
    return { pairs, work: (pairs / LANES) * (this.circuit.nodes + 8 * LANES * this.circuit.readout.classes) };
  }

  /** Try every pair of changes of two features; yields after each pass, returns the first that flips the answer. */
  *pairs(values) {
    const { circuit, words, before, scores } = this;
    const { readout } = circuit;
    const changes = this.changesOf(values);
    circuit.run(before, words);
    const answer = argmax(readout.lanes(words, scores, 1), 0, readout.classes);
    let tried = 0, batch = [];
    const test = () => {
      for (let i = 0; i < circuit.inputs; i++) words[i] = -before[i];
      batch.forEach((pair, lane) => {
        for (const { bits } of pair) for (const bit of bits) words[bit] ^= 1 << lane;
      });
      circuit.evaluate(words);
      readout.lanes(words, scores, batch.length);
      tried += batch.length;
      for (let lane = 0; lane < batch.length; lane++) {
        const winner = argmax(scores, lane * readout.classes, (lane + 1) * readout.classes);
        if (winner !== answer) return { tried, winner, changes: batch[lane] };
      }
      batch = [];
      return null;
    };
    for (let f = 0; f < changes.length; f++) {
      for (const one of changes[f]) {
        for (let g = f + 1; g < changes.length; g++) {
          for (const other of changes[g]) {
            if (batch.push([one, other]) < LANES) continue;
            const found = test();
            if (found) return found;
            yield;
          }
        }
      }
    }
    return (batch.length && test()) || { tried, winner: answer, changes: null };
  }

  setLane(bit, lane, value) {
    if (value) this.words[bit] |= 1 << lane;
    else this.words[bit] &= ~(1 << lane);
  }

  /** A few changes that flip the answer together: of those left, the one that costs the most lead, again and again. */
  *counterfactual(start, most = 40) {
    const values = Array.from(start);
    const changes = [];
    const changed = new Set();
    while (changes.length < most) {
      const { findings } = yield* this.sweep(values);
      let pick = -1;
      findings.forEach((finding, f) => {
        if (changed.has(f) || finding.worst === null) return;
        const better = pick < 0 ? 1 : finding.flips.length - findings[pick].flips.length || finding.drop - findings[pick].drop;
        if (better > 0) pick = f;
      });
      if (pick < 0) return null;
      const [flip] = findings[pick].flips;
      const alternative = flip ? flip.alternative : findings[pick].worst;
      changes.push({ f: pick, from: values[pick], alternative });
      if (flip) return { changes, winner: flip.winner };
      changed.add(pick);
      values[pick] = alternative.value;
    }
    return null;
  }
}
