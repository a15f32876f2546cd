// SPDX-License-Identifier: Apache-2.0
// The options of an embedding table: row width, initial values, row optimizer, and exchange between ranks.
//
//   TableId const users = store.add_table({.name = "users",
//                                          .dim = 64,
//                                          .initializer = {Initializer::Kind::kNormal, 0.01F},
//                                          .optimizer = {.kind = Optimizer::Kind::kAdam, .learning_rate = 1e-3F},
//                                          .expected_rows = 1'000'000});
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "gpups/compiler.hpp"
#include "gpups/types.hpp"

namespace gpups {

// The initial values of rows. Each is a function of the store's seed, the table's name, the key and the column, so it
// is equal on every rank, on every device and in every run.
struct Initializer {
  enum class Kind { kConstant, kUniform, kNormal };

  Kind kind = Kind::kUniform;
  float scale = 0.05F;  // kConstant: the value; kUniform: values in [-scale, scale); kNormal: standard deviation
};

// The row optimizer: how the gradient g of a step changes a row. g is the sum of the gradients of all ranks, divided by
// the number of samples of all ranks. `rate` is learning_rate times the factor of the schedule. Updates are lazy: a
// step updates the rows whose keys are in its batches, each once, and does not change other rows or their state.
// Sources: Adagrad (Duchi et al., JMLR 2011), row-wise Adagrad (FBGEMM's EXACT_ROWWISE_ADAGRAD), Adam (Kingma and Ba,
// ICLR 2015), LAMB (You et al., ICLR 2020), FTRL-proximal (McMahan et al., KDD 2013).
struct Optimizer {
  enum class Kind {
    kSgd,             // value -= rate * g
    kAdagrad,         // s += g * g, value -= rate * g / (sqrt(s) + epsilon), where 0 / 0 is 0; s: one float per column
    kRowwiseAdagrad,  // s += mean of g * g over the columns, then as kAdagrad; s: one float per row
    // Lazy Adam: m = beta1 * m + (1 - beta1) * g, v = beta2 * v + (1 - beta2) * g * g, both per column;
    // value -= rate * m' / (sqrt(v') + epsilon), with m' = m / (1 - beta1^t) and v' = v / (1 - beta2^t) in the row's
    // t-th update
    kAdam,
    // Row-wise LAMB: u = m' / (sqrt(v') + epsilon) + l2 * value, value -= rate * (|value| / |u|) * u, with Euclidean
    // norms over the row; the quotient is 1 if one of the norms is 0
    kLamb,
    // FTRL-proximal: z += g - (sqrt(n + g * g) - sqrt(n)) / rate * value, n += g * g, both per column; value = 0 where
    // |z| <= l1, else -(z - sign(z) * l1) / ((beta + sqrt(n)) / rate + l2). A step with rate 0 changes nothing. In
    // the first update of a row, and wherever z is 0, z starts at -value * (beta + sqrt(n)) / rate, with n before the
    // update. This z gives the current value if l1 and l2 are 0; else the update shrinks the value even if g is 0, to 0
    // where |z| <= l1.
    kFtrl,
  };

  Kind kind = Kind::kRowwiseAdagrad;
  float learning_rate = 0.1F;
  float epsilon = 1e-8F;
  float initial_accumulator = 0.0F;  // s (kAdagrad, kRowwiseAdagrad) or n (kFtrl) of a new row
  float l2 = 0.0F;         // l2 * value is added to g after clipping; kLamb and kFtrl use it as in their formulas
  float clip_norm = 0.0F;  // upper bound of the Euclidean norm of a row's gradient; 0: no clipping
  float beta1 = 0.9F, beta2 = 0.999F;  // kAdam, kLamb
  float l1 = 0.0F, beta = 1.0F;        // kFtrl
};

// The learning-rate schedule: a factor on Optimizer::learning_rate, as a function of the clock.
struct Schedule {
  enum class Kind { kConstant, kLinear, kCosine };

  Kind kind = Kind::kConstant;
  std::int64_t warmup_steps = 0;  // steps in which the factor rises linearly from 0 to 1
  std::int64_t total_steps = 0;   // kLinear, kCosine: the step at which the factor reaches `min_factor`
  float min_factor = 0.0F;        // kLinear, kCosine: the factor from total_steps on, 0 .. 1
};

// Returns the factor at step `clock`, in [0, 1].
GPUPS_EXPORT float learning_rate_factor(Schedule const& schedule, Clock clock);

// The data type of a table's values in memory. Store::pull() converts values to float. Gradients are integers on a grid
// and optimizer state is float, for every data type.
//
// 16-bit types use half the memory for values. An update computes in float and rounds the new value stochastically to
// one of its two neighbours, so that the expected value is exact and small updates are not lost. The random number is a
// function of seed, table, key, column and step, so the bits do not depend on the numbers of ranks and threads.
enum class DataType : std::uint8_t {
  kFloat,
  kHalf,      // IEEE binary16: 11 bits of precision, up to 65,504; a larger new value ends training with an Error
  kBFloat16,  // 8 bits of precision, the range of a float
};

// The number format of rows between ranks. kLossless is exact. kInt8 and kInt4 have one scale per row; consecutive rows
// of fewer than 32 columns share a scale, 64 numbers to each scale. kHalf sends magnitudes of at most 65,504; the
// remainder is added to the residual, like rounding errors. Numbers that are not finite are never sent: the step is
// rejected (GradientError) or training ends (Error).
enum class RowCodec : std::uint8_t { kLossless, kHalf, kBFloat16, kInt8, kInt4 };

// A filter that keeps small changes of rows at the sender, in a residual. A change is sent when its largest magnitude
// reaches the threshold of the step, or when it is `age_max` steps old. An old gradient is sent even if no batch of the
// step uses the row; an old value is sent at the reader's next use of the row. Columns that `top_k` left out are also
// sent at that age, exactly. The rounding error of a gradient's codec is added to the row's next gradient; the rounding
// error of a value ages like any other change. The threshold adapts to `density`, and is at most `threshold_max` /
// sqrt(t) in the t-th step that sends rows: of gradients, to any owner; of values, to the reader. Source: the dynamic
// value-bounded filter of Ratatouille (Sun, Wen et al.), with a maximal age.
struct RowFilter {
  std::uint32_t age_max = 0;    // steps; 0: no filter
  float density = 0.1F;         // requested share of rows that are sent in a step, 0 .. 1
  float threshold_max = 1e30F;  // in units of gradients of the summed loss, or of values; 0: every change is sent
};

// How rows of a table are compressed in one direction: codec, sparsification and filter. The sender keeps rounding
// errors of the codec, columns that top_k left out, and changes that the filter delays, in a residual, and adds it to
// the row's next change (error feedback), so nothing is lost. With a lossy codec, top_k or a filter, results depend on
// the number of ranks and on the owners of rows. A group of one rank sends no rows, so it compresses nothing.
//
//   RowCompression const int8{.codec = RowCodec::kInt8};
//   RowCompression const filtered{.filter = {.age_max = 20, .density = 0.1F}};
struct RowCompression {
  RowCodec codec = RowCodec::kLossless;
  std::size_t top_k = 0;  // for gradients only: send this number of columns per row, those of largest magnitude; 0: all
  RowFilter filter{};
  // Capacity, in rows for each other rank. For gradients: the rows with a residual, of all owners together, 8 bytes per
  // number at the sender; if there are more, the least recently used residuals are sent exactly. For refreshes: the
  // rows with a mirror, 4 bytes per number at sender and receiver; if there are more, the least recently used mirrors
  // are dropped. The rows of a step stay until the next step, even beyond this capacity. Memory is allocated as rows
  // are added.
  std::size_t capacity_rows = std::size_t{1} << 18;

  // Returns false if rows are sent completely, exactly and without delay.
  bool enabled() const { return codec != RowCodec::kLossless || top_k > 0 || filter.age_max > 0; }
};

// Options of a table, for Store::add_table(). All ranks must give equal options, because the wire format depends on
// them; only expected_rows may differ. If options differ, the first call that needs both ranks throws a PeerError with
// both ranks and both values. schedule.warmup_steps and schedule.total_steps must be equal too, but are not compared.
struct TableOptions {
  std::string name;     // unique in the store, UTF-8, 1 .. 1024 bytes; initial values and checkpoints depend on it
  std::size_t dim = 0;  // numbers per row, 1 .. 65,536
  Initializer initializer{};
  Optimizer optimizer{};
  Schedule schedule{};
  // The grid of gradients, -60 .. 30: gradients of the summed loss are added as 64-bit integers in units of
  // 2^grid_log2, and the owner divides the sum by the number of samples. With -30, a unit is about 1e-9 and sums may
  // have magnitudes up to 8e9; larger ones are errors.
  int grid_log2 = -30;
  std::size_t expected_rows = 0;  // over all ranks; the index is sized for them in advance
  // Admission: a row is created in the step of its admission_count-th occurrence, 1 .. 2^31 - 1. Occurrences are
  // entries of global batches, so one step may have several. Before that step, Store::pull() returns the initial value,
  // and gradients are dropped. A gradient that a codec or a filter delays belongs to the step in which it arrives,
  // possibly after admission.
  std::uint32_t admission_count = 1;
  DataType value_type = DataType::kFloat;
  // Compression of gradients, from the ranks that use a row to its owner.
  RowCompression gradient_compression{};
  // Compression of values, from the owner of a row to the ranks that read it. With a codec or a filter, owner and
  // reader keep equal mirrors of the row; the owner sends the change since the last refresh, and does not send
  // unchanged rows. With kLossless, filter.age_max = 1 and filter.threshold_max = 0, results have the same bits as
  // without a filter. Otherwise they depend on the number of ranks. If there are more mirrors than capacity_rows, they
  // also depend on the order in which owners answer late fetches (Stats::late_keys).
  RowCompression refresh_compression{};
  // Capacity of the key dictionaries, in keys. A key in a dictionary is sent as one to three bytes instead of eight.
  // For each other rank, a rank has one dictionary of sent keys and one of received keys; the dictionaries of all ranks
  // share the capacity evenly. Keys that were not used recently are dropped, so memory follows the number of keys that
  // return. Uses up to 30 bytes of host memory per key at both ends together, allocated as keys are added. If rows are
  // away from their homes, homes and owners have as many dictionaries again, of the keys of these rows. 0: no
  // dictionaries.
  std::size_t dictionary_keys = std::size_t{1} << 20;
};

}  // namespace gpups
