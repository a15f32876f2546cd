// SPDX-License-Identifier: Apache-2.0
#include "trainer/tasks/words/word_kind.hpp"

#include "trainer/tasks/common/named_vectors.hpp"
#include "trainer/tasks/words/skip_gram_task.hpp"
#include "trainer/tasks/words/word_data.hpp"

namespace gpups::trainer {
namespace {

using W = WordSettings;

Constraint const kAnalogies{[](Config const& c) { return !(c.data.valid.empty() && c.data.test.empty()); },
                            "there are no questions: set data.valid or data.test"};

class WordKind : public TaskKind {
 public:
  std::vector<std::string> readers() const override { return {"text"}; }
  std::vector<std::string> models() const override { return skip_gram_model_names(); }

  Config defaults() const override {
    Config config = skip_gram_defaults();
    config.task.values = WordSettings{};
    return config;
  }

  std::vector<Field> fields() const override {
    return joined(
        {{train_file(), valid_file(), test_file()},
         {valid_share().only_if(kValidIsCut), test_share().only_if(kTestIsCut), split_seed().only_if(kAnyIsCut)},
         skip_gram_fields<W>(),
         {FieldBuilder("model", "subsample", in_task<&W::subsample>,
                       "share of the text above which occurrences of a word are dropped at random; 0: none "
                       "are")
              .range(0, 1)
              .fixed_on_resume(),
          FieldBuilder("model", "min_count", in_task<&W::min_count>, "rarer words are left out")
              .range(0, 255)
              .fixed_on_resume()
              .same_in_trials(),
          FieldBuilder("eval", "words_max", in_task<&W::words_max>,
                       "number of most frequent words among which analogies are answered")
              .range(4, kMost32)
              .only_if(kAnalogies)}});
  }
  void set_defaults(Config& config, std::set<std::string> const& given) const override {
    set_skip_gram_defaults(config, given);
  }
  void check(Config const& config, std::string const& name) const override { require_train_file(config, name); }

  std::unique_ptr<Data const> read(Config const& config) const override { return read_word_data(config); }

  bool export_model(SavedModel const& model, std::filesystem::path const& folder, ModelFormat format,
                    std::vector<std::string>& notices) const override {
    auto const data = read_word_data(model.saved.config);
    export_named_vectors(model, *data, data->names(), nullptr, folder, format, notices);
    return true;
  }
};

}  // namespace

TaskKind const& word_kind() {
  static WordKind const kind;
  return kind;
}

}  // namespace gpups::trainer
