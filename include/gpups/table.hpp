// SPDX-License-Identifier: Apache-2.0
// What a table of embedding rows is: its width, how rows begin, and how gradients change them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "gpups/types.hpp"

namespace gpups {

// The value of a row that no batch has named yet. It depends on the store's seed, the table's name, the key and the
// column alone, so it is the same on every rank, device and run.
struct Initializer {
  enum class Kind { kConstant, kUniform, kNormal };

  Kind kind = Kind::kUniform;
  float scale = 0.05F;  // kConstant: the value; kUniform: in [-scale, scale); kNormal: standard deviation
};

// How the summed gradient of a step changes a row. Rows that no batch of the step names do not change at all (lazy),
// and a row is updated once in each step that names it.
struct Optimizer {
  enum class Kind {
    kSgd,             // value -= rate * g
    kAdagrad,         // s += g * g, value -= rate * g / (sqrt(s) + epsilon), 0 / 0 being 0; s is one float per column
    kRowwiseAdagrad,  // s += mean of g * g over the columns, then as above; s is one float per row
    // Lazy Adam: m = beta1 * m + (1 - beta1) * g, v = beta2 * v + (1 - beta2) * g * g, both per column, value -=
    // rate * m' / (sqrt(v') + epsilon), where m' = m / (1 - beta1^t), v' = v / (1 - beta2^t) at the row's t-th update
    kAdam,
    // Row-wise LAMB: u = m' / (sqrt(v') + epsilon) + l2 * value, value -= rate * (|value| / |u|) * u, norms of the row;
    // their quotient is 1 where one of them is 0
    kLamb,
    // FTRL-proximal: z += g - (sqrt(n + g * g) - sqrt(n)) / rate * value, n += g * g, both per column, value = 0 where
    // |z| <= l1, else -(z - sign(z) * l1) / ((beta + sqrt(n)) / rate + l2). A step whose rate is 0 changes nothing. In
    // a row's first update z begins as what its value follows from, so that it moves on from there.
    kFtrl,
  };

  Kind kind = Kind::kRowwiseAdagrad;
  float learning_rate = 0.1F;
  float epsilon = 1e-8F;
  float initial_accumulator = 0.0F;  // what s or n is in a new row
  float l2 = 0.0F;         // l2 * value is added to the gradient g, after clipping; kLamb, kFtrl: as their formulas say
  float clip_norm = 0.0F;  // 0: off; else gradients of a row are scaled down to this Euclidean norm
  float beta1 = 0.9F, beta2 = 0.999F;  // kAdam, kLamb
  float l1 = 0.0F, beta = 1.0F;        // kFtrl
};

// The learning rate as a pure function of the clock: what the optimizer's rate is multiplied with.
struct Schedule {
  enum class Kind { kConstant, kLinear, kCosine };

  Kind kind = Kind::kConstant;
  std::int64_t warmup_steps = 0;  // from 0 to 1, linearly
  std::int64_t total_steps = 0;   // kLinear, kCosine: where the factor reaches `floor`
  float floor = 0.0F;
};

// The factor at a step; in [0, 1].
float learning_rate_factor(Schedule const& schedule, Clock clock);

// What a table keeps its values as. Rows are read as floats, and gradients and optimizer state are numbers of their own
// type, whatever this is.
//
// Numbers of 16 bits take half the memory. An update computes in float, and rounds each new value at random to one of
// its two neighbours, to the nearer one more often, so that the mean is right and many small updates are not lost. The
// draw is a function of seed, table, key, column and step, so bits agree over ranks and threads as they do for floats.
enum class NumberType : std::uint8_t {
  kFloat,
  kHalf,      // IEEE binary16: 11 bits of precision, up to 65,504; an update that goes beyond ends training
  kBFloat16,  // 8 bits of precision, the range of a float
};

// What a row's numbers become on their way to another rank. kInt8 and kInt4 have one scale for each row; rows of fewer
// than 32 columns share one, so many that it has 64 numbers. kHalf takes at most 65,504 of a number at a time: what is
// beyond is late, like what a codec rounds off. What is not finite never travels: it refuses its step, or ends
// training.
enum class RowCodec : std::uint8_t { kLossless, kHalf, kBFloat16, kInt8, kInt4 };

// Holds changes of rows back until they are worth a message. A row is sent when the largest magnitude in its change
// reaches the bound of its step, or when it has waited for age_max steps: gradients also where no batch names the row
// then, values when their reader names it next, and the steps in which it did not count. Columns that top_k leaves out
// wait no longer, and go exactly. What a codec rounds off of a gradient waits for the row's next one, and of a value as
// any other change. The bound follows the share of rows that ought to be sent, and stays below `bound` / sqrt(t) at the
// t-th step that sends rows to a rank.
struct RowFilter {
  std::uint32_t age_max = 0;  // 0: no filter, nothing waits
  float share = 0.1F;         // 0 .. 1
  float bound = 1e30F;        // 0: nothing is held back
};

// How rows of a table travel between ranks in one direction. Whatever a codec rounds off or a filter holds back stays
// with the sender and is added to the row's next change: it is late, and never lost. With any of this results depend on
// the number of ranks; on one rank nothing travels.
struct RowTransfer {
  RowCodec codec = RowCodec::kLossless;
  std::size_t top_k = 0;  // sends so many columns of a row, the largest; 0: all. Of gradients only
  RowFilter filter{};
  // Gradients: rows, for each other rank, of which a rank remembers what it has held back, 8 bytes for each number in
  // them; the longest unused are sent exactly to make room. Refreshes: rows of which a rank keeps a copy for each other
  // rank, and that rank has the same copy, 4 bytes for each number; the longest unused are forgotten. A step remembers
  // all rows that it names, until the next.
  std::size_t rows_max = std::size_t{1} << 18;

  // Whether rows travel in another way than whole and at once.
  bool holds_back() const { return codec != RowCodec::kLossless || top_k > 0 || filter.age_max > 0; }
};

// The same on all ranks, but for expected_rows: what rows and keys look like on their way follows from it, and is not
// said with each message. Ranks whose tables differ refuse each other with the first call that needs both;
// schedule.warmup_steps and total_steps are not compared.
struct TableOptions {
  std::string name;     // unique in the store; part of the rows' seeds and of checkpoints
  std::size_t dim = 0;  // values in a row, 1 .. 65,536
  Initializer initializer{};
  Optimizer optimizer{};
  Schedule schedule{};
  // Gradients are summed as 64-bit integers in units of 2^grid_log2 of the *summed* loss's gradient; the owner applies
  // the mean's 1/batch. -30 keeps nine decimals and overflows only beyond 8e9.
  int grid_log2 = -30;
  std::size_t expected_rows = 0;  // over all ranks; a hint that saves growing
  // A row begins to exist in the step of its n-th sighting, 1 .. 2^31 - 1. Sightings are entries of global batches, so
  // one step may bring several. Until then a key reads as its initial value and its gradients are dropped; what a
  // codec or a filter has held back of them counts as of the step in which it comes, so it may come after that.
  std::uint32_t admit_at = 1;
  NumberType values = NumberType::kFloat;
  RowTransfer gradients{};  // to the ranks that own the rows
  // Values, from their owners to ranks that read them. With a codec or a filter both keep a copy of what was sent, and
  // what is sent is the change since then. A row whose copy is as it should be is not sent; so with kLossless, a
  // filter's age_max of 1 and its bound of 0 the bits are those of sending all rows.
  RowTransfer refreshes{};
  // Keys of other ranks' rows that a rank remembers having announced, so that they travel as numbers of a byte or two
  // from then on; and its rows that others have announced. Shared evenly by the other ranks; the least recently used
  // go. Up to 50 bytes of the host's memory each, taken as keys are announced. 0: keys always travel whole.
  std::size_t dictionary_keys = std::size_t{1} << 20;
};

}  // namespace gpups
