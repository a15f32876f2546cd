// SPDX-License-Identifier: Apache-2.0
#include "trainer/tasks/click/text/text_blocks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "kernels/base/check.hpp"
#include "kernels/base/checksum.hpp"
#include "trainer/base/progress_reporter.hpp"
#include "trainer/input/line_reader.hpp"
#include "trainer/input/odd_characters.hpp"
#include "trainer/tasks/click/block.hpp"
#include "trainer/tasks/click/sample_storage.hpp"
#include "trainer/tasks/click/text/text_chunks.hpp"
#include "trainer/tasks/click/text/text_columns.hpp"
#include "trainer/tasks/click/text/text_rows.hpp"

namespace gpups::trainer {
namespace {

// Consecutive samples of a batch.
struct Piece {
  SampleBatch const* batch;
  std::size_t first, count;
};

void append(BlockShape const& shape, Piece const& piece, SampleBatch& to) {
  SampleBatch const& from = *piece.batch;
  std::size_t const categories = shape.categories.size(), end = piece.first + piece.count;
  auto const add = [](auto const& source, std::size_t begin, std::size_t stop, auto& target) {
    target.insert(target.end(), source.begin() + static_cast<std::ptrdiff_t>(begin),
                  source.begin() + static_cast<std::ptrdiff_t>(stop));
  };
  to.samples += piece.count;
  add(from.labels, piece.first, end, to.labels);
  add(from.numbers, piece.first * shape.numbers, end * shape.numbers, to.numbers);
  if (!shape.lists) {
    add(from.values, piece.first * categories, end * categories, to.values);
    return;
  }
  std::uint32_t const begin = from.offsets[piece.first * categories], stop = from.offsets[end * categories];
  GPUPS_REQUIRE(to.values.size() + (stop - begin) <= kBlockValuesMax,
                "{} consecutive samples have more than {} values (a block of samples has at most that many): shorten "
                "long lists",
                kSampleBlock, kBlockValuesMax);
  if (to.offsets.empty()) to.offsets.push_back(0);
  auto const before = static_cast<std::uint32_t>(to.values.size());
  for (std::size_t i = piece.first * categories + 1; i <= end * categories; ++i) {
    to.offsets.push_back(from.offsets[i] - begin + before);
  }
  add(from.values, begin, stop, to.values);
  if (shape.weighted) add(from.weights, begin, stop, to.weights);
}

SampleBatch joined_pieces(BlockShape const& shape, std::vector<Piece> const& pieces) {
  SampleBatch all;
  for (Piece const& piece : pieces) append(shape, piece, all);
  return all;
}

// Cuts consecutive batches into groups of pieces. Each group has the samples of one block; the last may have fewer.
std::vector<std::vector<Piece>> cut(std::vector<SampleBatch const*> const& batches) {
  std::vector<std::vector<Piece>> groups;
  std::size_t room = 0;  // in the last group
  for (SampleBatch const* batch : batches) {
    for (std::size_t first = 0; first < batch->samples;) {
      if (room == 0) {
        groups.emplace_back();
        room = kSampleBlock;
      }
      std::size_t const count = std::min(room, batch->samples - first);
      groups.back().push_back({batch, first, count});
      first += count;
      room -= count;
    }
  }
  return groups;
}

struct Encoded {
  std::vector<std::byte> bytes;
  std::uint64_t xxh3 = 0;
};

// Processes some chunks at a time: threads parse the chunks, then make the blocks.
class Work {
 public:
  Work(Layout const& layout, int threads)
      : layout_(layout),
        shape_(layout),
        arena_(threads),
        chunks_(2 * static_cast<std::size_t>(arena_.threads())),
        parsed_(chunks_.size()),
        bad_(chunks_.size()) {}

  // Reads a file. is_last: no file follows, so the last block may have fewer samples.
  void run(std::filesystem::path const& path, TextOptions const& options, bool is_last, TakeBlock take) {
    path_ = path.string();
    lines_ = {};
    odd_of_file_ = {};
    columns_.reset();
    TextChunks text(path, chunks_.size());
    for (bool ended = false; !ended;) {
      std::size_t count = 0;
      while (count < chunks_.size() && text.next(chunks_[count])) ++count;
      if (!columns_) {
        columns_.emplace(count > 0 ? chunks_[0].text : "", layout_, options.table, path_);
        (options.same != nullptr ? *options.same : same_).check(columns_->layout(), path_);
      }
      parse(count);
      ended = count < chunks_.size();
      make_blocks(count, ended && is_last, take);
    }
    bad_lines_ += lines_.bad;
  }
  // Of the file that was read last.
  BadLines const& lines() const { return lines_; }
  TextColumns const& columns() const { return *columns_; }
  OddCharacters const& odd() const { return odd_of_file_; }
  // Of all files.
  TextCounts counts() const { return {.samples = samples_, .bad = bad_lines_}; }

 private:
  void parse(std::size_t count) {
    for (std::size_t c = 0; c < count; ++c) odd_of_file_.append(chunks_[c].odd);
    arena_.blocks(count, [&](std::size_t c) {
      bad_[c] = {};
      columns_->rewrite(chunks_[c], bad_[c]);
      parse_rows(layout_, chunks_[c].text, path_, chunks_[c].first_line, parsed_[c], bad_[c]);
      chunks_[c] = {};
    });
    for (std::size_t c = 0; c < count; ++c) {
      lines_.append(bad_[c]);
      samples_ += parsed_[c].samples;
    }
  }

  void make_blocks(std::size_t count, bool last, TakeBlock take) {
    std::vector<SampleBatch const*> batches{&rest_};
    for (std::size_t c = 0; c < count; ++c) batches.push_back(&parsed_[c]);
    auto groups = cut(batches);
    std::vector<Piece> left;  // too few samples for a block; they are kept for the next chunks
    std::size_t const left_over = (rest_.samples + counted_samples(count)) % kSampleBlock;
    if (!last && left_over > 0) {
      left = std::move(groups.back());
      groups.pop_back();
    }
    std::vector<Encoded> blocks(groups.size());
    arena_.blocks(groups.size(), [&](std::size_t b) {
      blocks[b].bytes = make_block(shape_, joined_pieces(shape_, groups[b]));
      blocks[b].xxh3 = kernels::checksum(blocks[b].bytes);
    });
    rest_ = joined_pieces(shape_, left);
    for (Encoded& block : blocks) take(std::move(block.bytes), block.xxh3);
  }

  std::size_t counted_samples(std::size_t count) const {
    std::size_t sum = 0;
    for (std::size_t c = 0; c < count; ++c) sum += parsed_[c].samples;
    return sum;
  }

  std::string path_;
  Layout const& layout_;
  BlockShape shape_;
  kernels::Arena arena_;
  std::vector<TextChunk> chunks_;
  std::vector<SampleBatch> parsed_;
  std::vector<BadLines> bad_;
  BadLines lines_;  // of the file
  OddCharacters odd_of_file_;
  std::optional<TextColumns> columns_;
  SameColumns same_;
  std::uint64_t bad_lines_ = 0;
  SampleBatch rest_;  // samples after the last block
  std::uint64_t samples_ = 0;
};

}  // namespace

TextCounts make_blocks_of_text(std::span<std::filesystem::path const> files, Layout const& layout,
                               TextOptions const& options, std::vector<std::string>& notices, TakeBlock take) {
  check_layout(layout);
  Work work(layout, options.threads);
  for (auto const& path : files) {
    std::uint64_t const before = work.counts().samples;
    work.run(path, options, &path == &files.back(), take);
    if (!work.columns().says().empty()) notices.push_back(fmt::format("{}: {}", path.string(), work.columns().says()));
    for (std::string const& notice : work.columns().notices()) notices.push_back(notice);
    work.odd().say(path.string(), notices);
    std::string const line_is = fmt::format("a label, {} (data.numeric_columns) and {} (data.categorical_columns), {}",
                                            with_count(layout.numbers.size(), "number"),
                                            with_count(layout.categories.size(), "category"), work.columns().divided());
    work.lines().report(path, options.bad_share_max, line_is, options.bad_share_setting, notices);
    GPUPS_REQUIRE(work.counts().samples > before, "{} has no samples (there is nothing to learn from): check the file",
                  path.string());
  }
  return work.counts();
}

Samples read_samples_text(std::span<std::filesystem::path const> files, Layout const& layout,
                          TextOptions const& options, std::vector<std::string>& notices) {
  std::vector<std::vector<std::byte>> blocks;
  std::vector<std::uint64_t> digests;
  TextCounts const counts =
      make_blocks_of_text(files, layout, options, notices, [&](std::vector<std::byte> block, std::uint64_t xxh3) {
        blocks.push_back(std::move(block));
        digests.push_back(xxh3);
      });
  return Samples(std::make_shared<SampleStorage const>(layout, counts.samples, std::move(blocks), digests));
}

}  // namespace gpups::trainer
