// SPDX-License-Identifier: Apache-2.0
// Owner: the pointer from a public class, such as Store, to its implementation. Applications do not use it.
#pragma once

#include <memory>

#include "gpups/compiler.hpp"

namespace gpups {

// Throws the Error for the use of a moved-from object. kind: the class, such as "a Store".
[[noreturn]] GPUPS_EXPORT void throw_moved_from(char const* kind);

// Owns a T, like std::unique_ptr, but throws Error if it is used while it is empty. Move-only; a moved-from Owner is
// empty. T may be an incomplete type, except in reset(). Not synchronised.
//
//   Owner<Impl> impl_{"a Store"};  // member of a class; its constructor calls impl_.reset(new Impl(...))
template <class T>
class GPUPS_EXPORT Owner {
 public:
  explicit Owner(char const* kind) noexcept : kind_(kind) {}

  // Takes ownership of `owned` and deletes the previous object. REQUIRES: T is a complete type.
  void reset(T* owned) {
    owned_ = {owned, [](T* of) { delete of; }};
  }
  T* operator->() const {
    if (owned_ == nullptr) throw_moved_from(kind_);
    return owned_.get();
  }
  T& operator*() const { return *operator->(); }

 private:
  char const* kind_;
  std::unique_ptr<T, void (*)(T*)> owned_{nullptr, nullptr};
};

}  // namespace gpups
