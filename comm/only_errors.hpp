// SPDX-License-Identifier: Apache-2.0
// Converts exceptions of the standard library into gpups::Error, the only kind of exception that users of the library
// get.
#pragma once

#include <exception>
#include <new>

#include "kernels/base/check.hpp"

namespace gpups::comm {

// Returns `thrown` itself, except for a std::exception that is no Error: then returns an Error with its text.
inline std::exception_ptr only_errors(std::exception_ptr thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (Error const&) {
    return thrown;
  } catch (std::bad_alloc const&) {
    return std::make_exception_ptr(
        Error("the host is out of memory (this rank cannot continue): use smaller tables or batches, or more ranks "
              "on more machines"));
  } catch (std::exception const& bare) {
    return std::make_exception_ptr(
        Error(fmt::format("an internal error ended the protocol: {} (the tables of this rank may be wrong): restart "
                          "from the last checkpoint, and report this error",
                          bare.what())));
  } catch (...) {
    return thrown;
  }
}

}  // namespace gpups::comm
