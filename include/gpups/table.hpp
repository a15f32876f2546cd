// SPDX-License-Identifier: Apache-2.0
// The options of an embedding table: row width, initial values, row optimizer, and how rows are exchanged.
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

#include "gpups/types.hpp"

namespace gpups {

// The initial value of a row. It is a function of the store's seed, the table's name, the key and the column, so it is
// the same on every rank, on every device and in every run.
struct Initializer {
  enum class Kind { kConstant, kUniform, kNormal };

  Kind kind = Kind::kUniform;
  float scale = 0.05F;  // kConstant: the value; kUniform: in [-scale, scale); kNormal: standard deviation
};

// The row optimizer: how the gradient g of a step, summed over all ranks, changes a row. Updates are lazy: a step
// updates the rows whose keys are in its batches, each once, and leaves all other rows and their state unchanged.
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
    // Row-wise LAMB: u = m' / (sqrt(v') + epsilon) + l2 * value, value -= rate * (|value| / |u|) * u, with the
    // Euclidean norms of the row; the quotient is 1 if one of them is 0
    kLamb,
    // FTRL-proximal: z += g - (sqrt(n + g * g) - sqrt(n)) / rate * value, n += g * g, both per column; value = 0 where
    // |z| <= l1, else -(z - sign(z) * l1) / ((beta + sqrt(n)) / rate + l2). A step with rate 0 changes nothing. Before
    // a row's first update z is set to the number from which the row's current value follows.
    kFtrl,
  };

  Kind kind = Kind::kRowwiseAdagrad;
  float learning_rate = 0.1F;
  float epsilon = 1e-8F;
  float initial_accumulator = 0.0F;  // s or n of a new row
  float l2 = 0.0F;         // l2 * value is added to g after clipping; kLamb and kFtrl use it as in their formulas
  float clip_norm = 0.0F;  // upper bound of the Euclidean norm of a row's gradient; 0: no clipping
  float beta1 = 0.9F, beta2 = 0.999F;  // kAdam, kLamb
  float l1 = 0.0F, beta = 1.0F;        // kFtrl
};

// The learning-rate schedule: a factor on the optimizer's rate, as a function of the clock.
struct Schedule {
  enum class Kind { kConstant, kLinear, kCosine };

  Kind kind = Kind::kConstant;
  std::int64_t warmup_steps = 0;  // steps in which the factor rises linearly from 0 to 1
  std::int64_t total_steps = 0;   // kLinear, kCosine: the step at which the factor reaches `min_factor`
  float min_factor = 0.0F;        // kLinear, kCosine: the factor from there on, 0 .. 1
};

// Returns the factor at step `clock`, in [0, 1].
float learning_rate_factor(Schedule const& schedule, Clock clock);

// The data type of a table's values in memory. `pull` converts values to float. Gradients and optimizer state do not
// depend on this type.
//
// 16-bit types take half the memory. An update computes in float and rounds the new value stochastically to one of its
// two neighbours, such that the expected value is exact and many small updates are not lost. The random draw is a
// function of seed, table, key, column and step, so the bits agree over ranks and threads.
enum class DataType : std::uint8_t {
  kFloat,
  kHalf,      // IEEE binary16: 11 bits of precision, up to 65,504; an update beyond that ends training with an Error
  kBFloat16,  // 8 bits of precision, the range of a float
};

// The codec of a row's numbers between ranks. kInt8 and kInt4 have one scale per row; consecutive rows of fewer than 32
// columns share a scale, 64 numbers to each scale. kHalf sends at most 65,504 in magnitude; the rest goes to the
// residual, as rounding errors do. Numbers that are not finite are never sent: the step is rejected (GradientError) or
// training ends (Error).
enum class RowCodec : std::uint8_t { kLossless, kHalf, kBFloat16, kInt8, kInt4 };

// A filter that keeps small changes of rows in a residual at the sender: the dynamic value-bounded filter of
// Ratatouille (Sun, Wen et al.), with a maximal age and a threshold that adapts. A change is sent if its largest
// magnitude reaches the threshold of the step, or if it is `age_max` steps old. An old gradient is sent even if no
// batch of the step uses the row; an old value is sent at the reader's next use of the row. Columns that `top_k` left
// out are sent at that age too, exactly. The rounding error of a gradient's codec is added to the row's next gradient;
// the rounding error of a value ages like any other change. The threshold adapts to the requested share, and is at most
// `threshold_max` / sqrt(t) in the t-th step that sends rows to the receiving rank.
struct RowFilter {
  std::uint32_t age_max = 0;    // steps; 0: no filter
  float density = 0.1F;         // requested share of the rows that are sent in a step, 0 .. 1
  float threshold_max = 1e30F;  // units: of the summed loss's gradient, or of values; 0: every change is sent
};

// How rows of a table are sent to other ranks in one direction: codec, sparsification, filter. The sender keeps
// whatever the codec rounds off, top_k leaves out or the filter delays in a residual, and adds it to the row's next
// change (error feedback), so nothing is lost. With a lossy codec, top_k or a filter, results depend on the number of
// ranks. A group of one rank sends no rows.
struct RowCompression {
  RowCodec codec = RowCodec::kLossless;
  std::size_t top_k = 0;  // gradients only: columns of a row to send, those of largest magnitude; 0: all
  RowFilter filter{};
  // Capacity, in rows for each other rank, of what the exchange remembers. Gradients: rows with a residual, 8 bytes per
  // number; the least recently used residuals are sent exactly to make room. Refreshes: rows of which sender and
  // receiver both keep a mirror, 4 bytes per number; the least recently used mirrors are dropped. All rows of a step
  // stay until the next step, even beyond this capacity.
  std::size_t capacity_rows = std::size_t{1} << 18;

  // Returns true unless rows are sent whole, exactly and at once.
  bool enabled() const { return codec != RowCodec::kLossless || top_k > 0 || filter.age_max > 0; }
};

// Options of a table. All ranks must give equal options, except expected_rows, because the wire format follows from
// them. If they differ, the first call that needs two such ranks throws an Error that names both ranks and values.
// (schedule.warmup_steps and schedule.total_steps are not compared.)
struct TableOptions {
  std::string name;     // unique in the store; part of the rows' seeds and of checkpoints
  std::size_t dim = 0;  // numbers per row, 1 .. 65,536
  Initializer initializer{};
  Optimizer optimizer{};
  Schedule schedule{};
  // Gradients of the summed loss are added as 64-bit integers in units of 2^grid_log2; the owner divides the sum by the
  // number of samples. -30 keeps nine decimals and overflows beyond 8e9.
  int grid_log2 = -30;
  std::size_t expected_rows = 0;  // over all ranks; sizes the table in advance, which then need not grow
  // Admission: a row is created in the step of its n-th occurrence, 1 .. 2^31 - 1. Occurrences are entries of global
  // batches, so one step may have several. Until then `pull` returns the initial value and gradients are dropped. A
  // gradient that a codec or a filter delays belongs to the step in which it arrives, which may be after admission.
  std::uint32_t admission_count = 1;
  DataType value_type = DataType::kFloat;
  RowCompression gradient_compression{};  // from the ranks that use a row to its owner
  // Values, from the owner of a row to the ranks that read it. With a codec or a filter, owner and reader keep equal
  // mirrors of the row, and the owner sends the change since the last refresh. A row that has not changed is not sent;
  // with kLossless, filter.age_max of 1 and filter.threshold_max of 0 the results have the same bits as without a
  // filter.
  RowCompression refresh_compression{};
  // Capacity of the key dictionaries. A key in a dictionary is sent as one or two bytes instead of eight. A rank keeps
  // a dictionary of keys sent and one of keys received for each other rank, which share this capacity evenly; the least
  // recently used keys are replaced. Up to 50 bytes of host memory per key, allocated as keys are added. 0: keys are
  // always sent whole.
  std::size_t dictionary_keys = std::size_t{1} << 20;
};

}  // namespace gpups
