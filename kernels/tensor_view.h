// A tensor as kernels see it: an address, a type and a shape. Views own nothing.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>

namespace stacklab {

// bf16 is a storage type: operands of products may be kept in it, and every kernel sums in f32.
enum class DType : std::uint8_t { none, f32, f64, bf16, i32, u8 };

constexpr std::int64_t size_of(DType t) {
  switch (t) {
    case DType::none:
      return 0;
    case DType::f32:
      return 4;
    case DType::f64:
      return 8;
    case DType::bf16:
      return 2;
    case DType::i32:
      return 4;
    case DType::u8:
      return 1;
  }
  return 0;
}
constexpr const char* name_of(DType t) {
  switch (t) {
    case DType::none:
      return "none";
    case DType::f32:
      return "f32";
    case DType::f64:
      return "f64";
    case DType::bf16:
      return "bf16";
    case DType::i32:
      return "i32";
    case DType::u8:
      return "u8";
  }
  return "?";
}
// The type that kernels compute in where this one is stored.
constexpr DType real_of(DType t) { return t == DType::bf16 ? DType::f32 : t; }
template <class T>
inline constexpr DType dtype_of = DType::none;
template <>
inline constexpr DType dtype_of<float> = DType::f32;
template <>
inline constexpr DType dtype_of<double> = DType::f64;
template <>
inline constexpr DType dtype_of<std::int32_t> = DType::i32;
template <>
inline constexpr DType dtype_of<std::uint8_t> = DType::u8;

// Up to four dimensions, row-major and contiguous: the last dimension moves fastest.
struct Shape {
  static constexpr int max_rank = 4;
  int rank = 0;
  std::array<std::int64_t, max_rank> dim = {1, 1, 1, 1};

  constexpr Shape() = default;
  constexpr Shape(std::initializer_list<std::int64_t> dims) {
    for (std::int64_t d : dims) dim[static_cast<std::size_t>(rank++)] = d;
  }
  constexpr std::int64_t operator[](int i) const { return dim[static_cast<std::size_t>(i)]; }
  constexpr std::int64_t size() const { return dim[0] * dim[1] * dim[2] * dim[3]; }
  constexpr bool operator==(const Shape&) const = default;
};

// The buffer of a Program that a view lies in. While a Program is built, views have a place and no address; binding a
// Program to memory gives them one. Kernels never look at it.
struct Place {
  std::int32_t buffer = -1;
  std::int64_t offset = 0;  // bytes from the buffer's start
  constexpr bool operator==(const Place&) const = default;
};

struct TensorView {
  std::byte* data = nullptr;
  DType dtype = DType::none;
  Shape shape;
  Place place;

  // An optional operand that was not given has no type.
  constexpr bool present() const { return dtype != DType::none; }
  constexpr std::int64_t size() const { return present() ? shape.size() : 0; }
  constexpr std::int64_t bytes() const { return size() * size_of(dtype); }
  constexpr std::int64_t rows() const { return shape[0]; }
  constexpr std::int64_t cols() const { return shape.rank > 0 ? shape.size() / shape[0] : 1; }

  template <class T>
  T* as() const {
    return reinterpret_cast<T*>(data);
  }
  template <class T>
  T* row(std::int64_t r) const {
    return as<T>() + r * cols();
  }

  // Rows begin .. end of the first dimension: still contiguous.
  TensorView row_range(std::int64_t begin, std::int64_t end) const {
    TensorView v = *this;
    v.shape.dim[0] = end - begin;
    const std::int64_t skip = begin * cols() * size_of(dtype);
    v.place.offset += skip;
    if (v.data) v.data += skip;
    return v;
  }
};

// A gradient to be written: the kernel assigns, or adds to what is there. Not present: the parameter is frozen.
struct GradView {
  TensorView view;
  bool accumulate = false;
  bool present() const { return view.present(); }
};

}  // namespace stacklab
