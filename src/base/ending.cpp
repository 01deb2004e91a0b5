#include "base/ending.hpp"

namespace moehub {
namespace {

thread_local const std::stop_token* current = nullptr;

}  // namespace

EndsOn::EndsOn(const std::stop_token& stop) {
    current = &stop;
}

EndsOn::~EndsOn() {
    current = nullptr;
}

std::stop_token current_end() {
    return current == nullptr ? std::stop_token() : *current;
}

void end_if_asked() {
    if (current != nullptr && current->stop_requested()) throw Ended();
}

}  // namespace moehub
