#include "engine/base/json_writer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "engine/base/text.h"

namespace stacklab {
namespace {

TEST(JsonWriter, CompactAndIndented) {
  const auto fill = [](JsonWriter& w) {
    w.begin_object();
    w.member("a", 1);
    w.key("b");
    w.begin_array();
    w.value(true);
    w.null();
    w.value("x");
    w.begin_object();
    w.end_object();
    w.end_array();
    w.member("c", 0.1);
    w.end_object();
  };
  JsonWriter compact, pretty(2);
  fill(compact);
  fill(pretty);
  EXPECT_EQ(compact.text(), R"({"a":1,"b":[true,null,"x",{}],"c":0.1})");
  EXPECT_EQ(pretty.text(),
            "{\n  \"a\": 1,\n  \"b\": [\n    true,\n    null,\n    \"x\",\n    {}\n  ],\n  \"c\": 0.1\n}");
  EXPECT_EQ(nlohmann::json::parse(compact.text()), nlohmann::json::parse(pretty.text()));
}

TEST(JsonWriter, AnyBytesBecomeValidJson) {
  std::string all;
  for (int c = 0; c < 256; ++c) all += static_cast<char>(c);
  for (const std::string& text :
       {all, std::string("ü€😀\"\\\n"), std::string("\xC0\x80\xED\xA0\x80\xF5\x80\x80\x80\xE2\x82")}) {
    const nlohmann::json read = nlohmann::json::parse(json_quoted(text));
    EXPECT_TRUE(read.is_string());
  }
  EXPECT_EQ(nlohmann::json::parse(json_quoted("ü€😀\"\\\n")), "ü€😀\"\\\n");
  EXPECT_EQ(json_quoted("a\xffz"), "\"a\uFFFDz\"");
}

TEST(JsonWriter, Numbers) {
  JsonWriter w;
  w.begin_array();
  for (const double x : {1.0 / 3, 1e-5, 1e300, -0.0}) w.value(x);
  w.value(std::nan(""));
  w.value(-HUGE_VAL);
  w.value(INT64_MIN);
  w.value(UINT64_MAX);
  w.end_array();
  const nlohmann::json read = nlohmann::json::parse(w.text());
  EXPECT_EQ(read[0].get<double>(), 1.0 / 3);
  EXPECT_EQ(read[1].get<double>(), 1e-5);
  EXPECT_EQ(read[4], "nan");
  EXPECT_EQ(read[5], "-inf");
  EXPECT_EQ(read[6].get<std::int64_t>(), INT64_MIN);
  EXPECT_EQ(read[7].get<std::uint64_t>(), UINT64_MAX);
}

TEST(Text, Printable) {
  EXPECT_EQ(printable("ok ü"), "ok ü");
  EXPECT_EQ(printable("a\n\x1b[0m\x7f\xff"), "a??[0m??");
  EXPECT_EQ(printable(std::string(100, 'a')), std::string(80, 'a') + "...");
  EXPECT_EQ(printable("aü", 2), "a...") << "never half a character";
}

}  // namespace
}  // namespace stacklab
