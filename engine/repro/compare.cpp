#include "engine/repro/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <set>

#include "engine/base/safetensors.h"
#include "engine/base/text.h"
#include "engine/run/run.h"

namespace stacklab {
namespace {

bool same_bits(double a, double b) {
  return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b) || (std::isnan(a) && std::isnan(b));
}

// One element as a number where its type is one that people read; else its bytes.
std::string element_text(const SafetensorsEntry& e, std::int64_t index) {
  const auto size = static_cast<std::size_t>(bytes_per_element(e.type));
  const std::byte* at = e.bytes.data() + static_cast<std::size_t>(index) * size;
  if (e.type == SafetensorsType::f32) {
    float v = 0;
    std::memcpy(&v, at, sizeof v);
    return shortest(v);
  }
  if (e.type == SafetensorsType::f64) {
    double v = 0;
    std::memcpy(&v, at, sizeof v);
    return shortest(v);
  }
  std::string hex = "0x";
  for (std::size_t i = size; i-- > 0;) hex += fmt::format("{:02x}", static_cast<unsigned>(at[i]));
  return hex;
}

std::string kind_of(const SafetensorsEntry* e) {
  return e ? fmt::format("{} [{}]", to_string(e->type), fmt::join(e->shape, ", ")) : "missing";
}

// Of one tensor; none: the same bytes.
std::optional<Difference> compare_entries(const SafetensorsEntry* a, const SafetensorsEntry* b) {
  if (!a || !b || a->type != b->type || a->shape != b->shape) return Difference{0, {}, {}, -1, kind_of(a), kind_of(b)};
  const auto at = std::mismatch(a->bytes.begin(), a->bytes.end(), b->bytes.begin());
  if (at.first == a->bytes.end()) return std::nullopt;
  const std::int64_t element = (at.first - a->bytes.begin()) / bytes_per_element(a->type);
  return Difference{0, {}, {}, element, element_text(*a, element), element_text(*b, element)};
}

}  // namespace

bool is_repeatable(std::string_view name) {
  return name != metric::tokens_per_second && name != metric::mfu_6nd && name != metric::mfu_attention &&
         name != metric::mfu_documents && name != metric::hfu && name != metric::process_bytes;
}

Comparison compare_metrics(const MetricTable& recorded, const MetricTable& replayed, std::int64_t first_step,
                           std::int64_t last_step) {
  Comparison result;
  for (const auto& [name, values] : recorded) {
    const auto again = replayed.find(name);
    if (!is_repeatable(name) || again == replayed.end()) continue;
    for (auto at = values.lower_bound(first_step); at != values.end() && at->first <= last_step; ++at) {
      const auto other = again->second.find(at->first);
      if (other == again->second.end()) continue;
      ++result.compared;
      if (same_bits(at->second, other->second) || (result.first && result.first->step <= at->first)) continue;
      result.first = Difference{at->first, name, {}, -1, shortest(at->second), shortest(other->second)};
    }
  }
  return result;
}

Result<Comparison> compare_tensors(const std::filesystem::path& recorded, const std::filesystem::path& replayed,
                                   std::int64_t step) {
  const auto a = Safetensors::open(recorded), b = Safetensors::open(replayed);
  if (!a) return tl::unexpected(a.error());
  if (!b) return tl::unexpected(b.error());
  std::set<std::string> names;
  for (const Safetensors* file : {&*a, &*b})
    for (const SafetensorsEntry& e : file->entries()) names.insert(e.name);
  Comparison result;
  for (const std::string& name : names) {
    ++result.compared;
    if (result.first) continue;
    if ((result.first = compare_entries(a->find(name), b->find(name)))) {
      result.first->step = step;
      result.first->name = name;
      result.first->file = recorded.filename().string();
    }
  }
  return result;
}

}  // namespace stacklab
