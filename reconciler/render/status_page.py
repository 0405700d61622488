"""The style and the script of the HTML page of states."""

from __future__ import annotations

STYLE = """
:root{color-scheme:light dark;--bg:#fff;--fg:#1c2024;--dim:#60646c;--line:#dfe2e6;--soft:#f4f5f7;
--failing:#c62a2f;--lagging:#9a5b00;--paused:#0b68a8;--never-run:#60646c;--unknown:#8e4ec6;
--ended:#60646c;--ok:#217a43;--open:#a7adb5}
@media (prefers-color-scheme:dark){:root{--bg:#16181b;--fg:#eceef0;--dim:#a0a6ae;--line:#33373d;
--soft:#212429;--failing:#ff8b8b;--lagging:#f0b45a;--paused:#70b8ff;--never-run:#a0a6ae;
--unknown:#d19dff;--ended:#a0a6ae;--ok:#5bc983;--open:#60666e}}
*{box-sizing:border-box}
body{margin:0 auto;max-width:90rem;padding:1rem;background:var(--bg);color:var(--fg);
font:15px/1.45 system-ui,sans-serif}
h1{font-size:1.4rem;margin:0;overflow-wrap:anywhere}
h2{font-size:1.1rem}
header p{margin:.2rem 0;color:var(--dim);overflow-wrap:anywhere}
.filters{display:flex;flex-wrap:wrap;gap:.75rem 1.25rem;align-items:end;margin:1rem 0}
fieldset{display:flex;flex-wrap:wrap;gap:.5rem;border:0;margin:0;padding:0}
legend{padding:0}
.filters,legend{color:var(--dim)}
.tile{border:1px solid var(--line);border-radius:6px;padding:.3rem .6rem;cursor:pointer}
.tile b{font-size:1.1rem}
.tile input{margin:0 .4rem 0 0;vertical-align:-.1rem}
select,input[type=search]{display:block;font:inherit;color:inherit;background:var(--soft);
border:1px solid var(--line);border-radius:6px;padding:.3rem .5rem;height:2.3rem;
width:14rem;max-width:100%}
.row{display:grid;gap:0 1rem;align-items:center;padding:.45rem .5rem;
grid-template-columns:1.2rem minmax(12rem,1fr) 11rem 7.5rem 6.5rem 5rem 6.5rem 5rem}
.head{color:var(--dim);font-size:.85rem;border-bottom:1px solid var(--line)}
details{border-bottom:1px solid var(--line);content-visibility:auto;
contain-intrinsic-size:auto 3rem}
summary{list-style:none;cursor:pointer}
summary::-webkit-details-marker{display:none}
summary:hover{background:var(--soft)}
:focus-visible{outline:2px solid var(--paused);outline-offset:-2px}
.name{min-width:0;overflow-wrap:anywhere}
.name b{font-weight:600}
.name small{color:var(--dim);display:block}
.name small.badge{display:inline;border:1px solid var(--line);border-radius:4px;padding:0 .3rem}
.notes{grid-column:2/-1;margin:.15rem 0 0;padding:0;list-style:none;color:var(--dim);
font-size:.9rem;overflow-wrap:anywhere}
.failing .notes li:first-child{color:var(--failing)}
.failing>summary .sign,.tile.failing{color:var(--failing)}
.lagging>summary .sign,.tile.lagging{color:var(--lagging)}
.paused>summary .sign,.tile.paused{color:var(--paused)}
.never-run>summary .sign,.tile.never-run{color:var(--never-run)}
.unknown>summary .sign,.tile.unknown{color:var(--unknown)}
.ended>summary .sign,.tile.ended{color:var(--ended)}
.ok>summary .sign,.tile.ok{color:var(--ok)}
.more{padding:0 .5rem 1rem 2.7rem}
.more p{margin:.3rem 0;color:var(--dim);overflow-wrap:anywhere}
a{color:var(--paused)}
.charts{display:grid;gap:1rem 1.5rem;grid-template-columns:repeat(auto-fit,minmax(14rem,1fr));
max-width:66rem}
figure{margin:0}
figcaption{font-size:.85rem;color:var(--dim)}
svg{display:block}
figure svg{width:100%;height:auto}
svg text{font:10px system-ui,sans-serif;fill:var(--dim)}
.axis{stroke:var(--line);fill:none}
.good{fill:var(--ok)}
.bad{fill:var(--failing)}
.open{fill:var(--open)}
@media (max-width:60rem){.head{display:none}
.row{grid-template-columns:1.2rem 1fr;gap:.1rem .6rem;align-items:start}
.row>span[data-label]{grid-column:2;font-size:.9rem}
.row>span[data-label]::before{content:attr(data-label) " ";color:var(--dim)}
.bars{grid-column:2;margin-top:.3rem}
.more{padding-left:2.3rem}
.charts{grid-template-columns:1fr}}
"""
SCRIPT = """
(() => {
  const form = document.querySelector("form");
  const exports = [...document.querySelectorAll("details")];
  const show = () => {
    const data = new FormData(form);
    const states = new Set(data.getAll("state"));
    const parent = data.get("parent") ?? "*";
    const words = (data.get("text") ?? "").toLowerCase().split(/\\s+/);
    let shown = 0;
    for (const item of exports) {
      const { state, parent: own, text } = item.dataset;
      const matches = states.has(state) && (parent === "*" || parent === own)
        && words.every((word) => text.includes(word));
      item.hidden = !matches;
      shown += matches;
    }
    document.getElementById("none").hidden = shown > 0;
  };
  form.addEventListener("input", show);
  form.addEventListener("submit", (event) => event.preventDefault());
  show();
})();
"""
