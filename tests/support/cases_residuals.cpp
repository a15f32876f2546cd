// SPDX-License-Identifier: Apache-2.0
// Cases of kernels of row filters, which keep small rows in a residual until they are sent.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>

#include "kernels/codec/accumulate_residual.hpp"
#include "kernels/codec/changed_rows_of_mirrors.hpp"
#include "tests/support/cases.hpp"
#include "tests/support/compare.hpp"
#include "tests/support/inputs.hpp"

namespace gpups::test {
namespace {

using Words = std::vector<std::uint32_t>;
constexpr std::uint32_t kNow = 20, kAge = 5;

// Whether a row is sent, and the new mark of its slot.
struct Decision {
  bool send;
  std::uint32_t oldest;
};
Decision decide(bool differs, double max_magnitude, double bound, std::uint32_t oldest, bool sent_stay_marked = false) {
  bool const old = oldest != 0 && kNow - oldest >= kAge;
  if (!differs) return {false, 0};
  if (sent_stay_marked) return {max_magnitude >= bound, oldest != 0 ? oldest : kNow};
  if (max_magnitude >= bound || old) return {true, 0};
  return {false, oldest != 0 ? oldest : kNow};
}

// The decision for a row whose mirror was last compared in step `last_use`.
Decision decide_change(bool differs, double max_magnitude, double bound, std::uint32_t oldest, std::uint32_t last_use) {
  if (oldest == 0 && last_use == 0) return {differs, 0};  // its mirror was never compared
  std::uint32_t const first = oldest == 0 ? last_use + 1 : oldest;
  bool const waits = differs && max_magnitude < bound && kNow < first + kAge;
  return {differs && !waits, waits ? first : 0};
}

Words random_marks(Random& random, std::size_t slots) {
  Words marks(slots * kernels::kResidualMarks);
  for (auto& mark : marks) mark = below(random, 2) == 0 ? 0 : 12 + static_cast<std::uint32_t>(below(random, 8));
  return marks;
}

Problem accumulate_residual(Stream& stream, CaseSize size, std::uint64_t seed) {
  struct State {
    std::vector<std::int64_t> sums, residual;
    Words order, slots, marks;
    Matrix<std::int64_t> sums_there;
    kernels::RowStorage<std::int64_t> residual_there;
    kernels::RowStorage<std::uint32_t> marks_there;
    Array<std::uint32_t> order_there, slots_there, bad_row;
    Array<float> max_magnitude;
    Array<std::uint8_t> send;
    bool sent_stay_marked;
  };
  constexpr float kBound = 1e6F;
  Random random(seed);
  auto s = std::make_shared<State>();
  std::size_t const stride = row_stride(size.dim), slots = 2 * size.n + 1;
  auto const numbers = [&](std::size_t rows) {
    std::vector<std::int64_t> all(rows * stride, 0);
    for (std::size_t i = 0; i < all.size(); ++i) {
      bool const small = i / stride % 2 == 0;
      if (i % stride < size.dim) all[i] = static_cast<std::int64_t>(random()) >> (small ? 46 : 30);
    }
    return all;
  };
  s->sent_stay_marked = seed % 2 == 1;
  s->sums = numbers(size.n);
  s->residual = numbers(slots);
  s->marks = random_marks(random, slots);
  s->order = distinct_ids(random, size.n, size.n);
  s->slots = distinct_ids(random, size.n, slots);
  s->sums_there = matrix(stream, s->sums, size.n, size.dim);
  s->residual_there = rows(stream, s->residual, slots, stride);
  s->marks_there = rows(stream, s->marks, slots, kernels::kResidualMarks);
  s->order_there = to_device(stream, s->order);
  s->slots_there = to_device(stream, s->slots);
  s->bad_row = to_device(stream, Words{kernels::kNoRow});
  s->max_magnitude = Array<float>(stream.device(), size.n);
  s->send = Array<std::uint8_t>(stream.device(), size.n);

  Problem p;
  p.entries = size.n;
  p.bytes = size.n * (stride * 24 + 24);
  p.run = [s](Stream& on) {
    kernels::accumulate_residual(on, {.sums = s->sums_there,
                                      .order = s->order_there,
                                      .slots = s->slots_there,
                                      .residual = s->residual_there.ref(),
                                      .marks = s->marks_there.ref(),
                                      .now = kNow,
                                      .age = kAge,
                                      .bound = kBound,
                                      .max_magnitude = s->max_magnitude,
                                      .send = s->send,
                                      .sent_stay_marked = s->sent_stay_marked,
                                      .bad_row = s->bad_row});
  };
  p.wrong = [s, size, stride, slots](Stream& on) -> std::string {
    if (to_host(on, s->bad_row.view())[0] != kernels::kNoRow) return "a row was reported as bad";
    auto const residual = to_host(on, s->residual_there.ref(), slots);
    auto const marks = to_host(on, s->marks_there.ref(), slots);
    auto const send = to_host(on, s->send.view());
    auto const max_magnitude = to_host(on, s->max_magnitude.view());
    auto want_residual = s->residual;
    auto want_marks = s->marks;
    for (std::size_t i = 0; i < size.n; ++i) {
      double most = 0;
      for (std::size_t j = 0; j < size.dim; ++j) {
        auto& number = want_residual[s->slots[i] * stride + j];
        number += s->sums[s->order[i] * stride + j];
        most = std::max(most, std::abs(static_cast<double>(number)));
      }
      double const got = static_cast<double>(max_magnitude[i]);
      if (got < most || got > most * (1 + 0x1p-22) + 1) return fmt::format("row {}: largest {} not {}", i, got, most);
      auto* const mark = want_marks.data() + s->slots[i] * kernels::kResidualMarks;
      auto const decision =
          decide(most > 0, got, static_cast<double>(kBound), mark[kernels::kOldest], s->sent_stay_marked);
      if ((send[i] != 0) != decision.send) return fmt::format("row {}: sent {}", i, send[i]);
      mark[kernels::kOldest] = decision.oldest;
      mark[kernels::kLastUse] = kNow;
    }
    auto wrong = differ("residual", residual, want_residual);
    if (wrong.empty()) wrong = differ("marks", marks, want_marks);
    if (!wrong.empty()) return wrong;
    kernels::subtract_residual(
        on,
        {.sums = s->sums_there, .order = s->order_there, .slots = s->slots_there, .residual = s->residual_there.ref()});
    return differ("residual after subtraction", to_host(on, s->residual_there.ref(), slots), s->residual);
  };
  p.bits = [s, slots](Stream& on) {
    return bytes_of(to_host(on, s->residual_there.ref(), slots)) + bytes_of(to_host(on, s->send.view()));
  };
  return p;
}

Problem changed_rows(Stream& stream, CaseSize size, std::uint64_t seed) {
  struct State {
    std::vector<float> values, copies;
    Words slots, marks;
    Matrix<float> values_there;
    kernels::RowStorage<float> copies_there;
    kernels::RowStorage<std::uint32_t> marks_there;
    Array<std::uint32_t> slots_there;
    Array<float> max_magnitude;
    Array<std::uint8_t> send;
  };
  constexpr float kBound = 0.5F;
  Random random(seed);
  auto s = std::make_shared<State>();
  std::size_t const stride = row_stride(size.dim), slots = 2 * size.n + 1;
  s->values = floats(random, size.n, size.dim);
  s->copies = floats(random, slots, size.dim);
  s->marks = random_marks(random, slots);
  s->slots = distinct_ids(random, size.n, slots);
  for (std::size_t i = 0; i < size.n; i += 7)
    s->marks[s->slots[i] * kernels::kResidualMarks + kernels::kLastUse] = kNow;
  for (std::size_t i = 0; i < size.n; ++i) {  // small changes, none, and large ones
    float const share = i % 3 == 0 ? 0.01F : i % 3 == 1 ? 0 : 1;
    for (std::size_t j = 0; j < size.dim; ++j) {
      float const copy = s->copies[s->slots[i] * stride + j];
      s->values[i * stride + j] = copy + share * s->values[i * stride + j];
    }
  }
  s->values_there = matrix(stream, s->values, size.n, size.dim);
  s->copies_there = rows(stream, s->copies, slots, stride);
  s->marks_there = rows(stream, s->marks, slots, kernels::kResidualMarks);
  s->slots_there = to_device(stream, s->slots);
  s->max_magnitude = Array<float>(stream.device(), size.n);
  s->send = Array<std::uint8_t>(stream.device(), size.n);

  Problem p;
  p.entries = size.n;
  p.bytes = size.n * (size.dim * 8 + 21);
  p.run = [s](Stream& on) {
    kernels::changed_rows(on, {.values = s->values_there,
                               .slots = s->slots_there,
                               .mirrors = s->copies_there.const_ref(),
                               .marks = s->marks_there.ref(),
                               .now = kNow,
                               .age = kAge,
                               .bound = kBound,
                               .by_bits = false,
                               .max_magnitude = s->max_magnitude,
                               .send = s->send});
  };
  p.wrong = [s, size, stride, slots](Stream& on) -> std::string {
    auto const marks = to_host(on, s->marks_there.ref(), slots);
    auto const send = to_host(on, s->send.view());
    auto const max_magnitude = to_host(on, s->max_magnitude.view());
    auto want_marks = s->marks;
    for (std::size_t i = 0; i < size.n; ++i) {
      double most = 0;
      for (std::size_t j = 0; j < size.dim; ++j) {
        float const want = s->values[i * stride + j] - s->copies[s->slots[i] * stride + j];
        most = std::max(most, std::abs(static_cast<double>(want)));
      }
      if (static_cast<double>(max_magnitude[i]) != most)
        return fmt::format("row {}: largest {} not {}", i, max_magnitude[i], most);
      auto* const mark = want_marks.data() + s->slots[i] * kernels::kResidualMarks;
      if (mark[kernels::kLastUse] == kNow) {  // it was already compared in this step
        if (send[i] != 0) return fmt::format("row {}: sent again", i);
        continue;
      }
      auto const decision =
          decide_change(most > 0, most, static_cast<double>(kBound), mark[kernels::kOldest], mark[kernels::kLastUse]);
      if ((send[i] != 0) != decision.send) return fmt::format("row {}: sent {}", i, send[i]);
      mark[kernels::kOldest] = decision.oldest;
      mark[kernels::kLastUse] = kNow;
    }
    return differ("marks", marks, want_marks);
  };
  p.bits = [s](Stream& on) { return bytes_of(to_host(on, s->send.view())); };
  return p;
}

Problem gather_changes(Stream& stream, CaseSize size, std::uint64_t seed) {
  struct State {
    std::vector<float> values, copies;
    Words rows, slots;
    Matrix<float> values_there, to;
    kernels::RowStorage<float> copies_there;
    Array<std::uint32_t> rows_there, slots_there;
  };
  Random random(seed);
  auto s = std::make_shared<State>();
  std::size_t const stride = row_stride(size.dim), slots = 2 * size.n + 1;
  s->values = floats(random, size.n, size.dim);
  s->copies = floats(random, slots, size.dim);
  std::size_t const taken = size.n - size.n / 3;
  s->rows = distinct_ids(random, taken, size.n);
  s->slots = distinct_ids(random, taken, slots);
  s->values_there = matrix(stream, s->values, size.n, size.dim);
  s->copies_there = rows(stream, s->copies, slots, stride);
  s->rows_there = to_device(stream, s->rows);
  s->slots_there = to_device(stream, s->slots);
  s->to = Matrix<float>(stream.device(), taken, size.dim);
  memory::fill_bytes(stream, s->to.view().data(), 0, s->to.view().flat().bytes());  // padding is left as it is

  Problem p;
  p.entries = taken;
  p.bytes = taken * (size.dim * 12 + 8);
  p.run = [s](Stream& on) {
    kernels::gather_changes(on, {.values = s->values_there,
                                 .rows = s->rows_there,
                                 .slots = s->slots_there,
                                 .mirrors = s->copies_there.const_ref(),
                                 .to = s->to});
  };
  p.wrong = [s, size, stride](Stream& on) -> std::string {
    auto const to = to_host(on, s->to.view().flat());
    for (std::size_t k = 0; k < s->rows.size(); ++k) {
      for (std::size_t j = 0; j < size.dim; ++j) {
        float const want = s->values[s->rows[k] * stride + j] - s->copies[s->slots[k] * stride + j];
        if (to[k * stride + j] != want) return fmt::format("row {}: {} not {}", k, to[k * stride + j], want);
      }
    }
    return {};
  };
  p.bits = [s](Stream& on) { return bytes_of(to_host(on, s->to.view().flat())); };
  return p;
}

constexpr KernelCase kResidualsCases[] = {
    {"accumulate_residual", accumulate_residual}, {"changed_rows", changed_rows}, {"gather_changes", gather_changes}};

}  // namespace

std::span<KernelCase const> residual_cases() { return kResidualsCases; }

}  // namespace gpups::test
