// SPDX-License-Identifier: Apache-2.0
#include "comm/collective/link_model.hpp"

#include <fmt/format.h>

namespace gpups::comm {

Work& Work::operator+=(Work const& more) {
  rounds += more.rounds;
  bytes += more.bytes;
  fresh += more.fresh;
  added += more.added;
  entries += more.entries;
  elements += more.elements;
  halves += more.halves;
  codes += more.codes;
  return *this;
}

double seconds(LinkModel const& model, Work const& work) {
  return model.round_s * work.rounds + model.byte_s * work.bytes + model.fresh_s * work.fresh +
         model.add_s * work.added + model.entry_s * work.entries + model.element_s * work.elements +
         model.half_s * work.halves + model.code_s * work.codes;
}

std::string describe(LinkModel const& m) {
  return fmt::format(
      "{:.3g} us a round, {:.3g} GB/s, {:.3g} ns per byte of new memory, {:.3g} ns per added element, {:.3g} ns per "
      "entry, {:.3g} ns per element of a range, {:.3g} ns per number of 16 bits, {:.3g} ns per number of fewer",
      m.round_s * 1e6, 1e-9 / m.byte_s, m.fresh_s * 1e9, m.add_s * 1e9, m.entry_s * 1e9, m.element_s * 1e9,
      m.half_s * 1e9, m.code_s * 1e9);
}

}  // namespace gpups::comm
