#include "runtime/drivers/opencl/api.h"

#include <dlfcn.h>

#include <optional>

namespace fusewise::runtime::opencl {

namespace {

template <class Function>
bool find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

// The library stays open: drivers do not expect to be unloaded.
std::optional<Api> opened() {
  void* library = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return std::nullopt;
  Api a{};
  const bool complete =
      find(library, "clGetPlatformIDs", a.get_platforms) &&
      find(library, "clGetPlatformInfo", a.get_platform_info) &&
      find(library, "clGetDeviceIDs", a.get_devices) && find(library, "clGetDeviceInfo", a.get_device_info) &&
      find(library, "clCreateContext", a.create_context) &&
      find(library, "clReleaseContext", a.release_context) &&
      find(library, "clCreateCommandQueue", a.create_queue) &&
      find(library, "clReleaseCommandQueue", a.release_queue) &&
      find(library, "clCreateProgramWithSource", a.create_program) &&
      find(library, "clBuildProgram", a.build_program) &&
      find(library, "clGetProgramBuildInfo", a.get_build_info) &&
      find(library, "clReleaseProgram", a.release_program) &&
      find(library, "clCreateKernel", a.create_kernel) && find(library, "clSetKernelArg", a.set_argument) &&
      find(library, "clReleaseKernel", a.release_kernel) &&
      find(library, "clCreateBuffer", a.create_buffer) &&
      find(library, "clReleaseMemObject", a.release_memory) &&
      find(library, "clEnqueueWriteBuffer", a.write_buffer) &&
      find(library, "clEnqueueReadBuffer", a.read_buffer) &&
      find(library, "clEnqueueCopyBuffer", a.copy_buffer) &&
      find(library, "clEnqueueNDRangeKernel", a.launch) && find(library, "clFinish", a.finish);
  if (!complete) return std::nullopt;
  return a;
}

}  // namespace

const Api* api() {
  static const std::optional<Api> functions = opened();
  return functions ? &*functions : nullptr;
}

}  // namespace fusewise::runtime::opencl
