#include "ui/shell/shortcut_editor.h"

#include <QHeaderView>
#include <QKeySequenceEdit>
#include <QLineEdit>
#include <QSortFilterProxyModel>
#include <QTableView>

#include "ui/theme/widgets.h"

namespace stacklab::ui {

ShortcutEditor::ShortcutEditor(ActionSet* actions, QWidget* parent)
    : QDialog(parent), actions_(actions), model_(new ShortcutModel(actions, this)) {
  setObjectName(QStringLiteral("shortcutEditor"));
  setWindowTitle(tr("Keyboard shortcuts"));
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(16, 16, 16, 16);
  column->setSpacing(8);
  filter_ = new QLineEdit(this);
  filter_->setPlaceholderText(tr("Filter actions and keys"));
  filter_->setAccessibleName(filter_->placeholderText());
  filter_->setClearButtonEnabled(true);
  shown_ = new QSortFilterProxyModel(this);
  shown_->setSourceModel(model_);
  shown_->setFilterKeyColumn(-1);
  shown_->setFilterCaseSensitivity(Qt::CaseInsensitive);
  table_ = new QTableView(this);
  table_->setModel(shown_);
  table_->setAccessibleName(tr("Actions and their keys"));
  table_->setSelectionBehavior(QAbstractItemView::SelectRows);
  table_->setSelectionMode(QAbstractItemView::SingleSelection);
  table_->setEditTriggers(QAbstractItemView::NoEditTriggers);
  table_->setShowGrid(false);
  table_->setTabKeyNavigation(false);
  table_->setSortingEnabled(true);
  table_->sortByColumn(-1, Qt::AscendingOrder);
  table_->verticalHeader()->hide();
  table_->horizontalHeader()->setSectionResizeMode(ShortcutModel::action_column, QHeaderView::Stretch);
  table_->horizontalHeader()->setHighlightSections(false);
  table_->horizontalHeader()->setDefaultAlignment(Qt::AlignLeft | Qt::AlignVCenter);

  chosen_ = new TextLabel(TextRole::body, Token::text, true, this);
  chosen_->set_elided(true);
  keys_ = new QKeySequenceEdit(this);
  keys_->setAccessibleName(tr("New keys"));
  for (QWidget* inner : keys_->findChildren<QWidget*>()) inner->setAccessibleName(tr("New keys"));
  assign_ = make_button(tr("Assign"), {}, this);
  make_primary(assign_);
  remove_ = make_button(tr("Remove"), {}, this);
  reset_ = make_button(tr("As at first"), {}, this);
  verdict_ = new TextLabel(TextRole::secondary, Token::text2, false, this);
  verdict_->setWordWrap(true);
  auto* row = new QHBoxLayout;
  row->setSpacing(6);
  row->addWidget(chosen_, 1);
  row->addWidget(keys_, 1);
  for (QPushButton* button : {assign_, remove_, reset_}) row->addWidget(button);
  reset_all_ = make_button(tr("All as at first"), {}, this);
  auto* close = make_button(tr("Close"), {}, this);
  auto* last = new QHBoxLayout;
  last->addWidget(reset_all_);
  last->addStretch();
  last->addWidget(close);
  column->addWidget(filter_);
  column->addWidget(table_, 1);
  column->addLayout(row);
  column->addWidget(verdict_);
  column->addLayout(last);
  for (QPushButton* button : findChildren<QPushButton*>()) button->setAutoDefault(false);

  const auto heights = [this] {
    table_->verticalHeader()->setDefaultSectionSize(metrics().row());
    table_->setColumnWidth(ShortcutModel::menu_column, metrics().scaled(110));
    table_->setColumnWidth(ShortcutModel::keys_column, metrics().scaled(230));
    verdict_->setMinimumHeight(2 * metrics().f);
  };
  heights();
  connect(&look(), &Look::changed, this, heights);
  connect(filter_, &QLineEdit::textChanged, shown_, &QSortFilterProxyModel::setFilterFixedString);
  connect(table_->selectionModel(), &QItemSelectionModel::currentRowChanged, this, [this] {
    keys_->clear();
    judge();
  });
  connect(keys_, &QKeySequenceEdit::keySequenceChanged, this, &ShortcutEditor::judge);
  connect(actions_, &ActionSet::keys_changed, this, &ShortcutEditor::judge);
  connect(assign_, &QPushButton::clicked, this, [this] {
    const QKeySequence keys = keys_->keySequence();
    keys_->clear();
    actions_->set_keys(chosen(), {keys});
  });
  connect(remove_, &QPushButton::clicked, this, [this] { actions_->set_keys(chosen(), {}); });
  connect(reset_, &QPushButton::clicked, this, [this] { actions_->reset(chosen()); });
  connect(reset_all_, &QPushButton::clicked, actions_, &ActionSet::reset_all);
  connect(close, &QPushButton::clicked, this, &QDialog::close);
  resize(metrics().scaled(720), metrics().scaled(560));
  judge();
}

QString ShortcutEditor::chosen() const { return table_->currentIndex().data(ShortcutModel::id_role).toString(); }

void ShortcutEditor::choose(const QString& id) {
  filter_->clear();
  const QModelIndexList found = shown_->match(shown_->index(0, 0), ShortcutModel::id_role, id, 1, Qt::MatchExactly);
  if (!found.isEmpty()) table_->setCurrentIndex(found.front());
}

QString ShortcutEditor::verdict() const { return verdict_->full_text(); }

void ShortcutEditor::judge() {
  const ActionSet::Entry* entry = actions_->find(chosen());
  const QKeySequence keys = keys_->keySequence();
  chosen_->set_full_text(entry ? plain_text(entry->action->text()) : tr("No action chosen"));
  keys_->setEnabled(entry);
  remove_->setEnabled(entry && !entry->action->shortcuts().isEmpty());
  reset_->setEnabled(entry && !actions_->is_default(entry->id));
  reset_all_->setEnabled(!actions_->overrides().isEmpty());
  assign_->setEnabled(entry && !keys.isEmpty());
  const ActionSet::Entry* other = entry ? actions_->holder(keys, entry->id) : nullptr;
  const QString shown = keys.toString(QKeySequence::NativeText);
  verdict_->set_color(other ? Token::warn : Token::text2);
  verdict_->set_full_text(
      !entry           ? tr("Choose an action in the table.")
      : keys.isEmpty() ? tr("Press the new keys in the field.")
      : other ? tr("%1 is taken by “%2”. Assigning takes it away there.").arg(shown, plain_text(other->action->text()))
              : tr("%1 is free.").arg(shown));
  assign_->setToolTip(assign_->isEnabled() ? QString() : verdict_->full_text());
}

}  // namespace stacklab::ui

#include <moc_shortcut_editor.cpp>
