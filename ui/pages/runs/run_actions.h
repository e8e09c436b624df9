// What can be done with runs, as actions: in menus, buttons and the palette alike. What cannot be done now says why.
#pragma once

#include <QAction>
#include <vector>

#include "ui/models/run_columns.h"

namespace stacklab::ui {

struct RunActions {
  explicit RunActions(QObject* parent);

  QAction *start, *from_file, *clone, *fork;
  QAction *pause, *resume, *stop, *checkpoint;
  QAction *tags, *note, *show, *pin, *baseline, *archive, *remove;
  QAction *overlay, *compare, *copy_id, *select_filter;

  // id for menus and shortcuts, and where it stands.
  struct Entry {
    const char* id;
    QAction* action;
    const char* keys;
    bool gap;  // a line before it
  };
  std::vector<Entry> entries() const;

  // For the chosen runs; rows that are not read yet count as nothing.
  void update(const std::vector<RunRowPtr>& chosen, std::int64_t baseline, bool can_steer);
};

}  // namespace stacklab::ui
