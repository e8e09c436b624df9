// The safetensors container: 8 bytes of header length, a JSON header, the tensors' bytes. Reading trusts nothing: every
// length and offset is checked against the file before anything is allocated for it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/result.h"

namespace stacklab {

enum class SafetensorsType { f64, f32, f16, bf16, i64, i32, i16, i8, u64, u32, u16, u8, boolean, f8_e4m3, f8_e5m2 };

std::string_view to_string(SafetensorsType type);  // "F32", as in files
std::optional<SafetensorsType> safetensors_type_from_string(std::string_view word);
std::int64_t bytes_per_element(SafetensorsType type);

struct SafetensorsEntry {
  std::string name;
  SafetensorsType type = SafetensorsType::f32;
  std::vector<std::int64_t> shape;  // empty: a scalar
  std::span<const std::byte> bytes;

  std::int64_t elements() const;
};

// Entries' bytes are views: of the mapped file for open (valid while the object lives), of the given bytes for parse.
class Safetensors {
 public:
  // Errors name the file and the cause.
  static Result<Safetensors> open(const std::filesystem::path& file);
  static Result<Safetensors> parse(std::span<const std::byte> bytes, std::string_view source_name);

  // In order of their place in the file.
  const std::vector<SafetensorsEntry>& entries() const { return entries_; }
  const SafetensorsEntry* find(std::string_view name) const;  // nullptr: not there
  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  // The whole file, header included.
  std::span<const std::byte> file_bytes() const { return file_bytes_; }

 private:
  std::shared_ptr<const void> mapping_;
  std::span<const std::byte> file_bytes_;
  std::vector<SafetensorsEntry> entries_;
  std::map<std::string, std::size_t, std::less<>> by_name_;
  std::map<std::string, std::string> metadata_;
};

// Writes atomically. The bytes of the file depend on names, types, shapes, contents and metadata alone, not on the
// order given: wide types first, then by name. Errors: duplicate names, bytes that do not fit type and shape, a name or
// metadata that is not UTF-8, the disk.
Status write_safetensors(const std::filesystem::path& file, std::span<const SafetensorsEntry> entries,
                         const std::map<std::string, std::string>& metadata = {});
// The size of that file, from names, types and shapes alone. Errors as above.
Result<std::int64_t> safetensors_file_size(std::span<const SafetensorsEntry> entries,
                                           const std::map<std::string, std::string>& metadata = {});

}  // namespace stacklab
