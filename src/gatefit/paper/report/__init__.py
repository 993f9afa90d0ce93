"""Outcomes as text, Markdown, HTML and figures, the paper's number beside ours."""
