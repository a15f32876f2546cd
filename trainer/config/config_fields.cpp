// SPDX-License-Identifier: Apache-2.0
#include "trainer/config/config_fields.hpp"

namespace gpups::trainer {
namespace {

// Returns all fields, in the order in which a configuration is written.
std::vector<Field> make_fields() {
  std::vector<Field> all;
  for (auto const& of_section :
       {data_fields(), model_fields(), click_model_fields(), optimizer_fields(), linear_fields(), dense_fields(),
        gradient_compression_fields(), refresh_compression_fields(), train_fields(), placement_fields(), eval_fields(),
        run_fields(), cluster_fields()}) {
    all.insert(all.end(), of_section.begin(), of_section.end());
  }
  return all;
}

}  // namespace

std::span<Field const> fields() {
  static std::vector<Field> const all = make_fields();
  return all;
}

}  // namespace gpups::trainer
