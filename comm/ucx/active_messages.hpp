// SPDX-License-Identifier: Apache-2.0
// Active messages of one rank: its transport and bulk transport send with them and handle those that arrive. Over a
// network this is a UcxWorker.
//
// A peer may send anything at any time. Handlers therefore bound the memory that they use for a peer, and trust nothing
// in a message but its sender.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>

#include "gpups/device.hpp"
#include "gpups/types.hpp"

namespace gpups::comm {

// Larger messages and transfers use the rendezvous protocol.
inline constexpr std::size_t kEagerBytesMax = std::size_t{64} << 10;

// The kinds of active messages, and the meaning of the fields `number` and `bytes` of their headers.
enum class AmKind : std::uint32_t {
  kMessage,               // a message of the transport; number counts them
  kCredit,                // credit: `number` messages with `bytes` bytes in total have been received
  kCreditRequest,         // the sender is out of credit: return credits now
  kEnd,                   // the sender has left because of rank `number`; the body is the reason
  kData,                  // a transfer with tag `number`; bytes: 1 for the eager protocol, 0 for rendezvous
  kBulkRejected,          // the transfer with tag `number` has another size at the receiver; the body is the error
  kBulkWithdrawn,         // the sender ends before its transfer with tag `number` was received
  kBulkCredit,            // credit: `number` eager transfers with `bytes` bytes in total have been received
  kBulkOffer,             // announces a transfer with tag `number` of `bytes` bytes, perhaps in device memory
  kFabricOffer,           // the same, and the sender has a device fabric
  kBulkRequest,           // requests the announced transfer with tag `number`; bytes: 1 for one message, 0 for pieces
  kBulkPiece,             // a piece of the transfer with tag `number`, at offset `bytes`
  kFabricReady,           // to rank 0: the transfer with tag `number` from rank `bytes` is ready
  kFabricAllreduceReady,  // to rank 0: the allreduce with tag `number` of `bytes` elements is ready
  kFabricBatch,           // from rank 0: batch `number`; the body is the operations of the receiver
};
inline constexpr std::size_t kAmKinds = 15;

// How data are sent: with the message, or when the receiver fetches them. UCX may use rendezvous for eager messages,
// too. kDeviceRendezvous: rendezvous from memory that the host cannot read, so that the data have no checksum.
enum class AmProtocol { kEager, kRendezvous, kDeviceRendezvous };

// The header of every message.
struct AmHeader {
  Rank from;
  AmKind kind;
  std::uint64_t number;
  std::uint64_t bytes;
};

// An arrived message. The bytes are at `data` until the handler returns, or still at the sender (remote): then `data`
// is a handle of UCX, and the receiver must fetch() or drop() them.
struct AmArrival {
  void* data;
  std::size_t bytes;
  bool remote;
  AmHeader header{};
  std::optional<std::uint64_t> checksum{};  // of the bytes, if the sender computed one
};

// Sends active messages and calls a handler for each that arrives. Thread-safe.
class ActiveMessages {
 public:
  virtual ~ActiveMessages() = default;

  virtual Rank rank() const = 0;
  virtual int size() const = 0;

  // Sets the handler of a kind. Handlers are called with the lock held and must not call progress(). The header is
  // authenticated and its kind is known; the bytes are intact, those of a remote message once they are fetched.
  using Handler = std::function<void(AmHeader const& header, AmArrival const& arrival)>;
  virtual void handle(AmKind kind, Handler handler) = 0;

  // Sends `bytes` bytes at `data`, which must not change until `sent` is called, by this function or by progress().
  // `sent` is not called if the connection has failed.
  virtual void send(AmProtocol protocol, Rank to, AmKind kind, std::uint64_t number, std::uint64_t count,
                    void const* data, std::size_t bytes, std::function<void()> sent) = 0;
  // The same for a body that is kept alive here; with more than kEagerBytesMax bytes it uses rendezvous.
  virtual void send(Rank to, AmKind kind, std::uint64_t number, std::uint64_t count, std::string body) = 0;
  // Returns whether data can be sent from, and fetched to, the memory of the device.
  virtual bool reaches(Device device) const = 0;
  // Fetches the bytes of a remote message to `to`. `fetched` is called, by this function or by progress(), when they
  // have arrived intact.
  virtual void fetch(AmArrival const& arrival, void* to, std::function<void()> fetched) = 0;
  // Gives up the bytes of a remote message.
  virtual void drop(AmArrival const& arrival) = 0;

  // Sets a function that is called, perhaps often, when the connection to a peer or an operation on it fails; `what` is
  // the error of UCX. A peer on the same machine may be lost without a call.
  virtual void on_broken(std::function<void(Rank peer, std::string const& what)> broken) = 0;

  // Adds or, with a null function, removes a listener. It is called when a message from a peer is corrupted or of
  // another protocol version. The message is dropped, and a fetch of it never ends.
  using OnPeerError = std::function<void(Rank peer, std::string const& what)>;
  virtual void on_peer_error(void const* listener, OnPeerError wrong) = 0;

  // Sends, receives and completes what is possible without blocking; returns whether anything was done.
  virtual bool progress() = 0;
  // Skips the orderly end of connections in the destructor.
  virtual void abandon() = 0;

  virtual std::recursive_mutex& mutex() = 0;
};

}  // namespace gpups::comm
