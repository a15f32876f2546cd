// SPDX-License-Identifier: Apache-2.0
#include "tests/emulator/ptx/mutation.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <regex>

namespace gpups::emulator {
namespace {

struct Fault {
  Mutation kind = Mutation::kNone;
  std::string kernels;  // a part of their names
};

Fault read_environment() {
  static std::map<std::string, Mutation> const kinds{{"barrier", Mutation::kBarrier},
                                                     {"mask", Mutation::kMask},
                                                     {"atomic", Mutation::kAtomic},
                                                     {"event", Mutation::kEvent}};
  char const* const text = std::getenv("GPUPS_EMULATOR_MUTATION");
  if (text == nullptr) return {};
  std::string const given = text;
  auto const colon = given.find(':');
  auto const kind = kinds.find(given.substr(0, colon));
  if (kind == kinds.end()) {
    std::fprintf(stderr, "emulator: there is no fault GPUPS_EMULATOR_MUTATION=%s: give one of ptx/mutation.hpp\n",
                 text);
    std::exit(2);
  }
  return {kind->second, colon == std::string::npos ? "" : given.substr(colon + 1)};
}

Fault const& fault() {
  static Fault const given = read_environment();
  return given;
}

// Returns the body of a kernel with the fault.
std::string mutated_body(std::string const& body) {
  static std::regex const barrier("\\n[^\\n;]*\\b(bar|barrier)\\.(cta\\.)?sync[^;]*;");
  static std::regex const of_warp("(\\b(?:shfl|vote|match|redux)\\.[^;]*),[^,;]*;");
  // {d} = [a]; [a] = {d} + b, with a register that the original instruction writes, or none.
  static std::regex const add("\\batom\\.(global\\.)?add\\.([su](?:32|64))\\s+(%\\w+), (\\[[^\\]]*\\]), ([^;]*);");
  switch (fault().kind) {
    case Mutation::kBarrier:
      return std::regex_replace(body, barrier, "");
    case Mutation::kMask:
      return std::regex_replace(body, of_warp, "$1, 65535;");
    case Mutation::kAtomic:
      return std::regex_replace(body, add, "ld.$1$2 $3, $4;\nadd.$2 $3, $3, $5;\nst.$1$2 $4, $3;\nsub.$2 $3, $3, $5;");
    default:
      return body;
  }
}

}  // namespace

Mutation mutation() { return fault().kind; }

std::string mutated(std::string ptx) {
  if (fault().kind == Mutation::kNone) return ptx;
  constexpr char const* kEntry = ".entry ";
  std::string result;
  for (std::size_t begin = 0; begin < ptx.size();) {
    std::size_t const end = std::min(ptx.find(kEntry, begin + 1), ptx.size());
    std::string part = ptx.substr(begin, end - begin);
    bool const chosen = part.starts_with(kEntry) && part.substr(0, part.find('(')).find(fault().kernels) != part.npos;
    std::string const body = chosen ? mutated_body(part) : part;
    if (body != part) {
      std::fprintf(stderr, "emulator: a fault is put into %s\n", part.substr(0, part.find('(')).c_str());
    }
    result += body;
    begin = end;
  }
  return result;
}

}  // namespace gpups::emulator
