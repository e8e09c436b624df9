#include "ui/shell/pages.h"

#include "ui/pages/monitor/monitor_page.h"
#include "ui/pages/runs/runs_page.h"
#include "ui/shell/main_window.h"
#include "ui/shell/settings_page.h"

namespace stacklab::ui {

// A page is a line here. It is made once; what it needs of the window it asks the window for.
const std::vector<PageEntry>& page_entries() {
  static const std::vector<PageEntry> entries = {
      {"runs", QT_TRANSLATE_NOOP("pages", "Runs"), "runs", "Ctrl+1", 0,
       [](MainWindow* w) -> Page* { return new RunsPage(w->link(), w->undo_stack(), w); }},
      {"monitor", QT_TRANSLATE_NOOP("pages", "Monitor"), "monitor", "Ctrl+2", 0,
       [](MainWindow* w) -> Page* { return new MonitorPage(w->link(), w->undo_stack(), w); }},
      {"settings", QT_TRANSLATE_NOOP("pages", "Settings"), "preferences-system", "Ctrl+,", bottom_group,
       [](MainWindow* w) -> Page* { return new SettingsPage(w->keeper(), w); }},
  };
  return entries;
}

}  // namespace stacklab::ui
