// SPDX-License-Identifier: Apache-2.0
#include "tests/emulator/ptx/parse_module.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "tests/emulator/machine/device_memory.hpp"
#include "tests/emulator/ptx/declaration.hpp"
#include "tests/emulator/ptx/text.hpp"

namespace gpups::emulator {
namespace {

// Returns the text without comments.
std::string without_comments(std::string_view text) {
  std::string code;
  code.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    if (text.substr(at, 2) == "//") {
      at = std::min(text.find('\n', at), text.size());
    } else if (text.substr(at, 2) == "/*") {
      at = std::min(text.find("*/", at), text.size() - 2) + 2;
      code += ' ';
    } else {
      if (text[at] != '\0') code += text[at];
      ++at;
    }
  }
  return code;
}

// Returns the text without directives that end with their line and are not needed here.
std::string without_line_directives(std::string_view text) {
  constexpr std::array<std::string_view, 5> kDropped{".loc", ".file", ".version", ".target", ".address_size"};
  std::string code;
  code.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    std::size_t const end = std::min(text.find('\n', at), text.size());
    std::string const line = strip(text.substr(at, end - at));
    bool const is_dropped = std::any_of(kDropped.begin(), kDropped.end(),
                                        [&](std::string_view word) { return starts_with_word(line, word); });
    if (!is_dropped) code.append(text.substr(at, end - at)) += '\n';
    at = end + 1;
  }
  return code;
}

// Takes a list of parameters in parentheses from the beginning of `head`, and returns the bytes that they need.
int take_parameters(std::string& head, std::vector<Parameter>& parameters) {
  std::size_t const end = head.find(')');
  int bytes = 0;
  for (auto const& text : split(std::string_view(head).substr(1, end - 1), ',')) {
    Declaration const declared = parse_declaration(text);
    bytes = (bytes + declared.alignment - 1) / declared.alignment * declared.alignment;
    parameters.push_back({declared.name, declared.bytes(), bytes});
    bytes += declared.bytes();
  }
  head = strip(std::string_view(head).substr(end + 1));
  return bytes;
}

// Returns the most threads of a block that ".maxntid x, y, z" allows; 0 if it is not said.
int threads_max(std::string const& head) {
  constexpr std::string_view kDirective = ".maxntid";
  std::size_t const at = head.find(kDirective);
  if (at == std::string::npos) return 0;
  int x = 1, y = 1, z = 1;
  std::sscanf(head.c_str() + at + kDirective.size(), "%d, %d, %d", &x, &y, &z);
  return x * y * z;
}

// Adds a function with this head. A declaration without a body may stand before the definition.
void add_function(Module& module, std::string head, std::string body) {
  constexpr int kFrameAlign = 16;
  auto function = std::make_unique<Function>();
  function->module = &module;
  function->is_kernel = head.find(".entry") != std::string::npos;
  std::string_view const word = function->is_kernel ? ".entry" : ".func";
  head = strip(std::string_view(head).substr(head.find(word) + word.size()));
  if (head.starts_with('(')) function->result_bytes = take_parameters(head, function->results);
  std::size_t const length = name_length(head);
  function->name = head.substr(0, length);
  head = strip(std::string_view(head).substr(length));
  if (head.starts_with('(')) function->parameter_bytes = take_parameters(head, function->parameters);
  function->parameter_bytes = (function->parameter_bytes + kFrameAlign - 1) / kFrameAlign * kFrameAlign;
  function->threads_max = threads_max(head);
  function->body = std::move(body);
  auto& known = module.functions[function->name];
  if (known == nullptr || known->body.empty()) known = std::move(function);
}

void initialise(Variable const& variable, Declaration const& declared) {
  std::string values = declared.values;
  std::erase_if(values, [](char c) { return c == '{' || c == '}'; });
  std::size_t at = 0;
  for (auto const& text : split(values, ',')) {
    auto const value = parse_number(text);
    if (!value) throw UnsupportedPtx("the variable " + declared.name + " has the initial value '" + text + "'");
    std::memcpy(variable.memory + at, &*value, static_cast<std::size_t>(declared.element_bytes));
    at += static_cast<std::size_t>(declared.element_bytes);
  }
}

void add_variable(Module& module, std::string const& text) {
  Declaration const declared = parse_declaration(text);
  bool const is_shared = declared.space == "shared";
  Variable variable{.space = is_shared ? Space::kShared : Space::kGlobal,
                    .bytes = declared.bytes(),
                    .alignment = declared.alignment,
                    .is_dynamic = is_shared && declared.has_no_size};
  if (!is_shared) {
    auto const bytes = static_cast<std::size_t>(std::max(variable.bytes, 1));
    variable.memory = allocate(bytes, MemoryKind::kVariable, 0);
    std::memset(variable.memory, 0, bytes);
    initialise(variable, declared);
  }
  module.variables[declared.name] = variable;
}

// Returns the end of the head at `at`: its ";", or the "{" of a body. A "{" after "=" is part of the head.
std::size_t end_of_head(std::string_view code, std::size_t at) {
  int depth = 0;
  bool has_values = false;
  for (; at < code.size(); ++at) {
    char const c = code[at];
    if (c == '(') ++depth;
    if (c == ')') --depth;
    if (c == '=') has_values = true;
    if (depth == 0 && (c == ';' || (c == '{' && !has_values))) break;
  }
  return at;
}

std::size_t end_of_body(std::string_view code, std::size_t at) {
  int depth = 0;
  for (; at < code.size(); ++at) {
    if (code[at] == '{') ++depth;
    if (code[at] == '}' && --depth == 0) break;
  }
  return at;
}

bool has_any(std::string const& head, std::initializer_list<char const*> words) {
  return std::any_of(words.begin(), words.end(),
                     [&](char const* word) { return head.find(word) != std::string::npos; });
}

}  // namespace

void parse_module(Module& module) {
  if (std::exchange(module.parsed, true)) return;
  std::string const code = without_line_directives(without_comments(module.text));
  for (std::size_t at = 0; at < code.size();) {
    std::size_t const end = end_of_head(code, at);
    std::string const head = strip(std::string_view(code).substr(at, end - at));
    std::string body;
    at = end + 1;
    if (end < code.size() && code[end] == '{') {
      std::size_t const close = end_of_body(code, end);
      body = code.substr(end + 1, close - end - 1);
      at = close + 1;
    }
    if (has_any(head, {".entry", ".func"})) {
      add_function(module, head, std::move(body));
    } else if (has_any(head, {".global", ".const", ".shared"})) {
      add_variable(module, head);
    }
  }
}

}  // namespace gpups::emulator
