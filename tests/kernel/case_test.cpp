// Runs the text cases of this folder. A case is `=== name: action`, a kernel, and for runs lines `> NAME = values`
// (parameters, arguments) and `> expect NAME = values`. Actions:
//   print            the text is what printing gives after parsing
//   syntax WORDS     parsing refuses with these words
//   valid            the verifier accepts, and printing survives a round trip
//   refused WORDS    the verifier refuses with these words
//   synchronized     barriers stand where the text says that they are needed
//   unsynchronized WORDS  one is missing: refused with these words
//   run              the interpreter gives the expected values, in any order of blocks and threads
//   fault KIND WORDS the interpreter reports this fault
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <sstream>

#include "base/error.h"
#include "kernel/evaluate.h"
#include "kernel/interpreter.h"
#include "kernel/kernel.h"
#include "kernel/synchronization.h"
#include "kernel/verifier.h"

namespace fusewise::kernel {
namespace {

struct Case {
  std::string file, name, action, text;
  std::vector<std::string> values;
};

std::string trim(const std::string& text) {
  const size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string::npos) return "";
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

std::vector<Case> read_cases() {
  std::vector<Case> cases;
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(FUSEWISE_TESTS "/kernel"))
    if (entry.path().extension() == ".case") files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  for (const auto& path : files) {
    std::ifstream in(path);
    const size_t before = cases.size();
    for (std::string line; std::getline(in, line);) {
      if (line.starts_with("=== ")) {
        const size_t colon = line.find(':');
        cases.push_back({path.filename().string(),
                         trim(line.substr(4, colon - 4)),
                         trim(line.substr(colon + 1)),
                         "",
                         {}});
      } else if (cases.size() == before) {
        continue;  // what the file says about itself
      } else if (line.starts_with("> ")) {
        cases.back().values.push_back(trim(line.substr(2)));
      } else if (!trim(line).empty()) {
        cases.back().text += line + "\n";
      }
    }
  }
  return cases;
}

using Values = std::vector<int64_t>;  // bits

Values parse_values(DataType type, const std::string& text) {
  Values result;
  std::istringstream in(text);
  for (std::string word; in >> word;) {
    Scalar number;
    if (is_float(type)) {
      number.type = DataType::float64;
      number.f = std::strtod(word.c_str(), nullptr);
      number = convert(number, type);
    } else {
      number.type = type;
      number.i = std::strtoll(word.c_str(), nullptr, 10);
    }
    result.push_back(bits_of_scalar(number));
  }
  return result;
}

bool same(DataType type, int64_t a, int64_t b) {
  if (a == b) return true;
  return is_float(type) && std::isnan(scalar_of_bits(type, a).f) && std::isnan(scalar_of_bits(type, b).f);
}

std::string show(DataType type, const Values& values) {
  std::string result;
  for (const int64_t bits : values) {
    const Scalar value = scalar_of_bits(type, bits);
    result += is_float(type) ? fmt::format(" {}", value.f) : fmt::format(" {}", value.i);
  }
  return result;
}

struct Setting {
  std::map<std::string, std::string> given, expected;
  explicit Setting(const Case& c) {
    for (const std::string& line : c.values) {
      const size_t sign = line.find('=');
      std::string name = trim(line.substr(0, sign));
      const bool is_expected = name.starts_with("expect ");
      if (is_expected) name = trim(name.substr(7));
      (is_expected ? expected : given)[name] = line.substr(sign + 1);
    }
  }
};

const std::map<std::string, Fault> faults = {
    {"out_of_bounds", Fault::out_of_bounds},
    {"uninitialised", Fault::uninitialised},
    {"race", Fault::race},
    {"divergent_barrier", Fault::divergent_barrier},
    {"overlap", Fault::overlap},
    {"limit", Fault::limit},
};

// A fault of kind `expected_fault` is passed on, another one fails the test.
void run_once(const Kernel& kernel, const Setting& setting, uint64_t seed,
              const std::string& expected_fault = "") {
  std::vector<int64_t> parameters;
  for (const std::string& name : kernel.parameters) parameters.push_back(std::stoll(setting.given.at(name)));
  std::vector<std::vector<char>> memory;
  std::vector<BufferArgument> arguments;
  const size_t count = static_cast<size_t>(kernel.argument_count());
  for (size_t i = 0; i < count; ++i) {
    const DataType type = kernel.buffers[i].element;
    const size_t bytes = static_cast<size_t>(bytes_of(type));
    const Values values = parse_values(type, setting.given.at(kernel.buffers[i].name));
    memory.emplace_back(values.size() * bytes);
    for (size_t j = 0; j < values.size(); ++j)
      store_scalar(memory.back().data() + j * bytes, scalar_of_bits(type, values[j]));
    arguments.push_back({memory.back().data(), static_cast<int64_t>(values.size())});
  }
  InterpretOptions options;
  options.seed = seed;
  try {
    interpret(kernel, arguments, parameters, options);
  } catch (const KernelFault& fault) {
    if (!expected_fault.empty()) {
      EXPECT_EQ(fault.kind, faults.at(expected_fault));
    }
    throw;
  }
  for (size_t i = 0; i < count; ++i) {
    const auto found = setting.expected.find(kernel.buffers[i].name);
    if (found == setting.expected.end()) continue;
    const DataType type = kernel.buffers[i].element;
    const Values wanted = parse_values(type, found->second);
    Values got;
    for (int64_t j = 0; j < arguments[i].elements; ++j)
      got.push_back(bits_of_scalar(load_scalar(memory[i].data() + j * bytes_of(type), type)));
    const bool equal = std::equal(got.begin(), got.end(), wanted.begin(), wanted.end(),
                                  [&](int64_t a, int64_t b) { return same(type, a, b); });
    EXPECT_TRUE(equal) << found->first << " is" << show(type, got) << ", not" << show(type, wanted);
  }
}

template <class Error, class Action>
void expect_error(const Action& action, const std::string& words) {
  try {
    action();
    ADD_FAILURE() << "nothing was thrown; expected: " << words;
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr(words));
  }
}

void run_case(const Case& c) {
  std::istringstream action(c.action);
  std::string verb, words;
  action >> verb;
  std::getline(action, words);
  words = trim(words);
  if (verb == "syntax") return expect_error<UserError>([&] { parse(c.text); }, words);
  const Kernel kernel = parse(c.text);
  const std::string printed = print(kernel);
  EXPECT_EQ(print(parse(printed)), printed);
  if (verb == "print") {
    EXPECT_EQ(printed, c.text);
  } else if (verb == "refused") {
    expect_error<InternalError>([&] { verify(kernel, Stage::final); }, words);
  } else if (verb == "valid") {
    EXPECT_NO_THROW(verify(kernel, Stage::final));
  } else if (verb == "synchronized") {
    verify(kernel);
    EXPECT_NO_THROW(verify_synchronization(kernel));
  } else if (verb == "unsynchronized") {
    verify(kernel);
    expect_error<InternalError>([&] { verify_synchronization(kernel); }, words);
  } else if (verb == "run") {
    verify(kernel);
    for (uint64_t seed = 1; seed <= 5; ++seed) run_once(kernel, Setting(c), seed);
  } else if (verb == "fault") {
    // Barriers that diverge are refused beforehand; the interpreter must not depend on that.
    if (words.starts_with("divergent_barrier"))
      EXPECT_THROW(verify(kernel), InternalError);
    else
      verify(kernel);
    const size_t space = words.find(' ');
    const std::string kind = words.substr(0, space);
    for (uint64_t seed = 1; seed <= 5; ++seed)
      expect_error<KernelFault>([&] { run_once(kernel, Setting(c), seed, kind); },
                                space == std::string::npos ? "" : words.substr(space + 1));
  } else {
    ADD_FAILURE() << "unknown action " << verb;
  }
}

TEST(KernelCases, AllHold) {
  const std::vector<Case> cases = read_cases();
  ASSERT_GT(cases.size(), 50u);
  for (const Case& c : cases) {
    SCOPED_TRACE(c.file + ": " + c.name);
    try {
      run_case(c);
    } catch (const std::exception& error) {
      ADD_FAILURE() << error.what();
    }
  }
}

// Damaged text is refused by a UserError or is another kernel, which prints and parses; nothing else happens.
TEST(KernelText, SurvivesDamage) {
  std::mt19937_64 random(1);
  const std::string letters = "0123456789 \n  123(a<*]{}#.-:";
  int parsed = 0;
  for (const Case& c : read_cases()) {
    if (c.action.starts_with("syntax")) continue;
    for (int trial = 0; trial < 40; ++trial) {
      std::string text = c.text;
      for (uint64_t changes = random() % 2 + 1; changes > 0; --changes) {
        const size_t place = random() % text.size();
        const char letter = letters[random() % letters.size()];
        if (random() % 3 == 0)
          text.erase(place, random() % 4 + 1);
        else if (random() % 2 == 0)
          text[place] = letter;
        else
          text.insert(place, 1, letter);
      }
      try {
        const std::string printed = print(parse(text));
        EXPECT_EQ(print(parse(printed)), printed) << text;
        ++parsed;
      } catch (const UserError& error) {
        EXPECT_THAT(error.what(), testing::HasSubstr("kernel text, line ")) << text;
      }
    }
  }
  EXPECT_GT(parsed, 100);
}

}  // namespace
}  // namespace fusewise::kernel
