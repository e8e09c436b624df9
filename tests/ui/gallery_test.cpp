// Every page and dialog as one meets it, in both themes and with large text: nothing that is written is cut off, and no
// window grows beyond the screen that it was made for. Scales of the screen: the same under QT_SCALE_FACTOR.
#include <QListWidget>
#include <QScrollArea>
#include <QTableWidget>

#include "engine/service/system_info.h"
#include "tests/ui/clipped.h"
#include "tests/ui/real_window.h"
#include "ui/pages/runs/presets.h"
#include "ui/shell/command_palette.h"
#include "ui/shell/first_start.h"

namespace stacklab::ui {
namespace {

struct Sight {
  bool dark;
  int zoom;
};

class Gallery : public RealWindow, public testing::WithParamInterface<Sight> {
 protected:
  // A window that is made takes what its settings say.
  void at_sight() {
    window->override_theme(GetParam().dark ? ThemeMode::dark : ThemeMode::light);
    window->set_zoom(GetParam().zoom);
  }
  void TearDown() override {
    window.reset();
    look().set_zoom(100);
  }
  void at_rest() {
    ASSERT_TRUE(settle());
    for (int i = 0; i < 20; ++i) QCoreApplication::processEvents();
  }
  void look_at(QWidget* what, const char* name, QSize most = QSize(1600, 1000)) {
    for (int i = 0; i < 20; ++i) QCoreApplication::processEvents();
    keep_picture(what->grab().toImage(), QStringLiteral("%1-%2-%3-x%4")
                                             .arg(QLatin1String(name), GetParam().dark ? "dark" : "light")
                                             .arg(GetParam().zoom)
                                             .arg(what->devicePixelRatioF()));
    EXPECT_LE(what->width(), most.width()) << name;
    EXPECT_LE(what->height(), most.height()) << name;
    EXPECT_EQ(clipped_words(what).join('\n').toStdString(), "") << name;
  }
};

TEST_P(Gallery, EmptyWorkspace) {
  open();
  at_sight();
  for (const QString& page : window->page_names()) {
    window->show_page(page);
    at_rest();
    look_at(window.get(), ("empty-" + page.toStdString()).c_str());
  }
}

TEST_P(Gallery, FirstStart) {
  WindowOptions options = real_options();
  options.link.system_info = [this] { return system_info(workspace()); };
  options.first_run = runs_config(0);
  open(options, 0);
  at_sight();
  ASSERT_TRUE(wait_until([&] { return window->first_start() && window->first_start()->pause_button()->isEnabled(); }));
  at_rest();
  look_at(window.get(), "first-start");
}

TEST_P(Gallery, RunsAndTheirDialogs) {
  WindowOptions options = real_options();
  options.link.system_info = [this] { return system_info(workspace()); };
  open(options, 60);
  at_sight();
  RunsPage* runs = window->runs_page();
  for (int n = 0; n < 3; ++n) runs->control()->add_to_queue(runs_config(200 + n));
  window->link()->submit(runs_config(199), {});
  ASSERT_TRUE(wait_until([&] { return runs->queue()->model()->rowCount() == 3; }));
  choose({57});
  at_rest();
  look_at(window.get(), "runs");
  choose({57, 55, 50, 44});
  runs->panel()->setCurrentIndex(1);
  at_rest();
  look_at(window.get(), "compare");
  runs->set_group(QStringLiteral("optim.matrices"));
  at_rest();
  look_at(window.get(), "grouped");
  window->actions_by_name()->action("tools.palette")->trigger();
  ASSERT_TRUE(wait_until([&] { return window->palette_sheet()->isVisible(); }));
  look_at(window->palette_sheet(), "palette");
  window->palette_sheet()->hide();
  window->show_page("settings");
  at_rest();
  look_at(window.get(), "settings");
  window->show_page("runs");
  LaunchDialog* launch = runs->launch({presets().front().config, {}, {}, {}});
  ASSERT_TRUE(wait_until([&] { return launch->plan() != nullptr; }));
  launch->form()->type("optim.muon_lr", "0.01");
  ASSERT_TRUE(wait_until([&] { return !launch->is_planning(); }));
  for (int section = 0; section < launch->sections()->count(); ++section) {
    launch->sections()->setCurrentRow(section);
    look_at(launch, ("launch-" + std::to_string(section)).c_str());
    const auto* page = qobject_cast<QScrollArea*>(launch->form()->currentWidget());
    ASSERT_NE(page, nullptr);
    EXPECT_LE(page->widget()->width(), page->viewport()->width()) << "fields reach beyond the edge";
  }
  launch->close();
}

INSTANTIATE_TEST_SUITE_P(Sights, Gallery,
                         testing::Values(Sight{false, 100}, Sight{true, 100}, Sight{false, 200}, Sight{true, 150}),
                         [](const auto& sight) {
                           return std::string(sight.param.dark ? "Dark" : "Light") + std::to_string(sight.param.zoom);
                         });

}  // namespace
}  // namespace stacklab::ui
