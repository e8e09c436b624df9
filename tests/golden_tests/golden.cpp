#include "tests/golden_tests/golden.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace stacklab::golden {
namespace {

template <class T>
std::vector<T> converted(const SafetensorsEntry& e) {
  const auto as = [&]<class From>(From) {
    std::vector<T> out(static_cast<std::size_t>(e.elements()));
    for (std::size_t i = 0; i < out.size(); ++i) {
      From v;
      std::memcpy(&v, e.bytes.data() + i * sizeof(From), sizeof(From));
      out[i] = static_cast<T>(v);
    }
    return out;
  };
  switch (e.type) {
    case SafetensorsType::f64:
      return as(double{});
    case SafetensorsType::f32:
      return as(float{});
    case SafetensorsType::i32:
      return as(std::int32_t{});
    default:
      throw std::runtime_error("tensor " + e.name + " has a type that no golden case uses");
  }
}

// NaN and infinities are spelt in JSON.
double number(const nlohmann::json& j) { return j.is_number() ? j.get<double>() : std::nan(""); }

}  // namespace

const SafetensorsEntry& Case::entry(const std::string& tensor) const {
  if (!tensors) throw std::runtime_error("there is no safetensors file");
  const SafetensorsEntry* e = tensors->find(tensor);
  if (!e) throw std::runtime_error("tensor " + tensor + " is missing");
  return *e;
}

std::vector<double> Case::reals(const std::string& tensor) const { return converted<double>(entry(tensor)); }
std::vector<std::int32_t> Case::ints(const std::string& tensor) const {
  if (entry(tensor).type != SafetensorsType::i32) throw std::runtime_error("tensor " + tensor + " is not i32");
  return converted<std::int32_t>(entry(tensor));
}

Shape Case::shape(const std::string& tensor) const {
  Shape s;
  for (const std::int64_t d : entry(tensor).shape) {
    if (s.rank == Shape::max_rank) throw std::runtime_error("tensor " + tensor + " has too many dimensions");
    s.dim[static_cast<std::size_t>(s.rank++)] = d;
  }
  return s;
}

std::pair<double, double> Case::measured(const std::string& quantity, double worst_relative) const {
  const auto m = json().value("measured_fp32_vs_fp64", nlohmann::json::object());
  if (m.contains(quantity) && m[quantity].is_array() && m[quantity].size() == 2)
    return {number(m[quantity][0]), number(m[quantity][1])};
  return {-1, worst_relative};
}

double Case::measured_bf16(const std::string& quantity) const {
  const auto m = json().value("measured_bf16_autocast_vs_fp64", nlohmann::json::object());
  if (!m.contains(quantity)) return -1;
  return number(m[quantity].is_array() ? m[quantity][0] : m[quantity]);
}

double largest(const std::vector<double>& values) {
  double m = 0;
  for (const double v : values) m = std::max(m, std::abs(v));
  return m;
}

double allowed(const Setup& setup, const std::vector<double>& oracle, double measured_absolute) {
  return setup.in_double() ? 1e-9 * largest(oracle) : std::max(8 * measured_absolute, 4 * eps32 * largest(oracle));
}

void Comparison::note(const std::string& what, double error, double allowed, std::size_t at, double got,
                      double oracle) {
  const double ratio = allowed > 0 ? error / allowed : error > 0 ? 1e300 : 0;
  if (ratio > worst_ratio_ || std::isnan(ratio)) {
    worst_ratio_ = ratio;
    worst_ = fmt::format("{}: error {:.2e} of {:.2e} allowed", what, error, allowed);
  }
  if (!(error <= allowed))
    failures_.push_back(fmt::format("{}: error {:.3e}, {:.3e} allowed, worst at element {}: {:.9g} instead of {:.9g}",
                                    what, error, allowed, at, got, oracle));
}

void Comparison::close(const std::string& what, const std::vector<double>& got, const std::vector<double>& oracle,
                       double limit) {
  if (got.size() != oracle.size()) {
    failures_.push_back(fmt::format("{}: {} elements instead of {}", what, got.size(), oracle.size()));
    return;
  }
  double error = 0;
  std::size_t at = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double e = got[i] == oracle[i] ? 0 : std::abs(got[i] - oracle[i]);  // equal infinities are equal
    if (!(e <= error)) error = e, at = i;
    if (std::isnan(error)) break;
  }
  note(what, error, limit, at, got.empty() ? 0 : got[at], oracle.empty() ? 0 : oracle[at]);
}

void Comparison::rows_close(const std::string& what, const std::vector<double>& got, const std::vector<double>& oracle,
                            std::int64_t width, double relative) {
  if (got.size() != oracle.size()) return close(what, got, oracle, 0);
  const auto w = static_cast<std::size_t>(std::max<std::int64_t>(width, 1));
  for (std::size_t r = 0; r * w < got.size(); ++r) {
    const auto row = [&](const std::vector<double>& v) {
      return std::vector<double>(v.begin() + static_cast<std::ptrdiff_t>(r * w),
                                 v.begin() + static_cast<std::ptrdiff_t>((r + 1) * w));
    };
    close(fmt::format("{} row {}", what, r), row(got), row(oracle), relative * largest(row(oracle)));
  }
}

void Comparison::exactly(const std::string& what, const std::vector<double>& got, const std::vector<double>& oracle) {
  close(what, got, oracle, 0);
}

std::string Comparison::summary() const {
  if (failures_.empty()) return passed() ? worst_ : "nothing was compared";
  std::string text;
  for (std::size_t i = 0; i < std::min<std::size_t>(failures_.size(), 3); ++i) text += (i ? "; " : "") + failures_[i];
  if (failures_.size() > 3) text += fmt::format("; and {} more", failures_.size() - 3);
  return text;
}

Tensor Tensor::real(const Setup& setup, const Case& c, const std::string& name) {
  Tensor t(setup.real, c.shape(name));
  t.set(c.reals(name));
  return t;
}

Tensor Tensor::ints(const Case& c, const std::string& name) {
  Tensor t(DType::i32, c.shape(name));
  const std::vector<std::int32_t> values = c.ints(name);
  std::memcpy(t.bytes_.data(), values.data(), t.bytes_.size());
  return t;
}

Tensor Tensor::scalar(double value) {
  Tensor t(DType::f64, Shape{1});
  t.set({value});
  return t;
}

TensorView Tensor::view() {
  TensorView v;
  v.data = bytes_.data();
  v.dtype = dtype_;
  v.shape = shape_;
  return v;
}

std::vector<double> Tensor::values() const {
  std::vector<double> out(static_cast<std::size_t>(shape_.size()));
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (dtype_ == DType::f64)
      out[i] = reinterpret_cast<const double*>(bytes_.data())[i];
    else
      out[i] = static_cast<double>(reinterpret_cast<const float*>(bytes_.data())[i]);
  }
  return out;
}

void Tensor::set(const std::vector<double>& values) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (dtype_ == DType::f64)
      reinterpret_cast<double*>(bytes_.data())[i] = values[i];
    else
      reinterpret_cast<float*>(bytes_.data())[i] = static_cast<float>(values[i]);
  }
}

}  // namespace stacklab::golden
