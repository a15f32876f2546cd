// SPDX-License-Identifier: Apache-2.0
// Serving with look-ups: computes how likely a visitor clicks on each of some items.
//
// The same code serves from a checkpoint and during training. In training, the training thread starts the look-ups at
// the beginning of a step, and waits for the rows at its end.
#pragma once

#include <string>
#include <vector>

#include "clicks.hpp"
#include "gpups/gpups.hpp"
#include "model.hpp"

// A visit, and the items that may be shown.
struct Request {
  Visit visit;
  std::vector<std::uint64_t> items;
};

// Returns a synthetic request with a visit of the stream. REQUIRES: number < kBatch.
Request make_request(std::int64_t step, std::size_t number);

// A request whose look-ups are in flight.
class Scoring {
 public:
  // Starts the look-ups of all rows, local and remote.
  Scoring(gpups::Store& store, gpups::Stream& stream, Request const& request);
  // Waits for the rows, and returns the probability of a click for each item. REQUIRES: Store::advance_clock() was not
  // called since the constructor.
  std::vector<float> wait(gpups::Store& store, gpups::Stream& stream, Model const& model);

 private:
  std::vector<float> weights_;  // (history)
  std::size_t items_;
  gpups::Matrix<float> rows_[kTables];  // of the user, the items, the history and the context
  gpups::LookupRequest lookups_[kTables];
};

// Returns a request as a line of text: USER CONTEXT ITEM:WEIGHT,ITEM:WEIGHT,.. ITEM ITEM ..
std::string to_text(Request const& request);
// Reads a request from a line of text. Throws gpups::Error if the text is not a request.
Request parse_request(std::string const& line);

// Returns the answer as a line of text: the user, then ITEM=PROBABILITY for each item.
std::string wait_answer(gpups::Store& store, gpups::Stream& stream, Model const& model, Request const& request);
