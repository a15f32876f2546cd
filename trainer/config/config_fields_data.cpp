// SPDX-License-Identifier: Apache-2.0
// The keys of [data].
#include "trainer/config/config_constraints.hpp"
#include "trainer/config/config_fields.hpp"
#include "trainer/tasks/task.hpp"

namespace gpups::trainer {
namespace {

template <auto Member>
constexpr FieldAccessor kData = at<&Config::data, Member>;

}  // namespace

std::vector<Field> data_fields() {
  using namespace constraints;
  using D = DataConfig;
  return {
      FieldBuilder("data", "reader", kData<&D::reader>, "format of the data")
          .one_of(all_reader_names())
          .fixed_on_resume(),
      FieldBuilder("data", "folder", kData<&D::folder>, "folder of the data files").is_path(),
      FieldBuilder("data", "train", kData<&D::train>, "file of training samples").only_if(kFiles),
      FieldBuilder("data", "valid", kData<&D::valid>, "file of validation samples; empty: none").only_if(kHeldOut),
      FieldBuilder("data", "test", kData<&D::test>, "file of test samples; empty: none").only_if(kHeldOut),
      FieldBuilder("data", "bad_share_max", kData<&D::bad_share_max>, "share of bad lines above which the run stops")
          .range(0, 1)
          .only_if(kLines),
      FieldBuilder("data", "valid_share", kData<&D::valid_share>, "share of samples for validation")
          .range(0, 0.45)
          .only_if(kValidShare),
      FieldBuilder("data", "test_share", kData<&D::test_share>, "share of samples for the test")
          .range(0, 0.45)
          .only_if(kTestShare),
      FieldBuilder("data", "split_seed", kData<&D::split_seed>, "seed of the choice of validation and test samples")
          .range(0, kMost53)
          .only_if(kDrawn),
      FieldBuilder("data", "directed", kData<&D::directed>, "true: walks follow edges in their direction only")
          .only_if(kNetworks)
          .fixed_on_resume(),
      FieldBuilder("data", "numeric_columns", kData<&D::numeric_columns>,
                   "number of numeric columns, which follow the label")
          .range(0, 4095)
          .only_if(kClicks)
          .fixed_on_resume(),
      FieldBuilder("data", "categorical_columns", kData<&D::categorical_columns>,
                   "number of categorical columns, which follow the numeric ones")
          .range(0, 4095)
          .only_if(kClicks)
          .fixed_on_resume(),
      FieldBuilder("data", "multi_hot", kData<&D::multi_hot>, "categories with several values, separated by '|'")
          .only_if(kClicks)
          .fixed_on_resume(),
      FieldBuilder("data", "weighted", kData<&D::weighted>, "the same, and a value may end in ':' and a weight")
          .only_if(kClicks)
          .fixed_on_resume(),
  };
}

}  // namespace gpups::trainer
