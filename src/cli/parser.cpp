#include "cli/parser.h"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <CLI/Validators.hpp>

#include <algorithm>

#include "cli/foreign_flags.h"

namespace fusewise::cli {

struct Parser::State {
  CLI::App app;
};

Parser::Parser(const std::string& command, const std::string& summary, const std::string& example)
    : state_(std::make_unique<State>()) {
  state_->app.description(summary);
  state_->app.name("fusewise " + command);
  state_->app.footer("Example:\n  " + example);
  state_->app.get_formatter()->column_width(34);
  state_->app.set_help_flag("-h,--help", "print this and exit");
}

Parser::~Parser() = default;

void Parser::positional(const std::string& name, std::string& target, const std::string& help,
                        bool required) {
  state_->app.add_option(name, target, help)->required(required)->type_name("");
}

void Parser::positionals(const std::string& name, std::vector<std::string>& targets,
                         const std::string& help) {
  state_->app.add_option(name, targets, help)->required()->type_name("");
}

void Parser::flag(const std::string& names, bool& target, const std::string& help) {
  state_->app.add_flag(names, target, help);
}

void Parser::option(const std::string& names, std::string& target, const std::string& value,
                    const std::string& help) {
  state_->app.add_option(names, target, help)
      ->type_name(value)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
}

void Parser::option(const std::string& names, std::optional<std::string>& target, const std::string& value,
                    const std::string& help) {
  state_->app.add_option(names, target, help)
      ->type_name(value)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
}

void Parser::option(const std::string& names, std::optional<int64_t>& target, const std::string& value,
                    const std::string& help) {
  state_->app.add_option(names, target, help)
      ->type_name(value)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
}

void Parser::option(const std::string& names, std::optional<double>& target, const std::string& value,
                    const std::string& help) {
  state_->app.add_option(names, target, help)
      ->type_name(value)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
}

void Parser::list(const std::string& names, std::vector<std::string>& target, const std::string& value,
                  const std::string& help) {
  state_->app.add_option(names, target, help)->type_name(value)->allow_extra_args(false);
}

void Parser::choice(const std::string& names, std::string& target, const std::vector<std::string>& allowed,
                    const std::string& help) {
  std::string value;
  for (const std::string& word : allowed) value += (value.empty() ? "" : "|") + word;
  state_->app.add_option(names, target, help)
      ->type_name(value)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast)
      ->check(CLI::Validator(
          [allowed, value](std::string& given) {
            const bool known = std::find(allowed.begin(), allowed.end(), given) != allowed.end();
            return known ? std::string() : "'" + given + "' is none of " + value;
          },
          ""));
}

bool Parser::parse(const std::vector<std::string>& arguments) {
  try {
    std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());
    state_->app.parse(reversed);
    return true;
  } catch (const CLI::CallForHelp&) {
    return false;
  } catch (const CLI::ParseError& error) {
    std::vector<std::string> unknown = state_->app.remaining();
    // A foreign flag may also be the reason of another complaint, such as a missing model.
    unknown.insert(unknown.end(), arguments.begin(), arguments.end());
    for (const std::string& argument : unknown) {
      const std::string name = argument.substr(0, argument.find('='));
      if (argument.size() > 1 && argument[0] == '-' && state_->app.get_option_no_throw(name) == nullptr)
        throw_if_foreign(name);
    }
    throw UsageError(error.what(), "see " + state_->app.get_name() + " --help");
  }
}

std::string Parser::help() const { return state_->app.help(); }

}  // namespace fusewise::cli
