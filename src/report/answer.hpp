/// What a question is answered with: values, and how people see them. It is described once; text,
/// JSON, CSV, pages and what notebooks show follow from it (answer_forms.hpp).
#pragma once
#include "base/json.hpp"
#include "report/chart.hpp"

#include <moehub/expert_layout.hpp>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace moehub {

struct LayerResult;

/// How people see a column's values. Programs get the values themselves.
struct Show {
    enum class Form {
        nothing,      ///< programs alone get the column
        text,         ///< as it is
        prose,        ///< a sentence or a list, which may be broken over lines
        once,         ///< text that stands where it changes from row to row
        whole,        ///< 1,234
        fixed,        ///< so many digits after the point
        significant,  ///< three digits or more
        percent,      ///< a fraction in percent, with so many digits after the point
        change,       ///< percent with its sign
        times,        ///< 1.53×
        duration,     ///< seconds, with a unit that suits
        size,         ///< bytes, with a unit that suits
        rate,         ///< bytes a second as GB/s
        bar,          ///< a fraction as a bar of so many columns; terminals alone have it
    };
    Form form = Form::text;
    int digits = 0;
    double scale = 1;  ///< what is shown over the value: 1e-6 shows bytes as MB

    bool is_text() const { return form == Form::text || form == Form::prose || form == Form::once; }
};

inline constexpr Show kHidden{Show::Form::nothing};
inline constexpr Show kText{Show::Form::text};
inline constexpr Show kProse{Show::Form::prose};
inline constexpr Show kOnce{Show::Form::once};
inline constexpr Show kWhole{Show::Form::whole};
inline constexpr Show kTenths{Show::Form::fixed, 1};
inline constexpr Show kSignificant{Show::Form::significant};
inline constexpr Show kPercent{Show::Form::percent, 1};
inline constexpr Show kChange{Show::Form::change, 1};
inline constexpr Show kTimes{Show::Form::times, 2};
inline constexpr Show kDuration{Show::Form::duration};
inline constexpr Show kSize{Show::Form::size};
constexpr Show fixed(int digits) {
    return {Show::Form::fixed, digits};
}
constexpr Show bar_of(int columns) {
    return {Show::Form::bar, columns};
}
/// Shows the value times `scale`.
constexpr Show scaled(Show show, double scale) {
    show.scale = scale;
    return show;
}
inline constexpr Show kMegabytes = scaled(kTenths, 1e-6);
inline constexpr Show kGigabytes = scaled(kTenths, 1e-9);

/// The value as people see it; nothing is "–" among numbers.
std::string shown(const Json& value, const Show& show);

template <class Value>
Json value_if(bool known, const Value& value) {
    return known ? Json(value) : Json(nullptr);
}
template <class Value>
Json or_null(const std::optional<Value>& value) {
    return value ? Json(*value) : Json(nullptr);
}
inline Json or_null(const std::string& text) {
    return value_if(!text.empty(), text);
}

/// A column is described here and nowhere else.
struct Column {
    std::string words;     ///< its title for people
    std::string key = {};  ///< in JSON, CSV and Python, with its unit; "a.b" is b of the object a.
                           ///< Empty: people alone get the column
    Show show = kText;
    int rank = 0;            ///< in a narrow terminal columns of the highest rank go first
    bool plain_key = false;  ///< dots in the key are of its name

    bool is_shown() const { return show.form != Show::Form::nothing; }
    /// Where bars are left to charts.
    bool is_read() const { return is_shown() && show.form != Show::Form::bar; }
};

/// A column that programs alone get.
inline Column hidden(const std::string& key) {
    return {key, key, kHidden};
}

struct Table {
    std::string key;      ///< its name for programs; empty: people alone get the table
    std::string caption;  ///< a line over it
    std::vector<Column> columns;
    std::vector<std::vector<Json>> rows;
};

/// A column of rows of a type.
template <class Row>
struct ColumnOf {
    Column column;
    std::function<Json(const Row&)> value;
};
template <class Row>
void append(std::vector<ColumnOf<Row>>& columns,
            const std::vector<ColumnOf<std::type_identity_t<Row>>>& more) {
    columns.insert(columns.end(), more.begin(), more.end());
}

template <class Row>
Table table_of(std::string key, std::string caption, const std::vector<ColumnOf<Row>>& columns,
               const std::vector<Row>& rows) {
    Table table{std::move(key), std::move(caption), {}, {}};
    for (const auto& one : columns) table.columns.push_back(one.column);
    table.rows.reserve(rows.size());
    for (const Row& row : rows) {
        std::vector<Json>& cells = table.rows.emplace_back();
        cells.reserve(columns.size());
        for (const auto& one : columns) cells.push_back(one.value(row));
    }
    return table;
}

/// Values that stand by themselves, each with its name: members of the document for programs, a
/// list for people.
struct Facts {
    struct Fact {
        Column column;
        Json value;
    };
    std::vector<Fact> list;
};

/// Lines as they are, not to be broken: a picture, a command to type.
struct Lines {
    std::string text;
    /// What terminals of so many columns get instead; empty: the same.
    std::function<std::string(int width)> drawn = {};
};

using Content = std::variant<Table, Facts, BarChart, LineChart, HeatChart, TimelineChart, Lines>;

/// Who gets a block.
enum class Reader { all, terminal, page, program };

struct Block {
    Block(Content content_, Reader reader_ = Reader::all)
        : content(std::move(content_)), reader(reader_) {}
    template <class One>
    requires(std::is_constructible_v<Content, One> && !std::is_same_v<std::decay_t<One>, Block>)
        Block(One one, Reader reader_ = Reader::all)
        : content(std::move(one)), reader(reader_) {}

    Content content;
    Reader reader;
};
inline bool is_for(Reader reader, Reader one) {
    return reader == Reader::all || reader == one;
}

/// Small print.
struct Note {
    Note(std::string text_, Reader reader_ = Reader::all)
        : text(std::move(text_)), reader(reader_) {}
    Note(const char* text_, Reader reader_ = Reader::all) : text(text_), reader(reader_) {}

    std::string text;
    Reader reader;
};

struct Section {
    std::string heading;                      ///< heading that pages show
    std::vector<std::string> sentences = {};  ///< what it means, before the blocks
    std::vector<Block> blocks = {};
    std::vector<Note> notes = {};  ///< what words and numbers mean, after them
};

/// What went into an answer, as TOML, which is printed where it is shown.
struct Configured {
    Configured(std::string name_, std::string text_)
        : name(std::move(name_)), text([whole = std::move(text_)] { return whole; }) {}
    Configured(std::string name_, std::function<std::string()> text_)
        : name(std::move(name_)), text(std::move(text_)) {}

    std::string name;
    std::function<std::string()> text;
};
using Configuration = std::vector<Configured>;

struct Answer {
    std::string question = {};           ///< "compare"
    std::string title = {};              ///< page's title
    std::vector<std::string> lead = {};  ///< what was asked, a line each
    Json facts = {};  ///< an object: members of the document that people see elsewhere
    std::vector<Section> sections = {};
    std::string main = {};  ///< key of the table that CSV files and sweeps take; empty: the first
    Configuration configuration = {};
    /// Instead of all that text to print as it is; empty: another process has the answer.
    std::optional<std::string> file = {};
    std::string output = {};   ///< file that text or JSON goes to, of questions with an own -o
    std::string failed = {};   ///< a defect met on the way; the rest is good
    std::string missing = {};  ///< why it is not the whole answer; bad input for who asked
    std::optional<ExpertLayout> layout = {};  ///< layout that was found
    /// Layers that were simulated, in the order of their rows, for who looks into them.
    std::vector<std::shared_ptr<const LayerResult>> simulated = {};
    std::string trace = {};        ///< for the Perfetto UI, where one was asked for
    std::string trace_words = {};  ///< what it holds
};

/// The table that CSV files and sweeps take; null where there is none.
const Table* main_table(const Answer& answer);

/// The number behind a key: of the first row of that table, or of the facts. Throws
/// std::logic_error where there is none.
double number_at(const Answer& answer, const std::string& key);

/// A table's values with other rows and columns, for people: a row for each different content of
/// the first `fixed` columns of the long table, a column for each different text of column
/// `across`, whose cells show column `value`; columns behind these are taken from the first row.
Table pivoted(const Table& table, std::size_t fixed_columns, std::size_t across, std::size_t value);

/// Bars of a table's rows: `category` names a column, as do `series`, by their keys.
BarChart bars_of(const Table& table, const std::string& title, const std::string& category,
                 const std::vector<std::string>& series, const std::string& unit = "");
/// Bars of one column by systems, each with its colour.
BarChart system_bars(const Table& table, const std::string& title, const std::string& key,
                     const std::string& unit);

}  // namespace moehub
