#pragma once

// The style sheet of the report. Colours are variables, so that light and dark differ in one place.

namespace oxbow {

inline constexpr const char* kReportStyle = R"css(
:root { color-scheme: light dark;
  --page: #f6f7f9; --card: #fff; --ink: #1d2430; --soft: #5d6878; --line: #dde2e9;
  --a: #3567c4; --b: #1f9d8b; --c: #d9822b; --d: #8a58c2; --e: #c4456b; --f: #7c8798; }
@media (prefers-color-scheme: dark) { :root {
  --page: #12161c; --card: #1b212a; --ink: #e4e8ee; --soft: #98a3b3; --line: #303846;
  --a: #6b98ec; --b: #45c3b0; --c: #eba45c; --d: #b188e3; --e: #ea7d9d; --f: #8b96a7; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 1240px; padding: 28px 24px 60px; background: var(--page); color: var(--ink);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; }
h1 { font-size: 24px; margin: 0; } h2 { font-size: 17px; margin: 0 0 12px; }
p.note { color: var(--soft); margin: 2px 0 14px; }
section { background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: 18px 20px;
  margin-top: 16px; overflow-x: auto; }
.cards { display: grid; grid-template-columns: repeat(auto-fit, minmax(170px, 1fr)); gap: 12px; margin-top: 18px; }
.card { background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: 12px 16px; }
.card b { display: block; font-size: 21px; font-weight: 600; } .card span { color: var(--soft); font-size: 13px; }
.columns { display: grid; grid-template-columns: repeat(auto-fit, minmax(340px, 1fr)); gap: 16px; }
.columns section { margin-top: 0; } .columns { margin-top: 16px; }
table { border-collapse: collapse; width: 100%; } td { padding: 3px 0; border-bottom: 1px solid var(--line);
  vertical-align: top; overflow-wrap: anywhere; } tr:last-child td { border: 0; }
td:first-child { color: var(--soft); padding-right: 16px; white-space: nowrap; } td.n { text-align: right;
  font-variant-numeric: tabular-nums; white-space: nowrap; }
.legend { display: flex; flex-wrap: wrap; gap: 4px 18px; color: var(--soft); font-size: 13px; margin: 8px 0 0; }
.legend i { display: inline-block; width: 11px; height: 11px; border-radius: 3px; margin-right: 6px; }
svg { display: block; width: 100%; height: auto; min-width: 640px; } svg text { fill: var(--ink);
  font: 12px system-ui, sans-serif; } svg .soft { fill: var(--soft); font-size: 11px; }
svg .mono { font-family: ui-monospace, "SF Mono", Menlo, Consolas, monospace; font-size: 11.5px; }
svg .op { font-weight: 600; } svg .light { fill: #fff; font-weight: 600; pointer-events: none; }
svg rect.block { stroke: var(--card); stroke-width: .6; } svg rect.block:hover { opacity: .7; }
svg .grid { stroke: var(--line); stroke-width: 1; } svg .arc { fill: none; stroke-width: 1.4; opacity: .75; }
svg .arc:hover { stroke-width: 3.5; opacity: 1; } svg rect.row { fill: var(--page); }
.fa { fill: var(--a); } .fb { fill: var(--b); } .fc { fill: var(--c); } .fd { fill: var(--d); } .fe { fill: var(--e); }
.ff { fill: var(--f); } .sa { stroke: var(--a); } .sb { stroke: var(--b); } .sc { stroke: var(--c); }
.sd { stroke: var(--d); } .se { stroke: var(--e); } .sf { stroke: var(--f); }
.ba { background: var(--a); } .bb { background: var(--b); } .bc { background: var(--c); } .bd { background: var(--d); }
.be { background: var(--e); } .bf { background: var(--f); }
details { border-top: 1px solid var(--line); padding: 6px 0; } summary { cursor: pointer; font-weight: 600; }
summary span { color: var(--soft); font-weight: 400; }
.told { position: fixed; left: 12px; right: 12px; bottom: 12px; max-width: 720px; margin: 0 auto; padding: 10px 14px;
  background: var(--ink); color: var(--page); border-radius: 8px; white-space: pre-wrap; overflow-wrap: anywhere;
  font-size: 13px; } .told[hidden] { display: none; }
svg [tabindex]:focus-visible { outline: 2px solid var(--e); }
@media (max-width: 640px) { body { padding: 16px 10px 40px; } section { padding: 14px 12px; }
  .columns { grid-template-columns: 1fr; } td:first-child { white-space: normal; } .cards { grid-template-columns: 1fr 1fr; }
  svg { min-width: 0; } svg text { font-size: 22px; } svg .soft, svg .mono { font-size: 20px; } }
code { font: 12.5px ui-monospace, "SF Mono", Menlo, Consolas, monospace; }
)css";

// What pointing at something tells, a tap and the keyboard tell too: the text of a <title> in a box below.
inline constexpr const char* kReportScript = R"html(<div class="told" role="status" hidden></div>
<script>
const told = document.querySelector('.told');
const tell = event => {
  const shape = event.target.closest && event.target.closest('rect, path');
  const title = shape && shape.querySelector('title');
  told.hidden = !title;
  if (title) told.textContent = title.textContent;
};
document.querySelectorAll('svg rect > title').forEach(title => title.parentNode.setAttribute('tabindex', '0'));
document.addEventListener('click', tell);
document.addEventListener('focusin', tell);
document.addEventListener('keydown', event => { if (event.key === 'Escape') told.hidden = true; });
</script>
)html";

}  // namespace oxbow
