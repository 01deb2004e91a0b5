#include "study/sweep/rank_messages.hpp"

#include <cstring>
#include <stdexcept>

namespace moehub {
namespace {

void put(std::string& bytes, std::uint64_t number) {
    char raw[sizeof number];
    std::memcpy(raw, &number, sizeof number);
    bytes.append(raw, sizeof number);
}

void put(std::string& bytes, std::string_view text) {
    put(bytes, text.size());
    bytes.append(text);
}

template <class Value>
void put(std::string& bytes, const std::vector<Value>& values) {
    static_assert(sizeof(Value) == 8);
    put(bytes, values.size());
    if (!values.empty())
        bytes.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(Value));
}

class Reader {
  public:
    explicit Reader(std::string_view bytes) : rest_(bytes) {}

    std::string_view take(std::uint64_t size) {
        if (size > rest_.size()) throw std::runtime_error("a message of another rank is cut off");
        const std::string_view taken = rest_.substr(0, size);
        rest_.remove_prefix(size);
        return taken;
    }
    std::uint64_t number() {
        std::uint64_t number = 0;
        std::memcpy(&number, take(sizeof number).data(), sizeof number);
        return number;
    }
    std::string text() { return std::string(take(number())); }
    template <class Value>
    std::vector<Value> values() {
        const std::uint64_t count = number();
        if (count > rest_.size() / sizeof(Value)) take(rest_.size() + 1);
        std::vector<Value> values(count);
        const std::string_view taken = take(count * sizeof(Value));
        if (count > 0) std::memcpy(values.data(), taken.data(), taken.size());
        return values;
    }

  private:
    std::string_view rest_;
};

}  // namespace

std::string to_bytes(const SweepMessage& message) {
    std::string bytes(1, static_cast<char>(message.kind));
    put(bytes, message.number);
    put(bytes, std::string_view(message.text));
    put(bytes, std::string_view(message.outcome.refused));
    put(bytes, message.outcome.values);
    put(bytes, message.points);
    return bytes;
}

SweepMessage from_bytes(std::string_view bytes) {
    Reader reader(bytes);
    SweepMessage message;
    message.kind = static_cast<SweepMessage::Kind>(reader.take(1).front());
    message.number = reader.number();
    message.text = reader.text();
    message.outcome.refused = reader.text();
    message.outcome.values = reader.values<double>();
    message.points = reader.values<std::uint64_t>();
    return message;
}

}  // namespace moehub
