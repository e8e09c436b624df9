// The columns of the runs' table: what stands in them, how they are sorted, how wide they are at first.
#pragma once

#include <QHash>
#include <QString>
#include <QStringList>
#include <memory>
#include <vector>

#include "engine/service/job_service.h"

namespace stacklab::ui {

// A run as the table has it: its row of the store, and its config by key.
struct RunRow {
  RunSummary summary;
  QHash<QString, QString> config;  // "optim.adam_lr" -> "0.001"
};
using RunRowPtr = std::shared_ptr<const RunRow>;
RunRowPtr make_run_row(RunSummary summary);  // reads the config: not for the window's thread

struct RunColumn {
  enum class Kind { name, state, progress, number, text, hash, tags, note };
  QString id;     // "val_loss", or a key of the config
  QString title;  // short
  QString help;
  QString order;  // key that the store sorts by
  Kind kind = Kind::text;
  double width = 80;  // at 13 px
  bool shown = true;  // at first

  bool operator==(const RunColumn& other) const { return id == other.id; }
};

const std::vector<RunColumn>& run_columns();
// One of these, or a key of the config; the id is empty where there is none.
RunColumn run_column(const QString& id);
QStringList default_run_columns();
QStringList config_column_ids();  // every key that can be a column

struct CellText {
  QString text;
  bool bad = false;    // NaN
  bool faint = false;  // nothing to say
};
CellText cell_text(const RunColumn& column, const RunRow& row, double now);
// The raw value, and where it comes from.
QString cell_tip(const RunColumn& column, const RunRow& row, double now);

}  // namespace stacklab::ui
