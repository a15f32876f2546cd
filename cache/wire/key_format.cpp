// SPDX-License-Identifier: Apache-2.0
#include "gpups/key_format.hpp"

#include <fmt/format.h>

#include <string>

#include "gpups/error.hpp"

namespace gpups {

char const* name_of(KeyFormat format) {
  switch (format) {
    case KeyFormat::kAuto:
      return "auto";
    case KeyFormat::kPlain:
      return "plain";
    case KeyFormat::kDictionary:
      return "dictionary";
  }
  return "unknown";
}

KeyFormat key_format(std::string_view name) {
  std::string names;
  for (auto const format : kKeyFormats) {
    if (name == name_of(format)) return format;
    names += fmt::format("{}{}", names.empty() ? "" : ", ", name_of(format));
  }
  throw Error(fmt::format("there is no key format '{}' (the formats are {}): use one of them", name, names));
}

}  // namespace gpups
