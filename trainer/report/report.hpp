// SPDX-License-Identifier: Apache-2.0
// A picture of a run: one HTML file that needs no other file and no network.
#pragma once

#include <filesystem>
#include <string>

#include "trainer/report/run_record.hpp"

namespace gpups::trainer::report {

// Returns the page.
std::string page_of(RunRecord const& run);

// Returns the page of a run's folder. Throws Error if the folder has no run.
std::string page_of_folder(std::filesystem::path const& folder);

// Writes the page of a run's folder to `file`; if that is empty, to report.html in the folder. Returns the path. Throws
// Error if the folder has no run, or if the file cannot be written.
std::filesystem::path write_report(std::filesystem::path const& folder, std::filesystem::path const& file);

// The style of a report: colors for light and dark pages, and for paper.

// CSS. The colors of series can be distinguished with any kind of color blindness (M. Okabe and K. Ito, Color
// Universal Design); on dark pages they are lighter.
extern char const* const kPageStyle;

}  // namespace gpups::trainer::report
