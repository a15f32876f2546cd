// SPDX-License-Identifier: Apache-2.0
#include "trainer/report/report.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <string_view>

#include "gpups/error.hpp"
#include "kernels/base/check.hpp"
#include "trainer/report/page_section.hpp"
#include "trainer/report/page_style.hpp"
#include "trainer/report/svg.hpp"

namespace gpups::trainer::report {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kBeginning =
    "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
    "<meta name=\"generator\" content=\"gpu_train report\">\n";

// Throws Error if the file exists and is not such a page.
void require_replaceable(fs::path const& file) {
  if (!fs::exists(file)) return;
  std::string beginning(kBeginning.size(), ' ');
  std::ifstream(file, std::ios::binary).read(beginning.data(), static_cast<std::streamsize>(beginning.size()));
  GPUPS_REQUIRE(
      beginning == kBeginning,
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
  for (auto const make :
       {loss_section, bytes_section, homes_section, owners_section, pairs_section, hot_rows_section, speed_section}) {
    page += html_of(make(view));
  }
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

fs::path write_report(fs::path const& folder, fs::path const& file) {
  fs::path const out_path = file.empty() ? folder / "report.html" : file;
  std::string const page = page_of_folder(folder);
  require_replaceable(out_path);
  std::ofstream out(out_path, std::ios::binary);
  out << page;
  out.close();
  GPUPS_REQUIRE(out.good(), "{} cannot be written ({}): choose another file", out_path.string(), std::strerror(errno));
  return out_path;
}

}  // namespace gpups::trainer::report
