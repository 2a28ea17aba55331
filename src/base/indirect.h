// A value that lies by itself on the heap: it is copied like a value, and keeps its place when the owner
// is moved, so that long vectors of large values grow and are rearranged by their pointers alone. Empty only when moved
// from.
#pragma once

#include <memory>
#include <utility>

namespace fusewise {

template <class T>
class Indirect {
 public:
  explicit Indirect(T value) : value_(std::make_unique<T>(std::move(value))) {}
  Indirect(const Indirect& other) : value_(other.value_ ? std::make_unique<T>(*other.value_) : nullptr) {}
  Indirect(Indirect&&) noexcept = default;
  Indirect& operator=(Indirect other) noexcept {
    value_ = std::move(other.value_);
    return *this;
  }
  ~Indirect() = default;

  T& operator*() { return *value_; }
  const T& operator*() const { return *value_; }
  T* operator->() { return value_.get(); }
  const T* operator->() const { return value_.get(); }

 private:
  std::unique_ptr<T> value_;
};

}  // namespace fusewise
