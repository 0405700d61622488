"""The style and the script of the HTML page of a plan."""

from __future__ import annotations

from reconciler.render.page import STYLE as COMMON
from reconciler.render.run_strip import STYLE as STRIP

STYLE = f"""{COMMON}{STRIP}code,pre,td,.facts{{font-family:ui-monospace,monospace;font-size:.9em}}
.tile{{display:flex;align-items:center;height:2.3rem;border:1px solid var(--line);border-radius:6px;
padding:0 .6rem;cursor:pointer}}
.tile input{{margin:0 .4rem 0 0}}
.box{{border:1px solid var(--line);border-left:4px solid var(--red);border-radius:6px;
padding:.1rem .9rem;margin:1rem 0}}
.box.later{{border-left-color:var(--amber)}}
.box h2{{margin:.5rem 0;color:var(--red)}}
.box.later h2{{color:var(--amber)}}
ul{{margin:.4rem 0;padding-left:1.2rem}}
.entry{{border-bottom:1px solid var(--line);content-visibility:auto;
contain-intrinsic-size:auto 4rem}}
.entry>summary{{display:grid;grid-template-columns:2.2rem 1fr auto;gap:0 .6rem;
padding:.45rem .4rem}}
.entry>summary{{list-style:none}}
.entry>summary::-webkit-details-marker{{display:none}}
.entry>summary .name::after{{content:" ▸";color:var(--dim)}}
.entry[open]>summary .name::after{{content:" ▾"}}
header strong{{color:var(--fg)}}
.sign{{font:700 1rem ui-monospace,monospace;white-space:nowrap}}
.create .sign{{color:var(--green)}}
.update .sign{{color:var(--amber)}}
.replace .sign{{color:var(--violet)}}
.pause .sign,.unpause .sign{{color:var(--blue)}}
.delete .sign{{color:var(--red)}}
.name b{{font-weight:600}}
.place{{color:var(--dim);font-size:.85rem;text-align:right}}
.facts,.remark{{grid-column:2/-1;color:var(--dim)}}
.facts span{{display:block}}
.remark{{color:var(--fg)}}
.remark b{{font-weight:600}}
.remark.danger b,.removed{{color:var(--red)}}
.remark.warning b{{color:var(--amber)}}
.added{{color:var(--green)}}
.rule{{white-space:nowrap}}
.more{{padding:0 .4rem 1rem 3.2rem}}
table{{border-collapse:collapse;width:100%}}
th,td{{text-align:left;vertical-align:top;padding:.2rem .8rem .2rem 0;
border-top:1px solid var(--line);font-weight:400}}
thead th{{border-top:0;color:var(--dim);font-size:.85rem}}
tbody th{{width:22%}}
pre{{margin:0;white-space:pre-wrap}}
pre span{{display:block}}
.members{{columns:18rem;list-style:none;padding:0}}
.members li{{break-inside:avoid}}
:target{{outline:2px solid var(--blue);outline-offset:2px}}
.dim{{color:var(--dim)}}
@media (max-width:40rem){{.entry>summary{{grid-template-columns:2.2rem 1fr}}
.place{{grid-column:2;text-align:left}}
.more{{padding-left:.4rem}}
thead{{display:none}}
.fields tr,.fields th,.fields td{{display:block;width:auto;border:0;padding:.05rem 0}}
.fields tr{{border-top:1px solid var(--line);padding:.3rem 0}}
.fields td[data-label]:not(:empty)::before{{content:attr(data-label) ": ";color:var(--dim)}}}}
@media print{{form,.more>p{{display:none}}
html,body{{font-size:11px}}
body{{max-width:none;padding:0}}
.entry{{content-visibility:visible;break-inside:avoid-page}}}}
"""
SCRIPT = """
(() => {
  const form = document.querySelector("form");
  const entries = [...document.querySelectorAll(".entry")];
  const status = document.getElementById("shown");
  const show = () => {
    const data = new FormData(form);
    const actions = new Set(data.getAll("action"));
    const severity = data.get("severity") ?? "*";
    const parent = data.get("parent") ?? "*";
    const words = (data.get("text") ?? "").toLowerCase().split(/\\s+/);
    let shown = 0;
    for (const entry of entries) {
      const { action, severity: worst, parents, text } = entry.dataset;
      const matches = actions.has(action)
        && (severity === "*" || severity === worst)
        && (parent === "*" || parents.split("\\n").includes(parent))
        && words.every((word) => text.includes(word));
      entry.hidden = !matches;
      shown += matches;
    }
    status.textContent = shown === entries.length ? "" : `${shown} of ${entries.length} shown`;
  };
  const jump = () => {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    const entry = target?.closest(".entry");
    if (!entry) return;
    if (entry.hidden) { form.reset(); show(); }
    entry.open = true;
    target.scrollIntoView();
  };
  const fold = (open) => { for (const entry of entries) entry.open = open; };
  let before = [];
  addEventListener("beforeprint", () => {
    before = entries.map((entry) => entry.open);
    fold(true);
  });
  addEventListener("afterprint", () => {
    entries.forEach((entry, position) => { entry.open = before[position]; });
  });
  addEventListener("hashchange", jump);
  if (form) {
    form.hidden = false;
    form.addEventListener("input", show);
    form.addEventListener("submit", (event) => event.preventDefault());
    document.getElementById("expand").addEventListener("click", () => fold(true));
    document.getElementById("collapse").addEventListener("click", () => fold(false));
    show();
  }
  jump();
})();
"""
