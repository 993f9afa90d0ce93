"""Accuracy against gates: which networks are on the frontier, what each one measures, and the page that shows them.

entries      what is trained: a name, a configuration, seeds, what is done to the circuit
measure      one finished run -> one proven circuit -> one row of figures
results      rows in a file that is committed
page         the rows beside published figures, in Markdown
adopt        the circuits that ship with the package, with their cards
"""
