"""The style sheet of our HTML pages: light and dark by the reader's setting, and black on white in print."""

from typing import Final

STYLE: Final = """
:root{color-scheme:light dark;--ground:#fff;--ink:#1b1b1f;--soft:#5a5a66;--rule:#d5d5dc;--band:#f4f4f8;
--link:#0a58a8;--good:#00694d;--bad:#a63c00;--open:#6a5a00}
@media(prefers-color-scheme:dark){:root{--ground:#16161a;--ink:#e9e9ef;--soft:#a6a6b3;--rule:#3d3d47;--band:#202027;
--link:#7db8f5;--good:#4fd3ad;--bad:#ff9a62;--open:#e8d36a}}
*{box-sizing:border-box}
html{scroll-behavior:smooth}
body{margin:0 auto;padding:1.5rem 1.2rem 4rem;max-width:70rem;background:var(--ground);color:var(--ink);
font:1rem/1.55 system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif}
h1{font-size:1.7rem;line-height:1.25;margin:.5rem 0 1rem}
h2{font-size:1.3rem;margin:2.6rem 0 .6rem;padding-top:.7rem;border-top:1px solid var(--rule)}
h3{font-size:1.08rem;margin:1.6rem 0 .4rem}
a{color:var(--link)}
a:focus-visible,summary:focus-visible,[tabindex]:focus-visible{outline:3px solid var(--link);outline-offset:2px}
code{font:.9em ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;background:var(--band);padding:.1em .3em;
border-radius:3px;overflow-wrap:anywhere}
pre{background:var(--band);padding:.8rem 1rem;overflow-x:auto;border-radius:5px}
pre code{padding:0;background:none}
.skip{position:absolute;left:-100rem}
.skip:focus{left:1rem;top:1rem;background:var(--ground);padding:.5rem}
nav ol,nav ul{columns:2;column-gap:2.5rem;padding-left:1.4rem;font-size:.94rem}
nav li{break-inside:avoid}
.facts{color:var(--soft);font-size:.88rem;margin:.2rem 0 1rem}
.facts span{white-space:nowrap}
.facts span+span::before{content:" · "}
.wide{overflow-x:auto;margin:1rem 0 .3rem}
table{border-collapse:collapse;font-size:.92rem;font-variant-numeric:tabular-nums}
caption{text-align:left;font-weight:600;padding:.2rem 0 .4rem}
th,td{padding:.35rem .8rem .35rem 0;text-align:left;vertical-align:top;border-bottom:1px solid var(--rule)}
thead th{border-bottom:2px solid var(--soft);white-space:nowrap}
tbody th{font-weight:500;white-space:nowrap}
sup{line-height:0}
td span{display:block;white-space:nowrap}
td .best{font-weight:700}
td .best::after{content:" ★";font-size:.8em}
td .paper,td .difference{color:var(--soft);font-size:.88em}
td sup,td sup *{display:inline}
.hidden{position:absolute!important;width:1px;height:1px;overflow:hidden;clip-path:inset(50%);white-space:nowrap}
.legend{color:var(--soft);font-size:.85rem;margin:.1rem 0 1.2rem}
figure{margin:1.2rem 0}
figure svg{max-width:100%;height:auto;display:block}
figcaption{font-size:.92rem;color:var(--soft);margin-top:.3rem}
details{font-size:.9rem;margin:.3rem 0 1rem}
ul.checks{list-style:none;padding:0}
ul.checks li{padding:.3rem 0 .3rem 1.7rem;position:relative}
ul.checks li::before{position:absolute;left:.2rem;font-weight:700}
.holds::before{content:"✓";color:var(--good)}
.fails::before{content:"✗";color:var(--bad)}
.open::before{content:"?";color:var(--open)}
.partly::before{content:"◐";color:var(--open)}
.verdict{font-weight:700}
.holds .verdict,.verdict.holds{color:var(--good)}
.fails .verdict,.verdict.fails{color:var(--bad)}
.open .verdict,.verdict.open,.verdict.partly{color:var(--open)}
.verdict::before{margin-right:.3em}
.missing{border-left:4px solid var(--rule);padding:.1rem 1rem;font-size:.93rem}
@media(max-width:40rem){nav ol,nav ul{columns:1}}
@media print{:root{--ground:#fff;--ink:#000;--soft:#333;--rule:#999;--band:#f4f4f4;--link:#000;
--good:#000;--bad:#000;--open:#000}
body{max-width:none;padding:0;font-size:10pt}nav,.skip,details{display:none}h2,h3{break-after:avoid}
figure,tr,li{break-inside:avoid}.wide{overflow:visible}thead{display:table-header-group}}
"""
