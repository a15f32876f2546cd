// SPDX-License-Identifier: Apache-2.0
#include "tests/emulator/ptx/decode.hpp"

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/emulator/operations/rules.hpp"
#include "tests/emulator/options.hpp"
#include "tests/emulator/ptx/declaration.hpp"
#include "tests/emulator/ptx/statement.hpp"
#include "tests/emulator/ptx/text.hpp"

namespace gpups::emulator {
namespace {

// What a name in a body stands for: a register, or bytes of the frame or of the kernel's parameters.
struct Symbol {
  enum class Kind : std::uint8_t { kRegister, kFrame, kParameter };
  Kind kind = Kind::kRegister;
  RegisterId id = kNoRegister;
  int offset = 0;
};

// While a body is decoded, constant k has this id: the number of registers is not known yet.
constexpr RegisterId kFirstConstant = -2;
constexpr RegisterId id_of_constant(std::size_t k) { return kFirstConstant - static_cast<RegisterId>(k); }

int aligned(int offset, int alignment) { return (offset + alignment - 1) / alignment * alignment; }

class Decoder {
 public:
  explicit Decoder(Function& function) : function_(function), module_(*function.module), scopes_(1) {}

  void run() {
    declare_parameters();
    std::string const& body = function_.body;
    for (std::size_t at = 0; at < body.size();) at = read_item(body, at);
    emit({.execute = return_from_function});
    function_.frame_bytes = aligned(frame_bytes_, kFrameAlign);
    function_.dynamic_shared_offset = aligned(function_.shared_bytes, kSharedAlign);
    resolve_labels();
    resolve_constants();
  }

 private:
  static constexpr int kFrameAlign = 64, kSharedAlign = 16, kVariableAlign = 8;

  [[noreturn]] void reject(std::string const& what) const {
    throw UnsupportedPtx(what + " cannot be read, in " + function_.name);
  }

  // The parameters of a kernel are apart from its frame; those of a device function are at the beginning of its frame,
  // and its results follow.
  void declare_parameters() {
    auto const kind = function_.is_kernel ? Symbol::Kind::kParameter : Symbol::Kind::kFrame;
    for (Parameter const& parameter : function_.parameters) {
      scopes_[0][parameter.name] = {kind, kNoRegister, parameter.offset};
    }
    if (function_.is_kernel) return;
    for (Parameter const& result : function_.results) {
      scopes_[0][result.name] = {Symbol::Kind::kFrame, kNoRegister, function_.parameter_bytes + result.offset};
    }
    frame_bytes_ = function_.parameter_bytes + aligned(function_.result_bytes, kSharedAlign);
  }

  // -- text --

  // Reads a brace, a label, a directive or a statement, and returns where the next one begins.
  std::size_t read_item(std::string const& body, std::size_t at) {
    std::string_view const rest = std::string_view(body).substr(at);
    char const first = rest.front();
    if (std::isspace(static_cast<unsigned char>(first)) != 0 || first == ';') return at + 1;
    if (first == '{' || first == '}') {
      first == '{' ? static_cast<void>(scopes_.emplace_back()) : scopes_.pop_back();
      return at + 1;
    }
    if (auto const length = label_length(rest)) return read_label(body, at, *length);
    std::size_t const end = std::min(body.find(';', at), body.size());
    std::string text = strip(std::string_view(body).substr(at, end - at));
    std::replace_if(
        text.begin(), text.end(), [](char c) { return c == '\n' || c == '\t' || c == '\r'; }, ' ');
    if (text.starts_with('.')) {
      read_directive(text);
    } else if (!text.empty()) {
      read_statement(text);
    }
    return end + 1;
  }

  // Returns the length of a label with its colon, if the text begins with one. A mnemonic may contain "::".
  static std::optional<std::size_t> label_length(std::string_view text) {
    std::size_t const name = name_length(text);
    std::size_t at = name;
    while (at < text.size() && text[at] == ' ') ++at;
    bool const is_label = name > 0 && at < text.size() && text[at] == ':' && text.substr(at, 2) != "::";
    return is_label ? std::optional(at + 1) : std::nullopt;
  }
  // A label may name the targets of an indexed branch: "table: .branchtargets a, b;".
  std::size_t read_label(std::string const& body, std::size_t at, std::size_t length) {
    constexpr std::string_view kTargets = ".branchtargets";
    std::string const name = body.substr(at, name_length(std::string_view(body).substr(at)));
    at += length;
    labels_[name] = static_cast<std::int32_t>(function_.code.size());
    std::size_t const next = std::min(body.find_first_not_of(" \t\r\n", at), body.size());
    if (body.compare(next, kTargets.size(), kTargets) != 0) return at;
    std::size_t const list = next + kTargets.size(), end = body.find(';', list);
    tables_[name] = split(std::string_view(body).substr(list, end - list), ',');
    return end + 1;
  }

  void read_directive(std::string const& text) {
    if (starts_with_word(text, ".reg")) {
      declare_registers(text);
    } else if (text.starts_with(".shared")) {
      declare_shared(text);
    } else if (text.starts_with(".local") || text.starts_with(".param")) {
      Declaration const declared = parse_declaration(text);
      frame_bytes_ = aligned(frame_bytes_, std::max(declared.alignment, kVariableAlign));
      scopes_.back()[declared.name] = {Symbol::Kind::kFrame, kNoRegister, frame_bytes_};
      frame_bytes_ += declared.bytes();
    } else if (!text.starts_with(".pragma") && !text.starts_with(".callprototype") && !text.starts_with(".max")) {
      reject("the directive '" + text + "'");
    }
  }
  // ".reg .b32 %r<10>" or ".reg .pred p, q"
  void declare_registers(std::string const& text) {
    std::size_t const type = text.find('.', 1), names = text.find(' ', type);
    for (auto const& name : split(std::string_view(text).substr(names), ',')) {
      std::size_t const range = name.find('<');
      if (range == std::string::npos) {
        scopes_.back()[name] = {Symbol::Kind::kRegister, new_register(), 0};
        continue;
      }
      int const count = std::stoi(name.substr(range + 1));
      for (int k = 0; k < count; ++k) {
        scopes_.back()[name.substr(0, range) + std::to_string(k)] = {Symbol::Kind::kRegister, new_register(), 0};
      }
    }
  }
  void declare_shared(std::string const& text) {
    Declaration const declared = parse_declaration(text);
    module_.variables[declared.name] = {.space = Space::kShared,
                                        .bytes = declared.bytes(),
                                        .alignment = declared.alignment,
                                        .is_dynamic = declared.has_no_size};
  }

  // -- statements --

  void read_statement(std::string const& text) {
    Statement const statement = parse_statement(text);
    text_ = std::make_shared<std::string const>(text);
    Instruction i;
    if (!statement.predicate.empty()) {
      i.predicate = register_of(statement.predicate);
      i.negated = statement.negated;
    }
    if (statement.mnemonic == "bra") {
      branches_.emplace_back(function_.code.size(), statement.operands.at(0));
      i.execute = jump;
    } else if (statement.mnemonic == "brx") {
      i.a = register_of(statement.operands.at(0));
      indexed_branches_.emplace_back(function_.code.size(), statement.operands.at(1));
      i.execute = jump_indexed;
    } else if (statement.mnemonic == "call") {
      i.execute = read_call(statement, i);
    } else {
      i.execute = read_operation(statement, i);
    }
    if (i.execute == nullptr) {
      if (options().lists_unknown) std::fprintf(stderr, "emulator: unknown instruction '%s'\n", text.c_str());
      i.execute = fault_unsupported;
    }
    i.ends_block = statement.ends_block();
    emit(std::move(i));
  }

  Execute read_operation(Statement const& statement, Instruction& i) {
    Select const select = find_rule(statement.mnemonic);
    if (select == nullptr) return nullptr;
    i.type = statement.type();
    read_operands(statement, i);
    return select(statement, i);
  }

  // Gives the operands to d, a, b, c and e, as operations/rules.hpp describes.
  void read_operands(Statement const& statement, Instruction& i) {
    RegisterId* const places[] = {&i.d, &i.a, &i.b, &i.c, &i.e};
    std::size_t place = 0;
    for (std::string const& operand : statement.operands) {
      if (place == std::size(places)) reject("'" + statement.text + "'");
      if (operand.starts_with('{')) {
        read_vector(operand, i);
        i.vector_is_source = place > 0;
      } else if (operand.starts_with('[')) {
        place = 1;
        std::string const address = strip(std::string_view(operand).substr(1, operand.rfind(']') - 1));
        if (!read_address(address, i)) reject("the address '" + address + "'");
      } else if (std::size_t const bar = operand.find('|'); place == 0 && bar != std::string::npos) {
        i.d = register_of(strip(std::string_view(operand).substr(0, bar)));
        i.d2 = register_of(strip(std::string_view(operand).substr(bar + 1)));
      } else {
        *places[place] = register_of(operand);
      }
      ++place;
    }
  }
  void read_vector(std::string const& operand, Instruction& i) {
    auto const elements = split(std::string_view(operand).substr(1, operand.rfind('}') - 1), ',');
    if (elements.size() > i.vector.size()) reject("the vector '" + operand + "'");
    i.elements = static_cast<std::uint8_t>(elements.size());
    for (std::size_t k = 0; k < elements.size(); ++k) i.vector[k] = register_of(elements[k]);
  }

  // "(result), name, (arguments)"; the result and the arguments may be missing.
  Execute read_call(Statement const& statement, Instruction& i) {
    auto operands = statement.operands;
    std::string result;
    if (operands.front().starts_with('(')) {
      result = strip(std::string_view(operands.front()).substr(1, operands.front().size() - 2));
      operands.erase(operands.begin());
    }
    auto const found = module_.functions.find(operands.front());
    if (found == module_.functions.end() || found->second->body.empty()) return nullptr;
    auto call = std::make_shared<Call>();
    call->callee = found->second.get();
    if (operands.size() > 1) {
      auto const arguments = split(std::string_view(operands[1]).substr(1, operands[1].size() - 2), ',');
      for (std::size_t k = 0; k < arguments.size(); ++k) {
        Parameter const& parameter = call->callee->parameters.at(k);
        call->arguments.push_back({frame_offset(arguments[k]), parameter.offset, parameter.bytes});
      }
    }
    if (!result.empty()) {
      Parameter const& returned = call->callee->results.at(0);
      call->results.push_back({call->callee->parameter_bytes + returned.offset, frame_offset(result), returned.bytes});
    }
    decode(*call->callee);
    i.call = std::move(call);
    return call_function;
  }
  int frame_offset(std::string const& name) const {
    Symbol const* const symbol = find(name);
    if (symbol == nullptr || symbol->kind != Symbol::Kind::kFrame) reject("the argument '" + name + "'");
    return symbol->offset;
  }

  // -- operands --

  Symbol const* find(std::string const& name) const {
    for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
      if (auto const found = scope->find(name); found != scope->end()) return &found->second;
    }
    return nullptr;
  }
  RegisterId new_register() { return function_.registers++; }
  RegisterId constant(std::uint64_t value) {
    auto const [found, fresh] = constants_.try_emplace(value, id_of_constant(function_.constants.size()));
    if (fresh) function_.constants.push_back(value);
    return found->second;
  }
  // Adds an instruction that computes an operand, and returns its result.
  RegisterId computed(Instruction i) {
    i.d = new_register();
    RegisterId const result = i.d;
    emit(std::move(i));
    return result;
  }
  RegisterId register_of(std::string const& operand) {
    if (operand == "_") return kNoRegister;
    if (auto const number = parse_number(operand)) return constant(*number);
    if (operand.starts_with('!')) {
      RegisterId const predicate = register_of(strip(std::string_view(operand).substr(1)));
      return computed({.execute = negate_predicate, .a = predicate});
    }
    if (int const special = special_register(operand); special >= 0) {
      return computed({.execute = read_special_register, .operation = static_cast<std::uint8_t>(special)});
    }
    Symbol const* const symbol = find(operand);
    if (symbol != nullptr && symbol->kind == Symbol::Kind::kRegister) return symbol->id;
    Instruction address{.execute = compute_address};
    if (!read_address(operand, address)) reject("the operand '" + operand + "'");
    return computed(std::move(address));
  }

  // Reads "name", "name + 8" or a number into the address of an instruction. Returns false if the name is unknown.
  bool read_address(std::string const& text, Instruction& i) {
    std::size_t const sign = text.find_first_of("+-", 1);
    std::string const base = strip(std::string_view(text).substr(0, sign));
    if (sign != std::string::npos) {
      std::string offset = strip(std::string_view(text).substr(sign));
      if (offset.starts_with('+')) offset = strip(std::string_view(offset).substr(1));
      auto const value = parse_number(offset);
      if (!value) return false;
      i.offset = static_cast<std::int64_t>(*value);
    }
    if (auto const number = parse_number(base)) {
      i.base = AddressBase::kAbsolute;
      i.offset += static_cast<std::int64_t>(*number);
      return true;
    }
    if (Symbol const* const symbol = find(base)) {
      read_symbol_address(*symbol, i);
      return true;
    }
    return read_variable_address(base, i);
  }
  static void read_symbol_address(Symbol const& symbol, Instruction& i) {
    if (symbol.kind == Symbol::Kind::kRegister) {
      i.base = AddressBase::kRegister;
      i.a = symbol.id;
    } else {
      i.base = symbol.kind == Symbol::Kind::kParameter ? AddressBase::kParameters : AddressBase::kFrame;
      i.offset += symbol.offset;
    }
  }
  bool read_variable_address(std::string const& name, Instruction& i) {
    auto const found = module_.variables.find(name);
    if (found == module_.variables.end()) return false;
    Variable const& variable = found->second;
    i.base = AddressBase::kAbsolute;
    if (variable.is_dynamic) {
      i.in_dynamic_shared = true;
    } else if (variable.space == Space::kShared) {
      i.offset += shared_offset(name, variable);
    } else {
      i.offset += static_cast<std::int64_t>(reinterpret_cast<std::uint64_t>(variable.memory));
    }
    return true;
  }
  // Places a shared variable when it is first used: a function has those that it uses.
  int shared_offset(std::string const& name, Variable const& variable) {
    auto const [found, fresh] = shared_offsets_.try_emplace(name, 0);
    if (fresh) {
      found->second = aligned(function_.shared_bytes, variable.alignment);
      function_.shared_bytes = found->second + variable.bytes;
    }
    return found->second;
  }

  // -- code --

  void emit(Instruction i) {
    i.text = text_;
    function_.code.push_back(std::move(i));
  }
  std::int32_t target(std::string const& label) const {
    auto const found = labels_.find(label);
    if (found == labels_.end()) reject("the label '" + label + "'");
    return found->second;
  }
  void resolve_labels() {
    for (auto const& label : labels_) function_.code[static_cast<std::size_t>(label.second)].begins_block = true;
    for (auto const& [at, label] : branches_) function_.code[at].target = target(label);
    for (auto const& [at, table] : indexed_branches_) {
      auto targets = std::make_shared<std::vector<std::int32_t>>();
      for (auto const& label : tables_[table]) targets->push_back(target(label));
      function_.code[at].targets = std::move(targets);
    }
  }
  // Constants follow the registers.
  void resolve_constants() {
    auto const resolve = [this](RegisterId& id) {
      if (id <= kFirstConstant) id = function_.registers + (kFirstConstant - id);
    };
    for (Instruction& i : function_.code) {
      for (RegisterId* const id : {&i.predicate, &i.d, &i.d2, &i.a, &i.b, &i.c, &i.e}) resolve(*id);
      for (RegisterId& id : i.vector) resolve(id);
      if (i.in_dynamic_shared) i.offset += function_.dynamic_shared_offset;
    }
  }

  Function& function_;
  Module& module_;
  std::vector<std::map<std::string, Symbol>> scopes_;
  std::map<std::string, std::int32_t> labels_;                                    // their indices in the code
  std::map<std::string, std::vector<std::string>> tables_;                        // labels of indexed branches
  std::vector<std::pair<std::size_t, std::string>> branches_, indexed_branches_;  // index in the code, and label
  std::map<std::uint64_t, RegisterId> constants_;
  std::map<std::string, int> shared_offsets_;
  int frame_bytes_ = 0;
  std::shared_ptr<std::string const> text_;
};

}  // namespace

void decode(Function& function) {
  if (std::exchange(function.decoded, true)) return;
  Decoder(function).run();
}

}  // namespace gpups::emulator
