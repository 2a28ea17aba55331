#include "base/temporary_folder.h"

#include <cstdlib>
#include <string>
#include <system_error>

#include "base/error.h"

namespace fusewise {

TemporaryFolder::TemporaryFolder() {
  std::string name = (std::filesystem::temp_directory_path() / "fusewise-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr)
    throw UserError("no temporary folder can be made: " + name,
                    {.file = name, .node = "", .op = "", .hint = ""});
  path_ = name;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace fusewise
