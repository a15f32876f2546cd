// SPDX-License-Identifier: Apache-2.0
#include "serve.hpp"

#include <cmath>
#include <cstdio>
#include <sstream>

using namespace gpups;

namespace {

constexpr std::size_t kItemsPerRequest = 5;

std::vector<Key> keys_of(Request const& request, Table table) {
  std::vector<Key> keys;
  if (table == kUsers) keys.push_back(Key{request.visit.user});
  if (table == kContexts) keys.push_back(Key{request.visit.context});
  if (table == kItems) {
    for (std::uint64_t const item : request.items) keys.push_back(Key{item});
  }
  if (table == kLiked) {
    for (Liked const& liked : request.visit.history) keys.push_back(Key{liked.item});
  }
  return keys;
}

// With 9 digits, the text gives the same float when it is read.
std::string to_text(float number) {
  char text[32];
  std::snprintf(text, sizeof text, "%.9g", static_cast<double>(number));
  return text;
}

// Reads ITEM:WEIGHT,ITEM:WEIGHT,... Returns false for other text.
bool parse_history(std::string const& text, std::vector<Liked>& history) {
  std::istringstream list(text);
  for (std::string one; std::getline(list, one, ',');) {
    std::istringstream parts(one);
    Liked liked{};
    char colon = 0;
    if (!(parts >> liked.item >> colon >> liked.weight) || colon != ':' || parts.peek() != EOF) return false;
    history.push_back(liked);
  }
  return !history.empty();
}

}  // namespace

Request make_request(std::int64_t step, std::size_t number) {
  Request request{make_impression(step, number).visit, {}};
  for (std::size_t i = 0; i < kItemsPerRequest; ++i) {
    request.items.push_back(make_item(step, number * kItemsPerRequest + i));
  }
  return request;
}

Scoring::Scoring(Store& store, Stream& stream, Request const& request) : items_(request.items.size()) {
  auto const count = static_cast<float>(request.visit.history.size());
  for (Liked const& liked : request.visit.history) weights_.push_back(liked.weight / count);
  for (Table const table : kAllTables) {
    std::vector<Key> const keys = keys_of(request, table);
    rows_[table] = Matrix<float>(Device::host(), keys.size(), kDims[table]);
    lookups_[table] = store.begin_lookup(stream, TableId{table}, keys, rows_[table], {});
  }
}

std::vector<float> Scoring::wait(Store& store, Stream& stream, Model const& model) {
  for (LookupRequest const& lookup : lookups_) store.wait_lookup(stream, lookup);
  float liked[kDim] = {};
  for (std::size_t i = 0; i < weights_.size(); ++i) {
    for (std::size_t j = 0; j < kDim; ++j) liked[j] += weights_[i] * rows_[kLiked].row(i)[j];
  }
  std::vector<float> probabilities;
  for (std::size_t i = 0; i < items_; ++i) {
    float const logit = model.score({.habit = rows_[kUsers].row(0).data(),
                                     .item = rows_[kItems].row(i).data(),
                                     .liked = liked,
                                     .context = rows_[kContexts].row(0).data()});
    probabilities.push_back(1 / (1 + std::exp(-logit)));
  }
  return probabilities;
}

std::string to_text(Request const& request) {
  std::ostringstream text;
  text << request.visit.user << ' ' << request.visit.context << ' ';
  for (std::size_t i = 0; Liked const& liked : request.visit.history) {
    text << (i++ == 0 ? "" : ",") << liked.item << ':' << to_text(liked.weight);
  }
  for (std::uint64_t const item : request.items) text << ' ' << item;
  return text.str();
}

Request parse_request(std::string const& line) {
  Request request;
  std::istringstream text(line);
  std::string history;
  text >> request.visit.user >> request.visit.context >> history;
  bool const good = text && parse_history(history, request.visit.history);
  for (std::uint64_t item; good && text >> item;) request.items.push_back(item);
  if (!good || !text.eof() || request.items.empty()) {
    throw Error("'" + line + "' is not a request: write USER CONTEXT ITEM:WEIGHT,.. ITEM ..");
  }
  return request;
}

std::string wait_answer(Store& store, Stream& stream, Model const& model, Request const& request) {
  std::vector<float> const probabilities = Scoring(store, stream, request).wait(store, stream, model);
  std::string answer = "user " + std::to_string(request.visit.user) + ":";
  for (std::size_t i = 0; i < probabilities.size(); ++i) {
    answer += " " + std::to_string(request.items[i]) + "=" + to_text(probabilities[i]);
  }
  return answer;
}
