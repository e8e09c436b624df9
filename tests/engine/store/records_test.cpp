#include "engine/store/records.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace stacklab::store {
namespace {

constexpr double inf = std::numeric_limits<double>::infinity();

TEST(Records, EveryKindReadsBackExactly) {
  const SessionKey key{"0123456789ab", 3};
  const std::vector<Record> records = {
      {key, StepRecord{7, 1234567890123, 0.1, 1.7e9 + 0.123456, {{"loss", 0.1 + 0.2}, {"up", inf}, {"down", -inf}}}},
      {key, EventRecord{5, 7, 1.5, RunEvent::Kind::checkpoint, "quotes \" and\nlines and ünïcode"}},
      {key, EventRecord{6, 7, 1.5, RunEvent::Kind::spike, "alert", RunEvent::Severity::critical, 0.1 + 0.2}},
      {key, EventRecord{7, 7, 1.5, RunEvent::Kind::non_finite, "alert", RunEvent::Severity::warning, -inf}},
      {key, ResolvedRecord{8, 40, 2.5, RunEvent::Kind::store}},
      {key, FactRecord{"unigram_entropy", 5e-324}},
      {key, ResumedRecord{40}},
      {key, EndRecord{RunState::paused, "stopped", 2.5, 40, 400, 1.5, 1, 2, 3, 4.5}},
  };
  for (const auto& record : records) {
    const std::string line = to_json_line(record);
    EXPECT_EQ(line.find('\n'), std::string::npos);
    const auto back = from_json_line(line);
    ASSERT_TRUE(back) << line;
    EXPECT_EQ(*back, record) << line;
  }
}

TEST(Records, LinesOfVersion1AreRead) {
  const auto back = from_json_line(
      R"({"event":"spike","kind":"event","run":"0123456789ab","sequence":5,"session":3,"step":7,"text":"x","time":1.5})");
  ASSERT_TRUE(back);
  EXPECT_EQ(std::get<EventRecord>(back->body), (EventRecord{5, 7, 1.5, RunEvent::Kind::spike, "x"}));
}

TEST(Records, NotANumberStaysOne) {
  const auto back = from_json_line(to_json_line({{"r", 1}, StepRecord{1, 2, 3, 4, {{"loss", std::nan("")}}}}));
  ASSERT_TRUE(back);
  EXPECT_TRUE(std::isnan(std::get<StepRecord>(back->body).values.at(0).second));
}

TEST(Records, TextThatIsNotUtf8IsCarriedWithoutAnException) {
  const auto back =
      from_json_line(to_json_line({{"r", 1}, EventRecord{1, 1, 1, RunEvent::Kind::info, "bad \xff byte"}}));
  ASSERT_TRUE(back);
  EXPECT_NE(std::get<EventRecord>(back->body).text.find("bad "), std::string::npos);
}

TEST(Records, LinesThatAreCutOffOrForeignAreRefused) {
  const std::string line = to_json_line({{"0123456789ab", 1}, StepRecord{1, 2, 3, 4, {{"loss", 2.5}}}});
  for (std::size_t n = 0; n < line.size(); ++n) EXPECT_FALSE(from_json_line(line.substr(0, n))) << line.substr(0, n);
  EXPECT_FALSE(from_json_line("{}"));
  EXPECT_FALSE(from_json_line("[1, 2]"));
  EXPECT_FALSE(from_json_line(R"({"run":"a","session":1,"kind":"dance"})"));
  // Numbers that no counter holds.
  for (const char* bad : {"1e300", "-1", "1.5", "9007199254740993", "18446744073709551615", "null", "\"7\""}) {
    const std::string number = bad;
    EXPECT_FALSE(from_json_line(R"({"run":"a","session":)" + number + R"(,"kind":"resumed","after_step":1})")) << bad;
    EXPECT_FALSE(from_json_line(R"({"run":"a","session":1,"kind":"resumed","after_step":)" + number + "}")) << bad;
  }
  EXPECT_TRUE(from_json_line(R"({"run":"a","session":1,"kind":"resumed","after_step":9007199254740992})"));
  EXPECT_FALSE(from_json_line(R"({"run":"a","session":1,"kind":"step","step":1,"tokens":1,"seconds":0,"time":0,)"
                              R"("values":[["loss"]]})"));
  EXPECT_FALSE(from_json_line(R"({"run":"a","session":1,"kind":"fact","name":"x","value":"many"})"));
}

TEST(Records, RowsAreWhatTheTablesGet) {
  EXPECT_EQ(row_count({{"r", 1}, StepRecord{1, 1, 1, 1, {{"a", 1}, {"b", 2}}}}), 3);
  EXPECT_EQ(row_count({{"r", 1}, ResumedRecord{1}}), 1);
}

}  // namespace
}  // namespace stacklab::store
