#include "engine/base/safetensors.h"

#include <gtest/gtest.h>

#include <cstring>
#include <nlohmann/json.hpp>

#include "engine/base/environment.h"
#include "tests/temporary_folder.h"

namespace stacklab {
namespace {

const std::filesystem::path malformed =
    std::filesystem::path(STACKLAB_SOURCE_DIR) / "tests/golden/malformed/safetensors";

std::string container(std::string header, std::string_view data) {
  const std::uint64_t size = header.size();
  std::string bytes(reinterpret_cast<const char*>(&size), 8);
  return bytes + header + std::string(data);
}

Result<Safetensors> parse(std::string_view bytes) {
  return Safetensors::parse(std::as_bytes(std::span(bytes)), "test");
}

TEST(Safetensors, VerdictsOnOddAndMalformedFiles) {
  const nlohmann::json expected = nlohmann::json::parse(file_text(malformed / "expected.json"));
  int cases = 0;
  for (const nlohmann::json& one : expected["cases"]) {
    const std::string file = one["file"];
    const Result<Safetensors> read = Safetensors::open(malformed / file);
    EXPECT_EQ(read.has_value(), one["outcome"] == "accepted")
        << file << ": " << one["why"] << (read ? "" : "\n" + read.error().message());
    if (!read) {
      EXPECT_NE(read.error().what.find(file), std::string::npos) << read.error().message();
      EXPECT_LT(read.error().message().size(), 700u);
    }
    ++cases;
  }
  EXPECT_EQ(cases, 52);
  EXPECT_LT(peak_resident_bytes(), 400 << 20) << "no large allocation for a small file";
}

TEST(Safetensors, WhatTheAcceptedFilesHold) {
  const Safetensors unsorted = Safetensors::open(malformed / "08_unsorted_header.safetensors").value();
  EXPECT_EQ(unsorted.entries().size(), 2u);
  EXPECT_LT(unsorted.entries()[0].bytes.data(), unsorted.entries()[1].bytes.data());
  EXPECT_EQ(Safetensors::open(malformed / "06_metadata.safetensors")->metadata().size(), 2u);
  const Safetensors nul = Safetensors::open(malformed / "48_nul_in_name.safetensors").value();
  EXPECT_NE(nul.entries()[0].name.find('\0'), std::string::npos);
  const Safetensors scalar = Safetensors::open(malformed / "05_rank0.safetensors").value();
  EXPECT_TRUE(scalar.entries()[0].shape.empty());
  EXPECT_EQ(scalar.entries()[0].elements(), 1);
  const Safetensors valid = Safetensors::open(malformed / "00_valid.safetensors").value();
  float values[2];
  ASSERT_EQ(valid.entries()[0].bytes.size(), sizeof values);
  std::memcpy(values, valid.entries()[0].bytes.data(), sizeof values);
  EXPECT_EQ(values[0], 1.0f);
  EXPECT_EQ(values[1], 2.0f);
}

TEST(Safetensors, FileErrors) {
  const TemporaryFolder folder;
  for (const auto& bad : {folder.path(), folder / "missing", std::filesystem::path("/dev/null")}) {
    const Result<Safetensors> read = Safetensors::open(bad);
    ASSERT_FALSE(read);
    EXPECT_NE(read.error().what.find(bad.string()), std::string::npos);
  }
}

TEST(Safetensors, HeadersOfManySizes) {
  // Headers around powers of ten, padded with spaces: legal.
  for (const std::size_t size : {99'993u, 99'994u, 99'999u, 100'000u, 100'001u}) {
    std::string header = R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})";
    header.resize(size, ' ');
    EXPECT_TRUE(parse(container(header, "x"))) << size;
  }
}

TEST(Safetensors, CauseOfEachKind) {
  const auto cause = [](std::string_view bytes) {
    const Result<Safetensors> read = parse(bytes);
    return read ? std::string("accepted") : read.error().what;
  };
  const auto one = [&](std::string entry, std::string_view data) {
    return cause(container("{\"a\":" + entry + "}", data));
  };
  EXPECT_NE(cause("<!DOCTYPE html><html>").find("web page"), std::string::npos);
  EXPECT_NE(one(R"({"dtype":"U8","shape":[2],"data_offsets":[0,2]})", "x").find("1 bytes of data"), std::string::npos);
  EXPECT_NE(one(R"({"dtype":"U8","shape":[2],"data_offsets":[0,2]})", "xyz").find("1 bytes after the last"),
            std::string::npos);
  EXPECT_NE(one(R"({"dtype":"U8","dtype":"U8","shape":[2],"data_offsets":[0,2]})", "xy").find("occurs twice"),
            std::string::npos);
  EXPECT_NE(one(R"({"dtype":"F32","shape":[2],"data_offsets":[0,2]})", "xy").find("needs 8"), std::string::npos);
  EXPECT_NE(one(R"({"dtype":"Q4","shape":[2],"data_offsets":[0,2]})", "xy").find("unknown dtype \"Q4\""),
            std::string::npos);
  EXPECT_NE(
      cause(
          container(
              R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})",
              "xy"))
          .find("occurs twice"),
      std::string::npos);
}

// Every prefix, and every single changed byte, of a good file is either read or refused: nothing crashes or reads
// outside.
TEST(Safetensors, SurvivesDamageAnywhere) {
  const std::string good = container(
      R"({"__metadata__":{"k":"v"},"a":{"dtype":"F32","shape":[2,1],"data_offsets":[0,8]},"b":{"dtype":"U8","shape":[0],"data_offsets":[8,8]}})",
      "12345678");
  ASSERT_TRUE(parse(good));
  for (std::size_t n = 0; n < good.size(); ++n) EXPECT_FALSE(parse(std::string_view(good).substr(0, n))) << n;
  for (std::size_t i = 0; i < good.size(); ++i)
    for (const int change : {1, 2, 0x10, 0x80, 0xff}) {
      std::string bad = good;
      bad[i] = static_cast<char>(bad[i] ^ change);
      const Result<Safetensors> read = parse(bad);
      if (!read) continue;
      for (const SafetensorsEntry& entry : read->entries())
        EXPECT_EQ(entry.bytes.size(), static_cast<std::size_t>(entry.elements() * bytes_per_element(entry.type)));
    }
}

TEST(Safetensors, RoundTripOfEveryTypeWithDeterministicBytes) {
  const TemporaryFolder folder;
  const std::string data(8 * 6, 'd');
  std::vector<SafetensorsEntry> entries;
  for (const SafetensorsType type :
       {SafetensorsType::u8, SafetensorsType::f64, SafetensorsType::bf16, SafetensorsType::boolean,
        SafetensorsType::i32, SafetensorsType::f32, SafetensorsType::i64, SafetensorsType::f16})
    entries.push_back({"tensor." + std::string(to_string(type)),
                       type,
                       {2, 3},
                       std::as_bytes(std::span(data)).first(static_cast<std::size_t>(6 * bytes_per_element(type)))});
  entries.push_back({"scalar \"\n", SafetensorsType::f32, {}, std::as_bytes(std::span(data)).first(4)});
  entries.push_back({"empty", SafetensorsType::f32, {3, 0}, {}});
  ASSERT_TRUE(write_safetensors(folder / "a", entries, {{"step", "12"}, {"k", "ü"}}));
  std::reverse(entries.begin(), entries.end());
  ASSERT_TRUE(write_safetensors(folder / "b", entries, {{"k", "ü"}, {"step", "12"}}));
  EXPECT_EQ(file_text(folder / "a"), file_text(folder / "b"));

  const Safetensors read = Safetensors::open(folder / "a").value();
  EXPECT_EQ(read.metadata().at("step"), "12");
  EXPECT_EQ(read.metadata().at("k"), "ü");
  ASSERT_EQ(read.entries().size(), entries.size());
  for (const SafetensorsEntry& entry : entries) {
    const SafetensorsEntry* found = read.find(entry.name);
    ASSERT_NE(found, nullptr) << entry.name;
    EXPECT_EQ(found->type, entry.type);
    EXPECT_EQ(found->shape, entry.shape);
    EXPECT_TRUE(std::ranges::equal(found->bytes, entry.bytes));
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(found->bytes.data()) %
                  static_cast<std::uintptr_t>(bytes_per_element(entry.type)),
              0u);
  }
  EXPECT_EQ(read.find("tensor"), nullptr);
  ASSERT_TRUE(write_safetensors(folder / "none", {}));
  EXPECT_TRUE(Safetensors::open(folder / "none")->entries().empty());
}

TEST(Safetensors, WriterRefusesWhatItsReaderWould) {
  const TemporaryFolder folder;
  const std::string data = "12345678";
  const auto bytes = std::as_bytes(std::span(data));
  const SafetensorsEntry good{"a", SafetensorsType::f32, {2}, bytes};
  for (const std::vector<SafetensorsEntry>& bad :
       std::vector<std::vector<SafetensorsEntry>>{{good, good},
                                                  {{"a", SafetensorsType::f32, {3}, bytes}},
                                                  {{"a", SafetensorsType::f32, {-2}, bytes}},
                                                  {{"a", SafetensorsType::f32, {std::int64_t{1} << 62, 4}, {}}},
                                                  {{"__metadata__", SafetensorsType::f32, {2}, bytes}},
                                                  {{"\xff", SafetensorsType::f32, {2}, bytes}}}) {
    const Status status = write_safetensors(folder / "file", bad);
    ASSERT_FALSE(status);
    EXPECT_NE(status.error().what.find("file"), std::string::npos);
  }
  EXPECT_FALSE(write_safetensors(folder / "file", std::vector{good}, {{"k", "\xff"}}));
  EXPECT_FALSE(std::filesystem::exists(folder / "file"));
}

}  // namespace
}  // namespace stacklab
