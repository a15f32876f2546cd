// SPDX-License-Identifier: Apache-2.0
#include "trainer/report/svg.hpp"

#include <fmt/format.h>

namespace gpups::trainer::report {
namespace {

char const* name_of(Svg::Anchor anchor) {
  switch (anchor) {
    case Svg::Anchor::kStart:
      return "start";
    case Svg::Anchor::kMiddle:
      return "middle";
    case Svg::Anchor::kEnd:
      return "end";
  }
  return "start";
}

}  // namespace

std::string escape(std::string_view text) {
  std::string escaped;
  for (char const c : text) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      case '\'':
        escaped += "&#39;";
        break;
      default:
        escaped += c;
    }
  }
  return escaped;
}

std::string color(std::size_t series) { return fmt::format("var(--c{})", series % kColors); }

Svg::Svg(double width, double height, std::string_view label)
    : text_(fmt::format("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {:.6g} {:.6g}\" role=\"img\" "
                        "aria-label=\"{}\">\n",
                        width, height, escape(label))) {}

void Svg::line(double x1, double y1, double x2, double y2, std::string_view style_class) {
  text_ += fmt::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" class=\"{}\"/>\n", x1, y1, x2, y2,
                       style_class);
}

void Svg::text(double x, double y, std::string_view text, Anchor anchor, std::string_view style_class) {
  std::string const its_class = style_class.empty() ? "" : fmt::format(" class=\"{}\"", style_class);
  text_ += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\"{}>{}</text>\n", x, y, name_of(anchor),
                       its_class, escape(text));
}

void Svg::rect(double x, double y, double width, double height, std::string_view fill, std::string_view hover,
               double opacity) {
  text_ += fmt::format(
      "<rect x=\"{:.2f}\" y=\"{:.2f}\" width=\"{:.2f}\" height=\"{:.2f}\" style=\"fill:{}\" fill-opacity=\"{:.3g}\">"
      "<title>{}</title></rect>\n",
      x, y, width, height, fill, opacity, escape(hover));
}

void Svg::polyline(std::string_view points, std::string_view stroke) {
  text_ += fmt::format("<polyline points=\"{}\" class=\"curve\" style=\"stroke:{}\"/>\n", points, stroke);
}

void Svg::point(double x, double y, std::string_view fill, std::string_view hover, bool visible) {
  text_ += fmt::format(
      "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{}\" style=\"fill:{}\" fill-opacity=\"{}\"><title>{}</title>"
      "</circle>\n",
      x, y, visible ? "3" : "5", fill, visible ? 1 : 0, escape(hover));
}

}  // namespace gpups::trainer::report
