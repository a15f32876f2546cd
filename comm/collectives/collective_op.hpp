// SPDX-License-Identifier: Apache-2.0
// One run of a collective on this rank: its coroutine, and the communicator that it talks through. A run may hear of
// others before it has begun here.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "comm/collectives/co_task.hpp"
#include "comm/collectives/collective_header.hpp"
#include "comm/collectives/collective_transport.hpp"
#include "comm/collectives/communicator.hpp"

namespace gpups::comm {

// Messages that a rank may be sent before it wants them, by one rank in one run.
inline constexpr std::size_t kUnexpectedMax = 1024;

class CollectiveOp final : public Communicator, public std::enable_shared_from_this<CollectiveOp> {
 public:
  // `on_progress` is called whenever the coroutine may have come to its end.
  CollectiveOp(Rank me, int ranks, Stream const& stream, CollectiveTransport& carrier, std::uint64_t number,
               std::function<void(CollectiveOp&)> on_progress);

  ~CollectiveOp() override;  // waits for the work of a coroutine that is given up: it may be on the coroutine's memory

  // Takes another stream. REQUIRES: the run has not begun.
  void use(Stream const& stream);
  // `body` is kept until the run ends.
  void begin(Signature const& signature, std::function<CoTask<>(Communicator&)> body);
  void on_header(Rank from, CollectiveHeader header);

  std::uint64_t sequence_number() const override { return number_; }
  bool started() const { return signature_.has_value(); }
  // The other rank has said that it has begun the run.
  bool has_heard(Rank rank) const { return rank == me() || peers_[number(rank)].signature.has_value(); }
  CollectiveKind operation() const { return signature_->operation; }
  // The coroutine has returned, and all ranks are in the same run. Throws what it has thrown, and PeerError where a
  // rank has sent what nobody wants.
  bool finished();
  // Ranks that it waits for. REQUIRES: begun().
  std::vector<Rank> pending_peers() const;

  // Goes on with what awaits work of the stream; true while there is any, since a GPU wakes nobody.
  bool progress();

  bool can_allreduce() const override { return carrier_.can_allreduce(work_stream_.device()); }
  void count_compression(std::uint64_t uncompressed_bytes, std::uint64_t sent) override;
  void set_uncompressed_bytes(std::uint64_t uncompressed_bytes) override { uncompressed_bytes_ = uncompressed_bytes; }
  [[noreturn]] void throw_peer_error(Rank peer, std::string const& what) const override;

 protected:
  SendRequest post_send(Rank to, View<std::uint8_t const> bytes, std::shared_ptr<void const> keep,
                        SizeMode size) override;
  std::shared_ptr<Completion> post_receive(Rank from, std::size_t bytes_max, Device device) override;
  std::shared_ptr<Completion> post_receive_fixed(Rank from, View<std::uint8_t> to,
                                                 std::shared_ptr<void const> keep) override;
  std::shared_ptr<Completion> post_allreduce(View<float const> terms, View<float> sums,
                                             std::shared_ptr<void const> keep) override;
  std::shared_ptr<Completion> stream_completion() override;

 private:
  struct PendingReceive {
    std::uint64_t index = 0;
    std::shared_ptr<Completion> completion{};
    std::size_t bytes_max = 0;
    Device device{};
    std::optional<View<std::uint8_t>> to{};  // where the size is known
    std::shared_ptr<void const> keep{};
  };
  // Lists, since most are empty: a deque takes memory even then.
  struct PeerQueues {
    bool header_sent = false;                             // it has this rank's signature
    std::optional<Signature> signature;                   // its
    std::uint64_t sent = 0, posted_count = 0;             // messages so far
    std::list<CollectiveHeader::MessagePart> unexpected;  // come, and not wanted yet
    std::uint64_t next = 0;                               // least index that its next message may have
    std::list<PendingReceive> posted;                     // not come, or the ranks have not agreed yet
    std::size_t arriving = 0;                             // bulk data on its way
  };

  PeerQueues& peer(Rank rank);
  template <class F>
  void each_other(F f) const;
  void check_signature(Rank rank);
  void start_allreduce_if_matching();
  void send_header(Rank to, std::optional<CollectiveHeader::MessagePart> message);
  void match(Rank from);
  bool match_next(Rank from, PeerQueues& of);
  void receive_bulk(Rank from, PendingReceive post_receive, std::size_t bytes);
  void deliver_inline(PendingReceive const& post_receive, std::string const& bytes);
  Stream& stream_for(Device device) { return device.is_host() ? host_stream_ : stream(); }

  Stream work_stream_;  // the communicator's
  CollectiveTransport& carrier_;
  std::uint64_t const number_;
  std::function<void(CollectiveOp&)> const on_progress_;
  Stream host_stream_;
  std::vector<PeerQueues> peers_;   // by rank
  std::size_t missing_signatures_;  // ranks whose signature has not come
  std::size_t matching_ranks_ = 0;  // ranks whose signature is this one's
  std::function<void()> add_up_;    // begins the sum that the coroutine waits for, once all have agreed
  std::vector<std::pair<Event, std::shared_ptr<Completion>>> stream_completions_;
  std::optional<std::uint64_t> uncompressed_bytes_{};  // as set_uncompressed_bytes() was told
  std::uint64_t sent_in_run_ = 0;                      // bytes that are counted against it when the run is over
  std::optional<Signature> signature_;
  std::function<CoTask<>(Communicator&)> body_;
  CoTask<> task_;
  bool result_taken_ = false;  // what the task threw has been thrown
};

}  // namespace gpups::comm
