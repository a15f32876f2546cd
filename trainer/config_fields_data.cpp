// SPDX-License-Identifier: Apache-2.0
// The keys of data.
#include "trainer/config_make.hpp"
#include "trainer/config_uses.hpp"
#include "trainer/tasks.hpp"

namespace gpups::trainer {
namespace {

template <auto Member>
constexpr Read kData = at<&Config::data, Member>;

}  // namespace

std::vector<Field> data_fields() {
  using namespace uses;
  using D = DataConfig;
  return {
      Make("data", "reader", kData<&D::reader>, "what the data is").one_of(all_reader_names()).kept(),
      Make("data", "folder", kData<&D::folder>, "where its files are").a_path(),
      Make("data", "train", kData<&D::train>, "file to learn from").with(kFiles),
      Make("data", "valid", kData<&D::valid>, "file to watch progress by; empty: none").with(kFiles),
      Make("data", "test", kData<&D::test>, "file for the final metrics; empty: none").with(kFiles),
      Make("data", "bad_share_max", kData<&D::bad_share_max>, "share of bad lines above which the run stops")
          .range(0, 1)
          .with(kFiles),
      Make("data", "valid_share", kData<&D::valid_share>, "share of samples kept to watch progress by")
          .range(0, 0.45)
          .with(kValidShare),
      Make("data", "test_share", kData<&D::test_share>, "share of samples kept for the final metrics")
          .range(0, 0.45)
          .with(kTestShare),
      Make("data", "split_seed", kData<&D::split_seed>, "decides which samples are kept")
          .range(0, kMost53)
          .with(kDrawn),
      Make("data", "numbers", kData<&D::numbers>, "columns of numbers, which come after the label")
          .range(0, 4095)
          .with(kClicks)
          .kept(),
      Make("data", "categories", kData<&D::categories>, "columns of categories, which come last")
          .range(0, 4095)
          .with(kClicks)
          .kept(),
      Make("data", "many", kData<&D::many>, "categories with many values, '|' between them").with(kClicks).kept(),
      Make("data", "weighted", kData<&D::weighted>, "the same, where a value may end in ':' and a weight")
          .with(kClicks)
          .kept(),
  };
}

}  // namespace gpups::trainer
