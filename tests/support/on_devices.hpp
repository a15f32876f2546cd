// SPDX-License-Identifier: Apache-2.0
// Support for tests that run on the host and on a GPU: a fixture whose parameter is the device, and copies between
// devices.
#pragma once

#include <gtest/gtest.h>

#include <ostream>
#include <string>
#include <type_traits>
#include <vector>

#include "gpups/array.hpp"
#include "gpups/device.hpp"

namespace gpups {

// Prints a device in messages of GoogleTest.
inline void PrintTo(Device device, std::ostream* out) { *out << to_string(device); }

}  // namespace gpups

namespace gpups::test {

// A base of fixtures, which are instantiated with kDevices. Skips the case if there is no such device.
class OnDevice : public testing::TestWithParam<Device> {
 protected:
  void SetUp() override {
    if (!GetParam().is_host() && cuda_device_count() == 0) GTEST_SKIP() << "no CUDA device";
  }
};
inline auto const kDevices = testing::Values(Device::host(), Device::cuda(0));
inline std::string device_name(testing::TestParamInfo<Device> const& info) {
  return info.param.is_host() ? "Host" : "Cuda";
}

// Returns the host, and a GPU if there is one, for tests with a loop over devices.
inline std::vector<Device> devices() {
  std::vector<Device> all{Device::host()};
  if (cuda_device_count() > 0) all.push_back(Device::cuda(0));
  return all;
}

// Returns a copy with the same padding. Waits for `stream`, which belongs to one of the two devices.
template <class T>
Matrix<std::remove_const_t<T>> moved(Stream& stream, Device to, MatrixView<T> from) {
  using Element = std::remove_const_t<T>;
  Matrix<Element> there(to, from.rows(), from.columns());
  if (from.rows() > 0) copy<Element>(stream, there.view().flat(), from.flat());
  stream.wait();
  return there;
}
template <class T>
Array<std::remove_const_t<T>> moved(Stream& stream, Device to, View<T> from) {
  using Element = std::remove_const_t<T>;
  Array<Element> there(to, from.size());
  copy<Element>(stream, there, from);
  stream.wait();
  return there;
}

}  // namespace gpups::test
