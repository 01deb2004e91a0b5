/// SQLite databases. What fails throws InputError with the file's name and the reason in one line:
/// a path that cannot be written, a disk that is full, a file that is no database.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

struct sqlite3;
struct sqlite3_stmt;

namespace moehub {

enum class DatabaseMode { read, write, create };  ///< `create`: written, made where there is none

class Statement;

/// A database for one thread at a time.
class Database {
  public:
    Database(const std::string& path, DatabaseMode mode);

    /// Runs one or several statements whose rows nobody wants.
    void run(const std::string& sql);
    Statement prepare(const std::string& sql);
    /// The first column of the first row, 0 where there is none.
    std::int64_t whole(const std::string& sql);

    const std::string& path() const { return path_; }

  private:
    friend class Statement;
    [[noreturn]] void fail(int code) const;
    struct Close {
        void operator()(sqlite3* database) const;
    };
    std::string path_;
    std::unique_ptr<sqlite3, Close> database_;
};

/// Parameters and columns count from 0. Refers to its database.
class Statement {
  public:
    void bind(int parameter, std::string_view text);
    void bind(int parameter, std::int64_t whole);
    void bind(int parameter, double number);
    void bind_null(int parameter);

    /// Goes to the next row; false: there is none, and the statement can run anew.
    bool step();

    std::string text(int column) const;
    std::int64_t whole(int column) const;
    double number(int column) const;
    bool null(int column) const;

  private:
    friend class Database;
    Statement(Database& database, const std::string& sql);
    void require(int code) const;
    struct Finish {
        void operator()(sqlite3_stmt* statement) const;
    };
    Database* database_;
    std::unique_ptr<sqlite3_stmt, Finish> statement_;
};

/// From construction on one transaction; without commit() nothing of it stays.
class Transaction {
  public:
    explicit Transaction(Database& database);
    ~Transaction();
    Transaction(const Transaction&) = delete;
    Transaction& operator=(const Transaction&) = delete;
    void commit();

  private:
    Database& database_;
    bool done_ = false;
};

/// "name" as an SQL identifier, quotes doubled.
std::string sql_name(std::string_view name);

}  // namespace moehub
