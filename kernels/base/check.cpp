// SPDX-License-Identifier: Apache-2.0
#include "kernels/base/check.hpp"

namespace gpups::kernels {

void throw_formatted(fmt::string_view format, fmt::format_args arguments) {
  throw Error(fmt::vformat(format, arguments));
}

}  // namespace gpups::kernels
