// Do the books notice a row that is lost, doubled or wrong?
#include "layers/moe_layer.hpp"
#include "small_layer.hpp"

#include <stdexcept>

#include <gtest/gtest.h>

namespace moehub::layers::books_test {
namespace {

class RowBooks : public ::testing::Test {
  protected:
    Machine machine_ = testing::small_gpus(2);
    Model model_ = testing::small_model(4, 2);
    Routing routing_ = make_routing({}, model_, 3);
    Placement placement_ = contiguous_placement(4, 2);
    LayerInput input_{machine_, model_, routing_, placement_};

    void enter_all(Books& books, int shards) {
        for (std::uint32_t token = 0; token < 3; ++token) {
            for (std::uint32_t slot = 0; slot < 2; ++slot) {
                for (int shard = 0; shard < shards; ++shard) enter(books, token, slot, shard);
            }
        }
    }
    void enter(Books& books, std::uint32_t token, std::uint32_t slot, int shard) {
        books.delivered(token, slot, shard);
        const int expert = routing_.chosen_by(0, token)[slot];
        books.returned(token, slot, shard, books.result(expert, shard, books.input(token)));
    }
};

TEST_F(RowBooks, close_when_every_row_was_there_once) {
    for (const int shards : {1, 3}) {
        Books books(input_, shards, 4);
        enter_all(books, shards);
        EXPECT_NO_THROW(books.check());
        EXPECT_LT(books.largest_error(), 1e-12);
    }
}

TEST_F(RowBooks, do_not_close_without_a_row) {
    Books books(input_, 1, 0);
    enter(books, 0, 0, 0);
    EXPECT_THROW(books.check(), std::logic_error);
}

TEST_F(RowBooks, refuse_a_row_twice) {
    Books books(input_, 1, 0);
    enter_all(books, 1);
    EXPECT_THROW(books.delivered(1, 1, 0), std::logic_error);
    EXPECT_THROW(books.returned(1, 1, 0, nullptr), std::logic_error);
}

TEST_F(RowBooks, show_the_error_of_a_wrong_expert) {
    Books books(input_, 1, 4);
    for (std::uint32_t token = 0; token < 3; ++token) {
        for (std::uint32_t slot = 0; slot < 2; ++slot) {
            books.delivered(token, slot, 0);
            books.returned(token, slot, 0, books.result(0, 0, books.input(token)));
        }
    }
    EXPECT_GT(books.largest_error(), 1e-3);
}

}  // namespace
}  // namespace moehub::layers::books_test
