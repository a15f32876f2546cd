// SPDX-License-Identifier: Apache-2.0
#include "kernels/score/distance_math.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace gpups::test::inverse_root_test {
namespace {

using kernels::inverse_root;

TEST(InverseRoot, RelativeErrorsAreBelowItsBound) {
  for (int exponent : {-60, -21, -2, 0, 1, 30, 61}) {
    for (int step = 0; step < 30000; ++step) {
      float const x = std::ldexp(1.0F + static_cast<float>(step) / 10000, exponent);  // two octaves
      double const wanted = 1 / std::sqrt(double{x});
      ASSERT_NEAR(inverse_root(x) / wanted, 1, 8e-7) << x;
    }
  }
}

TEST(InverseRoot, TimesZeroIsZero) {
  EXPECT_EQ(0.0F * inverse_root(0.0F), 0.0F);
  float const tiny = std::ldexp(1.0F, -149);
  EXPECT_TRUE(std::isfinite(inverse_root(tiny)));
}

}  // namespace
}  // namespace gpups::test::inverse_root_test
