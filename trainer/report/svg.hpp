// SPDX-License-Identifier: Apache-2.0
// Elements of an SVG picture. Colors are variables of the page's style, so that they follow its theme.
#pragma once

#include <string>
#include <string_view>

namespace gpups::trainer::report {

// Returns a text for HTML or SVG, also for an attribute in double quotes.
std::string escape(std::string_view text);

// The colors of series, kColors of them, from 0.
inline constexpr std::size_t kColors = 8;
std::string color(std::size_t series);  // "var(--c0)"

// A picture that is built element by element. Texts are escaped; hover texts appear when the pointer is on an element.
class Svg {
 public:
  enum class Anchor { kStart, kMiddle, kEnd };

  // label: what the picture shows, for screen readers.
  Svg(double width, double height, std::string_view label);

  void line(double x1, double y1, double x2, double y2, std::string_view style_class);
  void text(double x, double y, std::string_view text, Anchor anchor, std::string_view style_class = "");
  // fill: a CSS color. opacity: 0 .. 1.
  void rect(double x, double y, double width, double height, std::string_view fill, std::string_view hover,
            double opacity = 1);
  // points: "x,y x,y ...".
  void polyline(std::string_view points, std::string_view stroke);
  // A mark on a line; an invisible one only has a hover text.
  void point(double x, double y, std::string_view fill, std::string_view hover, bool visible);

  std::string finish() const { return text_ + "</svg>\n"; }

 private:
  std::string text_;
};

}  // namespace gpups::trainer::report
