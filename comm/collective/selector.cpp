// SPDX-License-Identifier: Apache-2.0
#include "comm/collective/selector.hpp"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "comm/collective/gather_number.hpp"
#include "comm/collective/measure_links.hpp"
#include "comm/collective/others.hpp"
#include "comm/host_name.hpp"

namespace gpups::comm {
namespace {

// A choice that is sure holds for as many sums as take this long together: what tells of it goes ahead of a sum's data,
// and costs a sum of some milliseconds over TCP a fifth of its time.
constexpr double kHeld_s = 0.1;
// A byte says a way's number, and above it the logarithm of the sums that the choice holds for.
constexpr unsigned kHeldLog2Max = 6;

unsigned held_log2(Estimate const& best) {
  if (!best.settled || best.is_compared) return 0;
  double const sums = std::clamp(kHeld_s / best.measured_s, 1.0, std::ldexp(1, kHeldLog2Max));
  return static_cast<unsigned>(std::log2(sums));
}

constexpr double kNewGiven = 0.125;  // weight of the last guess in the mean

double now_s() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

// Tells this rank's end of its links from that of others: its machine, how many threads add up, and how UCX is told to
// go.
std::uint64_t place_of_rank(Mesh const& mesh) {
  std::string text =
      fmt::format("{} {} {} threads", host_name(), to_string(mesh.stream().device()), mesh.stream().threads());
  for (char const* name : {"UCX_TLS", "UCX_NET_DEVICES"}) {
    char const* const value = std::getenv(name);
    text += fmt::format(" {}={}", name, value == nullptr ? "" : value);
  }
  return XXH3_64bits(text.data(), text.size());
}

std::string key_of(std::vector<std::uint64_t> const& places) {
  std::string key = "ranks at";
  for (std::uint64_t const place : places) key += fmt::format(" {:016x}", place);
  return key;
}

// One byte from rank 0 to all, which all return.
Task<std::uint8_t> tell_byte(Mesh& mesh, std::uint8_t byte) {
  if (mesh.me() == Rank{0}) {
    for (Rank const q : others(mesh)) {
      Bytes bytes(Device::host(), 1);
      *bytes.data() = byte;
      mesh.send(q, std::move(bytes));
    }
    co_return byte;
  }
  Bytes const bytes = co_await mesh.receive(Rank{0}, 1, Device::host());
  if (bytes.size() != 1) mesh.refuse(Rank{0}, "sent nothing where it should say what to do");
  co_return *bytes.data();
}

}  // namespace

std::vector<std::string> Selector::explain() const {
  std::vector<std::string> lines;
  if (!reckoning_) return lines;
  lines.push_back(links_);
  for (auto& line : reckoning_->explain()) lines.push_back(std::move(line));
  return lines;
}

// All ranks take part: in the first sum that is chosen for.
Task<> Selector::learn_links(Mesh& mesh) {
  auto const places = co_await gather_number(mesh, place_of_rank(mesh));
  std::string const key = key_of(places);
  std::optional<LinkModel> model;
  if (mesh.me() == Rank{0}) model = cache_.find(key);
  bool const known = co_await tell_byte(mesh, model ? 1 : 0) != 0;
  double const start = now_s();
  if (!known) model = co_await measure_links(mesh);
  if (mesh.me() != Rank{0}) co_return;
  if (known) {
    links_ = fmt::format("links: {} (from {})", describe(*model), cache_.file_of(key).string());
  } else {
    links_ = fmt::format("links: {} (measured in {:.0f} ms)", describe(*model), (now_s() - start) * 1e3);
    cache_.put(key, *model);
  }
  reckoning_.emplace(*model);
}

// Until rank 0 can reckon.
Task<> Selector::reckon(Mesh& mesh, bool first) {
  if (assumed_) {
    if (!reckoning_) reckoning_.emplace(*assumed_);
    links_ = fmt::format("links: {} (assumed)", describe(*assumed_));
  } else if (first) {
    co_await learn_links(mesh);
    for (auto const& waiting : std::exchange(reckoners_, {})) waiting->end();
  } else if (mesh.me() == Rank{0} && !reckoning_) {
    reckoners_.push_back(std::make_shared<Delivery>());
    co_await Sending(reckoners_.back());
  }
}

SumShape Selection::with_mean(Selector::Line& line, SumShape shape) {
  auto const given = static_cast<double>(shape.given_most);
  line.given = line.begun == 1 ? given : (1 - kNewGiven) * line.given + kNewGiven * given;
  shape.given_most = static_cast<std::uint64_t>(std::llround(line.given));
  return shape;
}

Selection::Selection(Selector& selector, Mesh& mesh, SumShape const& mine)
    : selector_(selector),
      mesh_(mesh),
      first_(!std::exchange(selector.begun_, true)),
      line_(selector.lines_[{mine.elements, mine.sparse, mine.format}]),
      sum_(line_.begun++),
      shape_(mine.sparse ? mine : with_mean(line_, mine)),
      news_(news()) {
  line_.places[sum_];
}

// For the sums up to the next news, and for this one if it is the first.
void Selection::set(Way const* way, unsigned held_log2) {
  line_.held = std::uint64_t{1} << held_log2;
  std::uint64_t const last = sum_ + line_.held;
  line_.next_news = last;
  for (std::uint64_t sum = sum_ == 0 ? 0 : sum_ + 1; sum <= last; ++sum) {
    auto& place = line_.places[sum];
    place.way = way;
    if (auto const waiting = std::exchange(place.waiting, nullptr)) waiting->end();
  }
}

Task<> Selection::news() {
  bool const reckons = mesh_.me() == Rank{0};
  if (sum_ > 0 && !selector_.assumed_) {
    auto times = reckons ? hear_times() : tell_time();
    times.start();  // what is sent first is received first, and nobody waits for it before the end
    auto choice = reckons ? tell() : hear();
    co_await choice;
    co_await times;
  } else {
    auto choice = reckons ? tell() : hear();
    co_await choice;
  }
}

// How long the sum before this one took here; 0 if it is not over.
Task<> Selection::tell_time() {
  bool const over = line_.ended && line_.ended->number + 1 == sum_;
  double const seconds = over ? line_.ended->seconds : 0;
  Bytes bytes(Device::host(), sizeof seconds);
  std::memcpy(bytes.data(), &seconds, sizeof seconds);
  mesh_.send(Rank{0}, std::move(bytes));
  co_return;
}

Task<> Selection::hear_times() {
  bool known = line_.ended && line_.ended->number + 1 == sum_;
  EndedSum before = line_.ended.value_or(EndedSum{});
  std::vector<Receiving> coming;
  for (Rank const q : others(mesh_)) coming.push_back(mesh_.receive(q, sizeof before.seconds, Device::host()));
  for (auto& one : coming) {
    Bytes const bytes = co_await one;
    double seconds = 0;
    if (bytes.size() == sizeof seconds) std::memcpy(&seconds, bytes.data(), sizeof seconds);
    known &= seconds > 0;
    before.seconds = std::max(before.seconds, seconds);
  }
  if (!known) co_return;
  before.stands_for = stands_for_;
  selector_.reckoning_->learn(before);
}

// Rank 0: what this sum takes, if it is the first of its size, and what the next one will.
Task<> Selection::tell() {
  co_await selector_.reckon(mesh_, first_);
  auto const best = selector_.reckoning_->next(shape_);
  auto const number = static_cast<unsigned>(best.way - ways().data());
  unsigned const held = held_log2(best);
  set(best.way, held);
  co_await tell_byte(mesh_, static_cast<std::uint8_t>(held << kWayBits | number));
}

Task<> Selection::hear() {
  if (first_) co_await selector_.reckon(mesh_, true);
  std::uint8_t const byte = co_await tell_byte(mesh_, 0);
  unsigned const said = byte % kWaysMax, held = byte >> kWayBits;
  auto const known = ways();
  bool const can = said < known.size() && known[said].serves(shape_) && held <= kHeldLog2Max;
  if (!can) mesh_.refuse(Rank{0}, "chose a way to sum that there is not");
  set(&known[said], held);
}

Task<Way const*> Selection::way() {
  auto& place = line_.places[sum_];
  if (sum_ > 0 && place.way == nullptr) {
    place.waiting = std::make_shared<Delivery>();
    co_await Sending(place.waiting);
  }
  has_news_ = line_.next_news == sum_;
  stands_for_ = line_.held;
  if (has_news_) news_.start();
  if (sum_ == 0) co_await news_;
  way_ = place.way;
  line_.places.erase(sum_);
  began_ = now_s();
  co_return way_;
}

Task<> Selection::end(std::optional<std::uint64_t> entries) {
  line_.ended = {sum_, shape_, way_, now_s() - began_, entries};
  if (has_news_ && sum_ > 0) co_await news_;
}

}  // namespace gpups::comm
