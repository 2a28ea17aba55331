// The part of OpenCL's C interface that the driver uses, in declarations of our own. The library is opened when it is
// first needed, so that building and everything else do without it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace fusewise::runtime::opencl {

struct PlatformHandle;
struct DeviceHandle;
struct ContextHandle;
struct QueueHandle;
struct ProgramHandle;
struct KernelHandle;
struct MemoryHandle;
struct EventHandle;

using Platform = PlatformHandle*;
using DeviceId = DeviceHandle*;
using Context = ContextHandle*;
using Queue = QueueHandle*;
using ProgramId = ProgramHandle*;
using KernelId = KernelHandle*;
using Memory = MemoryHandle*;
using Event = EventHandle*;

using Result = int32_t;
inline constexpr Result success = 0;

// What is asked of platforms, devices and programs.
enum Query : uint32_t {
  platform_name = 0x0902,
  device_most_threads = 0x1004,
  device_single_config = 0x101B,
  device_shared_bytes = 0x1023,
  device_name = 0x102B,
  device_double_config = 0x1032,
  program_log = 0x1183,
};

// Bits of device_single_config and device_double_config.
inline constexpr uint64_t config_denormals = 1 << 0, config_infinities = 1 << 1, config_nearest = 1 << 2,
                          config_fma = 1 << 5, config_exact_division = 1 << 7;

inline constexpr uint64_t all_devices = 0xFFFFFFFF;
inline constexpr uint64_t memory_read_write = 1;

// The functions, named as the library names them without its prefix.
struct Api {
  Result (*get_platforms)(uint32_t room, Platform* platforms, uint32_t* count);
  Result (*get_platform_info)(Platform, uint32_t query, size_t room, void* value, size_t* size);
  Result (*get_devices)(Platform, uint64_t kinds, uint32_t room, DeviceId* devices, uint32_t* count);
  Result (*get_device_info)(DeviceId, uint32_t query, size_t room, void* value, size_t* size);
  Context (*create_context)(const intptr_t* properties, uint32_t count, const DeviceId* devices,
                            void (*report)(const char*, const void*, size_t, void*), void* user, Result*);
  Result (*release_context)(Context);
  Queue (*create_queue)(Context, DeviceId, uint64_t properties, Result*);
  Result (*release_queue)(Queue);
  ProgramId (*create_program)(Context, uint32_t count, const char** texts, const size_t* lengths, Result*);
  Result (*build_program)(ProgramId, uint32_t count, const DeviceId* devices, const char* options,
                          void (*done)(ProgramId, void*), void* user);
  Result (*get_build_info)(ProgramId, DeviceId, uint32_t query, size_t room, void* value, size_t* size);
  Result (*release_program)(ProgramId);
  KernelId (*create_kernel)(ProgramId, const char* name, Result*);
  Result (*set_argument)(KernelId, uint32_t index, size_t size, const void* value);
  Result (*release_kernel)(KernelId);
  Memory (*create_buffer)(Context, uint64_t flags, size_t bytes, void* from, Result*);
  Result (*release_memory)(Memory);
  Result (*write_buffer)(Queue, Memory, uint32_t wait, size_t offset, size_t bytes, const void* from,
                         uint32_t events, const Event* after, Event* done);
  Result (*read_buffer)(Queue, Memory, uint32_t wait, size_t offset, size_t bytes, void* to, uint32_t events,
                        const Event* after, Event* done);
  Result (*copy_buffer)(Queue, Memory from, Memory to, size_t from_offset, size_t to_offset, size_t bytes,
                        uint32_t events, const Event* after, Event* done);
  Result (*launch)(Queue, KernelId, uint32_t dimensions, const size_t* offset, const size_t* global,
                   const size_t* local, uint32_t events, const Event* after, Event* done);
  Result (*finish)(Queue);
};

// Null where the machine has no OpenCL library.
const Api* api();

}  // namespace fusewise::runtime::opencl
