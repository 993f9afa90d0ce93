"""What passes, proofs and backends know of gates in common; each thing is said once, here.

literals   a node or its inverse as one number; a gate of literals in normal form
graph      gates over the constant and the inputs: levels, readers, and what is live
hashing    a growing graph in which every gate exists once
words      the values of all nodes on 64 input patterns a word, and which nodes they cannot tell apart
cnf        gates as clauses, formulas and proofs as text
"""
