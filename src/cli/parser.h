// The arguments of one command. A thin front of CLI11, which is slow to compile and so stays in parser.cpp.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace fusewise::cli {

// Wrong usage: exit code 2.
class UsageError : public std::runtime_error {
 public:
  explicit UsageError(const std::string& message, std::string what_to_do = {})
      : std::runtime_error(message), hint(std::move(what_to_do)) {}
  std::string hint;
};

// The targets must live until parse() returns.
class Parser {
 public:
  Parser(const std::string& command, const std::string& summary, const std::string& example);
  ~Parser();
  Parser(const Parser&) = delete;
  Parser& operator=(const Parser&) = delete;

  void positional(const std::string& name, std::string& target, const std::string& help,
                  bool required = true);
  void positionals(const std::string& name, std::vector<std::string>& targets, const std::string& help);
  void flag(const std::string& names, bool& target, const std::string& help);
  // `value` is the word that stands for the value in the help.
  void option(const std::string& names, std::string& target, const std::string& value,
              const std::string& help);
  void option(const std::string& names, std::optional<std::string>& target, const std::string& value,
              const std::string& help);
  void option(const std::string& names, std::optional<int64_t>& target, const std::string& value,
              const std::string& help);
  void option(const std::string& names, std::optional<double>& target, const std::string& value,
              const std::string& help);
  // May be given several times.
  void list(const std::string& names, std::vector<std::string>& target, const std::string& value,
            const std::string& help);
  void choice(const std::string& names, std::string& target, const std::vector<std::string>& allowed,
              const std::string& help);

  // True when the command should run; false when its help was asked for, which help() then gives. UsageError.
  bool parse(const std::vector<std::string>& arguments);
  std::string help() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace fusewise::cli
