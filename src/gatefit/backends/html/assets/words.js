/* Gates in words: the formula of a node, written out down to its inputs or to a given depth. */
const WORDS = { "&": " and ", "|": " or ", "^": " differs from ", "=": " is the same as ", "(": "(", ")": ")", "~(": "not (" };

class Words {
  constructor(circuit, names) {
    Object.assign(this, { circuit, names });
  }

  /** What a node says, or the contrary, as pieces: text, or {node} for an input or a gate that is not written out. */
  *pieces(node, depth, contrary = false, outermost = true) {
    const { circuit } = this;
    const i = node - circuit.inputs;
    const twoInputs = i >= 0 && circuit.kind(node).a && circuit.kind(node).b;
    if (i < 0 || (depth === 0 && twoInputs)) {
      if (contrary) yield { text: "not " };
      return yield { node };
    }
    // The contrary of a gate is a gate: so no "not" stands before another.
    const { formula } = circuit.kinds[contrary ? 15 - circuit.gates[i] : circuit.gates[i]];
    if (!formula.includes("{")) return yield { text: formula === "0" ? "false" : "true" };
    // Wires and inverters add nothing to read, so they cost no depth.
    const below = twoInputs ? depth - 1 : depth;
    const same = /^~\((.*)\^(.*)\)$/.exec(formula);
    const tokens = (same ? `(${same[1]}=${same[2]})` : formula).match(/~?\{[ab]\}|~\(|[&|^=()]/g);
    if (outermost && tokens[0] === "(") tokens.splice(0, 1), tokens.pop();
    for (const token of tokens) {
      if (token.endsWith("}")) yield* this.pieces(circuit[token.at(-2)][i], below, token[0] === "~", outermost && !twoInputs);
      else yield { text: WORDS[token] };
    }
  }

  label(node) {
    const { circuit } = this;
    return circuit.isInput(node) ? this.names[node] : `gate ${(node - circuit.inputs).toLocaleString("en")}`;
  }

  /** A sentence whose parts carry their present values and can be chosen. */
  sentence(node, depth, words, onSelect) {
    const line = element("p", { className: "sentence" });
    const shown = [...this.pieces(node, depth)];
    for (const { text, node: part } of shown) {
      if (part === undefined) {
        line.append(text);
        continue;
      }
      const value = words[part] & 1;
      line.append(button(this.label(part), () => onSelect({ node: part }), {
        className: value ? "atom on" : "atom", title: `now ${value}`,
        "aria-label": `${this.label(part)}, now ${value}`,
      }));
    }
    return line;
  }
}

/** All nodes that some nodes depend on, and the wires among them; every so-manieth where there are many. */
function cone(circuit, roots) {
  const mask = new Uint8Array(circuit.nodes);
  let wires = [];
  for (const node of roots) mask[node] = 1;
  let [gates, inputs] = [0, 0];
  for (let node = circuit.nodes - 1; node >= 0; node--) {
    if (!mask[node]) continue;
    if (node < circuit.inputs) inputs++;
    else gates++;
    for (const from of circuit.reads(node)) {
      mask[from] = 1;
      wires.push(from, node);
    }
  }
  const stride = Math.ceil(wires.length / (2 * MOST_WIRES));
  if (stride > 1) wires = wires.filter((_, i) => (i >> 1) % stride === 0);
  return { mask, wires, gates, inputs };
}
