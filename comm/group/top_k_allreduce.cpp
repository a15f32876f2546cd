// SPDX-License-Identifier: Apache-2.0
#include "gpups/top_k_allreduce.hpp"

#include <bit>
#include <cmath>
#include <cstring>
#include <type_traits>
#include <utility>
#include <vector>

#include "comm/base/serialization.hpp"
#include "comm/collectives/allreduce/integer_allreduce.hpp"
#include "comm/collectives/topk/topk_allreduce.hpp"
#include "comm/group/start_collective.hpp"
#include "kernels/base/check.hpp"
#include "kernels/sparse/top_k_feedback.hpp"
#include "kernels/sparse/unit_values.hpp"

namespace gpups::comm {
namespace {

using kernels::TopKFeedback;

constexpr std::uint32_t kVersion = 0x314B5447;  // "GTK1"

struct SavedState {
  TopKFeedback::SelectionState selection_state;
  std::vector<std::int64_t> residual;
  std::vector<std::uint32_t> velocity;  // bits
};

SavedState read(std::string const& bytes) {
  try {
    Reader reader(bytes);
    GPUPS_REQUIRE(reader.get<std::uint32_t>() == kVersion,
                  "the saved state of a TopKAllreduce is of another version: use what TopKAllreduce::save() returned");
    SavedState saved;
    saved.selection_state.steps = reader.get<std::uint64_t>();
    saved.selection_state.bound = reader.get<std::int64_t>();
    saved.selection_state.last = reader.get<std::int64_t>();
    saved.selection_state.trend = std::bit_cast<double>(reader.get<std::uint64_t>());
    saved.residual = reader.get_list<std::int64_t>();
    saved.velocity = reader.get_list<std::uint32_t>();
    reader.end();
    return saved;
  } catch (SerializationError const& error) {
    throw Error(
        fmt::format("the saved state of a TopKAllreduce cannot be read ({}): use what TopKAllreduce::save() "
                    "returned",
                    error.what()));
  }
}

void add(TopKFeedback& feedback, SavedState const& saved) {
  for (std::size_t i = 0; i < saved.residual.size(); ++i) feedback.residual()[i] += saved.residual[i];
  for (std::size_t i = 0; i < saved.velocity.size(); ++i) {
    feedback.velocity()[i] += std::bit_cast<float>(saved.velocity[i]);
  }
}

// Returns the state as bytes.
std::string to_bytes(TopKFeedback const& feedback) {
  Writer writer;
  auto const& selection_state = feedback.selection_state();
  writer.put<std::uint32_t>(kVersion);
  writer.put<std::uint64_t>(selection_state.steps);
  writer.put<std::int64_t>(selection_state.bound);
  writer.put<std::int64_t>(selection_state.last);
  writer.put<std::uint64_t>(std::bit_cast<std::uint64_t>(selection_state.trend));
  View<std::int64_t> const residual = feedback.residual();
  writer.put_list<std::int64_t>(std::span(residual.data(), residual.size()));
  std::vector<std::uint32_t> velocity(feedback.velocity().size());
  for (std::size_t i = 0; i < velocity.size(); ++i) velocity[i] = std::bit_cast<std::uint32_t>(feedback.velocity()[i]);
  writer.put_list<std::uint32_t>(velocity);
  return writer.take();
}

// Restores the states of an earlier job, in rank order: rank r takes the residuals of ranks r, r + ranks, ... Throws
// Error if there are no states, or one is invalid or of another size; then nothing has changed.
void restore(TopKFeedback& feedback, std::span<std::string const> of_ranks, Rank me, int ranks) {
  std::size_t const size = feedback.residual().size(), velocities = feedback.velocity().size();
  GPUPS_REQUIRE(!of_ranks.empty(),
                "no saved state was given to restore a TopKAllreduce (its residual would be lost): give what "
                "TopKAllreduce::save() returned on each rank");
  std::vector<SavedState> mine;
  TopKFeedback::SelectionState selection_state;
  for (std::size_t r = 0; r < of_ranks.size(); ++r) {
    SavedState saved = read(of_ranks[r]);
    GPUPS_REQUIRE(
        saved.residual.size() == size && saved.velocity.size() == velocities,
        "the saved state of rank {} has {} residuals and {} velocities, but the gradient has {} and {} (it is another "
        "gradient, or momentum was on or off): restore with the options of the job that saved it",
        r, saved.residual.size(), saved.velocity.size(), size, velocities);
    if (r == 0 || r == number(me)) selection_state = saved.selection_state;
    if (r % static_cast<std::size_t>(ranks) == number(me)) mine.push_back(std::move(saved));
  }
  // The threshold fits the residual of one rank only.
  if (of_ranks.size() != static_cast<std::size_t>(ranks)) selection_state.bound = 0;
  if (size > 0) std::memset(feedback.residual().data(), 0, size * sizeof(std::int64_t));
  if (velocities > 0) std::memset(feedback.velocity().data(), 0, velocities * sizeof(float));
  for (SavedState const& saved : mine) add(feedback, saved);
  feedback.set_selection_state(selection_state);
}

}  // namespace
}  // namespace gpups::comm

namespace gpups {

struct GPUPS_HIDDEN TopKAllreduce::Impl {
  Group group;
  int grid_log2;
  kernels::ValueForm form;
  comm::TopKAlgorithmEntry const& algorithm;
  std::shared_ptr<kernels::TopKFeedback> feedback;   // a sum in flight changes it too
  std::shared_ptr<comm::TopKSparseAllreduce> sum{};  // in flight
  std::shared_ptr<void const> place{};               // keeps its place in InflightCollectives

  void require_idle(char const* call) const {
    GPUPS_REQUIRE(
        sum == nullptr,
        "TopKAllreduce::{} was called while a sum of the object is in flight (the residual is not known until "
        "it ends): call wait first",
        call);
  }
};

namespace {

kernels::TopKFeedbackOptions feedback_options(TopKOptions const& options) {
  bool const warms_up = options.warmup_steps > 0;
  return {.grid_log2 = options.grid_log2,
          .density = options.density,
          .initial_density = warms_up ? options.initial_density : options.density,
          .warmup_steps = options.warmup_steps,
          .momentum = options.momentum};
}

// Returns a copy on the host. Blocks until `stream` has written the values.
template <class T>
Array<T> wait_on_host(Stream& stream, View<T const> values) {
  Array<T> host(Device::host(), values.size());
  copy<T>(stream, host, values);
  stream.wait();
  return host;
}

// Writes the sum to `to`, (size), on the host; elements that are not in the sum keep their values.
void write_host(comm::TopKSparseAllreduce const& sum, View<std::int64_t> to) {
  auto const indices = sum.indices();
  auto const units = sum.units();
  for (std::size_t i = 0; i < indices.size(); ++i) to[indices[i]] = units[i];
}

// The same in floats; their rounding errors are added to `residual`, unless it is empty.
void write_host(comm::TopKSparseAllreduce const& sum, int grid_log2, View<float> to, View<std::int64_t> residual) {
  double const unit = std::ldexp(1.0, grid_log2), per_unit = std::ldexp(1.0, -grid_log2);
  auto const indices = sum.indices();
  auto const units = sum.units();
  for (std::size_t i = 0; i < indices.size(); ++i) {
    float const x = static_cast<float>(static_cast<double>(units[i]) * unit);
    to[indices[i]] = x;
    if (residual.empty()) continue;
    std::int64_t& residual_element = residual[indices[i]];
    residual_element = kernels::plus(residual_element, kernels::minus(units[i], kernels::whole_units(x, per_unit)));
  }
}

}  // namespace

TopKAllreduce::TopKAllreduce(Group const& group, std::uint64_t size, TopKOptions const& options) {
  GPUPS_REQUIRE(size < 0xFFFFFFFF,
                "a gradient of {} elements is too long for a TopKAllreduce (the most is {}): use one for each "
                "part",
                size, 0xFFFFFFFEU);
  GPUPS_REQUIRE(options.grid_log2 >= -200 && options.grid_log2 <= 200,
                "grid_log2 is {} (units of gradients are multiples of 2^grid_log2): use -200 to 200, such as -30",
                options.grid_log2);
  impl_.reset(new Impl{group, options.grid_log2, comm::form_of(options),
                       comm::top_k_algorithm(options.algorithm, group.size()),
                       std::make_shared<kernels::TopKFeedback>(size, feedback_options(options))});
}
TopKAllreduce::~TopKAllreduce() = default;
TopKAllreduce::TopKAllreduce(TopKAllreduce&&) noexcept = default;
TopKAllreduce& TopKAllreduce::operator=(TopKAllreduce&&) noexcept = default;

template <class T, class Step>
void TopKAllreduce::begin_of(Stream& stream, View<T const> gradient, char const* call, Step step) {
  auto& group = impl_->group.impl();
  auto& feedback = *impl_->feedback;
  std::string const full = std::string("TopKAllreduce::") + call;
  impl_->require_idle(call);
  std::size_t const size = feedback.residual().size();
  constexpr char const* kWhat = "elements of a gradient";
  Device const device = comm::device_of(stream, gradient, full.c_str(), kWhat);
  comm::wait_check_collective(group, {stream.device(), device}, size, kWhat, full.c_str());
  GPUPS_REQUIRE(gradient.size() == size,
                "{} was given {} elements of a gradient of {} (each gradient has its own object): give all of them",
                full, gradient.size(), size);
  std::size_t const k = feedback.k();
  kernels::TopKFeedback::SelectedUnits selected;
  if (stream.device().is_host()) {
    selected = step(stream, gradient);
  } else {
    Array<T> const there = wait_on_host(stream, gradient);
    Stream host(Device::host(), stream.threads());
    selected = step(host, View<T const>(there));
  }
  auto const sum = std::make_shared<comm::TopKSparseAllreduce>(
      comm::TopKSparseAllreduce::LocalElements{.size = size,
                                               .indices = std::move(selected.indices),
                                               .units = std::move(selected.units),
                                               .residual = feedback.residual(),
                                               .keep = impl_->feedback,
                                               .k = k},
      impl_->algorithm, impl_->form);
  impl_->place = comm::start_collective(group, stream, sum);
  impl_->sum = sum;
}

template <class T>
void TopKAllreduce::wait_for(Stream& stream, View<T> collectives) {
  auto& group = impl_->group.impl();
  constexpr char const* kCall = "TopKAllreduce::wait";
  GPUPS_REQUIRE(impl_->sum != nullptr, "{} was called, but no sum of the object is in flight: call begin first", kCall);
  std::size_t const size = impl_->feedback->residual().size();
  comm::check_devices(group, {stream.device(), comm::device_of(stream, collectives, kCall, "sums")}, kCall);
  GPUPS_REQUIRE(collectives.size() == size,
                "{} was given an array of {} elements for {} sums: give an array of that size", kCall,
                collectives.size(), size);
  comm::wait_result(group, stream, *impl_->sum);
  auto const sum = std::exchange(impl_->sum, nullptr);
  impl_->place.reset();
  bool const on_host = stream.device().is_host();
  Array<T> const there(Device::host(), on_host ? 0 : size);
  View<T> const to = on_host ? collectives : there.view();
  if (!to.empty()) std::memset(to.data(), 0, to.size() * sizeof(T));
  if constexpr (std::is_same_v<T, float>) {
    bool const keeps_residual = impl_->group.rank() == Rank{0};  // all ranks have the same rounding errors
    write_host(*sum, impl_->grid_log2, to, keeps_residual ? impl_->feedback->residual() : View<std::int64_t>{});
  } else {
    write_host(*sum, to);
  }
  if (on_host) return;
  copy<T>(stream, collectives, there);
  stream.wait();  // before `there` is freed
}

void TopKAllreduce::begin(Stream& stream, View<float const> gradient) {
  begin_of(stream, gradient, "begin", [this](Stream& host, auto there) { return impl_->feedback->step(host, there); });
}
void TopKAllreduce::begin(Stream& stream, View<std::int64_t const> gradient) {
  begin_of(stream, gradient, "begin", [this](Stream& host, auto there) { return impl_->feedback->step(host, there); });
}
std::optional<std::uint64_t> TopKAllreduce::begin_checked(Stream& stream, View<std::int64_t const> gradient) {
  std::optional<std::uint64_t> rejected;
  begin_of(stream, gradient, "begin_checked",
           [&](Stream& host, auto there) { return impl_->feedback->step(host, there, rejected); });
  return rejected;
}
void TopKAllreduce::wait(Stream& stream, View<float> collectives) { wait_for(stream, collectives); }
void TopKAllreduce::wait(Stream& stream, View<std::int64_t> collectives) { wait_for(stream, collectives); }

double TopKAllreduce::density() const { return impl_->feedback->density(); }
AllreduceAlgorithm const& TopKAllreduce::algorithm() const { return impl_->algorithm.info; }

View<std::int64_t const> TopKAllreduce::residual() const {
  impl_->require_idle("residual");
  return impl_->feedback->residual();
}

std::string TopKAllreduce::save() const {
  impl_->require_idle("save");
  return comm::to_bytes(*impl_->feedback);
}

// Gathers by sums in which all other ranks have zeros. Zeros take almost no bytes, and the bytes that packing saves are
// not counted, because these zeros would not be sent otherwise.
std::vector<std::string> TopKAllreduce::wait_save_all(Stream& stream) const {
  constexpr char const* kCall = "TopKAllreduce::wait_save_all";
  impl_->require_idle("wait_save_all");
  auto& group = impl_->group.impl();
  std::string const mine = save();  // of the same length on all ranks
  std::size_t const words = (mine.size() + sizeof(std::int64_t) - 1) / sizeof(std::int64_t);
  comm::wait_check_collective(group, {stream.device()}, words, "integers", kCall);
  std::vector<std::string> all(static_cast<std::size_t>(impl_->group.size()));
  for (std::size_t r = 0; r < all.size(); ++r) {
    std::vector<std::int64_t> host(words, 0);
    if (r == number(impl_->group.rank())) std::memcpy(host.data(), mine.data(), mine.size());
    auto const sum = std::make_shared<comm::IntegerAllreduce>(to_device(stream, host), false);
    auto const place = comm::start_collective(group, stream, sum);
    comm::wait_result(group, stream, *sum);
    if (number(impl_->group.rank()) != 0) continue;
    host = to_host(stream, sum->values());
    all[r].assign(reinterpret_cast<char const*>(host.data()), mine.size());
  }
  return all;
}

void TopKAllreduce::restore(std::span<std::string const> of_ranks) {
  impl_->require_idle("restore");
  comm::restore(*impl_->feedback, of_ranks, impl_->group.rank(), impl_->group.size());
}

}  // namespace gpups
