"""Rewrites a circuit into a different one with the same scores: what an optimiser does, without its good taste."""

from dataclasses import replace

import numpy as np

from gatefit.circuit.ir import Circuit
from gatefit.circuit.readout import Affine, GroupSum
from gatefit.gates import NEGATED_A, NEGATED_B, Gate


def scramble(rng: np.random.Generator, circuit: Circuit, rate: float = 0.5) -> Circuit:
    """An equal circuit; about ``rate`` of the gates are rebuilt by an identity, some twice, some inverted."""
    work = _Scrambler(rng, circuit, rate)
    work.rebuild()
    return work.finish()


class _Scrambler:
    def __init__(self, rng: np.random.Generator, circuit: Circuit, rate: float) -> None:
        self.rng, self.circuit, self.rate = rng, circuit, rate
        self.gates: list[int] = []
        self.operands: list[tuple[int, int]] = []
        self.copies: list[list[int]] = [[2 * i] for i in range(circuit.inputs)]  # literals equal to each old node

    def gate(self, kind: int, a: int, b: int) -> int:
        """A new gate over literals; the literal of its output."""
        if a & 1:
            kind = int(NEGATED_A[kind])
        if b & 1:
            kind = int(NEGATED_B[kind])
        flip = int(self.rng.random() < 0.3)
        self.gates.append(kind ^ (15 * flip))
        self.operands.append((a >> 1, b >> 1))
        return 2 * (self.circuit.inputs + len(self.gates) - 1) + flip

    def pick(self, node: int) -> int:
        return self.copies[node][self.rng.integers(len(self.copies[node]))]

    def rebuild(self) -> None:
        circuit, rng = self.circuit, self.rng
        for i, kind in enumerate(circuit.gates.tolist()):
            a, b = (self.pick(int(n)) for n in circuit.operands[:, i])
            literals = [self.rewritten(kind, a, b, i) if rng.random() < self.rate else self.gate(kind, a, b)]
            if rng.random() < self.rate / 10:
                literals.append(self.rewritten(kind, a, b, i))
            self.copies.append(literals)

    def rewritten(self, kind: int, a: int, b: int, i: int) -> int:
        gate, rng = self.gate, self.rng
        # Any old node below this one may serve as a third variable.
        c = self.pick(int(rng.integers(self.circuit.inputs + i)))
        match int(rng.integers(6)):
            case 0:  # sum of products, from the truth table
                rows = [gate(Gate.AND, a ^ (1 - x), b ^ (1 - y)) for x in (0, 1) for y in (0, 1) if Gate(kind)(x, y)]
                total = gate(Gate.FALSE, a, b)
                for row in rows:
                    total = gate(Gate.OR, total, row)
                return total
            case 1:  # Reed-Muller form
                table = [Gate(kind)(x, y) for x in (0, 1) for y in (0, 1)]
                total = gate(Gate.TRUE if table[0] else Gate.FALSE, a, b)
                if table[0] ^ table[2]:
                    total = gate(Gate.XOR, total, a)
                if table[0] ^ table[1]:
                    total = gate(Gate.XOR, total, b)
                if sum(table) % 2:
                    total = gate(Gate.XOR, total, gate(Gate.AND, a, b))
                return total
            case 2:  # a multiplexer by an unrelated node
                x = gate(kind, a, b)
                y = gate(kind, a, b)
                return gate(Gate.OR, gate(Gate.AND, c, x), gate(Gate.AND, c ^ 1, y))
            case 3:  # absorption: x = x and (x or c)
                x = gate(kind, a, b)
                return gate(Gate.AND, x, gate(Gate.OR, x, c))
            case 4:  # x = (x xor c) xor c
                return gate(Gate.XOR, gate(Gate.XOR, gate(kind, a, b), c), c)
            case _:  # b only matters where a leaves a choice: g(a, b) = a ? g(1, b) : g(0, b)
                low = gate((kind >> 2) * 0b0101, a, b)
                high = gate((kind & 3) * 0b0101, a, b)
                return gate(Gate.XOR, low, gate(Gate.AND, a, gate(Gate.XOR, low, high)))

    def output(self, node: int) -> int:
        literal = self.pick(node)
        if literal & 1:
            self.gates.append(int(Gate.NOT_A))
            self.operands.append((literal >> 1, literal >> 1))
            return self.circuit.inputs + len(self.gates) - 1
        return literal >> 1

    def finish(self) -> Circuit:
        circuit, rng = self.circuit, self.rng
        outputs = [self.output(int(n)) for n in circuit.outputs]
        readout = circuit.readout
        if not isinstance(readout, GroupSum | Affine):
            return self.built(outputs, readout)
        groups = readout.groups.tolist() if isinstance(readout, GroupSum) else [0] * len(outputs)
        offsets = readout.offsets.copy() if isinstance(readout, GroupSum) else np.array([readout.offset])
        for _ in range(int(rng.integers(3))):  # a pair of complements, and a constant, each paid for by the offset
            k, node = int(rng.integers(len(offsets))), int(rng.integers(circuit.inputs))
            self.gates += [Gate.NOT_A, Gate.TRUE]
            self.operands += [(node, node), (node, node)]
            last = circuit.inputs + len(self.gates) - 1
            outputs += [node, last - 1, last]
            groups += [k] * 3
            offsets[k] -= 2
        order = rng.permutation(len(outputs))
        outputs = [outputs[i] for i in order]
        if isinstance(readout, Affine):
            return self.built(outputs, replace(readout, outputs=len(outputs), offset=int(offsets[0])))
        return self.built(outputs, replace(readout, groups=np.array(groups, np.int32)[order], offsets=offsets))

    def built(self, outputs: list[int], readout: object) -> Circuit:
        return replace(
            self.circuit,
            gates=np.array(self.gates, np.uint8),
            operands=np.array(self.operands, np.int32).reshape(-1, 2).T,
            outputs=np.array(outputs, np.int32),
            readout=readout,
        )
