// SPDX-License-Identifier: Apache-2.0
// A script chooses the actions of a store and of its only peer. For all actions of the peer, each call of the store
// succeeds or throws gpups::Error, and its memory is bounded by the bytes that the peer sends.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <map>
#include <memory>
#include <optional>

#include "gpups/error.hpp"
#include "gpups/store.hpp"
#include "tests/fuzz/scripted_peer.hpp"

namespace gpups::fuzz {
namespace {

constexpr std::uint8_t kStoreActions = 16;
// The memory of an idle store, and for each byte of the peer: a key of 8 bytes gets a row of 32 floats, and its
// gradient 32 numbers of 8 bytes, all in rounded memory blocks.
constexpr std::size_t kBytesBase = std::size_t{64} << 20, kBytesEach = 256;

class Scenario {
 public:
  explicit Scenario(Script& script)
      : script_(script),
        group_(wires_.group()),
        peer_(wires_, script),
        store_(std::in_place, group_, StoreOptions{.threads = 1}) {
    for (std::size_t t = 0; t < std::size(kDims); ++t) {
      store_->add_table(options_of(TableId{static_cast<std::uint32_t>(t)}));
    }
    stream_.emplace(store_->make_stream());
    wires_.on_idle = [this] { return peer_acts_alone(); };
  }

  void play() {
    while (!script_.over()) {
      auto const action = script_.byte() % (ScriptedPeer::kActions + kStoreActions);
      attempt([&] { action < ScriptedPeer::kActions ? peer_.act(action) : act(action - ScriptedPeer::kActions); });
    }
    wires_.on_idle = [] { return false; };
  }
  std::size_t bytes_sent() const { return wires_.bytes_sent(); }

 private:
  // Calls `call`, which may throw Error. Returns whether it succeeded.
  template <class Call>
  static bool attempt(Call const& call) {
    try {
      call();
      return true;
    } catch (Error const&) {
      return false;
    }
  }

  // Lets the peer act while the store waits. The wait ends when the next action of the script is one of the store.
  bool peer_acts_alone() {
    bool did = false;
    attempt([&] { did = peer_.cooperates() && peer_.cooperate(); });
    if (did) return true;
    if (script_.over() || script_.peek() % (ScriptedPeer::kActions + kStoreActions) >= ScriptedPeer::kActions) {
      return false;
    }
    attempt([&] { peer_.act(script_.byte() % (ScriptedPeer::kActions + kStoreActions)); });
    return true;
  }

  Array<Key> keys() {
    std::vector<Key> keys(script_.byte() % 8);
    for (auto& key : keys) key = Key{script_.byte()};
    return to_device(*stream_, keys);
  }
  TableId table() { return TableId{static_cast<std::uint32_t>(script_.byte() % std::size(kDims))}; }
  Matrix<float> matrix(std::size_t rows, TableId table) {
    Matrix<float> values(Device::host(), rows, kDims[number(table)]);
    memory::fill_bytes(*stream_, values.view().data(), script_.rarely(8) ? 0xFF : 0, values.view().flat().bytes());
    return values;
  }

  void prepare() {
    auto const clock = store_->clock() + script_.byte() % 4;
    auto const first = keys(), second = keys();
    TableBatch const parts[] = {{table(), View<Key const>(first)}, {table(), View<Key const>(second)}};
    auto const count = std::size_t{1} + script_.byte() % 2;
    batches_[clock] = store_->prepare(*stream_, clock, std::span(parts, count), 4);
  }
  void pull_and_push() {
    auto& batch = batches_.at(store_->clock());
    std::vector<Matrix<float>> rows, sources;
    std::vector<MatrixView<float>> views;
    std::vector<TableGradients> gradients;
    for (std::size_t p = 0; p < batch.parts(); ++p) {
      views.push_back(rows.emplace_back(matrix(batch.rows(p), batch.table(p))));
      sources.push_back(matrix(batch.entries(p), batch.table(p)));
      gradients.push_back({.sources = sources.back()});
    }
    attempt([&] { store_->pull(*stream_, batch, views); });
    stream_->wait();
    store_->push(*stream_, batch, gradients);
    stream_->wait();
  }
  bool has_batch() const { return batches_.contains(store_->clock()); }
  void end_step() {
    store_->advance_clock(script_.byte());
    std::erase_if(batches_, [&](auto const& entry) { return entry.first < store_->clock(); });
  }

  void begin_allreduce() {
    std::size_t const size = script_.byte() % 8;
    std::vector<std::int64_t> const words(size == 7 ? 1400 : size, 1);  // or more than are sent eagerly
    Sum sum{to_device(*stream_, words), {}};
    sum.request = group_.begin_allreduce(*stream_, sum.values);
    sums_.push_back(std::move(sum));
  }
  void wait_allreduce() {
    auto const sum = std::move(sums_.front());
    sums_.pop_front();
    group_.wait_allreduce(*stream_, sum.request);
  }
  void erase_expire_or_count() {
    switch (script_.byte() % 3) {
      case 0: {
        auto const requested = keys();
        return store_->erase(*stream_, table(), requested);
      }
      case 1:
        store_->expire(table(), script_.byte() % 4);
        return;
      default:
        store_->size(table());
        return;
    }
  }

  void act(std::uint8_t action) {
    switch (action) {
      case 0:
      case 1:
        return prepare();
      case 2:
        return begin_allreduce();
      case 3:
        if (has_batch()) store_->wait_ready(batches_[store_->clock()]);
        return;
      case 4:
        if (has_batch()) pull_and_push();
        return;
      case 5:
        return end_step();
      case 8:
        if (!sums_.empty()) return wait_allreduce();
        [[fallthrough]];
      case 6:
      case 7:  // a whole step
        if (has_batch()) {
          store_->wait_ready(batches_[store_->clock()]);
          pull_and_push();
        }
        return end_step();
      case 9:
        return store_->wait_applied();
      case 10: {
        auto const requested = keys();
        auto const of = table();
        auto const values = matrix(requested.size(), of);
        return store_->lookup(*stream_, of, requested, values, {});
      }
      case 11: {
        auto const set = keys();
        auto const of = table();
        return store_->assign(*stream_, of, set, matrix(set.size(), of));
      }
      case 12:
        store_->wait_allgather(script_.text(16));
        return;
      case 13:
        return erase_expire_or_count();
      case 14:
        store_->table_hash();
        return;
      default:
        return store_->scan(*stream_, table(), [](auto, auto) {});
    }
  }

  Script& script_;
  test::RawPeer wires_;
  Group group_;  // the store's
  ScriptedPeer peer_;
  std::optional<Store> store_;
  std::optional<Stream> stream_;
  std::map<Clock, PreparedBatch> batches_;
  struct Sum {
    Array<std::int64_t> values;
    CollectiveRequest request;
  };
  std::deque<Sum> sums_;
};

}  // namespace
}  // namespace gpups::fuzz

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  using namespace gpups;
  fuzz::Script script(data, size);
  std::size_t sent = 0;
  {
    fuzz::Scenario scenario(script);
    scenario.play();
    sent = scenario.bytes_sent();
  }
  // The peak is that of all runs so far, so only a run that raises it has taken too much.
  static std::size_t known = 0;
  std::size_t const peak = memory::usage(Device::host()).bytes_peak;
  if (peak > known && peak > fuzz::kBytesBase + sent * fuzz::kBytesEach) {
    std::fprintf(stderr, "%zu bytes were taken for %zu that the peer sent\n", peak, sent);
    std::abort();
  }
  known = peak;
  return 0;
}
