// What the shell keeps: settings, layouts, recents, notices; and what it makes of dropped files.
#include <QAbstractItemModelTester>
#include <QDir>
#include <QFile>
#include <QJsonDocument>
#include <QSignalSpy>

#include "tests/temporary_folder.h"
#include "tests/ui/ui_test.h"
#include "ui/shell/dropped.h"
#include "ui/shell/notice_model.h"
#include "ui/shell/recents_model.h"
#include "ui/shell/settings.h"
#include "ui/shell/status_strip.h"

namespace stacklab::ui {
namespace {

QString name_in(const TemporaryFolder& folder, const char* name) {
  return QString::fromStdString((folder / name).string());
}

TEST(ShellSettings, ComeBackAsTheyWere) {
  TemporaryFolder folder;
  const QString file = name_in(folder, "deep/er/workbench.json");
  {
    SettingsKeeper keeper(file);
    keeper.change([](Settings& s) {
      s.theme = ThemeMode::dark;
      s.zoom = 130;
      s.smoothing = 0.5;
      s.quiet_kinds = QStringList{"spike"};
      s.shortcuts["a"] = QStringLiteral("x");
      s.read_notices["w"] = QJsonObject{{"to", 17.5}};
    });
    keeper.add_recent({Recent::Kind::workspace, QStringLiteral("/a b/ü")});
    keeper.add_recent({Recent::Kind::config, QStringLiteral("/c.json")});
    keeper.add_recent({Recent::Kind::workspace, QStringLiteral("/a b/ü")});
    keeper.change_layouts([](Layouts& l) {
      l.last = {QStringLiteral("settings"), "docks", false, true};
      l.perspectives.append({QStringLiteral("narrow & dark"), {{}, "d", true, false}});
    });
  }  // the last of it is written before the keeper is gone
  SettingsKeeper again(file);
  const Settings& s = again.settings();
  EXPECT_TRUE(again.take_note().isEmpty());
  EXPECT_EQ(s.theme, ThemeMode::dark);
  EXPECT_EQ(s.zoom, 130);
  EXPECT_EQ(s.smoothing, 0.5);
  EXPECT_EQ(s.quiet_kinds, QStringList{"spike"});
  EXPECT_EQ(s.shortcuts["a"].toString(), "x");
  EXPECT_EQ(s.read_notices["w"].toObject()["to"].toDouble(), 17.5);
  ASSERT_EQ(s.recents.size(), 2);
  EXPECT_EQ(s.recents[0].path, QStringLiteral("/a b/ü")) << "used again, it stands first, and once";
  EXPECT_EQ(s.recents[1].kind, Recent::Kind::config);
  EXPECT_EQ(again.layouts().last, (Arrangement{QStringLiteral("settings"), "docks", false, true}));
  ASSERT_NE(again.layouts().find("narrow & dark"), nullptr);
  EXPECT_FALSE(again.layouts().find("narrow & dark")->arrangement.list);
}

TEST(ShellSettings, ABrokenLayoutCostsNoSettings) {
  TemporaryFolder folder;
  const QString file = name_in(folder, "workbench.json"), layout = Layouts::file_beside(file);
  {
    SettingsKeeper keeper(file);
    keeper.change([](Settings& s) { s.zoom = 140; });
    keeper.change_layouts([](Layouts& l) { l.perspectives.append({QStringLiteral("mine"), {}}); });
  }
  const std::string whole = file_text(layout.toStdString());
  ASSERT_GT(whole.size(), 20u);
  for (const std::size_t cut : {std::size_t{0}, std::size_t{1}, whole.size() / 2, whole.size() - 3}) {
    put_file(layout.toStdString(), whole.substr(0, cut));
    SettingsKeeper keeper(file);
    EXPECT_EQ(keeper.settings().zoom, 140);
    EXPECT_TRUE(keeper.layouts().perspectives.isEmpty());
    const QString note = keeper.take_note();
    EXPECT_TRUE(note.contains(QLatin1String("layout.json.broken"))) << cut << note.toStdString();
    EXPECT_TRUE(keeper.take_note().isEmpty()) << "told once";
    EXPECT_EQ(file_text((layout + QStringLiteral(".broken")).toStdString()), whole.substr(0, cut));
  }
  put_file(layout.toStdString(),
           R"({"version": 1, "perspectives": [{"name": ""}, 3, {"name": "a"}, {"name": "a"}], "last": []})");
  SettingsKeeper odd(file);
  EXPECT_EQ(odd.layouts().perspectives.size(), 1);
  EXPECT_TRUE(odd.layouts().last.inspector);
}

TEST(ShellSettings, WhatCannotBeWrittenIsSaidOnceAndHarmsNothing) {
  TemporaryFolder folder;
  put_file(folder / "afile", "x");
  const QString file = name_in(folder, "afile/workbench.json");  // a folder cannot be made there, whoever one is
  SettingsKeeper keeper(file);
  QSignalSpy failed(keeper.files(), &FileKeeper::failed);
  for (int zoom : {110, 120}) {
    keeper.change([&](Settings& s) { s.zoom = zoom; });
    bool done = false;
    keeper.files()->flush([&] { done = true; });
    ASSERT_TRUE(wait_until([&] { return done; }));
  }
  ASSERT_EQ(failed.count(), 1);
  EXPECT_TRUE(failed[0][0].toString().contains(QLatin1String("workbench.json")));
  EXPECT_EQ(keeper.settings().zoom, 120);
}

TEST(RecentsModel, FollowsWhatIsOpenedAndForgotten) {
  SettingsKeeper keeper({});
  RecentsModel model(&keeper);
  QAbstractItemModelTester tester(&model, QAbstractItemModelTester::FailureReportingMode::Fatal);
  for (int i = 0; i < 40; ++i) keeper.add_recent({Recent::Kind::workspace, QStringLiteral("/w/%1").arg(i)});
  EXPECT_EQ(model.rowCount(), 30);
  EXPECT_EQ(model.index(0).data().toString(), "39");
  EXPECT_EQ(model.index(0).data(RecentsModel::path_role).toString(), "/w/39");
  keeper.add_recent({Recent::Kind::config, QStringLiteral("/c/first.json")});
  EXPECT_TRUE(model.index(0).data().toString().contains(QLatin1String("config")));
  model.forget(model.at(0));
  EXPECT_EQ(model.index(0).data().toString(), "39");
  model.clear();
  EXPECT_EQ(model.rowCount(), 0);
}

Notification notice(int number, const char* kind = "spike") {
  Notification n;
  n.key = QStringLiteral("run/%1").arg(number);
  n.kind = QLatin1String(kind);
  n.text = QStringLiteral("Loss spike %1").arg(number);
  n.run_name = QStringLiteral("first-run");
  n.run = "0123456789ab";
  n.step = number * 10;
  n.unix_time = 1000 + number;
  return n;
}

TEST(NoticeModel, NewestFirstCountedAndRead) {
  NoticeModel model;
  QAbstractItemModelTester tester(&model, QAbstractItemModelTester::FailureReportingMode::Fatal);
  model.set_quiet_kinds({QStringLiteral("warning")});
  model.add({notice(2), notice(1), notice(2), notice(3, "warning")});
  EXPECT_EQ(model.rowCount(), 2) << "known ones and quiet kinds are not shown";
  EXPECT_EQ(model.unread(), 2);
  EXPECT_EQ(model.at(0).step, 20);
  model.mark_read(1);
  EXPECT_EQ(model.unread(), 1);
  EXPECT_TRUE(model.index(0).data(NoticeModel::unread_role).toBool());
  EXPECT_TRUE(model.index(0).data(Qt::AccessibleTextRole).toString().contains(QLatin1String("unread")));
  model.add({notice(4)});
  EXPECT_EQ(model.at(0).step, 40);
  EXPECT_EQ(model.unread(), 2);
  model.set_quiet_kinds({});
  EXPECT_EQ(model.rowCount(), 4) << "what came of a quiet kind is there when it is quiet no more";
  model.mark_all_read();
  EXPECT_EQ(model.unread(), 0);
  model.mark_read(0, false);
  EXPECT_EQ(model.unread(), 1);

  // The same in a model that begins anew and hears of all of it again.
  NoticeModel again;
  again.restore(QJsonDocument::fromJson(QJsonDocument(model.read_state()).toJson()).object());
  again.add({notice(1), notice(2), notice(4), notice(5)});
  EXPECT_EQ(again.unread(), 2);
  EXPECT_TRUE(again.is_unread(0));   // 5 is new
  EXPECT_TRUE(again.is_unread(1));   // 4 was marked as unread
  EXPECT_FALSE(again.is_unread(2));  // 2 was read
}

TEST(NoticeModel, HoldsTheNewestOnly) {
  NoticeModel model;
  QAbstractItemModelTester tester(&model, QAbstractItemModelTester::FailureReportingMode::Fatal);
  std::vector<Notification> many;
  for (int i = 0; i < NoticeModel::most_rows + 20; ++i) many.push_back(notice(i));
  model.add(std::move(many));
  EXPECT_EQ(model.rowCount(), NoticeModel::most_rows);
  EXPECT_EQ(model.at(0).step, (NoticeModel::most_rows + 19) * 10);
}

TEST(NoticeModel, TheEndOfARunIsTold) {
  RunInfo before, after;
  before.summary.state = RunState::running;
  before.summary.name = after.summary.name = "wide";
  before.summary.id = after.summary.id = "0123456789ab";
  after.summary.state = RunState::killed;
  after.summary.cause = "signal 9";
  const auto killed = notice_of_change(before, after, 5);
  ASSERT_TRUE(killed);
  EXPECT_TRUE(killed->text.contains(QLatin1String("signal 9")));
  EXPECT_EQ(killed->color, Token::bad);
  after.summary.state = RunState::paused;
  EXPECT_FALSE(notice_of_change(before, after, 5)) << "the user knows that";
  before.summary.state = RunState::finished;
  after.summary.state = RunState::finished;
  EXPECT_FALSE(notice_of_change(before, after, 5));
  JobOutcome outcome;
  outcome.job = 3;
  outcome.error = Error{Error::Kind::failed, "the corpus kjv cannot be had", "name another"};
  ASSERT_TRUE(notice_of_outcome(outcome, 6));
  EXPECT_TRUE(notice_of_outcome(outcome, 6)->text.contains(QLatin1String("kjv cannot be had")));
  outcome.run = "0123456789ab";
  EXPECT_FALSE(notice_of_outcome(outcome, 6)) << "its run tells of it";
  outcome.run.clear();
  outcome.error->kind = Error::Kind::stopped;
  EXPECT_FALSE(notice_of_outcome(outcome, 6));
}

QString words_of(const QWidget& widget) {
  QStringList words;
  for (const QLabel* label : widget.findChildren<QLabel*>())
    if (!label->isHidden()) words << label->text();
  return words.join(QLatin1Char('\n'));
}

TEST(StatusStrip, ShowsTheMachineAndRaisesAlarms) {
  StatusStrip strip(QStringLiteral("demo"), QStringLiteral("/tmp/demo"));
  strip.resize(1500, 28);
  strip.show();
  SystemInfo info;
  info.threads = 8;
  info.isa = "AVX2";
  info.memory_free = 5'900'000'000;
  info.disk_free = 41'200'000'000;
  strip.show_system(info);
  for (const char* part : {"CPU, 8 threads, AVX2", "RAM 5.9 GB free", "41.2 GB free"})
    EXPECT_TRUE(words_of(strip).contains(QLatin1String(part))) << part << words_of(strip).toStdString();
  EXPECT_FALSE(words_of(strip).contains(QLatin1String("only")));
  info.gpus = {"A100", "A100"};
  info.disk_free = 900'000'000;
  strip.show_system(info);
  EXPECT_TRUE(words_of(strip).contains(QStringLiteral("2 × A100"))) << words_of(strip).toStdString();
  EXPECT_TRUE(words_of(strip).contains(QLatin1String("only 900.0 MB free"))) << "said in words, not by colour alone";
  info.gpus = {"A100", "L4"};
  strip.show_system(info);
  EXPECT_TRUE(words_of(strip).contains(QLatin1String("A100 and 1 more")));

  WorkspaceSnapshot snapshot;
  RunInfo run;
  run.summary.name = "wide";
  run.summary.state = RunState::running;
  run.summary.step = 90;
  run.summary.total_steps = 250;
  run.summary.seconds = 90;
  snapshot.runs = {run};
  snapshot.wal_bytes = StatusStrip::wal_alarm_bytes;
  strip.show_snapshot(snapshot);
  EXPECT_TRUE(words_of(strip).contains(QLatin1String("36 %, 2 min 40 s left"))) << words_of(strip).toStdString();
  EXPECT_TRUE(words_of(strip).contains(QLatin1String("1 running")));
  EXPECT_FALSE(words_of(strip).contains(QLatin1String("too large")));
  ++snapshot.wal_bytes;
  strip.show_snapshot(snapshot);
  EXPECT_TRUE(words_of(strip).contains(QLatin1String("WAL 67.0 MB: too large"))) << words_of(strip).toStdString();
}

TEST(Dropped, KnowsWhatThingsAre) {
  TemporaryFolder folder;
  const auto kind = [&](const char* name) { return classify(name_in(folder, name)).kind; };
  put_file(folder / "run.json", R"({"model": {"d_model": 64}})");
  put_file(folder / "broken.json", R"({"model": {"d_mod)");
  put_file(folder / "tokenizer.json", R"({"model": {"type": "BPE", "vocab": {"a": 0}, "merges": []}})");
  put_file(folder / "other.json", R"({"weather": "fine"})");
  put_file(folder / "story.txt", "Once upon a time – so it begins.\n");
  put_file(folder / "strange name ü.md", std::string(70'000, 'a') + "ü");
  put_file(folder / "noise.txt", std::string("ab\0cd", 5));
  put_file(folder / "latin1.txt", "caf\xe9 is not UTF-8 here");
  put_file(folder / "empty.txt", "");
  put_file(folder / "pages.jsonl", "{}\n");
  put_file(folder / "w/stacklab.db", "SQLite format 3");
  put_file(folder / "w/runs/wide-0123456789ab/ckpt_step40/model.safetensors", "x");
  put_file(folder / "hf/config.json", "{}");
  put_file(folder / "hf/model.safetensors", "x");
  put_file(folder / "plain/readme", "x");
  using Kind = Dropped::Kind;
  EXPECT_EQ(kind("run.json"), Kind::config);
  EXPECT_EQ(kind("broken.json"), Kind::config) << "reading it says what is wrong";
  EXPECT_EQ(kind("tokenizer.json"), Kind::tokenizer);
  EXPECT_EQ(kind("other.json"), Kind::unknown);
  EXPECT_EQ(kind("story.txt"), Kind::text);
  EXPECT_EQ(kind("strange name ü.md"), Kind::text);
  EXPECT_EQ(kind("noise.txt"), Kind::unknown);
  EXPECT_EQ(kind("latin1.txt"), Kind::unknown);
  EXPECT_EQ(kind("empty.txt"), Kind::unknown);
  EXPECT_EQ(kind("pages.jsonl"), Kind::corpus);
  EXPECT_EQ(kind("w"), Kind::workspace);
  EXPECT_EQ(kind("w/stacklab.db"), Kind::workspace);
  EXPECT_EQ(kind("hf"), Kind::model);
  EXPECT_EQ(kind("hf/model.safetensors"), Kind::model);
  EXPECT_EQ(kind("plain"), Kind::unknown);
  EXPECT_EQ(kind("nowhere"), Kind::missing);
  for (const char* name :
       {"w/runs/wide-0123456789ab/ckpt_step40", "w/runs/wide-0123456789ab/ckpt_step40/model.safetensors"}) {
    const Dropped checkpoint = classify(name_in(folder, name));
    EXPECT_EQ(checkpoint.kind, Kind::checkpoint) << name;
    EXPECT_EQ(checkpoint.run, "0123456789ab");
    EXPECT_EQ(checkpoint.step, 40);
  }
  EXPECT_EQ(classify(name_in(folder, "w/runs/wide-0123456789ab")).run, "0123456789ab");
  // A letter cut by the end of what is read is no error; a wrong byte is.
  put_file(folder / "cut.txt", std::string((64 << 10) - 1, 'a') + "ü and on");
  EXPECT_EQ(kind("cut.txt"), Kind::text);
}

TEST(Dropped, EveryKindHasAnAnswer) {
  for (int kind = 0; kind <= static_cast<int>(Dropped::Kind::unknown); ++kind) {
    Dropped dropped;
    dropped.kind = static_cast<Dropped::Kind>(kind);
    dropped.path = QStringLiteral("/some/thing.txt");
    const DropAnswer answer = answer_for(dropped);
    EXPECT_TRUE(answer.fact.contains(QLatin1String("thing.txt"))) << kind;
    EXPECT_FALSE(answer.help.isEmpty()) << kind;
  }
}

}  // namespace
}  // namespace stacklab::ui
