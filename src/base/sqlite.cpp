#include "base/sqlite.hpp"

#include "base/input_error.hpp"
#include "base/utf8.hpp"

#include <cstring>

#include <sqlite3.h>

namespace moehub {
namespace {

constexpr int kBusyMs = 60000;  // a reader that looks at the results holds the writer up so long

int flags_of(DatabaseMode mode) {
    if (mode == DatabaseMode::read) return SQLITE_OPEN_READONLY;
    return SQLITE_OPEN_READWRITE | (mode == DatabaseMode::create ? SQLITE_OPEN_CREATE : 0);
}

/// SQLite has names of its own that start with a colon, and where it is built so takes URIs.
std::string file_name(const std::string& path) {
    return path.starts_with(':') || path.starts_with("file:") ? "./" + path : path;
}

}  // namespace

void Database::Close::operator()(sqlite3* database) const {
    sqlite3_close_v2(database);
}

void Statement::Finish::operator()(sqlite3_stmt* statement) const {
    sqlite3_finalize(statement);
}

Database::Database(const std::string& path, DatabaseMode mode) : path_(path) {
    sqlite3* opened = nullptr;
    const int code =
        path.empty() ? SQLITE_CANTOPEN
                     : sqlite3_open_v2(file_name(path).c_str(), &opened, flags_of(mode), nullptr);
    database_.reset(opened);
    if (code != SQLITE_OK) fail(code);
    sqlite3_extended_result_codes(opened, 1);
    sqlite3_busy_timeout(opened, kBusyMs);
    run("PRAGMA schema_version");  // opening alone reads nothing
}

void Database::fail(int code) const {
    const std::string shown = printable(path_);
    const int base = code & 0xff;
    if (base == SQLITE_NOTADB) throw InputError(shown + ": is not a database");
    if (base == SQLITE_CORRUPT) throw InputError(shown + ": is a damaged database");
    if (base == SQLITE_NOMEM) throw std::bad_alloc();
    const int system = database_ ? sqlite3_system_errno(database_.get()) : 0;
    const bool by_system = base == SQLITE_IOERR || base == SQLITE_CANTOPEN;
    std::string reason = sqlite3_errstr(base);
    if (by_system && system != 0) reason = std::strerror(system);
    const bool opening = base == SQLITE_CANTOPEN;
    throw input_error("{}: cannot be {}: {}", shown, opening ? "opened" : "written", reason);
}

void Database::run(const std::string& sql) {
    const int code = sqlite3_exec(database_.get(), sql.c_str(), nullptr, nullptr, nullptr);
    if (code != SQLITE_OK) fail(code);
}

Statement Database::prepare(const std::string& sql) {
    return Statement(*this, sql);
}

std::int64_t Database::whole(const std::string& sql) {
    Statement statement = prepare(sql);
    return statement.step() ? statement.whole(0) : 0;
}

Statement::Statement(Database& database, const std::string& sql) : database_(&database) {
    sqlite3_stmt* made = nullptr;
    const int code = sqlite3_prepare_v2(database.database_.get(), sql.c_str(),
                                        static_cast<int>(sql.size()), &made, nullptr);
    statement_.reset(made);
    require(code);
}

void Statement::require(int code) const {
    if (code != SQLITE_OK) database_->fail(code);
}

void Statement::bind(int parameter, std::string_view text) {
    require(sqlite3_bind_text(statement_.get(), parameter + 1, text.data(),
                              static_cast<int>(text.size()), SQLITE_TRANSIENT));
}

void Statement::bind(int parameter, std::int64_t whole) {
    require(sqlite3_bind_int64(statement_.get(), parameter + 1, whole));
}

void Statement::bind(int parameter, double number) {
    require(sqlite3_bind_double(statement_.get(), parameter + 1, number));
}

void Statement::bind_null(int parameter) {
    require(sqlite3_bind_null(statement_.get(), parameter + 1));
}

bool Statement::step() {
    const int code = sqlite3_step(statement_.get());
    if (code == SQLITE_ROW) return true;
    sqlite3_reset(statement_.get());
    if (code != SQLITE_DONE) database_->fail(code);
    return false;
}

std::string Statement::text(int column) const {
    const auto* const bytes = sqlite3_column_text(statement_.get(), column);
    if (bytes == nullptr) return "";
    const auto size = static_cast<std::size_t>(sqlite3_column_bytes(statement_.get(), column));
    return {reinterpret_cast<const char*>(bytes), size};
}

std::int64_t Statement::whole(int column) const {
    return sqlite3_column_int64(statement_.get(), column);
}

double Statement::number(int column) const {
    return sqlite3_column_double(statement_.get(), column);
}

bool Statement::null(int column) const {
    return sqlite3_column_type(statement_.get(), column) == SQLITE_NULL;
}

Transaction::Transaction(Database& database) : database_(database) {
    database.run("BEGIN IMMEDIATE");
}

Transaction::~Transaction() {
    if (done_) return;
    try {
        database_.run("ROLLBACK");
    } catch (const InputError&) {
        // SQLite has rolled back by itself.
    }
}

void Transaction::commit() {
    database_.run("COMMIT");
    done_ = true;
}

std::string sql_name(std::string_view name) {
    std::string quoted = "\"";
    for (const char c : name) {
        if (c == '"') quoted += '"';
        quoted += c;
    }
    return quoted + '"';
}

}  // namespace moehub
