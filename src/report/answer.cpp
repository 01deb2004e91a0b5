#include "report/answer.hpp"

#include "report/answer_forms.hpp"
#include "report/number.hpp"
#include "report/text_style.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include <fmt/format.h>

namespace moehub {
namespace {

std::optional<double> number_in(const Json& value) {
    return value.visit([](const auto& held) -> std::optional<double> {
        using Held = std::decay_t<decltype(held)>;
        if constexpr (std::is_arithmetic_v<Held> && !std::is_same_v<Held, bool>)
            return static_cast<double>(held);
        else
            return std::nullopt;
    });
}

std::string text_in(const Json& value) {
    return value.visit([&value](const auto& held) -> std::string {
        using Held = std::decay_t<decltype(held)>;
        if constexpr (std::is_same_v<Held, std::nullptr_t>)
            return "";
        else if constexpr (std::is_same_v<Held, std::string>)
            return held;
        else if constexpr (std::is_same_v<Held, bool>)
            return held ? "yes" : "no";
        else
            return value.dump(-1);
    });
}

std::string number_text(double number, const Show& show) {
    using enum Show::Form;
    switch (show.form) {
        case whole:
            return grouped(std::llround(number));
        case fixed:
            return fixed_point(number, show.digits);
        case significant:
            return moehub::significant(number);
        case percent:
            return fixed_point(100 * number, show.digits) + " %";
        case change:
            return moehub::percent(number, true);
        case times:
            return fmt::format("{:.{}f}×", number, show.digits);
        case duration:
            return moehub::duration(number);
        case size:
            return byte_size(number);
        case rate:
            return moehub::significant(number / 1e9) + " GB/s";
        case bar:
            return moehub::bar(number, show.digits);
        default:
            return fmt::format("{}", number);
    }
}

/// "a.b" of an object as b of its member a.
Json& member(Json& object, std::string_view path, bool plain = false) {
    const std::size_t dot = plain ? path.npos : path.find('.');
    if (dot == path.npos) return object[path];
    return member(object[path.substr(0, dot)], path.substr(dot + 1));
}

Json rows_json(const Table& table) {
    Json list = Json::array();
    for (const auto& row : table.rows) {
        Json& object = list.emplace_back();
        object = Json::object();
        for (std::size_t i = 0; i < row.size(); ++i)
            if (const Column& column = table.columns[i]; !column.key.empty())
                member(object, column.key, column.plain_key) = row[i];
    }
    return list;
}

void add_to(Json& document, const Facts& facts) {
    for (const auto& [column, value] : facts.list)
        if (!column.key.empty()) member(document, column.key) = value;
}

std::string csv_field(const Json& value) {
    const std::string text = value.visit([&value](const auto& held) -> std::string {
        using Held = std::decay_t<decltype(held)>;
        if constexpr (std::is_same_v<Held, bool>)
            return held ? "true" : "false";
        else if constexpr (std::is_same_v<Held, double>)
            return std::isfinite(held) ? value.dump(-1) : "";
        else
            return text_in(value);
    });
    if (text.find_first_of(",\"\n\r") == text.npos && !text.starts_with(' ') &&
        !text.ends_with(' '))
        return text;
    std::string field = "\"";
    for (const char c : text) {
        if (c == '"') field += '"';
        field += c;
    }
    return field + '"';
}

struct CsvWriter {
    std::string text;
    bool begun = false;

    void field(const Json& value) {
        if (begun) text += ',';
        text += csv_field(value);
        begun = true;
    }
    void end() {
        text += '\n';
        begun = false;
    }
};

std::string csv_of(const Table& table) {
    CsvWriter out;
    for (const Column& column : table.columns)
        if (!column.key.empty()) out.field(column.key);
    out.end();
    for (const auto& row : table.rows) {
        for (std::size_t i = 0; i < row.size(); ++i)
            if (!table.columns[i].key.empty()) out.field(row[i]);
        out.end();
    }
    return out.text;
}

template <class Visit>
void each_block(const Answer& answer, Visit visit) {
    for (const Section& section : answer.sections)
        for (const Block& block : section.blocks) visit(block);
}

std::size_t column_of(const Table& table, const std::string& key) {
    for (std::size_t i = 0; i < table.columns.size(); ++i)
        if (table.columns[i].key == key) return i;
    throw std::logic_error(fmt::format("table {}: no column {}", table.key, key));
}

}  // namespace

std::string shown(const Json& value, const Show& show) {
    if (show.is_text() || show.form == Show::Form::nothing) return text_in(value);
    const std::optional<double> number = number_in(value);
    if (number) return number_text(*number * show.scale, show);
    const std::string text = text_in(value);
    return text.empty() && show.form != Show::Form::bar ? "–" : text;
}

Json document_of(const Answer& answer) {
    Json document{{"schema", {{"command", answer.question}, {"version", kSchemaVersion}}}};
    answer.facts.visit([&](const auto& held) {
        if constexpr (std::is_same_v<std::decay_t<decltype(held)>, std::vector<Json::Member>>)
            for (const auto& [name, value] : held) document[name] = value;
    });
    each_block(answer, [&](const Block& block) {
        if (const auto* facts = std::get_if<Facts>(&block.content)) add_to(document, *facts);
        const auto* table = std::get_if<Table>(&block.content);
        if (table != nullptr && !table->key.empty())
            member(document, table->key) = rows_json(*table);
    });
    return document;
}

std::string json_text(const Answer& answer) {
    return document_of(answer).dump(2) + "\n";
}

const Table* main_table(const Answer& answer) {
    const Table* found = nullptr;
    each_block(answer, [&](const Block& block) {
        const auto* table = std::get_if<Table>(&block.content);
        if (table == nullptr || table->key.empty() || found != nullptr) return;
        if (answer.main.empty() || table->key == answer.main) found = table;
    });
    return found;
}

double number_at(const Answer& answer, const std::string& key) {
    std::optional<double> found;
    if (const Table* const table = main_table(answer); table != nullptr && !table->rows.empty()) {
        for (std::size_t i = 0; i < table->columns.size(); ++i)
            if (table->columns[i].key == key) found = number_in(table->rows.front()[i]);
    } else {
        each_block(answer, [&](const Block& block) {
            if (const auto* list = std::get_if<Facts>(&block.content))
                for (const auto& [column, value] : list->list)
                    if (column.key == key) found = number_in(value);
        });
    }
    if (!found) throw std::logic_error("an answer has no number " + key);
    return *found;
}

std::string csv_text(const Answer& answer) {
    if (const Table* const table = main_table(answer)) return csv_of(*table);
    Table facts;
    facts.rows.emplace_back();
    each_block(answer, [&](const Block& block) {
        if (const auto* list = std::get_if<Facts>(&block.content))
            for (const auto& [column, value] : list->list) {
                facts.columns.push_back(column);
                facts.rows.front().push_back(value);
            }
    });
    return facts.columns.empty() ? "" : csv_of(facts);
}

std::vector<std::string> lines_of(std::string_view text) {
    std::vector<std::string> lines;
    while (!text.empty()) {
        const std::size_t end = std::min(text.find('\n'), text.size());
        if (end > 0) lines.emplace_back(text.substr(0, end));
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    return lines;
}

Table pivoted(const Table& table, std::size_t fixed_columns, std::size_t across,
              std::size_t value) {
    Table wide{"", table.caption, {}, {}};
    const auto begin = table.columns.begin();
    wide.columns.assign(begin, begin + static_cast<std::ptrdiff_t>(fixed_columns));
    std::vector<std::string> names, rows;
    const auto place = [](std::vector<std::string>& list, const std::string& name) {
        const auto found = std::find(list.begin(), list.end(), name);
        const auto at = static_cast<std::size_t>(found - list.begin());
        if (found == list.end()) list.push_back(name);
        return at;
    };
    for (const auto& row : table.rows) place(names, text_in(row[across]));
    for (const std::string& name : names)
        wide.columns.push_back({name, "", table.columns[value].show});
    for (std::size_t i = fixed_columns; i < table.columns.size(); ++i)
        if (i != across && i != value) wide.columns.push_back(table.columns[i]);
    for (const auto& row : table.rows) {
        std::string key;
        for (std::size_t i = 0; i < fixed_columns; ++i) key += text_in(row[i]) + '\n';
        const std::size_t at = place(rows, key);
        if (at == wide.rows.size()) {
            auto& cells = wide.rows.emplace_back(
                row.begin(), row.begin() + static_cast<std::ptrdiff_t>(fixed_columns));
            cells.resize(fixed_columns + names.size());
            for (std::size_t i = fixed_columns; i < row.size(); ++i)
                if (i != across && i != value) cells.push_back(row[i]);
        }
        wide.rows[at][fixed_columns + place(names, text_in(row[across]))] = row[value];
    }
    return wide;
}

BarChart bars_of(const Table& table, const std::string& title, const std::string& category,
                 const std::vector<std::string>& series, const std::string& unit) {
    BarChart chart{title, unit, {}, {}};
    const std::size_t named = column_of(table, category);
    for (const auto& row : table.rows) chart.categories.push_back(text_in(row[named]));
    for (const std::string& key : series) {
        const std::size_t at = column_of(table, key);
        const Column& column = table.columns[at];
        ChartSeries& one = chart.series.emplace_back(ChartSeries{column.words, {}});
        for (const auto& row : table.rows) {
            const auto number = number_in(row[at]);
            one.values.push_back(number ? std::optional(*number * column.show.scale)
                                        : std::nullopt);
        }
    }
    return chart;
}

BarChart system_bars(const Table& table, const std::string& title, const std::string& key,
                     const std::string& unit) {
    BarChart chart = bars_of(table, title, "system", {key}, unit);
    chart.systems = true;
    return chart;
}

}  // namespace moehub
