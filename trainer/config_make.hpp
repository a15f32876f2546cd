// SPDX-License-Identifier: Apache-2.0
// Fields of a configuration in words, for the lists of them: Make("train", "batch", place, "...").range(1, 8).kept().
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "trainer/config_fields.hpp"

namespace gpups::trainer {

using Read = Place (*)(Config&);
template <auto Section, auto Member>
Place at(Config& config) {
  return &(config.*Section.*Member);
}

struct Make : Field {
  Make(std::string_view in_section, std::string_view its_key, Read read, std::string_view its_doc) {
    section = in_section, key = its_key, place = read, doc = its_doc;
  }
  Make& range(double from, double to) { return least = from, most = to, *this; }
  Make& one_of(std::vector<std::string> words) { return choices = std::move(words), *this; }
  Make& a_path() { return path = true, *this; }
  Make& in_order() { return ordered = true, *this; }
  Make& kept() { return matters = true, *this; }
  Make& with(Use when) { return use = when, *this; }
  Make& a_codec() { return one_of({"lossless", "float16", "bfloat16", "int8", "int4"}).kept(); }
};

// The keys of dense layers.
std::vector<Field> dense_fields();

}  // namespace gpups::trainer
