#include "graph/mix.h"

#include <optional>
#include <type_traits>
#include <variant>

#include "graph/text_internal.h"

namespace fusewise::graph {

namespace {

template <class T>
void mix_field(Mixer& mixer, const T& field) {
  if constexpr (std::is_same_v<T, Dim>) {
    mixer.add(field);
  } else if constexpr (std::is_same_v<T, std::optional<Dim>>) {
    mixer.add(field.has_value() ? 1 : 0);
    if (field) mixer.add(*field);
  } else if constexpr (std::is_integral_v<T> || std::is_enum_v<T>) {
    mixer.add(static_cast<uint64_t>(field));
  } else {
    mixer.add(field.size());
    for (const auto& entry : field) mix_field(mixer, entry);
  }
}

}  // namespace

void mix(Mixer& mixer, const Shape& shape) { mix_field(mixer, shape); }

void mix(Mixer& mixer, const TensorType& type) {
  mixer.add(static_cast<uint64_t>(type.element));
  mix(mixer, type.shape);
}

void mix(Mixer& mixer, const Attributes& attributes) {
  const auto field = [&](const char*, const auto& member) { mix_field(mixer, member); };
  std::visit([&](const auto& a) { text_internal::visit_fields(field, a); }, attributes);
}

}  // namespace fusewise::graph
