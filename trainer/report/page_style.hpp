// SPDX-License-Identifier: Apache-2.0
// The style of a report: colors for light and dark pages, and for paper.
#pragma once

namespace gpups::trainer::report {

// CSS. The colors of series can be distinguished with any kind of color blindness (M. Okabe and K. Ito, Color
// Universal Design); on dark pages they are lighter.
extern char const* const kPageStyle;

}  // namespace gpups::trainer::report
