// SPDX-License-Identifier: Apache-2.0
// A PTX program: the modules, functions and instructions that the decoder makes and the machine executes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace gpups::emulator {

struct Function;
struct Instruction;
struct Module;
struct Thread;

// A register of a thread. Narrower values are in its low bits; a predicate is 0 or 1.
using Register = std::uint64_t;
// The number of a register in Thread::registers. Constants are registers too, which never change.
using RegisterId = std::int32_t;
inline constexpr RegisterId kNoRegister = -1;

enum class Type : std::uint8_t {
  kU8,
  kS8,
  kB8,
  kU16,
  kS16,
  kB16,
  kU32,
  kS32,
  kB32,
  kU64,
  kS64,
  kB64,
  kF16,
  kBF16,
  kF32,
  kF64,
  kF16x2,
  kBF16x2,
  kPredicate,
  kNone,
};
enum class Space : std::uint8_t { kGeneric, kGlobal, kShared, kLocal, kParam };

// Generic addresses of shared memory start here; no allocation of the host is that high.
inline constexpr std::uint64_t kSharedWindow = std::uint64_t{1} << 48;
inline constexpr std::uint64_t kSharedWindowBytes = std::uint64_t{1} << 32;

// What the machine does after an instruction. kNext: it executes the next one. kJumped: the same, in another function.
// kYield: it turns to another thread. kWarp, kBarrier: the thread waits for its warp or its block. kExit: it has ended.
enum class Outcome : std::uint8_t { kNext, kJumped, kYield, kWarp, kBarrier, kExit };
using Execute = Outcome (*)(Thread&, Instruction const&);

// What an address is relative to: a register (Instruction::a), nothing, the parameters of the kernel, or the frame of
// the function.
enum class AddressBase : std::uint8_t { kRegister, kAbsolute, kParameters, kFrame };

// The instructions that all lanes of a mask execute together.
enum class WarpOperation : std::uint8_t { kShuffle, kVote, kMatch, kSync, kActiveMask, kReduce, kElect };

// A call of a device function.
struct Call {
  // An argument is copied from the frame of the caller to that of the callee; a result, back.
  struct Copy {
    int from, to, bytes;
  };
  Function* callee = nullptr;
  std::vector<Copy> arguments;
  std::vector<Copy> results;
};

// Instruction::mode of atomic operations and reductions.
inline constexpr std::uint8_t kAtomicMode = 1;

// A decoded instruction. Each mnemonic uses some of the fields, and says how where it is decoded and executed.
struct Instruction {
  Execute execute = nullptr;
  RegisterId predicate = kNoRegister;  // the instruction is skipped if this is false, or true if `negated`
  bool negated = false;
  Type type = Type::kNone, from_type = Type::kNone;
  std::uint8_t operation = 0, mode = 0, rounding = 0;  // variants of the mnemonic; kAtomicMode: an atomic operation
  bool saturates = false;
  RegisterId d = kNoRegister, d2 = kNoRegister;  // destinations
  RegisterId a = kNoRegister, b = kNoRegister, c = kNoRegister, e = kNoRegister;
  std::uint8_t elements = 1;           // of a vector
  std::array<RegisterId, 8> vector{};  // its registers
  bool vector_is_source = false;       // otherwise its registers are destinations
  // Boundaries of a basic block, across which an assembler moves no loads; see machine/exposed_loads.hpp.
  bool begins_block = false, ends_block = false;
  Space space = Space::kGeneric;
  AddressBase base = AddressBase::kRegister;
  bool in_dynamic_shared = false;  // the address is relative to the shared memory whose size the launch gives
  std::int64_t offset = 0;         // of an address, or an immediate
  std::int32_t target = -1;        // of a branch: an index into Function::code
  std::shared_ptr<std::vector<std::int32_t> const> targets;  // of an indexed branch
  std::shared_ptr<Call const> call;
  std::shared_ptr<std::string const> text;  // in PTX, for messages
};

// A parameter or a result of a function: bytes of its frame, or of the kernel's parameters.
struct Parameter {
  std::string name;
  int bytes, offset;
};

struct Function {
  Module* module = nullptr;
  std::string name;
  bool is_kernel = false;
  std::string body;  // PTX between the braces; empty if the function is only declared
  std::vector<Parameter> parameters, results;
  int parameter_bytes = 0, result_bytes = 0;
  int threads_max = 0;  // of a block; 0: no bound is declared

  bool decoded = false;
  std::vector<Instruction> code;
  std::vector<Register> constants;  // follow the registers
  int registers = 0;
  int frame_bytes = 0;            // parameters and results of calls, and local memory
  int shared_bytes = 0;           // of declared shared variables
  int dynamic_shared_offset = 0;  // where shared memory of the launch begins
};

// A variable of a module.
struct Variable {
  Space space = Space::kGlobal;
  int bytes = 0, alignment = 1;
  std::uint8_t* memory = nullptr;  // of a global variable
  bool is_dynamic = false;         // shared memory whose size the launch gives
};

struct Module {
  std::string text;
  bool parsed = false;
  std::map<std::string, Variable> variables;
  std::map<std::string, std::unique_ptr<Function>> functions;
};

// PTX that the emulator cannot read: it is not complete.
class UnsupportedPtx : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// An error of a kernel, which a GPU would report at the next wait. code: that of the CUDA runtime.
struct KernelError {
  int code;
  std::string what;
};

}  // namespace gpups::emulator
