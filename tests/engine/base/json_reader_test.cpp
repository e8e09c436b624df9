#include "engine/base/json_reader.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

namespace stacklab {
namespace {

std::string error_of(std::string_view text) {
  const auto parsed = parse_json_object(text);
  return parsed ? "" : parsed.error();
}

TEST(JsonReader, OnlyWholeShallowObjectsWithEachKeyOnce) {
  EXPECT_EQ(error_of(R"({"a": {"x": 1}, "b": [{"x": 2}, {"x": 3}]})"), "");
  EXPECT_EQ(error_of(""), "is not JSON, or not whole");
  EXPECT_EQ(error_of("{\"a\": 1"), "is not JSON, or not whole");
  EXPECT_EQ(error_of("{} {}"), "is not JSON, or not whole");
  // The parser by itself would stop there, and call it whole.
  using namespace std::string_literals;
  EXPECT_EQ(error_of("{\"a\": 1}\0 garbage"s), "has a NUL byte at 8, which is not JSON");
  EXPECT_EQ(error_of("{\"a\": 1}\0"s), "has a NUL byte at 8, which is not JSON");
  EXPECT_EQ(error_of("[1]"), "is not a JSON object");
  EXPECT_EQ(error_of(R"({"a": 1, "b": 2, "a": 3})"), "has the key \"a\" twice");
  EXPECT_EQ(error_of(R"({"b": [{"x": 2, "x": 3}]})"), "has the key \"x\" twice");
  const auto nested = [](int levels) {
    return "{\"a\":" + std::string(static_cast<std::size_t>(levels), '[') +
           std::string(static_cast<std::size_t>(levels), ']') + "}";
  };
  EXPECT_EQ(error_of(nested(deepest_json - 1)), "");
  EXPECT_EQ(error_of(nested(deepest_json + 1)), "is nested deeper than 64 levels");
  EXPECT_EQ(error_of(nested(1000000)), "is nested deeper than 64 levels");
  EXPECT_NE(error_of("{\"a\":" + std::string(1000000, '[')), "");
}

TEST(JsonReader, TheFirstFieldThatDoesNotFitIsNamed) {
  const auto json = parse_json_object(
      R"({"text": "t", "count": 9007199254740992, "large": 9007199254740993, "huge": 18446744073709551615, "below": -1,
          "half": 0.5, "none": null, "yes": true, "inner": {"list": [1]}})");
  ASSERT_TRUE(json);
  JsonFields good(*json);
  EXPECT_EQ(good.text("text"), "t");
  EXPECT_EQ(good.count("count"), std::int64_t{1} << 53);
  EXPECT_EQ(good.number("half"), 0.5);
  EXPECT_TRUE(std::isnan(good.number_or_nan("none")));
  EXPECT_EQ(good.number_or_nan("half"), 0.5);
  EXPECT_TRUE(good.flag("yes"));
  EXPECT_EQ(JsonFields(good.object("inner")).list("list").size(), 1u);
  EXPECT_EQ(good.error(), "");
  EXPECT_NE(good.find("none"), nullptr);
  EXPECT_EQ(good.find("nothing"), nullptr);

  const auto complaint = [&](auto&& read) {
    JsonFields fields(*json, "top.");
    read(fields);
    fields.fault("later", "is not the first");
    return fields.error();
  };
  EXPECT_EQ(complaint([](JsonFields& f) { f.text("none"); }), "\"top.none\" is missing or not a text");
  for (const char* key : {"large", "huge", "below", "half", "text", "yes", "nothing"})
    EXPECT_EQ(complaint([&](JsonFields& f) { f.count(key); }),
              std::string("\"top.") + key + "\" is missing or not a whole number from 0");
  EXPECT_EQ(complaint([](JsonFields& f) { f.number("none"); }), "\"top.none\" is missing or not a number");
  EXPECT_EQ(complaint([](JsonFields& f) { f.flag("count"); }), "\"top.count\" is missing or not true or false");
  EXPECT_EQ(complaint([](JsonFields& f) { EXPECT_TRUE(f.object("text").empty()); }),
            "\"top.text\" is missing or not an object");
  EXPECT_EQ(complaint([](JsonFields& f) { EXPECT_TRUE(f.list("inner").empty()); }),
            "\"top.inner\" is missing or not a list");
  EXPECT_EQ(complaint([](JsonFields&) {}), "\"top.later\" is not the first");
}

}  // namespace
}  // namespace stacklab
