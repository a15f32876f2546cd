// SPDX-License-Identifier: Apache-2.0
#include "trainer/report/report.hpp"

#include <fmt/format.h>

#include <fstream>
#include <string_view>
#include <vector>

#include "gpups/error.hpp"
#include "kernels/base/check.hpp"
#include "trainer/base/atomic_folder.hpp"
#include "trainer/report/page_section.hpp"
#include "trainer/report/svg.hpp"

namespace gpups::trainer::report {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kBeginning =
    "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
    "<meta name=\"generator\" content=\"gpu_train report\">\n";

// Throws Error if the file exists and is not such a page, or the beginning of one.
void require_replaceable(fs::path const& file) {
  if (!fs::exists(file)) return;
  std::string beginning(kBeginning.size(), ' ');
  if (fs::is_regular_file(file)) {
    std::ifstream in(file, std::ios::binary);
    GPUPS_REQUIRE(in.is_open(), "{} exists and cannot be read (it would be lost): choose another file", file.string());
    in.read(beginning.data(), static_cast<std::streamsize>(beginning.size()));
    beginning.resize(static_cast<std::size_t>(in.gcount()));
  }
  GPUPS_REQUIRE(
      kBeginning.starts_with(beginning),
      "{} exists and was not written by gpu_train report (it would be lost): choose another file, or remove it",
      file.string());
}

std::string html_of(PageSection const& section) {
  return fmt::format(
      "<section id=\"{}\">\n<h2>{}</h2>\n<p class=\"how\">{}</p>\n<div class=\"plots\">\n{}</div>\n</section>\n",
      section.id, escape(section.title), escape(section.how_to_read), section.body);
}

}  // namespace

std::string figure(std::string_view heading, std::string const& svg) {
  return fmt::format("<figure><figcaption>{}</figcaption>\n{}</figure>\n", escape(heading), svg);
}

std::string no_plot(std::string_view heading, std::string_view why) {
  std::string const caption = heading.empty() ? "" : fmt::format("<figcaption>{}</figcaption>\n", escape(heading));
  return fmt::format("<figure class=\"none\">{}<p>{}</p></figure>\n", caption, escape(why));
}

std::string page_of(RunRecord const& run) {
  RunView const view(run);
  std::string const name = escape(run.folder.filename().string());
  std::string page = fmt::format(
      "{}<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{} - gpups</title>\n"
      "<style>{}</style>\n</head>\n<body>\n<header>\n<h1>Run {}</h1>\n{}</header>\n<main>\n",
      kBeginning, name, kPageStyle, name, overview(view));
  std::vector<PageSection (*)(RunView const&)> sections{loss_section};
  if (run.ranks() > 1) {  // one rank sends nothing, and owns all rows
    sections.insert(sections.end(), {bytes_section, homes_section, owners_section, pairs_section, hot_rows_section});
  }
  sections.push_back(speed_section);
  for (auto const make : sections) page += html_of(make(view));
  return page + "</main>\n</body>\n</html>\n";
}

std::string page_of_folder(fs::path const& folder) {
  try {
    return page_of(read_run(folder));
  } catch (nlohmann::json::exception const& error) {
    throw Error(
        fmt::format("the metrics or the summary in {} have a value of a wrong type ({}): restore the files that "
                    "gpu_train wrote",
                    folder.string(), error.what()));
  }
}

namespace {

// Returns the file that a link leads to, which may not exist: a link stays one.
fs::path target_of(fs::path file) {
  constexpr int kLinksMax = 40;  // as the system follows them
  for (int links = 0; links < kLinksMax && fs::is_symlink(file); ++links) {
    file = file.parent_path() / fs::read_symlink(file);
  }
  return file;
}

}  // namespace

fs::path write_report(fs::path const& folder, fs::path const& file) {
  fs::path const out_path = file.empty() ? folder / "report.html" : file;
  std::string const page = page_of_folder(folder);
  require_replaceable(out_path);
  write_file(target_of(out_path), page);
  return out_path;
}

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
svg .border { stroke: var(--ink); stroke-width: 2; }
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
