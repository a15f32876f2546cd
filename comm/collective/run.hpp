// SPDX-License-Identifier: Apache-2.0
// One run of a collective on this rank: its coroutine, and the mesh that it talks through. A run may hear of others
// before it has begun here.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "comm/collective/carrier.hpp"
#include "comm/collective/header.hpp"
#include "comm/collective/mesh.hpp"
#include "comm/collective/task.hpp"

namespace gpups::comm {

// Messages that a rank may be sent before it wants them, by one rank in one run.
inline constexpr std::size_t kUnwantedMax = 1024;

class Run final : public Mesh, public std::enable_shared_from_this<Run> {
 public:
  // `moved` is called whenever the coroutine may have come to its end.
  Run(Rank me, int ranks, Stream const& stream, CollectiveCarrier& carrier, std::uint64_t number,
      std::function<void(Run&)> moved);

  ~Run() override;  // waits for the work of a coroutine that is given up: it may be on the coroutine's memory

  // Takes another stream. REQUIRES: the run has not begun.
  void use(Stream const& stream);
  // `body` is kept until the run ends.
  void begin(Signature const& signature, std::function<Task<>(Mesh&)> body);
  void heard(Rank from, Header header);

  std::uint64_t number_of_run() const override { return number_; }
  bool begun() const { return signature_.has_value(); }
  // The other rank has said that it has begun the run.
  bool has_heard(Rank rank) const { return rank == me() || peers_[number(rank)].signature.has_value(); }
  Operation operation() const { return signature_->operation; }
  // The coroutine has returned, and all ranks are in the same run. Throws what it has thrown, and PeerError where a
  // rank has sent what nobody wants.
  bool over();
  // Ranks that it waits for. REQUIRES: begun().
  std::vector<Rank> awaited() const;

  // Goes on with what awaits work of the stream; true while there is any, since a GPU wakes nobody.
  bool progress();

  bool adds() const override { return carrier_.adds(work_.device()); }
  void count_coding(std::uint64_t plain, std::uint64_t sent) override;
  void count_whole_run(std::uint64_t plain) override { plain_of_run_ = plain; }
  [[noreturn]] void refuse(Rank peer, std::string const& what) const override;

 protected:
  Sending offer(Rank to, View<std::uint8_t const> bytes, std::shared_ptr<void const> keep, Size size) override;
  std::shared_ptr<Delivery> want(Rank from, std::size_t bytes_max, Device device) override;
  std::shared_ptr<Delivery> want_exactly(Rank from, View<std::uint8_t> to, std::shared_ptr<void const> keep) override;
  std::shared_ptr<Delivery> want_sum(View<float const> terms, View<float> sums,
                                     std::shared_ptr<void const> keep) override;
  std::shared_ptr<Delivery> await_stream() override;

 private:
  struct Want {
    std::uint64_t index = 0;
    std::shared_ptr<Delivery> delivery{};
    std::size_t bytes_max = 0;
    Device device{};
    std::optional<View<std::uint8_t>> to{};  // where the size is known
    std::shared_ptr<void const> keep{};
  };
  // Lists, since most are empty: a deque takes memory even then.
  struct Peer {
    bool told = false;                   // it has this rank's signature
    std::optional<Signature> signature;  // its
    std::uint64_t sent = 0, wanted = 0;  // messages so far
    std::list<Header::Item> unwanted;    // come, and not wanted yet
    std::uint64_t next = 0;              // least index that its next message may have
    std::list<Want> wants;               // not come, or the ranks have not agreed yet
    std::size_t arriving = 0;            // bulk data on its way
  };

  Peer& peer(Rank rank);
  template <class F>
  void each_other(F f) const;
  void agree(Rank rank);
  void add_up_if_agreed();
  void tell(Rank to, std::optional<Header::Item> item);
  void match(Rank from);
  bool match_one(Rank from, Peer& of);
  void take(Rank from, Want want, std::size_t bytes);
  void put(Want const& want, std::string const& bytes);
  Stream& stream_for(Device device) { return device.is_host() ? host_stream_ : stream(); }

  Stream work_;  // the mesh's
  CollectiveCarrier& carrier_;
  std::uint64_t const number_;
  std::function<void(Run&)> const moved_;
  Stream host_stream_;
  std::vector<Peer> peers_;       // by rank
  std::size_t unheard_;           // ranks whose signature has not come
  std::size_t agreed_ = 0;        // ranks whose signature is this one's
  std::function<void()> add_up_;  // begins the sum that the coroutine waits for, once all have agreed
  std::vector<std::pair<Event, std::shared_ptr<Delivery>>> awaited_work_;
  std::optional<std::uint64_t> plain_of_run_{};  // as count_whole_run() was told
  std::uint64_t sent_in_run_ = 0;                // bytes that are counted against it when the run is over
  std::optional<Signature> signature_;
  std::function<Task<>(Mesh&)> body_;
  Task<> task_;
  bool harvested_ = false;  // what the task threw has been thrown
};

}  // namespace gpups::comm
