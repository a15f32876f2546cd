// SPDX-License-Identifier: Apache-2.0
// What is inside an object that can be moved.
#pragma once

#include <memory>

namespace gpups {

// Throws Error: an object of this kind, such as "a Store", was used that has been moved from.
[[noreturn]] void throw_moved_from(char const* kind);

// Owns a T, as std::unique_ptr does, and throws Error where it is used after it has been moved from. Move-only.
template <class T>
class Owner {
 public:
  explicit Owner(char const* kind) noexcept : kind_(kind) {}

  // REQUIRES: T is a complete type; only here.
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
