// SPDX-License-Identifier: Apache-2.0
#include "trainer/report/page_style.hpp"

namespace gpups::trainer::report {

char const* const kPageStyle = R"(
:root {
  color-scheme: light dark;
  --page: #ffffff; --ink: #1b1f24; --soft: #59636e; --line: #dfe3e8; --axis: #8b949e; --panel: #f6f8fa;
  --c0: #0072b2; --c1: #e69f00; --c2: #009e73; --c3: #cc79a7; --c4: #d55e00; --c5: #56b4e9; --c6: #8c613c;
  --c7: #7f868d; --heat: #0072b2; --on-strong: #ffffff;
}
@media screen and (prefers-color-scheme: dark) {
  :root {
    --page: #0f1318; --ink: #e6eaef; --soft: #a3adb8; --line: #2b323b; --axis: #6b7682; --panel: #171c23;
    --c0: #4da3e0; --c1: #f0b93a; --c2: #2fc79b; --c3: #e09cc4; --c4: #f2823c; --c5: #9ad4fb; --c6: #c9a27e;
    --c7: #9aa3ad; --heat: #5cb3f2; --on-strong: #0f1318;
  }
}
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 1060px; padding: 24px 20px 48px; background: var(--page); color: var(--ink);
  font: 16px/1.5 system-ui, "Segoe UI", Roboto, Helvetica, Arial, sans-serif; }
h1 { font-size: 1.6rem; margin: 0 0 .5rem; overflow-wrap: anywhere; }
h2 { font-size: 1.2rem; margin: 2.2rem 0 .2rem; padding-top: 1rem; border-top: 1px solid var(--line); }
p { margin: .4rem 0; max-width: 75ch; overflow-wrap: anywhere; }
.how { color: var(--soft); }
.plots { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 420px), 1fr)); gap: 16px;
  margin-top: .8rem; align-items: start; }
.plots > p, .maps, .wide, .none { grid-column: 1 / -1; }
figure { margin: 0; padding: 12px; background: var(--panel); border: 1px solid var(--line); border-radius: 8px; }
figure.none { color: var(--soft); }
figcaption { font-weight: 600; margin-bottom: 4px; }
svg { display: block; width: 100%; height: auto; font: 13px system-ui, "Segoe UI", Roboto, Arial, sans-serif; }
svg rect { shape-rendering: crispEdges; }
svg text { fill: var(--ink); }
svg .unit { fill: var(--soft); }
svg .title { font-weight: 600; }
svg .on-strong { fill: var(--on-strong); }
svg .grid { stroke: var(--line); }
svg .axis { stroke: var(--axis); }
svg .curve { fill: none; stroke-width: 2; stroke-linejoin: round; }
.maps { display: grid; grid-template-columns: repeat(auto-fill, minmax(165px, 1fr)); gap: 16px; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: .85rem; width: 100%; font-variant-numeric: tabular-nums; }
th, td { padding: 3px 8px; text-align: left; border-bottom: 1px solid var(--line); white-space: nowrap; }
th { color: var(--soft); font-weight: 600; }
.number { text-align: right; }
.heat { background: color-mix(in srgb, var(--heat) var(--strength), transparent); }
@media print {
  body { max-width: none; padding: 0; font-size: 12px; print-color-adjust: exact; -webkit-print-color-adjust: exact; }
  figure, tr { break-inside: avoid; }
  h2, .how { break-after: avoid; }
}
)";

}  // namespace gpups::trainer::report
