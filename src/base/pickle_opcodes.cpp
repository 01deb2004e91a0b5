// The opcodes: Lib/pickletools.py of CPython describes each. Protocols 2 to 5; what only older ones
// write, and everything that builds objects of classes, is refused.
#include "base/pickle_machine.hpp"

namespace moehub {

bool PickleMachine::step_value(unsigned char code) {
    switch (code) {
        case 'N':
            return stack_.push_back(kNone), true;
        case 0x88:
            return stack_.push_back(kTrue), true;
        case 0x89:
            return stack_.push_back(kFalse), true;
        case 'K':
            return push(Kind::integer, number(1)), true;
        case 'M':
            return push(Kind::integer, number(2)), true;
        case 'J':
            return push_long(4), true;
        case 0x8a:
            return push_long(number(1)), true;
        case 0x8b:
            return push_long(number(4)), true;
        case 'G': {
            std::uint64_t bits = 0;  // high byte first
            for (const char byte : take(8)) bits = bits << 8 | static_cast<unsigned char>(byte);
            return push(Kind::real, bits), true;
        }
        case 'U':
        case 0x8c:
            return push_text(number(1)), true;
        case 'T':
        case 'X':
            return push_text(number(4)), true;
        case 0x8d:
            return push_text(number(8)), true;
        default:
            return false;
    }
}

bool PickleMachine::step_container(unsigned char code) {
    switch (code) {
        case '(':
            return marks_.push_back(stack_.size()), true;
        case ')':
            return stack_.push_back(kEmptyTuple), true;
        case ']':
            return push(Kind::list, 0), true;
        case '}':
            return push(Kind::dict, 0), true;
        case 't':
            return push_fixed(Kind::tuple, pop_to_mark()), true;
        case 0x85:
        case 0x86:
        case 0x87: {
            Ref items[3] = {};
            const std::size_t count = code - 0x84u;
            for (std::size_t i = count; i-- > 0;) items[i] = pop();
            return push_fixed(Kind::tuple, {items, count}), true;
        }
        case 'a':
        case 's': {
            Ref items[2] = {};
            const std::size_t count = code == 'a' ? 1 : 2;
            for (std::size_t i = count; i-- > 0;) items[i] = pop();
            const Ref to = pop();
            append(to, {items, count}, code == 'a' ? Kind::list : Kind::dict);
            return stack_.push_back(to), true;
        }
        case 'e':
        case 'u': {
            const auto items = pop_to_mark();
            const Ref to = pop();
            append(to, items, code == 'e' ? Kind::list : Kind::dict);
            return stack_.push_back(to), true;
        }
        default:
            return false;
    }
}

bool PickleMachine::step_memo(unsigned char code) {
    switch (code) {
        case 'q':
            return remember(number(1)), true;
        case 'r':
            return remember(number(4)), true;
        case 0x94:
            return remember(remembered_), true;
        case 'h':
            return recall(number(1)), true;
        case 'j':
            return recall(number(4)), true;
        case '0':
            return pop(), true;
        case '2': {
            const Ref top = pop();
            stack_.push_back(top);
            return stack_.push_back(top), true;
        }
        default:
            return false;
    }
}

bool PickleMachine::step_object(unsigned char code) {
    switch (code) {
        case 'c': {
            const auto module = line();
            return push_name(module, line()), true;
        }
        case 0x93: {
            const Ref name = pop(), module = pop();
            if (pickle_.kind(name) != Kind::text || pickle_.kind(module) != Kind::text)
                fail("found a name that is no text");
            return push_name(pickle_.text(module), pickle_.text(name)), true;
        }
        case 'R':
            return call(), true;
        case 'Q': {
            const Ref item = pop();
            return push_fixed(Kind::persistent, {&item, 1}), true;
        }
        case 0x95:  // the length of a frame: of use to streams only
            return take(8), true;
        case 0x80:
            if (number(1) > 5) fail("found a pickle of a protocol above 5");
            return true;
        default:
            return false;
    }
}

}  // namespace moehub
