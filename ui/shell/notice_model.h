// What the user should hear of, the newest first, with what has been read. Each notice has a key of its own, so that
// what was read stays read when the workspace is opened again.
#pragma once

#include <QAbstractListModel>
#include <QJsonObject>
#include <QSet>
#include <vector>

#include "ui/models/snapshot.h"
#include "ui/theme/glyphs.h"
#include "ui/theme/theme.h"

namespace stacklab::ui {

struct Notification {
  QString key;   // the same whenever it is read from the store
  QString kind;  // "spike": what the settings can silence
  Glyph glyph = Glyph::diamond;
  Token color = Token::info;
  QString text, run_name;
  RunId run;              // empty: not of a run
  std::int64_t step = 0;  // 0: of no step
  double unix_time = 0;
  QString standing = {};  // of an alert: whether it is over
};

class NoticeModel : public QAbstractListModel {
  Q_OBJECT
 public:
  enum Role { unread_role = Qt::UserRole + 1, glyph_role, color_role, detail_role, run_role, step_role };
  static constexpr int most_rows = 500;

  using QAbstractListModel::QAbstractListModel;

  // Of quiet kinds nothing is shown; what came of them meanwhile appears when they are no longer quiet.
  void set_quiet_kinds(const QStringList& kinds);
  void add(std::vector<Notification> notices);  // of known keys only how they stand is taken over
  int unread() const;
  bool is_unread(int row) const;
  void mark_read(int row, bool read = true);
  void mark_all_read();
  const Notification& at(int row) const { return rows_[static_cast<std::size_t>(row)]; }

  QJsonObject read_state() const;
  void restore(const QJsonObject& state);

  int rowCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role) const override;

 signals:
  void unread_changed();  // and what has been read is to be kept
  void arrived(int unread_before);

 private:
  bool was_read(const Notification& notice) const;

  std::vector<Notification> rows_, quieted_;
  QSet<QString> known_, read_, again_unread_;
  QStringList quiet_;
  double read_to_ = 0;  // all up to this time have been read, but those in again_unread_
};

// Of the store's events; and of a run whose state has changed to one that somebody should know.
Notification notice_of(const NoticesChunk::Row& row);
std::optional<Notification> notice_of_change(const RunInfo& before, const RunInfo& after, double now);
// Of a job that ended before its run had a row to tell of it.
std::optional<Notification> notice_of_outcome(const JobOutcome& outcome, double now);
// Kinds of notices with their names, for the settings.
std::vector<std::pair<QString, QString>> notice_kinds();

}  // namespace stacklab::ui
