// The linker lld, in process.
#pragma once

#include <filesystem>
#include <span>

#include "codegen/codegen.h"

namespace fusewise::codegen {

// Links the objects into a shared object. Not for several threads at once.
void link_objects(std::span<const ObjectFile> objects, const std::filesystem::path& output);

}  // namespace fusewise::codegen
