// The monitor's panels: attention logits by head, axes other than steps, where panels stand, what is kept and saved.
#include <QAbstractItemModelTester>
#include <QComboBox>
#include <QDialog>
#include <QFile>
#include <QJsonDocument>
#include <QSignalSpy>
#include <QSlider>
#include <QTableView>
#include <QTemporaryDir>
#include <cmath>

#include "tests/ui/window_testing.h"
#include "ui/models/event_list_model.h"
#include "ui/plots/series_table.h"
#include "ui/plots/time_bars.h"
#include "ui/theme/numbers.h"

namespace stacklab::ui {
namespace {

HeatCells sample_cells() {
  HeatCells cells;
  cells.rows = 2;
  cells.columns = 3;
  cells.limit = 100;
  cells.values = {0, 50, 99.9, 100, 150, std::nan("")};
  return cells;
}

TEST(HeatMap, ColoursBreakAtTheLimitAndOnlyThereIsANotch) {
  look().set_mode(ThemeMode::light);
  HeatMap map(QStringLiteral("layer"), QStringLiteral("head"));
  map.resize(400, 240);
  map.set_cells(sample_cells());
  map.show();
  const QImage image = map.grab().toImage();
  const auto middle = [&](int row, int column) {
    return image.pixelColor(map.cell_rect(row, column).center().toPoint());
  };
  EXPECT_TRUE(close_to(middle(0, 0), QColor(0xF1F3F8), 3));
  EXPECT_TRUE(close_to(middle(0, 1), QColor(0x94ACDF), 3));
  EXPECT_TRUE(close_to(middle(0, 2), QColor(0x34489C), 4));
  EXPECT_TRUE(close_to(middle(1, 0), QColor(0xF0924A), 3));
  EXPECT_TRUE(close_to(middle(1, 1), QColor(0xC93A0C), 3));
  for (int row = 0; row < 2; ++row)
    for (int column = 0; column < 3; ++column) {
      const QRectF cell = map.cell_rect(row, column);
      const QRect corner(QPoint(static_cast<int>(cell.right()) - 5, static_cast<int>(cell.top())), QSize(5, 5));
      EXPECT_EQ(count_pixels(image, theme()[Token::text], corner, 40) > 4, row == 1 && column < 2)
          << row << ' ' << column;
    }
  EXPECT_EQ(map.cells().over(), 2);
}

TEST(HeatMap, IsWorkedByMouseAndKeys) {
  HeatMap map(QStringLiteral("layer"), QStringLiteral("head"));
  map.resize(400, 240);
  map.set_cells(sample_cells());
  map.show();
  QSignalSpy chosen(&map, &HeatMap::cell_chosen);
  QTest::mouseClick(&map, Qt::LeftButton, {}, map.cell_rect(1, 1).center().toPoint());
  ASSERT_EQ(chosen.size(), 1);
  EXPECT_EQ(chosen[0], (QVariantList{1, 1}));
  QTest::keyClick(&map, Qt::Key_Left);
  QTest::keyClick(&map, Qt::Key_Left);  // there is nothing further left
  QTest::keyClick(&map, Qt::Key_Up);
  EXPECT_EQ(map.selected(), QPoint(0, 0));
  EXPECT_TRUE(map.accessibleDescription().contains(QLatin1String("layer 0")));
}

TEST(Layout, ReadsBackAndKeepsOutWhatIsNotThere) {
  for (const auto& [name, layout] : MonitorCharts::perspectives()) {
    const QStringList known = layout.panels();
    EXPECT_EQ(PanelLayout::from_json(layout.to_json(), known), layout) << name.toStdString();
    // A panel of a later version, and one that stands there twice.
    QStringList fewer = known;
    fewer.removeOne(QStringLiteral("loss"));
    QJsonArray twice = layout.to_json();
    for (const QJsonValue& row : layout.to_json()) twice.append(row);
    EXPECT_EQ(PanelLayout::from_json(twice, fewer).panels(), fewer);
  }
  const QJsonArray odd =
      QJsonDocument::fromJson(R"([1, {"height": 1e300, "columns": [{"panels": [{"panel": "a", "height": -3}]}]}])")
          .array();
  const PanelLayout mended = PanelLayout::from_json(odd, {QStringLiteral("a")});
  ASSERT_EQ(mended.panels(), QStringList{QStringLiteral("a")});
  EXPECT_GT(mended.rows[0].columns[0].places[0].height, 0);
  EXPECT_LE(mended.rows[0].height, 20);
}

TEST(Layout, PanelsMoveGoAndComeBack) {
  PanelLayout layout = MonitorCharts::perspectives().front().second;
  const QStringList before = layout.panels();
  layout.move(before[0], 1);
  EXPECT_EQ(layout.panels()[0], before[1]);
  EXPECT_EQ(layout.panels()[1], before[0]);
  layout.move(layout.panels().last(), 1);  // there is no place behind the last
  layout.remove(before[2]);
  EXPECT_FALSE(layout.panels().contains(before[2]));
  layout.add(before[2]);
  layout.add(before[2]);
  EXPECT_EQ(layout.panels().count(before[2]), 1);
}

TEST(Axis, EveryStepHasItsPlaceAndAClockSetBackFoldsNothing) {
  Series rows, values;
  const std::vector<double> steps{1, 2, 4, 5}, clock{0, 10, 5, 40};
  rows.append(steps, clock);
  values.append(std::vector<double>{1, 3, 4, 5, 6}, std::vector<double>{5, 4, 3, 2, 1});
  MappedX mapped;
  mapped.update(values, &rows, 2);
  const auto xs = mapped.xs(values);
  // Step 3 lies between its neighbours' rows; step 4 would go back; step 6 has no place yet.
  EXPECT_EQ(std::vector<double>(xs.begin(), xs.end()), (std::vector<double>{0, 15, 15, 80}));
  rows.append(std::vector<double>{6}, std::vector<double>{50});
  mapped.update(values, &rows, 2);
  EXPECT_EQ(mapped.xs(values).size(), 5u);
  EXPECT_EQ(mapped.xs(values).back(), 100);
  mapped.update(values, nullptr, 1);
  EXPECT_EQ(mapped.xs(values).data(), values.xs().data());
}

TEST(Events, AlertsSayWhetherTheyAreOver) {
  EventListModel model;
  const QAbstractItemModelTester tester(&model, QAbstractItemModelTester::FailureReportingMode::Fatal);
  EventsChunk chunk;
  chunk.rows = {{1, 10, {RunEvent::Kind::info, 0, "began"}, 0, 0},
                {2, 11, {RunEvent::Kind::spike, 7, "spike", RunEvent::Severity::warning}, 0, 0}};
  model.update(chunk);
  ASSERT_EQ(model.rowCount(), 2);
  EXPECT_TRUE(model.index(0).data(EventListModel::open_role).toBool());
  EXPECT_FALSE(model.index(1).data(EventListModel::open_role).toBool());
  EventsChunk later;
  later.alerts = {chunk.rows[1]};
  later.alerts[0].resolved = 12;
  later.alerts[0].resolved_step = 31;
  QSignalSpy changed(&model, &QAbstractItemModel::dataChanged);
  model.update(later);
  ASSERT_EQ(changed.size(), 1);
  EXPECT_FALSE(model.index(0).data(EventListModel::open_role).toBool());
  EXPECT_TRUE(model.index(0).data(EventListModel::alert_role).toString().contains(QLatin1String("31")));
}

class MonitorTest : public WindowTest {
 protected:
  static constexpr int layers = 3, heads = 2;
  RunSummary put_heads() {
    RunSummary run = put(0, RunState::finished, 300);
    run.config_json = R"({"name": "heads", "model": {"vocab_size": 256, "d_model": 64, "n_layers": 3, "n_heads": 2},
      "optim": {"qk_clip": 100.0}, "train": {"tokens": 1638400, "batch_tokens": 4096, "seq_len": 256}})";
    run.facts.push_back({"step_seconds", 0.5});
    run.facts.push_back({"step_seconds.attention", 0.3});
    run.facts.push_back({"step_seconds.norm_qkv", 0.1});
    workspace->put_run(run);
    for (int layer = 0; layer < layers; ++layer)
      for (int head = 0; head < heads; ++head) {
        std::vector<SeriesPoint> points;
        for (std::int64_t step = 100; step <= 300; step += 100)
          points.push_back({step, static_cast<double>(step) * (layer == 1 && head == 1 ? 0.5 : 0.1 + 0.01 * layer)});
        workspace->add_points(run.id, metric::max_logit_of(layer, head), points);
      }
    return run;
  }
  MonitorCharts* charts() { return window->monitor()->charts(); }
  bool rest() {
    return wait_until([&] { return window->settled(); });
  }
};

TEST_F(MonitorTest, TheHeatMapFollowsTheCursorAndAClickOpensAHead) {
  put_heads();
  open();
  ASSERT_TRUE(rest());
  HeatPanel* heat = charts()->heat();
  ASSERT_TRUE(wait_until([&] { return heat->map()->cells().columns == layers && heat->step() == 300; }));
  EXPECT_EQ(heat->map()->cells().over(), 1);  // 150 in layer 1, head 1
  CurveChart* worst = charts()->panel(QStringLiteral("worst-heads"))->chart();
  ASSERT_TRUE(wait_until([&] { return worst->curves().size() == 5; }));
  EXPECT_EQ(worst->curves().front().name, QStringLiteral("L1.H1"));
  EXPECT_TRUE(worst->curves().front().focused);
  charts()->view()->set_crosshair(110);
  EXPECT_EQ(heat->step(), 100);
  EXPECT_EQ(heat->map()->cells().over(), 0);
  charts()->view()->set_crosshair(std::nullopt);
  EXPECT_EQ(heat->step(), 300);
  // The mildest head is not among the worst five; a click shows it, in the run's colour.
  QTest::mouseClick(heat->map(), Qt::LeftButton, {}, heat->map()->cell_rect(1, 0).center().toPoint());
  ASSERT_EQ(worst->curves().size(), 6u);
  EXPECT_EQ(worst->curves().back().name, QStringLiteral("L0.H1"));
  EXPECT_TRUE(worst->curves().back().focused);
  EXPECT_FALSE(worst->curves().front().focused);
  // By hand it no longer follows.
  heat->slider()->setValue(1);
  EXPECT_EQ(heat->step(), 200);
  charts()->view()->set_crosshair(300);
  EXPECT_EQ(heat->step(), 200);
}

TEST_F(MonitorTest, CurvesLieByTokensFlopsAndTime) {
  put_heads();
  open();
  ASSERT_TRUE(rest());
  CurveChart* loss = charts()->panel(QStringLiteral("loss"))->chart();
  const auto steps = loss->facts().raw;
  const auto check = [&](XKind kind, double last) {
    charts()->view()->set_x_kind(kind);
    ASSERT_TRUE(wait_until([&] { return window->settled() && loss->facts().raw == steps; }));
    EXPECT_NEAR(loss->readout(last, std::nullopt).rows.size(), 2, 1);
    // A step of the list of events is found wherever it lies now.
    charts()->go_to_step(300);
    ASSERT_TRUE(charts()->view()->crosshair());
    EXPECT_NEAR(*charts()->view()->crosshair(), last, last * 1e-9);
  };
  check(XKind::tokens, 300 * 4096.0);
  check(XKind::flops, 300 * 4096.0 * 6 * 117120);
  check(XKind::process, 300 * 0.3);
  check(XKind::step, 300);
}

TEST_F(MonitorTest, WhatIsShownIsKept) {
  put_heads();
  open();
  ASSERT_TRUE(rest());
  MonitorPage* page = window->monitor();
  emit charts()->heat()->hide_requested();
  EXPECT_FALSE(charts()->heat()->isVisible());
  emit charts()->panel(QStringLiteral("memory"))->move_requested(-1);
  charts()->view()->set_x_kind(XKind::tokens);
  charts()->set_log_y(true);
  charts()->view()->set_robust(true);
  const QJsonObject state = page->state();
  const PanelLayout layout = charts()->grid()->layout();
  MonitorPage other(window->link());
  other.restore(state);
  EXPECT_EQ(other.charts()->grid()->layout(), layout);
  EXPECT_EQ(other.charts()->view()->x_kind(), XKind::tokens);
  EXPECT_TRUE(other.charts()->log_y());
  EXPECT_TRUE(other.charts()->view()->robust());
  EXPECT_EQ(other.state(), state);
  // Of another version, or with nothing in it: all stays as it is.
  QJsonObject later = state;
  later["version"] = MonitorPage::state_version + 1;
  later["x"] = QStringLiteral("step");
  other.restore(later);
  other.restore({});
  other.restore({{"version", MonitorPage::state_version}, {"x", "tokens"}, {"layout", QJsonArray{7, "x"}}});
  EXPECT_EQ(other.charts()->grid()->layout(), layout);
}

TEST_F(MonitorTest, LogAxesOfAllGiveEachPanelItsOwnBack) {
  put_heads();
  open();
  ASSERT_TRUE(rest());
  QAction* all = window->actions_by_name()->action("chart.log_y");
  const auto log_of = [&](const char* id) { return charts()->panel(QLatin1String(id))->chart()->log_y(); };
  ASSERT_TRUE(log_of("gradient-norm") && !log_of("loss"));
  all->trigger();
  EXPECT_TRUE(log_of("gradient-norm") && log_of("loss"));
  // What is changed by hand meanwhile is the panel's own.
  charts()->panel(QStringLiteral("memory"))->set_log_y(true);
  MonitorPage other(window->link());
  other.restore(window->monitor()->state());
  all->trigger();
  EXPECT_FALSE(all->isChecked());
  EXPECT_TRUE(log_of("gradient-norm") && log_of("memory"));
  EXPECT_FALSE(log_of("loss"));
  EXPECT_TRUE(other.charts()->log_y());
  other.charts()->set_log_y(false);
  EXPECT_TRUE(other.charts()->panel(QStringLiteral("gradient-norm"))->chart()->log_y());
  EXPECT_FALSE(other.charts()->panel(QStringLiteral("loss"))->chart()->log_y());
}

TEST_F(MonitorTest, TheHeatMapHasItsScaleWithoutAThresholdToo) {
  RunSummary run = put_heads();
  run.config_json.replace(run.config_json.find("100.0"), 5, "0.0");
  workspace->put_run(run);
  open();
  ASSERT_TRUE(rest());
  HeatPanel* heat = charts()->heat();
  ASSERT_TRUE(wait_until([&] { return heat->map()->cells().columns == layers && heat->step() == 300; }));
  EXPECT_EQ(heat->map()->cells().limit, 0);
  EXPECT_TRUE(heat->legend()->isVisible());
  EXPECT_EQ(heat->legend()->end_text(), QStringLiteral("150"));
}

TEST_F(MonitorTest, TheCountOfTheListStandsWhole) {
  for (int i = 0; i < 6; ++i) put(i, RunState::finished, 100);
  open();
  ASSERT_TRUE(rest());
  const auto* count = window->monitor()->findChild<TextLabel*>(QStringLiteral("list-count"));
  ASSERT_NE(count, nullptr);
  EXPECT_EQ(count->text(), count->full_text());
  EXPECT_GE(count->minimumWidth(), QFontMetrics(count->font()).horizontalAdvance(count->full_text()));
}

TEST_F(MonitorTest, WhatDivergedIsOfferedToBeChangedNotToGoOn) {
  RunSummary run = put_heads();
  run.state = RunState::failed;
  run.cause = "the disk is full";
  workspace->put_run(run);
  open();
  ASSERT_TRUE(rest());
  QWidget* strip = window->monitor()->failure_strip();
  ASSERT_TRUE(wait_until([&] { return strip->isVisible(); }));
  QPushButton* resume = button_of(strip, QStringLiteral("Resume"));
  QPushButton* clone = button_of(strip, QString::fromUtf8("Clone and edit…"));
  ASSERT_TRUE(resume && clone);
  EXPECT_TRUE(resume->isVisible() && !clone->isVisible());
  run.cause = "the gradient was not finite in 5 steps in a row, the last of them step 300: train it anew";
  workspace->put_run(run);
  ASSERT_TRUE(wait_until([&] { return clone->isVisible(); }));
  EXPECT_FALSE(resume->isVisible());
  QTest::mouseClick(clone, Qt::LeftButton);
  RunsPage* runs = window->findChild<RunsPage*>();
  ASSERT_NE(runs, nullptr);
  EXPECT_TRUE(wait_until([&] { return runs->launch_dialog() != nullptr; }));
}

TEST_F(MonitorTest, PicturesNameTheConfigOfWhatTheyShow) {
  const RunSummary run = put_heads();
  open();
  ASSERT_TRUE(rest());
  const QTemporaryDir folder;
  ChartPanel* panel = charts()->panel(QStringLiteral("loss"));
  const QByteArray hash = QByteArray::fromStdString(run.id);
  for (const char* suffix : {"png", "svg", "pdf"}) {
    const QString path = folder.filePath(QStringLiteral("loss.") + QLatin1String(suffix));
    QSignalSpy saved(panel, &PanelFrame::saved);
    panel->save_picture(path);
    ASSERT_TRUE(wait_until([&] { return saved.size() == 1; }));
    EXPECT_EQ(saved[0][1].toString(), QString());
    QFile file(path);
    ASSERT_TRUE(file.open(QIODevice::ReadOnly));
    const QByteArray bytes = file.readAll();
    if (suffix == QByteArray("svg")) {
      EXPECT_TRUE(bytes.contains("<svg") && bytes.contains(hash));
      EXPECT_GT(bytes.count("<p"), 10);  // lines, not a picture of lines
    }
    if (suffix == QByteArray("pdf")) {
      EXPECT_TRUE(bytes.startsWith("%PDF"));
    }
    if (suffix == QByteArray("png")) {
      const QImage image = QImage::fromData(bytes);
      EXPECT_EQ(image.width(), 2 * panel->width());
      EXPECT_TRUE(image.text(QStringLiteral("Description")).contains(QString::fromLatin1(hash)));
      EXPECT_GT(count_pixels(image, theme().run_color(0), {}, 40), 200);
    }
  }
}

TEST_F(MonitorTest, TheTimeOfOperationsIsTold) {
  put_heads();
  open();
  ASSERT_TRUE(rest());
  const auto& bars = window->monitor()->inspector()->times()->bars();
  ASSERT_EQ(bars.size(), 3u);
  EXPECT_EQ(bars[0], (TimeBar{QStringLiteral("attention"), 0.3}));
  EXPECT_EQ(bars[1], (TimeBar{QStringLiteral("norm qkv"), 0.1}));
  EXPECT_NEAR(bars[2].seconds, 0.1, 1e-12);  // between operations
}

TEST_F(MonitorTest, ARunningRunIsAskedWhatItsOperationsTake) {
  RunSummary run = put_running();
  run.facts.push_back({"step_seconds", 0.5});
  run.facts.push_back({"step_seconds.attention", 0.3});
  run.facts.push_back({"step_seconds_at", 4});
  workspace->put_run(run);
  open();
  ASSERT_TRUE(rest());
  Inspector* inspector = window->monitor()->inspector();
  ASSERT_TRUE(wait_until([&] { return inspector->trace_button()->isEnabled(); }));
  inspector->setCurrentIndex(1);
  EXPECT_EQ(inspector->trace_note(), QString());
  QTest::mouseClick(inspector->trace_button(), Qt::LeftButton);
  ASSERT_TRUE(wait_until([&] { return workspace->traced() == std::vector<RunId>{run.id}; }));
  EXPECT_TRUE(inspector->trace_note().contains(QLatin1String("next steps"))) << inspector->trace_note().toStdString();
  EXPECT_FALSE(inspector->trace_button()->isEnabled()) << "once is enough";
  keep_picture(window->grab().toImage(), QStringLiteral("trace-asked"));
  run.facts[run.facts.size() - 2].second = 0.25;
  run.facts.back().second = 218;
  workspace->put_run(run);
  ASSERT_TRUE(wait_until([&] { return inspector->trace_button()->isEnabled(); }));
  EXPECT_EQ(inspector->trace_note(), QString());
  EXPECT_EQ(inspector->times()->bars()[0], (TimeBar{QStringLiteral("attention"), 0.25}));
  // The action does the same; what cannot be asked says why.
  workspace->set_request_error("the store is locked");
  window->actions_by_name()->action("run.trace")->trigger();
  ASSERT_TRUE(wait_until([&] { return inspector->trace_note().contains(QLatin1String("the store is locked")); }));
  EXPECT_TRUE(inspector->trace_button()->isEnabled()) << "to be tried again";
  keep_picture(window->grab().toImage(), QStringLiteral("trace-refused"));
  run.state = RunState::finished;
  workspace->put_run(run);
  workspace->set_jobs({});
  ASSERT_TRUE(wait_until([&] { return !inspector->trace_button()->isEnabled(); }));
  EXPECT_FALSE(window->actions_by_name()->action("run.trace")->isEnabled());
}

TEST_F(MonitorTest, TheHeatMapIsATableToo) {
  put_heads();
  open();
  ASSERT_TRUE(rest());
  ASSERT_TRUE(wait_until([&] { return charts()->heat()->step() == 300; }));
  QDialog* dialog = charts()->heat()->show_as_table();
  auto* table = dialog->findChild<QTableView*>();
  ASSERT_EQ(table->model()->rowCount(), heads);
  ASSERT_EQ(table->model()->columnCount(), layers);
  EXPECT_FALSE(table->accessibleName().isEmpty());
  const QModelIndex worst = table->model()->index(1, 1);
  EXPECT_EQ(worst.data().toString(), format_fixed(150, 2));
  EXPECT_TRUE(worst.data(Qt::AccessibleTextRole).toString().contains(QLatin1String("over")));
  table->selectAll();
  const QString text = selected_text(*table);
  EXPECT_EQ(text.count(QLatin1Char('\n')), 1 + heads);
  EXPECT_EQ(text.count(QLatin1Char('\t')), (1 + heads) * layers);
  EXPECT_TRUE(text.contains(QLatin1String("layer 2")) && text.contains(QLatin1String("150"))) << text.toStdString();
  keep_picture(dialog->grab().toImage(), QStringLiteral("heat-table"));
  dialog->close();
}

TEST_F(MonitorTest, PanelsAreResizedByKeys) {
  put_heads();
  open();
  ASSERT_TRUE(rest());
  window->activateWindow();
  ChartPanel* loss = charts()->panel(QStringLiteral("loss"));
  ChartPanel* rate = charts()->panel(QStringLiteral("learning-rate"));
  loss->chart()->setFocus();
  QCoreApplication::processEvents();
  const QSize before = loss->size();
  const int other = rate->height();
  const auto press = [&](const char* action) {
    window->actions_by_name()->action(QLatin1String(action))->trigger();
    QCoreApplication::processEvents();
  };
  press("chart.wider");
  press("chart.taller");
  EXPECT_GT(loss->width(), before.width());
  EXPECT_GT(loss->height(), before.height());
  press("chart.narrower");
  press("chart.lower");
  EXPECT_NEAR(loss->width(), before.width(), 2);
  EXPECT_NEAR(loss->height(), before.height(), 2);
  // Of two in a column one grows at the other's cost.
  rate->chart()->setFocus();
  press("chart.taller");
  EXPECT_GT(rate->height(), other);
  EXPECT_NEAR(loss->height(), before.height(), 2);
}

TEST_F(MonitorTest, TheFirstRunIsDrawnWhereverTheLossPanelIs) {
  put_running();
  open();
  ASSERT_TRUE(rest());
  charts()->grid()->hide_panel(QStringLiteral("loss"));
  const CurveChart* loss = charts()->panel(QStringLiteral("loss"))->chart();
  EXPECT_TRUE(loss->curves().empty());
  window->monitor()->set_introduction(true);
  EXPECT_EQ(loss->curves().size(), 2u);
  ASSERT_TRUE(wait_until([&] { return !loss->curves()[0].series->empty(); }));
}

TEST_F(MonitorTest, EveryLocaleIsShownAndNoFileKnowsOfIt) {
  const QLocale before;
  const QTemporaryDir folder;
  put_heads();
  QByteArray first;
  for (const char* name : {"C", "de_DE", "fr_FR", "ar_EG"}) {
    const QLocale locale{QLatin1String(name)};
    QLocale::setDefault(locale);
    QApplication::setLayoutDirection(locale.textDirection());
    open();
    ASSERT_TRUE(rest());
    ChartPanel* panel = charts()->panel(QStringLiteral("loss"));
    const QString path = folder.filePath(QString::fromLatin1(name));
    QSignalSpy saved(panel, &PanelFrame::saved);
    panel->save_values(path);
    EXPECT_TRUE(wait_until([&] { return saved.size() == 1; }));
    QFile file(path);
    EXPECT_TRUE(file.open(QIODevice::ReadOnly));
    const QByteArray bytes = file.readAll();
    if (first.isEmpty()) first = bytes;
    EXPECT_EQ(bytes, first) << name;
    EXPECT_GT(bytes.count('\n'), 300);
    // The list and the charts write numbers as people there do.
    const RunInfo& run = window->monitor()->runs()->run_at(0);
    const QString loss = window->monitor()->runs()->index(0).data(RunListModel::last_loss_role).toString();
    EXPECT_EQ(loss, locale.toString(*run.summary.last_loss, 'f', 3)) << name;
    EXPECT_LE(window->minimumSizeHint().width(), 1100) << name;
    keep_picture(window->grab().toImage(), QStringLiteral("locale-") + QLatin1String(name));
    window.reset();
  }
  QLocale::setDefault(before);
  QApplication::setLayoutDirection(Qt::LeftToRight);
}

TEST_F(MonitorTest, AStoreThatCannotBeReadIsSaidAndCaughtUpWith) {
  const RunSummary run = put_running();
  open();
  ASSERT_TRUE(rest());
  MonitorPage* page = window->monitor();
  const auto last = [&] { return charts()->panel(QStringLiteral("loss"))->chart()->curves()[0].series->xs().back(); };
  const double before = last();
  workspace->set_read_error("stacklab.db is locked by another process");
  ASSERT_TRUE(wait_until([&] { return page->failure_strip()->isVisible(); }));
  QString words;
  for (const QLabel* label : page->failure_strip()->findChildren<QLabel*>()) words += label->text();
  EXPECT_TRUE(words.contains(QLatin1String("cannot be read"))) << words.toStdString();
  EXPECT_TRUE(words.contains(QLatin1String("locked by another process"))) << words.toStdString();
  EXPECT_EQ(page->runs()->rowCount(), 1) << "what is known stays";
  EXPECT_EQ(last(), before);
  keep_picture(window->grab().toImage(), QStringLiteral("locked"));
  workspace->add_points(run.id, "loss", {{static_cast<std::int64_t>(before) + 1, 2.5}});
  workspace->set_read_error({});
  ASSERT_TRUE(wait_until([&] { return last() == before + 1; }));
  EXPECT_TRUE(wait_until([&] { return !page->failure_strip()->isVisible(); }));
}

}  // namespace
}  // namespace stacklab::ui
