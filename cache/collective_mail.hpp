// SPDX-License-Identifier: Apache-2.0
// Carries the collectives of a group by the mail of its store.
#pragma once

#include <utility>

#include "cache/mail.hpp"
#include "comm/collective/carrier.hpp"

namespace gpups::cache {

class CollectiveMail final : public comm::CollectiveCarrier {
 public:
  explicit CollectiveMail(Mail& mail) : mail_(mail) {}

  void tell(Rank to, std::uint64_t run, std::string header, std::size_t inside) override {
    mail_.send(to, {.kind = MessageKind::kCollective, .id = run, .bytes = std::move(header)}, &Traffic::reductions,
               inside);
  }
  void send(Stream& stream, Rank to, Id id, View<std::uint8_t const> data, std::shared_ptr<void const> keep,
            std::function<void()> then) override {
    mail_.send_data(stream, to, tag_of_run(id.run, id.index), data.data(), data.bytes(), &Traffic::reductions,
                    std::move(keep), std::move(then));
  }
  void take(Stream& stream, Rank from, Id id, std::size_t bytes, comm::Payload::Where where,
            std::function<void()> then) override {
    mail_.take_data(stream, from, tag_of_run(id.run, id.index), bytes, std::move(where), std::move(then));
  }
  bool adds(Device device) const override { return mail_.adds(device); }
  void sum(Stream& stream, std::uint64_t run, View<float const> terms, View<float> sums,
           std::shared_ptr<void const> keep, std::function<void()> then) override {
    mail_.sum_data(stream, tag_of_run(run, 0), terms, sums, &Traffic::reductions, std::move(keep), std::move(then));
  }
  void count_coding(std::uint64_t plain, std::uint64_t sent) override {
    mail_.count_coding(&Traffic::reductions, plain, sent);
  }

 private:
  Mail& mail_;
};

}  // namespace gpups::cache
