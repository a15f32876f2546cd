// SPDX-License-Identifier: Apache-2.0
// The settings that texts and networks share, those of skip-gram.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "trainer/config/fields.hpp"

namespace gpups::trainer {

struct SkipGramSettings {
  std::int64_t negatives = 15;
  std::int64_t negative_reuse = 8;
  std::int64_t window = 5;
};

// Settings of a kind have a member `skip_gram`.
template <class Settings, auto Member>
FieldPointer in_skip_gram(Config& config) {
  return &(config.settings<Settings>().skip_gram.*Member);
}

// The keys of [model] and [optimizer] of a kind with these settings.
template <class Settings>
std::vector<Field> skip_gram_fields() {
  using S = SkipGramSettings;
  return joined(
      {row_fields(),
       {FieldBuilder("model", "negatives", in_skip_gram<Settings, &S::negatives>, "negatives for each word or node")
            .range(1, 1 << 20)
            .fixed_on_resume(),
        FieldBuilder("model", "negative_reuse", in_skip_gram<Settings, &S::negative_reuse>,
                     "how many of 32 words or nodes use the same negative")
            .range(1, 32)
            .fixed_on_resume(),
        FieldBuilder("model", "window", in_skip_gram<Settings, &S::window>,
                     "largest number of words or nodes on each side that one predicts")
            .range(1, 1024)
            .fixed_on_resume()},
       optimizer_fields(),
       schedule_fields()});
}

// Returns common defaults of skip-gram: those of word2vec, except that a group of words shares its negatives.
Config skip_gram_defaults();
// Sets model.init and model.init_scale, as word2vec, if they are not given.
void set_skip_gram_defaults(Config& config, std::set<std::string> const& given);

}  // namespace gpups::trainer
