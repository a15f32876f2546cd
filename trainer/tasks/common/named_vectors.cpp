// SPDX-License-Identifier: Apache-2.0
#include "trainer/tasks/common/named_vectors.hpp"

#include <fmt/format.h>

#include <string>

#include "trainer/base/atomic_folder.hpp"
#include "trainer/tasks/common/entity_matrix.hpp"
#include "trainer/tasks/common/word2vec_file.hpp"

namespace gpups::trainer {

namespace fs = std::filesystem;

void export_named_vectors(SavedModel const& model, Data const& data, Dictionary const& names,
                          Dictionary const* other_names, fs::path const& folder, ModelFormat format) {
  RestoredModel restored(model, data);
  Store& store = restored.store();
  if (!is_word2vec(format)) {
    return write_folder(folder, [&](fs::path const& beside) {
      store.export_rows(beside / "rows", array_format(format));
      for (Dictionary const* const of : {&names, other_names}) {
        if (of != nullptr) write_file(beside / (of->kind() + "s.tsv"), names_and_keys(*of, of->keys()));
      }
      write_file(beside / "model.json", description_of(model));
    });
  }
  Stream stream = store.make_stream();
  Matrix<float> const rows = read_rows(stream, store, TableId{0}, names.keys());
  std::vector<float> const host = to_host(stream, rows.view().flat());
  bool const binary = format == ModelFormat::kWord2vecBinary;
  write_folder(folder, [&](fs::path const& beside) {
    write_word2vec(beside / (binary ? "vectors.bin" : "vectors.txt"), names,
                   {host.data(), rows.rows(), rows.columns(), rows.stride()}, binary);
  });
}

}  // namespace gpups::trainer
