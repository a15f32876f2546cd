// SPDX-License-Identifier: Apache-2.0
// What leaves the library is a gpups::Error: an exception of the standard library becomes one.
#pragma once

#include <exception>
#include <new>

#include "kernels/check.hpp"

namespace gpups::comm {

// The same exception, if it is an Error or is none of the standard library's; else an Error that says what it was.
inline std::exception_ptr only_errors(std::exception_ptr thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (Error const&) {
    return thrown;
  } catch (std::bad_alloc const&) {
    return std::make_exception_ptr(
        Error("the host has no memory left (a rank cannot go on without): use smaller tables or batches, or more ranks "
              "on more machines"));
  } catch (std::exception const& bare) {
    return std::make_exception_ptr(
        Error(fmt::format("the protocol cannot go on: {} (what this rank has of the tables cannot be trusted): go on "
                          "from the last checkpoint, and report what the program did",
                          bare.what())));
  } catch (...) {
    return thrown;
  }
}

}  // namespace gpups::comm
